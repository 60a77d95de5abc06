//! Files of Pebble 1.1 and 2.1, beside what Pebble said of the store itself (`metrics.txt`) and
//! what its tool says of the MANIFEST (`manifest.txt`).

use super::{file, files};
use lsmith_doctor::{Case, Diagnosis, Edit, File, Job, Manifest, Named, Options, Replay, Store};
use std::collections::BTreeMap;
use std::path::Path;

const STORES: [&str; 3] = ["pebble", "pebble-deep", "pebble-heldout"];

/// Pebble 2.1, whose metrics are in another form.
const NEW: &str = "pebble2";

fn only(store: &str, keep: impl Fn(&str) -> bool) -> Case {
    let mut files: Vec<Named> = files(store);
    files.retain(|(name, _)| keep(name));
    Case::read(files).unwrap()
}

/// Returns the figures of each level by name, as Pebble said them in the end.
fn said(store: &str) -> Vec<BTreeMap<String, u64>> {
    let text = String::from_utf8(file(store, "metrics.txt")).unwrap();
    let levels = text.lines().filter_map(|line| line.strip_prefix("level ")?.split_once(": "));
    let figures = |(_, figures): (&str, &str)| {
        let words: Vec<&str> = figures.split_whitespace().collect();
        words.chunks(2).map(|pair| (pair[0].to_owned(), pair[1].parse().unwrap())).collect()
    };
    let levels: Vec<_> = levels.map(figures).collect();
    assert_eq!(levels.len(), 7);
    levels
}

/// Reads `L0 000006:529184<#10-#3073>[000063#1695,SET-048335#813,SET] (TIME)`.
fn dumped_file(text: &str) -> (File, (u64, u64)) {
    let (level, rest) = text.split_once(' ').unwrap();
    let (number, rest) = rest.split_once(':').unwrap();
    let (bytes, rest) = rest.split_once("<#").unwrap();
    let (sequences, rest) = rest.split_once(">[").unwrap();
    let (first, last) = sequences.split_once("-#").unwrap();
    let (smallest, largest) = rest
        .split_once(']')
        .unwrap()
        .0
        .split_once("SET-")
        .or_else(|| rest.split_once(']').unwrap().0.split_once("DEL-"))
        .unwrap();
    let key = |text: &str| text.split('#').next().unwrap().as_bytes().to_vec();
    let file = File {
        level: level[1..].parse().unwrap(),
        number: number.parse().unwrap(),
        bytes: bytes.parse().unwrap(),
        smallest: key(smallest),
        largest: key(largest),
    };
    (file, (first.parse().unwrap(), last.parse().unwrap()))
}

/// Reads what `pebble manifest dump` says of every edit. It leaves a sequence number of 0 out.
fn dumped(store: &str) -> Vec<Edit> {
    let text = String::from_utf8(file(store, "manifest.txt")).unwrap();
    let mut edits = Vec::new();
    for line in text.lines().skip(1).take_while(|line| *line != "EOF") {
        if !line.starts_with(' ') {
            edits.push(Edit::default());
            continue;
        }
        let edit: &mut Edit = edits.last_mut().unwrap();
        let (name, value) = line.trim().split_once(':').unwrap();
        let value = value.trim();
        match name {
            "comparer" => edit.comparator = Some(value.to_owned()),
            "last-seq-num" => edit.last_sequence = Some(value.parse().unwrap()),
            "added" => {
                let (file, new) = dumped_file(value);
                let all = edit.sequences.unwrap_or(new);
                edit.sequences = Some((all.0.min(new.0), all.1.max(new.1)));
                edit.added.push(file);
            }
            "deleted" => {
                let (level, number) = value.split_once(' ').unwrap();
                edit.deleted.push((level[1..].parse().unwrap(), number.parse().unwrap()));
            }
            _ => {}
        }
    }
    edits
}

#[test]
fn a_manifest_is_what_the_tool_of_pebble_says() {
    for store in STORES {
        let manifest = Manifest::read(&file(store, "MANIFEST-")).unwrap();
        assert_eq!((manifest.store, manifest.torn_at), (Store::Pebble, None));
        let mut read = manifest.edits;
        for edit in &mut read {
            // The tool sorts them.
            edit.deleted.sort_unstable();
            edit.last_sequence = edit.last_sequence.filter(|number| *number > 0);
        }
        let said = dumped(store);
        assert!(said.len() > 100 && said.iter().any(|edit| !edit.deleted.is_empty()), "{store}");
        assert_eq!(read, said, "{store}");
    }
}

