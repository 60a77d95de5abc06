//! An open root of an append table.

use super::parts::{PIECE_BYTES, RootFilter, RootParts, read_root};
use crate::env::Env;
use crate::error::Result;
use crate::format::{
    AppendRoot, Block, ChildRef, Damage, FEATURE_COMPRESSED, ProfileGrain, Slot, Span, TableFacts,
    ValueRef,
};
use crate::table::cache::{BlockCache, CacheName};
use crate::table::counts::{ReadCount, TableMemory, profile_bytes};
use crate::table::mapped::Mapped;
use crate::table::read_table::ReadTable;
use crate::table::table_file::TableFile;
use lsmith_tree::{Key, KeyRange, Profile, SeqNo, TableId};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

/// One root of an append table, opened. Filter and profile are in memory; nodes and values are read
/// through the map or the cache.
#[derive(Debug)]
pub struct AppendTable {
    pub(super) file: TableFile,
    pub(super) root: AppendRoot,
    pub(super) filter: Option<RootFilter>,
    pub(super) features: u32,
    /// The facts without the profile.
    facts: TableFacts,
    tree_table: Arc<lsmith_tree::Table>,
    pub(super) cache: Arc<BlockCache>,
    /// The name of this root in the cache.
    pub(super) name: CacheName,
    pub(super) mapped: Option<Mapped>,
    pub(super) env: Arc<dyn Env>,
    memory: TableMemory,
}

impl AppendTable {
    /// Opens the root that ends at byte `root` of table `table` at `path`.
    ///
    /// # Errors
    ///
    /// Fails with `Corruption` if that root is damaged or belongs to another table, with
    /// `Unsupported` if it has another format version or unknown features, and with `Io`.
    pub fn open(
        env: &Arc<dyn Env>,
        path: &Path,
        table: u64,
        root: u64,
        cache: Arc<BlockCache>,
    ) -> Result<Arc<AppendTable>> {
        let file = TableFile::open(&**env, path, table, &cache.files)?;
        let name = cache.name_table();
        AppendTable::open_root(file, env, root, cache, name)
    }

    /// Opens the root that ends at byte `root` of the same file, which a batch has
    /// [appended](AppendTable::append) to this one. Blocks in the cache serve both.
    ///
    /// # Errors
    ///
    /// Fails as [`open`](AppendTable::open) does.
    pub fn open_next(&self, root: u64) -> Result<Arc<AppendTable>> {
        let cache = Arc::clone(&self.cache);
        AppendTable::open_root(self.file.clone(), &self.env, root, cache, self.name)
    }

    /// Opens the root that ends at byte `root` of `file`, whose blocks have `name` in the cache.
    fn open_root(
        file: TableFile,
        env: &Arc<dyn Env>,
        root: u64,
        cache: Arc<BlockCache>,
        name: CacheName,
    ) -> Result<Arc<AppendTable>> {
        let table = file.table;
        let RootParts { footer, root: parts } = read_root(&file, root)?;
        let filter = RootFilter::read(&file, &parts)?;
        // Compressed blocks are decompressed into the cache, so their file is not mapped.
        let plain = footer.features & FEATURE_COMPRESSED == 0 && cache.maps;
        let map = plain.then(|| file.map()).flatten();
        let mapped = map.map(|bytes| Mapped::new(bytes, (root / PIECE_BYTES + 1) as usize));
        let mut opened = AppendTable {
            facts: facts(&parts, table, root),
            root: parts,
            filter,
            features: footer.features,
            tree_table: Arc::default(),
            cache,
            name,
            mapped,
            env: Arc::clone(env),
            memory: TableMemory::default(),
            file,
        };
        let profile = opened.profile()?;
        let mut tree_table = opened.facts.tree_table_of(root, profile);
        tree_table.dead_bytes = opened.appended_bytes().saturating_sub(tree_table.size.bytes);
        opened.memory.filters = opened.filter.as_ref().map_or(0, RootFilter::memory_bytes);
        opened.memory.profiles = profile_bytes(&tree_table);
        opened.tree_table = Arc::new(tree_table);
        Ok(Arc::new(opened))
    }

    /// Returns the number of different keys.
    pub fn keys(&self) -> u64 {
        self.root.top.sum.keys
    }

    /// Returns the number of batches.
    pub fn batches(&self) -> u64 {
        self.root.batches
    }

    /// Returns the logical bytes of all entries that batches have written, whether this root shows
    /// them or not.
    pub fn appended_bytes(&self) -> u64 {
        self.root.appended_bytes
    }

    /// Returns the entry `slot` of the leaf at `span` as an entry of the block with its value.
    fn with_value(
        &self,
        leaf: Block,
        slot: Slot,
        span: Span,
        reads: &mut ReadCount,
    ) -> Result<(Block, Slot)> {
        let value = self.value_ref(&leaf, &slot, span)?;
        if value.value_bytes == 0 {
            return Ok((leaf, slot));
        }
        if let Some(mapped) = &self.mapped {
            self.await_value(mapped, &value, reads);
            let place = self.mapped_value(mapped, &value, slot.key_bytes())?;
            let shown = Block::lent_value(mapped.bytes(), place, slot.kind, slot.seq);
            let what = "a value is too long";
            let damaged = || self.file.damaged(Damage::whole(what), value.block.offset);
            return shown.ok_or_else(damaged);
        }
        let block = self.block(value.block, reads)?;
        let mut stored = self.value_slot(&block, &value)?;
        stored.kind = slot.kind;
        stored.seq = slot.seq;
        Ok((block, stored))
    }

