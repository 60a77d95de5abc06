//! Tables with sequence numbers of their own, ingested.
//!
//! Promised: in a keyspace that keeps numbers, a read returns the entry of a key with the greatest
//! number, whether a write or a table from outside brought it, and in whatever order they came.
//! That holds at once, after merges, after reopening and after a crash, under every policy.
//! Snapshots from before an ingest never see it. Later writes are newer than everything that was
//! ingested. What a dropped deletion could have hidden is refused, and so is what contradicts an
//! entry with the same number.

use crate::frame::contents::{contents, seen};
use crate::frame::gate::{Gate, Step};
use crate::frame::operators::Append;
use crate::frame::small::{DIR, plain_at, small};
use crate::ingest::files::{bytes, key, tables};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv};
use lsmith::{
    Builder, ErrorKind, IngestOptions, Keyspace, KeyspaceOptions, PersistMode, RepairOptions,
    SeqNo, Store, TableWriter, TableWriterOptions, repair,
};
use lsmith_tree::KeyRange;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The entries of a table, with their numbers.
pub(crate) type Numbered = BTreeMap<Vec<u8>, (u64, Option<Vec<u8>>)>;

pub(crate) fn appending(env: &(impl Env + Clone), policy: &str) -> Builder {
    small(env).memtable_bytes(2000).operator(Append).policy(policy)
}

pub(crate) fn keeping() -> KeyspaceOptions {
    KeyspaceOptions { keep_numbers: Some(true), ..KeyspaceOptions::default() }
}

fn space(store: &Store) -> Keyspace {
    store.keyspace_with("default", &keeping()).unwrap()
}

fn writer(env: &MemEnv, path: &str) -> TableWriter {
    let mut options = TableWriterOptions { block_bytes: 200, ..TableWriterOptions::default() };
    options.env = Arc::new(env.clone());
    options.operator = Some("append".into());
    TableWriter::create_with(path, &options).unwrap()
}

pub(crate) fn write_table(env: &MemEnv, path: &str, entries: &Numbered) -> PathBuf {
    let mut writer = writer(env, path);
    for (key, (seq, value)) in entries {
        match value {
            Some(operand) if operand.starts_with(b"+") => {
                writer.combine_at(key, operand, SeqNo(*seq)).unwrap();
            }
            Some(value) => writer.put_at(key, value, SeqNo(*seq)).unwrap(),
            None => writer.delete_at(key, SeqNo(*seq)).unwrap(),
        }
    }
    writer.finish().unwrap();
    PathBuf::from(path)
}

/// Entries that put `value`, with numbers from `first` on.
fn puts(numbers: impl IntoIterator<Item = usize>, first: u64, value: &str) -> Numbered {
    let put = |(number, seq): (usize, u64)| (key(number), (seq, Some(value.as_bytes().to_vec())));
    numbers.into_iter().zip(first..).map(put).collect()
}

fn ingest(space: &Keyspace, files: &[PathBuf]) -> lsmith::Result<lsmith::Loaded> {
    space.store().ingest(space, files, &IngestOptions::default())
}

