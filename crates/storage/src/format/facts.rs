//! What is known about a table as a whole: its properties block.
//!
//! ```text
//! data blocks | size | least sequence number | greatest - least
//! | first key | last key | grain | points | point ... | seal
//! size  = entries | tombstones | logical bytes
//! point = key | size | last key below
//! ```
//!
//! All numbers are varints. First and last key follow their lengths. A point of the profile says
//! how much lies below its key; the size in it is what comes on top of the point before. Keys of
//! points share bytes: `key` is how many with the key of the point before (the first key of the
//! table for the first point), and the rest; `last key below` is there where the grain is blocks,
//! and the same against `key`.

use super::block_builder::RESTART_ENTRIES;
use super::codec::{Damage, Reader, common_prefix_bytes, put_bytes, put_varint};
use super::footer::{FOOTER_BYTES, Footer};
use crate::cursor::EntryRef;
use lsmith_tree::{
    Key, KeyRange, PROFILE_STEP_BYTES, ProfilePoint, SeqNo, Size, Table, TableId, key_after,
    logical_bytes,
};

/// Where the profile of a table has its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileGrain {
    /// At the first key that starts at or behind each multiple of [`PROFILE_STEP_BYTES`] logical
    /// bytes; none at 0. They depend on the entries alone, not on blocks.
    #[default]
    Steps,
    /// At the first key of every data block, but for the first block and those that go on with
    /// the key before; each knows the last key below it.
    Blocks,
}

impl ProfileGrain {
    fn number(self) -> u64 {
        match self {
            ProfileGrain::Steps => 0,
            ProfileGrain::Blocks => 1,
        }
    }

    fn of_number(number: u64) -> Option<ProfileGrain> {
        [ProfileGrain::Steps, ProfileGrain::Blocks].into_iter().find(|g| g.number() == number)
    }
}

/// What a table holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// The number of the table.
    pub table: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the data blocks, which start the file.
    pub data_bytes: u64,
    /// Number of data blocks.
    pub data_blocks: u64,
    /// Logical bytes, entries, and tombstones among them.
    pub size: Size,
    /// The first key.
    pub first_key: Key,
    /// The last key, included.
    pub last_key: Key,
    /// The smallest sequence number.
    pub seq_min: SeqNo,
    /// The greatest sequence number.
    pub seq_max: SeqNo,
    /// Where the profile has its points.
    pub grain: ProfileGrain,
    /// How much lies below some of the keys, ascending.
    pub profile: Vec<ProfilePoint>,
}

impl TableFacts {
    /// The payload of the properties block. Bytes of the file are not in it: the file knows them.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.data_blocks);
        put_size(&mut out, Size::default(), self.size);
        put_varint(&mut out, self.seq_min.0);
        put_varint(&mut out, self.seq_max.0 - self.seq_min.0);
        put_bytes(&mut out, &self.first_key);
        put_bytes(&mut out, &self.last_key);
        put_varint(&mut out, self.grain.number());
        put_varint(&mut out, self.profile.len() as u64);
        let (mut below, mut key_before) = (Size::default(), &self.first_key);
        for point in &self.profile {
            put_key(&mut out, key_before, &point.key);
            put_size(&mut out, below, point.below);
            if let Some((_, last)) = point.after.as_ref().and_then(|after| after.split_last()) {
                put_key(&mut out, &point.key, last);
            }
            (below, key_before) = (point.below, &point.key);
        }
        out
    }

    /// What a tree knows of the table. The profile can be long, so it moves there.
    pub fn take_tree_table(&mut self) -> Table {
        Table {
            id: TableId(self.table),
            root: 0,
            range: KeyRange::inclusive(&self.first_key, &self.last_key),
            size: self.size,
            seq_min: self.seq_min,
            seq_max: self.seq_max,
            profile: std::mem::take(&mut self.profile).into(),
        }
    }

    /// Decodes the payload of the properties block of the table that ends with `footer`.
    pub fn parse(payload: &[u8], footer: &Footer) -> Result<TableFacts, Damage> {
        let mut reader = Reader::new(payload, 0);
        let data_blocks = reader.varint()?;
        let size = take_size(&mut reader, Size::default())?;
        let seq_min = reader.varint()?;
        let Some(seq_max) = seq_min.checked_add(reader.varint()?) else {
            return Err(reader.damage("a sequence number is out of range"));
        };
        let first_key = Key::copy_from_slice(reader.bytes()?);
        let last_key = Key::copy_from_slice(reader.bytes()?);
        let Some(grain) = ProfileGrain::of_number(reader.varint()?) else {
            return Err(reader.damage("the profile has points of an unknown kind"));
        };
        let plain_bytes = footer.plain_bytes_max();
        let profile = take_profile(&mut reader, grain, &first_key, plain_bytes)?;
        reader.finish()?;
        let below = profile.last().map_or(Size::default(), |point| point.below);
        let last_point = profile.last().map_or(&first_key, |point| &point.key);
        if size.entries == 0
            || size.tombstones > size.entries
            || first_key > last_key
            || last_key < *last_point
            || below.bytes > size.bytes
            || below.entries > size.entries
            || below.tombstones > size.tombstones
        {
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
            grain,
            profile,
        })
    }
}

