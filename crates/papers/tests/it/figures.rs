//! Figures of papers: how they are judged, measured and drawn.

use super::frame::measure;
use lsmith_lab::plot::Axis;
use lsmith_papers::{Effort, FIGURES, Figure, Panel, Test, Verdict, draw_svg, figure_named};
use serde_json::Value;

#[test]
fn a_claim_holds_within_its_tolerance_and_not_beyond() {
    let mut figure = Figure::empty("sample", "", Vec::new());
    let mut expected = Vec::new();
    for (measured, tolerance, holds) in
        [(-30.0, 5.0, true), (-28.9, 5.0, false), (34.0, 5.0, false)]
    {
        figure.near("34 % less", -34.0, measured, tolerance);
        expected.push(holds);
    }
    figure.near("exactly", 3.0, 3.0, 0.0);
    figure.at_most("never more", -0.1, 0.0);
    figure.at_least("clearly more", 2.0, 2.0);
    expected.extend([true; 3]);
    figure.at_most("never more", 0.1, 0.0);
    figure.at_least("clearly more", 1.9, 2.0);
    figure.near("no number was measured", 1.0, f64::NAN, 1.0);
    figure.at_most("no number was measured", f64::NAN, 1.0);
    figure.at_least("no number was measured", f64::NAN, 1.0);
    expected.extend([false; 5]);
    figure.at_most("too little was measured to judge", None, 1.0);
    let holds = figure.claims.iter().map(|claim| claim.verdict == Verdict::Holds);
    assert_eq!(holds.collect::<Vec<_>>(), expected);
}

#[test]
fn figures_are_found_by_name() {
    for info in FIGURES {
        assert_eq!(figure_named(info.name).unwrap().name, info.name);
        assert!(!info.title.is_empty() && info.title.lines().count() == 1);
    }
    let error = figure_named("thonangi-fig22").unwrap_err().to_string();
    assert!(error.contains("did you mean `thonangi-fig2`"), "{error}");
}

/// Returns a figure of section III, small enough to take no time.
fn tiny(shrink: u64) -> Figure {
    measure("thonangi-fig2", Effort { is_quick: true, shrink })
}

#[test]
fn a_figure_is_measured_from_one_end_to_the_other() {
    let figure = tiny(64);
    assert_eq!(tiny(256), tiny(256), "the same again, whatever threads did");
    for panel in ["a", "b"] {
        assert_eq!(figure.policies(panel), ["full", "choose_best", "test_mixed"]);
        for policy in figure.policies(panel) {
            let xs: Vec<f64> = figure.curve(panel, policy).map(|(x, _)| x).collect();
            assert_eq!(xs, figure.xs(panel), "{policy}");
        }
        let cost = |policy, x| figure.y(panel, policy, x).unwrap();
        // Windows are single blocks here. A partial merge loses up to a block at either end, as
        // much as choosing saves when the next level holds little.
        assert!(cost("choose_best", 80.0) < 0.95 * cost("full", 80.0));
        assert!(cost("test_mixed", 20.0) < cost("choose_best", 20.0));
        assert!(cost("full", 80.0) > 1.5 * cost("full", 20.0));
    }
    let scale = |note: &String| note.contains("1/8 of it");
    assert!(figure.notes.iter().any(scale), "{:?}", figure.notes);

    let json = serde_json::to_value(&figure).unwrap();
    assert_eq!(json["figure"], "thonangi-fig2");
    for point in json["series"].as_array().unwrap() {
        assert!(point["policy"].is_string() && point["panel"].is_string(), "{point}");
        assert!(point["x"].is_number() && point["y"].is_number(), "{point}");
    }
    let claims = json["claims"].as_array().unwrap();
    assert!(claims.len() > 10);
    for (json, claim) in claims.iter().zip(&figure.claims) {
        let value_or_null = |value: &Value| value.is_number() || value.is_null();
        assert!(json["claim"].is_string() && value_or_null(&json["paper"]), "{json}");
        assert!(json["measured"].is_number() && json["tolerance"].is_number(), "{json}");
        assert_eq!(json["paper"].is_number(), claim.test == Test::Near);
        assert!(["holds", "differs"].contains(&json["verdict"].as_str().unwrap()), "{json}");
    }
}

#[test]
fn the_store_is_timed_under_every_policy() {
    let figure = measure("thonangi-fig7", Effort { is_quick: true, shrink: 512 });
    assert_eq!(figure.panels.len(), 4);
    for panel in &figure.panels {
        assert_eq!(figure.policies(&panel.name).len(), 7, "{}", panel.name);
        for policy in figure.policies(&panel.name) {
            let curve: Vec<(f64, f64)> = figure.curve(&panel.name, policy).collect();
            assert_eq!(curve.len(), 2, "{policy}");
            assert!(curve.iter().all(|(_, y)| y.is_finite() && *y > 0.0), "{policy} {curve:?}");
        }
    }
    let shares = figure.points.iter().filter(|point| point.panel == "choosing");
    assert!(shares.clone().count() == 14 && shares.clone().all(|point| point.y < 100.0));
    let claimed = |words| figure.claims.iter().any(|claim| claim.claim.contains(words));
    assert!(claimed("ranks policies largely") && claimed("choosing what to merge takes"));
    assert!(figure.notes.iter().any(|note| note.starts_with("CPU share of choosing")));
}

