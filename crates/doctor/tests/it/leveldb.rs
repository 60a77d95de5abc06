//! Files of LevelDB 1.22, beside what LevelDB said of the store itself (`stats.txt`).

use super::{file, files};
use lsmith_doctor::{Case, Diagnosis, File, Manifest, Named, Replay, Store};
use std::collections::BTreeMap;
use std::path::Path;

const STORES: [&str; 3] = ["leveldb", "leveldb-reopened", "leveldb-heldout"];

/// What LevelDB said in the end.
#[derive(Default)]
struct Said {
    /// Level, files, and MiB that the level has, that were read and that were written, rounded.
    levels: Vec<[f64; 5]>,
    /// Entries that were written.
    written: u64,
    /// Number and bytes of each table on disk.
    tables: BTreeMap<u64, u64>,
}

fn said(store: &str) -> Said {
    let text = String::from_utf8(file(store, "stats.txt")).unwrap();
    let mut said = Said::default();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["written", count] => said.written = count.parse().unwrap(),
            [table, bytes] if table.contains('.') => {
                let number = table.split('.').next().unwrap().parse().unwrap();
                said.tables.insert(number, bytes.parse().unwrap());
            }
            [level, files, size, _, read, written] if level.parse::<u32>().is_ok() => {
                let numbers = [level, files, size, read, written];
                said.levels.push(numbers.map(|number| number.parse().unwrap()));
            }
            _ => {}
        }
    }
    assert!(said.levels.len() == 3 && said.tables.len() > 10, "{store}");
    said
}

fn only(store: &str, keep: impl Fn(&str) -> bool) -> Case {
    let mut files: Vec<Named> = files(store);
    files.retain(|(name, _)| keep(name));
    Case::read(files).unwrap()
}

/// Returns bytes as LevelDB prints them.
fn mebibytes(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}

#[test]
fn the_tree_is_what_lies_on_disk() {
    for store in STORES {
        let said = said(store);
        let case = Case::read(files(store)).unwrap();
        assert_eq!((case.store, case.families.len()), (Store::LevelDb, 1));
        let read = case.families[0].files.iter().map(|file| (file.number, file.bytes));
        assert_eq!(read.collect::<BTreeMap<_, _>>(), said.tables, "{store}");
        let levels = &Diagnosis::of(&case).families[0].levels;
        for [level, files, size, ..] in said.levels {
            let read = levels.iter().find(|now| f64::from(now.level) == level);
            let (read_files, bytes) = read.map_or((0, 0), |now| (now.files, now.bytes));
            assert_eq!(read_files as f64, files, "{store}, level {level}");
            assert!((mebibytes(bytes) - size).abs() <= 0.5, "{store}, level {level}: {bytes}");
        }
    }
}

/// LevelDB counts since the store was opened last, and counts a flush at its level.
#[test]
fn compactions_read_and_write_what_leveldb_counts() {
    for store in STORES {
        let said = said(store);
        for case in [
            only(store, |name| name != "LOG.old"),
            only(store, |name| name == "LOG"),
            only(store, |name| name.starts_with("MANIFEST-")),
        ] {
            let costs = Diagnosis::of(&case).families.remove(0);
            let [mut read, mut written] = [0, 3].map(|at| said.levels.iter().map(|l| l[at]).sum());
            let _: [f64; 2] = [read, written];
            (read, written) = (
                said.levels.iter().map(|level| level[3]).sum(),
                said.levels.iter().map(|level| level[4]).sum(),
            );
            let all = mebibytes(costs.flushed_bytes + costs.compacted_bytes);
            assert!((all - written).abs() <= 1.5, "{store}: {all} MiB, not {written}");
            let of_log = mebibytes(costs.read_bytes);
            // A LOG alone does not say how large tables of earlier openings are.
            let knows_all = !case.families[0].added.is_empty() || store != "leveldb-reopened";
            assert!(!knows_all || (of_log - read).abs() <= 1.5, "{store}: {of_log}, not {read}");
        }
    }
}
