//! Range deletes, feature by feature. The model test mixes them with all else.

use crate::frame::small::{open, small};
use lsmith::env::{Env, Loss, MemEnv};
use lsmith::inspect::{Content, LogFile};
use lsmith::{
    Batch, ErrorKind, IngestOptions, Keyspace, KeyspaceOptions, PersistMode, TableWriter,
    TableWriterOptions,
};
use std::path::Path;
use std::sync::Arc;

fn number(n: u64) -> [u8; 8] {
    n.to_be_bytes()
}

fn fill(space: &Keyspace, numbers: impl IntoIterator<Item = u64>) {
    for n in numbers {
        space.put(number(n), format!("value {n}")).unwrap();
    }
}

fn numbers(space: &Keyspace) -> Vec<u64> {
    let of = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
        u64::from_be_bytes(entry.unwrap().0[..].try_into().unwrap())
    };
    let forward: Vec<u64> = space.iter().map(of).collect();
    let backward: Vec<u64> = space.iter().rev().map(of).collect();
    assert!(backward.iter().rev().eq(&forward));
    for n in 0..300 {
        let expected = forward.contains(&n);
        assert_eq!(space.get(number(n)).unwrap().is_some(), expected, "{n}");
    }
    forward
}

#[test]
fn deleted_range_is_gone_in_memory_in_tables_and_after_reopening() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env));
    fill(&space, 0..200);
    space.delete_range(number(50)..number(150)).unwrap();
    fill(&space, [60, 149, 150]);
    let expected: Vec<u64> = (0..50).chain([60, 149]).chain(150..200).collect();
    assert_eq!(numbers(&space), expected);
    drop((space, store));
    let (store, space) = open(small(&env));
    assert_eq!(numbers(&space), expected);
    store.flush().unwrap();
    assert_eq!(numbers(&space), expected);
    drop((space, store));
    let (store, space) = open(small(&env));
    assert_eq!(numbers(&space), expected);
    space.merge().unwrap();
    assert_eq!(numbers(&space), expected);
    assert!(space.tree().range_deletes().is_empty(), "{}", space.tree());
    assert!(store.verify().unwrap().is_empty());
}

/// The first entry of a queue is found without a look at what was taken out before it.
#[test]
fn first_entry_of_a_queue_costs_few_blocks() {
    for policy in ["minlatency(k=2)", "leveled(ratio=4, l0=2, table=8kB)", "tiered(ratio=3)"] {
        let env = MemEnv::new();
        let store = small(&env).policy(policy).memtable_bytes(20_000).open().unwrap();
        let queue = store.keyspace("queue").unwrap();
        for n in 0..20_000 {
            queue.put(number(n), b"twenty bytes of task").unwrap();
            if n % 10 == 0 && n > 500 {
                queue.delete_range(..number(n - 500)).unwrap();
            }
            if n % 500 == 0 && n > 500 {
                let before = store.stats();
                let (first, _) = queue.iter().next().unwrap().unwrap();
                assert_eq!(first, number(n - 500)[..]);
                let blocks = store.stats().scan_blocks - before.scan_blocks;
                assert!(blocks <= 12, "{policy}: {blocks} blocks at {n}");
                let range_deletes = queue.tree().range_deletes().len();
                assert!(range_deletes <= 4, "{policy}: {range_deletes} parts at {n}");
            }
        }
        // What was taken out does not stay on storage.
        store.flush().unwrap();
        let tree = queue.tree();
        assert!(tree.disk_bytes() < 100_000, "{policy}: {tree}");
    }
}

/// Tables whose entries are all deleted go without a read.
#[test]
fn tables_that_nobody_sees_go_unread() {
    let env = MemEnv::new();
    let builder = small(&env).policy("leveled(ratio=4, table=8kB)").memtable_bytes(20_000);
    let (store, space) = open(builder);
    fill(&space, 0..10_000);
    store.flush().unwrap();
    let tables = space.stats().tables;
    assert!(tables > 12, "{}", space.tree());
    let snapshot = store.snapshot();
    space.delete_range(number(100)..number(9_900)).unwrap();
    store.flush().unwrap();
    assert_eq!(space.stats().tables, tables, "the snapshot needs them");
    assert_eq!(snapshot.range::<&[u8]>(&space, ..).count(), 10_000);
    drop(snapshot);
    let before = store.stats();
    space.put(number(5_000), "new").unwrap();
    store.flush().unwrap();
    let after = store.stats();
    assert!(space.stats().tables < 8, "{}", space.tree());
    assert!(after.merge_bytes_read - before.merge_bytes_read < 20_000);
    let dropped = after.bytes_dropped_unread - before.bytes_dropped_unread;
    assert!(dropped > 9_000 * 20, "{dropped}");
    assert_eq!(space.iter().count(), 100 + 1 + 100);
}

