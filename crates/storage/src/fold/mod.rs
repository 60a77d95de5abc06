//! The rule of what a merge writes: which entries go on, and which nobody will miss.
//!
//! Live snapshots cut time into stripes. No reader can tell the versions of a key apart that lie
//! within one stripe, except for the newest: it goes on, as the net effect of itself over the
//! others ([`EntryKind::over`](lsmith_tree::EntryKind::over)).
//!
//! ```text
//!   time     ------ s1 ---------------- s2 -------- >      s1, s2: live snapshots
//!   key k       1        2     3    4        5             versions
//!   goes on     1                   4        5
//! ```
//!
//! An insert and the remove of it leave nothing, if no snapshot lies between them. A tombstone goes
//! where no snapshot is older than it and no older entry of its key lies beneath the merge: then
//! everything that it hides has been met and is gone already.
//!
//! What goes on from the oldest stripe is seen by every reader, whatever its number. Where the
//! output is a table it goes on with the number 0, which takes no room; see
//! [`forgetting`](Fold::forgetting).
//!
//! Versions of a stripe are folded from the oldest to the newest, as if written one after the
//! other. The order matters for what can cancel: of *insert, delete, put, remove* the fold makes a
//! remove, while *remove over (put over delete)* could still cancel the insert. A memtable that has
//! forgotten old versions has folded them in this order too, so whether it forgot in time or not
//! makes no difference to what a flush writes.

mod walk;

pub use walk::Walk;

use crate::cursor::EntryRef;
use crate::error::Result;
use crate::format::common_prefix_bytes;
use lsmith_tree::{EntryKind, SeqNo};
use std::ops::AddAssign;

/// What became of the entries that went into a merge.
///
/// Every entry has one fate, so when the merge is over
///
/// ```text
/// entries_in = entries_out + superseded + tombstones_dropped + 2 * pairs_cancelled
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldCounts {
    /// Entries that the inputs held.
    pub entries_in: u64,
    /// Entries to be written.
    pub entries_out: u64,
    /// Entries dropped for a newer one of their key. (What they meant lives on in its kind.)
    pub superseded: u64,
    /// Tombstones dropped because nothing lies beneath them.
    pub tombstones_dropped: u64,
    /// Inserts that vanished together with the remove on top of them: two entries each.
    pub pairs_cancelled: u64,
    /// At or above the sequence number of every tombstone that was dropped or cancelled.
    pub dropped_below: SeqNo,
}

impl AddAssign for FoldCounts {
    fn add_assign(&mut self, other: FoldCounts) {
        self.entries_in += other.entries_in;
        self.entries_out += other.entries_out;
        self.superseded += other.superseded;
        self.tombstones_dropped += other.tombstones_dropped;
        self.pairs_cancelled += other.pairs_cancelled;
        self.dropped_below = self.dropped_below.max(other.dropped_below);
    }
}

impl FoldCounts {
    /// Whether every entry that went in has met a fate.
    fn is_balanced(&self) -> bool {
        let gone = self.superseded + self.tombstones_dropped + 2 * self.pairs_cancelled;
        self.entries_in == self.entries_out + gone
    }
}

/// Yields exactly the entries that the output of a merge must contain, in order.
///
/// `nothing_beneath` says of a key whether no entry of it exists that is older than the merge's
/// inputs. It is asked for the keys of tombstones that could go, in ascending order.
pub struct Fold<C, B> {
    cursor: C,
    /// Newest first.
    snapshots: Vec<SeqNo>,
    nothing_beneath: B,
    held: Held,
    /// Kinds of a stripe's versions, newest first; kept for its memory.
    kinds: Vec<EntryKind>,
    forgets: bool,
    counts: FoldCounts,
}

/// A copy of the newest version of a stripe: the cursor must look behind it.
struct Held {
    key: Vec<u8>,
    seq: SeqNo,
    kind: EntryKind,
    value: Vec<u8>,
}

impl Held {
    fn hold(&mut self, entry: EntryRef<'_>) {
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.seq = entry.seq;
        self.kind = entry.kind;
        self.value.clear();
        self.value.extend_from_slice(entry.value);
    }

    fn entry(&self) -> EntryRef<'_> {
        EntryRef { key: &self.key, seq: self.seq, kind: self.kind, value: &self.value }
    }
}

/// Whether two keys are one, said without a call for short ones.
#[inline]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && common_prefix_bytes(left, right) == left.len()
}

