//! The range deletes of a tree or a memtable: which keys they delete, and when.
//!
//! A range delete is a key range and a sequence number: no entry in the range with a smaller
//! sequence number is visible to a reader at or above that sequence number. An entry with the same
//! sequence number, which only a table from outside can bring, is visible. Range deletes are kept
//! apart from tables, in the tree. So a table, a slice and a run know nothing of them, whatever
//! kind they are, and a reader looks in one place only.
//!
//! The ranges are cut into disjoint parts. Each part lists the sequence numbers of the range
//! deletes that cover it. Of several without a live snapshot between them it keeps the newest,
//! because no reader can tell them apart. Neighbours with equal sequence numbers are joined. So a
//! queue that is deleted from its start, further and further, has one part or two.
//!
//! Parts lie in chunks, which old and new states share: a change costs no more than the chunks that
//! it touches, and a copy of the list of chunks.

mod walk;

pub use walk::RangeDeleteWalk;

use crate::entry::{EntryKind, SeqNo};
use crate::range::{KeyRange, cmp_ends};
use std::ops::Range;
use std::sync::Arc;

/// The most parts of a chunk. A chunk that has more is cut into halves.
const CHUNK_MAX: usize = 128;

/// The range deletes of a tree or a memtable. See the head of the module.
#[derive(Clone, Debug, Default)]
pub struct RangeDeletes {
    /// Parts in key order, none of the chunks empty.
    chunks: Arc<Vec<Arc<Vec<RangeDeletePart>>>>,
}

/// A part of the key space that the same range deletes cover.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeDeletePart {
    /// The keys.
    pub range: KeyRange,
    /// The sequence numbers of the range deletes, newest first, at least one.
    pub seqs: Vec<SeqNo>,
    /// The sequence number of the first write into the range since the newest range delete, or 0 if
    /// there was none. Only memtables know it; elsewhere it is 0.
    pub written: SeqNo,
}

/// Which readers there are, and can be.
#[derive(Clone, Copy, Debug)]
pub struct Readers<'a> {
    /// All later readers are at this sequence number or above.
    pub visible: SeqNo,
    /// The live snapshots.
    pub snapshots: &'a [SeqNo],
}

impl Readers<'_> {
    /// Readers may be at any sequence number.
    pub const ANY: Readers<'static> = Readers { visible: SeqNo(0), snapshots: &[] };

    /// Returns true if no reader sees a range delete with sequence number `older`, but not `newer`.
    fn see_both_or_none(&self, newer: SeqNo, older: SeqNo) -> bool {
        let is_between = |snapshot: &SeqNo| older <= *snapshot && *snapshot < newer;
        newer <= self.visible && !self.snapshots.iter().any(is_between)
    }
}

impl RangeDeletePart {
    /// Returns the newest of its sequence numbers that a reader at `at` sees; 0 if it sees none.
    #[inline]
    pub fn newest_at(&self, at: SeqNo) -> SeqNo {
        self.seqs.iter().copied().find(|seq| *seq <= at).unwrap_or_default()
    }

    /// Returns the oldest of its sequence numbers that hides an entry of this kind and sequence
    /// number from a reader that sees both. A tombstone with the sequence number of a range delete
    /// stands for it in a memtable.
    pub fn hiding(&self, kind: EntryKind, seq: SeqNo) -> Option<SeqNo> {
        let from = if kind == EntryKind::Delete { seq } else { SeqNo(seq.0.saturating_add(1)) };
        self.seqs.iter().copied().rfind(|hides| *hides >= from)
    }

    /// Returns true if a reader at `at` sees nothing of a table here whose greatest sequence number
    /// is `newest`.
    pub(crate) fn hides_all(&self, newest: SeqNo, at: SeqNo) -> bool {
        // A table has 0 if all its entries have forgotten their sequence numbers.
        newest < self.newest_at(at)
    }

    /// Returns the oldest of its sequence numbers.
    pub fn oldest(&self) -> SeqNo {
        self.seqs.last().copied().unwrap_or_default()
    }

    /// Adds a sequence number, and drops sequence numbers that no reader can tell from a newer one.
    fn add(&mut self, seq: SeqNo, readers: &Readers<'_>) {
        if self.seqs.first().is_none_or(|newest| *newest < seq) {
            self.written = SeqNo(0);
        }
        let at = self.seqs.partition_point(|other| *other > seq);
        if self.seqs.get(at) != Some(&seq) {
            self.seqs.insert(at, seq);
        }
        let mut newer = None;
        self.seqs.retain(|seq| {
            let stays = newer.is_none_or(|newer| !readers.see_both_or_none(newer, *seq));
            newer = if stays { Some(*seq) } else { newer };
            stays
        });
    }