/// A queue whose keys ascend is written once. The tombstone of a range delete lies at the old end,
/// and tables would reach from there to the new end, if it were written to them.
#[test]
fn queue_is_moved_down_without_a_merge() {
    let env = MemEnv::new();
    let builder = small(&env).policy("leveled(ratio=4, table=8kB)").memtable_bytes(20_000);
    let (store, space) = open(builder);
    for n in 0..20_000 {
        space.put(number(n), "value").unwrap();
        if n % 500 == 499 && n > 3_000 {
            space.delete_range(number(n - 3_499)..number(n - 2_999)).unwrap();
        }
    }
    let stats = store.stats();
    assert!(stats.flush_bytes > 150_000 && stats.merge_bytes_written == 0, "{stats:?}");
    assert!(stats.bytes_dropped_unread > 300_000, "{stats:?}");
    assert_eq!(numbers(&space), (17_000..20_000).collect::<Vec<u64>>());
}

#[test]
fn each_snapshot_sees_its_own_range_deletes() {
    let (store, space) = open(small(&MemEnv::new()));
    fill(&space, 0..100);
    let mut held = vec![(store.snapshot(), 100)];
    for end in [10, 30, 60] {
        space.delete_range(..number(end)).unwrap();
        held.push((store.snapshot(), 100 - end as usize));
    }
    for round in 0..4 {
        for (snapshot, count) in &held {
            assert_eq!(snapshot.range::<&[u8]>(&space, ..).count(), *count);
            assert_eq!(snapshot.range::<&[u8]>(&space, ..).rev().count(), *count);
            for n in 0..100 {
                let found = snapshot.get(&space, number(n)).unwrap();
                assert_eq!(found.is_some(), n as usize >= 100 - count, "{n}, {count} left");
            }
        }
        match round {
            0 => store.flush().unwrap(),
            1 => space.merge().unwrap(),
            _ => drop(held.swap_remove(0)),
        }
    }
}

#[test]
fn ranges_that_end_before_they_begin_are_refused_and_empty_ones_delete_nothing() {
    let (store, space) = open(small(&MemEnv::new()));
    space.put("b", "1").unwrap();
    let error = space.delete_range("c".."b").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let mut batch = Batch::new();
    batch.put(&space, "a", "2");
    batch.delete_range(&space, "c".."b");
    let error = store.write(batch, PersistMode::Buffer).unwrap_err();
    let message = "write 2 of the batch, a range delete in keyspace `default`: expected a range \
                   that does not end before it begins";
    assert_eq!(error.message(), message);
    space.delete_range("b".."b").unwrap();
    space.delete_range(.."").unwrap();
    space.delete_range("b\0"..).unwrap();
    assert_eq!(space.iter().count(), 1);
    space.delete_range("b"..="b").unwrap();
    assert_eq!(space.iter().count(), 0);
    let long = vec![b'x'; lsmith::KEY_BYTES_MAX];
    space.put(&long, "1").unwrap();
    space.delete_range(&long[..]..=&long[..]).unwrap();
    assert_eq!(space.iter().count(), 0);
    let longer = vec![b'x'; lsmith::KEY_BYTES_MAX + 2];
    space.delete_range(..&longer[..]).unwrap();
    space.delete_range(&longer[..]..).unwrap();
}

