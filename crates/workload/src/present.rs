//! The set of present keys, to draw from.

use crate::Rng;
use lsmith_spec::random::mix;

/// Marks a slot without a key. No key has this value.
const FREE: u32 = u32::MAX;

/// Fewest slots of a set.
const SLOTS_MIN: usize = 64;

/// A set of numbers below 2^32 - 1 that returns any of its members with equal chance. Both lookups
/// and draws take constant time and mostly one access to memory. It uses open addressing with
/// linear probing, and draws slots until one is taken. Between a quarter and three quarters of the
/// slots are taken, so that neither takes long. It takes six bytes per expected member.
#[derive(Clone, Debug)]
pub(crate) struct PresentKeys {
    slots: Vec<u32>,
    members: usize,
}

impl PresentKeys {
    /// Returns the empty set, with room for the first `expected` members.
    pub(crate) fn new(expected: u64) -> Self {
        let slots = (expected as usize + expected as usize / 2).max(SLOTS_MIN);
        Self { slots: vec![FREE; slots], members: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.members as u64
    }

    /// Adds `key` and returns true, or returns false if it is a member already.
    #[inline]
    pub(crate) fn insert(&mut self, key: u32) -> bool {
        debug_assert_ne!(key, FREE, "keys end below the mark");
        let mut slot = self.home(key);
        while self.slots[slot] != FREE {
            if self.slots[slot] == key {
                return false;
            }
            slot = self.next(slot);
        }
        self.slots[slot] = key;
        self.members += 1;
        if self.members > self.slots.len() / 4 * 3 {
            self.rebuild(self.slots.len() * 2);
        }
        true
    }

    /// Removes and returns any member with equal chance. The set must not be empty.
    #[inline]
    pub(crate) fn remove_any(&mut self, rng: &mut Rng) -> u32 {
        debug_assert!(self.members > 0, "there is a member");
        let slot = loop {
            let slot = rng.below(self.slots.len() as u64) as usize;
            if self.slots[slot] != FREE {
                break slot;
            }
        };
        let key = self.slots[slot];
        self.vacate(slot);
        self.members -= 1;
        if self.members < self.slots.len() / 4 && self.slots.len() >= 2 * SLOTS_MIN {
            self.rebuild(self.slots.len() / 2);
        }
        key
    }

    /// Returns the slot at which the search for a key starts.
    #[inline]
    fn home(&self, key: u32) -> usize {
        let slots = self.slots.len() as u128;
        ((u128::from(mix(u64::from(key))) * slots) >> 64) as usize
    }

    #[inline]
    fn next(&self, slot: usize) -> usize {
        if slot + 1 < self.slots.len() { slot + 1 } else { 0 }
    }

    /// Returns the number of steps from slot `from` to slot `to`.
    #[inline]
    fn steps(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.slots.len() - from }
    }

    /// Frees a slot, and moves keys after it that a search would no longer find.
    #[inline]
    fn vacate(&mut self, mut hole: usize) {
        let mut slot = self.next(hole);
        while self.slots[slot] != FREE {
            let key = self.slots[slot];
            if self.steps(self.home(key), slot) >= self.steps(hole, slot) {
                self.slots[hole] = key;
                hole = slot;
            }
            slot = self.next(slot);
        }
        self.slots[hole] = FREE;
    }

    /// Moves all members to `slots` slots. Their order stays about the same, so that memory is
    /// walked from one end to the other.
    #[cold]
    fn rebuild(&mut self, slots: usize) {
        let old = std::mem::replace(&mut self.slots, vec![FREE; slots]);
        for key in old.into_iter().filter(|&key| key != FREE) {
            let mut slot = self.home(key);
            while self.slots[slot] != FREE {
                slot = self.next(slot);
            }
            self.slots[slot] = key;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn members_come_and_go() {
        let mut present = PresentKeys::new(100);
        let mut members = BTreeSet::new();
        let mut rng = Rng::new(1, 0);
        // Grows to 40 k, shrinks to nothing, grows again.
        for step in 0..200_000 {
            let grows = step % 160_000 < 70_000;
            if rng.below(10) < if grows { 8 } else { 1 } || members.is_empty() {
                let key = rng.below(60_000) as u32;
                assert_eq!(present.insert(key), members.insert(key), "{key}");
            } else {
                let key = present.remove_any(&mut rng);
                assert!(members.remove(&key), "{key}");
            }
            assert_eq!(present.len(), members.len() as u64);
        }
        assert!((0..60_000).all(|key| present.finds(key) == members.contains(&key)));
    }

    impl PresentKeys {
        /// Returns true if `key` is a member.
        fn finds(&self, key: u32) -> bool {
            let mut slot = self.home(key);
            while self.slots[slot] != FREE && self.slots[slot] != key {
                slot = self.next(slot);
            }
            self.slots[slot] == key
        }
    }

    #[test]
    fn slots_follow_the_members() {
        let mut present = PresentKeys::new(0);
        assert!((0..100_000).all(|key| present.insert(key)));
        assert!((100_000 * 4 / 3..300_000).contains(&present.slots.len()));
        let mut rng = Rng::new(1, 0);
        (0..99_999).for_each(|_| assert!(present.remove_any(&mut rng) < 100_000));
        assert!(present.slots.len() < 2 * SLOTS_MIN, "{}", present.slots.len());
        assert_eq!(PresentKeys::new(1000).slots.len(), 1500);
    }

    #[test]
    fn any_member_is_as_likely() {
        let mut rng = Rng::new(1, 0);
        let mut counts = [0u32; 10];
        let mut full = PresentKeys::new(0);
        (0..10).for_each(|key| assert!(full.insert(key * 7)));
        for _ in 0..50_000 {
            counts[full.clone().remove_any(&mut rng) as usize / 7] += 1;
        }
        // Nine degrees of freedom: chi squared is over 27.9 once in a thousand.
        let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 5e3).powi(2) / 5e3).sum();
        assert!(chi < 27.9, "{counts:?}");
    }
}