    /// Decodes the reference of the entry `slot` of the leaf at `span`.
    #[inline]
    pub(super) fn value_ref(&self, leaf: &Block, slot: &Slot, span: Span) -> Result<ValueRef> {
        let value = ValueRef::of(leaf, slot, span.offset);
        value.map_err(|damage| self.file.damaged(damage, span.offset))
    }

    /// Returns the entry of `block` that `value` leads to.
    #[inline]
    pub(super) fn value_slot(&self, block: &Block, value: &ValueRef) -> Result<Slot> {
        let damaged = |damage| self.file.damaged(damage, value.block.offset);
        let slot = block.slot(value.start as usize).map_err(damaged)?;
        if block.value(&slot).len() as u64 != value.value_bytes {
            return Err(damaged(Damage::whole("a value has another length than its reference")));
        }
        Ok(slot)
    }

    /// Reads the value that `reference`, which was read before, leads to.
    pub(super) fn read_value(&self, reference: &[u8]) -> Result<Vec<u8>> {
        let value = ValueRef::parse(reference, u64::MAX).expect("it was read before");
        if value.value_bytes == 0 {
            return Ok(Vec::new());
        }
        let block = self.fresh_block(value.block)?;
        let slot = self.value_slot(&block, &value)?;
        Ok(block.value(&slot).to_vec())
    }

    /// Returns the children of the inner node at `span`, with their keys.
    pub(super) fn children(&self, span: Span) -> Result<Vec<(Vec<u8>, ChildRef)>> {
        let node = self.fresh_block(span)?;
        let mut children = Vec::new();
        let mut key = Vec::new();
        let mut at = 0;
        let damaged = |damage| self.file.damaged(damage, span.offset);
        while at < node.entries_end() {
            let slot = node.slot(at).map_err(damaged)?;
            node.step(&slot, &mut key).map_err(damaged)?;
            children.push((key.clone(), child(&node, &slot, span).map_err(damaged)?));
            at = slot.end();
        }
        Ok(children)
    }
}

impl ReadTable for AppendTable {
    fn facts(&self) -> &TableFacts {
        &self.facts
    }

    fn tree_table(&self) -> &Arc<lsmith_tree::Table> {
        &self.tree_table
    }

    fn memory(&self) -> TableMemory {
        self.memory
    }

    #[inline]
    fn touch(&self, hash: u64) -> u64 {
        self.filter.as_ref().map_or(0, |filter| filter.touch(hash))
    }

    #[inline]
    fn excludes(&self, hash: u64, reads: &mut ReadCount) -> bool {
        let is_excluded = self.filter.as_ref().is_some_and(|filter| !filter.may_hold(hash));
        reads.filter_negatives += u64::from(is_excluded);
        is_excluded
    }

    fn search(
        &self,
        key: &[u8],
        snapshot: SeqNo,
        reads: &mut ReadCount,
    ) -> Result<Option<(Block, Slot)>> {
        if self.root.levels == 0 || key < &*self.facts.first_key || key > &*self.facts.last_key {
            return Ok(None);
        }
        let mut span = self.root.top.node;
        for _ in 1..self.root.levels {
            let node = self.awaited_block(span, reads)?;
            let child = node.floor(key).and_then(|slot| child(&node, &slot, span));
            span = child.map_err(|damage| self.file.damaged(damage, span.offset))?.node;
        }
        let leaf = self.awaited_block(span, reads)?;
        let found = leaf.find(key, snapshot);
        match found.map_err(|damage| self.file.damaged(damage, span.offset))? {
            crate::format::BlockAnswer::Found(slot) => {
                self.with_value(leaf, slot, span, reads).map(Some)
            }
            // A leaf has all versions of its keys.
            _ => Ok(None),
        }
    }

    fn verify(&self, ranges: &[KeyRange]) -> Result<()> {
        self.check(ranges)
    }

    fn dead_places(&self, _: &[KeyRange]) -> Vec<Range<u64>> {
        Vec::new()
    }

    fn is_from_outside(&self) -> bool {
        false
    }

    fn forget_blocks(&self) {
        self.cache.remove_table(self.name);
    }
}

/// Decodes the reference of the entry `slot` of the inner node at `span`.
pub(super) fn child(
    node: &Block,
    slot: &Slot,
    span: Span,
) -> std::result::Result<ChildRef, Damage> {
    ChildRef::parse(node.value(slot), span.offset)
}

/// Returns the facts of a root that ends at `end` of the file.
fn facts(root: &AppendRoot, table: u64, end: u64) -> TableFacts {
    TableFacts {
        table,
        file_bytes: end,
        data_bytes: end,
        data_blocks: 0,
        size: root.top.sum.size,
        first_key: root.first_key.clone(),
        last_key: root.last_key.clone(),
        seq_min: root.seq_min,
        seq_max: root.seq_max,
        grain: ProfileGrain::Steps,
        profile: Vec::new(),
        expires: root.expires,
        prefix_bytes: root.prefix_bytes,
        has_expiring: false,
        operator: None,
        range_deletes: Vec::new(),
        value_files: Vec::new(),
    }
}

impl TableFacts {
    /// Returns the metadata for trees of a root with this name and `profile`.
    fn tree_table_of(&self, root: u64, profile: Profile) -> lsmith_tree::Table {
        let range = match self.size.entries {
            0 => KeyRange { start: Key::new(), end: Some(Key::new()) },
            _ => KeyRange::inclusive(&self.first_key, &self.last_key),
        };
        lsmith_tree::Table {
            id: TableId(self.table),
            root,
            range,
            size: self.size,
            dead_bytes: 0,
            born: 0,
            deletes_applied: lsmith_tree::SeqNo(0),
            oldest_tombstone: 0,
            expires: self.expires,
            seq_min: self.seq_min,
            seq_max: self.seq_max,
            profile,
        }
    }
}
