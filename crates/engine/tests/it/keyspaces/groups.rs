//! Keyspaces of one group: they merge together, and stay apart in everything else.

use crate::frame::small::{DIR, small};
use lsmith::env::{Env, Loss, MemEnv};
use lsmith::{
    Batch, Builder, ErrorKind, Event, KEY_BYTES_MAX, Keyspace, KeyspaceOptions, Observer,
    PersistMode, RepairOptions, Store,
};
use lsmith_tree::Tree;
use parking_lot::Mutex;
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

const MEMBERS: [&str; 3] = ["rows", "by_date", "by_city"];

fn builder(env: &MemEnv) -> Builder {
    small(env).memtable_bytes(3000).policy("minlatency(k=3)")
}

fn in_group(group: &str) -> KeyspaceOptions {
    KeyspaceOptions { group: Some(group.into()), ..KeyspaceOptions::default() }
}

fn members(store: &Store) -> [Keyspace; 3] {
    MEMBERS.map(|name| store.keyspace_with(name, &in_group("orders")).unwrap())
}

/// Writes batch `number`: a row, its key in one index, and one of ten in the other.
fn write(store: &Store, [rows, by_date, by_city]: &[Keyspace; 3], number: u64) {
    let key = format!("{:06}", number * 7919 % 1_000_000);
    let mut batch = Batch::new();
    batch.put(rows, &key, [b'v'; 60]);
    batch.put(by_date, &key, "");
    if number.is_multiple_of(10) {
        batch.put(by_city, &key, "");
    }
    store.write(batch, PersistMode::Buffer).unwrap();
}

/// Returns the entries of each keyspace in each run, oldest run first. Asserts that no table holds
/// entries of two keyspaces.
fn entries_by_run(keyspace: &Keyspace) -> Vec<[u64; 3]> {
    entries_of(&keyspace.tree())
}

fn entries_of(tree: &Tree) -> Vec<[u64; 3]> {
    let mut runs = Vec::new();
    for run in tree.disk_runs().rev() {
        let mut entries = [0; 3];
        for slice in run.slices() {
            let range = slice.range();
            let first = range.start[0];
            let end = range.end.as_ref().unwrap();
            assert!(end[0] == first || **end == [first + 1], "{tree}");
            entries[usize::from(first)] += slice.size().entries;
        }
        runs.push(entries);
    }
    runs
}

/// Asserts that each run covers the same batches in all keyspaces. Returns the number of batches.
fn assert_corresponding(runs: &[[u64; 3]]) -> u64 {
    let tens = |until: u64| until.div_ceil(10);
    let mut next = 0;
    for [rows, by_date, by_city] in runs {
        assert_eq!((by_date, *by_city), (rows, tens(next + rows) - tens(next)), "{runs:?}");
        next += rows;
    }
    next
}

#[test]
fn each_run_covers_the_same_writes_in_all_keyspaces() {
    for lockstep in [true, false] {
        let env = MemEnv::new();
        let store = builder(&env).lockstep(lockstep).open().unwrap();
        let group = members(&store);
        let mut runs_max = 0;
        for number in 0..3000 {
            write(&store, &group, number);
            let runs = entries_by_run(&group[0]);
            assert_corresponding(&runs);
            runs_max = runs_max.max(runs.len());
        }
        store.flush().unwrap();
        let runs = entries_by_run(&group[1]);
        assert_eq!(assert_corresponding(&runs), 3000);
        assert!(runs_max >= 3 && group[0].tree().flushes() > 60, "{runs:?}");
        let stats = group[2].stats();
        assert_eq!((stats.entries, stats.group.as_deref()), (300, Some("orders")));
        assert_eq!(group[0].stats().entries, 3000);
        group[0].merge().unwrap();
        assert_eq!(entries_by_run(&group[0]), [[3000, 3000, 300]]);
        assert!(store.verify().unwrap().is_empty());
    }
}

/// Keeps the tree after each commit.
#[derive(Debug, Default)]
struct Trees(Mutex<Vec<Tree>>);

impl Observer for Trees {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { tree, .. } = event {
            self.0.lock().push(Tree::clone(tree));
        }
    }
}