fn take_profile(
    reader: &mut Reader<'_>,
    grain: ProfileGrain,
    first_key: &Key,
    plain_bytes_max: u64,
) -> Result<Vec<ProfilePoint>, Damage> {
    let points = reader.varint()?;
    let (mut profile, mut below) = (Vec::new(), Size::default());
    let mut key_before = first_key.clone();
    // They are keys of entries, and of those from one restart point to the next one is stored as it
    // is: so no more is allocated than such entries can come to.
    let mut room = plain_bytes_max.saturating_mul(RESTART_ENTRIES as u64);
    for _ in 0..points {
        let key = Key::from(take_key(reader, &key_before)?);
        below = take_size(reader, below)?;
        let after = match grain {
            ProfileGrain::Steps => None,
            ProfileGrain::Blocks => Some(key_after(&take_key(reader, &key)?)),
        };
        if key <= key_before || after.as_ref().is_some_and(|a| *a <= key_before || *a > key) {
            return Err(reader.damage("the points of the profile are out of order"));
        }
        let bytes = key.len() + after.as_ref().map_or(0, |after| after.len());
        let Some(left) = room.checked_sub(bytes as u64) else {
            return Err(reader.damage("the keys of the profile exceed the data blocks"));
        };
        (room, key_before) = (left, key.clone());
        profile.push(ProfilePoint { key, below, after });
    }
    Ok(profile)
}

/// Appends `key` without what it has in common with `base`.
fn put_key(out: &mut Vec<u8>, base: &[u8], key: &[u8]) {
    let shared = common_prefix_bytes(base, key);
    put_varint(out, shared as u64);
    put_bytes(out, key.get(shared..).unwrap_or_default());
}

fn take_key(reader: &mut Reader<'_>, base: &[u8]) -> Result<Vec<u8>, Damage> {
    let shared = reader.size()?;
    let Some(shared) = base.get(..shared) else {
        return Err(reader.damage("a key shares bytes that are not there"));
    };
    Ok([shared, reader.bytes()?].concat())
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
pub struct FactsBuilder {
    facts: TableFacts,
    profile_mark_bytes: u64,
}

/// Where an entry stands among the others of its table.
#[derive(Clone, Copy, Debug)]
pub struct EntryPlace<'a> {
    /// The key of the entry before it; empty for the first. Looked at where a block begins only.
    pub last_key: &'a [u8],
    /// Whether no entry before it has the same key.
    pub new_key: bool,
    /// Whether it is the first of its data block.
    pub begins_block: bool,
}

impl FactsBuilder {
    /// Nothing is known yet about `table`, whose profile shall have this `grain`.
    pub fn new(table: u64, grain: ProfileGrain) -> FactsBuilder {
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
            grain,
            profile: Vec::new(),
        };
        FactsBuilder { facts, profile_mark_bytes: PROFILE_STEP_BYTES }
    }

    /// What was added so far.
    pub fn size(&self) -> Size {
        self.facts.size
    }

    /// Adds `entry`, which stands at `place`.
    #[inline]
    pub fn add(&mut self, entry: &EntryRef<'_>, place: EntryPlace<'_>) {
        if place.new_key {
            self.add_key(entry.key, place);
        }
        let facts = &mut self.facts;
        facts.size.entries += 1;
        facts.size.tombstones += u64::from(entry.kind.is_tombstone());
        facts.size.bytes += logical_bytes(entry.key.len(), entry.value.len());
        facts.seq_min = facts.seq_min.min(entry.seq);
        facts.seq_max = facts.seq_max.max(entry.seq);
    }

    #[inline]
    fn add_key(&mut self, key: &[u8], place: EntryPlace<'_>) {
        let facts = &mut self.facts;
        let so_far = facts.size.bytes;
        if facts.size.entries == 0 {
            facts.first_key = Key::copy_from_slice(key);
            return;
        }
        let after = match facts.grain {
            ProfileGrain::Steps if so_far >= self.profile_mark_bytes => None,
            ProfileGrain::Blocks if place.begins_block => Some(key_after(place.last_key)),
            ProfileGrain::Steps | ProfileGrain::Blocks => return,
        };
        let key = Key::copy_from_slice(key);
        facts.profile.push(ProfilePoint { key, below: facts.size, after });
        self.profile_mark_bytes = (so_far / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
    }

    /// Adds a data block of `block_bytes`, seal included.
    pub fn add_block(&mut self, block_bytes: usize) {
        self.facts.data_blocks += 1;
        self.facts.data_bytes += block_bytes as u64;
    }

    /// The facts of a table that ends with `last_key`; the bytes of the file are still 0.
    pub fn finish(mut self, last_key: &[u8]) -> TableFacts {
        self.facts.last_key = Key::copy_from_slice(last_key);
        self.facts
    }
}
