//! Random transactions beside other writers.
//!
//! Promised: what a transaction reads and whether it commits is what plain maps say, whatever the
//! isolation, and after a crash too.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{GROUP_POLICIES, POLICIES, restless};
use crate::frame::contents::{Map, contents};
use crate::frame::operators::Append;
use crate::frame::small::plain;
use lsmith::env::MemEnv;
use lsmith::{
    Batch, ErrorKind, Isolation, Keyspace, KeyspaceOptions, PersistMode, Store, Transaction,
};
use std::collections::BTreeSet;

/// What a transaction of the test has written.
#[derive(Clone, Default)]
struct Own {
    written: Map,
    deleted: Vec<Vec<u8>>,
    /// Ranges that it has deleted, before it wrote the keys above.
    erased: Vec<(Vec<u8>, Vec<u8>)>,
    /// Keys whose value does not depend on what lies beneath.
    whole: BTreeSet<Vec<u8>>,
    /// Keys that it has inserted, and not deleted since. A remove of one leaves nothing.
    inserted: BTreeSet<Vec<u8>>,
}

impl Own {
    fn has_erased(&self, key: &[u8]) -> bool {
        self.erased.iter().any(|(start, end)| **start <= *key && *key < **end)
    }
}

/// What the values of inserted keys begin with, in front of operands. Other values do not.
const INSERTED: u8 = b'i';

/// Returns all keys that are written, and one above them.
fn all_keys() -> impl Iterator<Item = Vec<u8>> {
    (0..31).map(|number| format!("{number:02}").into_bytes())
}

/// Returns a value that begins with `first`.
fn value(first: u8, dice: &mut Dice) -> Vec<u8> {
    let length = dice.below(30);
    [vec![first], dice.bytes(length)].concat()
}

/// A transaction of the test: what it sees, and what a plain map says about its commit.
struct Modelled {
    transaction: Transaction,
    isolation: Isolation,
    /// What it must see.
    map: Map,
    own: Own,
    /// What it saw and had written at each savepoint.
    savepoints: Vec<(Map, Own)>,
    /// The keys that others have written since it began, and whether they have changed for sure.
    keys: Vec<(Vec<u8>, bool)>,
    read: Vec<(Vec<u8>, Vec<u8>)>,
    /// The keys that were promised to be absent or present.
    promised: BTreeSet<Vec<u8>>,
}

impl Modelled {
    /// Returns true if a write to `key` by another is in its way.
    fn minds(&self, key: &Vec<u8>) -> bool {
        let is_written = self.own.written.contains_key(key)
            || self.own.deleted.contains(key)
            || self.own.has_erased(key);
        let is_read = self.read.iter().any(|(start, end)| start <= key && key < end);
        let is_promised = self.promised.contains(key);
        match self.isolation {
            Isolation::Snapshot => is_written || is_promised,
            Isolation::Serializable => is_read || is_promised,
        }
    }

    /// Commits, and checks whether it may. Returns the keys that it has written to `map`, and
    /// whether they have changed for sure, or `None` if it was refused.
    fn commit(self, map: &mut Map) -> Option<Vec<(Vec<u8>, bool)>> {
        let own = &self.own;
        let writes = !(own.written.is_empty() && own.deleted.is_empty() && own.erased.is_empty());
        let looks = writes || !self.promised.is_empty();
        let in_the_way = self.keys.iter().filter(|(key, _)| looks && self.minds(key));
        let minds: Vec<bool> = in_the_way.map(|(_, is_sure)| *is_sure).collect();
        match self.transaction.commit(PersistMode::Buffer) {
            Ok(_) => {
                assert!(!minds.contains(&true), "a conflict was overlooked");
                let erased = all_keys().filter(|key| self.own.has_erased(key));
                let mut keys: Vec<_> = erased
                    .map(|key| {
                        let was_there = map.remove(&key).is_some();
                        (key, was_there)
                    })
                    .collect();
                let written = self.own.written.keys().chain(&self.own.deleted);
                keys.extend(written.map(|key| (key.clone(), true)));
                self.own.deleted.iter().for_each(|key| drop(map.remove(key)));
                map.extend(self.own.written);
                Some(keys)
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(!minds.is_empty(), "{error}");
                None
            }
        }
    }

    fn begin(store: &Store, map: &Map, dice: &mut Dice) -> Modelled {
        let isolation = *dice.pick(&[Isolation::Snapshot, Isolation::Serializable]);
        Modelled {
            transaction: store.transaction(isolation),
            isolation,
            map: map.clone(),
            own: Own::default(),
            savepoints: Vec::new(),
            keys: Vec::new(),
            read: Vec::new(),
            promised: BTreeSet::new(),
        }
    }

