//! Replays, held against what RocksDB counted itself. The page docs/doctor.md has the errors.

use super::{STORES, file, files};
use lsmith_doctor::{Case, Replay};
use lsmith_policy::Elsewhere;
use std::path::Path;

/// Returns the replays of a store, with the names of the column families.
fn replays(store: &str) -> Vec<(String, Replay)> {
    let case = Case::read(files(store)).unwrap();
    let replay =
        |family: &lsmith_doctor::Family| (family.name.clone(), Replay::of(&case, family).unwrap());
    case.families.iter().map(replay).collect()
}

/// Nobody had looked at the stores with `heldout` in their name when the replay was written.
#[test]
fn replays_write_what_rocksdb_counted_within_a_tenth() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap();
    let page = std::fs::read_to_string(root.join("docs/doctor.md")).unwrap();
    for store in STORES {
        for (family, replay) in replays(store) {
            let Replay { counted, replayed, error, .. } = replay;
            assert!(error.abs() < 0.1, "{store}, {family}: {replayed}, not {counted}");
            assert!((replayed / counted - 1.0 - error).abs() < 1e-9);
            let error = 100.0 * error;
            let line =
                format!("| `{store}` | `{family}` | {counted:.2} | {replayed:.2} | {error:+.1} |");
            assert!(page.contains(&line), "the page lacks {line}");
        }
    }
}

/// `data/make.sh` says how many keys each store has.
#[test]
fn number_of_keys_follows_from_compactions() {
    let keys: [&[f64]; 7] = [
        &[30_000.0, 30_000.0],
        &[40_000.0],
        &[30_000.0],
        &[30_000.0],
        &[20_000.0, 20_000.0],
        &[30_000.0, 40_000.0],
        &[25_000.0, 60_000.0],
    ];
    for (store, keys) in STORES.into_iter().zip(keys) {
        let replays = replays(store);
        assert_eq!(replays.len(), keys.len());
        for ((family, replay), keys) in replays.iter().zip(keys) {
            let found = replay.keys as f64;
            // Keys whose delete has reached the bottom are gone, and do not count.
            assert!((found / keys - 1.0).abs() < 0.15, "{store}, {family}: {found}, not {keys}");
        }
    }
}

#[test]
fn rows_begin_with_the_present_and_are_sorted_by_what_they_write() {
    for (store, nearest) in [
        ("leveled", "rocksdb(l0=4, level1=2MiB, ratio=4, table=512KiB)"),
        ("universal", "universal(trigger=4, size_ratio=1, space_max=200)"),
    ] {
        for (_, replay) in replays(store) {
            let (now, others) = replay.rows.split_first().unwrap();
            assert!(now.is_present && now.store == "RocksDB" && now.write == replay.replayed);
            assert!(others.iter().all(|row| !row.is_present));
            assert!(others.is_sorted_by_key(|row| row.write) && others.len() > 8);
            let marked: Vec<&str> =
                others.iter().filter(|row| row.is_nearest).map(|row| &*row.policy).collect();
            assert_eq!(marked, [nearest]);
            for row in &replay.rows {
                assert!(row.runs_mean <= row.runs_max as f64 && row.runs_mean >= 1.0, "{row:?}");
                assert!(row.space_now >= 1.0 && row.space_peak >= row.space_now, "{row:?}");
                assert!(row.is_exact && row.least >= 1.0 && row.write >= 1.0, "{row:?}");
            }
        }
    }
}

#[test]
fn moves_say_what_to_set_and_what_it_costs() {
    let mut with_style = 0;
    for store in STORES {
        let case = Case::read(files(store)).unwrap();
        for (family, (_, replay)) in case.families.iter().zip(replays(store)) {
            let tree: u64 = family.files.iter().map(|file| file.bytes).sum();
            for way in &replay.moves {
                let row = replay.rows.iter().find(|row| row.policy == way.policy).unwrap();
                assert_eq!(way.saves, 1.0 - row.write / replay.replayed);
                assert!(way.saves > replay.band && !row.is_present, "{store}: {way:?}");
                let changes_style =
                    way.options.iter().any(|option| option.starts_with("compaction_style="));
                with_style += u32::from(changes_style);
                let merged = if changes_style || way.store == "lsmith" { tree } else { 0 };
                assert_eq!([way.merge_bytes, way.extra_bytes], [Some(merged); 2]);
                assert_eq!(way.store == "lsmith", way.options.is_empty());
                for option in &way.options {
                    let (name, value) = option.split_once('=').unwrap();
                    let now = family.settings[name].parse::<f64>();
                    assert!(now.is_err() || now != value.parse(), "{option} is so now");
                    let names = [name, value, value.split(['=', ';']).nth(2).unwrap_or("")];
                    let is_known = names.iter().any(|name| Elsewhere::find(name).is_some());
                    assert!(is_known, "{option}: `lsmith` does not know the name");
                }
            }
        }
    }
    assert!(with_style > 0);
}

