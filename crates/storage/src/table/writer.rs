//! Writes a table.

use crate::account::{Account, Charge};
use crate::cursor::EntryRef;
use crate::env::{Env, PAGE_BYTES, WriteFile};
use crate::error::{Error, Result};
use crate::expiry::EXPIRY_BYTES;
use crate::format::{
    BlockBuilder, Codec, Compressor, EntryPlace, FEATURE_COMPRESSED, FEATURE_EXPIRES,
    FEATURE_EXPIRING, FEATURE_OPERANDS, FEATURE_OUTSIDE, FEATURE_PREFIXES, FEATURE_RANGE_DELETES,
    FEATURE_UNDATED, FEATURE_VALUES, FOOTER_BYTES, FactsBuilder, Fence, FencesBuilder,
    FilterBuilder, Footer, KEY_BYTES_MAX, ProfileGrain, SealedPlace, Section, TableFacts,
    common_prefix_bytes, key_hash, prefix_hash, seal,
};
use crate::reference::ValueReference;
use lsmith_tree::blocks::fits;
use lsmith_tree::{EntryKind, KeyRange, SeqNo};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The length of the longest value of a table, in bytes.
pub(super) const VALUE_BYTES_MAX: usize = 1 << 30;

/// The id of each table that is written outside of a store. No table in a store has it.
pub const OUTSIDE: u64 = 0;

/// What is wrong with a reference of another length.
pub(super) const NO_REFERENCE: &str = "expected a reference to a value, found other bytes";

/// The number of bytes that are collected for one write to the file.
const WRITE_BYTES: usize = 256 * 1024;

/// Options for writing a table. Readers need none of them.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// The size of a data block in logical bytes. A block ends before the entry that does not
    /// [fit](lsmith_tree::blocks::fits).
    pub block_bytes: usize,
    /// Bits of the filter for each key; 0 for no filter.
    pub filter_bits_per_key: u8,
    /// If set, replaces `filter_bits_per_key`, for filters whose sizes depend on all runs.
    pub filter_bits: Option<f64>,
    /// If above 0, the filter also holds the first so many bytes of each key that has so many.
    pub prefix_bytes: u16,
    /// Where the profile has its points.
    pub grain: ProfileGrain,
    /// The compression of data blocks.
    pub codec: Codec,
    /// True if the file need not stay in the system's cache.
    pub uncached: bool,
}

impl Default for TableOptions {
    fn default() -> TableOptions {
        TableOptions {
            block_bytes: 4096,
            filter_bits_per_key: 10,
            filter_bits: None,
            prefix_bytes: 0,
            grain: ProfileGrain::Steps,
            codec: Codec::None,
            uncached: false,
        }
    }
}

impl TableOptions {
    /// Returns the bits of the filter for each key; 0 or less for no filter.
    pub fn bits_per_key(&self) -> f64 {
        self.filter_bits.unwrap_or(self.filter_bits_per_key.into())
    }
}

/// A table being written. If it is dropped before [`finish`](TableWriter::finish) or after an
/// error, it leaves an incomplete file, which the caller must remove.
#[derive(Debug)]
pub struct TableWriter {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    table: u64,
    block_bytes: u64,
    /// Blocks that are not written to the file yet; the last one may be incomplete.
    out: Vec<u8>,
    /// The offset in the file at which `out` starts.
    written: u64,
    block: BlockBuilder,
    compressor: Compressor,
    /// Logical bytes of the open block.
    open_bytes: u64,
    /// The fence of the open block, and whether the block is continued.
    fence: Vec<u8>,
    continued: bool,
    fences: FencesBuilder,
    filter: Option<FilterBuilder>,
    /// The length of the prefixes that the filter holds; 0 for none.
    prefix_bytes: usize,
    facts: FactsBuilder,
    last_key: Vec<u8>,
    last_seq: SeqNo,
    /// Counts the memory of the writer, if anything does.
    charge: Option<Charge>,
}

impl TableWriter {
    /// Creates the file at `path`, which must not exist, for table `table`, or for a table without
    /// an id if that is [`OUTSIDE`].
    ///
    /// # Errors
    ///
    /// Fails with `Io` or `Full`.
    pub fn create(
        env: &Arc<dyn Env>,
        path: &Path,
        table: u64,
        options: &TableOptions,
    ) -> Result<TableWriter> {
        let mut file = env.create(path).map_err(|error| Error::io("create", path, error))?;
        if options.uncached {
            file.set_uncached();
        }
        let bits_per_key = options.bits_per_key();
        let prefix_bytes = if bits_per_key > 0.0 { options.prefix_bytes } else { 0 };
        Ok(TableWriter {
            file,
            path: path.to_path_buf(),
            table,
            block_bytes: options.block_bytes as u64,
            out: Vec::with_capacity(WRITE_BYTES + options.block_bytes),
            written: 0,
            block: BlockBuilder::default(),
            compressor: Compressor::new(options.codec),
            open_bytes: 0,
            fence: Vec::new(),
            continued: false,
            fences: FencesBuilder::default(),
            filter: (bits_per_key > 0.0).then(|| FilterBuilder::new(bits_per_key)),
            prefix_bytes: prefix_bytes.into(),
            facts: FactsBuilder::new(table, options.grain)
                .with_prefixes(prefix_bytes)
                .outside(table == OUTSIDE),
            last_key: Vec::new(),
            last_seq: SeqNo::MAX,
            charge: None,
        })
    }

