//! The versions of one key in a memtable.
//!
//! Pruning drops history, and kinds depend on history. Suppose an insert over a dropped delete
//! meets a remove: both would vanish and uncover the entry that the delete had hidden. So the
//! oldest version of a chain carries the net effect of itself over all versions pruned beneath it,
//! folded in the order of writing. If a remove and the insert under it cancel, both are dropped. A
//! read then continues in older runs, where the key is absent, as `Insert` promises.
//!
//! The order of folding can change the bytes that stay, but not any answer: in another order a
//! remove can outlive its insert as a tombstone. `Fold` therefore folds in the order of writing
//! too. Its result for a chain is always `net`, however early the chain was pruned.

use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo, logical_bytes};
use std::collections::VecDeque;

use super::KeepFrom;

/// One version of a key.
#[derive(Debug)]
pub(super) struct Stored {
    /// The sequence number of the write.
    pub(super) seq: SeqNo,
    /// The kind of the write.
    pub(super) kind: EntryKind,
    /// For a combine, the number of combines in a row that end with it. Otherwise 0.
    operands: u32,
    /// The place of the value.
    pub(super) place: ValuePlace,
}

impl Default for Stored {
    fn default() -> Stored {
        Stored::new(SeqNo(0), EntryKind::Put, ValuePlace::default())
    }
}

impl Stored {
    pub(super) fn new(seq: SeqNo, kind: EntryKind, place: ValuePlace) -> Stored {
        Stored { seq, kind, operands: u32::from(kind == EntryKind::Combine), place }
    }
}

/// The place of a value.
#[derive(Debug)]
pub(super) enum ValuePlace {
    /// In the memtable's arena.
    Short { at: u32, bytes: u16 },
    /// In memory of its own. The pointer keeps the enum small, because long values are rare.
    Long(Box<Bytes>),
}

impl Default for ValuePlace {
    fn default() -> ValuePlace {
        ValuePlace::Short { at: 0, bytes: 0 }
    }
}

/// All versions of one key that a reader may need; at least one.
#[derive(Debug, Default)]
pub(super) struct Chain {
    newest: Stored,
    older: History,
    /// The net effect of all writes of the key, including pruned ones: the kind that a flush
    /// without snapshots writes, with the newest value. `None` if they cancel.
    net: Option<EntryKind>,
}

/// The versions under the newest one, oldest first.
#[derive(Debug, Default)]
struct History(VecDeque<Stored>);

impl Chain {
    pub(super) fn new(first: Stored) -> Chain {
        Chain { net: Some(first.kind), newest: first, older: History::default() }
    }

    /// Adds the newest version and prunes. Calls `free` with the places of dropped values.
    pub(super) fn push(
        &mut self,
        mut version: Stored,
        keep: KeepFrom,
        free: &mut impl FnMut(ValuePlace),
    ) {
        if version.kind == EntryKind::Combine {
            version.operands = self.newest.operands.saturating_add(1);
        }
        self.net = net_over(version.kind, self.net);
        let older = std::mem::replace(&mut self.newest, version);
        if self.older.0.capacity() == 0 {
            // Usually one older version is kept, and another one until it is pruned.
            self.older.0.reserve_exact(2);
        }
        self.older.0.push_back(older);
        self.older.prune(keep, free);
    }

    /// Sets the place of the newest value.
    pub(super) fn set_newest_place(&mut self, place: ValuePlace) {
        self.newest.place = place;
    }

    /// Returns the newest version that `snapshot` sees.
    pub(super) fn at(&self, snapshot: SeqNo) -> Option<&Stored> {
        if self.newest.seq <= snapshot {
            return Some(&self.newest);
        }
        let older = &self.older.0;
        older.partition_point(|version| version.seq <= snapshot).checked_sub(1).map(|i| &older[i])
    }

    /// Returns the versions that a read of `snapshot` needs if the newest is a combine, newest
    /// first: all down to the first that is none.
    pub(super) fn stack_at(&self, snapshot: SeqNo) -> impl Iterator<Item = &Stored> {
        let seen = self.versions().skip_while(move |version| version.seq > snapshot);
        let mut is_whole = false;
        seen.take_while(move |version| {
            !std::mem::replace(&mut is_whole, version.kind != EntryKind::Combine)
        })
    }