#[test]
fn range_delete_of_a_group_covers_one_of_its_keyspaces() {
    let store = small(&MemEnv::new()).open().unwrap();
    let options = KeyspaceOptions { group: Some("both".into()), ..KeyspaceOptions::default() };
    let [one, two] = ["one", "two"].map(|name| store.keyspace_with(name, &options).unwrap());
    for round in 0..3 {
        fill(&one, 0..50);
        fill(&two, 0..50);
        one.delete_range::<&[u8]>(..).unwrap();
        two.delete_range(number(10)..).unwrap();
        if round == 1 {
            store.flush().unwrap();
        }
        assert_eq!((one.iter().count(), two.iter().count()), (0, 10));
        one.merge().unwrap();
        assert_eq!((one.iter().count(), two.iter().count()), (0, 10));
    }
}

/// What a program says that knows of no range deletes: its manifest has no such record.
#[test]
fn a_record_of_the_manifest_tells_of_range_deletes_before_the_first_one() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env));
    let manifest = |env: &MemEnv| {
        let names = env.list(Path::new("/store")).unwrap();
        let name = names.into_iter().find(|name| name.ends_with(".manifest")).unwrap();
        let file = LogFile::open(env, &Path::new("/store").join(name)).unwrap();
        let text = |record: lsmith::inspect::LogRecord| match record.content.unwrap() {
            Content::Text(text) => text,
            other => panic!("{other:?}"),
        };
        file.records().map(text).collect::<String>()
    };
    space.put("a", "1").unwrap();
    assert!(!manifest(&env).contains("deletes_ranges"));
    space.delete_range("a".."b").unwrap();
    space.delete_range("a".."c").unwrap();
    assert_eq!(manifest(&env).matches("deletes_ranges 0\n").count(), 1);
    // The manifest is written anew.
    drop((space, store));
    let store = small(&env).open().unwrap();
    assert_eq!(manifest(&env).matches("deletes_ranges 0\n").count(), 1);
    assert_eq!(store.keyspace("default").unwrap().iter().count(), 0);
}

/// The log has the range delete as long as another keyspace needs the log. It is done with by then,
/// and the entry has forgotten that it is newer.
#[test]
fn replay_skips_range_deletes_that_are_in_the_tree() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let [space, other] = ["default", "other"].map(|name| store.keyspace(name).unwrap());
    other.put("a", "keeps the log").unwrap();
    space.put("k", "1").unwrap();
    space.delete_range("a".."z").unwrap();
    space.flush().unwrap();
    space.put("k", "2").unwrap();
    space.flush().unwrap();
    space.merge().unwrap();
    assert!(space.tree().range_deletes().is_empty(), "{}", space.tree());
    drop((space, other, store));
    let (store, space) = open(small(&env));
    assert_eq!(space.get("k").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(store.keyspace("other").unwrap().iter().count(), 1);
}

