//! Transactions beside other writes.

use crate::Feature::{Expiry, Filter, Operator};
use crate::oracle::{Fed, Key, What};
use crate::run::Run;
use lsmith::{ErrorKind, Isolation, PersistMode, Transaction};

/// What a transaction has used.
#[derive(Default)]
struct Used {
    /// Keys that must be unchanged, in the eyes of the documentation.
    firm: Vec<(u64, Key)>,
    /// Keys that were only written: whether others may have written them depends on the isolation.
    written: Vec<(u64, Key)>,
    changes: Vec<Fed>,
    /// True if a key was read for update.
    is_locked: bool,
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
        for _ in 0..1 + self.dice.below(5) {
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
        match self.dice.below(6) {
            0 if self.has(Operator) => {
                let operand = self.value();
                transaction.combine(&space, &key, &operand).unwrap();
                used.changes.push(Fed::Key(id, key.clone(), What::Combine(operand)));
                used.written.push((id, key));
            }
            0 | 1 => {
                let value = self.value();
                let time = self.now() + 1 + self.dice.below(60) as u64;
                let time = (self.has(Expiry) && self.dice.chance(50)).then_some(time);
                match time {
                    Some(time) => transaction.put_until(&space, &key, &value, time).unwrap(),
                    None => transaction.put(&space, &key, &value).unwrap(),
                }
                used.changes.push(Fed::Key(id, key.clone(), What::Put(value, time)));
                used.written.push((id, key));
            }
            2 => {
                transaction.delete(&space, &key).unwrap();
                used.changes.push(Fed::Key(id, key.clone(), What::Delete));
                used.written.push((id, key));
            }
            3 => {
                drop(transaction.get_for_update(&space, &key).unwrap());
                used.firm.push((id, key));
                used.is_locked = true;
            }
            _ => {
                let found = transaction.get(&space, &key).unwrap();
                let is_own = used
                    .changes
                    .iter()
                    .any(|fed| matches!(fed, Fed::Key(at, own, _) if (*at, own) == (id, &key)));
                if !is_own && !self.has(Filter) && !self.has(Expiry) {
                    let expected = self.oracle.space(id).see(&key, begun).map(|(value, _)| value);
                    assert_eq!(found.map(|value| value.to_vec()), expected, "read at {begun}");
                }
                // An operand of its own lies on what is beneath, which counts as read.
                let is_whole = used.changes.iter().any(|fed| match fed {
                    Fed::Key(at, own, what) => {
                        (*at, own) == (id, &key) && !matches!(what, What::Combine(_))
                    }
                    _ => false,
                });
                if isolation == Isolation::Serializable && !is_whole {
                    used.firm.push((id, key));
                }
            }
        }
    }

    fn end(&mut self, transaction: Transaction, isolation: Isolation, begun: u64, used: Used) {
        let Used { firm, written, changes, is_locked } = used;
        // Under the isolation of snapshots the first that commits wins.
        let firm = match isolation {
            Isolation::Snapshot => [firm, written.clone()].concat(),
            _ => firm,
        };
        let spaces = &self.oracle.spaces;
        let space = |id: u64| spaces.iter().find(|space| space.id == id).unwrap();
        let is_newer = |(id, key): &&(u64, Key)| space(*id).is_newer(key, begun);
        // A key that was absent, was written and is absent again may count or not.
        let differs = |(id, key): &&(u64, Key)| {
            space(*id).see(key, begun).is_some() || space(*id).see(key, u64::MAX).is_some()
        };
        let is_uncertain = self.has(Filter) || self.has(Expiry);
        let must = firm.iter().filter(is_newer).any(|used| differs(&used)) && !is_uncertain;
        let has_upheaval =
            |(id, _): &(u64, Key)| space(*id).upheavals.iter().any(|since| *since > begun);
        let may = is_uncertain
            || firm.iter().any(|used| is_newer(&used))
            || firm.iter().chain(&written).any(has_upheaval);
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

    /// Applies the writes of a transaction: the last one of each key counts, and operands add up.
    /// The order of the numbers is up to the store, so their batch says what was written.
    fn take_commit(&mut self, changes: Vec<Fed>, last: u64) {
        let mut written: Vec<Fed> = vec![];
        for fed in changes {
            let Fed::Key(id, key, what) = &fed else { unreachable!("no ranges") };
            if !matches!(what, What::Combine(_)) {
                written
                    .retain(|old| !matches!(old, Fed::Key(at, own, _) if at == id && own == key));
            }
            written.push(fed);
        }
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
