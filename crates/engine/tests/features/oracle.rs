//! What the store must hold, written from its documentation.

use std::collections::BTreeMap;
use std::ops::Bound;

pub(crate) type Key = Vec<u8>;

/// A value, and the time at which it expires.
pub(crate) type Seen = Option<(Vec<u8>, Option<u64>)>;

#[derive(Clone, PartialEq)]
pub(crate) enum What {
    Put(Vec<u8>, Option<u64>),
    Delete,
    Combine(Vec<u8>),
}

impl std::fmt::Debug for What {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = String::from_utf8_lossy;
        match self {
            What::Put(value, Some(time)) => write!(f, "put {} until {time}", text(value)),
            What::Put(value, None) => write!(f, "put {}", text(value)),
            What::Delete => write!(f, "delete"),
            What::Combine(operand) => write!(f, "combine {}", text(operand)),
        }
    }
}

/// Something that was written to a key.
#[derive(Clone, Debug)]
pub(crate) struct Version {
    /// Its number says what is newer.
    pub(crate) number: u64,
    /// The number of the moment from which on it is seen: its own, unless it came in a table.
    pub(crate) since: u64,
    pub(crate) what: What,
}

/// A deleted range.
#[derive(Clone, Debug)]
pub(crate) struct RangeDeletes {
    pub(crate) number: u64,
    pub(crate) start: Key,
    /// `None`: without bound.
    pub(crate) end: Option<Key>,
}

impl RangeDeletes {
    fn covers(&self, key: &[u8]) -> bool {
        is_between(key, &self.start, &self.end)
    }
}

/// Returns true if `key` lies in the range from `start` to `end`.
pub(crate) fn is_between(key: &[u8], start: &[u8], end: &Option<Key>) -> bool {
    key >= start && end.as_ref().is_none_or(|end| *key < **end)
}

/// A keyspace.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Tells keyspaces apart that had the same name.
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) versions: BTreeMap<Key, Vec<Version>>,
    pub(crate) range_deletes: Vec<RangeDeletes>,
    /// The moments of clearings and of arrivals, which are in the way of transactions.
    pub(crate) upheavals: Vec<u64>,
    /// A repair gave the entries new numbers, among these: above the old ones of the keyspace, and
    /// up to the last one of the repaired store.
    pub(crate) renumbered: Option<std::ops::RangeInclusive<u64>>,
}

impl Space {
    pub(crate) fn new(id: u64, name: &str) -> Space {
        Space {
            id,
            name: name.to_string(),
            versions: BTreeMap::new(),
            range_deletes: vec![],
            upheavals: vec![],
            renumbered: None,
        }
    }

    pub(crate) fn add(&mut self, key: &[u8], version: Version) {
        self.versions.entry(key.to_vec()).or_default().push(version);
    }

    /// Returns what `key` has at `moment`, with the time of its value; nobody has asked the clock.
    pub(crate) fn see(&self, key: &[u8], moment: u64) -> Seen {
        let covering =
            self.range_deletes.iter().filter(|one| one.number <= moment && one.covers(key));
        let hidden_below = covering.map(|one| one.number).max().unwrap_or(0);
        let mut versions: Vec<&Version> = self.versions.get(key)?.iter().collect();
        // An entry with the number of a range delete is visible.
        versions.retain(|version| version.since <= moment && version.number >= hidden_below);
        versions.sort_by_key(|version| std::cmp::Reverse(version.number));
        let mut operands: Vec<&[u8]> = vec![];
        let mut base = None;
        for version in versions {
            match &version.what {
                What::Combine(operand) => operands.push(operand),
                What::Put(value, time) => {
                    base = Some((value.clone(), *time));
                    break;
                }
                What::Delete => break,
            }
        }
        if operands.is_empty() {
            return base;
        }
        let mut value = base.map_or(vec![], |(value, _)| value);
        operands.iter().rev().for_each(|operand| value.extend_from_slice(operand));
        Some((value, None))
    }

