//! The rule that says which entries a merge writes, and which ones it drops.
//!
//! Live snapshots cut time into stripes. No reader can tell the versions of a key within one stripe
//! apart, except for the newest. So the merge writes the newest, as the net effect of all versions
//! of the stripe ([`EntryKind::over`](lsmith_tree::EntryKind::over)).
//!
//! ```text
//!   time     ------ s1 ---------------- s2 -------- >      s1, s2: live snapshots
//!   key k       1        2     3    4        5             versions
//!   written     1                   4        5
//! ```
//!
//! An insert and its remove both vanish if no snapshot lies between them. A tombstone is dropped if
//! no snapshot is older than it and no older entry of its key lies beneath the merge. Then the
//! merge has met everything that the tombstone hides, and has dropped it.
//!
//! Every reader sees the entries written from the oldest stripe, whatever its sequence number. If
//! the output is a table, they are written with the sequence number 0, which takes no room; see
//! [`forgetting`](Fold::forgetting).
//!
//! The versions of a stripe are folded from the oldest to the newest, as if written one after the
//! other. The order matters for what can cancel: the fold turns *insert, delete, put, remove* into
//! a remove, while *remove over (put over delete)* could still cancel the insert. A memtable that
//! has dropped old versions has folded them in this order too. So a flush writes the same entries,
//! whether the memtable dropped old versions in time or not.
//!
//! If the newest version of a stripe is a combine, its effect is computed by an operator, as far as
//! the merge meets what it lies on. Otherwise several combines of a stripe may stay.

mod operands;
mod walk;

pub use operands::Operators;
pub use walk::Walk;

use crate::cursor::{Cursor, EntryRef};
use crate::error::Result;
use crate::format::common_prefix_bytes;
use crate::read::Leaps;
use lsmith_tree::{EntryKind, KeyRange, RangeDeleteWalk, RangeDeletes, SeqNo, Size};
use operands::Waiting;
use std::ops::AddAssign;

/// Counts what happened to the entries that went into a merge.
///
/// Every entry is counted once, so at the end of the merge
///
/// ```text
/// entries_in = entries_out + superseded + tombstones_dropped + 2 * pairs_cancelled + hidden
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FoldCounts {
    /// Entries of the inputs.
    pub entries_in: u64,
    /// Entries to be written.
    pub entries_out: u64,
    /// Entries dropped for a newer one of their key, whose kind includes their effect.
    pub superseded: u64,
    /// Tombstones dropped because nothing lies beneath them.
    pub tombstones_dropped: u64,
    /// Inserts that vanished together with the remove above them: two entries each.
    pub pairs_cancelled: u64,
    /// Entries dropped because a range delete hides them from all readers.
    pub hidden: u64,
    /// Values that a filter has dropped or changed. Each is counted in another field too.
    pub filtered: u64,
    /// At or above the sequence number of every tombstone that was dropped or cancelled, and of
    /// every operand that was joined with what lies beneath, unless sequence numbers are forgotten.
    pub dropped_below: SeqNo,
}

impl AddAssign for FoldCounts {
    fn add_assign(&mut self, other: FoldCounts) {
        self.entries_in += other.entries_in;
        self.entries_out += other.entries_out;
        self.superseded += other.superseded;
        self.tombstones_dropped += other.tombstones_dropped;
        self.pairs_cancelled += other.pairs_cancelled;
        self.hidden += other.hidden;
        self.filtered += other.filtered;
        self.dropped_below = self.dropped_below.max(other.dropped_below);
    }
}

impl FoldCounts {
    /// Returns true if every entry that went in is counted in one of the other fields.
    fn is_balanced(&self) -> bool {
        let gone =
            self.superseded + self.tombstones_dropped + 2 * self.pairs_cancelled + self.hidden;
        self.entries_in == self.entries_out + gone
    }
}