#[test]
fn levels_hold_and_compactions_write_what_pebble_counts() {
    for store in STORES {
        let said = said(store);
        for case in [
            Case::read(files(store)).unwrap(),
            only(store, |name| name != "LOG"),
            only(store, |name| name.starts_with("MANIFEST-")),
        ] {
            assert_eq!((case.store, case.families.len()), (Store::Pebble, 1));
            let compactions = || case.families[0].compactions();
            for (level, said) in (0..).zip(&said) {
                let now = case.families[0].files.iter().filter(|file| file.level == level);
                let now = now.fold((0, 0), |sum, file| (sum.0 + 1, sum.1 + file.bytes));
                assert_eq!(now, (said["files"], said["bytes"]), "{store}, level {level}");
                let into = || compactions().filter(|job| job.output_level == level);
                let written: u64 = into().map(Job::output_bytes).sum();
                let read: u64 = into().map(|job| job.input_bytes).sum();
                assert_eq!([written, read], [said["compacted"], said["read"]], "{store}, {level}");
            }
            let costs = Diagnosis::of(&case).families.remove(0);
            assert_eq!(costs.flushed_bytes, said[0]["flushed"], "{store}");
        }
    }
}

/// The log has bytes in two digits.
#[test]
fn a_log_tells_of_the_same_jobs_as_the_manifest() {
    for store in STORES {
        let log = only(store, |name| name == "LOG");
        let manifest = only(store, |name| name.starts_with("MANIFEST-"));
        let jobs = |case: &Case| -> Vec<_> {
            let jobs = case.families[0].jobs.iter().map(|job| {
                let mut tables = job.input_tables.clone();
                tables.sort_unstable();
                let outputs: Vec<u64> = job.outputs.iter().map(|output| output.number).collect();
                (outputs, job.inputs.clone(), tables, job.output_level)
            });
            jobs.collect()
        };
        assert!(jobs(&log).len() > 100);
        assert_eq!(jobs(&log), jobs(&manifest), "{store}");
        let [of_log, exact] = [&log, &manifest].map(|case| Diagnosis::of(case).families.remove(0));
        let [rough, exact] = [of_log, exact].map(|costs| costs.write_amplification.unwrap());
        assert!((rough / exact - 1.0).abs() < 0.01, "{store}: {rough}, not {exact}");
    }
    let deep = only("pebble-deep", |name| name == "LOG");
    let of_three = deep.families[0].jobs.iter().filter(|job| job.inputs.len() == 3);
    let log = String::from_utf8(file("pebble-deep", "LOG")).unwrap();
    let said = log.matches("compacted(default) multilevelL").count();
    assert!(said > 5 && of_three.count() == said);
}

/// Its table has moves, which write nothing, and its OPTIONS and log differ a little from 1.1.
#[test]
fn files_of_pebble_2_are_read_too() {
    let said = String::from_utf8(file(NEW, "metrics.txt")).unwrap();
    let count = |name: &str| -> u64 {
        let rest = said.split_once(&format!(" {name}: ")).unwrap().1;
        rest.split_whitespace().next().unwrap().parse().unwrap()
    };
    for case in [
        Case::read(files(NEW)).unwrap(),
        only(NEW, |name| name == "LOG"),
        only(NEW, |name| name.starts_with("MANIFEST-")),
    ] {
        assert_eq!(case.store, Store::Pebble);
        let costs = Diagnosis::of(&case).families.remove(0);
        assert!(said.contains(&format!("Flushes: {}\n", costs.flushes)), "{}", costs.flushes);
        assert_eq!(costs.compactions, count("default"));
        assert!(case.log.moves == count("move") || case.log.jobs.is_empty());
        let of_three = case.families[0].jobs.iter().filter(|job| job.inputs.len() == 3);
        assert_eq!(of_three.count() as u64, count("multi-level"));
    }
    let case = Case::read(files(NEW)).unwrap();
    let files = &case.families[0].files;
    let total = said.lines().find(|line| line.starts_with("total |")).unwrap();
    assert_eq!(total.split_whitespace().nth(2).unwrap(), files.len().to_string());
}

#[test]
fn entries_of_flushes_follow_from_sequence_numbers() {
    for (store, written) in STORES.into_iter().zip([250_000.0, 120_000.0, 160_000.0]) {
        let costs = Diagnosis::of(&Case::read(files(store)).unwrap()).families.remove(0);
        let flushed = costs.flushed_entries as f64;
        assert!((flushed / written - 1.0).abs() < 0.01, "{store}: {flushed}");
    }
}

