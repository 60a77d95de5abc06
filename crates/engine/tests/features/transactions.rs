//! Transactions beside other writes.

use crate::Feature::{Expiry, Filter, Operator, Ranges};
use crate::oracle::{Fed, Key, What, is_between};
use crate::run::Run;
use lsmith::{ErrorKind, Isolation, PersistMode, Transaction};
use std::collections::BTreeMap;

/// What a transaction has used.
#[derive(Default)]
struct Used {
    /// Keys that must be unchanged, in the eyes of the documentation.
    firm: Vec<(u64, Key)>,
    /// Keys and ranges that were only written: whether others may have written them depends on the
    /// isolation.
    changes: Vec<Fed>,
    /// True if a key was read for update.
    is_locked: bool,
    /// The number of changes at each savepoint.
    savepoints: Vec<usize>,
}

impl Used {
    /// Returns the value of `key` over `older`, which the transaction sees beneath its changes. The
    /// flag tells whether that counts.
    fn over(&self, id: u64, key: &Key, older: Option<Vec<u8>>) -> (Option<Vec<u8>>, bool) {
        self.changes.iter().fold((older, true), |(value, needs_older), change| match change {
            Fed::Key(at, own, what) if (*at, own) == (id, key) => match what {
                What::Put(new, _) => (Some(new.clone()), false),
                What::Delete => (None, false),
                What::Combine(operand) => {
                    (Some([value.unwrap_or_default(), operand.clone()].concat()), needs_older)
                }
            },
            Fed::Range(at, start, end) if *at == id && is_between(key, start, end) => (None, false),
            _ => (value, needs_older),
        })
    }
}

impl Run {
    /// A transaction, with other writes between its steps.
    pub(crate) fn transact(&mut self) {
        let isolation =
            if self.dice.chance(50) { Isolation::Serializable } else { Isolation::Snapshot };
        let mut transaction = self.store().transaction(isolation);
        let begun = self.oracle.last;
        assert_eq!(transaction.seq().0, begun);
        let mut used = Used::default();
        for _ in 0..1 + self.dice.below(7) {
            if self.dice.chance(30) {
                self.write();
            }
            self.go_on(&mut transaction, isolation, begun, &mut used);
        }
        self.end(transaction, isolation, begun, used);
    }

    fn go_on(
        &mut self,
        transaction: &mut Transaction,
        isolation: Isolation,
        begun: u64,
        used: &mut Used,
    ) {
        let (id, key) = (self.any_space(), self.key());
        let space = self.space(id);
        match self.dice.below(8) {
            0 if self.has(Operator) => {
                let operand = self.value();
                transaction.combine(&space, &key, &operand).unwrap();
                used.changes.push(Fed::Key(id, key, What::Combine(operand)));
            }
            1 if self.has(Ranges) => {
                let (bounds, start, end) = self.bounds();
                transaction.delete_range(&space, bounds).unwrap();
                used.changes.push(Fed::Range(id, start, end));
            }
            0 | 1 => {
                let value = self.value();
                let time = self.now() + 1 + self.dice.below(60) as u64;
                let time = (self.has(Expiry) && self.dice.chance(50)).then_some(time);
                match time {
                    Some(time) => transaction.put_until(&space, &key, &value, time).unwrap(),
                    None => transaction.put(&space, &key, &value).unwrap(),
                }
                used.changes.push(Fed::Key(id, key, What::Put(value, time)));
            }
            2 => {
                transaction.delete(&space, &key).unwrap();
                used.changes.push(Fed::Key(id, key, What::Delete));
            }
            3 => {
                drop(transaction.get_for_update(&space, &key).unwrap());
                used.firm.push((id, key));
                used.is_locked = true;
            }
            4 => self.set_or_use_savepoint(transaction, used),
            5 if isolation == Isolation::Snapshot => self.scan_in(transaction, id, begun, used),
            _ => {
                let found = transaction.get(&space, &key).unwrap();
                let older = self.oracle.space(id).see(&key, begun).map(|(value, _)| value);
                let (expected, needs_older) = used.over(id, &key, older);
                if !self.has(Filter) && !self.has(Expiry) {
                    assert_eq!(found.map(|value| value.to_vec()), expected, "read at {begun}");
                }
                // An operand of its own lies on what is beneath, which counts as read.
                if isolation == Isolation::Serializable && needs_older {
                    used.firm.push((id, key));
                }
            }
        }
    }

    fn set_or_use_savepoint(&mut self, transaction: &mut Transaction, used: &mut Used) {
        match (self.dice.below(4), used.savepoints.last()) {
            (0 | 1, Some(changes)) => {
                transaction.rollback_to_savepoint().unwrap();
                used.changes.truncate(*changes);
                used.savepoints.pop();
            }
            (2, Some(_)) => {
                transaction.release_savepoint().unwrap();
                used.savepoints.pop();
            }
            _ => {
                transaction.set_savepoint();
                used.savepoints.push(used.changes.len());
            }
        }
    }