    fn within(&self, range: KeyRange) -> RangeDeletePart {
        RangeDeletePart { range, ..self.clone() }
    }

    fn is_like(&self, other: &RangeDeletePart) -> bool {
        self.seqs == other.seqs && self.written == other.written
    }
}

impl PartialEq for RangeDeletes {
    fn eq(&self, other: &RangeDeletes) -> bool {
        Arc::ptr_eq(&self.chunks, &other.chunks) || self.parts().eq(other.parts())
    }
}

impl Eq for RangeDeletes {}

impl RangeDeletes {
    /// Returns true if there are no range deletes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    /// Returns all parts, in key order.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &RangeDeletePart> {
        self.chunks.iter().flat_map(|chunk| chunk.iter())
    }

    /// Returns the number of parts.
    pub fn len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// Returns the parts that overlap `range`, in key order.
    pub fn overlapping(&self, range: &KeyRange) -> impl Iterator<Item = &RangeDeletePart> {
        let chunks = self.touched(range);
        let parts = self.chunks[chunks].iter().flat_map(|chunk| chunk.iter());
        let range = range.clone();
        parts.filter(move |part| part.range.overlaps(&range))
    }

    /// Returns what is left of `range` of a table with the greatest sequence number `newest`,
    /// without the parts that are hidden from a reader at `at`.
    pub fn shown(&self, range: &KeyRange, newest: SeqNo, at: SeqNo) -> Vec<KeyRange> {
        let mut left = vec![range.clone()];
        for part in self.overlapping(range).filter(|part| part.hides_all(newest, at)) {
            let rest = left.iter().flat_map(|range| range.without(&part.range));
            left = rest.filter(|range| !range.is_empty()).collect();
        }
        left
    }

    /// Returns the part that covers `key`, if one does.
    #[inline]
    pub fn part_of(&self, key: &[u8]) -> Option<&RangeDeletePart> {
        let part = self.last_from(key)?;
        part.range.contains(key).then_some(part)
    }

    /// Returns the last part that starts at `key` or below.
    fn last_from(&self, key: &[u8]) -> Option<&RangeDeletePart> {
        let chunks = self.chunks.partition_point(|chunk| *chunk[0].range.start <= *key);
        let chunk = &self.chunks[chunks.checked_sub(1)?];
        let parts = chunk.partition_point(|part| *part.range.start <= *key);
        chunk.get(parts.checked_sub(1)?)
    }

    /// Returns the first part that starts above `key`.
    fn first_above(&self, key: &[u8]) -> Option<&RangeDeletePart> {
        let chunks = self.chunks.partition_point(|chunk| *chunk[0].range.start <= *key);
        let in_last = chunks.checked_sub(1).and_then(|last| {
            let chunk = &self.chunks[last];
            chunk.get(chunk.partition_point(|part| *part.range.start <= *key))
        });
        in_last.or_else(|| self.chunks.get(chunks)?.first())
    }

    /// Returns the sequence number of the newest range delete that covers `key` and that a reader
    /// at `at` sees; 0 if there is none. The reader sees no entry of the key with a smaller
    /// sequence number.
    #[inline]
    pub fn newest_at(&self, key: &[u8], at: SeqNo) -> SeqNo {
        self.part_of(key).map_or(SeqNo(0), |part| part.newest_at(at))
    }

    /// Returns the sequence number up to which all range deletes in `range` that a reader at `at`
    /// sees are known here: 0 if there are none.
    pub fn cleared_by(&self, range: &KeyRange, at: SeqNo) -> SeqNo {
        self.overlapping(range).map(|part| part.newest_at(at)).max().unwrap_or_default()
    }

    /// Adds the range delete of `range` with sequence number `seq`. Forgets sequence numbers that
    /// no reader can tell from a newer one.
    pub fn delete_range(&mut self, range: &KeyRange, seq: SeqNo, readers: &Readers<'_>) {
        if range.is_empty() {
            return;
        }
        self.change(range, |parts| {
            let mut made = Vec::with_capacity(parts.len() + 2);
            let mut rest = range.clone();
            for part in parts {
                if !part.range.overlaps(range) {
                    made.push(part);
                    continue;
                }
                let [before, after] = part.range.without(range);
                let [gap, behind] = rest.without(&part.range);
                let mut inside = part.within(part.range.intersection(range));
                inside.add(seq, readers);
                made.push(part.within(before));
                made.push(RangeDeletePart { range: gap, seqs: vec![seq], written: SeqNo(0) });
                made.push(inside);
                made.push(part.within(after));
                rest = behind;
            }
            made.push(RangeDeletePart { range: rest, seqs: vec![seq], written: SeqNo(0) });
            made
        });
    }

    /// Adds all range deletes in `other`.
    pub fn add(&mut self, other: &RangeDeletes, readers: &Readers<'_>) {
        if self.is_empty() {
            *self = other.clone();
            return;
        }
        for part in other.parts() {
            for seq in part.seqs.iter().rev() {
                self.delete_range(&part.range, *seq, readers);
            }
        }
    }

    /// Returns all range deletes in `lists`.
    pub fn all<'a>(lists: impl IntoIterator<Item = &'a RangeDeletes>) -> RangeDeletes {
        let mut all = RangeDeletes::default();
        for range_deletes in lists {
            all.add(range_deletes, &Readers::ANY);
        }
        all
    }

    /// Forgets range deletes with sequence numbers up to `upto` in `range`.
    pub fn forget(&mut self, range: &KeyRange, upto: SeqNo) {
        self.change(range, |parts| {
            let mut left = Vec::with_capacity(parts.len() + 2);
            for part in parts {
                let [before, after] = part.range.without(range);
                let mut inside = part.within(part.range.intersection(range));
                inside.seqs.retain(|seq| *seq > upto);
                let outside = [before, after].map(|range| part.within(range));
                left.extend(outside.into_iter().chain([inside]));
            }
            left.retain(|part| !part.seqs.is_empty());
            left
        });
    }

    /// Notes that `key` was written with sequence number `seq`, the greatest so far. Returns true
    /// if that changed something.
    pub fn note_write(&mut self, key: &[u8], seq: SeqNo) -> bool {
        let is_first = self.part_of(key).is_some_and(|part| part.written == SeqNo(0));
        if is_first {
            self.change(&KeyRange::inclusive(key, key), |mut parts| {
                let found = parts.iter_mut().find(|part| part.range.contains(key));
                found.into_iter().for_each(|part| part.written = seq);
                parts
            });
        }
        is_first
    }

    /// Returns the same without what only memtables know.
    #[must_use]
    pub fn without_writes(&self) -> RangeDeletes {
        let mut bare = RangeDeletes::default();
        bare.replace(
            0..0,
            self.parts().map(|part| RangeDeletePart { written: SeqNo(0), ..part.clone() }),
        );
        bare
    }

    /// Returns the indexes of the chunks with parts that overlap or touch `range`, or of a chunk
    /// next to it.
    fn touched(&self, range: &KeyRange) -> Range<usize> {
        let ends_below = |chunk: &Arc<Vec<RangeDeletePart>>| {
            let last = chunk.last().and_then(|part| part.range.end.as_ref());
            last.is_some_and(|end| *end < range.start)
        };
        let from = self.chunks.partition_point(ends_below);
        let begins = |chunk: &Arc<Vec<RangeDeletePart>>| {
            cmp_ends(&Some(chunk[0].range.start.clone()), &range.end).is_le()
        };
        let end = self.chunks.partition_point(begins).max(from);
        // A part between two chunks joins one of them.
        if from == end && end < self.chunks.len() {
            return from..end + 1;
        }
        from.min(self.chunks.len().saturating_sub(1))..end
    }

    /// Replaces the parts that overlap or touch `range` by `change` of them. The result may be in
    /// any order, and may have empty parts, but none may overlap another.
    fn change(
        &mut self,
        range: &KeyRange,
        change: impl FnOnce(Vec<RangeDeletePart>) -> Vec<RangeDeletePart>,
    ) {
        let chunks = self.touched(range);
        let parts = self.chunks[chunks.clone()].iter().flat_map(|chunk| chunk.iter().cloned());
        let mut made = change(parts.collect());
        made.retain(|part| !part.range.is_empty());
        made.sort_by(|left, right| left.range.start.cmp(&right.range.start));
        self.replace(chunks, made);
    }

    /// Replaces chunks by `parts`, which are in key order and not empty. Joins parts that touch and
    /// are alike.
    fn replace(&mut self, chunks: Range<usize>, parts: impl IntoIterator<Item = RangeDeletePart>) {
        let mut joined: Vec<RangeDeletePart> = Vec::new();
        for part in parts {
            match joined.last_mut() {
                Some(last)
                    if last.range.end.as_ref() == Some(&part.range.start)
                        && last.is_like(&part) =>
                {
                    last.range.end = part.range.end;
                }
                _ => joined.push(part),
            }
        }
        let count = joined.len().div_ceil(CHUNK_MAX);
        let each = joined.len().div_ceil(count.max(1)).max(1);
        let made = joined.chunks(each).map(|chunk| Arc::new(chunk.to_vec()));
        Arc::make_mut(&mut self.chunks).splice(chunks, made);
    }
}

#[cfg(test)]
mod tests;