#[test]
fn numbers_decide_whatever_came_first() {
    let env = MemEnv::new();
    let store = appending(&env, "leveled(ratio=4)").open().unwrap();
    let space = space(&store);
    for number in 0..100 {
        space.put(key(number), "written").unwrap();
    }
    // Numbers 1 to 100 are taken. These are among them, above them and mixed.
    let among = write_table(&env, "/among", &puts(20..40, 10, "among"));
    let above = write_table(&env, "/above", &puts(50..60, 10_000, "above"));
    let mut mixed = puts(70..75, 1, "below");
    mixed.extend(puts(75..80, 20_000, "above"));
    let mixed = write_table(&env, "/mixed", &mixed);
    let before = store.snapshot();
    ingest(&space, &[above, mixed, among]).unwrap();
    let value = |number| space.get(key(number)).unwrap().unwrap();
    for number in 0..100 {
        let expected = match number {
            50..60 | 75..80 => "above",
            _ => "written",
        };
        assert_eq!(value(number), expected, "{number}");
    }
    // Beneath a deletion that is older than the table, and beneath one that is newer.
    space.delete(key(200)).unwrap();
    let deleted = store.snapshot().seq().0;
    assert!(deleted > 20_000, "later writes are newer: {deleted}");
    let old = write_table(&env, "/old", &puts([200], deleted - 1, "old"));
    ingest(&space, &[old]).unwrap();
    assert_eq!(space.get(key(200)).unwrap(), None);
    let new = write_table(&env, "/new", &puts([200], deleted + 1000, "new"));
    ingest(&space, &[new]).unwrap();
    assert_eq!(value(200), "new");
    assert_eq!(seen(&before, &space).len(), 100);
    assert!(seen(&before, &space).values().all(|value| value == b"written"));
    drop(before);
    let expected = contents(&space);
    space.merge().unwrap();
    assert_eq!(contents(&space), expected);
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn the_counter_stays_above_what_came_through_many_lives() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = appending(&env, "tiered(ratio=3)").lockstep(lockstep).open().unwrap();
        let file = write_table(&env, "/made", &puts(0..10, 1 << 40, "made"));
        ingest(&space(&store), &[file]).unwrap();
        drop(store);
        for life in 0..6 {
            let disk = if life % 2 == 0 { env.clone() } else { env.crash_clone(life, 0.5) };
            let store = appending(&disk, "tiered(ratio=3)").lockstep(lockstep).open().unwrap();
            let space = space(&store);
            assert!(store.snapshot().seq() >= SeqNo((1 << 40) + 9));
            space.put(key(5), "later").unwrap();
            assert_eq!(space.get(key(5)).unwrap().unwrap(), "later");
            if life > 3 {
                store.flush().unwrap();
                space.merge().unwrap();
                assert_eq!(space.get(key(5)).unwrap().unwrap(), "later");
            }
            store.persist(PersistMode::SyncAll).unwrap();
        }
    }
}

/// Asserts that an ingest of `file` is refused with an error that `says` so, and changes nothing.
#[track_caller]
fn assert_refused(env: &MemEnv, space: &Keyspace, files: &[PathBuf], says: &str) {
    let (before, held) = (contents(space), tables(env));
    let error = ingest(space, files).unwrap_err();
    assert!(error.to_string().contains(says), "{error}");
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!((contents(space), tables(env)), (before, held));
    space.put(key(0), "still writable").unwrap();
}

#[test]
fn what_contradicts_the_store_is_refused_whole() {
    let env = MemEnv::new();
    let store = appending(&env, "leveled(ratio=4)").open().unwrap();
    let space = space(&store);
    for number in 0..100 {
        space.put(key(number), "written").unwrap();
    }
    let snapshot = store.snapshot();
    drop(snapshot);
    // Key 41 has number 42.
    let same = write_table(&env, "/same", &puts([41], 42, "written"));
    ingest(&space, std::slice::from_ref(&same)).unwrap();
    let fine = write_table(&env, "/fine", &puts(200..300, 500, "fine"));
    let clash = write_table(&env, "/clash", &puts([41], 42, "other"));
    assert_refused(&env, &space, &[fine.clone(), clash], "another entry with number 42");

    let plain = PathBuf::from("/plain");
    let mut table = writer(&env, "/plain");
    table.put(key(400), "plain").unwrap();
    let mixed = table.put_at(key(401), "numbered", SeqNo(9)).unwrap_err();
    assert!(mixed.to_string().contains("all or none"), "{mixed}");
    table.finish().unwrap();
    assert_refused(&env, &space, &[fine.clone(), plain.clone()], "have none");
    ingest(&space, &[plain]).unwrap();

    let forgetting = store.keyspace("forgets").unwrap();
    assert_refused(&env, &forgetting, std::slice::from_ref(&fine), "`keep_numbers`");
    let group = KeyspaceOptions { group: Some("fruit".into()), ..keeping() };
    let error = store.keyspace_with("apples", &group).unwrap_err();
    assert!(error.to_string().contains("cannot keep sequence numbers"), "{error}");
    let error = store.keyspace_with("forgets", &keeping()).unwrap_err();
    assert!(error.to_string().contains("forgotten sequence numbers"), "{error}");
    let no = KeyspaceOptions { keep_numbers: Some(false), ..KeyspaceOptions::default() };
    let error = store.keyspace_with("default", &no).unwrap_err();
    assert!(error.to_string().contains("sequence numbers that are kept"), "{error}");
    store.keyspace_with("forgets", &no).unwrap();
    let mut table = writer(&env, "/numbers");
    for seq in [0, (1 << 61) + 1, u64::MAX] {
        let error = table.put_at("key", "value", SeqNo(seq)).unwrap_err();
        assert!(error.to_string().contains("from 1 to 2305843009213693952"), "{error}");
    }
}

