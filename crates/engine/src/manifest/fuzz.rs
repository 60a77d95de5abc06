//! Fuzz tests: a manifest's record is refused, or survives being written and read again.

use super::account::check_facts;
use super::current::current_text;
use super::*;
use lsmith_fuzz::{Choices, change_text, fuzz, peak_bytes, text_of};
use lsmith_storage::env::{Env, MemEnv};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// Records in an order in which a manifest may hold them.
const RECORDS: [&str; 31] = [
    "next_file 12\n",
    "logs from 7 first 5 newest 9\n",
    "keyspace 0 default memtable 4MiB policy tiered(ratio=4)\n",
    "compressed_keyspace none,zstd(level=9) 1 logs memtable 1kB policy none\n",
    "numbered_keyspace none 3 parts memtable 1kB policy none\n",
    "short_tree 0 flushed 10\ntaken 14 a..c\ntaken 12 b..k\n\
     tree runs 3 tables 5 flushes 2 flushed 3MB 9e\nL0 r2[t3:a..f of a..m 1MB 9e s1..5, t4:f..g \
     2MB 3e s6..7, t3:g..m of .. 0B] r1[t2:b..z 1MB 4e s1..2]\ncount L0 merges 2\nnote at=7\n",
    "spill 0 file 8 upto 12 entries 3\n",
    "short_edit 0 flushed 11\ntaken 20 ..\nedit flushes 1 flushed 1MB\n\
     add r3 at L0 [t6:c..e 1MB 3e s11..13]\n",
    "short_edit 0 flushed 15\nedit\ntake r3 ..\ntake r2 ..\n\
     add r4 at L1 [t7:a..c 1MB 5e s1..13, t3:c..e of .. 0B]\nforget at\n",
    "edit 0 flushed 15\nedit\ntake r1 b..d\nadd r9 at L2 [t9:b..c 1kB]\n",
    "policy 0 leveled(ratio=4, l0=2)\n",
    "compression 0 lz4\n",
    "short_edit 1 flushed 3\nedit\n",
    "together 28 28\nshort_edit 0 flushed 4\nedit\nshort_edit 1 flushed 3\nedit\n",
    "spill 1 file 19 upto 4 entries 1\n",
    "tree 1 flushed 2\ntree\nL0 r1[t1:\"\\x00\"..\"..\" 1B]\n",
    "group none,lz4 2 orders memtable 1kB policy none\n",
    "member 2 0 rows\n",
    "operator counter keyspace 4 visits memtable 4MiB policy tiered(ratio=4)\n",
    "member 2 1 by_date\n",
    "operator append member 2 2 notes\n",
    "expiry none keyspace 5 sessions memtable 4MiB policy tiered(ratio=4)\n",
    "filters 4 8 keyspace 6 edges memtable 4MiB policy tiered(ratio=4)\n",
    "expiry none filters store 16 compressed_keyspace lz4 7 paths memtable 1kB policy none\n",
    "rename_member 2 1 dates\n",
    "rename 3 pieces\n",
    "drop 3\n",
    "next_keyspace 9\n",
    "linked\n",
    "backup 0123456789abcdef0123456789abcdef\n",
    "short_edit 2 flushed 3\nedit\nadd r0 at L0 [t20:\"\\x00a\"..\"\\x01b\" 1kB]\n",
];

const PARTS: [&str; 58] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "5",
    "12",
    "14",
    "64",
    "4611686018427387904",
    "4611686018427387905",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "\n",
    " ",
    "+1",
    "-1",
    "taken 9 a..b\n",
    "taken 9 ..\n",
    "taken",
    "flushed ",
    "upto ",
    "entries ",
    "file ",
    "memtable ",
    "policy ",
    "keyspace ",
    "short_tree ",
    "short_edit ",
    "tree",
    "edit",
    "spill ",
    "group ",
    "member ",
    "logs ",
    "from ",
    "first ",
    "newest ",
    "none",
    "lz4",
    "zstd",
    ",",
    "a..b",
    "..",
    "of .. 0B",
    "t3",
    "t9:a..b 1MB 1e s1..2",
    "r1",
    "r2",
    "r5 at L1 [t30:a..b 1kB]",
    "take r2 ..\n",
    "L1 ",
    "#",
    "é",
    "0B",
    "1MB",
];

