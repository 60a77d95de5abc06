//! Transactions that insert and remove: what their callers promise, and what merges make of it.

use crate::frame::contents::get;
use crate::frame::small::{open, small};
use crate::transactions::commits::{conflicts, pairs};
use lsmith::env::MemEnv;
use lsmith::{ErrorKind, Isolation, Keyspace, PersistMode, Store, Transaction};

const BOTH: [Isolation; 2] = [Isolation::Snapshot, Isolation::Serializable];

/// Commits what `change` does, and makes a run of it.
fn run_of(store: &Store, change: impl FnOnce(&mut Transaction) -> lsmith::Result<()>) {
    let mut one = store.transaction(Isolation::Snapshot);
    change(&mut one).unwrap();
    one.commit(PersistMode::SyncData).unwrap();
    store.flush().unwrap();
}

fn entries(space: &Keyspace) -> u64 {
    space.tree().disk_runs().map(|run| run.size().entries).sum()
}

#[test]
fn an_insert_and_its_remove_leave_nothing() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).policy("none"));
    run_of(&store, |one| one.put(&space, "z", "9"));
    run_of(&store, |one| one.put_new_unchecked(&space, "a", "1"));
    assert_eq!(get(&space, "a").as_deref(), Some("1"));
    run_of(&store, |one| one.delete_single_unchecked(&space, "a"));
    assert_eq!((get(&space, "a"), entries(&space)), (None, 3));
    space.merge().unwrap();
    assert_eq!(entries(&space), 1);
    // Within one transaction nothing is written at all.
    let before = store.next_seq();
    let mut one = store.transaction(Isolation::Snapshot);
    one.put_new_unchecked(&space, "b", "1").unwrap();
    one.put(&space, "b", "2").unwrap();
    assert_eq!(one.get(&space, "b").unwrap().as_deref(), Some(&b"2"[..]));
    one.delete_single_unchecked(&space, "b").unwrap();
    assert_eq!((one.get(&space, "b").unwrap(), one.len()), (None, 0));
    assert_eq!(pairs(one.range::<&str>(&space, ..)).len(), 1);
    one.commit(PersistMode::Buffer).unwrap();
    assert_eq!(store.next_seq(), before);
    drop((store, space));
    for env in [&env, &env.crash_clone(1, 0.0)] {
        let (_store, space) = open(small(env).policy("none"));
        assert_eq!(pairs(space.iter()), [("z".to_string(), "9".to_string())]);
    }
}

/// The transaction keeps the last write of each key only. If that were an insert, its remove would
/// cancel it, and what the delete had hidden would return.
#[test]
fn what_a_delete_hid_stays_hidden_below_an_insert() {
    type Hide = fn(&mut Transaction, &Keyspace) -> lsmith::Result<()>;
    let hides: [Hide; 2] =
        [|one, space| one.delete(space, "k"), |one, space| one.delete_single_unchecked(space, "k")];
    for hide in hides {
        for (is_flushed, is_merged) in [(false, false), (true, false), (true, true)] {
            let env = MemEnv::new();
            let (store, space) = open(small(&env).policy("none"));
            run_of(&store, |one| one.put_new_unchecked(&space, "k", "old"));
            let mut one = store.transaction(Isolation::Snapshot);
            hide(&mut one, &space).unwrap();
            one.put_new_unchecked(&space, "k", "new").unwrap();
            one.commit(PersistMode::SyncData).unwrap();
            if is_flushed {
                store.flush().unwrap();
            }
            assert_eq!(get(&space, "k").as_deref(), Some("new"));
            if is_merged {
                space.merge().unwrap();
            }
            run_of(&store, |one| one.delete_single_unchecked(&space, "k"));
            assert_eq!(get(&space, "k"), None);
            drop((store, space));
            let (_store, space) = open(small(&env).policy("none"));
            assert_eq!(get(&space, "k"), None);
            space.merge().unwrap();
            assert_eq!((get(&space, "k"), entries(&space)), (None, 0));
        }
    }
}

/// What was promised when the transaction began must hold when it commits, also if it has taken the
/// write back.
#[test]
fn promises_conflict_with_writes_of_others() {
    for isolation in BOTH {
        let env = MemEnv::new();
        let (store, space) = open(small(&env).policy("none"));
        let [mut one, mut two] = [(); 2].map(|()| store.transaction(isolation));
        one.put_new_unchecked(&space, "a", "1").unwrap();
        two.put_new_unchecked(&space, "a", "2").unwrap();
        one.commit(PersistMode::Buffer).unwrap();
        conflicts(two.commit(PersistMode::Buffer), "a");
        let [mut one, mut two] = [(); 2].map(|()| store.transaction(isolation));
        one.delete_single_unchecked(&space, "a").unwrap();
        two.delete_single_unchecked(&space, "a").unwrap();
        two.put(&space, "other", "2").unwrap();
        one.commit(PersistMode::Buffer).unwrap();
        conflicts(two.commit(PersistMode::Buffer), "a");
        let mut three = store.transaction(isolation);
        three.put_new_unchecked(&space, "a", "3").unwrap();
        three.delete_single_unchecked(&space, "a").unwrap();
        three.put(&space, "other", "3").unwrap();
        space.put("a", "4").unwrap();
        conflicts(three.commit(PersistMode::Buffer), "a");
        assert_eq!(get(&space, "other"), None);
    }
}

#[test]
fn savepoints_take_inserts_and_removes_back() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).policy("none"));
    run_of(&store, |one| one.put_new_unchecked(&space, "old", "1"));
    let mut one = store.transaction(Isolation::Snapshot);
    one.put_new_unchecked(&space, "new", "2").unwrap();
    one.set_savepoint();
    one.delete_single_unchecked(&space, "new").unwrap();
    one.delete_single_unchecked(&space, "old").unwrap();
    one.put_new_unchecked(&space, "third", "3").unwrap();
    let seen = |one: &mut Transaction| {
        let pairs = pairs(one.range::<&str>(&space, ..));
        pairs.into_iter().map(|(key, _)| key).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(seen(&mut one), "third");
    one.rollback_to_savepoint().unwrap();
    assert_eq!(seen(&mut one), "new old");
    one.commit(PersistMode::Buffer).unwrap();
    run_of(&store, |one| one.delete_single_unchecked(&space, "new"));
    run_of(&store, |one| one.delete_single_unchecked(&space, "old"));
    space.merge().unwrap();
    assert_eq!(entries(&space), 0);
}

#[test]
fn keys_that_break_a_rule_are_refused_at_once() {
    let env = MemEnv::new();
    let (store, space) = open(small(&env).policy("none"));
    let mut one = store.transaction(Isolation::Snapshot);
    let long = vec![b'k'; lsmith::KEY_BYTES_MAX + 1];
    let told =
        [one.put_new_unchecked(&space, &long, ""), one.delete_single_unchecked(&space, &long)];
    for error in told.map(Result::unwrap_err) {
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
    assert!(one.is_empty());
}