#[test]
fn deletions_that_are_gone_still_count() {
    let env = MemEnv::new();
    let store = appending(&env, "full").open().unwrap();
    let space = space(&store);
    space.put(key(1), "written").unwrap();
    space.put(key(2), "written").unwrap();
    space.delete(key(1)).unwrap();
    let deleted = store.snapshot().seq().0;
    space.merge().unwrap();
    assert_eq!(space.tree().dropped_below(), SeqNo(deleted));
    let old = write_table(&env, "/old", &puts([1], 1, "old"));
    assert_refused(&env, &space, std::slice::from_ref(&old), "`allow_resurrect`");
    let allow = IngestOptions::default().allow_resurrect(true);
    store.ingest(&space, &[old], &allow).unwrap();
    assert_eq!(space.get(key(1)).unwrap().unwrap(), "old");
    let new = write_table(&env, "/new", &puts([1], deleted, "new"));
    ingest(&space, &[new]).unwrap();
    assert_eq!(space.get(key(1)).unwrap().unwrap(), "new");
}

/// Deletions that merges dropped elsewhere refuse nothing here, after reopening too.
#[test]
fn deletions_count_in_their_range_only() {
    let env = MemEnv::new();
    let store = appending(&env, "triangular").open().unwrap();
    let space = space(&store);
    let value = "v".repeat(100);
    for part in 0..10 {
        for number in 0..100 {
            space.put(key(1000 * part + number), &value).unwrap();
        }
        space.flush().unwrap();
        store.settle().unwrap();
    }
    // Merges of these tables meet only what lies in the same keys.
    for _ in 0..20 {
        for number in 0..100 {
            space.put(key(9000 + number), &value).unwrap();
        }
        for number in 0..100 {
            space.delete(key(9000 + number)).unwrap();
        }
        space.flush().unwrap();
        store.settle().unwrap();
    }
    let is_partial = |space: &Keyspace| {
        let tree = space.tree();
        let parts = tree.dropped().parts();
        !parts.is_empty() && parts.iter().all(|part| *part.range.start >= *key(9000))
    };
    assert!(is_partial(&space), "{}", space.tree());
    drop((space, store));
    let store = appending(&env, "triangular").open().unwrap();
    let space = self::space(&store);
    assert!(is_partial(&space), "{}", space.tree());
    let refused = write_table(&env, "/covered", &puts([9050], 3, "old"));
    assert_refused(&env, &space, &[refused], "were dropped in its range");
    let old = write_table(&env, "/old", &puts([500, 1500], 3, "old"));
    ingest(&space, &[old]).unwrap();
    assert_eq!(space.get(key(1500)).unwrap().unwrap(), "old");
}

/// A merge that has dropped a deletion must not commit above an older entry that came meanwhile.
#[test]
fn a_merge_does_not_drop_what_arrives_beneath_it() {
    let disk = MemEnv::new();
    let env = Gate::over(disk.clone());
    let store = appending(&env, "tiered(ratio=2)").lockstep(false).open().unwrap();
    let space = space(&store);
    let other = store.keyspace("other").unwrap();
    other.put("takes", "number 1").unwrap();
    other.put("takes", "number 2").unwrap();
    space.delete(key(1)).unwrap();
    space.put(key(2), "written").unwrap();
    let file = write_table(&disk, "/old", &puts([1], 2, "old"));
    // There is no table, so the flush drops the deletion.
    env.hold_at(Step::Create, 1);
    std::thread::scope(|scope| {
        scope.spawn(|| space.flush().unwrap());
        env.wait_until_held();
        ingest(&space, &[file]).unwrap();
        assert_eq!(space.get(key(1)).unwrap(), None);
        env.release();
    });
    store.settle().unwrap();
    assert_eq!(space.get(key(1)).unwrap(), None);
    space.merge().unwrap();
    assert_eq!(space.tree().dropped_below(), SeqNo(3));
    assert_eq!(contents(&space).len(), 1);
}

