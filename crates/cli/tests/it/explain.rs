//! `lsmith explain` and `lsmith db why`: causes that sum, and a page whose samples are true.

use crate::command::{fine, json, refused};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

const WORKLOAD: &str = "churn(keys=2k, ops=15k, deletes=0.2, value=100B)";

fn number(value: &Value, field: &str) -> i64 {
    value[field].as_i64().unwrap_or_else(|| panic!("no whole number {field} in {value}"))
}

/// The causes of each policy sum to what `simulate` says that it writes.
#[test]
fn causes_sum_to_the_bytes_of_a_simulation() {
    let policies = ["leveled(ratio=3)", "choose_best(ratio=3, rate=0.2)"];
    let [a, b] = policies;
    let explained = json(&["explain", "--workload", WORKLOAD, "--memtable", "32KiB", a, b]);
    let causes = explained["causes"].as_array().unwrap();
    let names: Vec<_> = causes.iter().map(|cause| cause["cause"].as_str().unwrap()).collect();
    let expected =
        ["flushed", "carried_down", "overlap", "compacted", "dropped", "moved", "reused"];
    assert_eq!(names, expected);
    for (policy, side, bytes) in [(a, "a", "a_bytes"), (b, "b", "b_bytes")] {
        let args = ["simulate", "--policy", policy, "--content", "keyed", "--flushes", "1000000"];
        let args = [&args[..], &["--workload", WORKLOAD, "--memtable", "32KiB", "--json"]].concat();
        let simulated: Value =
            serde_json::from_str(&crate::command::lsmith(&args).out).expect("JSON");
        let parts = &simulated["bytes"];
        let written = number(parts, "flush_written") + number(parts, "merge_written");
        let sum: i64 = causes.iter().map(|cause| number(cause, bytes)).sum();
        assert_eq!(sum, written, "{policy}");
        assert_eq!(number(&explained[side], "bytes_written"), written, "{policy}");
        assert_eq!(explained[side]["write_cost_system"], simulated["write_cost_system"]);
    }
    assert!(causes.iter().any(|cause| number(cause, "b_bytes") < 0), "{causes:?}");
}

#[test]
fn the_answer_begins_with_words() {
    let args = ["explain", "--workload", "load(keys=20k, value=100B)", "--memtable", "64KiB"];
    let text = fine(&[&args[..], &["leveled(ratio=10)", "tiered(ratio=4)"]].concat());
    let mut lines = text.lines();
    let headline = lines.next().unwrap();
    let begin = "leveled(ratio=10, l0=2, pick=min_overlap) writes ";
    assert!(headline.starts_with(begin), "{text}");
    assert!(headline.contains(" times as much as tiered(ratio=4): "), "{text}");
    let files = "In files, with the log, filters, nodes and the manifest, leveled writes ";
    assert!(lines.next().unwrap().starts_with(files), "{text}");
    assert!(lines.next().unwrap().contains(" % of the difference is rewriting level "), "{text}");
    for part in ["flushed from memory", "merges that wrote up to", "level N has N runs of N"] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn bad_policies_and_workloads_are_refused() {
    let line = refused(2, &["explain", "--workload", WORKLOAD, "levelled", "tiered"]);
    assert!(line.contains("`leveled`"), "{line}");
    refused(2, &["explain", "--workload", "lode(keys=1k)", "leveled", "tiered"]);
    refused(2, &["explain", "--workload", WORKLOAD, "leveled"]);
    refused(2, &["explain", "leveled", "tiered"]);
}

/// A store that has run has the same counters as a simulation of the same workload.
#[test]
fn a_store_says_why_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("store").to_str().unwrap().to_owned();
    let policy = "leveled(ratio=3)";
    let run = ["run", "--policy", policy, "--workload", WORKLOAD, "--memtable", "32KiB", "--dir"];
    json(&[&run[..], &[&db]].concat());
    let why = json(&["db", &db, "why"]);
    let explained =
        json(&["explain", "--workload", WORKLOAD, "--memtable", "32KiB", policy, "none"]);
    let causes = &explained["a"]["causes"];
    assert_eq!(number(&why, "bytes_written"), number(&explained["a"], "bytes_written"));
    assert_eq!(number(&why, "flush_bytes"), number(causes, "flushed"));
    assert_eq!(why["is_split"], true);
    let levels = why["levels"].as_array().unwrap();
    let sum = |field| levels.iter().map(|level| number(level, field)).sum::<i64>();
    assert_eq!(sum("from_memory_bytes"), number(causes, "flushed"));
    assert_eq!(sum("rewritten_bytes"), number(causes, "overlap") + number(causes, "compacted"));
    assert_eq!(
        sum("from_above_bytes") + sum("moved_bytes"),
        number(causes, "carried_down"),
        "{why} {causes}"
    );
    assert_eq!(sum("dropped_bytes"), -number(causes, "dropped"));
    assert_eq!(sum("moved_bytes"), -number(causes, "moved"));
    let text = fine(&["db", &db, "why"]);
    assert!(text.contains(" bytes of files for each.\nThe policy is leveled(ratio=3, "), "{text}");
    let stats = json(&["db", &db, "stats"]);
    for figure in ["table_bytes", "logical_bytes"] {
        assert_eq!(why[figure], stats[figure], "{stats}");
    }
}

