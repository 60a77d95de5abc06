//! Tests of pages.

use super::{CostPoint, Group, Page, PolicyCosts, Table};
use crate::history::Recorder;
use crate::inputs::FileInputs;
use crate::simulate::{Content, simulate_observed};
use lsmith_policy::Registry;
use lsmith_sim::FluidWorkload;
use lsmith_workload::{FlushSizes, Workload};
use scraper::{Html, Selector};
use serde_json::{Value, json};

/// A page whose every text is `name`.
fn page_named(name: &str) -> Page {
    let policy = Registry::builtin().build("tiered(ratio=3)").unwrap();
    let content = Content::Unit { flushes: 5, sizes: &FlushSizes::default() };
    let mut recorder = Recorder::new(None);
    simulate_observed(&policy, &content, 1000, None, &mut |event| recorder.observe(event)).unwrap();
    let group = Group {
        name: name.to_owned(),
        notes: vec![name.to_owned()],
        sources: vec![super::CostSource { name: name.to_owned() }],
        costs: vec![PolicyCosts {
            name: name.to_owned(),
            is_best: true,
            by_source: vec![Some(CostPoint { write: 1.0, read: 2.0, space: None })],
            optimum: None,
            put: None,
            course: None,
        }],
        table: Table::of_objects(&[json!({ name: name })], &[]),
        trees: vec![recorder.finish(name, "unit simulation")],
        ..Group::default()
    };
    let facts = vec![(name.to_owned(), name.to_owned())];
    Page { title: name.to_owned(), facts, groups: vec![group] }
}

const HOSTILE: [&str; 6] = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "</title></style><img src=x onerror=alert(1)>",
    "\"'&amp;&lt;`${1}\\",
    "]]>\u{2028}\u{2029}\u{0}\u{7}",
    "load(keys=1k, value=100B)",
];

#[test]
fn pages_are_well_formed_whatever_names_they_show() {
    for name in HOSTILE {
        let html = Html::parse_document(&page_named(name).html().unwrap());
        assert!(html.errors.is_empty(), "{name}: {:?}", html.errors);
        let texts = |selector: &str| -> Vec<String> {
            let found = Selector::parse(selector).unwrap();
            html.select(&found).map(|element| element.text().collect()).collect()
        };
        // HTML has no control characters.
        let shown: String =
            name.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect();
        for selector in ["title", "h1"] {
            assert_eq!(texts(selector).concat(), shown, "{selector}");
        }
        assert_eq!(texts("script").len(), 2, "{name}");
        assert_eq!(texts("img").len(), 0, "{name}");
        let content: Value = serde_json::from_str(&texts("#content")[0]).unwrap();
        let group = &content["groups"][0];
        for value in [&content["title"], &content["facts"][0][1], &group["name"]] {
            assert_eq!(value, name);
        }
        assert_eq!(group["trees"][0]["name"], name);
        assert_eq!(group["costs"][0]["name"], name);
        assert_eq!(group["table"]["rows"][0][0], name);
    }
}

#[test]
fn pages_load_nothing_from_elsewhere() {
    let page = page_named("tiered").html().unwrap();
    let html = Html::parse_document(&page);
    for attribute in ["src", "href", "srcset", "action", "data", "poster"] {
        let found = Selector::parse(&format!("[{attribute}]")).unwrap();
        assert_eq!(html.select(&found).count(), 0, "{attribute}");
    }
    // The name of the SVG elements is an address that nothing reads.
    let text = page.replace("http://www.w3.org/2000/svg", "");
    for word in [
        "http:",
        "https:",
        "//cdn",
        "@import",
        "url(",
        "fetch(",
        "XMLHttpRequest",
        "WebSocket",
        "import(",
        "sendBeacon",
        "innerHTML",
        "outerHTML",
        "insertAdjacentHTML",
        "document.write",
        "eval(",
    ] {
        assert!(!text.contains(word), "{word}");
    }
    assert!(text.contains("default-src 'none'"));
}

/// A hundred thousand merges of a tree of levels, with their keys.
#[test]
fn a_hundred_thousand_merges_take_less_than_20_mb() {
    let spec = "churn(keys=30k, ops=2300k, value=1000B)";
    let workload = Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap();
    let fluid = FluidWorkload::new(&workload).unwrap();
    let policy = Registry::builtin().build("leveled(ratio=10, l0=1, table=64KiB)").unwrap();
    let content = Content::Fluid(&fluid);
    let mut recorder = Recorder::new(content.key_scale());
    let simulated =
        simulate_observed(&policy, &content, 64 << 10, None, &mut |event| recorder.observe(event));
    let simulated = simulated.unwrap();
    let merges = simulated.report.costs.merges;
    assert!(merges > 100_000, "{merges}");
    let group = Group::of_simulations(vec![(simulated.clone(), recorder)], &[]).unwrap();
    let page = Page { title: String::new(), facts: Vec::new(), groups: vec![group] };
    let bytes = page.html().unwrap().len();
    assert!(bytes < 20_000_000, "{bytes}");
}

#[test]
fn tuning_is_shown_from_its_json() {
    let choice = |policy: &str, write: f64| {
        json!({ "policy": policy, "write_cost_user": write, "read_cost_mean": 3.0,
            "space_cost_mean": 1.5, "memory": { "filters": 7 } })
    };
    let tuned =
        json!({ "best": choice("b", 2.0), "frontier": [choice("a", 1.0), choice("b", 2.0)] });
    let group = Group::of_tuned(&tuned).unwrap();
    assert_eq!(group.write_figure, "write_cost_user");
    let best: Vec<_> =
        group.costs.iter().map(|costs| (costs.name.as_str(), costs.is_best)).collect();
    assert_eq!(best, [("a", false), ("b", true)]);
    let names: Vec<&str> = group.table.columns.iter().map(|column| column.name.as_str()).collect();
    let expected =
        ["policy", "write_cost_user", "read_cost_mean", "space_cost_mean", "memory.filters"];
    assert_eq!(names, expected);
    // The best of all is shown even if it is not on the frontier.
    let tuned = json!({ "best": choice("c", 3.0), "frontier": [choice("a", 1.0)] });
    let group = Group::of_tuned(&tuned).unwrap();
    let shown: Vec<_> =
        group.costs.iter().map(|costs| (costs.name.as_str(), costs.is_best)).collect();
    assert_eq!(shown, [("a", false), ("c", true)]);
    let error = Group::of_tuned(&json!({ "best": { "policy": "a" }, "frontier": [] })).unwrap_err();
    assert!(error.to_string().contains("the choice a has no write_cost_system"), "{error}");
    assert!(Group::of_tuned(&json!({})).is_err());
}