    /// Counts the memory of the writer in `account` from now on.
    pub fn charge(&mut self, account: &Arc<Account>) {
        self.charge = Some(Charge::new(account));
    }

    /// Returns the bytes of memory that the writer holds: blocks that are not written yet, and what
    /// becomes filter, fences and profile.
    pub fn memory_bytes(&self) -> u64 {
        let filter = self.filter.as_ref().map_or(0, FilterBuilder::memory_bytes);
        self.out.capacity() as u64 + filter + self.fences.memory_bytes()
    }

    /// Returns the logical bytes of the entries added so far.
    pub fn logical_bytes(&self) -> u64 {
        self.facts.size().bytes
    }

    /// Returns the number of entries added so far.
    pub fn entries(&self) -> u64 {
        self.facts.size().entries
    }

    /// Says that the table, which is written [outside](OUTSIDE) of a store, has operands of the
    /// operator called `name`, which is not empty.
    pub fn set_operator(&mut self, name: &str) {
        self.facts.set_operator(name);
    }

    /// Says that the table, which is written [outside](OUTSIDE) of a store, has these range
    /// deletes.
    pub fn set_range_deletes(&mut self, range_deletes: Vec<(KeyRange, SeqNo)>) {
        self.facts.set_range_deletes(range_deletes);
    }

    /// Adds the next entry in the store's order.
    ///
    /// # Errors
    ///
    /// Fails with `Io` or `Full`. Fails with `Corruption` if the entry is not behind the previous
    /// one, if its key is empty, if key or value are too long, or if it is a tombstone with a
    /// value. Such an entry comes from a damaged table, but the error names the table being
    /// written, which does not know the other one.
    pub fn add(&mut self, entry: EntryRef<'_>) -> Result<()> {
        let shared = common_prefix_bytes(&self.last_key, entry.key);
        let checked = check_entry(&entry).and_then(|()| self.check_order(shared, &entry));
        let new_key =
            checked.map_err(|message| Error::corruption(&self.path, self.written, message))?;
        let entry_bytes = entry.logical_bytes();
        if !fits(self.block_bytes, self.open_bytes, entry_bytes) {
            self.cut_block()?;
        }
        let begins_block = self.block.is_empty();
        if begins_block {
            self.start_block(shared, &entry, new_key);
        }
        if new_key && let Some(filter) = &mut self.filter {
            filter.add(key_hash(entry.key));
            // Keys with the same prefix follow each other.
            if shared < self.prefix_bytes {
                add_prefix(filter, entry.key, self.prefix_bytes);
            }
        }
        let place = EntryPlace { last_key: &self.last_key, new_key, begins_block };
        self.facts.add(&entry, place);
        self.block.add(&mut self.out, shared, &entry);
        self.open_bytes += entry_bytes;
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(&entry.key[shared..]);
        self.last_seq = entry.seq;
        Ok(())
    }

    /// Ends the open data block, if there is one. The next entry starts a new block.
    ///
    /// # Errors
    ///
    /// Fails with `Io` or `Full`.
    pub fn end_block(&mut self) -> Result<()> {
        if self.block.is_empty() { Ok(()) } else { self.cut_block() }
    }

    /// Writes the rest of the table, and makes the file survive power loss. The caller must make
    /// its name survive.
    ///
    /// # Errors
    ///
    /// Fails with `Io` or `Full`.
    ///
    /// # Panics
    ///
    /// Panics if no entry was added.
    pub fn finish(mut self) -> Result<TableFacts> {
        assert!(self.entries() > 0, "a table has at least one entry");
        self.end_block()?;
        let filter_payload = self.filter.take().map(FilterBuilder::finish);
        let filter = self.write_part(filter_payload)?;
        let fences = std::mem::take(&mut self.fences).finish();
        let index = self.write_part(Some(fences))?;
        let builder =
            std::mem::replace(&mut self.facts, FactsBuilder::new(self.table, ProfileGrain::Steps));
        let mut facts = builder.finish(&self.last_key);
        let properties = self.write_part(Some(facts.encode()))?;
        facts.file_bytes = properties.end + FOOTER_BYTES as u64;
        let compressed = if self.compressor.used() { FEATURE_COMPRESSED } else { 0 };
        let undated = if facts.seq_max == SeqNo(0) { FEATURE_UNDATED } else { 0 };
        let outside = if self.table == OUTSIDE { FEATURE_OUTSIDE } else { 0 };
        let expires = if facts.expires > 0 { FEATURE_EXPIRES } else { 0 };
        let prefixes = if facts.prefix_bytes > 0 { FEATURE_PREFIXES } else { 0 };
        let expiring = if facts.has_expiring { FEATURE_EXPIRING } else { 0 };
        let operands = if facts.operator.is_some() { FEATURE_OPERANDS } else { 0 };
        let hides = if facts.range_deletes.is_empty() { 0 } else { FEATURE_RANGE_DELETES };
        let refers = if facts.value_files.is_empty() { 0 } else { FEATURE_VALUES };
        let kinds = expiring | operands | hides | refers;
        let features = compressed | undated | outside | prefixes | expires | kinds;
        let footer = Footer { table: self.table, filter, index, properties, features };
        self.out.extend_from_slice(&footer.encode());
        self.write_out()?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(facts)
    }

