//! Files of any kind: refused, or read. Records of a MANIFEST are changed below their checksums.

use super::file;
use lsmith_doctor::{Case, Diagnosis, Log, Manifest, Named, Options, Replay};
use lsmith_fuzz::{Choices, change, change_text, fuzz, peak_bytes};
use std::sync::LazyLock;

/// The most bytes that a reader holds: for each byte of a file, and beside that.
const HELD_PER_BYTE: usize = 64;
const HELD: usize = 64 << 10;

const MANIFESTS: [&str; 5] = ["leveled", "rocksdbjni", "leveldb", "leveldb-reopened", "pebble"];

const PARTS: [&str; 44] = [
    "EVENT_LOG_v1 {",
    "{\"job\": 1, \"event\": \"table_file_creation\", \"file_size\": 9}",
    "\"event\": \"compaction_finished\"",
    "\"job\": ",
    "\"file_size\": ",
    "\"num_entries\": ",
    "[JOB 7] ",
    "[default] [JOB 2] Compacting 4@0",
    "flushed 1 memtable (1.0MB) to L0 [000009] (848KB)",
    "compacted(default) L0 [000007] (1.5MB) Score=1.00 + L6 [] (0B) -> L6 [000011] (1.4MB)",
    "] (1.5EB)",
    "(-1KB)",
    "(nanMB)",
    " -> L",
    " + L5 [",
    "RocksDB version: 9.8.4\n",
    "Options for column family [a]:\n",
    " Options.",
    "Cumulative stall: 00:00:1 H:M:S, nan percent",
    "2026/11/27-20:22:52.199478 7f3a ",
    "Compacting 1@0 + 2@1 files\n",
    "Compacted 1@0 + 2@1 files => 9 bytes\n",
    "Generated table #9@0: 5 keys, 70 bytes\n",
    "Level-0 table #5: 70 bytes OK\n",
    "Delete type=2 #5\n",
    "Moved #5 to level-1 9 bytes OK\n",
    "Manual compaction at level-0 from (begin)\n",
    "[Version]\n",
    "[CFOptions \"default\"]\n",
    "[Level \"0\"]\n",
    "pebble_version=0.1\n",
    "target_file_size=",
    "compaction_style=kCompactionStyleUniversal\n",
    "={a=1;b=}\n",
    "nan",
    "inf",
    "1e308",
    "-1",
    "[",
    "]",
    "{",
    "}",
    "\n",
    "é",
];

/// Returns the checksum of Castagnoli, masked, bit by bit.
fn checksum(bytes: &[u8]) -> u32 {
    let step = |crc: u32, byte: &u8| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ (0x82f6_3b78 * (crc & 1)))
    };
    (!bytes.iter().fold(!0, step)).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// Returns the first records of each store, up to the first one that goes beyond a block.
static RECORDS: LazyLock<Vec<Vec<Vec<u8>>>> = LazyLock::new(|| {
    let of_store = |store: &str| {
        let bytes = file(store, "MANIFEST-");
        let mut records = Vec::new();
        let mut at = 0;
        while records.len() < 24 {
            let length = usize::from(u16::from_le_bytes([bytes[at + 4], bytes[at + 5]]));
            if bytes[at + 6] != 1 {
                break;
            }
            records.push(bytes[at + 7..at + 7 + length].to_vec());
            at += 7 + length;
        }
        assert!(records.len() > 2, "{store}");
        records
    };
    MANIFESTS.map(of_store).to_vec()
});

/// Returns a MANIFEST of records that are mostly right, with right checksums.
fn manifest(choices: &mut Choices<'_>) -> Vec<u8> {
    let records = &RECORDS[choices.below(RECORDS.len())];
    let mut bytes = Vec::new();
    for _ in 0..choices.below(records.len() + 1) {
        let mut record = records[choices.below(records.len())].clone();
        if choices.chance(40) {
            change(&mut record, choices, true);
        }
        record.truncate(2000);
        let length = (record.len() as u16).to_le_bytes();
        let kind = choices.pick(&[1, 1, 1, 1, 1, 1, 2, 3, 4]);
        let checked = [&[kind], &record[..]].concat();
        bytes.extend(checksum(&checked).to_le_bytes());
        bytes.extend(length);
        bytes.extend(checked);
    }
    if choices.chance(10) {
        change(&mut bytes, choices, true);
    }
    bytes
}

