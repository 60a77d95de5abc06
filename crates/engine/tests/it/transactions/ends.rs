//! Transactions whose keyspace goes, and transactions that many threads commit.
//!
//! Promised: a commit that writes to a keyspace which was dropped meanwhile, or must find unchanged
//! what it read there, fails and writes nothing anywhere. One that has used a keyspace which was
//! cleared meanwhile is in conflict. Each commit rests on what the one before it has left, whoever
//! made it.
//!
//! What broke: a commit that had read a dropped keyspace for update, or was serializable, did not
//! notice the drop.

use crate::frame::small::small;
use lsmith::env::MemEnv;
use lsmith::{
    Batch, ErrorKind, Isolation, Keyspace, KeyspaceOptions, PersistMode, Store, Transaction,
};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread;

const BOTH: [Isolation; 2] = [Isolation::Snapshot, Isolation::Serializable];

/// What a transaction does with the keyspace that goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    Get,
    GetForUpdate,
    Range,
    Put,
    Delete,
    DeleteRange,
}

const USES: [Use; 6] =
    [Use::Get, Use::GetForUpdate, Use::Range, Use::Put, Use::Delete, Use::DeleteRange];

impl Use {
    fn make(self, transaction: &mut Transaction, space: &Keyspace) -> lsmith::Result<()> {
        match self {
            Use::Get => transaction.get(space, "key").map(drop),
            Use::GetForUpdate => transaction.get_for_update(space, "key").map(drop),
            Use::Range => {
                let mut entries = transaction.range::<&str>(space, ..);
                entries.try_for_each(|entry| entry.map(drop))
            }
            Use::Put => transaction.put(space, "key", "mine"),
            Use::Delete => transaction.delete(space, "key"),
            Use::DeleteRange => transaction.delete_range(space, "k".."l"),
        }
    }

    fn writes(self) -> bool {
        matches!(self, Use::Put | Use::Delete | Use::DeleteRange)
    }

    /// Returns true if the commit depends on the keyspace.
    fn counts(self, isolation: Isolation) -> bool {
        isolation == Isolation::Serializable || self.writes() || self == Use::GetForUpdate
    }
}

fn made(env: &MemEnv, group: Option<&str>) -> (Store, [Keyspace; 2]) {
    let store = small(env).open().unwrap();
    let group = group.map(str::to_string);
    let options = KeyspaceOptions { group, ..KeyspaceOptions::default() };
    let goes = store.keyspace_with("goes", &options).unwrap();
    let stays = store.keyspace("stays").unwrap();
    goes.put("key", "before").unwrap();
    goes.put("other", "before").unwrap();
    stays.put("key", "before").unwrap();
    (store, [goes, stays])
}

fn entries(space: &Keyspace) -> Vec<(String, String)> {
    crate::transactions::commits::pairs(space.iter())
}

/// Asserts that `store` still works, now and in its next life.
fn check_life(env: &MemEnv, store: Store, expected: &str) {
    let stays = store.existing_keyspace("stays").unwrap();
    let mut next = store.transaction(Isolation::Serializable);
    next.get(&stays, "key").unwrap();
    next.put(&stays, "next", "1").unwrap();
    next.commit(PersistMode::SyncData).unwrap();
    drop((store, stays));
    let store = small(env).open().unwrap();
    let stays = store.existing_keyspace("stays").unwrap();
    assert_eq!(stays.get("key").unwrap().unwrap(), expected.as_bytes());
    assert!(stays.contains("next").unwrap());
    assert!(store.verify().unwrap().is_empty());
}

#[test]
fn a_commit_to_a_keyspace_that_was_dropped_writes_nothing() {
    for isolation in BOTH {
        for (used, comes_again) in USES.iter().flat_map(|used| [(*used, false), (*used, true)]) {
            let env = MemEnv::new();
            let (store, [goes, stays]) = made(&env, None);
            let mut open = store.transaction(isolation);
            open.put(&stays, "key", "mine").unwrap();
            used.make(&mut open, &goes).unwrap();
            store.drop_keyspace("goes").unwrap();
            if comes_again {
                store.keyspace("goes").unwrap().put("key", "another").unwrap();
            }
            let what = format!("{isolation:?}, {used:?}, made anew {comes_again}");
            let again = used.make(&mut open, &goes);
            let committed = open.commit(PersistMode::Buffer);
            // A write to it may also be refused at the commit only.
            assert!(used.writes() || again.unwrap_err().kind() == ErrorKind::NotFound, "{what}");
            let expected = match committed {
                Ok(_) => {
                    assert!(!used.writes() && !used.counts(isolation), "{what}");
                    "mine"
                }
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::NotFound, "{what}: {error}");
                    assert!(used.counts(isolation), "{what}: {error}");
                    "before"
                }
            };
            assert_eq!(stays.get("key").unwrap().unwrap(), expected.as_bytes(), "{what}");
            if comes_again {
                let new = store.existing_keyspace("goes").unwrap();
                assert_eq!(entries(&new), [("key".into(), "another".into())], "{what}");
            }
            drop((goes, stays));
            check_life(&env, store, expected);
        }
    }
}

