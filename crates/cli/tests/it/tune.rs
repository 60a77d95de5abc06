//! `lsmith tune`.

use crate::command::{fine, json, refused};
use serde_json::Value;

const WORKLOAD: &str = "load(keys=200k, value=1000B, order=zipf)";

fn figure(choice: &Value, name: &str) -> f64 {
    choice[name].as_f64().unwrap()
}

#[test]
fn the_best_is_within_the_limits_and_on_the_frontier() {
    let free = json(&["tune", "--workload", WORKLOAD, "--memtable", "1MiB"]);
    let limits = ["--read-cost-max", "5", "--space-cost-max", "1.5"];
    let bound =
        json(&[&["tune", "--workload", WORKLOAD, "--memtable", "1MiB"], &limits[..]].concat());
    let (free, best) = (&free["best"], &bound["best"]);
    assert!(figure(best, "read_cost_mean") <= 5.0);
    assert!(figure(best, "space_cost_mean") <= 1.5);
    assert!(figure(best, "write_cost_user") >= figure(free, "write_cost_user"));
    let confirmed = &best["confirmed"];
    let fluid = figure(confirmed, "fluid_write_cost_system");
    let model = figure(confirmed, "model_write_cost_system");
    assert!((model / fluid - 1.0).abs() < 0.25, "{bound}");
    let frontier = bound["frontier"].as_array().unwrap();
    assert!(frontier.len() > 5);
    for pair in frontier.windows(2) {
        assert!(figure(&pair[0], "write_cost_user") <= figure(&pair[1], "write_cost_user"));
    }
    for one in frontier {
        let beats = |other: &Value| {
            ["write_cost_user", "read_cost_mean", "space_cost_mean"]
                .iter()
                .all(|name| figure(other, name) < figure(one, name))
        };
        assert!(!frontier.iter().any(beats), "{one}");
    }
}

#[test]
fn more_memory_writes_less() {
    let cost = |memory: &str| {
        let found =
            json(&["tune", "--workload", WORKLOAD, "--read-cost-max", "6", "--memory", memory]);
        assert!(figure(&found["best"], "memory_bytes") > 0.0);
        figure(&found["best"], "write_cost_user")
    };
    assert!(cost("32MiB") < cost("1MiB"));
}

#[test]
fn text_shows_the_best_and_the_frontier() {
    let text = fine(&["tune", "--workload", WORKLOAD, "--memtable", "1MiB"]);
    for part in ["best", "write_cost_system, fluid", "space_cost_mean", "minlatency"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn what_cannot_be_is_told() {
    let line = refused(1, &["tune", "--workload", WORKLOAD, "--read-cost-max", "0.5"]);
    assert!(line.contains("no choice is within the limits"), "{line}");
    let line = refused(1, &["tune", "--workload", WORKLOAD, "--memory", "1kB"]);
    assert!(line.contains("too little"), "{line}");
    let line = refused(2, &["tune", "--workload", "lod"]);
    assert!(line.contains("did you mean `load`?"), "{line}");
    let line = refused(2, &["tune", "--workload", WORKLOAD, "--space-cost-max", "-1"]);
    assert!(line.contains("-1"), "{line}");
    let both = ["--memory", "1MiB", "--memtable", "1MiB"];
    assert!(refused(2, &[&["tune", "--workload", WORKLOAD], &both[..]].concat()).contains("--mem"));
}