/// Yields exactly the entries that the output of a merge must contain, in order.
///
/// `nothing_beneath(key)` returns true if no entry of the key is older than the inputs of the
/// merge. It is called for the keys of tombstones that could be dropped, in ascending order.
pub struct Fold<C, B> {
    cursor: C,
    /// Newest first.
    snapshots: Vec<SeqNo>,
    nothing_beneath: B,
    held: HeldEntry,
    /// The kinds of the versions of a stripe, newest first; kept to reuse its memory.
    kinds: Vec<EntryKind>,
    /// Versions of the held key that are to be written next, oldest first.
    waiting: Vec<Waiting>,
    operators: Option<Operators>,
    forgets: bool,
    hiding: Hiding,
    counts: FoldCounts,
}

/// The range deletes that a merge applies.
#[derive(Clone, Debug, Default)]
pub struct Hiding {
    walk: RangeDeleteWalk,
    visible: SeqNo,
    /// True if nothing is dropped.
    keeps: bool,
    leaps: Leaps,
}

impl Hiding {
    /// Returns the range deletes in `range_deletes`. Sequence numbers up to `visible` are applied:
    /// all readers without a snapshot, now and later, see them. The caller must load `visible`
    /// before the list of live snapshots. Entries that are newer than a range delete above
    /// `visible` keep their sequence numbers.
    pub fn new(range_deletes: RangeDeletes, visible: SeqNo) -> Hiding {
        Hiding { walk: RangeDeleteWalk::new(range_deletes), visible, ..Hiding::default() }
    }

    /// Returns the range deletes in `range_deletes` for a merge that drops nothing because of them.
    /// Combines on both sides of a range delete stay apart.
    pub fn keeping(range_deletes: RangeDeletes) -> Hiding {
        Hiding { walk: RangeDeleteWalk::new(range_deletes), keeps: true, ..Hiding::default() }
    }

    /// Returns true if no range was deleted.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.walk.is_empty()
    }

    /// Returns the greatest sequence number up to which the range deletes over `range` are applied
    /// to all entries, if `snapshots` are the live ones, newest first.
    pub fn deletes_applied(&self, range: &KeyRange, snapshots: &[SeqNo]) -> SeqNo {
        self.walk.range_deletes().cleared_by(range, self.oldest_reader(snapshots))
    }

    /// Returns the sequence number that all readers are at or above.
    pub fn oldest_reader(&self, snapshots: &[SeqNo]) -> SeqNo {
        snapshots.last().copied().unwrap_or(SeqNo::MAX).min(self.visible)
    }

    /// Moves `cursor` on from entries that a range delete hides from all readers, as long as its
    /// table or memtable has no newer entries. May pass over such entries without a visit.
    ///
    /// # Errors
    /// Fails if the cursor does, and where it meets a table with entries in a wrong order.
    pub fn leap(&mut self, cursor: &mut impl Cursor, snapshots: &[SeqNo]) -> Result<()> {
        let oldest = self.oldest_reader(snapshots);
        while let Some(entry) = cursor.entry()
            && let Some(part) = self.walk.part_of(entry.key)
            && let below = part.newest_at(oldest)
            && cursor.newest() < below
        {
            let range = part.range.clone();
            self.leaps.leap(cursor, &range, below)?;
        }
        Ok(())
    }

    /// Returns true if a range delete hides `entry` from all readers that see the entry, or if the
    /// entry is the tombstone that stands for a range delete in a memtable.
    fn hides(&mut self, entry: EntryRef<'_>, snapshots: &[SeqNo]) -> bool {
        if self.keeps {
            return false;
        }
        let Some(part) = self.walk.part_of(entry.key) else { return false };
        // The oldest one that hides it: the fewest readers see the entry, but not this range
        // delete.
        let Some(hides) = part.hiding(entry.kind, entry.seq) else { return false };
        let is_between = |snapshot: &SeqNo| entry.seq <= *snapshot && *snapshot < hides;
        hides <= self.visible && !snapshots.iter().any(is_between)
    }

    /// Returns true if a range delete of `key` hides entry `older` and not entry `newer`.
    fn divides(&mut self, key: &[u8], older: SeqNo, newer: SeqNo) -> bool {
        let Some(part) = self.walk.part_of(key) else { return false };
        part.seqs.iter().any(|hides| older < *hides && *hides <= newer)
    }

    /// Returns true if a range delete of `key` does not hide entry `seq`. Without its sequence
    /// number the entry would lie under the range delete.
    fn needs_seq(&mut self, key: &[u8], seq: SeqNo) -> bool {
        self.walk.part_of(key).is_some_and(|part| part.oldest() <= seq)
    }
}