#[test]
fn a_commit_to_a_keyspace_that_was_cleared_is_in_conflict() {
    for isolation in BOTH {
        for (used, group) in USES.iter().flat_map(|used| [(*used, None), (*used, Some("g"))]) {
            let env = MemEnv::new();
            let (store, [goes, stays]) = made(&env, group);
            let mut open = store.transaction(isolation);
            open.put(&stays, "key", "mine").unwrap();
            used.make(&mut open, &goes).unwrap();
            goes.clear().unwrap();
            goes.put("new", "after").unwrap();
            let what = format!("{isolation:?}, {used:?}, {group:?}");
            // It still sees its moment, and what it has written.
            let seen = open.get(&goes, "other").unwrap();
            assert_eq!(seen.as_deref(), Some(&b"before"[..]), "{what}");
            let key = open.get(&goes, "key").unwrap();
            let expected = match used {
                Use::Put => Some(&b"mine"[..]),
                Use::Delete | Use::DeleteRange => None,
                Use::Get | Use::GetForUpdate | Use::Range => Some(&b"before"[..]),
            };
            assert_eq!(key.as_deref(), expected, "{what}");
            let error = open.commit(PersistMode::Buffer).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Conflict, "{what}: {error}");
            assert!(error.to_string().contains(group.unwrap_or("goes")), "{error}");
            assert_eq!(entries(&goes), [("new".into(), "after".into())], "{what}");
            assert_eq!(stays.get("key").unwrap().unwrap(), "before", "{what}");
            drop((goes, stays));
            check_life(&env, store, "before");
        }
    }
}

fn number(value: Option<bytes::Bytes>) -> u64 {
    value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
}

/// Adds one to two counters, which are always equal. Returns the numbers of its commits, and what
/// each has written.
fn count(store: &Store, isolation: Isolation, times: usize) -> Vec<(u64, u64)> {
    let spaces = ["a", "b"].map(|name| store.existing_keyspace(name).unwrap());
    let mut history = Vec::new();
    while history.len() < times {
        let mut transaction = store.transaction(isolation);
        let found = spaces.each_ref().map(|space| number(transaction.get(space, "n").unwrap()));
        assert_eq!(found[0], found[1], "a commit is torn");
        let next = found[0] + 1;
        for space in &spaces {
            transaction.put(space, "n", next.to_be_bytes()).unwrap();
        }
        transaction.put(&spaces[0], format!("{next:06}"), "").unwrap();
        match transaction.commit(PersistMode::Buffer) {
            Ok(seq) => history.push((seq.0, next)),
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
    history
}

/// In the order of their numbers, commits count one by one.
#[test]
fn commits_of_many_threads_follow_one_another() {
    for isolation in BOTH {
        let env = MemEnv::new();
        let store = small(&env).lockstep(false).threads(2).open().unwrap();
        let spaces = ["a", "b"].map(|name| store.keyspace(name).unwrap());
        let large =
            KeyspaceOptions { memtable_bytes: Some(64 << 20), ..KeyspaceOptions::default() };
        let other = store.keyspace_with("other", &large).unwrap();
        let (mut history, over) = (BTreeMap::new(), AtomicBool::new(false));
        thread::scope(|scope| {
            // Whoever commits waits for this, and finds others waiting with the same value.
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    let mut batch = Batch::new();
                    (0..1000_u32).for_each(|key| batch.put(&other, key.to_be_bytes(), ""));
                    store.write(batch, PersistMode::Buffer).unwrap();
                }
            });
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| count(&store, isolation, 150))).collect();
            let ended: Vec<_> = threads.into_iter().map(|thread| thread.join()).collect();
            over.store(true, SeqCst);
            for (seq, next) in ended.into_iter().flat_map(Result::unwrap) {
                assert_eq!(history.insert(seq, next), None, "two commits have one number");
            }
        });
        assert!(history.values().copied().eq(1..=600), "{isolation:?}: {history:?}");
        assert_eq!(spaces[0].iter().count(), 601);
        drop((store, spaces, other));
        let store = small(&env).open().unwrap();
        for name in ["a", "b"] {
            let space = store.existing_keyspace(name).unwrap();
            assert_eq!(number(space.get("n").unwrap()), 600);
        }
    }
}
