//! What is known about a table as a whole: its properties block.
//!
//! ```text
//! data blocks | size | least sequence number | greatest - least
//! | first key | last key | points | point ... | seal
//! size  = entries | tombstones | logical bytes
//! point = key | size
//! ```
//!
//! All numbers are varints, keys follow their lengths. A point of the profile says how much lies
//! below its key; the size in it is what comes on top of the point before.

use super::codec::{Damage, Reader, put_bytes, put_varint};
use super::footer::{FOOTER_BYTES, Footer};
use crate::cursor::EntryRef;
use lsmith_tree::{Key, PROFILE_STEP_BYTES, ProfilePoint, SeqNo, Size, logical_bytes};

/// What a table holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFacts {
    /// The number of the table.
    pub(crate) table: u64,
    /// Bytes of the file.
    pub(crate) file_bytes: u64,
    /// Bytes of the data blocks, which start the file.
    pub(crate) data_bytes: u64,
    /// Number of data blocks.
    pub(crate) data_blocks: u64,
    /// Logical bytes, entries, and tombstones among them.
    pub(crate) size: Size,
    /// The first key.
    pub(crate) first_key: Key,
    /// The last key, included.
    pub(crate) last_key: Key,
    /// The smallest sequence number.
    pub(crate) seq_min: SeqNo,
    /// The greatest sequence number.
    pub(crate) seq_max: SeqNo,
    /// A point at the first key that starts at or behind each multiple of
    /// [`PROFILE_STEP_BYTES`] logical bytes, ascending; none at 0. It depends on the entries
    /// alone, not on blocks.
    pub(crate) profile: Vec<ProfilePoint>,
}

impl TableFacts {
    /// The payload of the properties block. Bytes of the file are not in it: the file knows them.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.data_blocks);
        put_size(&mut out, Size::default(), self.size);
        put_varint(&mut out, self.seq_min.0);
        put_varint(&mut out, self.seq_max.0 - self.seq_min.0);
        put_bytes(&mut out, &self.first_key);
        put_bytes(&mut out, &self.last_key);
        put_varint(&mut out, self.profile.len() as u64);
        let mut below = Size::default();
        for point in &self.profile {
            put_bytes(&mut out, &point.key);
            put_size(&mut out, below, point.below);
            below = point.below;
        }
        out
    }

    /// Decodes the payload of the properties block of the table that ends with `footer`.
    pub(crate) fn parse(payload: &[u8], footer: &Footer) -> Result<TableFacts, Damage> {
        let mut reader = Reader::new(payload, 0);
        let data_blocks = reader.varint()?;
        let size = take_size(&mut reader, Size::default())?;
        let seq_min = reader.varint()?;
        let Some(seq_max) = seq_min.checked_add(reader.varint()?) else {
            return Err(reader.damage("a sequence number is out of range"));
        };
        let first_key = Key::copy_from_slice(reader.bytes()?);
        let last_key = Key::copy_from_slice(reader.bytes()?);
        let points = reader.varint()?;
        let (mut profile, mut below) = (Vec::new(), Size::default());
        for _ in 0..points {
            let key = Key::copy_from_slice(reader.bytes()?);
            below = take_size(&mut reader, below)?;
            profile.push(ProfilePoint { key, below, after: None });
        }
        reader.finish()?;
        if size.entries == 0 || size.tombstones > size.entries || first_key > last_key {
            return Err(Damage::whole("the properties contradict themselves"));
        }
        Ok(TableFacts {
            table: footer.table,
            file_bytes: footer.properties.end + FOOTER_BYTES as u64,
            data_bytes: footer.filter.start,
            data_blocks,
            size,
            first_key,
            last_key,
            seq_min: SeqNo(seq_min),
            seq_max: SeqNo(seq_max),
            profile,
        })
    }
}

/// Appends what `size` has more than `base`.
fn put_size(out: &mut Vec<u8>, base: Size, size: Size) {
    let more = size - base;
    put_varint(out, more.entries);
    put_varint(out, more.tombstones);
    put_varint(out, more.bytes);
}

fn take_size(reader: &mut Reader<'_>, base: Size) -> Result<Size, Damage> {
    let mut sum = |base: u64| {
        let sum = base.checked_add(reader.varint()?);
        sum.ok_or_else(|| reader.damage("a sum is out of range"))
    };
    let (entries, tombstones) = (sum(base.entries)?, sum(base.tombstones)?);
    Ok(Size { entries, tombstones, bytes: sum(base.bytes)? })
}

/// Gathers the facts about a table entry by entry.
#[derive(Debug)]
pub(crate) struct FactsBuilder {
    facts: TableFacts,
    profile_mark_bytes: u64,
}

impl FactsBuilder {
    /// Nothing is known yet about `table`.
    pub(crate) fn new(table: u64) -> FactsBuilder {
        let facts = TableFacts {
            table,
            file_bytes: 0,
            data_bytes: 0,
            data_blocks: 0,
            size: Size::default(),
            first_key: Key::new(),
            last_key: Key::new(),
            seq_min: SeqNo::MAX,
            seq_max: SeqNo(0),
            profile: Vec::new(),
        };
        FactsBuilder { facts, profile_mark_bytes: PROFILE_STEP_BYTES }
    }

    /// What was added so far.
    pub(crate) fn size(&self) -> Size {
        self.facts.size
    }

    /// Adds `entry`; `new_key` says that no entry before it has the same key.
    #[inline]
    pub(crate) fn add(&mut self, entry: &EntryRef<'_>, new_key: bool) {
        let facts = &mut self.facts;
        let so_far = facts.size.bytes;
        if facts.size.entries == 0 {
            facts.first_key = Key::copy_from_slice(entry.key);
        } else if new_key && so_far >= self.profile_mark_bytes {
            let key = Key::copy_from_slice(entry.key);
            facts.profile.push(ProfilePoint { key, below: facts.size, after: None });
            self.profile_mark_bytes = (so_far / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
        }
        facts.size.entries += 1;
        facts.size.tombstones += u64::from(entry.kind.is_tombstone());
        facts.size.bytes += logical_bytes(entry.key.len(), entry.value.len());
        facts.seq_min = facts.seq_min.min(entry.seq);
        facts.seq_max = facts.seq_max.max(entry.seq);
    }

    /// Adds a data block of `block_bytes`, seal included.
    pub(crate) fn add_block(&mut self, block_bytes: usize) {
        self.facts.data_blocks += 1;
        self.facts.data_bytes += block_bytes as u64;
    }

    /// The facts of a table that ends with `last_key`; the bytes of the file are still 0.
    pub(crate) fn finish(mut self, last_key: &[u8]) -> TableFacts {
        self.facts.last_key = Key::copy_from_slice(last_key);
        self.facts
    }
}