    /// Returns all versions, newest first.
    pub(super) fn versions(&self) -> impl Iterator<Item = &Stored> {
        std::iter::once(&self.newest).chain(self.older.0.iter().rev())
    }

    /// Returns the logical bytes that a flush without snapshots writes for the key, or `None` if it
    /// writes nothing.
    pub(super) fn live_bytes(&self, key_bytes: usize) -> Option<u64> {
        self.net.map(|_| logical_bytes(key_bytes, self.newest.place.bytes()))
    }
}

impl History {
    /// Drops the versions under the newest one at or below `keep`, and, if that is a combine, under
    /// the first one below it that is none.
    fn prune(&mut self, keep: KeepFrom, free: &mut impl FnMut(ValuePlace)) {
        let readable_by_oldest = self.0.partition_point(|version| version.seq <= keep.0);
        let mut unread = readable_by_oldest.saturating_sub(1);
        if let Some(combine) = self.0.get(unread).filter(|version| version.operands > 0) {
            unread = unread.saturating_sub(combine.operands as usize);
        }
        let mut net = None;
        for version in self.0.drain(..unread) {
            net = net_over(version.kind, net);
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

/// Returns the net effect of `kind` over `older`, the net effect so far.
fn net_over(kind: EntryKind, older: Option<EntryKind>) -> Option<EntryKind> {
    older.map_or(Some(kind), |older| kind.over(older))
}

#[cfg(test)]
mod tests {
    use super::*;
    use EntryKind::{Combine, Delete, Insert, Put, Remove};

    fn chain(kinds: &[EntryKind], keep: KeepFrom) -> Chain {
        let version = |i: usize| Stored::new(SeqNo(i as u64 + 1), kinds[i], ValuePlace::default());
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

    /// If the version were still an insert, the remove would cancel it and uncover the entry that
    /// the delete had hidden in older tables.
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

    fn stack(chain: &Chain, snapshot: u64) -> Vec<u64> {
        chain.stack_at(SeqNo(snapshot)).map(|version| version.seq.0).collect()
    }

    #[test]
    fn combines_keep_what_lies_below_them_down_to_a_value() {
        let kinds = [Put, Put, Combine, Combine, Combine];
        let kept_of = |keep| chain(&kinds, KeepFrom(SeqNo(keep)));
        let all = kept_of(u64::MAX);
        assert_eq!(kept(&all), [(5, Combine), (4, Combine), (3, Combine), (2, Put)]);
        assert_eq!(stack(&all, 5), [5, 4, 3, 2]);
        assert_eq!(stack(&all, 3), [3, 2]);
        assert_eq!(stack(&all, 1), []);
        assert_eq!(stack(&kept_of(1), 1), [1]);
        // A put above them ends the need for them, but only for readers that see it.
        let hidden = chain(&[Put, Combine, Combine, Put, Put], KeepFrom(SeqNo::MAX));
        assert_eq!(kept(&hidden), [(5, Put), (4, Put)]);
        let seen = chain(&[Put, Combine, Combine, Put, Put], KeepFrom(SeqNo(3)));
        assert_eq!(kept(&seen), [(5, Put), (4, Put), (3, Combine), (2, Combine), (1, Put)]);
        // Without a value below, all stay: older runs may have one.
        let bare = chain(&[Combine, Combine, Combine], KeepFrom(SeqNo::MAX));
        assert_eq!(stack(&bare, 9), [3, 2, 1]);
        // The combine lies on nothing that this memtable knows.
        let vanished = chain(&[Insert, Remove, Combine, Combine], KeepFrom(SeqNo::MAX));
        assert_eq!(stack(&vanished, 9), [4, 3]);
    }

    #[test]
    fn history_that_cancels_counts_no_bytes() {
        assert_eq!(chain(&[Insert, Put, Remove], KeepFrom(SeqNo(1))).live_bytes(1), None);
    }
}
