//! Looks for entries that are newer than a moment, and for values that a filter has changed.
//!
//! A snapshot at that moment, or an older one, must be live. So memtables and merges keep the
//! numbers of all newer entries. What they drop altogether, a put and its delete, leaves the key as
//! it was.

use super::{Moment, Source, Version};
use bytes::Bytes;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::Result;
use lsmith_storage::format::key_hash;
use lsmith_storage::read::{MergingCursor, VisibleIter};
use lsmith_storage::table::{CacheFill, ReadCount, ReadTable};
use lsmith_tree::{Key, KeyRange, SeqNo};
use std::ops::Bound;
use std::sync::Arc;

impl Version {
    /// Returns the sequence number of the newest entry of `key`, if it is greater than `since`.
    /// Looks only into tables that have newer entries.
    pub(crate) fn newer_entry(&self, key: &[u8], since: SeqNo) -> Result<Option<SeqNo>> {
        let newest = self.newest_range_delete_of(key);
        if newest > since {
            return Ok(Some(newest));
        }
        let newest = Moment::Snapshot(SeqNo::MAX);
        let in_memory = || self.memory.iter().find_map(|memory| memory.get(key, newest));
        if let Some(found) = self.active.get(key, SeqNo::MAX).or_else(in_memory) {
            return Ok(Some(found.seq).filter(|seq| *seq > since));
        }
        let hash = key_hash(key);
        let mut reads = ReadCount::default();
        for run in &self.runs {
            let Some(handle) = run.table_of(key) else { continue };
            if handle.table().tree_table().seq_max <= since {
                continue;
            }
            if let Some((_, slot)) = handle.table().find(key, hash, SeqNo::MAX, &mut reads)? {
                return Ok(Some(slot.seq).filter(|seq| *seq > since));
            }
        }
        Ok(None)
    }

    /// Returns a key in `range` with an entry whose sequence number is greater than `since`, and
    /// that sequence number, if there is any. Walks the parts of memtables and tables in `range`
    /// that may have newer entries.
    pub(crate) fn newer_within(
        &self,
        range: &KeyRange,
        since: SeqNo,
    ) -> Result<Option<(Key, SeqNo)>> {
        if let Some(found) = self.range_delete_within(range, since) {
            return Ok(Some(found));
        }
        let newest = self.active.seq_range().map(|(_, newest)| newest);
        if newest.is_some_and(|newest| newest > since)
            && let Some(found) = first_newer(&mut self.active.cursor(), range, since)?
        {
            return Ok(Some(found));
        }
        for memory in &self.memory {
            let is_newer =
                memory.run().overlapping(range).iter().any(|slice| slice.table().seq_max > since);
            if is_newer && let Some(found) = first_newer(&mut memory.cursor(range), range, since)? {
                return Ok(Some(found));
            }
        }
        for run in &self.runs {
            for part in run.overlapping(range) {
                if part.table().table().tree_table().seq_max <= since {
                    continue;
                }
                let shared = part.range().intersection(range);
                let mut cursor = run.source(&shared, CacheFill::No, None);
                if let Some(found) = first_newer(&mut cursor, &shared, since)? {
                    return Ok(Some(found));
                }
            }
        }
        Ok(None)
    }
}

impl Version {
    /// Returns the first key in `range` whose value at sequence number `seq` is another one in
    /// `other` than here, if there is any.
    pub(crate) fn first_other(
        &self,
        other: &Version,
        range: &KeyRange,
        seq: SeqNo,
    ) -> Result<Option<Key>> {
        let (mut here, mut there) = (self.seen(range, seq), other.seen(range, seq));
        loop {
            let pair = (here.next().transpose()?, there.next().transpose()?);
            match pair {
                (None, None) => return Ok(None),
                (Some(one), Some(same)) if one == same => {}
                (one, another) => {
                    let keys = one.into_iter().chain(another).map(|(key, _)| key);
                    return Ok(keys.min().map(|key| Key::copy_from_slice(&key)));
                }
            }
        }
    }

    /// Returns the keys and values in `range` at sequence number `seq`.
    fn seen(&self, range: &KeyRange, seq: SeqNo) -> VisibleIter<MergingCursor<Source>> {
        let cursor = self.cursor_within(None, || range.clone(), &Arc::default());
        let lower = Bound::Included(Bytes::copy_from_slice(&range.start));
        let end = range.end.as_ref().map(|end| Bytes::copy_from_slice(end));
        let upper = end.map_or(Bound::Unbounded, Bound::Excluded);
        let seen = VisibleIter::new(cursor, seq, lower, upper).combining(self.rules.combiner());
        seen.hiding(self.hidden()).reading(self.value_reader())
    }
}

/// Returns the first entry of `cursor` in `range` whose sequence number is greater than `since`.
fn first_newer(
    cursor: &mut impl Cursor,
    range: &KeyRange,
    since: SeqNo,
) -> Result<Option<(Key, SeqNo)>> {
    cursor.seek(&range.start)?;
    while let Some(entry) = cursor.entry()
        && range.contains(entry.key)
    {
        if entry.seq > since {
            return Ok(Some((Key::copy_from_slice(entry.key), entry.seq)));
        }
        cursor.next()?;
    }
    Ok(None)
}