#[test]
fn a_replay_says_what_it_misses() {
    let log = file("universal", "LOG");
    let begins = |needle: &[u8]| log.windows(needle.len()).position(|part| part == needle).unwrap();
    // The head, with the settings, and the second half of the events.
    let (head, half) = (begins(b"EVENT_LOG_v1 "), log.len() / 2);
    let mut all = files("universal");
    let late = all.iter_mut().find(|(name, _)| name == "LOG").unwrap();
    late.1 = [&log[..head], b"\n", &log[half..]].concat();
    let case = Case::read(all).unwrap();
    let replay = Replay::of(&case, &case.families[0]).unwrap();
    let says = |part: &str| replay.doubts.iter().any(|doubt| doubt.contains(part));
    assert!(says("that the store held before the LOG begins"), "{:?}", replay.doubts);
    assert!(replay.error.abs() < 0.1, "{}", replay.error);
    let only = |bytes: Vec<u8>| Case::read(vec![("LOG".to_owned(), bytes)]).unwrap();
    let case = only(log[..half / 8].to_vec());
    let reason = Replay::of(&case, &case.families[0]).unwrap_err();
    assert_eq!(reason, "No replay: expected at least 8 flushes in the LOG.");
    let case = only(log[head..].to_vec());
    let reason = Replay::of(&case, &case.families[0]).unwrap_err();
    assert_eq!(reason, "No replay: expected the settings in OPTIONS-* or the head of a LOG.");
}

#[test]
fn odd_settings_and_damaged_events_never_panic() {
    let options = String::from_utf8(file("heldout", "OPTIONS-")).unwrap();
    let log = file("heldout", "LOG");
    for (number, value) in ["0", "nan", "inf", "18446744073709551615"].into_iter().enumerate() {
        let names = ["target_file_size_base", "max_bytes_for_level_", "level0_", "max_compaction"];
        let odd = |line: &str| match line.trim().split_once('=') {
            Some((name, _)) if names.iter().any(|start| name.starts_with(start)) => {
                format!("{name}={value}\n")
            }
            _ => format!("{line}\n"),
        };
        let mut all = files("heldout");
        let at = log.len() / 2 + 1009 * number;
        for (name, bytes) in &mut all {
            if name.starts_with("OPTIONS-") {
                *bytes = options.lines().map(odd).collect::<String>().into_bytes();
            } else if name == "LOG" {
                (at..at + 40_000).step_by(997).for_each(|at| bytes[at] ^= 1);
            }
        }
        let case = Case::read(all).unwrap();
        let replays = case.families.iter().map(|family| Replay::of(&case, family));
        assert_eq!(replays.filter(|replay| matches!(replay, Ok(r) if r.counted >= 1.0)).count(), 2);
    }
}

#[test]
fn a_log_that_begins_far_too_late_is_no_replay() {
    let log = file("universal", "LOG");
    let mut case = Case::read(vec![("LOG".to_owned(), log)]).unwrap();
    let bytes = 2_000_000_000;
    let (smallest, largest) = (vec![1], vec![2]);
    let old = lsmith_doctor::File { level: 6, number: 1, bytes, smallest, largest };
    case.families[0].added.push(old.clone());
    case.families[0].files.push(old);
    let reason = Replay::of(&case, &case.families[0]).unwrap_err();
    assert!(reason.contains("held 2GB before the LOG begins"), "{reason}");
}

/// Somebody may send a LOG alone: then the tree of now is unknown, and where keys of tables lie.
#[test]
fn one_log_is_enough_for_a_replay() {
    for store in STORES {
        let case = Case::read(vec![("LOG".to_owned(), file(store, "LOG"))]).unwrap();
        for family in &case.families {
            let replay = Replay::of(&case, family).unwrap();
            assert!(replay.error.abs() < 0.2, "{store}, {}: {}", family.name, replay.error);
        }
    }
}
