//! The facts about a table as a whole: its properties block.
//!
//! ```text
//! data blocks | size | least sequence number | greatest - least
//! | first key | last key | grain | points | point ...
//! | [prefix bytes] | [expires] | [operator] | [range deletes | range delete ...]
//! | [value files | value file ...] | seal
//! size = entries | tombstones | logical bytes
//! point = key | size | last key below
//! range delete = start | end, empty for none | sequence number
//! value file = id, less the one before | values | bytes
//! ```
//!
//! `expires` exists in tables with [its feature](super::FEATURE_EXPIRES), the name of the operator
//! with [its own](FEATURE_OPERANDS), the range deletes with [theirs](FEATURE_RANGE_DELETES), and
//! the value files with [theirs](FEATURE_VALUES). Starts and ends have their lengths in front.
//!
//! All integers are varints. First and last key have their lengths in front. A point of the profile
//! says how much lies below its key; it stores the difference to the previous point. Keys of points
//! share bytes: `key` is the number of bytes shared with the key of the previous point (for the
//! first point, the first key of the table), and the rest. `last key below` exists only for the
//! grain of blocks, and shares bytes with `key` in the same way. The length of the prefixes in the
//! filter exists only if there are any, as a [feature](super::FEATURE_PREFIXES) in the footer says.

use super::batch::{deleted_range, take_range};
use super::block_builder::RESTART_ENTRIES;
use super::codec::{Damage, Reader, common_prefix_bytes, put_bytes, put_varint};
use super::footer::{
    FEATURE_EXPIRING, FEATURE_OPERANDS, FEATURE_RANGE_DELETES, FEATURE_VALUES, FOOTER_BYTES, Footer,
};
use super::value_file::{VALUE_FILE_BYTES_MAX, record_bytes};
use crate::bounds::NUMBER_MAX;
use crate::cursor::EntryRef;
use crate::expiry::ExpiryTally;
use crate::reference::ValueReference;
use lsmith_tree::{
    Key, KeyRange, PROFILE_STEP_BYTES, ProfilePoint, SeqNo, Size, Table, TableId, key_after,
};
use std::collections::BTreeMap;

/// Says where the profile of a table has its points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ProfileGrain {
    /// At the first key that starts at or behind each multiple of [`PROFILE_STEP_BYTES`] logical
    /// bytes, except 0. These points depend on the entries only, not on blocks.
    #[default]
    Steps,
    /// At the first key of every data block, except for the first block and blocks that continue
    /// the previous key. Each point has the last key below it.
    Blocks,
}

impl ProfileGrain {
    fn code(self) -> u64 {
        match self {
            ProfileGrain::Steps => 0,
            ProfileGrain::Blocks => 1,
        }
    }

    fn of_code(code: u64) -> Option<ProfileGrain> {
        [ProfileGrain::Steps, ProfileGrain::Blocks].into_iter().find(|g| g.code() == code)
    }
}

/// The facts about a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// The id of the table.
    pub table: u64,
    /// The length of the file in bytes.
    pub file_bytes: u64,
    /// The bytes of the data blocks, which start the file.
    pub data_bytes: u64,
    /// The number of data blocks.
    pub data_blocks: u64,
    /// Entries, the tombstones among them, and logical bytes.
    pub size: Size,
    /// The first key.
    pub first_key: Key,
    /// The last key, included in the table.
    pub last_key: Key,
    /// The smallest sequence number.
    pub seq_min: SeqNo,
    /// The greatest sequence number.
    pub seq_max: SeqNo,
    /// Where the profile has its points.
    pub grain: ProfileGrain,
    /// How much lies below some of the keys, ascending.
    pub profile: Vec<ProfilePoint>,
    /// The latest time of an entry if all expire, deletions aside; otherwise 0.
    pub expires: u64,
    /// The length of the prefixes that the filter also holds; 0 if it holds none, or if there is no
    /// filter.
    pub prefix_bytes: u16,
    /// True if entries expire, in a table from outside of a store; false in others.
    pub has_expiring: bool,
    /// The name of the operator of the operands, in a table from outside of a store that has some.
    pub operator: Option<String>,
    /// The range deletes of a table from outside of a store, with their sequence numbers, or 0.
    pub range_deletes: Vec<(KeyRange, SeqNo)>,
    /// The value files that the table refers to, by ascending id.
    pub value_files: Vec<ValueUse>,
}

/// How much of a value file a table refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ValueUse {
    /// The id of the value file.
    pub file: u64,
    /// The number of references.
    pub values: u64,
    /// The bytes of their records in the value file.
    pub bytes: u64,
}

