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
fn impossible_limits_are_refused() {
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

#[test]
fn every_choice_says_what_memory_it_needs() {
    let found = json(&["tune", "--workload", WORKLOAD, "--memtable", "1MiB"]);
    let frontier = found["frontier"].as_array().unwrap();
    for one in frontier {
        let parts = ["memtables", "filters", "fences"].map(|part| figure(&one["memory"], part));
        assert_eq!(parts[0], f64::from(2 << 20), "{one}");
        assert_eq!(parts.iter().sum::<f64>(), figure(one, "memory_bytes"), "{one}");
    }
    // What holds more has more to filter.
    let most = |name: &str| {
        let space = |one: &&Value| (figure(one, "space_cost_mean") * 1e9) as u64;
        figure(&frontier.iter().max_by_key(space).unwrap()["memory"], name)
    };
    assert!(frontier.iter().all(|one| figure(&one["memory"], "filters") <= most("filters")));
    let within = json(&["tune", "--workload", WORKLOAD, "--memory", "4MiB"]);
    for one in within["frontier"].as_array().unwrap() {
        let fences = figure(&one["memory"], "fences");
        let free = figure(one, "memory_bytes") - fences;
        assert!(free <= f64::from(4 << 20), "{one}");
    }
}

/// All of what formulas, or merges of unit flushes, can say.
#[test]
fn every_kind_of_policy_is_considered() {
    let found = json(&["tune", "--workload", "churn(keys=200k, ops=2M, value=100B)"]);
    let names: Vec<&str> = found["frontier"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|one| one["policy"].as_str()?.split('(').next())
        .collect();
    for name in ["none", "tiered", "minlatency", "bigtable", "rr"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    assert!(figure(&found, "considered") > 120.0, "{}", found["considered"]);
}

#[test]
fn drift_trades_the_expected_for_the_worst() {
    const MIXED: &str = "ycsb(a, records=20k, ops=60k, value=1000B)";
    let tune = |distance: &str| {
        json(&["tune", "--workload", MIXED, "--memtable", "64KiB", "--drift", distance])
    };
    let found = tune("0.5");
    let (drift, best) = (&found["drift"], &found["best"]);
    let (nominal, robust) = (&drift["nominal"], &drift["robust"]);
    assert_eq!(best["policy"], robust["policy"]);
    assert!(figure(nominal, "cost_expected") <= figure(robust, "cost_expected"));
    assert!(figure(robust, "cost_worst") <= figure(nominal, "cost_worst"));
    for choice in [nominal, robust] {
        assert!(figure(choice, "cost_expected") < figure(choice, "cost_worst"), "{choice}");
        let mix =
            ["writes", "hits", "misses", "scans"].map(|part| figure(&choice["worst_mix"], part));
        assert!((mix.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{choice}");
    }
    // Half of the operations of this workload read what is there.
    let expected = ["writes", "hits"].map(|part| figure(&drift["mix"], part));
    assert!(expected.iter().all(|share| (0.45..0.51).contains(share)), "{drift}");
    let still = &tune("0")["drift"];
    assert_eq!(still["nominal"]["policy"], still["robust"]["policy"]);
    let cost = |name: &str| figure(&still["robust"], name);
    assert!((cost("cost_worst") / cost("cost_expected") - 1.0).abs() < 1e-6, "{still}");
}

#[test]
fn predictions_are_verified_on_the_store() {
    let arguments = ["tune", "--workload", "churn(keys=8k, ops=40k, value=100B)", "--verify"];
    let more = ["--memtable", "64KiB", "--read-cost-max", "4"];
    let arguments = [&arguments[..], &more[..]].concat();
    let found = json(&arguments);
    let verified = &found["verified"];
    let rows = verified["rows"].as_array().unwrap();
    assert_eq!(figure(verified, "shrink"), 1.0);
    // The winner as the policy spells itself out, and the default.
    assert_eq!(rows.len(), 2, "{verified}");
    let name = |text: &Value| text.as_str().unwrap().split('(').next().unwrap().to_owned();
    assert_eq!(name(&rows[0]["policy"]), name(&found["best"]["policy"]));
    assert_eq!(rows[1]["policy"], "minlatency(k=6)");
    for row in rows {
        let error = |by: &str| figure(&row["errors"][by], "write_cost_system").abs();
        assert!(error("keyed") < 1e-9, "{row}");
        assert!(error("fluid") < 0.1, "{row}");
        assert!(figure(&row["engine"]["bytes"]["physical"], "user") > 0.0);
    }
    let text = fine(&arguments);
    for part in ["On the store, churn(keys=8k", "write_cost_system", "error %", "memory bytes"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn drift_is_printed_as_text() {
    let text = fine(&["tune", "--workload", WORKLOAD, "--memtable", "1MiB", "--drift", "0.2"]);
    for part in ["nominal", "robust", "at worst within 0.2 nats", "to the power"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let line = refused(2, &["tune", "--workload", WORKLOAD, "--drift", "101"]);
    assert!(line.contains("0 to 100"), "{line}");
}
