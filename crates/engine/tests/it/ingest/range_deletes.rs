//! Tables from outside that have range deletes.
//!
//! Promised: a range delete of a table hides what the keyspace has in its range, and nothing of the
//! tables that come with it; if it has a number, what has smaller numbers, wherever that is and
//! whenever it comes. That holds after flushes and merges, and in each life.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{POLICIES, restless};
use crate::frame::small::{DIR, plain, plain_at, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{
    ErrorKind, IngestOptions, Keyspace, KeyspaceOptions, SeqNo, Store, TableWriter,
    TableWriterOptions,
};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

fn writer(env: &MemEnv, path: &str) -> TableWriter {
    let options =
        TableWriterOptions { env: Arc::new(env.clone()), block_bytes: 100, ..Default::default() };
    TableWriter::create_with(path, &options).unwrap()
}

fn keeping(store: &Store) -> Keyspace {
    let options = KeyspaceOptions { keep_numbers: Some(true), ..Default::default() };
    store.keyspace_with("keeping", &options).unwrap()
}

fn content(space: &Keyspace) -> String {
    let pairs = space.iter().map(Result::unwrap);
    let text = |bytes: bytes::Bytes| String::from_utf8(bytes.to_vec()).unwrap();
    pairs.map(|(key, value)| text(key) + &text(value)).collect::<Vec<_>>().join(" ")
}

/// Asserts that `space` has `expected` in this life and in the next, after a flush and a merge.
fn check(env: &MemEnv, store: Store, space: Keyspace, expected: &str) {
    let name = space.name().to_string();
    assert_eq!(content(&space), expected);
    drop((space, store));
    for env in [env.process_crash_clone(), env.crash_clone(1, 0.0)] {
        let store = small(&env).open().unwrap();
        let space = store.existing_keyspace(&name).unwrap();
        assert_eq!(content(&space), expected);
        store.flush().unwrap();
        assert_eq!(content(&space), expected);
        space.merge().unwrap();
        assert_eq!(content(&space), expected);
        assert_eq!(store.verify().unwrap().len(), 0);
    }
}

#[test]
fn range_deletes_without_numbers_hide_what_was_there_and_no_table_of_the_call() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let store = small(&env).policy(policy).open().unwrap();
        let space = store.keyspace("a").unwrap();
        for key in ["a", "c", "e", "g", "i"] {
            space.put(key, "0").unwrap();
        }
        store.flush().unwrap();
        ["b", "d", "f", "h"].iter().for_each(|key| space.put(key, "0").unwrap());
        let mut one = writer(&env, "/one.table");
        one.delete_range("c".."f").unwrap();
        one.put("d", "1").unwrap();
        one.delete_range("h"..).unwrap();
        one.delete_range("x".."x").unwrap();
        assert_eq!(one.finish().unwrap().entries, 1);
        let mut two = writer(&env, "/two.table");
        two.put("e", "1").unwrap();
        two.put("z", "1").unwrap();
        two.finish().unwrap();
        let before = store.snapshot();
        let files = ["/one.table", "/two.table"];
        store.ingest(&space, &files, &IngestOptions::default()).unwrap();
        assert_eq!(content(&space), "a0 b0 d1 e1 f0 g0 z1", "{policy}");
        assert_eq!(before.iter(&space).count(), 9, "{policy}");
        space.put("c", "2").unwrap();
        drop(before);
        check(&env, store, space, "a0 b0 c2 d1 e1 f0 g0 z1");
    }
}