impl TableFacts {
    /// Encodes the payload of the properties block. It does not contain the length of the file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        put_varint(&mut out, self.data_blocks);
        put_size(&mut out, Size::default(), self.size);
        put_varint(&mut out, self.seq_min.0);
        put_varint(&mut out, self.seq_max.0 - self.seq_min.0);
        put_bytes(&mut out, &self.first_key);
        put_bytes(&mut out, &self.last_key);
        put_varint(&mut out, self.grain.code());
        put_varint(&mut out, self.profile.len() as u64);
        let mut below = Size::default();
        let mut key_before = &self.first_key;
        for point in &self.profile {
            put_key(&mut out, key_before, &point.key);
            put_size(&mut out, below, point.below);
            if let Some((_, last)) = point.after.as_ref().and_then(|after| after.split_last()) {
                put_key(&mut out, &point.key, last);
            }
            below = point.below;
            key_before = &point.key;
        }
        put_prefix_bytes(&mut out, self.prefix_bytes);
        if self.expires > 0 {
            put_varint(&mut out, self.expires);
        }
        if let Some(operator) = &self.operator {
            put_bytes(&mut out, operator.as_bytes());
        }
        if !self.range_deletes.is_empty() {
            put_varint(&mut out, self.range_deletes.len() as u64);
        }
        for (KeyRange { start, end }, seq) in &self.range_deletes {
            put_bytes(&mut out, start);
            put_bytes(&mut out, end.as_deref().unwrap_or_default());
            put_varint(&mut out, seq.0);
        }
        if !self.value_files.is_empty() {
            put_value_files(&mut out, &self.value_files);
        }
        out
    }

    /// Returns the metadata of the table for a tree. Moves the profile there, because it can be
    /// long.
    pub fn take_tree_table(&mut self) -> Table {
        Table {
            id: TableId(self.table),
            root: 0,
            range: KeyRange::inclusive(&self.first_key, &self.last_key),
            size: self.size,
            dead_bytes: 0,
            born: 0,
            deletes_applied: lsmith_tree::SeqNo(0),
            oldest_tombstone: 0,
            seq_min: self.seq_min,
            seq_max: self.seq_max,
            expires: self.expires,
            profile: std::mem::take(&mut self.profile).into(),
        }
    }

    /// Decodes the payload of the properties block of the table with `footer`.
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
        let Some(grain) = ProfileGrain::of_code(reader.varint()?) else {
            return Err(reader.damage("the profile has an unknown grain"));
        };
        let plain_bytes = footer.plain_bytes_max();
        let profile = take_profile(&mut reader, grain, &first_key, plain_bytes)?;
        let prefix_bytes = match footer.has_prefixes() {
            true => take_prefix_bytes(&mut reader)?,
            false => 0,
        };
        let expires = if footer.has_expires() { reader.varint()? } else { 0 };
        if expires == 0 && footer.has_expires() {
            return Err(reader.damage("expected the time at which the table expires"));
        }
        let operator = match footer.features & FEATURE_OPERANDS {
            0 => None,
            _ => Some(take_operator(&mut reader)?),
        };
        let range_deletes = match footer.features & FEATURE_RANGE_DELETES {
            0 => Vec::new(),
            _ => take_range_deletes(&mut reader)?,
        };
        let value_files = match footer.features & FEATURE_VALUES {
            0 => Vec::new(),
            _ => take_value_files(&mut reader)?,
        };
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
            return Err(Damage::whole("the properties of a table contradict each other"));
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
            expires,
            prefix_bytes,
            has_expiring: footer.features & FEATURE_EXPIRING != 0,
            operator,
            range_deletes,
            value_files,
        })
    }
}

fn take_range_deletes(reader: &mut Reader<'_>) -> Result<Vec<(KeyRange, SeqNo)>, Damage> {
    let count = reader.varint()?;
    if count == 0 {
        return Err(reader.damage("expected range deletes"));
    }
    let mut range_deletes = Vec::new();
    for _ in 0..count {
        let (start, end) = take_range(reader)?;
        range_deletes.push((deleted_range(start, end), SeqNo(reader.varint()?)));
    }
    Ok(range_deletes)
}

/// Appends `files`, which ascend.
fn put_value_files(out: &mut Vec<u8>, files: &[ValueUse]) {
    put_varint(out, files.len() as u64);
    let mut before = 0;
    for ValueUse { file, values, bytes } in files {
        put_varint(out, file - before);
        put_varint(out, *values);
        put_varint(out, *bytes);
        before = *file;
    }
}