impl<C: Walk, B: FnMut(&[u8]) -> bool> Fold<C, B> {
    /// A fold of all that `cursor` walks, from its start. `snapshots` are the live ones, newest
    /// first.
    ///
    /// # Errors
    /// What the cursor's first step meets.
    pub fn new(mut cursor: C, snapshots: Vec<SeqNo>, nothing_beneath: B) -> Result<Fold<C, B>> {
        debug_assert!(snapshots.is_sorted_by(|newer, older| newer >= older), "newest first");
        cursor.begin()?;
        Ok(Fold {
            cursor,
            snapshots,
            nothing_beneath,
            held: Held {
                key: Vec::new(),
                seq: SeqNo::default(),
                kind: EntryKind::Put,
                value: Vec::new(),
            },
            kinds: Vec::new(),
            forgets: false,
            counts: FoldCounts::default(),
        })
    }

    /// If it `forgets`, gives entries the number 0 that all live snapshots see, and all later ones
    /// will. Tombstones keep theirs: it is told when they are dropped.
    ///
    /// Not for what stays in memory, since the number also says whether a write that is read back
    /// from the log has left memory.
    pub fn forgetting(self, forgets: bool) -> Fold<C, B> {
        Fold { forgets, ..self }
    }

    /// The following entry to be written; `None` when all are.
    ///
    /// # Errors
    /// What the cursor meets. The fold is of no use then.
    pub fn next_entry(&mut self) -> Result<Option<EntryRef<'_>>> {
        while let Some(entry) = self.cursor.here() {
            self.held.hold(entry);
            self.counts.entries_in += 1;
            self.cursor.advance()?;
            let alone = self.cursor.here().is_none_or(|next| !is_same(next.key, &self.held.key));
            let net = if alone { Some(self.held.kind) } else { self.fold_stripe()? };
            let Some(kind) = net else { continue };
            self.held.kind = kind;
            if kind.is_tombstone() && self.is_droppable() {
                self.counts.tombstones_dropped += 1;
                self.counts.dropped_below = self.counts.dropped_below.max(self.held.seq);
                continue;
            }
            if self.forgets && !kind.is_tombstone() && self.stripe_floor().is_none() {
                self.held.seq = SeqNo(0);
            }
            self.counts.entries_out += 1;
            return Ok(Some(self.held.entry()));
        }
        assert!(self.counts.is_balanced(), "a merge lost track of its entries: {:?}", self.counts);
        Ok(None)
    }

    /// Returns what became of the entries so far: of all of them once
    /// [`next_entry`](Fold::next_entry) has returned `None`.
    pub fn counts(&self) -> FoldCounts {
        self.counts
    }

    /// The entry that [`next_entry`](Fold::next_entry) gave last.
    pub fn held(&self) -> EntryRef<'_> {
        self.held.entry()
    }

    /// What it folds.
    pub fn walk(&self) -> &C {
        &self.cursor
    }

    /// What it folds, to be moved on where it stands nowhere: the fold then goes on from there.
    pub fn walk_mut(&mut self) -> &mut C {
        &mut self.cursor
    }

    /// The newest snapshot that doesn't see the held version: the stripe of the versions above
    /// it is the held one's.
    fn stripe_floor(&self) -> Option<SeqNo> {
        let seeing = self.snapshots.partition_point(|snapshot| *snapshot >= self.held.seq);
        self.snapshots.get(seeing).copied()
    }

    /// Whether the held version, a tombstone, hides nothing.
    fn is_droppable(&mut self) -> bool {
        self.stripe_floor().is_none() && (self.nothing_beneath)(&self.held.key)
    }

    /// Steps over the versions of the held one's stripe and returns what all of them come to.
    fn fold_stripe(&mut self) -> Result<Option<EntryKind>> {
        let floor = self.stripe_floor();
        self.kinds.clear();
        self.kinds.push(self.held.kind);
        while let Some(entry) = self.cursor.here()
            && entry.key == self.held.key
            && floor.is_none_or(|floor| floor < entry.seq)
        {
            self.kinds.push(entry.kind);
            self.counts.entries_in += 1;
            self.cursor.advance()?;
        }
        let mut net: Option<EntryKind> = None;
        for &newer in self.kinds.iter().rev() {
            let Some(older) = net else {
                net = Some(newer);
                continue;
            };
            net = newer.over(older);
            if net.is_some() {
                self.counts.superseded += 1;
            } else {
                self.counts.pairs_cancelled += 1;
                self.counts.dropped_below = self.counts.dropped_below.max(self.held.seq);
            }
        }
        Ok(net)
    }
}

#[cfg(test)]
mod tests;
