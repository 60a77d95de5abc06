//! `lsmith model`.

use crate::command::{fine, json, refused};

fn cost(args: &[&str]) -> f64 {
    let found = json(&[&["model"], args].concat());
    found["write_cost_user"].as_f64().unwrap()
}

#[test]
fn a_formula_says_what_a_policy_costs() {
    let found = json(&["model", "--policy", "leveldb", "--keys", "100M", "--zipf", "0.99"]);
    assert_eq!(found["policy"], "leveldb");
    let total = found["write_cost_user"].as_f64().unwrap();
    assert!((total / 12.68 - 1.0).abs() < 0.005, "{total}");
    let stages = found["stages"].as_array().unwrap();
    assert_eq!(stages[0]["name"], "log");
    let sum: f64 = stages.iter().map(|stage| stage["cost"].as_f64().unwrap()).sum();
    assert!((sum - total).abs() < 1e-9, "{sum} {total}");
    let sizes: Vec<f64> = found["level_sizes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|size| size.as_f64().unwrap())
        .collect();
    assert_eq!(sizes[1], 10_485_760.0);
    assert_eq!(sizes[5], 100e9);
    assert!(found["seconds"].as_f64().unwrap() >= 0.0);
    for figure in ["write_cost_system", "read_cost_mean", "range_read", "space_cost_mean"] {
        assert!(found[figure].as_f64().unwrap() >= 1.0, "{figure}: {found}");
    }
    assert!(found["point_read"]["hit"].as_f64().unwrap() >= 1.0);
    assert!(found["point_read"]["miss"].as_f64().unwrap() < 0.1);
}

#[test]
fn every_input_counts() {
    let base = ["--policy", "leveldb", "--keys", "10M"];
    let with = |more: &[&str]| cost(&[&base, more].concat());
    let plain = with(&[]);
    assert!(with(&["--zipf", "0.99"]) < plain);
    assert!(with(&["--memtable", "64MiB"]) < plain);
    assert!(with(&["--item", "100B"]) < plain, "fewer bytes in all");
    assert!(cost(&["--policy", "leveldb", "--keys", "1M"]) < plain);
    assert!(cost(&["--policy", "leveldb(sizes=optimal)", "--keys", "10M"]) < plain);
    let growing = ["--policy", "none", "--keys", "1M", "--requests"];
    let runs = |requests: &str| {
        let found = json(&[&["model"], &growing[..], &[requests]].concat());
        found["read_cost_mean"].as_f64().unwrap()
    };
    assert!(runs("10M") > 5.0 * runs("1M"));
    let miss = |bits: &str| {
        let found = json(&["model", "--policy", "tiered", "--filter-bits", bits]);
        found["point_read"]["miss"].as_f64().unwrap() / found["read_cost_mean"].as_f64().unwrap()
    };
    assert_eq!(miss("0"), 1.0);
    assert!((miss("10") - 0.0082).abs() < 1e-4, "{}", miss("10"));
}

#[test]
fn every_listed_formula_can_be_asked() {
    let list = json(&["model"]);
    let formulas = list["formulas"].as_array().unwrap();
    assert!(formulas.len() > 20);
    for formula in formulas {
        let name = formula["name"].as_str().unwrap();
        assert!(cost(&["--policy", name, "--keys", "1M"]) >= 1.0, "{name}");
        assert!(!formula["source"].as_str().unwrap().is_empty());
    }
    let text = fine(&["model"]);
    assert!(text.contains("cola(ratio=3)") && text.contains("FAST 2016"), "{text}");
}

#[test]
fn an_answer_says_what_it_is() {
    let found = json(&["model", "--policy", "leveled", "--keys", "1M"]);
    assert!(found["bound"].is_null() && found["ignores"].as_array().unwrap().is_empty(), "{found}");
    let found = json(&["model", "--policy", "choose_best", "--keys", "1M", "--zipf", "0.99"]);
    assert_eq!(found["bound"], "upper");
    assert_eq!(found["ignores"][0], "popularity");
    let text = fine(&["model", "--policy", "minlatency", "--keys", "1M"]);
    assert!(text.contains("at most") && text.contains("not known to the formula"), "{text}");
    let text = fine(&["model", "--policy", "leveled(pick=oldest)", "--keys", "1M"]);
    assert!(text.contains("at least"), "{text}");
    let list = json(&["model"]);
    let formulas = list["formulas"].as_array().unwrap();
    let bound = |name: &str| &formulas.iter().find(|f| f["name"] == name).unwrap()["bound"];
    assert_eq!((bound("rr"), bound("optimum")), (&"upper".into(), &"lower".into()));
}

#[test]
fn sequential_keys_are_moved() {
    let moved = ["--policy", "leveled", "--keys", "1M", "--order", "sequential"];
    assert_eq!(cost(&moved), 2.0, "the log and the flush");
    let found = json(&["model", "--policy", "leveldb", "--keys", "1M", "--order", "sequential"]);
    assert_eq!(found["ignores"][0], "key order");
}

/// A memtable was taken to hold a part of such an item, and each flush was carried out: forever.
#[test]
fn items_larger_than_a_memtable() {
    let large = |policy: &str, keys: &str| {
        json(&["model", "--policy", policy, "--item", "1GB", "--keys", keys])
    };
    assert_eq!(large("none", "999")["read_cost_mean"], 500.0);
    assert!(large("universal", "10k")["write_cost_user"].as_f64().unwrap() > 2.0);
    let line = refused(2, &["model", "--policy", "universal", "--item", "1GB"]);
    assert!(line.contains("expected at most 4000000"), "{line}");
}

#[test]
fn text_is_aligned() {
    let text = fine(&["model", "--policy", "cola(ratio=3)", "--keys", "10M"]);
    assert!(text.contains("write_cost_user") && text.contains("8.75"), "{text}");
    assert!(text.contains("level 0 -> 1"), "{text}");
    // Numbers of a column end at the same place.
    let stages: Vec<&str> = text.lines().filter(|line| line.starts_with("level ")).collect();
    let ends: Vec<usize> = stages.iter().map(|line| line.trim_end().len()).collect();
    assert!(stages.len() > 5 && ends.windows(2).all(|pair| pair[0] == pair[1]), "{text}");
}

#[test]
fn error_suggests_the_nearest_valid_name() {
    let bad = |args: &[&str], message: &str| {
        let line = refused(2, &[&["model"], args].concat());
        assert!(line.contains(message), "{args:?}: {line}");
    };
    bad(&["--policy", "levledb"], "unknown formula `levledb`; did you mean `leveldb`?");
    bad(&["--policy", "cola(rato=3)"], "did you mean `ratio`?");
    bad(&["--policy", "cola(ratio=1)"], "ratio = 1 is out of range");
    bad(&["--policy", "leveldb(ratio=1)"], "expected more than 1");
    bad(&["--policy", "leveldb(sizes=5MiB:x)"], "`x` is not a size");
    bad(&["--policy", "leveldb(sizes=5MiB:1MiB)"], "do not fall");
    bad(&["--policy", "bigtable"], "unknown formula `bigtable`");
    bad(&["--policy", "leveldb", "--zipf", "2"], "skew = 2 is out of range: expected 0 to 1.6");
    bad(&["--policy", "leveldb", "--zipf", "x"], "--zipf");
    bad(&["--policy", "leveldb", "--keys", "0"], "at least 1");
    bad(&["--policy", "leveldb", "--order", "sequential", "--zipf", "0.5"], "expected skew 0");
    bad(&["--policy", "leveldb", "--filter-bits", "-1"], "-1");
    bad(&["--polciy", "leveldb"], "did you mean `--policy`?");
}

/// The primitives of Lim et al. Expected: by their definitions, for a million equally likely keys.
#[test]
fn keys_and_requests_are_counted_as_expected() {
    let found = json(&["model", "--keys", "1M", "--unique", "1,1M,100M", "--merge", "500k,500k"]);
    let unique = |index: usize| found["unique"][index]["keys"].as_f64().unwrap();
    assert_eq!(unique(0), 1.0);
    // 1 - (1 - 1/n)^n is 1 - 1/e.
    assert!((unique(1) / 632_120.7 - 1.0).abs() < 1e-6, "{found}");
    assert!((unique(2) - 1e6).abs() < 1e-6, "{found}");
    // Two independent halves have three quarters.
    assert!((found["merge"]["keys"].as_f64().unwrap() - 750_000.0).abs() < 1.0, "{found}");
    let requests = found["merge"]["inputs"][0]["requests"].as_f64().unwrap();
    assert!((requests / (1e6 * 2f64.ln()) - 1.0).abs() < 1e-6, "{found}");
    // A sweep over a small level takes twice the requests that fill it.
    let found = json(&["model", "--keys", "100M", "--interval", "1k,100M"]);
    let sweep = found["interval"][0]["requests"].as_f64().unwrap();
    assert!((sweep / 2000.0 - 1.0).abs() < 1e-3, "{found}");
    assert!(found["interval"][1]["requests"].is_null(), "{found}");
    assert!(found["merge"].is_null());
    let text = fine(&["model", "--keys", "1M", "--unique", "1M", "--interval", "1M"]);
    assert!(text.contains("632121") && text.contains("never"), "{text}");
    let line = refused(2, &["model", "--keys", "1k", "--merge", "2k"]);
    assert!(line.contains("2000 keys: expected at most 1000"), "{line}");
    assert!(refused(2, &["model", "--policy", "leveldb", "--unique", "1"]).contains("--unique"));
}