    /// Reads a keyspace from end to end, as a transaction sees it, from one of the ends.
    fn scan_in(&mut self, transaction: &mut Transaction, id: u64, begun: u64, used: &Used) {
        let entries = transaction.iter(&self.space(id));
        let pair = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
            let (key, value) = entry.unwrap();
            (key.to_vec(), value.to_vec())
        };
        let found: BTreeMap<Key, Vec<u8>> = match self.dice.chance(50) {
            true => entries.map(pair).collect(),
            false => entries.rev().map(pair).collect(),
        };
        if self.has(Filter) || self.has(Expiry) {
            return;
        }
        let space = self.oracle.space(id);
        let keys = space.versions.keys().chain(&self.keys);
        let see = |key: &Key| {
            let older = space.see(key, begun).map(|(value, _)| value);
            Some((key.clone(), used.over(id, key, older).0?))
        };
        let expected: BTreeMap<Key, Vec<u8>> = keys.filter_map(see).collect();
        assert_eq!(found, expected, "a scan at {begun}");
    }

    fn end(&mut self, transaction: Transaction, isolation: Isolation, begun: u64, used: Used) {
        let Used { firm, changes, is_locked, .. } = used;
        let spaces = &self.oracle.spaces;
        let space = |id: u64| spaces.iter().find(|space| space.id == id).unwrap();
        let written = || {
            let keys = |change: &Fed| match change {
                Fed::Key(id, key, _) => vec![(*id, key.clone())],
                Fed::Range(id, start, end) => {
                    let known = space(*id).versions.keys();
                    let inside = known.filter(|key| is_between(key, start, end));
                    inside.map(|key| (*id, key.clone())).collect()
                }
            };
            changes.iter().flat_map(keys)
        };
        // Under the isolation of snapshots the first that commits wins.
        let wins = isolation == Isolation::Snapshot;
        let firm: Vec<(u64, Key)> = firm.into_iter().chain(written().filter(|_| wins)).collect();
        let is_newer = |(id, key): &&(u64, Key)| space(*id).is_newer(key, begun);
        // A key that was absent, was written and is absent again may count or not.
        let differs = |(id, key): &&(u64, Key)| {
            space(*id).see(key, begun).is_some() || space(*id).see(key, u64::MAX).is_some()
        };
        let is_uncertain = self.has(Filter) || self.has(Expiry);
        let must = firm.iter().filter(is_newer).any(|used| differs(&used)) && !is_uncertain;
        let has_upheaval = |id: u64| space(id).upheavals.iter().any(|since| *since > begun);
        let touched = changes.iter().map(Fed::space).chain(firm.iter().map(|(id, _)| *id));
        let overlaps = |change: &Fed| match change {
            Fed::Range(id, start, end) => space(*id).has_newer_range(start, end, begun),
            Fed::Key(..) => false,
        };
        let may = is_uncertain
            || firm.iter().any(|used| is_newer(&used))
            || wins && changes.iter().any(overlaps)
            || touched.into_iter().any(has_upheaval);
        match transaction.commit(PersistMode::Buffer) {
            Ok(number) => {
                let only_looked = changes.is_empty() && !is_locked;
                assert!(!must || only_looked, "a conflict was not seen: {firm:?}");
                if !changes.is_empty() {
                    assert_eq!(number.0, self.last());
                    self.take_commit(changes, number.0);
                }
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                assert!(may, "nobody has changed what it used: {error}");
            }
        }
    }

    /// Applies the writes of a transaction: the last one of each key counts, operands add up, and a
    /// range delete drops what was written in its range before. The order of the numbers is up to
    /// the store, so their batch says what was written.
    fn take_commit(&mut self, changes: Vec<Fed>, last: u64) {
        let mut written: Vec<Fed> = vec![];
        for fed in changes {
            written.retain(|old| match (old, &fed) {
                (_, Fed::Key(_, _, What::Combine(_))) | (Fed::Range(..), _) => true,
                (Fed::Key(at, own, _), Fed::Key(id, key, _)) => (at, own) != (id, key),
                (Fed::Key(at, own, _), Fed::Range(id, start, end)) => {
                    at != id || !is_between(own, start, end)
                }
            });
            written.push(fed);
        }
        // All range deletes come before all writes to keys.
        written.sort_by_key(|fed| matches!(fed, Fed::Key(..)));
        let expires = self.has(Expiry).then(|| self.put_time()).flatten();
        for fed in &mut written {
            if let Fed::Key(_, _, What::Put(_, time @ None)) = fed {
                *time = expires;
            }
        }
        let count = last - self.oracle.last;
        assert!(count as usize >= 1 && count as usize <= written.len(), "{count} numbers");
        self.oracle.apply_unordered(written, last);
    }
}
