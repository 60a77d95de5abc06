//! The versions of one key in a memtable.
//!
//! Pruning loses history, and kinds are history: an insert over a delete that has been forgotten
//! would, met by a remove, vanish and uncover what the delete had hidden. So the oldest version of
//! a chain carries the net effect of itself over all that was pruned beneath it, folded in the
//! order of writing. Where a remove and the insert under it come to nothing they go together: a
//! read falls through to whatever is older than the memtable, where by the promise of `Insert`
//! the key is absent.
//!
//! The order of folding matters to the bytes that stay, though not to any answer: grouped in
//! another way a remove can outlive its insert as a tombstone. `Fold` therefore folds in the order
//! of writing too, and what it makes of a chain, pruned early, late or never, is always `net`.

use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo, logical_bytes};
use std::collections::VecDeque;

use super::KeepFrom;

/// One write of a key.
#[derive(Debug)]
pub(super) struct Stored {
    /// When it was written.
    pub(super) seq: SeqNo,
    /// What it says.
    pub(super) kind: EntryKind,
    /// Where its value is.
    pub(super) place: Place,
}

impl Default for Stored {
    fn default() -> Stored {
        Stored { seq: SeqNo(0), kind: EntryKind::Put, place: Place::default() }
    }
}

/// Where a value is.
#[derive(Debug)]
pub(super) enum Place {
    /// In the memtable's arena.
    Short { at: u32, bytes: u16 },
    /// In memory of its own. Behind a pointer, for few are.
    Long(Box<Bytes>),
}

impl Default for Place {
    fn default() -> Place {
        Place::Short { at: 0, bytes: 0 }
    }
}

/// All versions of one key that somebody may read; at least one.
#[derive(Debug, Default)]
pub(super) struct Chain {
    newest: Stored,
    older: History,
    /// What all writes of the key come to, pruned ones included: the kind that a flush without
    /// snapshots writes, with the newest value; `None` where they leave nothing.
    net: Option<EntryKind>,
}

/// Versions under the newest one, oldest first.
#[derive(Debug, Default)]
struct History(VecDeque<Stored>);

impl Chain {
    pub(super) fn new(first: Stored) -> Chain {
        Chain { net: Some(first.kind), newest: first, older: History::default() }
    }

    /// Adds the newest version and prunes; the places of what pruning dropped go to `free`.
    pub(super) fn push(&mut self, version: Stored, keep: KeepFrom, free: &mut impl FnMut(Place)) {
        self.net = on_top(version.kind, self.net);
        let older = std::mem::replace(&mut self.newest, version);
        if self.older.0.capacity() == 0 {
            // Most often one is kept, and another one for as long as it takes to prune it.
            self.older.0.reserve_exact(2);
        }
        self.older.0.push_back(older);
        self.older.prune(keep, free);
    }

    /// Says where the newest value is.
    pub(super) fn place_newest(&mut self, place: Place) {
        self.newest.place = place;
    }

    /// The newest version that `snapshot` sees.
    pub(super) fn at(&self, snapshot: SeqNo) -> Option<&Stored> {
        if self.newest.seq <= snapshot {
            return Some(&self.newest);
        }
        let older = &self.older.0;
        older.partition_point(|version| version.seq <= snapshot).checked_sub(1).map(|i| &older[i])
    }

    /// Every version, newest first.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Stored> {
        std::iter::once(&self.newest).chain(self.older.0.iter().rev())
    }

    /// Logical bytes that a flush without snapshots writes for the key; `None` where it writes
    /// nothing.
    pub(super) fn live_bytes(&self, key_bytes: usize) -> Option<u64> {
        self.net.map(|_| logical_bytes(key_bytes, self.newest.place.bytes()))
    }
}

impl History {
    /// Forgets what lies under the newest version at or below `keep`.
    fn prune(&mut self, keep: KeepFrom, free: &mut impl FnMut(Place)) {
        let readable_by_oldest = self.0.partition_point(|version| version.seq <= keep.0);
        let mut net = None;
        for version in self.0.drain(..readable_by_oldest.saturating_sub(1)) {
            net = on_top(version.kind, net);
            free(version.place);
        }
        if let (Some(net), Some(oldest)) = (net, self.0.front_mut()) {
            match oldest.kind.over(net) {
                Some(kind) => oldest.kind = kind,
                None => free(self.0.pop_front().map(|pair| pair.place).unwrap_or_default()),
            }
        }
    }
}

/// What `kind` comes to when written on top of `older`, the net effect so far.
fn on_top(kind: EntryKind, older: Option<EntryKind>) -> Option<EntryKind> {
    older.map_or(Some(kind), |older| kind.over(older))
}

#[cfg(test)]
mod tests {
    use super::*;
    use EntryKind::{Delete, Insert, Put, Remove};

    fn chain(kinds: &[EntryKind], keep: KeepFrom) -> Chain {
        let version =
            |i: usize| Stored { seq: SeqNo(i as u64 + 1), kind: kinds[i], place: Place::default() };
        let mut chain = Chain::new(version(0));
        for i in 1..kinds.len() {
            chain.push(version(i), KeepFrom(keep.0.min(SeqNo(i as u64))), &mut |_| ());
        }
        chain
    }

    fn kept(chain: &Chain) -> Vec<(u64, EntryKind)> {
        chain.versions().map(|version| (version.seq.0, version.kind)).collect()
    }

    #[test]
    fn overwriting_keeps_the_newest_two() {
        assert_eq!(kept(&chain(&[Put; 50], KeepFrom(SeqNo::MAX))), [(50, Put), (49, Put)]);
    }

    #[test]
    fn a_held_snapshot_keeps_its_version_and_all_newer_ones() {
        let chain = chain(&[Put, Put, Delete, Put], KeepFrom(SeqNo(2)));
        assert_eq!(kept(&chain), [(4, Put), (3, Delete), (2, Put)]);
        assert_eq!(chain.at(SeqNo(3)).map(|version| version.kind), Some(Delete));
        assert!(chain.at(SeqNo(1)).is_none());
    }

    /// Were the insert still an insert, its remove would cancel it and uncover whatever the
    /// delete had hidden in older tables.
    #[test]
    fn a_pruned_delete_is_remembered_in_the_kind_above_it() {
        let chain = chain(&[Delete, Insert, Remove], KeepFrom(SeqNo::MAX));
        assert_eq!(kept(&chain), [(3, Remove), (2, Put)]);
        assert_eq!(chain.net, Some(Remove));
    }

    #[test]
    fn a_pruned_pair_leaves_nothing_behind() {
        let chain = chain(&[Insert, Remove, Insert], KeepFrom(SeqNo::MAX));
        assert_eq!(kept(&chain), [(3, Insert)]);
        assert!(chain.at(SeqNo(2)).is_none());
        assert_eq!(chain.live_bytes(1), Some(9));
    }

    #[test]
    fn a_whole_story_that_comes_to_nothing_counts_nothing() {
        assert_eq!(chain(&[Insert, Put, Remove], KeepFrom(SeqNo(1))).live_bytes(1), None);
    }
}