#[test]
fn range_deletes_with_numbers_hide_what_is_older() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let store = small(&env).policy(policy).open().unwrap();
        let space = keeping(&store);
        let mut first = writer(&env, "/first.table");
        for (key, seq) in [("a", 100), ("b", 200), ("c", 300), ("d", 400)] {
            first.put_at(key, "1", SeqNo(seq)).unwrap();
        }
        first.finish().unwrap();
        store.ingest(&space, &["/first.table"], &IngestOptions::default()).unwrap();
        let mut second = writer(&env, "/second.table");
        second.delete_range_at("a".."d", SeqNo(250)).unwrap();
        second.put_at("a", "2", SeqNo(251)).unwrap();
        second.put_at("b", "2", SeqNo(240)).unwrap();
        second.finish().unwrap();
        let before = store.snapshot();
        store.ingest(&space, &["/second.table"], &IngestOptions::default()).unwrap();
        assert_eq!(content(&space), "a2 c1 d1", "{policy}");
        assert_eq!(before.iter(&space).count(), 4, "{policy}");
        // What comes later and is older is hidden too, or refused once the range delete is done.
        let mut third = writer(&env, "/third.table");
        third.put_at("aa", "3", SeqNo(249)).unwrap();
        third.put_at("bb", "3", SeqNo(252)).unwrap();
        third.finish().unwrap();
        let third = store.ingest(&space, &["/third.table"], &IngestOptions::default());
        drop(before);
        space.put("b", "4").unwrap();
        let expected = match third {
            Ok(_) => "a2 b4 bb3 c1 d1",
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
                "a2 b4 c1 d1"
            }
        };
        check(&env, store, space, expected);
    }
}

/// A merge forgets a range delete that has nothing left to hide. What is older and comes then would
/// be visible, so it is refused, as what a dropped deletion could have hidden is.
#[test]
fn what_is_older_than_a_range_delete_that_is_done_does_not_come_back() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let space = keeping(&store);
    space.put("b", "1").unwrap();
    let mut second = writer(&env, "/second.table");
    second.delete_range_at("a".."d", SeqNo(250)).unwrap();
    second.put_at("z", "2", SeqNo(251)).unwrap();
    second.finish().unwrap();
    store.ingest(&space, &["/second.table"], &IngestOptions::default()).unwrap();
    space.merge().unwrap();
    assert_eq!(content(&space), "z2");
    let mut third = writer(&env, "/third.table");
    third.put_at("c", "3", SeqNo(200)).unwrap();
    third.finish().unwrap();
    match store.ingest(&space, &["/third.table"], &IngestOptions::default()) {
        Ok(_) => {}
        Err(error) => assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}"),
    }
    check(&env, store, space, "z2");
}

#[test]
fn what_breaks_a_rule_is_refused() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let space = store.keyspace("a").unwrap();
    let refused = |result: lsmith::Result<()>| {
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    };
    let long = vec![b'k'; lsmith::KEY_BYTES_MAX + 2];
    let mut one = writer(&env, "/one.table");
    refused(one.delete_range("b".."a"));
    one.delete_range(&long[..]..).unwrap();
    refused(one.delete_range_at("a".."b", SeqNo(0)));
    one.delete_range("a".."b").unwrap();
    refused(one.put_at("k", "v", SeqNo(7)));
    refused(one.delete_range_at("a".."b", SeqNo(7)));
    refused(one.finish().map(drop));
    let mut two = writer(&env, "/two.table");
    two.put_at("k", "v", SeqNo(7)).unwrap();
    refused(two.delete_range("a".."b"));
    two.delete_range_at("a".."b", SeqNo(7)).unwrap();
    two.finish().unwrap();
    refused(store.ingest(&space, &["/two.table"], &IngestOptions::default()).map(drop));
    let options = KeyspaceOptions {
        keep_numbers: Some(true),
        operator: Some("counter".into()),
        ..Default::default()
    };
    let counters = store.keyspace_with("counters", &options).unwrap();
    refused(store.ingest(&counters, &["/two.table"], &IngestOptions::default()).map(drop));
    let names = env.list(Path::new(DIR)).unwrap();
    assert!(names.iter().all(|name| !name.ends_with(".table")), "{names:?}");
}

/// Every byte of the file is covered: damage is found, and nothing is ingested.
#[test]
fn a_damaged_table_with_range_deletes_is_refused() {
    let env = MemEnv::new();
    let mut table = writer(&env, "/one.table");
    table.delete_range("a".."c").unwrap();
    table.delete_range("e"..).unwrap();
    table.put("b", "1").unwrap();
    let bytes = table.finish().unwrap().table_bytes;
    let store = small(&env).open().unwrap();
    let space = store.keyspace("a").unwrap();
    space.put("a", "0").unwrap();
    for at in 0..bytes {
        env.flip(Path::new("/one.table"), at, 1).unwrap();
        let error = store.ingest(&space, &["/one.table"], &IngestOptions::default()).unwrap_err();
        let kinds = [ErrorKind::Corruption, ErrorKind::Unsupported];
        assert!(kinds.contains(&error.kind()), "{at}: {error}");
        env.flip(Path::new("/one.table"), at, 1).unwrap();
    }
    assert_eq!(content(&space), "a0");
    store.ingest(&space, &["/one.table"], &IngestOptions::default()).unwrap();
    assert_eq!(content(&space), "b1");
}