#[test]
fn fuzz_manifests() {
    fuzz!(4000, |choices| {
        let bytes = manifest(choices);
        let (read, held) = peak_bytes(|| Manifest::read(&bytes));
        assert!(held <= HELD + HELD_PER_BYTE * bytes.len(), "{held} for {}", bytes.len());
        match &read {
            Ok(whole) => {
                // A copy of a live store ends anywhere.
                let cut = Manifest::read(&bytes[..choices.below(bytes.len() + 1)]).unwrap();
                assert!(whole.edits.starts_with(&cut.edits));
            }
            Err(error) => assert!(!error.place.is_empty() && !error.message.is_empty(), "{error}"),
        }
        let named = |name: &str| (name.to_owned(), bytes.clone());
        if let Ok(case) = Case::read(vec![named("MANIFEST-000001")]) {
            let families = Diagnosis::of(&case).families;
            assert_eq!(families.len(), case.families.len());
        }
    });
}

/// Returns the beginning of a log or of a file OPTIONS, in a few pieces of lines.
fn text(store: &str, start: &str, choices: &mut Choices<'_>) -> String {
    let text = String::from_utf8(file(store, start)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let mut taken = String::new();
    for _ in 0..3 {
        let from = choices.below(lines.len());
        for line in lines[from..].iter().take(choices.below(30)) {
            taken.push_str(line);
            taken.push('\n');
        }
    }
    change_text(&taken, &PARTS, choices)
}

#[test]
fn fuzz_logs() {
    fuzz!(1200, |choices| {
        let store =
            choices.pick(&["rocksdict", "deletes", "leveldb", "leveldb-reopened", "pebble"]);
        let log = text(store, "LOG", choices);
        // Rotated logs read as one.
        let at = log.match_indices('\n').map(|(at, _)| at + 1);
        let places: Vec<usize> = at.chain([0, log.len()]).collect();
        let (older, newer) = log.split_at(choices.pick(&places));
        let [mut whole, mut parts] = [Log::default(), Log::default()];
        whole.read(log.as_bytes());
        parts.read(older.as_bytes());
        parts.read(newer.as_bytes());
        assert_eq!(format!("{whole:?}"), format!("{parts:?}"));
        let mut files: Vec<Named> = vec![("LOG".to_owned(), log.into_bytes())];
        if choices.chance(50) {
            files.push(("MANIFEST-000001".to_owned(), manifest(choices)));
        }
        if let Ok(case) = Case::read(files) {
            let diagnosis = Diagnosis::of(&case);
            let jobs: u64 = diagnosis.families.iter().map(|costs| costs.flushes).sum();
            assert!(jobs <= case.families.iter().map(|family| family.jobs.len() as u64).sum());
        }
    });
}

/// Returns the last border of letters of `text` up to `at`.
fn border(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

#[test]
fn fuzz_options() {
    fuzz!(1500, |choices| {
        let store = choices.pick(&["leveled", "rocksdbjni", "pebble"]);
        let options = text(store, "OPTIONS-", choices);
        let (head, _) = options.split_at(border(&options, choices.below(2000)));
        for text in [&*options, head, &format!("[Version]\n{options}")] {
            match Options::read(text) {
                Ok(read) => {
                    let remarked = Options::read(&format!("# a remark\n{text}\n# another\n\n"));
                    assert_eq!(remarked, Ok(read));
                }
                Err(error) => assert!(error.place.starts_with("line "), "{error}"),
            }
        }
    });
}

/// Replays of whole stores with odd settings and odd numbers of entries. They take a while each.
#[test]
fn fuzz_replays() {
    fuzz!(12, |choices| {
        let store = choices.pick(&["rocksdict", "deletes", "leveldb-reopened", "pebble"]);
        let mut files = super::files(store);
        for (name, bytes) in &mut files {
            let text = String::from_utf8_lossy(bytes).into_owned();
            if name.starts_with("OPTIONS-") {
                *bytes = change_text(&text, &PARTS, choices).into_bytes();
            } else if name == "LOG" {
                let from = border(&text, choices.below(text.len()));
                let end = border(&text, (from + 3000).min(text.len()));
                let changed = change_text(&text[from..end], &PARTS, choices);
                *bytes = [&text[..from], &changed, &text[end..]].concat().into_bytes();
            }
        }
        let Ok(case) = Case::read(files) else { return };
        for family in &case.families {
            if let Ok(replay) = Replay::of(&case, family) {
                assert!(replay.counted >= 1.0 && replay.replayed >= 1.0, "{replay:?}");
            }
        }
    });
}