fn changed(choices: &mut Choices<'_>) -> String {
    if choices.chance(90) {
        change_text(choices.pick(&RECORDS), &PARTS, choices)
    } else {
        text_of(&PARTS, 20, choices)
    }
}

#[test]
fn fuzz_manifest_records() {
    fuzz!(200_000, |choices| {
        let mut bytes = changed(choices).into_bytes();
        if choices.chance(5) {
            lsmith_fuzz::change(&mut bytes, choices, true);
        }
        let (read, peak) = peak_bytes(|| Record::decode(&bytes));
        assert!(peak < (64 << 10) + 2000 * bytes.len(), "{peak} bytes for {}", bytes.len());
        if let Ok(record) = read {
            let printed = record.encode();
            assert_eq!(Record::decode(printed.as_bytes()), Ok(record), "{printed}");
        }
    });
}

/// Returns the account of a manifest that holds `records`, or why [`read`] refuses it.
fn account<'a>(records: impl IntoIterator<Item = &'a str>) -> std::result::Result<Account, String> {
    let mut account = Account::default();
    for record in records {
        let record = Record::decode(record.as_bytes()).map_err(|fault| format!("{fault:?}"))?;
        account.take(record)?;
    }
    account.keyspaces.values().try_for_each(check_facts)?;
    Ok(account)
}

#[test]
fn fuzz_accounts() {
    assert!(account(RECORDS[..8].iter().copied()).is_ok());
    fuzz!(40_000, |choices| {
        let mut records: Vec<String> = RECORDS.map(str::to_string).to_vec();
        for _ in 0..1 + choices.below(3) {
            let at = choices.below(records.len());
            if records.is_empty() {
                break;
            }
            match choices.below(8) {
                0 => drop(records.remove(at)),
                1 => records.insert(at, choices.pick(&RECORDS).to_string()),
                2 => records.truncate(at + 1),
                3 => records.insert(at, changed(choices)),
                _ => records[at] = change_text(&records[at], &PARTS, choices),
            }
        }
        let texts = records.iter().map(String::as_str);
        let Ok(before) = account(texts) else { return };
        // Opening the store writes the account anew, and later openings must be able to read it.
        let written: Vec<String> = before.records().iter().map(Record::encode).collect();
        let again = account(written.iter().map(String::as_str));
        assert_eq!(again.as_ref(), Ok(&before), "{written:#?}");
    });
}

#[test]
fn fuzz_current() {
    fuzz!(150_000, |choices| {
        let whole = current_text(choices.border());
        let lines = whole.rsplit_once("checksum").map_or("", |(lines, _)| lines);
        let parts = ["lsmith store, format 3\n", "manifest ", "3", "4", "0", "+", "\n", "\r", " "];
        let mut text = change_text(lines, &parts, choices);
        let checksum = xxh3_64(text.as_bytes());
        text.push_str(&format!("checksum {checksum:016x}\n"));
        if choices.chance(20) {
            text = change_text(&text, &parts, choices);
        }
        let env = MemEnv::new();
        let path = Path::new("/CURRENT");
        let write = |mut file: Box<dyn lsmith_storage::env::WriteFile>| {
            file.write_all(text.as_bytes())?;
            file.sync()
        };
        env.create(path).and_then(write).expect("memory is there");
        match read_current(&env, path) {
            Ok(file_id) => assert_eq!(file_id.map(current_text).as_ref(), Some(&text)),
            Err(error) => assert_eq!(error.path(), Some(path), "{error}"),
        }
    });
}
