//! The time at which a table has expired, over many batches.

use super::*;
use crate::expiry::expiring_value;
use crate::format::{AppendRoot, FEATURE_EXPIRES, Footer, SealedPlace, seal};
use crate::table::ReadTable;

fn timed(key: impl AsRef<[u8]>, seq: u64, time: u64) -> Owned {
    entry(key, seq, expiring_value(time, b"value")).with(EntryKind::Expiring)
}

/// Appends `batch` and checks the table. Returns when it expires.
fn expires_with(bench: &mut Bench, batch: Vec<Owned>) -> u64 {
    bench.append_with(batch, &[], false);
    bench.check();
    let table = bench.open();
    let expires = table.tree_table().expires;
    assert_eq!(table.features & FEATURE_EXPIRES > 0, expires > 0);
    assert_eq!((table.facts().expires, table.root.expires), (expires, expires));
    expires
}

#[test]
fn table_expires_with_its_last_entry_unless_one_stays() {
    let mut bench = Bench::small();
    let first = vec![timed(b"a", 1, 30), timed(b"c", 2, 10), deletion(b"d", 3)];
    assert_eq!(expires_with(&mut bench, first), 30);
    assert_eq!(expires_with(&mut bench, vec![timed(b"b", 4, 50)]), 50);
    // Times of entries that a batch replaces still count.
    assert_eq!(expires_with(&mut bench, vec![timed(b"b", 5, 20)]), 50);
    assert_eq!(expires_with(&mut bench, vec![deletion(b"a", 6), deletion(b"e", 7)]), 50);
    assert_eq!(expires_with(&mut bench, vec![entry(b"x", 8, b"stays")]), 0);
    assert_eq!(expires_with(&mut bench, vec![timed(b"x", 9, 60)]), 0);
    bench.append_with(bench.model.iter().map(|old| deletion(&old.key, 20)).collect(), &[], true);
    assert_eq!((bench.open().keys(), bench.open().root.expires), (0, 0));
    // The table is empty, so it begins anew.
    assert_eq!(expires_with(&mut bench, vec![timed(b"x", 30, 60)]), 60);
}

#[test]
fn table_of_deletions_expires_with_the_first_entry_that_does() {
    let mut bench = Bench::small();
    assert_eq!(expires_with(&mut bench, vec![deletion(b"a", 1), deletion(b"b", 2)]), 0);
    assert_eq!(expires_with(&mut bench, vec![deletion(b"c", 3)]), 0);
    assert_eq!(expires_with(&mut bench, vec![timed(b"b", 4, 9)]), 9);
}

#[test]
fn older_version_for_a_snapshot_keeps_the_table() {
    let mut bench = Bench::small();
    assert_eq!(expires_with(&mut bench, vec![entry(b"a", 1, b"stays")]), 0);
    bench.append_with(vec![timed(b"a", 5, 9)], &[SeqNo(3)], false);
    bench.check();
    assert_eq!((bench.open().facts().size.entries, bench.open().root.expires), (2, 0));
}

/// Writes the newest root anew after `change`, and returns what `verify` says.
fn verified(bench: &Bench, change: impl Fn(&mut AppendRoot)) -> String {
    let mut root = bench.open().root.clone();
    change(&mut root);
    let old = bench.open().file.append_footer(bench.root).unwrap();
    let start = old.properties.start;
    let mut bytes = vec![0; start as usize];
    bench.disk.open(path()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    let mut payload = root.encode();
    seal(&mut payload, 0, SealedPlace { table: TABLE, offset: start });
    bytes.extend_from_slice(&payload);
    let features = match root.expires {
        0 => old.features & !FEATURE_EXPIRES,
        _ => old.features | FEATURE_EXPIRES,
    };
    let footer = Footer { properties: start..bytes.len() as u64, features, ..old };
    bytes.extend_from_slice(&footer.encode());
    let mut forged = bench.clone();
    forged.root = bytes.len() as u64;
    forged.disk = MemEnv::new();
    let mut file = forged.disk.create(path()).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync().unwrap();
    let verified = forged.open().verify(&[KeyRange::ALL]);
    verified.map_or_else(|error| error.to_string(), |()| String::new())
}

#[test]
fn root_that_lies_about_expiry_is_found() {
    let mut bench = Bench::small();
    bench.append_with(vec![timed(b"a", 1, 30), timed(b"b", 2, 20), deletion(b"c", 3)], &[], false);
    // The time of an entry that was replaced may be later than all others.
    for (expires, says) in [(30, ""), (31, ""), (0, ""), (29, "expires later than the root says")] {
        let found = verified(&bench, |root| root.expires = expires);
        assert!(found.contains(says) && found.is_empty() == says.is_empty(), "{expires}: {found}");
    }
    for value in [&[0; 20][..], b""] {
        let mut bench = bench.clone();
        bench.append_with(vec![entry(b"d", 4, value)], &[], false);
        assert_eq!(verified(&bench, |_| {}), "");
        let found = verified(&bench, |root| root.expires = 40);
        assert!(found.contains("an entry stays in a table that expires"), "{found}");
    }
}

#[test]
fn footer_and_root_that_do_not_agree_on_expiry_are_damage() {
    let mut bench = Bench::small();
    bench.append_with(vec![timed(b"a", 1, 30)], &[], false);
    let mut bytes = vec![0; bench.root as usize];
    bench.disk.open(path()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    let mut footer = bench.open().file.append_footer(bench.root).unwrap();
    footer.features &= !FEATURE_EXPIRES;
    bytes.truncate(footer.properties.end as usize);
    bytes.extend_from_slice(&footer.encode());
    bench.disk = MemEnv::new();
    let mut file = bench.disk.create(path()).unwrap();
    file.write_all(&bytes).unwrap();
    file.sync().unwrap();
    let error = bench.open_at(bench.root, false).unwrap_err().to_string();
    assert!(error.contains("do not agree on expiry"), "{error}");
}