/// Stores of this format from older programs have the counters too.
#[test]
fn an_older_store_says_why_it_wrote() {
    let dir = tempfile::tempdir().unwrap();
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/tests/format/v3");
    let list = std::fs::read_to_string(from.join("closed.txt")).unwrap();
    for line in list.lines() {
        // Zeros at the end of a file are not kept.
        let ["file", file, bytes] = line.split(' ').collect::<Vec<_>>()[..] else { continue };
        let mut contents = std::fs::read(from.join("closed").join(file)).unwrap();
        contents.resize(bytes.parse().unwrap(), 0);
        std::fs::write(dir.path().join(file), contents).unwrap();
    }
    let db = dir.path().to_str().unwrap();
    let keyspaces = json(&["db", db, "keyspaces"]);
    let mut written = 0;
    for keyspace in keyspaces["keyspaces"].as_array().unwrap() {
        let why = json(&["db", db, "why", "--keyspace", keyspace["name"].as_str().unwrap()]);
        written += number(&why, "bytes_written");
    }
    assert!(written > 0, "{keyspaces}");
}

/// Runs every command of docs/explain.md, in order and in one directory. What the page shows of its
/// output is what it prints. With the environment variable `BLESS`, the page is rewritten.
#[test]
fn samples_of_the_page_are_what_commands_print() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/explain.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let mut blocks: Vec<String> = page.split("```").map(str::to_owned).collect();
    let samples = blocks.iter_mut().filter(|block| block.starts_with("text\n$ lsmith "));
    let mut count = 0;
    for block in samples {
        let (command, shown) = block["text\n$ ".len()..].split_once('\n').unwrap();
        let printed = printed(command, dir.path());
        if !shown.is_empty() {
            *block = format!("text\n$ {command}\n{printed}");
            count += 1;
        }
    }
    assert!(count >= 3, "{count} samples");
    let found = blocks.join("```");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, found).unwrap();
    } else {
        assert!(page == found, "the page is no longer true; commands print\n{found}");
    }
}

/// Returns what a shell prints for `command` in `dir`.
fn printed(command: &str, dir: &Path) -> String {
    let binaries = Path::new(env!("CARGO_BIN_EXE_lsmith")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = std::iter::once(binaries.to_owned()).chain(std::env::split_paths(&path));
    let done = Command::new("sh")
        .args(["-c", command])
        .current_dir(dir)
        .env("PATH", std::env::join_paths(paths).unwrap())
        .output()
        .unwrap();
    assert!(done.status.success() && done.stderr.is_empty(), "{command}: {done:?}");
    String::from_utf8(done.stdout).unwrap()
}
