//! The readers, on files that RocksDB wrote: 7.8 by db_bench, 9.8 by rocksdict, 11.8 by rocksdbjni.
//! `data/make.sh` makes them anew.
#![allow(clippy::disallowed_methods, reason = "tests read files")]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

mod cassandra;
mod fuzz;
mod leveldb;
mod pebble;
mod replay;

use flate2::read::GzDecoder;
use lsmith_doctor::{Case, Diagnosis, Edit, File, Log, Manifest, Named, Options, Replay, Stalled};
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;

const STORES: [&str; 7] =
    ["leveled", "universal", "deletes", "rocksdict", "heldout", "rocksdbjni", "rocksdbjni-heldout"];

/// Returns the files of a store.
fn files(store: &str) -> Vec<Named> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(store);
    let mut files: Vec<Named> = Vec::new();
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let compressed = std::fs::read(&path).unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(&compressed[..]).read_to_end(&mut bytes).unwrap();
        files.push((path.file_stem().unwrap().to_str().unwrap().to_owned(), bytes));
    }
    files
}

fn file(store: &str, start: &str) -> Vec<u8> {
    files(store).into_iter().find(|(name, _)| name.starts_with(start)).unwrap().1
}

/// Reads `AddFile: LEVEL NUMBER BYTES 'KEY' ... .. 'KEY'`, with keys as hexadecimal numbers.
fn ldb_file(text: &str) -> File {
    let mut parts = text.split('\'');
    let numbers: Vec<u64> =
        parts.next().unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
    let key = |text: &str| {
        let digits = text.as_bytes().chunks(2);
        digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    };
    let smallest = key(parts.next().unwrap());
    let largest = key(parts.nth(1).unwrap());
    File { level: numbers[0] as u32, number: numbers[1], bytes: numbers[2], smallest, largest }
}

/// Reads what `ldb manifest_dump --hex` says of every edit.
fn ldb_edits(text: &str) -> Vec<Edit> {
    let mut edits = Vec::new();
    for line in text.lines() {
        if line.starts_with("VersionEdit {") {
            edits.push(Edit::default());
        }
        let (Some(edit), Some((name, value))) = (edits.last_mut(), line.trim().split_once(": "))
        else {
            continue;
        };
        match name {
            "Comparator" => edit.comparator = Some(value.to_owned()),
            "LastSeq" => edit.last_sequence = Some(value.parse().unwrap()),
            "ColumnFamily" => edit.family = value.parse().unwrap(),
            "ColumnFamilyAdd" => edit.family_added = Some(value.to_owned()),
            "AddFile" => edit.added.push(ldb_file(value)),
            "DeleteFile" => {
                let (level, number) = value.split_once(' ').unwrap();
                edit.deleted.push((level.parse().unwrap(), number.parse().unwrap()));
            }
            _ => {}
        }
    }
    edits
}

#[test]
fn a_manifest_is_what_ldb_says() {
    for store in STORES {
        let manifest = Manifest::read(&file(store, "MANIFEST-")).unwrap();
        let said = ldb_edits(&String::from_utf8_lossy(&file(store, "manifest.txt")));
        assert!(said.len() > 50 && said.iter().any(|edit| !edit.deleted.is_empty()), "{store}");
        assert_eq!(manifest.torn_at, None);
        assert_eq!(manifest.edits.len(), said.len(), "{store}");
        for (mut read, mut said) in manifest.edits.into_iter().zip(said) {
            // ldb sorts deleted files.
            read.deleted.sort_unstable();
            // ldb says them of single keys.
            read.sequences = None;
            said.deleted.sort_unstable();
            assert_eq!(read, said, "{store}");
        }
    }
}

#[test]
fn a_log_and_a_manifest_tell_of_the_same_tables() {
    for store in STORES {
        let case = Case::read(files(store)).unwrap();
        let version = match store {
            "rocksdict" => "9.8.4",
            "rocksdbjni" | "rocksdbjni-heldout" => "11.8.1",
            _ => "7.8.3",
        };
        assert_eq!(case.version.as_deref(), Some(version));
        assert_eq!(case.remarks, [""; 0]);
        for family in &case.families {
            let added: BTreeMap<u64, u64> =
                family.added.iter().map(|file| (file.number, file.bytes)).collect();
            let jobs = family.flushes().chain(family.compactions());
            let written: BTreeMap<u64, u64> = jobs
                .flat_map(|job| &job.outputs)
                .map(|output| (output.number, output.bytes))
                .collect();
            assert!(written.len() > 20, "{store}");
            assert_eq!(written, added, "{store}: {}", family.name);
            // Each compaction reads what the LOG says that it wrote before.
            assert!(family.compactions().all(|job| job.records.0 >= job.records.1));
            assert!(family.compactions().all(|job| job.input_bytes > 0 && !job.reason.is_empty()));
        }
    }
}

