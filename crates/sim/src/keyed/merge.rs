//! Merging sorted entries, with the net effect of versions of one key.

use super::entry::{Expired, KeyedEntry};
use super::hiding::Hiding;
use super::table::Part;
use lsmith_tree::{EntryKind, MergePlan, SeqNo};

/// Above every rank.
const END: u64 = u64::MAX;

/// What a merge may drop, and what it has dropped.
#[derive(Clone, Debug, Default)]
pub(super) struct Dropping<M = Option<Box<More>>> {
    /// True if nothing lies below the merge.
    pub(super) bottom: bool,
    /// What else it drops and forgets; `None` for nothing, as most simulations have it.
    pub(super) more: M,
    pub(super) dropped: Dropped,
}

/// Changes entries before a merge folds and writes them. As a type parameter, so that merges that
/// change nothing do not ask for each entry.
pub(super) trait Changes {
    /// Returns true if a range delete hides `entry`.
    fn hides<E: KeyedEntry>(&mut self, entry: E) -> bool;

    /// Returns a tombstone in place of an entry that has expired. Other values forget their
    /// sequence numbers, if no range delete is older than they are.
    fn changed<E: KeyedEntry>(&mut self, entry: E) -> E;
}

/// Changes nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unchanged;

/// What a merge drops and forgets if entries expire or go by ranges.
#[derive(Clone, Debug, Default)]
pub(super) struct More {
    pub(super) expired: Expired,
    /// True if values forget their sequence numbers.
    pub(super) forgets: bool,
    pub(super) hiding: Option<Hiding>,
}

impl Changes for Unchanged {
    #[inline]
    fn hides<E: KeyedEntry>(&mut self, _: E) -> bool {
        false
    }

    #[inline]
    fn changed<E: KeyedEntry>(&mut self, entry: E) -> E {
        entry
    }
}

impl Changes for Option<Box<More>> {
    fn hides<E: KeyedEntry>(&mut self, entry: E) -> bool {
        let hiding = self.as_mut().and_then(|more| more.hiding.as_mut());
        hiding.is_some_and(|hiding| hiding.hides(entry))
    }

    fn changed<E: KeyedEntry>(&mut self, entry: E) -> E {
        let Some(more) = self else { return entry };
        let entry = entry.expired(&more.expired);
        let is_value = entry.kind().is_value() || entry.kind() == EntryKind::Expiring;
        let needs_seq = |hiding: &mut Hiding| hiding.needs_seq(entry);
        let is_forgotten = more.forgets && is_value && !more.hiding.as_mut().is_some_and(needs_seq);
        if is_forgotten { entry.forgotten() } else { entry }
    }
}

/// The entries that a merge has dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Dropped {
    /// The number of dropped entries.
    pub(super) entries: u64,
    /// The greatest sequence number of a dropped tombstone.
    pub(super) below: SeqNo,
}

impl Dropping {
    /// Returns the sequence number up to which `plan` applies the range deletes over its keys.
    pub(super) fn deletes_applied(&self, plan: &MergePlan) -> SeqNo {
        self.hiding().map_or(SeqNo(0), |hiding| hiding.deletes_applied(&plan.hull()))
    }

    /// Returns what a merge drops that folds memory: only versions that newer ones replace.
    pub(super) fn nothing() -> Dropping {
        Dropping::default()
    }

    /// Returns the range deletes, if there are any.
    pub(super) fn hiding(&self) -> Option<&Hiding> {
        self.more.as_ref()?.hiding.as_ref()
    }

    /// Returns what a merge drops that others fold again: tombstones and sequence numbers stay.
    pub(super) fn of_first(&self) -> Dropping {
        let more = self.more.clone().map(|more| Box::new(More { forgets: false, ..*more }));
        Dropping { more, ..Dropping::default() }
    }

    /// Returns the same without `more`, if that is nothing.
    pub(super) fn plain(&self) -> Option<Dropping<Unchanged>> {
        let Dropping { bottom, more, dropped } = self;
        more.is_none().then_some(Dropping { bottom: *bottom, more: Unchanged, dropped: *dropped })
    }
}

impl<M: Changes> Dropping<M> {
    /// Returns what is left of the only version of a key.
    #[inline]
    pub(super) fn alone<E: KeyedEntry>(&mut self, entry: E) -> Option<E> {
        let shown = self.shown(entry)?;
        self.survivor(shown)
    }

    /// Returns `entry`, unless a range delete hides it.
    #[inline]
    pub(super) fn shown<E: KeyedEntry>(&mut self, entry: E) -> Option<E> {
        if self.more.hides(entry) {
            self.dropped.entries += 1;
            return None;
        }
        Some(entry)
    }

