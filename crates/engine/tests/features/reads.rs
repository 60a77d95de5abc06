//! Reads, of now and of snapshots, against the oracle.

use crate::Feature::{Filter, Snapshots};
use crate::operator::verdict;
use crate::oracle::{Key, Seen, lives};
use crate::run::Run;
use lsmith::{Keyspace, Snapshot, Store, Verdict};
use std::collections::BTreeMap;
use std::sync::mpsc;

/// What a keyspace showed: values with their times.
pub(crate) type Content = BTreeMap<Key, (Vec<u8>, Option<u64>)>;

/// A snapshot, and what it showed when it was taken.
pub(crate) struct Held {
    pub(crate) snapshot: Snapshot,
    pub(crate) seen: Vec<(u64, Content)>,
}

impl Held {
    /// Forgets a keyspace that was dropped.
    pub(crate) fn forget(&mut self, id: u64) {
        self.seen.retain(|(known, _)| *known != id);
    }
}

/// Returns true if `found` is what `expected` says: itself, or what a filter makes of it.
fn agrees(expected: &Seen, found: Option<&[u8]>, filtered: bool, now: u64) -> bool {
    let expected = expected.as_ref().filter(|seen| lives(seen, now)).map(|(value, _)| &value[..]);
    if found == expected {
        return true;
    }
    filtered
        && expected.is_some_and(|value| match verdict(value) {
            Verdict::Drop => found.is_none(),
            Verdict::Change(new) => found == Some(&new),
            Verdict::Keep => false,
        })
}

impl Run {
    /// Reads one key, of now and of a snapshot.
    pub(crate) fn probe(&mut self) {
        let (id, key, now) = (self.any_space(), self.key(), self.now());
        let expected = self.oracle.space(id).see(&key, u64::MAX);
        let space = self.space(id);
        let found = space.get(&key).unwrap();
        let filtered = self.has(Filter);
        let text = || self.oracle.spaces.iter().find(|space| space.id == id).unwrap().story(&key);
        let is_right = agrees(&expected, found.as_deref(), filtered, now);
        assert!(is_right, "{}: expected {expected:?}, found {found:?}", text());
        assert_eq!(space.contains(&key).unwrap(), found.is_some());
        if !self.held.is_empty() {
            let held = self.dice.pick(&self.held);
            let Some((_, seen)) = held.seen.iter().find(|(known, _)| *known == id) else { return };
            let expected = seen.get(&key).filter(|seen| lives(seen, now)).map(|seen| &seen.0[..]);
            let found = held.snapshot.get(&space, &key).unwrap();
            assert_eq!(found.as_deref(), expected, "{} of a snapshot", text());
        }
    }

    /// Reads a range, from either end.
    pub(crate) fn scan(&mut self) {
        let (id, now, filtered) = (self.any_space(), self.now(), self.has(Filter));
        let (bounds, start, end) = self.bounds();
        let space = self.space(id);
        let entries = space.range(bounds).map(|entry| entry.unwrap());
        let mut found: BTreeMap<Key, Vec<u8>> = BTreeMap::new();
        if self.dice.chance(50) {
            found.extend(entries.map(|(key, value)| (key.to_vec(), value.to_vec())));
        } else {
            found.extend(entries.rev().map(|(key, value)| (key.to_vec(), value.to_vec())));
        }
        for key in self.keys.clone() {
            if key < start || end.as_ref().is_some_and(|end| key >= *end) {
                assert!(!found.contains_key(&key));
                continue;
            }
            let expected = self.oracle.space(id).see(&key, u64::MAX);
            let found = found.get(&key).map(Vec::as_slice);
            let name = String::from_utf8_lossy(&key);
            assert!(agrees(&expected, found, filtered, now), "{name}: {expected:?} {found:?}");
        }
    }

    /// Reads everything in `store`, which shows what the oracle says of `moment`.
    pub(crate) fn check_store(&self, store: &Store, moment: u64) {
        for space in &self.oracle.spaces {
            let keyspace = store.existing_keyspace(&space.name).unwrap();
            let found = content(&keyspace);
            self.check_content(space.id, &found, moment);
            if self.has(Filter) {
                // A merge may change a value between the scan and the lookup.
                continue;
            }
            for key in &self.keys {
                let alone = keyspace.get(key).unwrap();
                assert_eq!(alone.as_deref(), found.get(key).map(Vec::as_slice), "a lookup");
            }
        }
    }

    pub(crate) fn check_content(&self, id: u64, found: &BTreeMap<Key, Vec<u8>>, moment: u64) {
        let (now, filtered) = (self.now(), self.has(Filter));
        let space = self.oracle.spaces.iter().find(|space| space.id == id).unwrap();
        for key in &self.keys {
            let expected = space.see(key, moment);
            let found = found.get(key).map(Vec::as_slice);
            let is_right = agrees(&expected, found, filtered, now);
            let story = || format!("{} at {moment}, {now}", space.story(key));
            assert!(is_right, "{}: expected {expected:?}, found {found:?}", story());
        }
    }

    pub(crate) fn check_all(&mut self) {
        self.check_store(self.store(), u64::MAX);
        let now = self.now();
        for held in &self.held {
            for (id, seen) in &held.seen {
                let found = content_of(held.snapshot.iter(&self.space(*id)));
                let expected = seen.iter().filter(|(_, seen)| lives(seen, now));
                let expected = expected.map(|(key, (value, _))| (key.clone(), value.clone()));
                assert!(found == expected.collect(), "a snapshot has changed");
            }
        }
    }

    /// Takes a snapshot, reads all of it, and holds it.
    pub(crate) fn hold(&mut self) {
        let snapshot = self.store().snapshot();
        let moment = snapshot.seq().0;
        assert_eq!(moment, self.oracle.last, "a snapshot shows all that was written");
        let mut seen = vec![];
        for space in &self.oracle.spaces {
            let found = content_of(snapshot.iter(&self.space(space.id)));
            self.check_content(space.id, &found, moment);
            // The value's time, changed by a filter or not.
            let time = |key: &Key| space.see(key, moment).and_then(|(_, time)| time);
            let found = found.into_iter().map(|(key, value)| (key.clone(), (value, time(&key))));
            seen.push((space.id, found.collect()));
        }
        self.held.push(Held { snapshot, seen });
    }

    pub(crate) fn hold_or_release(&mut self) {
        if self.held.len() > 3 || self.dice.chance(30) && !self.held.is_empty() {
            let at = self.dice.below(self.held.len());
            self.held.swap_remove(at);
        } else {
            self.hold();
        }
    }

    /// Merges, and lets others act in the middle of it, when the filter is first asked.
    pub(crate) fn merge_while_others_act(&mut self) {
        let id = self.any_space();
        let space = self.space(id);
        let (there, is_there) = mpsc::sync_channel(1);
        let (go_on, goes_on) = mpsc::sync_channel::<()>(1);
        *self.stop.lock().unwrap() = Some((there, goes_on));
        let merging = std::thread::spawn(move || space.merge());
        let stop = self.stop.clone();
        std::thread::scope(|scope| {
            // Whoever merges ends without a word if the filter is not asked.
            scope.spawn(move || {
                let result = merging.join().unwrap();
                stop.lock().unwrap().take();
                result.unwrap();
            });
            if is_there.recv().is_ok() && self.has(Snapshots) {
                self.hold();
            }
            drop(go_on);
        });
    }
}

pub(crate) fn content(space: &Keyspace) -> BTreeMap<Key, Vec<u8>> {
    content_of(space.iter())
}

fn content_of(iter: lsmith::Iter) -> BTreeMap<Key, Vec<u8>> {
    iter.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}