#[test]
fn write_amplification_is_that_of_the_statistics() {
    let log = String::from_utf8(file("rocksdict", "LOG")).unwrap();
    let sum = log.lines().rfind(|line| line.starts_with(" Sum ")).unwrap();
    let counted: f64 = sum.split_whitespace().nth(11).unwrap().parse().unwrap();
    let diagnosis = Diagnosis::of(&Case::read(files("rocksdict")).unwrap());
    let ours = diagnosis.families[0].write_amplification.unwrap();
    assert!((ours - counted).abs() <= 0.05, "{ours}, not {counted}");
}

/// RocksDB 11 counts each column family by itself, in `rocksdb.cfstats`.
#[test]
fn column_families_write_and_drop_what_rocksdb_counts() {
    for store in ["rocksdbjni", "rocksdbjni-heldout"] {
        let stats = String::from_utf8(file(store, "stats.txt")).unwrap();
        let diagnosis = Diagnosis::of(&Case::read(files(store)).unwrap());
        assert_eq!(diagnosis.families.len(), 2);
        for family in &diagnosis.families {
            let said = |name: &str| -> f64 {
                let start = format!("{} compaction.Sum.{name} ", family.name);
                let line = stats.lines().find_map(|line| line.strip_prefix(&start));
                line.unwrap().parse().unwrap()
            };
            let ours = family.write_amplification.unwrap();
            assert!((ours - said("WriteAmp")).abs() < 0.002, "{store}, {}: {ours}", family.name);
            let jobs = family.flushes + family.compactions;
            assert_eq!(jobs as f64, said("CompCount"), "{store}, {}", family.name);
            let read = family.read_bytes as f64 / f64::from(1 << 30);
            assert!((read / said("ReadGB") - 1.0).abs() < 0.02, "{store}: {read}");
        }
    }
}

#[test]
fn column_families_are_told_apart() {
    let diagnosis = Diagnosis::of(&Case::read(files("leveled")).unwrap());
    let names: Vec<&str> = diagnosis.families.iter().map(|family| &*family.name).collect();
    assert_eq!(names, ["default", "column_family_name_000001"]);
    for family in &diagnosis.families {
        assert_eq!(
            family.spec.as_deref(),
            Some("rocksdb(l0=4, level1=2MiB, ratio=4, table=512KiB)")
        );
        let by_level: u64 = family.by_level.iter().map(|row| row.written_bytes).sum();
        let by_reason: u64 = family.by_reason.iter().map(|row| row.written_bytes).sum();
        assert_eq!([by_level, by_reason], [family.compacted_bytes; 2]);
        assert!(family.dropped.is_some_and(|share| share > 0.0));
    }
    let universal = Diagnosis::of(&Case::read(files("universal")).unwrap());
    let spec = universal.families[0].spec.as_deref();
    assert_eq!(spec, Some("universal(trigger=4, size_ratio=1, space_max=200)"));
}

/// The store was made without `incremental`. Its OPTIONS names the option all the same.
#[test]
fn incremental_of_the_universal_style_has_its_counterpart() {
    let mut changed = files("universal");
    let (_, options) = changed.iter_mut().find(|(name, _)| name.starts_with("OPTIONS-")).unwrap();
    let text = String::from_utf8(options.clone()).unwrap();
    *options = text.replace("{incremental=false;", "{incremental=true;").into_bytes();
    let case = Case::read(changed).unwrap();
    let family = &Diagnosis::of(&case).families[0];
    let spec = "universal(trigger=4, size_ratio=1, space_max=200, incremental=true)";
    assert_eq!(family.spec.as_deref(), Some(spec));
    assert!(family.policy.ends_with(", incremental"), "{}", family.policy);
    assert!(family.without_counterpart.is_empty(), "{:?}", family.without_counterpart);
    // It is played, although the rules of RocksDB in the replay do not know it.
    let replay = Replay::of(&case, &case.families[0]).unwrap();
    let nearest = replay.rows.iter().find(|row| row.is_nearest).unwrap();
    assert_eq!(nearest.policy, spec);
    let all = replay.rows.iter().find(|row| row.is_present).unwrap();
    assert!(nearest.space_peak < all.space_peak, "{nearest:?} beside {all:?}");
    assert!(replay.doubts.iter().any(|doubt| doubt.contains("windows")), "{:?}", replay.doubts);
}

