//! Traces in the formats of others, from the file to the answer.

use std::fmt::Write as _;
use std::path::Path;

use crate::command::{fine, json, store_dir};

/// Writes a trace of some thousand writes and some reads, in the format `format`.
fn trace(format: &str, path: &Path) {
    let mut text = String::new();
    let mut bytes = Vec::new();
    for i in 0..3000_u32 {
        let key = i * 7919 % 1000;
        match format {
            "twitter" => {
                writeln!(text, "{i},k{key:05},6,100,1,{},0", ["set", "get"][i as usize % 2])
            }
            "msr" => writeln!(text, "1,hm,0,{},{key},100,1", ["Write", "Read"][i as usize % 2]),
            "rocksdb_text" => writeln!(text, "{key:08X} {} 0 100 {i}", (i + 1) % 2),
            "ycsb" if i % 2 == 1 => writeln!(text, "READ usertable user{key} [ <all fields>]"),
            "ycsb" => writeln!(text, "UPDATE usertable user{key} [ field0={} ]", "x".repeat(100)),
            "oracle_general" => {
                bytes.extend(i.to_le_bytes());
                bytes.extend(u64::from(i).to_le_bytes());
                bytes.extend(100_u32.to_le_bytes());
                bytes.extend((-1_i64).to_le_bytes());
                Ok(())
            }
            _ => unreachable!("no such format here"),
        }
        .unwrap();
    }
    bytes.extend(text.into_bytes());
    std::fs::write(path, bytes).unwrap();
}

#[test]
fn every_interpreter_plays_traces_of_others() {
    for format in ["twitter", "msr", "rocksdb_text", "ycsb", "oracle_general"] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("t");
        trace(format, &file);
        let workload = format!("trace({}, format={format})", file.display());
        let common = ["--workload", &workload, "--memtable", "16KiB"];
        let policy = ["--policy", "tiered(ratio=3)"];
        let keyed = ["simulate", "--content", "keyed", "--flushes", "8"];
        let simulated = json(&[&keyed[..], &common, &policy].concat());
        assert_eq!(simulated["flushes"], 8, "{format}");
        let (_dir, store) = store_dir();
        let ran = json(&[&["run", "--dir", &store][..], &common, &policy].concat());
        assert!(ran["flushes"].as_u64().unwrap() >= 8, "{format}: {ran}");
        let compare = ["compare", "--policies", "tiered(ratio=3); leveled(ratio=4)"];
        let compared = fine(&[&compare[..], &common].concat());
        let row = compared.lines().find(|line| line.starts_with("tiered(ratio=3)")).unwrap();
        assert!(row.contains("+0.0"), "the keyed simulation is exact: {row}");
    }
}