    /// Returns true if `entry`, which shares `shared` bytes with the previous key, has another key.
    fn check_order(
        &self,
        shared: usize,
        entry: &EntryRef<'_>,
    ) -> std::result::Result<bool, &'static str> {
        match (self.last_key.get(shared), entry.key.get(shared)) {
            (None, None) if entry.seq < self.last_seq => Ok(false),
            (None, None) => Err("versions of a key do not come newest first"),
            (last, this) if last < this => Ok(true),
            _ => Err("entries do not come in the order of their keys"),
        }
    }

    fn start_block(&mut self, shared: usize, entry: &EntryRef<'_>, new_key: bool) {
        let first = self.entries() == 0;
        self.continued = !new_key;
        let fence_bytes = match (first, new_key) {
            (true, _) => 0,
            (false, true) => shared + 1,
            (false, false) => entry.key.len(),
        };
        self.fence.clear();
        self.fence.extend_from_slice(&entry.key[..fence_bytes]);
    }

    /// Ends the open block.
    fn cut_block(&mut self) -> Result<()> {
        let before = self.out.len() - self.block.bytes(&self.out);
        let place = SealedPlace { table: self.table, offset: self.written + before as u64 };
        let block_bytes = self.block.finish_with(&mut self.out, place, &mut self.compressor);
        self.fences.add(Fence { key: &self.fence, continued: self.continued, block_bytes });
        self.facts.add_block(block_bytes);
        self.open_bytes = 0;
        if let Some(mut charge) = self.charge.take() {
            charge.set(self.memory_bytes());
            self.charge = Some(charge);
        }
        if self.out.len() >= WRITE_BYTES { self.write_pages() } else { Ok(()) }
    }

    /// Writes a block with this payload behind the others, or nothing if there is no payload.
    fn write_part(&mut self, payload: Option<Vec<u8>>) -> Result<Section> {
        self.write_out()?;
        let start = self.written;
        if let Some(payload) = payload {
            self.out = payload;
            seal(&mut self.out, 0, SealedPlace { table: self.table, offset: start });
            self.write_out()?;
        }
        Ok(start..self.written)
    }

    /// Writes up to the end of the last whole page. A page that is written in two pieces costs the
    /// system a tenth more.
    fn write_pages(&mut self) -> Result<()> {
        let end = self.written + self.out.len() as u64;
        self.write_first(self.out.len() - (end % PAGE_BYTES) as usize)
    }

    fn write_out(&mut self) -> Result<()> {
        self.write_first(self.out.len())
    }

    /// Writes the first `bytes` bytes of `out`.
    fn write_first(&mut self, bytes: usize) -> Result<()> {
        let first = self.file.write_all(&self.out[..bytes]);
        first.map_err(|error| Error::io("write", &self.path, error))?;
        self.written += bytes as u64;
        self.out.drain(..bytes);
        // A huge value must not occupy memory until the table is finished.
        self.out.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }
}

/// Adds the prefix of `key` with `bytes` bytes to `filter`. A shorter key has no such prefix.
#[cold]
#[inline(never)]
fn add_prefix(filter: &mut FilterBuilder, key: &[u8], bytes: usize) {
    if let Some(prefix) = key.get(..bytes) {
        filter.add(prefix_hash(prefix));
    }
}

/// Fails if a table cannot have such an entry.
#[inline]
pub(super) fn check_entry(entry: &EntryRef<'_>) -> std::result::Result<(), &'static str> {
    if !(1..=KEY_BYTES_MAX).contains(&entry.key.len()) {
        return Err("a key is empty or too long");
    }
    if entry.value.len() > VALUE_BYTES_MAX {
        return Err("a value is too long");
    }
    if entry.kind.is_value() {
        return Ok(());
    }
    if entry.kind.is_tombstone() && !entry.value.is_empty() {
        return Err("a tombstone has a value");
    }
    if entry.kind == EntryKind::Expiring && entry.value.len() < EXPIRY_BYTES {
        return Err("an entry that expires has no time");
    }
    if entry.kind.is_reference() && ValueReference::decode(entry.value).is_none() {
        return Err(NO_REFERENCE);
    }
    Ok(())
}