/// Nobody had looked at `pebble-heldout` when the replay was written.
#[test]
fn replays_are_off_by_what_the_page_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("docs/doctor.md")).unwrap();
    let mut missing = Vec::new();
    for store in STORES.into_iter().chain([NEW]) {
        let case = Case::read(files(store)).unwrap();
        let replay = Replay::of(&case, &case.families[0]).unwrap();
        assert!(replay.error.abs() < 0.1, "{store}: {}", replay.error);
        let now = &replay.rows[0];
        assert!(now.store == "Pebble" && now.is_present && now.write == replay.replayed);
        let (counted, replayed, error) = (replay.counted, replay.replayed, 100.0 * replay.error);
        let line =
            format!("| `{store}` | the only tree | {counted:.2} | {replayed:.2} | {error:+.1} |");
        missing.extend(Some(line).filter(|line| !page.contains(line)));
    }
    assert!(missing.is_empty(), "the page lacks {missing:#?}");
}

#[test]
fn options_of_pebble_have_defaults_for_what_they_leave_out() {
    let options = Options::read("[Version]\n  pebble_version=0.1\n[Options]\n  cache_size=8\n");
    assert!(options.unwrap().is_pebble);
    let mut all = files("pebble");
    for (name, bytes) in &mut all {
        if name.starts_with("OPTIONS-") {
            *bytes = b"[Version]\n  pebble_version=0.1\n[Options]\n  cache_size=8\n".to_vec();
        }
    }
    let case = Case::read(all).unwrap();
    let number = |name: &str| case.families[0].number(name).unwrap();
    assert_eq!(number("level0_file_num_compaction_trigger"), 2.0);
    assert_eq!(number("max_bytes_for_level_base"), f64::from(64 << 20));
    assert_eq!(number("max_bytes_for_level_multiplier"), 10.0);
    // Level 0 has 2 MiB, and each level twice as much as the one above.
    assert_eq!(number("target_file_size_base"), f64::from(4 << 20));
    assert_eq!(number("target_file_size.6"), f64::from(128 << 20));
}

#[test]
fn the_newest_marker_names_the_manifest() {
    let mut all = files("pebble");
    let whole = Case::read(all.clone()).unwrap().families[0].jobs.len();
    let (name, bytes) = all.iter().find(|(name, _)| name.starts_with("MANIFEST-")).unwrap();
    let first = bytes[..bytes.len() / 2].to_vec();
    assert_eq!(name, "MANIFEST-000001");
    all.push(("MANIFEST-000900".to_owned(), first));
    all.retain(|(name, _)| name != "LOG");
    // CURRENT names the first MANIFEST too.
    assert_eq!(Case::read(all.clone()).unwrap().families[0].jobs.len(), whole);
    all.push(("marker.manifest.000002.MANIFEST-000900".to_owned(), Vec::new()));
    let half = Case::read(all).unwrap().families[0].jobs.len();
    assert!(half > 20 && half < whole, "{half}");
}

#[test]
fn damaged_lines_never_panic_and_cut_ones_are_counted() {
    let log = file("pebble-deep", "LOG");
    for at in (0..log.len()).step_by(997) {
        let mut changed = log.clone();
        changed[at] ^= 1 << (at % 8);
        let case = Case::read(vec![("LOG".to_owned(), changed)]).unwrap();
        assert!(Diagnosis::of(&case).families[0].compactions > 300);
        let _ = Case::read(vec![("LOG".to_owned(), log[..at].to_vec())]);
    }
    let of = |lines: &[&str]| {
        let text: String =
            lines.iter().map(|line| format!("I261127 [n1] [JOB 7] {line}\n")).collect();
        Case::read(vec![("pebble.log".to_owned(), text.into_bytes())])
    };
    let whole = "compacted(default) multilevelL4 [000007 000008] (1.5MB) Score=1.20 + L5 [000003] \
                 (512KB) Score=0.90 + L6 [] (0B) Score=0.00 -> L6 [000011] (2.0MB), in 0.0s";
    let odd = [
        "compacted(default) L4 [000007] (1.5MB) Score=1.20 + L5 [0000",
        "compacted(default) L4 [000007] (1.5MB) -> L64 [000011] (2.0MB), in 0.0s",
        "flushed 1 memtable (1.0MB) to L0 [000009] (99999999TB), in 0.0s",
        "flushed 1 memtable (1.0MB) to L0 [9x] (8KB), in 0.0s",
    ];
    let case = of(&[&[whole][..], &odd[..]].concat()).unwrap();
    assert_eq!((case.store, case.log.damaged), (Store::Pebble, odd.len() as u64));
    let job = &case.families[0].jobs[0];
    assert_eq!(job.inputs, BTreeMap::from([(4, 2), (5, 1)]));
    assert_eq!((job.input_bytes, job.output_level), ((2 << 20), 6));
    assert_eq!((&job.input_tables[..], job.output_bytes()), (&[7, 8, 3][..], 2 << 20));
    let ingested = of(&["flushed 2 ingested flushables L0:000004 (1KB)"]).unwrap();
    assert!(ingested.families.is_empty() && ingested.store == Store::Pebble);
}
