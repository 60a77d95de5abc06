//! Snapshots, and changes that sequence numbers do not hide from them.
//!
//! Promised: a snapshot, an iterator or a transaction shows what was there when it began, whatever
//! takes effect later: the output of a merge whose filter drops and changes values, too. It keeps
//! no more than it can read.

use crate::dice::{Dice, with_seeds};
use crate::frame::small::{DIR, fill, plain};
use crate::ingest::numbered::{keeping, write_table};
use crate::store::model::policies;
use lsmith::env::{Env, MemEnv};
use lsmith::{
    ErrorKind, IngestOptions, Isolation, Iter, Keyspace, KeyspaceOptions, PersistMode, Snapshot,
    Store, Verdict,
};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

fn pairs(entries: Iter) -> Vec<(Vec<u8>, Vec<u8>)> {
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// Drops keys that end with `7`, and makes letters great in other values.
fn verdict(key: &[u8], value: &[u8]) -> Verdict {
    match value.iter().any(u8::is_ascii_lowercase) {
        _ if key.ends_with(b"7") => Verdict::Drop,
        true => Verdict::Change(value.to_ascii_uppercase()),
        false => Verdict::Keep,
    }
}

/// A snapshot, what it has shown when it was taken, and an iterator that was made with it.
type Taken = (Snapshot, Vec<(Vec<u8>, Vec<u8>)>, Iter);

/// Snapshots are taken at calls of the filter: in the middle of merges.
#[test]
fn snapshots_taken_while_a_filter_runs_stay_as_they_are() {
    let changed = AtomicUsize::new(0);
    with_seeds(3, |seed| {
        for policy in policies() {
            let mut dice = Dice::new(seed);
            let space: Arc<Mutex<Option<(Store, Keyspace)>>> = Arc::default();
            let taken: Arc<Mutex<Vec<Taken>>> = Arc::default();
            let filter = {
                let (space, taken) = (Arc::clone(&space), Arc::clone(&taken));
                let dice = Mutex::new(Dice::new(seed ^ 7));
                move |key: &[u8], value: &[u8]| {
                    let space = space.lock().unwrap();
                    let mut taken = taken.lock().unwrap();
                    let mut dice = dice.lock().unwrap();
                    if let Some((store, space)) = &*space
                        && dice.chance(1)
                    {
                        if dice.chance(40) {
                            taken.clear();
                        }
                        let snapshot = store.snapshot();
                        let seen = pairs(snapshot.iter(space));
                        let iter = snapshot.iter(space);
                        taken.push((snapshot, seen, iter));
                    }
                    verdict(key, value)
                }
            };
            let env = Arc::new(MemEnv::new());
            let builder = Store::builder(DIR).env(env).memtable_bytes(2000).lockstep(true);
            let store =
                builder.block_bytes(200).policy(&*policy).merge_filter("a", filter).open().unwrap();
            let a = store.keyspace("a").unwrap();
            *space.lock().unwrap() = Some((store.clone(), a.clone()));
            for number in 0..1500 {
                let key = format!("key {:03}", dice.below(300));
                match dice.below(10) {
                    0 => a.delete(key).unwrap(),
                    _ => a.put(key, format!("value {number}")).unwrap(),
                }
                if dice.below(400) == 0 {
                    a.merge().unwrap();
                }
            }
            *space.lock().unwrap() = None;
            for (snapshot, seen, iter) in taken.lock().unwrap().drain(..) {
                let now = pairs(snapshot.iter(&a));
                assert!(now == seen, "{policy}: a snapshot at {} has changed", snapshot.seq());
                assert!(pairs(iter) == seen, "{policy}: an iterator has changed");
                for (key, value) in &seen {
                    assert_eq!(snapshot.get(&a, key).unwrap().as_deref(), Some(&value[..]));
                }
                changed.fetch_add(usize::from(pairs(a.iter()) != seen), SeqCst);
            }
        }
    });
    assert!(changed.load(SeqCst) > 0, "no snapshot was taken");
}

/// A store whose filter, when it sees `key 7` for the first time, says so and waits.
fn gated() -> (Store, Keyspace, Receiver<()>, Sender<()>) {
    let (reached, at_filter) = channel();
    let (go, going) = channel();
    let gate = Mutex::new(Some((reached, going)));
    let filter = move |key: &[u8], value: &[u8]| {
        if key == b"key 7"
            && let Some((reached, going)) = gate.lock().unwrap().take()
        {
            reached.send(()).unwrap();
            going.recv().unwrap();
        }
        verdict(key, value)
    };
    let builder = plain(&MemEnv::new()).policy("constant(k=1)");
    let store = builder.merge_filter("a", filter).open().unwrap();
    let space = store.keyspace("a").unwrap();
    (store, space, at_filter, go)
}

#[test]
fn what_a_filter_drops_is_gone_for_later_snapshots_alone() {
    let (store, space, at_filter, go) = gated();
    space.put("key 6", "six").unwrap();
    space.put("key 7", "seven").unwrap();
    let during = thread::scope(|scope| {
        let merging = scope.spawn(|| space.merge().unwrap());
        at_filter.recv().unwrap();
        let mut transaction = store.transaction(Isolation::Snapshot);
        let read = transaction.get(&space, "key 7").unwrap();
        assert_eq!(read.as_deref(), Some(&b"seven"[..]));
        let during = (store.snapshot(), transaction);
        go.send(()).unwrap();
        merging.join().unwrap();
        during
    });
    let (snapshot, mut transaction) = during;
    assert_eq!(space.get("key 7").unwrap(), None);
    // Nothing was written, so both snapshots have the same number.
    let after = store.snapshot();
    assert_eq!(after.seq(), snapshot.seq());
    assert_eq!(after.get(&space, "key 7").unwrap(), None);
    assert_eq!(after.get(&space, "key 6").unwrap().as_deref(), Some(&b"SIX"[..]));
    let seen = [(b"key 6".to_vec(), b"six".to_vec()), (b"key 7".to_vec(), b"seven".to_vec())];
    assert_eq!(pairs(snapshot.iter(&space)), seen);
    assert_eq!(snapshot.get(&space, "key 7").unwrap().as_deref(), Some(&b"seven"[..]));
    let again = transaction.get(&space, "key 7").unwrap();
    assert_eq!(again.as_deref(), Some(&b"seven"[..]), "a transaction reads one moment");
    assert_eq!(transaction.range::<&str>(&space, ..).count(), 2);
    // Blind writes do not care.
    transaction.put(&space, "key 8", "eight").unwrap();
    transaction.commit(PersistMode::Buffer).unwrap();
}

/// What a filter changes counts as changed for transactions that rely on it.
#[test]
fn what_a_filter_changes_is_in_the_way_of_who_has_read_it() {
    let (store, space, at_filter, go) = gated();
    for key in ["key 5", "key 6", "key 7"] {
        space.put(key, "VALUE").unwrap();
    }
    let begun = thread::scope(|scope| {
        let merging = scope.spawn(|| space.merge().unwrap());
        at_filter.recv().unwrap();
        let begun = [(); 5].map(|()| store.transaction(Isolation::Serializable));
        go.send(()).unwrap();
        merging.join().unwrap();
        begun
    });
    let [mut other_key, mut same_key, mut other_range, mut same_range, mut locked] = begun;
    other_key.get(&space, "key 6").unwrap();
    same_key.get(&space, "key 7").unwrap();
    assert_eq!(other_range.range(&space, "a".."key 7").count(), 2);
    assert_eq!(same_range.range(&space, "a".."key 8").count(), 3);
    locked.get_for_update(&space, "key 7").unwrap();
    let commit = |mut one: lsmith::Transaction| {
        one.put(&space, "zero", "value").unwrap();
        one.commit(PersistMode::Buffer)
    };
    commit(other_key).unwrap();
    commit(other_range).unwrap();
    for one in [same_key, same_range, locked] {
        let refused = commit(one).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Conflict);
        assert!(refused.to_string().contains("key `key 7` of keyspace `a`"), "{refused}");
    }
}

