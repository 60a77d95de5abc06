//! `lsmith watch`.

use crate::command::{fine, json, refused};
use lsmith::Store;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

#[test]
fn open_store_can_be_watched() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let store = Store::builder(path).memtable_bytes(16 << 10).policy("tiered(ratio=2)");
    let store = store.lockstep(true).open().unwrap();
    let keyspace = store.keyspace("default").unwrap();
    let put = |range: std::ops::Range<u64>| {
        range.for_each(|number| keyspace.put(number.to_be_bytes(), [7; 100]).unwrap());
    };
    put(0..1000);
    let text = fine(&["watch", path, "--once"]);
    let flushes = format!("{} flushes of memtables of 16KiB", keyspace.tree().flushes());
    for part in ["keyspace default: tiered(ratio=2); ", &flushes, "L0 ", "merges", "logs"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let picture = json(&["watch", path]);
    assert_eq!(picture["keyspaces"][0]["flushes"], keyspace.tree().flushes());
    let runs = picture["keyspaces"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), keyspace.tree().disk_run_count());
    assert!(picture["tables"]["files"].as_u64().unwrap() >= runs.len() as u64);

    // The second picture has rates.
    let mut child = Command::new(env!("CARGO_BIN_EXE_lsmith"))
        .args(["watch", path, "--interval", "0.1"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line.contains(" merges ")));
    put(1000..2000);
    assert!(lines.any(|line| line.contains(" merges/s ")));
    assert!(lines.any(|line| line.starts_with("L0 ")));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn directory_without_a_store_cannot_be_watched() {
    let dir = tempfile::tempdir().unwrap();
    let line = refused(1, &["watch", dir.path().to_str().unwrap(), "--once"]);
    assert!(line.contains("there is no store"), "{line}");
}