fn take_value_files(reader: &mut Reader<'_>) -> Result<Vec<ValueUse>, Damage> {
    let count = reader.varint()?;
    if count == 0 {
        return Err(reader.damage("expected value files"));
    }
    let mut files = Vec::new();
    let mut before = 0_u64;
    for _ in 0..count {
        let (step, values, bytes) = (reader.varint()?, reader.varint()?, reader.varint()?);
        let file = before.checked_add(step).filter(|file| *file > before);
        let file =
            file.filter(|file| *file <= NUMBER_MAX && bytes <= VALUE_FILE_BYTES_MAX && values > 0);
        let file =
            file.ok_or_else(|| reader.damage("expected ascending value files with values"))?;
        files.push(ValueUse { file, values, bytes });
        before = file;
    }
    Ok(files)
}

fn take_operator(reader: &mut Reader<'_>) -> Result<String, Damage> {
    let name = std::str::from_utf8(reader.bytes()?).ok().filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| reader.damage("expected the name of a combine operator"))?;
    Ok(name.to_string())
}

fn take_profile(
    reader: &mut Reader<'_>,
    grain: ProfileGrain,
    first_key: &Key,
    plain_bytes_max: u64,
) -> Result<Vec<ProfilePoint>, Damage> {
    let points = reader.varint()?;
    let mut profile = Vec::new();
    let mut below = Size::default();
    let mut key_before = first_key.clone();
    // Every key of a point is the key of an entry. Of the entries from one restart point to the
    // next, one stores its key in full. So the keys of the profile cannot be larger than this.
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
        room = left;
        key_before = key.clone();
        profile.push(ProfilePoint { key, below, after });
    }
    Ok(profile)
}

/// Appends `key` without the bytes that it shares with `base`.
fn put_key(out: &mut Vec<u8>, base: &[u8], key: &[u8]) {
    let shared = common_prefix_bytes(base, key);
    put_varint(out, shared as u64);
    put_bytes(out, key.get(shared..).unwrap_or_default());
}

fn take_key(reader: &mut Reader<'_>, base: &[u8]) -> Result<Vec<u8>, Damage> {
    let shared = reader.size()?;
    let Some(shared) = base.get(..shared) else {
        return Err(reader.damage("a key shares more bytes than its base has"));
    };
    Ok([shared, reader.bytes()?].concat())
}

/// Appends the length of the prefixes in the filter, if there are any.
pub(super) fn put_prefix_bytes(out: &mut Vec<u8>, prefix_bytes: u16) {
    if prefix_bytes > 0 {
        put_varint(out, prefix_bytes.into());
    }
}

/// Decodes the length of the prefixes in the filter.
pub(super) fn take_prefix_bytes(reader: &mut Reader<'_>) -> Result<u16, Damage> {
    match u16::try_from(reader.varint()?) {
        Ok(bytes) if bytes > 0 => Ok(bytes),
        _ => Err(reader.damage("prefixes have a length that no key has")),
    }
}

/// Appends the difference of `size` and `base`.
pub(super) fn put_size(out: &mut Vec<u8>, base: Size, size: Size) {
    let more = size - base;
    put_varint(out, more.entries);
    put_varint(out, more.tombstones);
    put_varint(out, more.bytes);
}

pub(super) fn take_size(reader: &mut Reader<'_>, base: Size) -> Result<Size, Damage> {
    let mut sum = |base: u64| {
        let sum = base.checked_add(reader.varint()?);
        sum.ok_or_else(|| reader.damage("a sum is out of range"))
    };
    let entries = sum(base.entries)?;
    let tombstones = sum(base.tombstones)?;
    Ok(Size { entries, tombstones, bytes: sum(base.bytes)? })
}

/// Collects the facts about a table, entry by entry.
#[derive(Debug)]
pub struct FactsBuilder {
    facts: TableFacts,
    profile_mark_bytes: u64,
    expiring: ExpiryTally,
    /// The number and the bytes of references, by value file.
    value_files: BTreeMap<u64, (u64, u64)>,
    /// True if the table is written outside of a store.
    is_outside: bool,
}

/// The position of an entry among the others of its table.
#[derive(Clone, Copy, Debug)]
pub struct EntryPlace<'a> {
    /// The key of the previous entry; empty for the first one. Only read if the entry begins a
    /// block.
    pub last_key: &'a [u8],
    /// True if no previous entry has the same key.
    pub new_key: bool,
    /// True if the entry is the first of its data block.
    pub begins_block: bool,
}

