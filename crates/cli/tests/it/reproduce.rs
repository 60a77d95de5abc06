//! Figures of papers.

use crate::command::{fine, json, lsmith, refused};

/// The figure that takes the least time.
const FIGURE: &str = "mao-fig6";

#[test]
fn figures_are_listed() {
    let text = fine(&["reproduce"]);
    assert_eq!(text, fine(&["reproduce", "list"]));
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let listed = json(&["reproduce"]);
    let figures = listed["figures"].as_array().unwrap();
    let names: Vec<&str> = figures.iter().map(|figure| figure["name"].as_str().unwrap()).collect();
    let more = ["fig1", "fig3", "fig4", "levels", "growth-uniform", "payloads-normal"];
    let known = ["fig2", "fig5", "fig6a", "fig6b", "fig6c", "fig8", "fig9", "fig10"];
    for name in known.into_iter().chain(more) {
        let name = format!("thonangi-{name}");
        assert!(names.contains(&name.as_str()), "{names:?}");
        assert!(text.lines().any(|line| line.starts_with(&name)), "{text}");
    }
    for name in ["wa", "skew", "buffer", "density", "rocksdb"] {
        assert!(names.contains(&format!("msls-{name}").as_str()), "{names:?}");
    }
    assert!(
        ["jungle-costs", "lsmtk-wa", "optimum"].iter().all(|name| names.contains(name)),
        "{names:?}"
    );
    assert!(figures.iter().all(|figure| !figure["title"].as_str().unwrap().is_empty()));
}

#[test]
fn an_unknown_figure_is_refused_with_the_nearest_name() {
    let message = refused(2, &["reproduce", "thonangi-fig6d"]);
    assert!(
        message.contains("unknown figure `thonangi-fig6d`; did you mean `thonangi-fig6"),
        "{message}"
    );
    let message = refused(2, &["reproduce", "nothing like it", "--json"]);
    assert!(message.contains("thonangi-fig2, ") && message.contains("mao-fig3, "), "{message}");
    refused(2, &["reproduce", FIGURE, "--slow"]);
}

#[test]
fn a_figure_in_json_has_claims_and_points() {
    let figure = json(&["reproduce", FIGURE, "--quick"]);
    assert_eq!(figure["figure"], FIGURE);
    let claims = figure["claims"].as_array().unwrap();
    assert!(!claims.is_empty());
    for claim in claims {
        assert!(claim["claim"].as_str().is_some_and(|claim| !claim.is_empty()), "{claim}");
        assert!(claim["paper"].is_number() || claim["paper"].is_null(), "{claim}");
        assert!(claim["measured"].is_number() && claim["tolerance"].is_number(), "{claim}");
        assert!(["holds", "differs"].contains(&claim["verdict"].as_str().unwrap()), "{claim}");
    }
    let points = figure["series"].as_array().unwrap();
    assert!(!points.is_empty());
    for point in points {
        assert!(point["policy"].is_string(), "{point}");
        assert!(point["x"].is_number() && point["y"].is_number(), "{point}");
    }
}

/// A figure of formulas, with a reason for each claim that differs.
#[test]
fn costs_by_formula_are_judged() {
    let figure = json(&["reproduce", "jungle-costs", "--quick"]);
    let claims = figure["claims"].as_array().unwrap();
    let differs: Vec<_> = claims.iter().filter(|claim| claim["verdict"] == "differs").collect();
    assert!(!differs.is_empty() && differs.len() < claims.len() / 2, "{figure}");
    assert!(differs.iter().all(|claim| claim["why"].is_string()), "{differs:?}");
    let panels: Vec<&str> =
        figure["panels"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(panels, ["a", "b", "c"]);
}

/// A policy of one's own has a curve. A figure that cannot have one says why.
#[test]
fn policies_of_ones_own_are_measured_beside_the_papers() {
    let policies = ["--policy", "tiered(ratio=6)", "--policy=binomial(k=9)"];
    let figure = json(&[&["reproduce", FIGURE, "--quick"], &policies[..]].concat());
    let points = figure["series"].as_array().unwrap();
    for policy in ["tiered(ratio=6)", "binomial(k=9)"] {
        let count = |policy: &str| points.iter().filter(|point| point["policy"] == policy).count();
        assert!(count(policy) > 10 && count(policy) == count("tiered(ratio=4)"), "{policy}");
    }
    let claims = figure["claims"].as_array().unwrap();
    let is_own = |claim: &serde_json::Value| claim["claim"].as_str().unwrap().contains("ratio=6");
    assert!(!claims.iter().any(is_own), "{claims:?}");
    let text = fine(&[&["reproduce", FIGURE, "--quick"], &policies[..]].concat());
    assert!(
        text.contains("Not in the paper, and part of no claim: tiered(ratio=6); binomial(k=9)")
    );

    let none = refused(2, &["reproduce", "jungle-costs", "--policy", "tiered"]);
    assert!(none.contains("jungle-costs takes no policy of yours: its costs are by formula"));
    let blocks = refused(2, &["reproduce", "thonangi-fig8", "--policy", "tiered"]);
    assert!(blocks.contains("count in blocks") && blocks.contains("tiered(ratio=4)"), "{blocks}");
    let unknown = refused(2, &["reproduce", FIGURE, "--policy", "teired"]);
    assert!(unknown.contains("did you mean `tiered`?"), "{unknown}");
    refused(2, &["reproduce", "list", "--policy", "tiered"]);
    let listed = json(&["reproduce"]);
    let takes = |name: &str| {
        let figures = listed["figures"].as_array().unwrap();
        figures.iter().find(|figure| figure["name"] == name).unwrap()["policies"].clone()
    };
    assert_eq!(takes("mao-fig6"), "any");
    assert_eq!(takes("thonangi-fig8"), "in blocks");
    assert_eq!(takes("msls-unique"), "none");
}

#[test]
fn a_figure_in_text_has_tables_and_drawings() {
    let dir = tempfile::tempdir().unwrap();
    let drawings = dir.path().join("drawings");
    let done = lsmith(&["reproduce", FIGURE, "--quick", "--svg", drawings.to_str().unwrap()]);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{done:?}");
    let text = done.out;
    assert!(text.starts_with(&format!("{FIGURE}: ")), "{text}");
    for column in ["claim ", "paper", "measured", "allowed", "verdict"] {
        assert!(text.contains(column), "no {column} in {text}");
    }
    assert!(text.contains(" holds") || text.contains(" differs"), "{text}");
    let drawn = text.lines().filter_map(|line| line.strip_prefix("drawn: "));
    let drawn: Vec<&str> = drawn.collect();
    assert!(!drawn.is_empty(), "{text}");
    for path in drawn {
        let drawing = std::fs::read_to_string(path).unwrap();
        assert!(drawing.starts_with("<svg ") && drawing.trim_end().ends_with("</svg>"), "{path}");
    }
}
