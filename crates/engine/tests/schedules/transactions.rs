//! Transactions of several threads, beside merges, and a checker of their histories.
//!
//! Promised:
//!
//! * A transaction sees every commit that returned before it began, and none that came later than
//!   one moment.
//! * Of two that write the same key, and overlap, the later one fails, unless it is serializable.
//! * Serializable transactions have the effect of one after the other, in the order of their
//!   numbers: each has read what all those before it have left.
//!
//! The checker knows nothing of the store. It gets the reads, writes and numbers of all
//! transactions that committed, and replays them.

use crate::dice::Dice;
use crate::runner::{builder, in_any_order};
use lsmith::env::MemEnv;
use lsmith::{
    Combine, CombineError, ErrorKind, Isolation, Keyspace, KeyspaceOptions, PersistMode, Store,
};
use shuttle::sync::Mutex;
use shuttle::thread;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const KEYS: usize = 4;
const THREADS: usize = 3;

/// Appends operands to the value.
struct Append;

impl Combine for Append {
    fn name(&self) -> &str {
        "append"
    }

    fn combine(
        &self,
        _key: &[u8],
        value: Option<&[u8]>,
        operands: &[&[u8]],
    ) -> Result<Vec<u8>, CombineError> {
        Ok(value.into_iter().chain(operands.iter().copied()).collect::<Vec<_>>().concat())
    }

    fn combine_operands(&self, _key: &[u8], older: &[u8], newer: &[u8]) -> Option<Vec<u8>> {
        Some([older, newer].concat())
    }
}

/// What a transaction read: a key, or all keys, with what it found.
#[derive(Debug)]
enum Read {
    Key(String, Option<String>),
    All(BTreeMap<String, String>),
}

/// A transaction that committed.
#[derive(Debug)]
struct Committed {
    isolation: Isolation,
    /// The greatest number of a commit that had returned before it began.
    known: u64,
    /// The moment that it says it has read.
    began: u64,
    number: u64,
    /// In front of its own writes.
    reads: Vec<Read>,
    writes: BTreeMap<String, Option<String>>,
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Runs a few transactions, and notes which of them commit.
fn run(
    store: &Store,
    space: &Keyspace,
    history: &Mutex<Vec<Committed>>,
    newest: &AtomicU64,
    dice: &mut Dice,
) {
    for _ in 0..3 {
        let isolation = *dice.pick(&[Isolation::Snapshot, Isolation::Serializable]);
        let known = newest.load(SeqCst);
        let mut one = store.transaction(isolation);
        let began = one.seq().0;
        let mut reads = Vec::new();
        for _ in 0..dice.below(3) {
            if dice.chance(30) {
                let entries = one.range::<&str>(space, ..);
                let pair =
                    entries.map(|entry| entry.map(|(key, value)| (text(&key), text(&value))));
                reads.push(Read::All(pair.map(Result::unwrap).collect()));
            } else {
                let key = format!("k{}", dice.below(KEYS));
                let found = one.get(space, &key).unwrap().map(|value| text(&value));
                reads.push(Read::Key(key, found));
            }
        }
        let mut writes = BTreeMap::new();
        for _ in 0..1 + dice.below(2) {
            let key = format!("k{}", dice.below(KEYS));
            let value = dice.below(1000).to_string();
            match dice.below(4) {
                0 => one.delete(space, &key).unwrap(),
                1 => one.combine(space, &key, &value).unwrap(),
                _ => one.put(space, &key, &value).unwrap(),
            }
            // A commit leaves what the transaction sees, also of its operands. What it only puts or
            // deletes this does not read.
            let value = one.get(space, &key).unwrap().map(|value| text(&value));
            writes.insert(key, value);
        }
        match one.commit(PersistMode::Buffer) {
            Ok(number) => {
                newest.fetch_max(number.0, SeqCst);
                let number = number.0;
                let committed = Committed { isolation, known, began, number, reads, writes };
                history.lock().unwrap().push(committed);
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        }
    }
}

/// Returns what `commits`, in the order of their numbers, have left up to number `until`.
fn state(commits: &[Committed], until: u64) -> BTreeMap<String, String> {
    let mut state = BTreeMap::new();
    for (key, value) in commits.iter().filter(|one| one.number <= until).flat_map(|one| &one.writes)
    {
        match value {
            Some(value) => drop(state.insert(key.clone(), value.clone())),
            None => drop(state.remove(key)),
        }
    }
    state
}

fn has_read(one: &Committed, state: &BTreeMap<String, String>) -> bool {
    one.reads.iter().all(|read| match read {
        Read::Key(key, found) => state.get(key) == found.as_ref(),
        Read::All(found) => state == found,
    })
}

/// Checks a history, with `commits` in the order of their numbers.
fn check(commits: &[Committed]) {
    for one in commits {
        assert!(one.known <= one.began && one.began < one.number, "{one:?}");
        assert!(has_read(one, &state(commits, one.began)), "no moment: {one:?}");
        let overlaps = |other: &&Committed| {
            let is_first_to_win = one.isolation == Isolation::Snapshot;
            is_first_to_win && one.began < other.number && other.number < one.number
        };
        for other in commits.iter().filter(overlaps) {
            let both = other.writes.keys().find(|key| one.writes.contains_key(*key));
            assert!(both.is_none(), "both wrote {both:?}: {other:?} {one:?}");
        }
        if one.isolation == Isolation::Serializable {
            assert!(has_read(one, &state(commits, one.number - 1)), "not in a row: {one:?}");
        }
    }
}

fn program(dice: &mut Dice) {
    let env = MemEnv::new();
    let builder = builder(&env, dice).operator(Append);
    let store = builder.clone().open().unwrap();
    let operator = Some("append".into());
    let options = KeyspaceOptions { operator, ..KeyspaceOptions::default() };
    let space = store.keyspace_with("a", &options).unwrap();
    let history: Arc<Mutex<Vec<Committed>>> = Arc::new(Mutex::new(Vec::new()));
    let newest = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..THREADS)
        .map(|_| {
            let (store, space, mut dice) = (store.clone(), space.clone(), Dice::new(dice.number()));
            let (history, newest) = (Arc::clone(&history), Arc::clone(&newest));
            thread::spawn(move || run(&store, &space, &history, &newest, &mut dice))
        })
        .collect();
    for _ in 0..2 {
        match dice.below(3) {
            0 => store.flush().unwrap(),
            1 => space.merge().unwrap(),
            _ => thread::yield_now(),
        }
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let mut commits = std::mem::take(&mut *history.lock().unwrap());
    commits.sort_by_key(|one| one.number);
    check(&commits);
    drop((store, space));
    let store = builder.open().unwrap();
    let space = store.existing_keyspace("a").unwrap();
    let pair = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
        let (key, value) = entry.unwrap();
        (text(&key), text(&value))
    };
    let left: BTreeMap<String, String> = space.iter().map(pair).collect();
    assert!(left == state(&commits, u64::MAX), "{left:?}");
}

#[test]
fn histories_of_transactions_hold_in_any_order_of_events() {
    in_any_order(300, program);
}

/// The checker finds what it is for.
mod checker {
    use super::*;