#[test]
fn the_head_of_a_log_has_the_settings_that_options_has() {
    for store in STORES {
        let mut only_log = files(store);
        only_log.retain(|(name, _)| name == "LOG");
        let of_log = Diagnosis::of(&Case::read(only_log).unwrap());
        let of_all = Diagnosis::of(&Case::read(files(store)).unwrap());
        for family in &of_log.families {
            let same = of_all.families.iter().find(|other| other.name == family.name).unwrap();
            // Sizes of levels may follow from the tree, which a LOG does not have.
            assert_eq!(family.policy, same.policy);
            assert_eq!(family.by_reason, same.by_reason);
            assert_eq!(family.flushed_bytes, same.flushed_bytes);
        }
    }
}

#[test]
fn a_cut_manifest_gives_the_edits_before_the_cut() {
    let bytes = file("rocksdict", "MANIFEST-");
    let whole = Manifest::read(&bytes).unwrap();
    for end in 0..bytes.len() {
        let cut = Manifest::read(&bytes[..end]).unwrap();
        assert!(whole.edits.starts_with(&cut.edits), "cut at {end}");
        assert!(cut.edits.len() < whole.edits.len());
    }
}

#[test]
fn a_changed_bit_of_a_manifest_is_found() {
    let bytes = file("universal", "MANIFEST-");
    let whole = Manifest::read(&bytes).unwrap();
    for at in (0..bytes.len()).step_by(3) {
        let mut changed = bytes.clone();
        changed[at] ^= 1 << (at % 8);
        match Manifest::read(&changed) {
            Ok(read) => assert!(read.torn_at.is_some() && whole.edits.starts_with(&read.edits)),
            Err(error) => assert!(error.to_string().contains("expected"), "{error}"),
        }
    }
}

#[test]
fn damaged_text_is_read_or_refused() {
    let log = file("leveled", "LOG");
    for at in (0..log.len()).step_by(9973) {
        let mut changed = log.clone();
        changed[at] ^= 1 << (at % 8);
        Log::default().read(&changed);
        Log::default().read(&log[..at]);
    }
    let mut cut = Log::default();
    let event = log.windows(13).position(|window| window == b"EVENT_LOG_v1 ").unwrap();
    cut.read(&log[..event + 40]);
    assert_eq!((cut.damaged, cut.is_foreign()), (1, false));
    let options = String::from_utf8(file("leveled", "OPTIONS-")).unwrap();
    for at in 0..options.len() {
        let _ = Options::read(&options[..at]);
    }
    let error = Options::read("[Version]\nno setting\n").unwrap_err();
    assert_eq!(error.to_string(), "line 2: expected `name=value` or `[section]`");
    let error = Case::read(vec![("notes.txt".to_owned(), b"hello".to_vec())]).unwrap_err();
    assert!(error.to_string().starts_with("notes.txt: expected a LOG or a MANIFEST-*"), "{error}");
}

/// A LOG of a live store may end while a compaction is under way.
#[test]
fn a_compaction_counts_once_it_has_ended() {
    let log = String::from_utf8(file("universal", "LOG")).unwrap();
    let end = log.rfind("\"compaction_finished\"").unwrap();
    let end = log[..end].rfind('\n').unwrap();
    let costs = |text: &str| {
        let case = Case::read(vec![("LOG".to_owned(), text.as_bytes().to_vec())]).unwrap();
        Diagnosis::of(&case).families.remove(0)
    };
    let (whole, cut) = (costs(&log), costs(&log[..end]));
    assert_eq!(cut.compactions, whole.compactions - 1);
    assert!(cut.compacted_bytes < whole.compacted_bytes);
}

#[test]
fn time_that_writers_were_held_is_read() {
    let mut log = Log::default();
    log.read(b"Cumulative stall: 01:02:3.500 H:M:S, 12.5 percent\nCumulative stall: cut");
    assert_eq!(log.stalled, Some(Stalled { seconds: 3723.5, percent: 12.5 }));
}

#[test]
fn rotated_logs_count_as_one() {
    let log = file("universal", "LOG");
    let half = log.len() / 2;
    let at = half + log[half..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    let parts = vec![
        ("LOG".to_owned(), log[at..].to_vec()),
        ("LOG.old.1700000000000000".to_owned(), log[..at].to_vec()),
    ];
    let whole = Case::read(vec![("LOG".to_owned(), log)]).unwrap();
    let joined = Case::read(parts).unwrap();
    assert_eq!(Diagnosis::of(&joined), Diagnosis::of(&whole));
}