/// What broke: a merge had cleared a table up to the number of one range delete, and another came
/// with a smaller number. It counted as applied, at once or in the next life, and was forgotten.
#[test]
fn a_range_delete_that_comes_late_is_applied_in_this_life_and_in_the_next() {
    for reopens in [false, true] {
        let env = MemEnv::new();
        let mut store = small(&env).policy("none").open().unwrap();
        let mut space = keeping(&store);
        let mut first = writer(&env, "/first.table");
        first.put_at("a", "1", SeqNo(50)).unwrap();
        first.put_at("x", "1", SeqNo(55)).unwrap();
        first.put_at("y", "1", SeqNo(56)).unwrap();
        first.delete_range_at("x".."y", SeqNo(100)).unwrap();
        first.finish().unwrap();
        store.ingest(&space, &["/first.table"], &IngestOptions::default()).unwrap();
        space.merge().unwrap();
        assert!(space.tree().to_string().contains("cleared 100"), "{}", space.tree());
        let mut late = writer(&env, "/late.table");
        late.put_at("z", "2", SeqNo(200)).unwrap();
        late.delete_range_at("a".."b", SeqNo(60)).unwrap();
        late.finish().unwrap();
        store.ingest(&space, &["/late.table"], &IngestOptions::default()).unwrap();
        assert_eq!(content(&space), "y1 z2");
        if reopens {
            drop((space, store));
            store = small(&env).policy("none").open().unwrap();
            space = store.existing_keyspace("keeping").unwrap();
        }
        // Looks which range deletes of its range are done with.
        space.put("aa", "3").unwrap();
        store.flush().unwrap();
        assert_eq!(content(&space), "aa3 y1 z2", "{}", space.tree());
        check(&env, store, space, "aa3 y1 z2");
    }
}

/// A merge that began before a range delete came late has not applied it, and does not say that it
/// has.
#[test]
fn a_range_delete_that_comes_late_while_a_merge_runs_is_applied() {
    let env = MemEnv::new();
    let (tell, at_filter) = std::sync::mpsc::sync_channel(1);
    let (go, wait) = std::sync::mpsc::sync_channel(1);
    let gate = std::sync::Mutex::new(Some((tell, wait)));
    let filter = move |_: &[u8], _: &[u8]| {
        if let Some((tell, wait)) = gate.lock().unwrap().take() {
            tell.send(()).unwrap();
            wait.recv().unwrap();
        }
        lsmith::Verdict::Keep
    };
    let free = plain(&env).policy("none");
    let store = free.merge_filter("keeping", filter).open().unwrap();
    let space = keeping(&store);
    let ingest = |name: &str, puts: &[(&str, u64)], range_deletes: (&str, &str, u64)| {
        let mut table = writer(&env, name);
        for (key, seq) in puts {
            table.put_at(key, "1", SeqNo(*seq)).unwrap();
        }
        table.delete_range_at(range_deletes.0..range_deletes.1, SeqNo(range_deletes.2)).unwrap();
        table.finish().unwrap();
        store.ingest(&space, &[name], &IngestOptions::default()).unwrap();
    };
    ingest("/first.table", &[("a", 50), ("x", 55), ("y", 56)], ("x", "y", 100));
    std::thread::scope(|scope| {
        let merging = scope.spawn(|| space.merge().unwrap());
        at_filter.recv().unwrap();
        ingest("/late.table", &[("z", 200)], ("a", "b", 60));
        go.send(()).unwrap();
        merging.join().unwrap();
    });
    assert_eq!(content(&space), "y1 z1", "{}", space.tree());
    // Looks which range deletes of its range are done with.
    space.put("aa", "3").unwrap();
    store.flush().unwrap();
    check(&env, store, space, "aa3 y1 z1");
}