/// A merge of a lone keyspace would commit its parts one by one.
#[test]
fn large_merge_in_parts_is_committed_for_all_keyspaces_at_once() {
    let trees = Arc::new(Trees::default());
    let env = MemEnv::new();
    let builder = Store::builder(DIR).env(Arc::new(env)).policy("none").threads(2);
    let builder = builder.split_bytes(50_000).memtable_bytes(150_000);
    let store = builder.observer(Arc::clone(&trees) as _).open().unwrap();
    let group = members(&store);
    (0..8000).for_each(|number| write(&store, &group, number));
    store.flush().unwrap();
    let flushes = group[0].tree().flushes();
    group[0].merge().unwrap();
    assert_eq!(entries_by_run(&group[0]), [[8000, 8000, 800]]);
    let tables = group[0].tree().disk_runs().next().unwrap().slices().len();
    assert!(tables > 6, "{tables} tables");
    let trees = trees.0.lock();
    for tree in trees.iter() {
        assert_corresponding(&entries_of(tree));
    }
    assert_eq!(trees.len() as u64, flushes + 1);
}

#[test]
fn quiet_keyspace_of_a_group_has_no_table_in_a_run_and_keeps_no_log() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let [rows, by_date, by_city] = members(&store);
    by_city.put("rome", "").unwrap();
    for number in 0..400_u64 {
        rows.put(number.to_be_bytes(), [1; 50]).unwrap();
    }
    by_date.put("1999", "").unwrap();
    store.flush().unwrap();
    let runs = entries_by_run(&rows);
    assert_eq!(runs.iter().map(|run| run[0]).sum::<u64>(), 400);
    assert_eq!((runs[0][2], runs.last().unwrap()[1]), (1, 1), "{runs:?}");
    assert!(runs.len() > 1 && runs.last().unwrap()[2] == 0, "{runs:?}");
    assert_eq!([&by_date, &by_city].map(|space| space.stats().runs), [1, 1]);
    let names = env.list(Path::new(DIR)).unwrap();
    assert_eq!(names.iter().filter(|name| name.ends_with(".wal")).count(), 1, "{names:?}");
}

/// A group has the same tree as one keyspace that takes the same writes.
#[test]
fn group_merges_like_one_keyspace_with_all_its_entries() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let group = members(&store);
    let alone = MemEnv::new();
    let one = builder(&alone).open().unwrap();
    let together = one.keyspace("together").unwrap();
    for number in 0..2000_u64 {
        let member = [0, 0, 0, 1, 1, 2][(number % 6) as usize];
        let key = format!("{:03}", number * 7919 % 997);
        let value = vec![7; (number * 31 % 90) as usize];
        if number.is_multiple_of(11) {
            group[member].delete(&key).unwrap();
            together.delete([&[member as u8], key.as_bytes()].concat()).unwrap();
        } else {
            group[member].put(&key, &value).unwrap();
            together.put([&[member as u8], key.as_bytes()].concat(), &value).unwrap();
        }
        let sizes = |keyspace: &Keyspace| {
            let tree = keyspace.tree();
            tree.runs().map(|(level, run)| (level, run.id(), run.size())).collect::<Vec<_>>()
        };
        assert_eq!(sizes(&group[0]), sizes(&together), "write {number}");
    }
    assert!(group[0].tree().flushes() > 20);
}

/// Merges keep tables where keys come in order. They cut the tables between them at keyspaces too.
///
/// What broke: a table that began behind a kept one reached into the next keyspace, which then
/// lacked its first entries.
#[test]
fn tables_between_kept_ones_hold_one_keyspace_each() {
    for policy in ["constant(k=1)", "minlatency(k=3)", "tiered(ratio=2)"] {
        let env = MemEnv::new();
        let store = builder(&env).policy(policy).open().unwrap();
        let group = members(&store);
        let [rows, by_date, _] = &group;
        for number in 0..100_u64 {
            rows.put(number.to_be_bytes(), [1; 50]).unwrap();
            by_date.put("newest", number.to_be_bytes()).unwrap();
            store.flush().unwrap();
            entries_by_run(rows);
            let newest = by_date.get("newest").unwrap();
            assert_eq!(newest.as_deref(), Some(&number.to_be_bytes()[..]), "{policy}");
        }
        let tree = rows.tree();
        let reused = tree.levels().iter().map(|level| level.counters().bytes_reused);
        assert!(reused.sum::<u64>() > 1000, "{policy}: {tree}");
        let counts = group.each_ref().map(|space| space.iter().count());
        assert_eq!(counts, [100, 1, 0], "{policy}");
        assert!(store.verify().unwrap().is_empty());
    }
}