    /// Inserts `key` if it is absent, and removes it if it was inserted.
    fn insert_or_remove(&mut self, space: &Keyspace, key: Vec<u8>, dice: &mut Dice) {
        let Some(old) = self.map.get(&key) else {
            let value = value(INSERTED, dice);
            self.transaction.put_new_unchecked(space, &key, &value).unwrap();
            if !self.own.deleted.contains(&key) {
                self.own.inserted.insert(key.clone());
            }
            self.own.whole.insert(key.clone());
            self.promised.insert(key.clone());
            return self.set(key, value);
        };
        if old[0] != INSERTED {
            return;
        }
        self.transaction.delete_single_unchecked(space, &key).unwrap();
        self.map.remove(&key);
        self.own.written.remove(&key);
        self.promised.insert(key.clone());
        if self.own.inserted.remove(&key) {
            self.own.whole.remove(&key);
        } else {
            self.own.whole.insert(key.clone());
            self.own.deleted.push(key);
        }
    }

    /// Deletes a short range from `start` on.
    fn erase(&mut self, space: &Keyspace, start: Vec<u8>, dice: &mut Dice) {
        let mut keys: Vec<_> = all_keys().filter(|key| *key > start).collect();
        keys.truncate(5);
        let Some(end) = keys.get(dice.below(5)).cloned() else { return };
        self.transaction.delete_range(space, start.clone()..end.clone()).unwrap();
        let is_outside = |key: &Vec<u8>| !(start <= *key && *key < end);
        self.map.retain(|key, _| is_outside(key));
        self.own.written.retain(|key, _| is_outside(key));
        self.own.deleted.retain(is_outside);
        self.own.inserted.retain(is_outside);
        self.own.whole.retain(is_outside);
        self.own.erased.push((start, end));
    }

    /// Notes that `key` has `value` now.
    fn set(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.map.insert(key.clone(), value.clone());
        self.own.deleted.retain(|other| *other != key);
        self.own.written.insert(key, value);
    }

    fn step_savepoint(&mut self, dice: &mut Dice) {
        match dice.below(3) {
            0 => {
                self.transaction.set_savepoint();
                self.savepoints.push((self.map.clone(), self.own.clone()));
            }
            1 => match self.savepoints.pop() {
                Some((map, own)) => {
                    self.transaction.rollback_to_savepoint().unwrap();
                    (self.map, self.own) = (map, own);
                }
                None => drop(self.transaction.rollback_to_savepoint().unwrap_err()),
            },
            _ => {
                let released = self.transaction.release_savepoint();
                assert_eq!(released.is_ok(), self.savepoints.pop().is_some());
            }
        }
    }

    /// Reads `key`.
    fn look(&mut self, space: &Keyspace, key: &[u8]) {
        let found = self.transaction.get(space, key).unwrap();
        assert_eq!(found.as_deref(), self.map.get(key).map(|value| &value[..]));
        if !self.own.whole.contains(key) && !self.own.has_erased(key) {
            self.read.push((key.to_vec(), [key, &[0]].concat()));
        }
    }

    fn step(&mut self, space: &Keyspace, dice: &mut Dice) {
        let key = format!("{:02}", dice.below(30)).into_bytes();
        match dice.below(11) {
            0 => {
                let value = value(b'p', dice);
                self.transaction.put(space, &key, &value).unwrap();
                self.own.whole.insert(key.clone());
                self.set(key, value);
            }
            1 => {
                self.transaction.delete(space, &key).unwrap();
                self.map.remove(&key);
                self.own.written.remove(&key);
                self.own.inserted.remove(&key);
                self.own.whole.insert(key.clone());
                self.own.deleted.push(key);
            }
            8 | 9 => self.insert_or_remove(space, key, dice),
            10 => self.erase(space, key, dice),
            2 | 3 if space.operator().is_some() => {
                let operand = value(b'+', dice);
                if self.isolation == Isolation::Serializable {
                    // What it has not read it need not find, so the map would not tell the result.
                    self.look(space, &key);
                }
                self.transaction.combine(space, &key, &operand).unwrap();
                let value = [self.map.get(&key).cloned().unwrap_or_default(), operand].concat();
                self.set(key, value);
            }
            4 => {
                self.look(space, &key);
            }
            5 => self.step_savepoint(dice),
            _ => {
                let end = format!("{:02}", dice.below(31)).into_bytes();
                let mut entries = self.transaction.range(space, &key[..]..&end[..]);
                let mut expected: Vec<_> =
                    self.map.range(key.clone()..end.clone().max(key.clone())).collect();
                let is_back = dice.chance(50);
                if is_back {
                    expected.reverse();
                }
                let steps = dice.below(8);
                let mut last = None;
                let mut ended = false;
                for at in 0..steps {
                    let found = if is_back { entries.next_back() } else { entries.next() };
                    let found = found.map(|entry| entry.unwrap());
                    let pair = found.map(|(key, value)| (key.to_vec(), value.to_vec()));
                    let wanted =
                        expected.get(at).map(|(key, value)| ((*key).clone(), (*value).clone()));
                    assert_eq!(pair, wanted);
                    match pair {
                        Some((key, _)) => last = Some(key),
                        None => ended = true,
                    }
                }
                match (ended, last, is_back) {
                    (true, ..) => self.read.push((key, end)),
                    (false, Some(last), false) => self.read.push((key, [&last[..], &[0]].concat())),
                    (false, Some(last), true) => self.read.push((last, end)),
                    (false, None, _) => {}
                }
            }
        }
    }
}