/// An export with numbers takes range deletes along. So the other store hides what this one hides.
#[test]
fn an_export_with_numbers_has_range_deletes() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    let space = keeping(&store);
    ["a", "b", "c", "d"].iter().for_each(|key| space.put(key, "0").unwrap());
    let other = plain_at("/other", &env).lockstep(true).open().unwrap();
    let copy = keeping(&other);
    let ship = |name: &str| {
        let mut table = writer(&env, name);
        store.snapshot().export::<&str>(&space, .., &mut table).unwrap();
        table.finish().unwrap();
        // The ingest before has merged the range delete away. Nothing that it hid is in the table.
        other.ingest(&copy, &[name], &IngestOptions::default().allow_resurrect(true)).unwrap();
        assert_eq!(content(&copy), content(&space));
    };
    ship("/first.table");
    space.delete_range("b".."d").unwrap();
    space.put("c", "1").unwrap();
    assert_eq!(content(&space), "a0 c1 d0");
    ship("/second.table");
    store.flush().unwrap();
    space.delete_range("c"..).unwrap();
    ship("/third.table");
    assert_eq!(content(&copy), "a0");
}

type Versions = BTreeMap<u8, Vec<(u64, Option<u8>)>>;

/// Asserts that each key has what its newest entry says that no range delete covers.
fn check_model(space: &Keyspace, versions: &Versions, range_deletes: &[(u8, u8, u64)]) {
    for key in 0..20_u8 {
        let newest = versions.get(&key).and_then(|all| all.iter().max_by_key(|one| one.0));
        let hidden = range_deletes.iter().filter(|(from, to, _)| (from..to).contains(&&key));
        let hidden = hidden.map(|(_, _, seq)| *seq).max().unwrap_or(0);
        let expected = newest.filter(|(seq, _)| *seq >= hidden).and_then(|(_, value)| *value);
        let found = space.get([b'k', key]).unwrap();
        assert_eq!(found.map(|value| value[0]), expected, "key {key}");
    }
}

/// Tables with numbers of their own, range deletes among them, come in any order, beside flushes,
/// merges and new lives. In the end each key has what its newest entry says that no range delete
/// with a greater number covers.
#[test]
fn random_numbers_agree_with_a_plain_model() {
    with_seeds(60, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let open = |dice: &mut Dice| restless(plain(&env), dice).open().unwrap();
        let mut store = open(&mut dice);
        let mut space = keeping(&store);
        let mut versions = Versions::new();
        let mut range_deletes: Vec<(u8, u8, u64)> = Vec::new();
        let mut used = BTreeSet::new();
        for step in 0..40_u64 {
            let name = format!("/{step}.table");
            let mut table = writer(&env, &name);
            // Many are older than what came before, but few much older.
            let mut take = |dice: &mut Dice| loop {
                let seq = 1 + step * 20 + dice.below(60) as u64;
                if used.insert(seq) {
                    return seq;
                }
            };
            let mut new = Versions::new();
            for key in 0..20_u8 {
                if dice.chance(25) {
                    let (seq, value) = (take(&mut dice), dice.below(200) as u8);
                    let value = dice.chance(80).then_some(value);
                    match value {
                        Some(value) => table.put_at([b'k', key], [value], SeqNo(seq)).unwrap(),
                        None => table.delete_at([b'k', key], SeqNo(seq)).unwrap(),
                    }
                    new.entry(key).or_default().push((seq, value));
                }
            }
            let mut deletes = Vec::new();
            for _ in 0..dice.below(3) {
                let (from, seq) = (dice.below(20) as u8, take(&mut dice));
                let to = from + 1 + dice.below(6) as u8;
                table.delete_range_at([b'k', from]..[b'k', to], SeqNo(seq)).unwrap();
                deletes.push((from, to, seq));
            }
            if new.is_empty() {
                continue;
            }
            table.finish().unwrap();
            // Merges by policies drop deletions, and tables that are older are refused then.
            if store.ingest(&space, &[&name], &IngestOptions::default()).is_ok() {
                new.into_iter()
                    .for_each(|(key, more)| versions.entry(key).or_default().extend(more));
                range_deletes.extend(deletes);
            }
            match dice.below(8) {
                0 => store.flush().unwrap(),
                1 => space.merge().unwrap(),
                2 => {
                    drop((space, store));
                    store = open(&mut dice);
                    space = store.existing_keyspace("keeping").unwrap();
                }
                _ => {}
            }
            check_model(&space, &versions, &range_deletes);
        }
        assert!(!range_deletes.is_empty());
    });
}