/// A merge takes memory of more keys than it takes from storage. A tombstone that it drops there is
/// remembered by the next life too.
#[test]
fn a_tombstone_that_a_merge_dropped_from_memory_is_remembered_by_the_next_life() {
    for policy in ["leveled(ratio=2, l0=1)", "jungle(c=1, ratio=3, table=400B)", "constant(k=1)"] {
        let env = MemEnv::new();
        let store = appending(&env, policy).open().unwrap();
        let written = space(&store);
        written.put(key(1), "written").unwrap();
        written.put(key(3), "written").unwrap();
        store.flush().unwrap();
        store.settle().unwrap();
        written.put(key(2), "written").unwrap();
        written.delete(key(90)).unwrap();
        store.flush().unwrap();
        written.merge().unwrap();
        let dropped = written.tree().dropped().clone();
        assert_eq!(dropped.below(&KeyRange::inclusive(&key(90), &key(90))), SeqNo(4), "{policy}");
        let file = write_table(&env, "/old", &puts([90], 2, "old"));
        drop((written, store));
        let store = appending(&env, policy).open().unwrap();
        let again = space(&store);
        let error = ingest(&again, &[file]).unwrap_err();
        assert!(error.to_string().contains("could come back"), "{policy}: {error}");
        assert_eq!(again.get(key(90)).unwrap(), None);
    }
}

/// Writes that cancelled each other in memory are still in the log.
#[test]
fn what_vanished_in_memory_does_not_come_back_above_a_table() {
    let env = MemEnv::new();
    for policy in ["tiered(ratio=3)", "choose_best(ratio=3)"] {
        let env = env.crash_clone(0, 0.5);
        let store = appending(&env, policy).open().unwrap();
        let space = space(&store);
        space.put_new_unchecked(key(7), "inserted").unwrap();
        space.delete_single_unchecked(key(7)).unwrap();
        let file = write_table(&env, "/made", &puts([7], 1000, "made"));
        ingest(&space, &[file]).unwrap();
        assert_eq!(space.get(key(7)).unwrap().unwrap(), "made");
        drop((space, store));
        let store = appending(&env, policy).open().unwrap();
        let space = self::space(&store);
        assert_eq!(space.get(key(7)).unwrap().unwrap(), "made", "{policy}");
        space.merge().unwrap();
        assert_eq!(space.get(key(7)).unwrap().unwrap(), "made", "{policy}");
    }
}

/// The same with merges, flushes and arrivals all the time.
#[test]
fn merges_under_way_do_not_drop_what_it_should_hide() {
    let mut hidden = 0;
    for round in 0..20 {
        let env = MemEnv::new();
        let store = appending(&env, "tiered(ratio=2)").lockstep(false).open().unwrap();
        let space = space(&store);
        let stop = AtomicBool::new(false);
        // Below the number of the last deletion of each key.
        let mut deleted = BTreeMap::new();
        // The greatest number that an ingested entry of a key has.
        let mut ingested = BTreeMap::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in (0..600).map(|step| step % 50) {
                    space.put(key(number), [7; 50]).unwrap();
                    let before = store.snapshot().seq().0;
                    space.delete(key(number)).unwrap();
                    deleted.insert(key(number), before);
                }
                stop.store(true, Ordering::Relaxed);
            });
            while !stop.load(Ordering::Relaxed) {
                let now = store.snapshot().seq().0.max(1);
                let entries: Numbered =
                    (0..50).map(|number| (key(number), (now, Some(b"old".to_vec())))).collect();
                let file = write_table(&env, "/old", &entries);
                match ingest(&space, &[file]) {
                    Ok(_) => ingested.extend(entries.into_keys().map(|key| (key, now))),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}"),
                }
                env.remove_file(Path::new("/old")).unwrap();
            }
        });
        for _ in 0..2 {
            for (key, seq) in ingested.iter().filter(|(key, seq)| deleted[*key] > **seq) {
                assert_eq!(space.get(key).unwrap(), None, "round {round}: {seq} came back");
                hidden += 1;
            }
            store.settle().unwrap();
            space.merge().unwrap();
        }
        assert!(store.verify().unwrap().is_empty());
    }
    assert!(hidden > 50, "{hidden}");
}