    /// Returns what was written to `key`, for people.
    pub(crate) fn story(&self, key: &[u8]) -> String {
        let (versions, range_deletes) = (self.versions.get(key), &self.range_deletes);
        let range_deletes: Vec<_> =
            range_deletes.iter().filter(|one| one.covers(key)).map(|one| one.number).collect();
        format!(
            "{} {}: {versions:?}, erased by {range_deletes:?}",
            self.name,
            String::from_utf8_lossy(key)
        )
    }

    /// Returns all that is there at `moment`, when the clock shows `now`.
    pub(crate) fn content(&self, moment: u64, now: u64) -> BTreeMap<Key, (Vec<u8>, Option<u64>)> {
        let seen = self.versions.keys().map(|key| (key.clone(), self.see(key, moment)));
        let alive =
            seen.filter_map(|(key, seen)| Some((key, seen.filter(|seen| lives(seen, now))?)));
        alive.collect()
    }

    /// Returns true if anything was written to `key` behind `moment`.
    pub(crate) fn is_newer(&self, key: &[u8], moment: u64) -> bool {
        let versions = self.versions.get(key).into_iter().flatten();
        let range_deletes =
            self.range_deletes.iter().filter(|one| one.covers(key)).map(|one| one.number);
        versions.map(|version| version.since).chain(range_deletes).any(|since| since > moment)
    }

    /// Returns true if a range that overlaps the one from `start` to `end` was deleted behind
    /// `moment`.
    pub(crate) fn has_newer_range(&self, start: &Key, end: &Option<Key>, moment: u64) -> bool {
        let ends_above = |end: &Option<Key>, key: &Key| end.as_ref().is_none_or(|end| end > key);
        let mut newer = self.range_deletes.iter().filter(|one| one.number > moment);
        newer.any(|one| ends_above(&one.end, start) && ends_above(end, &one.start))
    }

    /// Forgets what was written behind `moment`.
    fn cut(&mut self, moment: u64) {
        for versions in self.versions.values_mut() {
            versions.retain(|version| version.since <= moment);
        }
        self.versions.retain(|_, versions| !versions.is_empty());
        self.range_deletes.retain(|one| one.number <= moment);
        self.upheavals.retain(|since| *since <= moment);
    }

    /// Forgets the past: what is there at `moment` has the number `moment` now.
    fn collapse(&mut self, moment: u64, now: u64) {
        let there = self.content(u64::MAX, now);
        let numbers = self.versions.values().flatten().map(|version| version.number);
        let newest =
            numbers.chain(self.range_deletes.iter().map(|one| one.number)).max().unwrap_or(0);
        let first = self.renumbered.take().map_or(newest, |before| newest.min(*before.start()));
        self.renumbered = Some(first..=moment);
        let version =
            |(value, time)| Version { number: moment, since: moment, what: What::Put(value, time) };
        self.versions = there.into_iter().map(|(key, seen)| (key, vec![version(seen)])).collect();
        (self.range_deletes, self.upheavals) = (vec![], vec![]);
    }
}

/// Returns true if a value has not expired when the clock shows `now`.
pub(crate) fn lives((_, time): &(Vec<u8>, Option<u64>), now: u64) -> bool {
    time.is_none_or(|time| now < time)
}

/// A change as a feed shows it: the keyspace, the key or the start of the range, and what.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fed {
    Key(u64, Key, What),
    Range(u64, Key, Option<Key>),
}

impl Fed {
    pub(crate) fn space(&self) -> u64 {
        match self {
            Fed::Key(id, ..) | Fed::Range(id, ..) => *id,
        }
    }
}

/// A batch: its first and last number, and its changes; none if it was a load, `None` if the oracle
/// does not know their order.
#[derive(Clone, Debug)]
pub(crate) struct Written {
    pub(crate) first: u64,
    pub(crate) last: u64,
    pub(crate) changes: Option<Vec<Fed>>,
}

/// All that the store must hold.
#[derive(Clone, Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) spaces: Vec<Space>,
    pub(crate) batches: Vec<Written>,
    /// The number of the last write, and of the last one that survives power loss.
    pub(crate) last: u64,
    pub(crate) synced: u64,
}

impl Oracle {
    pub(crate) fn space(&mut self, id: u64) -> &mut Space {
        self.spaces.iter_mut().find(|space| space.id == id).unwrap()
    }