#[test]
fn keyspaces_of_a_group_do_not_see_each_other() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let group = members(&store);
    let before = store.snapshot();
    let keys: [&[u8]; 5] = [b"\0", b"a", b"b", b"\xff", b"\xff\xff\xff"];
    for (number, space) in group.iter().enumerate() {
        for key in keys {
            space.put(key, [number as u8]).unwrap();
        }
    }
    for flushed in [false, true] {
        if flushed {
            store.flush().unwrap();
        }
        for (number, space) in group.iter().enumerate() {
            let found = |bounds: (Bound<&[u8]>, Bound<&[u8]>)| {
                let entries = space.range::<&[u8]>(bounds).map(|entry| entry.unwrap());
                entries.map(|(key, value)| (key.to_vec(), value.to_vec())).collect::<Vec<_>>()
            };
            let expected = |keys: &[&[u8]]| {
                keys.iter().map(|key| (key.to_vec(), vec![number as u8])).collect::<Vec<_>>()
            };
            use Bound::{Excluded, Included, Unbounded};
            assert_eq!(found((Unbounded, Unbounded)), expected(&keys));
            assert_eq!(found((Excluded(b"a"), Unbounded)), expected(&keys[2..]));
            assert_eq!(found((Included(b"a"), Included(b"b"))), expected(&keys[1..3]));
            assert_eq!(found((Unbounded, Excluded(b"b"))), expected(&keys[..2]));
            assert_eq!(found((Included(b""), Excluded(b""))), expected(&[]));
            let mut last = space.prefix(b"\xff");
            assert_eq!(last.next_back_ref().unwrap().unwrap().0, b"\xff\xff\xff");
            assert_eq!(last.next_ref().unwrap().unwrap().0, b"\xff");
            assert_eq!(space.iter().rev().count(), 5);
            assert_eq!(space.get(b"a").unwrap().as_deref(), Some(&[number as u8][..]));
            assert_eq!((space.get("").unwrap(), space.get("c").unwrap()), (None, None));
            assert_eq!(before.get(space, "a").unwrap(), None);
            assert_eq!(store.snapshot().range(space, "a".."c").count(), 2);
        }
    }
    group[1].delete("a").unwrap();
    assert_eq!([0, 1, 2].map(|at: usize| group[at].contains("a").unwrap()), [true, false, true]);
}

#[test]
fn bulk_load_of_a_keyspace_is_a_run_in_which_the_others_have_nothing() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let group = members(&store);
    group[0].set_merge_policy("none").unwrap();
    group[1].put("k", "old").unwrap();
    group[2].put("k", "other").unwrap();
    let mut load = group[1].bulk_load().unwrap();
    assert_eq!(load.put("", "").unwrap_err().kind(), ErrorKind::InvalidArgument);
    load.put("a", "1").unwrap();
    load.put("k", "new").unwrap();
    assert_eq!(load.put("c", "").unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert_eq!(load.finish().unwrap().entries, 2);
    assert_eq!(group[1].get("k").unwrap().as_deref(), Some(&b"new"[..]));
    assert_eq!(group[2].get("k").unwrap().as_deref(), Some(&b"other"[..]));
    assert_eq!(entries_by_run(&group[0]).last(), Some(&[0, 2, 0]));
}

#[test]
fn group_is_there_after_reopening_and_after_accidents() {
    let mut env = MemEnv::new();
    let mut number = 0;
    for life in 0..6 {
        let store = builder(&env).open().unwrap();
        let group = members(&store);
        let found = group[0].iter().count() as u64;
        assert_eq!(found, number, "life {life}");
        for _ in 0..100 + 37 * life {
            write(&store, &group, number);
            number += 1;
        }
        let runs = entries_by_run(&group[0]);
        assert_corresponding(&runs);
        env = match life % 3 {
            0 => env.process_crash_clone(),
            1 => {
                store.persist(PersistMode::SyncAll).unwrap();
                env.power_loss(life, Loss::ALL[life as usize % Loss::ALL.len()])
            }
            _ => {
                drop((group, store));
                env
            }
        };
    }
    let store = Store::builder(DIR).env(Arc::new(env)).read_only(true).open().unwrap();
    assert_eq!(store.keyspaces(), ["by_city", "by_date", "rows"]);
    let rows = store.existing_keyspace("rows").unwrap();
    assert_eq!((rows.group(), rows.name()), (Some("orders"), "rows"));
    assert_eq!(rows.iter().count() as u64, number);
    assert!(store.verify().unwrap().is_empty());
}

fn refusal<T>(result: lsmith::Result<T>) -> String {
    let Err(error) = result else { panic!("expected a refusal") };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    error.to_string()
}