#[test]
fn an_export_brings_a_lost_part_back() {
    let env = MemEnv::new();
    let store = appending(&env, "leveled(ratio=3)").open().unwrap();
    let space = space(&store);
    for number in 0..300 {
        space.put(key(number), "old").unwrap();
    }
    (0..300).step_by(3).for_each(|number| space.delete(key(number)).unwrap());
    let backup = store.snapshot();
    for number in (0..300).step_by(5) {
        space.put(key(number), "new").unwrap();
    }
    let mut table = writer(&env, "/backup");
    let exported = backup.export(&space, key(50)..key(250), &mut table).unwrap();
    table.finish().unwrap();
    assert_eq!(exported, 200);
    // Nothing changes where all is still there.
    let expected = contents(&space);
    let allow = IngestOptions::default().allow_resurrect(true);
    store.ingest(&space, &["/backup"], &allow).unwrap();
    assert_eq!(contents(&space), expected);

    // Another store gets the part, beneath what it wrote later.
    let other = plain_at("/other", &env).open().unwrap();
    let part = self::space(&other);
    (0..2000).for_each(|_| part.put("x", "y").unwrap());
    part.put(key(51), "later").unwrap();
    ingest(&part, &[PathBuf::from("/backup")]).unwrap();
    assert_eq!(part.get(key(51)).unwrap().unwrap(), "later");
    assert_eq!(part.get(key(52)).unwrap().unwrap(), "old");
    assert_eq!(contents(&part).len(), 200 - 67 + 2);

    let forgets = store.keyspace("forgets").unwrap();
    let mut table = writer(&env, "/none");
    let error = backup.export::<&[u8]>(&forgets, .., &mut table).unwrap_err();
    assert!(error.to_string().contains("forgets sequence numbers"), "{error}");
}

/// Crashes in the middle of an ingest that merges, opens, ingests again, and crashes again.
#[test]
fn an_arrival_cut_short_by_a_crash_is_there_or_not() {
    for (lockstep, power) in [(true, true), (true, false), (false, true)] {
        let parts = [puts(20..60, 81, "among"), puts(100..140, 5000, "above")];
        let mut outcomes = [0, 0];
        let mut operations = 0;
        loop {
            let disk = MemEnv::new();
            let old = {
                let store = appending(&disk, "leveled(ratio=3)").lockstep(lockstep).open().unwrap();
                let space = space(&store);
                for number in (0..150).rev() {
                    space.put(key(number), "before").unwrap();
                }
                store.persist(PersistMode::SyncAll).unwrap();
                contents(&space)
            };
            let files =
                [write_table(&disk, "/one", &parts[0]), write_table(&disk, "/two", &parts[1])];
            let mut new = old.clone();
            // Key n was written with number 150 - n, and number 61 + n arrives for some.
            for (key, (_, value)) in &parts[1] {
                new.insert(key.clone(), value.clone().unwrap());
            }
            for number in 45..60 {
                new.insert(key(number), b"among".to_vec());
            }
            let env = FaultEnv::new(Arc::new(disk.clone()));
            let store = appending(&env, "leveled(ratio=3)").lockstep(lockstep).open().unwrap();
            let space = self::space(&store);
            let (lasting, kind) = (Lasting::Forever, io::ErrorKind::Other);
            env.set(Fault { class: None, after: operations, lasting, kind });
            let result = ingest(&space, &files);
            let crashed = |disk: &MemEnv| match power {
                true => disk.crash_clone(operations, 0.3),
                false => disk.process_crash_clone(),
            };
            let copy = crashed(&disk);
            env.clear();
            drop((space, store));

            let store = appending(&copy, "leveled(ratio=3)").lockstep(lockstep).open().unwrap();
            let space = self::space(&store);
            let found = contents(&space);
            let done = found == new;
            assert!(done || found == old, "torn by a crash after {operations} operations");
            assert!(done || result.is_err(), "lost");
            outcomes[usize::from(done)] += 1;
            assert!(store.verify().unwrap().is_empty());
            // The second life.
            let files = [write_table(&copy, "/again", &puts(100..140, 5000, "above"))];
            ingest(&space, &files).unwrap();
            space.put(key(110), "later").unwrap();
            store.persist(PersistMode::SyncData).unwrap();
            let mut found = contents(&space);
            let copy = crashed(&copy);
            drop((space, store));
            let store = appending(&copy, "leveled(ratio=3)").lockstep(lockstep).open().unwrap();
            let space = self::space(&store);
            assert_eq!(contents(&space), found);
            assert_eq!(found.remove(&key(110)).unwrap(), b"later");
            assert!(store.verify().unwrap().is_empty());
            if result.is_ok() {
                break;
            }
            operations += 1;
        }
        assert!(outcomes[0] > 5 && outcomes[1] > 0, "{outcomes:?}");
    }
}