fn tables(env: &MemEnv) -> (usize, u64) {
    let names = env.list(Path::new(DIR)).unwrap();
    let tables = names.iter().filter(|name| name.ends_with("table"));
    let sizes: Vec<u64> =
        tables.map(|name| env.held_bytes(&Path::new(DIR).join(name)).unwrap()).collect();
    (sizes.len(), sizes.iter().sum())
}

/// One snapshot reads one version of a keyspace, however often that is cleared.
#[test]
fn many_clearings_under_one_snapshot_keep_one_version() {
    for group in [None, Some("group".to_string())] {
        let env = MemEnv::new();
        let builder = plain(&env).memtable_bytes(4000);
        let store = builder.lockstep(true).open().unwrap();
        let options = KeyspaceOptions { group, ..KeyspaceOptions::default() };
        let space = store.keyspace_with("a", &options).unwrap();
        fill(&space, 0..200, [0; 50]);
        space.flush().unwrap();
        let snapshot = store.snapshot();
        let seen = pairs(snapshot.iter(&space));
        space.clear().unwrap();
        let (files, bytes) = tables(&env);
        for round in 1..60 {
            fill(&space, 0..200, [round as u8; 50]);
            space.flush().unwrap();
            // A younger snapshot that is gone again keeps nothing.
            drop((round % 5 == 0).then(|| store.snapshot()));
            space.clear().unwrap();
            assert_eq!(tables(&env), (files, bytes), "round {round}");
        }
        assert_eq!(pairs(snapshot.iter(&space)), seen);
        // Each of several snapshots has its own.
        fill(&space, 0..200, [60; 50]);
        space.flush().unwrap();
        let another = store.snapshot();
        space.clear().unwrap();
        fill(&space, 0..200, [61; 50]);
        space.flush().unwrap();
        space.clear().unwrap();
        assert!(tables(&env).1 > bytes);
        assert!(pairs(another.iter(&space)).iter().all(|(_, value)| *value == [60; 50]));
        drop(another);
        assert_eq!(tables(&env), (files, bytes));
        assert_eq!(pairs(snapshot.iter(&space)), seen);
        drop(snapshot);
        assert_eq!(tables(&env).0, 0);
    }
}

#[test]
fn many_arrivals_under_one_snapshot_keep_one_version() {
    let env = MemEnv::new();
    let builder = plain(&env).memtable_bytes(4000);
    let store = builder.policy("constant(k=1)").lockstep(true).open().unwrap();
    let space = store.keyspace_with("a", &keeping()).unwrap();
    fill(&space, 0..200, [0; 50]);
    space.merge().unwrap();
    let snapshot = store.snapshot();
    let seen = pairs(snapshot.iter(&space));
    let mut most = 0;
    for round in 1..40_u64 {
        let entry = |number: u32| {
            let seq = 1000 * round + u64::from(number);
            (number.to_be_bytes().to_vec(), (seq, Some(vec![round as u8; 50])))
        };
        let file = write_table(&env, &format!("/{round}.table"), &(0..200).map(entry).collect());
        store.ingest(&space, &[file], &IngestOptions::default()).unwrap();
        space.merge().unwrap();
        match round {
            1..3 => most = tables(&env).1,
            // Later numbers are longer.
            _ => assert!(tables(&env).1 < most + most / 4, "round {round}: {:?}", tables(&env)),
        }
    }
    assert_eq!(pairs(snapshot.iter(&space)), seen);
}