    /// Applies a batch whose last write got the number `last`.
    pub(crate) fn apply(&mut self, changes: Vec<Fed>, last: u64) {
        let first = last + 1 - changes.len() as u64;
        assert_eq!(first, self.last + 1, "each write takes one number");
        for (change, number) in changes.iter().zip(first..) {
            match change.clone() {
                Fed::Key(id, key, what) => {
                    self.space(id).add(&key, Version { number, since: number, what });
                }
                Fed::Range(id, start, end) => {
                    self.space(id).range_deletes.push(RangeDeletes { number, start, end });
                }
            }
        }
        self.batches.push(Written { first, last, changes: Some(changes) });
        self.last = last;
    }

    /// Applies the writes of a transaction, whose order among each other is up to the store: range
    /// deletes, and then writes of different keys, but for operands of one.
    pub(crate) fn apply_unordered(&mut self, changes: Vec<Fed>, last: u64) {
        for fed in changes {
            let (id, key, what) = match fed {
                Fed::Key(id, key, what) => (id, key, what),
                Fed::Range(id, start, end) => {
                    // An entry with the number of a range delete is visible.
                    let deleted = RangeDeletes { number: last, start, end };
                    self.space(id).range_deletes.push(deleted);
                    continue;
                }
            };
            // Operands of one key keep their order.
            let versions = self.space(id).versions.entry(key).or_default();
            let number = last;
            if let (What::Combine(new), Some(old)) = (&what, versions.last_mut())
                && old.number == last
            {
                match &mut old.what {
                    What::Combine(value) | What::Put(value, _) => value.extend_from_slice(new),
                    What::Delete => old.what = What::Put(new.clone(), None),
                }
                continue;
            }
            versions.push(Version { number, since: last, what });
        }
        self.batches.push(Written { first: self.last + 1, last, changes: None });
        self.last = last;
    }

    /// Notes a load, an ingest or a clearing, which took the numbers up to `last`.
    pub(crate) fn note_load(&mut self, last: u64) {
        assert!(last > self.last, "it takes a number");
        self.batches.push(Written { first: self.last + 1, last, changes: Some(vec![]) });
        self.last = last;
    }

    /// Returns the batches from number `from` on, as a feed shows them.
    pub(crate) fn fed(&self, from: u64) -> Vec<Written> {
        let behind = self.batches.iter().filter(|batch| batch.last >= from).cloned();
        behind
            .map(|mut batch| {
                let exists = |fed: &Fed| self.spaces.iter().any(|space| space.id == fed.space());
                batch.changes.iter_mut().for_each(|changes| changes.retain(exists));
                batch
            })
            .collect()
    }

    /// Goes back to the moment of the write with the number `last`.
    pub(crate) fn cut(&mut self, last: u64) {
        let is_end = self.batches.iter().any(|batch| batch.last == last) || last == self.synced;
        assert!(is_end || last == 0, "write {last} is not the last one of its batch");
        self.spaces.iter_mut().for_each(|space| space.cut(last));
        self.batches.retain(|batch| batch.last <= last);
        (self.last, self.synced) = (last, last);
    }

    /// Goes on in a repaired store, whose last write has the number `last`.
    pub(crate) fn collapse(&mut self, last: u64, now: u64) {
        self.spaces.iter_mut().for_each(|space| space.collapse(last, now));
        (self.batches, self.last, self.synced) = (vec![], last, last);
    }
}

/// Returns bounds as the start and the end of a range delete.
pub(crate) fn range_of(bounds: &(Bound<Key>, Bound<Key>)) -> (Key, Option<Key>) {
    let behind = |key: &Key| [&key[..], &[0]].concat();
    let start = match &bounds.0 {
        Bound::Included(key) => key.clone(),
        Bound::Excluded(key) => behind(key),
        Bound::Unbounded => vec![],
    };
    let end = match &bounds.1 {
        Bound::Included(key) => Some(behind(key)),
        Bound::Excluded(key) => Some(key.clone()),
        Bound::Unbounded => None,
    };
    (start, end)
}