#[test]
fn a_failed_arrival_leaves_nothing_behind() {
    let mut failures = 0;
    for operations in 0.. {
        let disk = MemEnv::new();
        let env = FaultEnv::new(Arc::new(disk.clone()));
        let store = appending(&env, "leveled(ratio=3)").open().unwrap();
        let space = space(&store);
        for number in (0..150).rev() {
            space.put(key(number), "before").unwrap();
        }
        store.flush().unwrap();
        let (old, held) = (contents(&space), tables(&disk));
        let files = [
            write_table(&disk, "/one", &puts(20..60, 81, "among")),
            write_table(&disk, "/two", &puts(100..140, 5000, "above")),
        ];
        let (lasting, kind) = (Lasting::Once, io::ErrorKind::Other);
        env.set(Fault { class: None, after: operations, lasting, kind });
        let result = ingest(&space, &files);
        env.clear();
        if result.is_ok() {
            break;
        }
        failures += 1;
        let is_poisoned = space.put("x", "y").is_err();
        if !is_poisoned {
            space.delete("x").unwrap();
            assert_eq!((contents(&space), tables(&disk)), (old, held), "after {operations}");
            // No reservation is left.
            ingest(&space, &files).unwrap();
            space.merge().unwrap();
            assert_eq!(space.tree().disk_run_count(), 1);
        }
        drop((space, store));
        let store = appending(&disk, "leveled(ratio=3)").open().unwrap();
        let space = self::space(&store);
        if is_poisoned {
            ingest(&space, &files).unwrap();
        }
        assert_eq!(space.get(key(50)).unwrap().unwrap(), "among");
        assert_eq!(space.get(key(30)).unwrap().unwrap(), "before");
        assert!(store.verify().unwrap().is_empty());
    }
    assert!(failures > 8, "{failures}");
}

/// After a repair all entries have new numbers, above the numbers of earlier exports.
#[test]
fn a_repaired_keyspace_is_newer_than_old_tables() {
    let env = MemEnv::new();
    let store = appending(&env, "tiered(ratio=3)").open().unwrap();
    let space = space(&store);
    for number in 0..50 {
        space.put(key(number), "written").unwrap();
    }
    let file = write_table(&env, "/made", &puts(50..60, 1000, "made"));
    ingest(&space, std::slice::from_ref(&file)).unwrap();
    space.put(key(55), "later").unwrap();
    let expected = contents(&space);
    drop((space, store));
    let saved = Path::new("/saved");
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    repair(&options, DIR, saved).unwrap();
    let store = plain_at(saved, &env).open().unwrap();
    let space = self::space(&store);
    assert_eq!(contents(&space), expected);
    let old = write_table(&env, "/old", &puts(0..60, 900, "old"));
    ingest(&space, &[old]).unwrap();
    assert_eq!(contents(&space), expected);
    assert!(!bytes(&env, &file).is_empty());
}