    /// Returns `entry`, or a tombstone in its place if it has expired. Drops tombstones if nothing
    /// lies below the merge.
    #[inline]
    pub(super) fn survivor<E: KeyedEntry>(&mut self, entry: E) -> Option<E> {
        let entry = self.more.changed(entry);
        if self.bottom && entry.is_tombstone() {
            self.dropped.entries += 1;
            self.dropped.below = self.dropped.below.max(entry.seq());
            return None;
        }
        Some(entry)
    }

    /// Folds two entries of one key into one or none.
    #[inline]
    pub(super) fn fold<E: KeyedEntry>(&mut self, newer: E, older: E) -> Option<E> {
        let net = newer.over(older);
        self.dropped.entries += 1 + u64::from(net.is_none());
        if net.is_none() {
            self.dropped.below = self.dropped.below.max(newer.seq());
        }
        net
    }
}

/// An input of a merge: sorted entries in several pieces that follow each other in key order.
#[derive(Debug)]
pub(super) struct Pieces<'a, E> {
    /// The pieces behind the first, in reverse order.
    rest: Vec<&'a [E]>,
    first: &'a [E],
    len: usize,
}

impl<'a, E: KeyedEntry> Pieces<'a, E> {
    pub(super) fn new(mut pieces: Vec<&'a [E]>) -> Pieces<'a, E> {
        pieces.retain(|piece| !piece.is_empty());
        pieces.reverse();
        let len = pieces.iter().map(|piece| piece.len()).sum();
        let first = pieces.pop().unwrap_or_default();
        Pieces { rest: pieces, first, len }
    }

    /// Returns the entries of parts of tables.
    pub(super) fn of(parts: &[Part<'a, E>]) -> Pieces<'a, E> {
        Pieces::new(parts.iter().map(Part::entries).collect())
    }

    /// Returns the number of entries at the start.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn rank(&self) -> u64 {
        self.first.first().map_or(END, |entry| u64::from(entry.rank()))
    }

    /// Removes all entries below the rank `bound`, and calls `f` with each.
    #[inline]
    fn take_below(&mut self, bound: u64, mut f: impl FnMut(E)) {
        loop {
            let below = |entry: &&E| u64::from(entry.rank()) < bound;
            let mut taken = 0;
            for entry in self.first.iter().take_while(below) {
                f(*entry);
                taken += 1;
            }
            self.first = &self.first[taken..];
            if !self.first.is_empty() || self.rest.is_empty() {
                return;
            }
            self.first = self.rest.pop().unwrap_or_default();
        }
    }

    /// Removes and returns the first entry, which must exist.
    #[inline]
    fn take(&mut self) -> E {
        let entry = self.first[0];
        self.first = &self.first[1..];
        if self.first.is_empty() {
            self.first = self.rest.pop().unwrap_or_default();
        }
        entry
    }
}

/// The next entry of an input.
#[derive(Clone, Copy, Debug)]
struct NextEntry {
    rank: u64,
    side: usize,
}

impl NextEntry {
    /// Returns true if this entry is merged before `other`: the smaller key first, and of equal
    /// keys the older entry.
    #[inline]
    fn comes_before(self, other: NextEntry) -> bool {
        (self.rank, other.side) < (other.rank, self.side)
    }
}

/// Merges `sides`, newest first. Each must be sorted and hold one entry per key. Calls `emit` with
/// the net effect of the versions of each key, in key order, without what `dropping` drops.
/// Versions are folded from the oldest to the newest, as they were written.
pub(super) fn merge<E: KeyedEntry>(
    sides: Vec<Pieces<'_, E>>,
    dropping: Dropping,
    emit: impl FnMut(E),
) -> Dropped {
    match dropping.plain() {
        Some(plain) => merge_by(sides, plain, emit),
        None => merge_by(sides, dropping, emit),
    }
}

fn merge_by<E: KeyedEntry>(
    mut sides: Vec<Pieces<'_, E>>,
    mut dropping: Dropping<impl Changes>,
    mut emit: impl FnMut(E),
) -> Dropped {
    let heads = sides.iter().enumerate();
    let mut heap: Vec<NextEntry> =
        heads.map(|(side, pieces)| NextEntry { rank: pieces.rank(), side }).collect();
    heap.sort_unstable_by_key(|head| (head.rank, usize::MAX - head.side));
    while let Some(&NextEntry { rank, side }) = heap.first() {
        // The least rank of the other inputs: up to there this input continues alone.
        let others = heap[1..].iter().take(2).map(|head| head.rank);
        let bound = others.min().unwrap_or(END);
        if rank == END {
            break;
        }
        if rank < bound {
            sides[side].take_below(bound, |entry| {
                if let Some(entry) = dropping.alone(entry) {
                    emit(entry);
                }
            });
            sift(&mut heap, NextEntry { rank: sides[side].rank(), side });
            continue;
        }
        let mut net = None;
        while heap[0].rank == rank {
            let side = heap[0].side;
            let entry = sides[side].take();
            if let Some(entry) = dropping.shown(entry) {
                net = match net {
                    Some(older) => dropping.fold(entry, older),
                    None => Some(entry),
                };
            }
            sift(&mut heap, NextEntry { rank: sides[side].rank(), side });
        }
        if let Some(entry) = net.and_then(|net| dropping.survivor(net)) {
            emit(entry);
        }
    }
    dropping.dropped
}

/// Replaces the first element of `heap` by `head`, and restores the order of the heap.
#[inline]
fn sift(heap: &mut [NextEntry], head: NextEntry) {
    let mut at = 0;
    loop {
        let mut child = 2 * at + 1;
        if child >= heap.len() {
            break;
        }
        if child + 1 < heap.len() && heap[child + 1].comes_before(heap[child]) {
            child += 1;
        }
        if !heap[child].comes_before(head) {
            break;
        }
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = head;
}

#[cfg(test)]
mod tests {
    use super::super::entry::Entry;
    use super::*;
    use lsmith_tree::EntryKind::{self, Delete, Insert, Put, Remove};

    fn entry(rank: u32, seq: u64, kind: EntryKind) -> Entry {
        Entry::new(rank, 10, SeqNo(seq), kind)
    }

    fn merged(sides: &[&[Entry]], nothing_beneath: bool) -> (Vec<Entry>, Dropped) {
        let sides = sides.iter().map(|side| {
            let (left, right) = side.split_at(side.len() / 2);
            Pieces::new(vec![left, &[], right])
        });
        let mut entries = Vec::new();
        let dropping = Dropping { bottom: nothing_beneath, ..Dropping::default() };
        let dropped = merge(sides.collect(), dropping, |entry| entries.push(entry));
        (entries, dropped)
    }

    #[test]
    fn the_newest_version_stays_and_pairs_vanish() {
        let newer = [entry(1, 9, Put), entry(2, 8, Remove), entry(4, 7, Delete)];
        let older = [entry(1, 3, Put), entry(2, 2, Insert), entry(3, 1, Put)];
        let (entries, dropped) = merged(&[&newer, &older], false);
        assert_eq!(entries, [entry(1, 9, Put), entry(3, 1, Put), entry(4, 7, Delete)]);
        assert_eq!(dropped, Dropped { entries: 3, below: SeqNo(8) });

        let (entries, dropped) = merged(&[&entries], true);
        assert_eq!(entries, [entry(1, 9, Put), entry(3, 1, Put)]);
        assert_eq!(dropped, Dropped { entries: 1, below: SeqNo(7) });
    }

    #[test]
    fn versions_are_folded_from_the_oldest_on() {
        let sides =
            [entry(5, 4, Remove), entry(5, 3, Put), entry(5, 2, Delete), entry(5, 1, Insert)];
        let sides: Vec<&[Entry]> = sides.iter().map(std::slice::from_ref).collect();
        assert_eq!(merged(&sides, false).0, [entry(5, 4, Remove)]);
    }

    /// A merge of any number of sides gives the same result as merging them one by one, oldest
    /// first.
    #[test]
    fn many_sides_come_to_what_pairs_of_them_come_to() {
        let mut state = 7_u64;
        let mut below = |bound: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % bound
        };
        for round in 0..200 {
            let mut seq = 1000;
            let mut sides: Vec<Vec<Entry>> = Vec::new();
            for _ in 0..below(7) {
                let ranks: std::collections::BTreeSet<u64> =
                    (0..below(30)).map(|_| below(40)).collect();
                sides.push(
                    ranks
                        .iter()
                        .map(|rank| {
                            seq -= 1;
                            entry(*rank as u32, seq, super::super::entry::kind_of(below(4) as u8))
                        })
                        .collect(),
                );
            }
            let bottom = round % 2 == 0;
            let slices: Vec<&[Entry]> = sides.iter().map(|side| &side[..]).collect();
            let (entries, dropped) = merged(&slices, bottom);
            let mut expected: Vec<Entry> = Vec::new();
            let mut gone = 0;
            for side in sides.iter().rev() {
                let (merged, dropped) = merged(&[side, &expected], false);
                expected = merged;
                gone += dropped.entries;
            }
            let before = expected.len();
            expected.retain(|entry| !(bottom && entry.kind().is_tombstone()));
            gone += (before - expected.len()) as u64;
            assert_eq!((entries, dropped.entries), (expected, gone), "round {round}");
        }
    }
}
