//! `lsmith tune`.

use crate::command::{fine, json, lsmith, refused};
use serde_json::Value;

/// Small entries and memtables: some 150 flushes, which take a second to weigh.
const WORKLOAD: &str = "load(keys=20k, value=100B, order=zipf)";
const MEMTABLE: &str = "16KiB";

fn figure(choice: &Value, name: &str) -> f64 {
    choice[name].as_f64().unwrap()
}

/// Returns what `found` weighs: work and bytes of `choice`, each to the power of its weight.
fn score(found: &Value, choice: &Value) -> f64 {
    let weight = |name: &str| figure(&found["weights"], name);
    let lookup = 1.0 + figure(choice, "read_cost_mean") / 16.0;
    figure(choice, "write_cost_user").powf(weight("write"))
        * lookup.powf(weight("read"))
        * figure(&choice["scan_cost_mean"], "blocks").powf(weight("scan"))
        * figure(choice, "space_cost_physical_mean").powf(weight("space"))
}

#[test]
fn the_best_is_within_the_limits_and_on_the_frontier() {
    let free = json(&["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE]);
    let limits = ["--read-cost-max", "5", "--space-cost-max", "1.5"];
    let bound =
        json(&[&["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE], &limits[..]].concat());
    let best = &bound["best"];
    assert!(figure(best, "read_cost_mean") <= 5.0);
    assert!(figure(best, "space_cost_physical_mean") <= 1.5);
    // A simulation returns the same figures.
    let policy = best["policy"].as_str().unwrap();
    let arguments = ["simulate", "--content", "keyed", "--policy", policy, "--workload", WORKLOAD];
    let more = ["--memtable", MEMTABLE, "--flushes", "1M", "--json"];
    let done = lsmith(&[&arguments[..], &more[..]].concat());
    let simulated: Value = serde_json::from_str(&done.out).expect("JSON");
    for name in ["write_cost_system", "read_cost_mean", "space_cost_mean"] {
        assert_eq!(figure(best, name), figure(&simulated, name), "{name} of {policy}");
    }
    for name in ["write_cost_user", "space_cost_physical_mean"] {
        assert_eq!(figure(best, name), figure(&simulated["physical"], name), "{name} of {policy}");
    }
    // Without a limit bytes written and space count. Nothing is read.
    assert!(score(&free, &free["best"]) <= score(&free, best));
    assert_eq!(figure(&free["weights"], "read"), 0.0);
    assert_ne!(free["best"]["policy"], "none");
    let frontier = bound["frontier"].as_array().unwrap();
    assert!(frontier.len() > 5);
    for pair in frontier.windows(2) {
        assert!(figure(&pair[0], "write_cost_user") <= figure(&pair[1], "write_cost_user"));
    }
    for one in frontier {
        let beats = |other: &Value| {
            ["write_cost_user", "read_cost_mean", "space_cost_physical_mean"]
                .iter()
                .all(|name| figure(other, name) < figure(one, name))
        };
        assert!(!frontier.iter().any(beats), "{one}");
    }
}

/// Of `ycsb(e)` all reads are range reads.
#[test]
fn the_longest_merge_is_a_limit() {
    let arguments = ["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE];
    let longest = 300_000.0;
    let limits = ["--read-cost-max", "8", "--longest-merge", "300kB"];
    let found = json(&[&arguments[..], &limits].concat());
    let best = &found["best"];
    assert!(figure(best, "merge_bytes_max") <= longest, "{best}");
    let free = json(&[&arguments[..], &limits[..2]].concat());
    assert!(figure(&free["best"], "merge_bytes_max") > longest, "{}", free["best"]);
    // Stacks are tried with a largest merge, and some of them are best.
    let frontier = found["frontier"].as_array().unwrap().iter();
    let bounded = frontier.filter(|one| one["policy"].as_str().unwrap().contains("largest=300kB"));
    assert!(bounded.count() > 3, "{}", found["frontier"]);
}

#[test]
fn range_reads_are_weighed_and_limited() {
    let tune = |more: &[&str]| {
        let workload = "ycsb(e, records=20k, ops=40k, value=100B)";
        json(&[&["tune", "--workload", workload, "--memtable", "64KiB"], more].concat())
    };
    let blocks = |choice: &Value| figure(&choice["scan_cost_mean"], "blocks");
    let free = tune(&[]);
    assert!(figure(&free["weights"], "scan") > 0.9, "{}", free["weights"]);
    assert_eq!(figure(&free["weights"], "read"), 0.0);
    for other in free["frontier"].as_array().unwrap() {
        assert!(score(&free, &free["best"]) <= score(&free, other) * 1.006, "{other}");
    }
    let least = &free["least"];
    assert!(figure(least, "above") > -0.05 && figure(least, "read_cost_mean") >= 1.0, "{least}");

    let limit = blocks(&free["best"]) + 0.5;
    let fewest = ["--weights", "fewest-bytes"];
    assert!(blocks(&tune(&fewest)["best"]) > limit);
    let bound = tune(&[&fewest[..], &["--scan-cost-max", &limit.to_string()]].concat());
    assert!(blocks(&bound["best"]) <= limit, "{}", bound["best"]);
    assert!(figure(&bound["best"], "write_cost_system") > 1.0);
    let small = ["tune", "--workload", "ycsb(e, records=20k, ops=10k, value=100B)"];
    let limits = ["--memtable", "64KiB", "--scan-cost-max", "1"];
    let none = refused(1, &[&small[..], &limits[..]].concat());
    assert!(none.contains("range reads at least"), "{none}");
}

#[test]
fn more_memory_writes_less_and_is_a_limit() {
    let cost = |memory: u32| {
        let bytes = memory.to_string();
        let workload = "load(keys=60k, value=100B, order=zipf)";
        let arguments =
            ["tune", "--workload", workload, "--read-cost-max", "6", "--memory", &bytes];
        let found = json(&arguments);
        let needed = figure(&found["best"], "memory_bytes");
        assert!(needed > 0.0 && needed <= f64::from(memory), "{needed} of {memory}");
        figure(&found["best"], "write_cost_user")
    };
    assert!(cost(2 << 20) < cost(1 << 18));
}

#[test]
fn text_shows_the_best_beside_the_default_and_the_frontier() {
    let arguments = ["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE];
    let mine = ["--compare-to", "leveled(ratio=10)", "--rate", "1MB", "--endurance", "1000GB"];
    let text = fine(&[&arguments[..], &mine].concat());
    let parts = [
        "best",
        "default",
        "yours",
        "leveled(ratio=10",
        "SSD years",
        "would be best with",
        "--read-cost-max",
        "minlatency",
        "simulated key by key",
    ];
    for part in parts {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// A policy of the frontier is the best with the limits that its line names.
#[test]
fn a_line_of_the_frontier_says_with_what_it_would_be_best() {
    let arguments = ["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE];
    let found = json(&[&arguments[..], &["--read-cost-max", "8"]].concat());
    let frontier = found["frontier"].as_array().unwrap();
    let bigtable = |one: &&Value| one["policy"].as_str().unwrap().starts_with("bigtable");
    let line = frontier.iter().find(bigtable).expect("a line of bigtable");
    let limits: Vec<&str> = line["wins_with"].as_str().unwrap().split(' ').collect();
    let found = json(&[&arguments[..], &limits[..]].concat());
    let (written, least) =
        (figure(line, "write_cost_user"), figure(&found["best"], "write_cost_user"));
    assert!((least / written - 1.0).abs() < 0.02, "{least} {written} with {limits:?}");
}

#[test]
fn weights_decide_between_writes_and_reads() {
    let reads = |weights: &str| {
        let arguments = ["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE];
        let found = json(&[&arguments[..], &["--weights", weights]].concat());
        figure(&found["best"], "read_cost_mean")
    };
    assert!(reads("write=1,read=3") < reads("write=3,read=1"));
    for (weights, part) in [
        ("write", "name=number"),
        ("fast", "`balanced`"),
        ("wite=1", "`write`"),
        ("read=0", "above 0"),
    ] {
        let line = refused(2, &["tune", "--workload", WORKLOAD, "--weights", weights]);
        assert!(line.contains(part), "{line}");
    }
}

#[test]
fn words_say_what_a_choice_is_to_be_good_at() {
    let workload = "ycsb(a, records=20k, ops=40k, value=100B)";
    let best = |aim: &str| {
        let arguments = ["tune", "--workload", workload, "--memtable", "64KiB", "--weights", aim];
        json(&arguments)["best"].take()
    };
    let [bytes, latency, space, balanced] =
        ["fewest-bytes", "lowest-latency", "least-space", "balanced"].map(best);
    for other in [&latency, &space, &balanced] {
        assert!(figure(&bytes, "write_cost_user") <= figure(other, "write_cost_user"), "{other}");
        let name = "space_cost_physical_mean";
        assert!(figure(&space, name) <= figure(other, name) * 1.02, "{space} {other}");
    }
    assert!(figure(&latency, "read_cost_mean") < figure(&bytes, "read_cost_mean"), "{latency}");
}

/// Merges keep keys in order where they are, so that each is written to the log and to one table. A
/// formula that does not know the order says 17.
#[test]
fn the_order_of_keys_counts() {
    let sequential = "load(keys=60k, value=100B, order=sequential)";
    let arguments = ["tune", "--workload", sequential, "--memtable", "64KiB"];
    let found = json(&[&arguments[..], &["--read-cost-max", "4"]].concat());
    assert!(figure(&found["best"], "write_cost_user") < 2.2, "{}", found["best"]);
}

/// The run phase overwrites what the load phase wrote; the load phase alone says 1.0.
#[test]
fn all_phases_of_a_workload_count() {
    let arguments = ["tune", "--workload", "ycsb(a, records=20k, ops=80k, value=100B)", "--check"];
    let limits = ["--memtable", "64KiB", "--read-cost-max", "6", "--space-cost-max", "1.5"];
    let found = json(&[&arguments[..], &limits].concat());
    let best = &found["best"];
    let checked = &found["checked"];
    assert!(figure(checked, "above") < 0.05 && checked["is_within"] == true, "{checked}");
    assert_eq!(figure(&checked["advised_costs"], "share"), 1.0);
    assert!(figure(best, "space_cost_mean") > 1.0, "{best}");
}

/// More operations than are read.
#[test]
fn a_workload_that_is_made_smaller_says_so() {
    let arguments = ["tune", "--workload", "churn(keys=4M, ops=40M, value=10B)"];
    let more = ["--memtable", "16MiB", "--read-cost-max", "4"];
    let found = json(&[&arguments[..], &more].concat());
    assert_eq!(figure(&found, "shrink"), 2.0);
    assert!(found["simulated"].as_str().unwrap().starts_with("churn(keys=2M, ops=20M"), "{found}");
    assert!(figure(&found["best"], "share") < 0.2, "{}", found["best"]);
}

/// The choice is the fastest in simulated time, which need not have the least weighed costs.
#[test]
fn choices_are_simulated_in_time() {
    let machine = "machine(cores=2, write=500, flush_entry=100, merge_entry=4000, put_p50=400, \
                   put_p99=3000, put_p999=9000)";
    let tune = ["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE, "--machine", machine];
    let limit = ["--read-cost-max", "4", "--weights", "fastest"];
    let found = json(&[&tune[..], &limit].concat());
    let timed = found["timed"].as_array().unwrap();
    // A dozen, and the default, which has more runs.
    assert!((12..=13).contains(&timed.len()), "{}", timed.len());
    let speeds: Vec<f64> =
        timed.iter().map(|choice| figure(&choice["time"], "ops_per_second")).collect();
    assert!(speeds.windows(2).all(|pair| pair[0] >= pair[1]), "{speeds:?}");
    assert!(speeds[0] > 1.05 * speeds[timed.len() - 1], "{speeds:?}");
    let first = timed.iter().find(|choice| choice["is_within"] == true).unwrap();
    assert_eq!(found["best"]["policy"], first["policy"]);
    assert!(figure(&found["best"], "read_cost_mean") <= 4.0);
    for field in ["cpu_seconds", "held_back_seconds", "pause_longest"] {
        assert!(figure(&first["time"], field) >= 0.0, "{field}");
    }
    assert!(figure(&first["time"]["put_nanos"], "p999") > 0.0);
    // Simulating the same choice alone gives the same time.
    let policy = first["policy"].as_str().unwrap();
    let simulate = ["simulate", "--content", "keyed", "--policy", policy, "--workload", WORKLOAD];
    let more = ["--memtable", MEMTABLE, "--flushes", "1M", "--machine", machine, "--json"];
    let done = lsmith(&[&simulate[..], &more].concat());
    let alone: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(figure(&alone["time"], "seconds"), figure(&first["time"], "seconds"));
    let text = fine(&[&tune[..], &limit].concat());
    assert!(text.contains("in simulated time") && text.contains("(best)"), "{text}");
    // The weights decide without the word, and the times are beside them.
    let weighed = json(&tune);
    assert!(weighed["timed"].as_array().unwrap().len() >= 12);
    let refusal = refused(2, &["tune", "--workload", WORKLOAD, "--weights", "fastest"]);
    assert!(refusal.contains("expected `--machine` with it"), "{refusal}");
}

#[test]
fn impossible_limits_are_refused() {
    let small = ["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE];
    let line = refused(1, &[&small[..], &["--read-cost-max", "0.5"]].concat());
    assert!(line.contains("no choice is within the limits"), "{line}");
    let line = refused(1, &["tune", "--workload", WORKLOAD, "--memory", "1kB"]);
    assert!(line.contains("too little"), "{line}");
    let line = refused(2, &["tune", "--workload", "lod"]);
    assert!(line.contains("did you mean `load`?"), "{line}");
    let line = refused(2, &["tune", "--workload", WORKLOAD, "--space-cost-max", "-1"]);
    assert!(line.contains("-1"), "{line}");
    let line = refused(1, &["tune", "--workload", "load(keys=10)"]);
    assert!(line.contains("flushes nothing") && line.contains("--memtable"), "{line}");
    let both = ["--memory", "256KiB", "--memtable", "256KiB"];
    assert!(refused(2, &[&["tune", "--workload", WORKLOAD], &both[..]].concat()).contains("--mem"));
}

#[test]
fn every_choice_says_what_memory_it_needs() {
    let found = json(&["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE]);
    let frontier = found["frontier"].as_array().unwrap();
    for one in frontier {
        let parts = ["memtables", "filters", "fences"].map(|part| figure(&one["memory"], part));
        assert_eq!(parts[0], f64::from(2 << 14), "{one}");
        assert_eq!(parts.iter().sum::<f64>(), figure(one, "memory_bytes"), "{one}");
    }
    // A choice that holds more has more to filter.
    let most = |name: &str| {
        let space = |one: &&Value| (figure(one, "space_cost_mean") * 1e9) as u64;
        figure(&frontier.iter().max_by_key(space).unwrap()["memory"], name)
    };
    assert!(frontier.iter().all(|one| figure(&one["memory"], "filters") <= most("filters")));
}

#[test]
fn drift_trades_the_expected_for_the_worst() {
    const MIXED: &str = "ycsb(a, records=10k, ops=30k, value=100B)";
    let tune = |distance: &str| {
        json(&["tune", "--workload", MIXED, "--memtable", MEMTABLE, "--drift", distance])
    };
    let found = tune("0.5");
    let drift = &found["drift"];
    let best = &found["best"];
    let nominal = &drift["nominal"];
    let robust = &drift["robust"];
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
    assert_eq!(rows.len(), 2, "{verified}");
    assert_eq!((&rows[0]["label"], &rows[1]["label"]), (&"best".into(), &"default".into()));
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
    for part in ["On the store, churn(keys=8k", "write_cost_system", "error %", "memory"] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn drift_is_printed_as_text() {
    let text = fine(&["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE, "--drift", "0.2"]);
    for part in ["nominal", "robust", "at worst within 0.2 nats", "to the power"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let line = refused(2, &["tune", "--workload", WORKLOAD, "--drift", "101"]);
    assert!(line.contains("0 to 100"), "{line}");
}

/// A policy that is asked for is tried over the values that it takes, and the answer says how it
/// fared.
#[test]
fn policies_that_are_asked_for_are_tried() {
    let tune = ["tune", "--workload", WORKLOAD, "--memtable", MEMTABLE];
    let asked = ["--policy", "leveled(l0=1)", "--policy", "exploring"];
    let found = json(&[&tune[..], &asked].concat());
    let fared = found["fared"].as_array().unwrap();
    assert_eq!(fared.len(), 2, "{fared:?}");
    for (fared, asked, least) in [(&fared[0], "leveled(l0=1)", 20), (&fared[1], "exploring", 20)] {
        assert_eq!(fared["asked"], asked);
        assert!(fared["choices"].as_u64() > Some(least), "{fared}");
        let above = score(&found, &fared["best"]) / score(&found, &found["best"]) - 1.0;
        assert!((figure(fared, "above") - above).abs() < 1e-9 && above >= 0.0, "{fared}");
        // All writes were simulated.
        assert_eq!(fared["best"]["share"], 1.0);
        assert_eq!(fared["is_within"], true);
    }
    let leveled = fared[0]["best"]["policy"].as_str().unwrap();
    assert!(leveled.starts_with("leveled(") && leveled.contains("l0=1"), "{leveled}");
    assert!(json(&tune)["fared"].is_null(), "nothing was asked for");

    let text = fine(&[&tune[..], &asked[2..]].concat());
    assert!(text.contains("exploring: ") && text.contains("than the best choice."), "{text}");
    for (policy, why) in [("leveldb", "levels of leveldb are bytes"), ("fifo", "drops data")] {
        assert!(refused(2, &[&tune[..], &["--policy", policy]].concat()).contains(why));
    }
}