#[test]
fn options_that_contradict_a_group_are_refused() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let [rows, ..] = members(&store);
    store.keyspace("alone").unwrap();
    let with = |name, options: KeyspaceOptions| refusal(store.keyspace_with(name, &options));
    assert_eq!(
        with("alone", in_group("orders")),
        "the keyspace `alone` exists outside of groups, not in the group `orders`: only a new \
         keyspace can join one"
    );
    assert_eq!(
        with("rows", in_group("people")),
        "the keyspace `rows` exists in the group `orders`, not in the group `people`: a keyspace \
         stays in its group"
    );
    let policy = KeyspaceOptions { policy: Some("tiered(ratio=4)".into()), ..in_group("orders") };
    for name in ["rows", "new"] {
        assert_eq!(
            with(name, policy.clone()),
            "the group `orders` exists with the policy minlatency(k=3), not tiered(ratio=4): \
             `Keyspace::set_merge_policy` changes it"
        );
    }
    let memtable = KeyspaceOptions { memtable_bytes: Some(1000), ..in_group("orders") };
    assert_eq!(
        with("new", memtable),
        "the group `orders` exists with memtables of 3000 bytes, not 1000: only a new group can \
         choose their size"
    );
    let of_group = "`orders` is a group: expected the name of a keyspace, such as those of the \
                    group, `rows`, `by_date`, `by_city`";
    assert_eq!(refusal(store.keyspace("orders")), of_group);
    assert_eq!(refusal(store.existing_keyspace("orders")), of_group);
    for group in ["alone", "rows", "new"] {
        let message = with("new", in_group(group));
        assert!(message.contains("expected a name of its own"), "{message}");
    }
    assert!(with("new", in_group("a b")).contains("expected 1 to 64 letters"));
    let leveled = KeyspaceOptions { policy: Some("leveled(ratio=10)".into()), ..in_group("new") };
    assert_eq!(
        with("first", leveled),
        "the keyspaces of a group merge whole runs: expected a policy of whole runs, such as \
         tiered(ratio=10), found leveled(ratio=10, l0=2, pick=min_overlap)"
    );
    let sweep = refusal(rows.set_merge_policy("sweep(k=4)"));
    assert!(sweep.contains("such as minlatency(k=4), found sweep(k=4"), "{sweep}");
    assert!(refusal(rows.set_merge_policy("choose_best(ratio=10)")).contains("tiered(ratio=10)"));
    rows.set_merge_policy("tiered(ratio=4)").unwrap();
    assert_eq!(store.existing_keyspace("by_city").unwrap().merge_policy(), "tiered(ratio=4)");
    assert_eq!(store.keyspaces(), ["alone", "by_city", "by_date", "rows"]);
}

#[test]
fn keys_and_numbers_of_a_group_have_limits() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let [rows, ..] = members(&store);
    rows.put([b'k'; KEY_BYTES_MAX - 1], "v").unwrap();
    let message = refusal(rows.put([b'k'; KEY_BYTES_MAX], "v"));
    assert!(message.contains("at most 65534 bytes, found 65535"), "{message}");
    assert!(refusal(rows.put("", "v")).contains("found an empty key"));
    let mut batch = Batch::new();
    batch.put(&rows, [b'k'; KEY_BYTES_MAX], "v");
    let message = refusal(store.write(batch, PersistMode::Buffer));
    assert!(message.contains("in keyspace `rows`: expected a key of at most 65534"), "{message}");
    for number in 3..256 {
        store.keyspace_with(&format!("m{number}"), &in_group("orders")).unwrap();
    }
    let last = store.existing_keyspace("m255").unwrap();
    last.put("k", "last").unwrap();
    assert_eq!((last.iter().count(), last.iter().rev().count()), (1, 1));
    let message = refusal(store.keyspace_with("more", &in_group("orders")));
    assert_eq!(message, "the group `orders` has 256 keyspaces: expected at most 256");
}

#[test]
fn repair_saves_all_keyspaces_of_a_group() {
    let env = MemEnv::new();
    let store = builder(&env).open().unwrap();
    let group = members(&store);
    (0..500).for_each(|number| write(&store, &group, number));
    store.flush().unwrap();
    (500..520).for_each(|number| write(&store, &group, number));
    drop((group, store));
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    lsmith::repair(&options, DIR, "/saved").unwrap();
    let store = Store::builder("/saved").env(Arc::new(env)).open().unwrap();
    let saved = members(&store);
    assert_eq!([0, 1, 2].map(|at: usize| saved[at].iter().count()), [520, 520, 52]);
    assert_eq!(saved[1].merge_policy(), "minlatency(k=3)");
}