/// A copy of the newest version of a stripe, because the cursor moves on behind it.
struct HeldEntry {
    key: Vec<u8>,
    seq: SeqNo,
    kind: EntryKind,
    value: Vec<u8>,
    mark: u32,
}

impl HeldEntry {
    fn copy_from(&mut self, entry: EntryRef<'_>, mark: u32) {
        self.mark = mark;
        self.key.clear();
        self.key.extend_from_slice(entry.key);
        self.seq = entry.seq;
        self.kind = entry.kind;
        self.value.clear();
        self.value.extend_from_slice(entry.value);
    }

    fn size(&self) -> Size {
        Size {
            bytes: self.entry().logical_bytes(),
            entries: 1,
            tombstones: u64::from(self.kind.is_tombstone()),
        }
    }

    fn entry(&self) -> EntryRef<'_> {
        EntryRef { key: &self.key, seq: self.seq, kind: self.kind, value: &self.value }
    }
}

/// Returns true if two keys are equal, without a call for short ones.
#[inline]
fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.len() == right.len() && common_prefix_bytes(left, right) == left.len()
}

impl<C: Walk, B: FnMut(&[u8]) -> bool> Fold<C, B> {
    /// Folds all entries of `cursor`, from its start. `snapshots` are the live ones, newest first.
    ///
    /// # Errors
    /// Fails if the first step of the cursor fails.
    pub fn new(mut cursor: C, snapshots: Vec<SeqNo>, nothing_beneath: B) -> Result<Fold<C, B>> {
        debug_assert!(snapshots.is_sorted_by(|newer, older| newer >= older), "newest first");
        cursor.begin()?;
        Ok(Fold {
            cursor,
            snapshots,
            nothing_beneath,
            held: HeldEntry {
                key: Vec::new(),
                seq: SeqNo::default(),
                kind: EntryKind::Put,
                value: Vec::new(),
                mark: 0,
            },
            kinds: Vec::new(),
            waiting: Vec::new(),
            operators: None,
            forgets: false,
            hiding: Hiding::default(),
            counts: FoldCounts::default(),
        })
    }

    /// If `forgets`, replaces the sequence number by 0 in entries that all live and later snapshots
    /// see. Tombstones keep their sequence numbers, because the fold reports when they are dropped.
    /// Combines keep theirs, because several of a key may stay.
    ///
    /// Not for entries that stay in memory: there the sequence number also tells whether a write
    /// that is read back from the log has left memory.
    pub fn forgetting(self, forgets: bool) -> Fold<C, B> {
        Fold { forgets, ..self }
    }

    /// Computes combines by `operators`. Without them all combines stay, with what they lie on.
    pub fn combining(self, operators: Option<Operators>) -> Fold<C, B> {
        Fold { operators, ..self }
    }

    /// Drops entries that the range deletes in `hiding` hide from all readers. Entries that are
    /// newer than one of them keep their sequence numbers.
    pub fn hiding(self, hiding: Hiding) -> Fold<C, B> {
        Fold { hiding, ..self }
    }