    fn commit(began: u64, number: u64, reads: Vec<Read>, writes: &[(&str, &str)]) -> Committed {
        let pair = |(key, value): &(&str, &str)| (key.to_string(), Some(value.to_string()));
        Committed {
            isolation: Isolation::Serializable,
            known: 0,
            began,
            number,
            reads,
            writes: writes.iter().map(pair).collect(),
        }
    }

    fn key(key: &str, found: Option<&str>) -> Read {
        Read::Key(key.into(), found.map(str::to_string))
    }

    #[test]
    fn a_history_in_a_row_holds() {
        check(&[
            commit(0, 1, vec![key("a", None)], &[("a", "1")]),
            commit(1, 2, vec![key("a", Some("1")), key("b", None)], &[("b", "2")]),
        ]);
    }

    #[test]
    #[should_panic(expected = "both wrote")]
    fn a_lost_update_is_found() {
        // Under `Serializable` neither has read anything, so that they are in a row.
        let one = |number, value| Committed {
            isolation: Isolation::Snapshot,
            ..commit(0, number, vec![], &[("a", value)])
        };
        check(&[one(1, "1"), one(2, "2")]);
    }

    #[test]
    #[should_panic(expected = "not in a row")]
    fn write_skew_is_found() {
        let reads = || vec![key("a", None), key("b", None)];
        check(&[commit(0, 1, reads(), &[("a", "1")]), commit(0, 2, reads(), &[("b", "2")])]);
    }

    #[test]
    #[should_panic(expected = "not in a row")]
    fn a_phantom_is_found() {
        let all = || vec![Read::All(BTreeMap::new())];
        check(&[commit(0, 1, vec![], &[("a", "1")]), commit(0, 2, all(), &[("b", "2")])]);
    }

    #[test]
    #[should_panic(expected = "no moment")]
    fn a_read_of_two_moments_is_found() {
        let reads = vec![key("a", None), key("b", Some("1"))];
        check(&[
            commit(0, 1, vec![], &[("a", "1"), ("b", "1")]),
            commit(1, 2, reads, &[("c", "2")]),
        ]);
    }
}