#[test]
fn caches_of_the_paper_save_reads_of_merges() {
    let figure = measure("thonangi-caches", Effort { is_quick: true, shrink: 256 });
    for keys in ["uniform", "normal"] {
        for size_mb in [200, 800] {
            let panel = format!("{keys}-{size_mb}");
            assert_eq!(figure.xs(&panel), [0.0, 16.0, 100.0]);
            for policy in ["full", "rr", "choose_best", "mixed"] {
                let reads = |cache| figure.y(&panel, policy, cache).unwrap();
                let saved = [16.0, 100.0].map(|cache| 1.0 - reads(cache) / reads(0.0));
                let all = [0.0, saved[0], saved[1], 0.6];
                assert!(all.is_sorted() && saved[1] > 0.01, "{panel}, {policy}: {saved:?}");
                let writes = figure.y(&format!("{keys}-writes"), policy, f64::from(size_mb));
                let ratio = reads(0.0) / writes.unwrap();
                assert!((0.9..1.1).contains(&ratio), "{panel}, {policy}: {ratio}");
            }
        }
    }
    let claimed = |words| figure.claims.iter().filter(|claim| claim.claim.contains(words)).count();
    assert_eq!((claimed("roughly as many"), claimed("full benefits more")), (8, 8));
}

#[test]
fn only_claims_that_differ_are_explained() {
    let mut figure = Figure::empty("sample", "", Vec::new());
    figure.near("mixed costs 3", 3.0, 3.0, 0.0);
    figure.near("mixed costs 4", 4.0, 3.0, 0.0);
    figure.near("full costs 4", 4.0, 3.0, 0.0);
    figure.explain("mixed", "it costs 3.");
    let whys: Vec<_> = figure.claims.iter().map(|claim| claim.why.as_deref()).collect();
    assert_eq!(whys, [None, Some("it costs 3."), None]);
    let json = serde_json::to_value(&figure).unwrap();
    assert_eq!(json["claims"][1]["why"], "it costs 3.");
    assert!(json["claims"][0].get("why").is_none());
}

/// Panics unless `text` is one element whose inner elements are closed in order.
fn assert_well_formed(text: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    let mut elements = 0;
    while let Some(start) = rest.find('<') {
        assert!(!rest[..start].contains('>'), "a stray `>` before {}", &rest[start..]);
        let end = start + rest[start..].find('>').expect("tags end");
        let tag = &rest[start + 1..end];
        let name = tag.trim_start_matches('/').split([' ', '/', '\n']).next().unwrap();
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        match (tag.starts_with(['?', '!']), tag.starts_with('/'), tag.ends_with('/')) {
            (true, ..) => {}
            (_, true, _) => assert_eq!(open.pop(), Some(name)),
            (_, _, true) => elements += 1,
            _ => {
                assert!(!open.is_empty() || elements == 0, "one element holds all");
                elements += 1;
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty() && elements > 1, "{open:?} left open");
}

#[test]
fn drawings_have_a_line_for_each_policy() {
    let panel = |name: &str, x| Panel {
        name: name.to_owned(),
        title: "a & b < c".to_owned(),
        x,
        y: Axis::linear("cost", "blocks per MB"),
    };
    let panels = vec![panel("a", Axis::linear("size", "MB")), panel("b", Axis::log("sigma", "%"))];
    let mut figure = Figure::empty("drawn", "a drawing", panels);
    for (panel, policies) in [("a", &["full", "rr(reuse=false)", "mixed"][..]), ("b", &["rr"])] {
        for (index, policy) in policies.iter().enumerate() {
            for x in [0.005, 1.0, 200.0] {
                figure.point(panel, policy, x, x * 3.0 + index as f64);
            }
        }
    }
    let dir = tempfile::tempdir().unwrap();
    let paths = draw_svg(&figure, &dir.path().join("new")).unwrap();
    let names: Vec<_> = paths.iter().map(|path| path.file_name().unwrap()).collect();
    assert_eq!(names, ["drawn-a.svg", "drawn-b.svg"]);
    for (path, policies) in paths.iter().zip([&["full", "rr(reuse=false)", "mixed"][..], &["rr"]]) {
        let text = std::fs::read_to_string(path).unwrap();
        assert_well_formed(&text);
        for label in policies.iter().copied().chain(["cost (blocks per MB)"]) {
            assert!(text.contains(label), "no {label} in {text}");
        }
        // Lines of curves are twice as wide as all others; each has one more in the legend.
        let wide = |line: &&str| line.contains("<polyline") && line.contains("stroke-width=\"2\"");
        assert_eq!(text.lines().filter(wide).count(), 2 * policies.len(), "{text}");
    }

    let mut only =
        Figure::empty("only", "", vec![Panel::only(Axis::log("x", ""), Axis::log("y", ""))]);
    only.point("", "rr", 10.0, 100.0);
    let paths = draw_svg(&only, dir.path()).unwrap();
    assert_eq!(paths, [dir.path().join("only.svg")]);
}