/// Memory that stays is copied to a file, so that the start of the log can go.
#[test]
fn spills_do_not_lose_range_deletes() {
    let env = MemEnv::new();
    let open = || small(&env).memtable_bytes(100_000).log_bytes_max(64 << 10).open().unwrap();
    let store = open();
    let policy = Some("choose_best(ratio=4, rate=0.1)".into());
    let options = KeyspaceOptions { policy, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("kept", &options).unwrap();
    let other = store.keyspace("other").unwrap();
    fill(&space, 0..200);
    space.delete_range(number(50)..number(150)).unwrap();
    fill(&space, [60]);
    for n in 0..1000 {
        other.put(number(n), [7; 1000]).unwrap();
    }
    assert!(store.stats().spill_bytes > 0, "memory was copied");
    let expected: Vec<u64> = (0..50).chain([60]).chain(150..200).collect();
    assert_eq!(numbers(&space), expected);
    drop((space, other, store));
    let store = open();
    let space = store.keyspace("kept").unwrap();
    assert_eq!(numbers(&space), expected);
    space.merge().unwrap();
    assert_eq!(numbers(&space), expected);
}

/// A merge may not apply a range delete that power loss can take: what it leaves out is synced.
#[test]
fn power_loss_that_takes_a_range_delete_brings_back_what_it_hid() {
    for later in ["merge", "flush of another keyspace", "flush"] {
        for loss in Loss::ALL {
            let env = MemEnv::new();
            let (store, space) = open(small(&env).policy("none"));
            let other = store.keyspace("other").unwrap();
            for part in [0..10, 10..20, 20..30] {
                fill(&space, part);
                store.flush().unwrap();
            }
            store.persist(PersistMode::SyncAll).unwrap();
            space.delete_range(number(5)..number(25)).unwrap();
            match later {
                "merge" => space.set_merge_policy("tiered(ratio=2)").unwrap(),
                "flush" => store.flush().unwrap(),
                _ => {
                    fill(&other, 0..10);
                    other.flush().unwrap();
                }
            }
            let left = env.process_crash_clone();
            drop((space, other, store));
            let store = small(&left.power_loss(7, loss)).policy("none").open().unwrap();
            let found = numbers(&store.keyspace("default").unwrap());
            let all: Vec<u64> = (0..30).collect();
            let deleted: Vec<u64> = (0..5).chain(25..30).collect();
            assert!(found == all || found == deleted, "{later}, {loss:?}: {found:?}");
            if later == "flush" {
                assert_eq!(found, deleted);
            }
        }
    }
}

/// What arrives says of keys in its range that they have left memory. An opening then skips older
/// range deletes, so these must be in the tree.
#[test]
fn tables_that_arrive_leave_range_deletes_as_they_are() {
    for way in ["ingest", "load", "numbered"] {
        for in_active in [true, false] {
            let env = MemEnv::new();
            let store = small(&env).open().unwrap();
            let keep_numbers = Some(way == "numbered");
            let options = KeyspaceOptions { keep_numbers, ..KeyspaceOptions::default() };
            let space = store.keyspace_with("space", &options).unwrap();
            space.set_merge_policy("none").unwrap();
            fill(&space, 0..30);
            store.flush().unwrap();
            fill(&space, 30..50);
            space.delete_range(number(10)..number(40)).unwrap();
            fill(&space, [20]);
            if !in_active {
                // Seals, and leaves the memtable in memory until the arrival.
                fill(&space, (0..20).map(|n| 100 + n));
            }
            match way {
                "load" => {
                    let mut load = space.bulk_load().unwrap();
                    load.put(number(200), "loaded").unwrap();
                    load.finish().unwrap();
                }
                _ => {
                    let shared: Arc<dyn Env> = Arc::new(env.clone());
                    let table = TableWriterOptions { env: shared, ..Default::default() };
                    let mut writer = TableWriter::create_with("/outside", &table).unwrap();
                    match way {
                        "numbered" => writer.put_at(number(200), "n", store.next_seq()).unwrap(),
                        _ => writer.put(number(200), "ingested").unwrap(),
                    }
                    writer.finish().unwrap();
                    let outside = [Path::new("/outside")];
                    store.ingest(&space, &outside, &IngestOptions::default()).unwrap();
                }
            }
            let expected = numbers(&space);
            assert_eq!(expected[9..13], [9, 20, 40, 41]);
            let left = env.process_crash_clone();
            drop((space, store));
            for env in [env, left] {
                let store = small(&env).open().unwrap();
                let space = store.existing_keyspace("space").unwrap();
                assert_eq!(numbers(&space), expected, "{way} {in_active}");
                store.flush().unwrap();
                space.merge().unwrap();
                assert_eq!(numbers(&space), expected, "{way} {in_active}");
            }
        }
    }
}

/// The number of an entry in a table tells that it is newer than a range delete that is in memory
/// still. A merge must keep it.
#[test]
fn what_arrives_above_a_range_delete_in_memory_keeps_its_number() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env));
    space.set_merge_policy("none").unwrap();
    fill(&space, 0..10);
    store.flush().unwrap();
    space.delete_range(number(100)..number(110)).unwrap();
    for n in [101, 102] {
        let mut load = space.bulk_load().unwrap();
        load.put(number(n), "loaded").unwrap();
        load.finish().unwrap();
        assert_eq!(numbers(&space), (0..10).chain(101..=n).collect::<Vec<_>>());
    }
    // Merges what is on storage. The range delete stays in memory.
    space.set_merge_policy("tiered(ratio=2)").unwrap();
    let expected: Vec<u64> = (0..10).chain([101, 102]).collect();
    assert_eq!(numbers(&space), expected, "{}", space.tree());
    drop((space, store));
    let store = small(&env).open().unwrap();
    assert_eq!(numbers(&store.existing_keyspace("default").unwrap()), expected);
}