    /// Returns the next entry to be written, or `None` after the last one.
    ///
    /// # Errors
    /// Fails if the cursor or a filter fails. The fold must not be used after that.
    pub fn next_entry(&mut self) -> Result<Option<EntryRef<'_>>> {
        if !self.waiting.is_empty() {
            return Ok(Some(self.next_waiting()));
        }
        while let Some(entry) = self.cursor.here() {
            if !self.hiding.is_empty() && self.hiding.hides(entry, &self.snapshots) {
                self.counts.entries_in += 1;
                self.counts.hidden += 1;
                self.cursor.advance()?;
                continue;
            }
            self.held.copy_from(entry, self.cursor.mark());
            self.counts.entries_in += 1;
            self.cursor.pass(self.held.size())?;
            if self.held.kind == EntryKind::Combine {
                self.fold_operands()?;
                return Ok(Some(self.next_waiting()));
            }
            let alone = self.cursor.here().is_none_or(|next| !is_same(next.key, &self.held.key));
            let net = if alone { Some(self.held.kind) } else { self.fold_stripe()? };
            let Some(mut kind) = net else { continue };
            if self.operators.is_some() {
                kind = self.judge(kind)?;
            }
            self.held.kind = kind;
            if kind.is_tombstone() {
                if self.is_droppable() {
                    self.counts.tombstones_dropped += 1;
                    self.counts.dropped_below = self.counts.dropped_below.max(self.held.seq);
                    continue;
                }
            } else if self.forgets && self.stripe_floor().is_none() && !self.needs_seq() {
                self.held.seq = SeqNo(0);
            }
            self.counts.entries_out += 1;
            return Ok(Some(self.held.entry()));
        }
        assert!(self.counts.is_balanced(), "a merge lost track of its entries: {:?}", self.counts);
        Ok(None)
    }

    /// Takes the next waiting entry. There must be one.
    #[cold]
    #[inline(never)]
    fn next_waiting(&mut self) -> EntryRef<'_> {
        let Waiting { seq, kind, value, mark } = self.waiting.pop().expect("an entry waits");
        let is_forgotten = self.forgets && kind.is_value() && mark == 0;
        self.held.seq = seq;
        let is_forgotten = is_forgotten && self.stripe_floor().is_none() && !self.needs_seq();
        let seq = if is_forgotten { SeqNo(0) } else { seq };
        let key = std::mem::take(&mut self.held.key);
        self.held = HeldEntry { key, seq, kind, value, mark };
        self.counts.entries_out += 1;
        self.held.entry()
    }

    /// Returns the counts so far. They cover all entries once [`next_entry`](Fold::next_entry) has
    /// returned `None`.
    pub fn counts(&self) -> FoldCounts {
        self.counts
    }

    /// Returns the entry that [`next_entry`](Fold::next_entry) returned last.
    pub fn last_entry(&self) -> EntryRef<'_> {
        self.held.entry()
    }

    /// Returns the [mark](Walk::mark) of that entry, whose value it has.
    pub fn last_mark(&self) -> u32 {
        self.held.mark
    }

    /// Returns the cursor that it folds.
    pub fn walk(&self) -> &C {
        &self.cursor
    }

    /// Returns the cursor to move it on at its end. The fold then continues from there.
    pub fn walk_mut(&mut self) -> &mut C {
        &mut self.cursor
    }

    /// Returns the newest snapshot that does not see the held version. All versions of the key
    /// above that snapshot belong to the stripe of the held one.
    #[inline]
    fn stripe_floor(&self) -> Option<SeqNo> {
        if self.snapshots.is_empty() {
            return None;
        }
        let seeing = self.snapshots.partition_point(|snapshot| *snapshot >= self.held.seq);
        self.snapshots.get(seeing).copied()
    }

    /// Returns true if the held version would lie under a range delete without its sequence number.
    #[inline]
    fn needs_seq(&mut self) -> bool {
        let HeldEntry { key, seq, .. } = &self.held;
        !self.hiding.is_empty() && self.hiding.needs_seq(key, *seq)
    }

    /// Returns true if the held version, a tombstone, hides nothing.
    fn is_droppable(&mut self) -> bool {
        self.stripe_floor().is_none() && (self.nothing_beneath)(&self.held.key)
    }

    /// Steps over the other versions of the stripe and returns the net effect of all its versions.
    fn fold_stripe(&mut self) -> Result<Option<EntryKind>> {
        let floor = self.stripe_floor();
        self.kinds.clear();
        self.kinds.push(self.held.kind);
        while let Some(entry) = self.cursor.here()
            && entry.key == self.held.key
            && floor.is_none_or(|floor| floor < entry.seq)
        {
            if !self.hiding.is_empty() && self.hiding.hides(entry, &self.snapshots) {
                self.counts.hidden += 1;
            } else {
                self.kinds.push(entry.kind);
            }
            self.counts.entries_in += 1;
            self.cursor.advance()?;
        }
        Ok(self.net_of_kinds())
    }

    /// Returns the net effect of the versions with the kinds in `kinds`, and counts the versions
    /// that it replaces or cancels.
    fn net_of_kinds(&mut self) -> Option<EntryKind> {
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
        net
    }
}

#[cfg(test)]
mod tests;