impl FactsBuilder {
    /// Creates a builder for `table`, whose profile has this `grain`.
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
            expires: 0,
            prefix_bytes: 0,
            has_expiring: false,
            operator: None,
            range_deletes: Vec::new(),
            value_files: Vec::new(),
        };
        let profile_mark_bytes = PROFILE_STEP_BYTES;
        FactsBuilder {
            facts,
            profile_mark_bytes,
            expiring: ExpiryTally::default(),
            value_files: BTreeMap::new(),
            is_outside: false,
        }
    }

    /// Says that the filter holds prefixes of `prefix_bytes` bytes; 0 for none.
    #[must_use]
    pub fn with_prefixes(mut self, prefix_bytes: u16) -> FactsBuilder {
        self.facts.prefix_bytes = prefix_bytes;
        self
    }

    /// Says whether the table is written outside of a store.
    #[must_use]
    pub fn outside(mut self, is_outside: bool) -> FactsBuilder {
        self.is_outside = is_outside;
        self
    }

    /// Says that the table, written outside of a store, has operands of the operator called `name`.
    pub fn set_operator(&mut self, name: &str) {
        self.facts.operator = Some(name.to_string());
    }

    /// Says that the table, written outside of a store, has these range deletes.
    pub fn set_range_deletes(&mut self, range_deletes: Vec<(KeyRange, SeqNo)>) {
        self.facts.range_deletes = range_deletes;
    }

    /// Returns the size of all entries added so far.
    pub fn size(&self) -> Size {
        self.facts.size
    }

    /// Adds `entry`, whose position is `place`. Every entry of a merge goes through it.
    #[inline(always)]
    pub fn add(&mut self, entry: &EntryRef<'_>, place: EntryPlace<'_>) {
        if place.new_key && self.has_point(place) {
            self.add_point(entry.key, place);
        }
        let bytes = entry.logical_bytes();
        let tombstones = u64::from(entry.kind.is_tombstone());
        self.add_size(Size { bytes, entries: 1, tombstones });
        self.expiring.add(entry.kind, entry.value);
        if entry.kind.is_reference() {
            self.refer(entry.value);
        }
        let facts = &mut self.facts;
        facts.seq_min = facts.seq_min.min(entry.seq);
        facts.seq_max = facts.seq_max.max(entry.seq);
    }

    #[cold]
    #[inline(never)]
    fn refer(&mut self, reference: &[u8]) {
        let Some(reference) = ValueReference::decode(reference) else { return };
        let (values, bytes) = self.value_files.entry(reference.file).or_default();
        *values += 1;
        *bytes += record_bytes(reference.stored);
    }

    /// Adds entries of this size that continue a block. Only for the grain of blocks, which then
    /// has no point there, and not for the first entry. Their sequence numbers do not count.
    #[inline]
    pub fn add_size(&mut self, size: Size) {
        self.facts.size += size;
    }

    /// Returns true if the key of the next entry is a point of the profile, or the first key.
    #[inline]
    fn has_point(&self, place: EntryPlace<'_>) -> bool {
        let is_point = match self.facts.grain {
            ProfileGrain::Steps => self.facts.size.bytes >= self.profile_mark_bytes,
            ProfileGrain::Blocks => place.begins_block,
        };
        is_point || self.facts.size.entries == 0
    }

    #[cold]
    #[inline(never)]
    fn add_point(&mut self, key: &[u8], place: EntryPlace<'_>) {
        let facts = &mut self.facts;
        let key = Key::copy_from_slice(key);
        if facts.size.entries == 0 {
            facts.first_key = key;
            return;
        }
        let after = match facts.grain {
            ProfileGrain::Steps => None,
            ProfileGrain::Blocks => Some(key_after(place.last_key)),
        };
        facts.profile.push(ProfilePoint { key, below: facts.size, after });
        self.profile_mark_bytes = (facts.size.bytes / PROFILE_STEP_BYTES + 1) * PROFILE_STEP_BYTES;
    }

    /// Adds a data block of `block_bytes`, seal included.
    pub fn add_block(&mut self, block_bytes: usize) {
        self.facts.data_blocks += 1;
        self.facts.data_bytes += block_bytes as u64;
    }

    /// Returns the facts of the table that ends with `last_key`; `file_bytes` is still 0.
    pub fn finish(mut self, last_key: &[u8]) -> TableFacts {
        self.facts.last_key = Key::copy_from_slice(last_key);
        if self.expiring.is_all_of(self.facts.size) {
            self.facts.expires = self.expiring.latest();
        }
        let files = self.value_files.into_iter();
        let files = files.map(|(file, (values, bytes))| ValueUse { file, values, bytes });
        self.facts.value_files = files.collect();
        self.facts.has_expiring = self.is_outside && self.expiring.entries() > 0;
        self.facts
    }
}