/// Adds a random write to `batch`. Returns the keys that it writes, and whether they change for
/// sure.
fn write(
    batch: &mut Batch,
    space: &Keyspace,
    map: &mut Map,
    dice: &mut Dice,
) -> Vec<(Vec<u8>, bool)> {
    let key = |number: usize| format!("{number:02}").into_bytes();
    let number = dice.below(30);
    let one = vec![(key(number), true)];
    match dice.below(8) {
        0 | 1 if space.operator().is_some() => {
            let operand = value(b'+', dice);
            batch.combine(space, key(number), &operand);
            map.entry(key(number)).or_default().extend(operand);
            one
        }
        2 => {
            let numbers = number..number + 1 + dice.below(3);
            batch.delete_range(space, key(numbers.start)..key(numbers.end));
            let delete = |number| (key(number), map.remove(&key(number)).is_some());
            numbers.map(delete).collect()
        }
        _ => {
            let value = value(b'p', dice);
            batch.put(space, key(number), &value);
            map.insert(key(number), value);
            one
        }
    }
}

/// Random transactions beside batches, flushes and merges, against plain maps: each sees what it
/// must, and commits if and only if nobody was in its way.
#[test]
fn random_transactions_agree_with_plain_maps() {
    with_seeds(60, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let in_group = dice.chance(20);
        let mut builder = restless(plain(&env), &mut dice);
        if in_group {
            builder = builder.policy(*dice.pick(&GROUP_POLICIES));
        }
        let store = builder.operator(Append).open().unwrap();
        let group = in_group.then(|| "both".to_string());
        let operator = dice.chance(60).then(|| "append".to_string());
        let options = KeyspaceOptions { group, operator, ..KeyspaceOptions::default() };
        let space = store.keyspace_with("a", &options).unwrap();
        let mut map = Map::new();
        let mut open: Vec<Modelled> = Vec::new();
        let (mut committed, mut refused) = (0, 0);
        for _ in 0..400 {
            let mut written: Vec<(Vec<u8>, bool)> = Vec::new();
            match dice.below(10) {
                0 if open.len() < 6 => open.push(Modelled::begin(&store, &map, &mut dice)),
                1 if !open.is_empty() => {
                    let one = open.swap_remove(dice.below(open.len()));
                    match one.commit(&mut map) {
                        Some(keys) => {
                            written.extend(keys);
                            committed += 1;
                        }
                        None => refused += 1,
                    }
                }
                2 => {
                    let mut batch = Batch::new();
                    for _ in 0..1 + dice.below(3) {
                        written.append(&mut write(&mut batch, &space, &mut map, &mut dice));
                    }
                    store.write(batch, PersistMode::Buffer).unwrap();
                }
                3 if dice.chance(30) => match dice.below(3) {
                    0 => store.flush().unwrap(),
                    1 => space.merge().unwrap(),
                    _ if in_group => {}
                    _ => space.set_merge_policy(*dice.pick::<&str>(&POLICIES)).unwrap(),
                },
                _ if !open.is_empty() => {
                    let at = dice.below(open.len());
                    open[at].step(&space, &mut dice);
                }
                _ => {}
            }
            for one in &mut open {
                one.keys.extend(written.iter().cloned());
            }
        }
        assert!(contents(&space) == map);
        space.merge().unwrap();
        drop((open, store, space));
        let store = plain(&env).operator(Append).open().unwrap();
        let space = store.existing_keyspace("a").unwrap();
        assert!(contents(&space) == map);
        assert!(committed > 2 && refused > 0, "{committed} committed, {refused} refused");
    });
}
