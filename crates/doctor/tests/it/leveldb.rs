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
            let sum = |at: usize| said.levels.iter().map(|level| level[at]).sum::<f64>();
            let (read, written) = (sum(3), sum(4));
            let all = mebibytes(costs.flushed_bytes + costs.compacted_bytes);
            assert!((all - written).abs() <= 1.5, "{store}: {all} MiB, not {written}");
            let of_log = mebibytes(costs.read_bytes);
            // A LOG alone does not say how large tables of earlier openings are.
            let knows_all = !case.families[0].added.is_empty() || store != "leveldb-reopened";
            assert!(!knows_all || (of_log - read).abs() <= 1.5, "{store}: {of_log}, not {read}");
        }
    }
}

/// The LOG names tables that were deleted behind a compaction; the MANIFEST names its inputs.
#[test]
fn the_log_and_the_manifest_tell_the_same() {
    for store in ["leveldb", "leveldb-heldout"] {
        let log = only(store, |name| name == "LOG");
        let manifest = only(store, |name| name.starts_with("MANIFEST-"));
        let jobs = |case: &Case| {
            let told = case.families[0].jobs.iter().map(|job| {
                let mut tables = job.input_tables.clone();
                tables.sort_unstable();
                let outputs: Vec<(u64, u64)> =
                    job.outputs.iter().map(|output| (output.number, output.bytes)).collect();
                (outputs, (job.inputs.clone(), tables, job.input_bytes, job.output_level))
            });
            // A flush within a compaction ends first. The LOG has no level of flushes.
            let mut told: BTreeMap<_, _> = told.collect();
            for told in told.values_mut().filter(|told| told.0.is_empty()) {
                told.3 = 0;
            }
            told
        };
        assert!(jobs(&log).len() > 100);
        assert_eq!(jobs(&log), jobs(&manifest), "{store}");
    }
}

#[test]
fn entries_of_flushes_follow_from_sequence_numbers() {
    // Half of the second one is before its MANIFEST, where entries follow from bytes.
    for (store, most) in STORES.into_iter().zip([1.0, 1.04, 1.0]) {
        let written = said(store).written as f64;
        let case = Case::read(files(store)).unwrap();
        let costs = Diagnosis::of(&case).families.remove(0);
        let flushed = costs.flushed_entries as f64;
        // What lies in memory in the end is not flushed.
        assert!(flushed <= written * most && flushed >= written * 0.97, "{store}: {flushed}");
        assert!(costs.dropped.is_some_and(|dropped| dropped > 0.03 && dropped < 0.3), "{store}");
    }
}

/// The rotated LOG has the first opening, and one compaction was by hand at two levels.
#[test]
fn openings_and_compactions_by_hand_are_told_apart() {
    let case = Case::read(files("leveldb-reopened")).unwrap();
    let diagnosis = Diagnosis::of(&case);
    assert_eq!(diagnosis.openings, 2);
    let costs = &diagnosis.families[0];
    let by_hand = costs.by_reason.iter().find(|row| row.what == "manual").unwrap();
    assert_eq!(by_hand.compactions, 3);
    let late = Diagnosis::of(&only("leveldb-reopened", |name| name != "LOG.old"));
    assert!(late.families[0].flushed_bytes < costs.flushed_bytes && late.openings == 1);
}

#[test]
fn replays_are_off_by_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("docs/doctor.md")).unwrap();
    let mut missing = Vec::new();
    for store in STORES {
        let case = Case::read(files(store)).unwrap();
        let replay = Replay::of(&case, &case.families[0]).unwrap();
        assert!(replay.error.abs() < 0.1, "{store}: {}", replay.error);
        let now = &replay.rows[0];
        assert!(now.store == "LevelDB" && now.is_present && now.write == replay.replayed);
        let (counted, replayed, error) = (replay.counted, replay.replayed, 100.0 * replay.error);
        let line =
            format!("| `{store}` | the only tree | {counted:.2} | {replayed:.2} | {error:+.1} |");
        missing.extend(Some(line).filter(|line| !page.contains(line)));
        let to_rocksdb = replay.moves.iter().filter(|way| way.store == "RocksDB");
        for way in to_rocksdb {
            assert!(way.options.iter().any(|option| option.starts_with("compaction_style=")));
            let tree: u64 = case.families[0].files.iter().map(|file| file.bytes).sum();
            assert_eq!(way.merge_bytes, Some(tree));
        }
    }
    let log = only("leveldb", |name| name == "LOG");
    let replay = Replay::of(&log, &log.families[0]).unwrap();
    let line = format!("then the first one is off by {:+.0} %", 100.0 * replay.error);
    missing.extend(Some(line).filter(|line| !page.contains(line)));
    assert!(missing.is_empty(), "the page lacks {missing:#?}");
}

#[test]
fn damaged_lines_never_panic_and_cut_ones_are_counted() {
    let log = file("leveldb", "LOG");
    for at in (0..log.len()).step_by(997) {
        let mut changed = log.clone();
        changed[at] ^= 1 << (at % 8);
        let case = Case::read(vec![("LOG".to_owned(), changed)]).unwrap();
        assert!(Diagnosis::of(&case).families[0].compactions > 50);
        let _ = Case::read(vec![("LOG".to_owned(), log[..at].to_vec())]);
    }
    let of = |lines: &[&str]| {
        let time = "2026/11/27-20:22:52.199478 7f3a ";
        let text: String = lines.iter().map(|line| format!("{time}{line}\n")).collect();
        Case::read(vec![("LOG".to_owned(), text.into_bytes())]).unwrap()
    };
    let whole = ["Compacting 4@0 + 1@1 files", "Generated table #9: 5 keys, 70 bytes"];
    let odd = [
        "Generated table #9@0: 5 ke",
        "Compacting 4@ files",
        "Compacting 0@0 + 0@1 files",
        "Compacting 1@18446744073709551615 files",
        "Level-0 table #5: 99999999999999999999 bytes OK",
        "Level-0 table #5: 18446744073709551615 bytes OK",
    ];
    let case = of(&[&whole[..], &odd[..]].concat());
    assert_eq!(case.log.damaged, odd.len() as u64);
    assert!(case.remarks.iter().any(|remark| remark.starts_with("6 events of the LOG are cut")));
    // Older versions name no level, and a compaction under way does not count.
    assert_eq!(case.families[0].jobs[0].outputs[0].entries, 5);
    assert_eq!(Diagnosis::of(&case).families[0].compactions, 0);
    let failed = of(&["Level-0 table #5: 70 bytes IO error: no space", "Delete type=0 #3"]);
    assert!(failed.families.is_empty() && failed.log.openings == 1);
}

#[test]
fn a_manifest_says_whose_it_is() {
    let manifest = Manifest::read(&file("leveldb", "MANIFEST-")).unwrap();
    assert!(manifest.store == Store::LevelDb && manifest.torn_at.is_none());
    let first: &File = manifest.edits.iter().flat_map(|edit| &edit.added).next().unwrap();
    assert_eq!(first.level, 2, "the first flush overlaps nothing, and goes deep");
    for store in super::STORES {
        assert_eq!(Manifest::read(&file(store, "MANIFEST-")).unwrap().store, Store::RocksDb);
    }
}
