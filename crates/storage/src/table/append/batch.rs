//! Appends a batch to an append table.

use super::filter::{self, NewKeys, NextFilter};
use super::group::{GroupWalk, OLD, OldVersion, value_bytes};
use super::leaves::{LeafBuilder, LeafEntry};
use super::nodes::{self, Child, Top};
use super::old_leaf::OldLeaf;
use super::reader::AppendTable;
use super::values::{BatchFile, ValueWriter};
use crate::cursor::EntryRef;
use crate::env::WriteFile;
use crate::error::{Error, Result};
use crate::expiry::ExpiryTally;
use crate::fold::{Fold, FoldCounts, Hiding, Operators, Walk};
use crate::format::{
    AppendRoot, ChildRef, FEATURE_APPEND, FEATURE_COMPRESSED, FEATURE_EXPIRES, FEATURE_PREFIXES,
    Footer, Span, ValueRef,
};
use crate::table::read_table::ReadTable;
use crate::table::writer::{TableOptions, check_entry};
use lsmith_tree::{Key, ReplacedNodes, SeqNo, Size, logical_bytes};
use std::path::Path;

/// Which entries a batch may drop, of its own and of the table. It meets all versions of its keys.
#[derive(Clone, Debug)]
pub struct BatchRules<B> {
    /// The live snapshots, newest first.
    pub snapshots: Vec<SeqNo>,
    /// Returns true if no entry of a key is older than the table.
    pub nothing_beneath: B,
    /// Writes the sequence number 0 in entries that all live and later snapshots see.
    pub forgets: bool,
    /// Computes combines; without operators they stay.
    pub operators: Option<Operators>,
    /// The range deletes to apply.
    pub hiding: Hiding,
}

/// What a batch has appended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appended {
    /// The name of the new root: the length of the file.
    pub root: u64,
    /// What happened to the entries of the batch, and to the versions of their keys that the table
    /// had.
    pub counts: FoldCounts,
    /// The versions of its keys that the table had.
    pub met: Size,
    /// The versions that stay where they are, for snapshots. `counts` has them as put out.
    pub kept: Size,
    /// The entries that were written.
    pub written: Size,
    /// Bytes of nodes that were read.
    pub read_bytes: u64,
    /// The number of blocks with values.
    pub value_blocks: u64,
    /// Bytes of blocks with values.
    pub value_bytes: u64,
    /// Bytes of the filter.
    pub filter_bytes: u64,
    /// Bytes of nodes.
    pub node_bytes: u64,
    /// Logical bytes of the nodes that were replaced, as [`ReplacedNodes`] counts them.
    pub replaced_bytes: u64,
}

impl AppendTable {
    /// Writes `entries` as the first batch of table `table` to `file`, which is new and at
    /// `path`. If it fails, the file is incomplete, and the caller must remove it.
    ///
    /// # Errors
    ///
    /// Fails with `Io` or `Full`, and as [`append`](AppendTable::append) does.
    pub fn create<C: Walk, B: FnMut(&[u8]) -> bool>(
        file: Box<dyn WriteFile>,
        path: &Path,
        table: u64,
        options: &TableOptions,
        entries: C,
        rules: BatchRules<B>,
    ) -> Result<Appended> {
        run(None, BatchFile::new(file, path, table, 0), options, entries, rules)
    }

    /// Appends `entries` as the next batch behind this root, over anything that the file has there.
    /// They must be newer than the entries of the same keys that the root shows. Other roots stay
    /// as they are. The new root is durable when this returns. Nobody else may append meanwhile.
    ///
    /// # Errors
    ///
    /// Fails with `Io` or `Full`, with `Corruption` if a node is damaged, and as
    /// [`TableWriter::add`](crate::table::TableWriter::add) if an entry is none that a table can
    /// have. This root stays as it is.
    pub fn append<C: Walk, B: FnMut(&[u8]) -> bool>(
        &self,
        options: &TableOptions,
        entries: C,
        rules: BatchRules<B>,
    ) -> Result<Appended> {
        let path = self.file.path();
        let bytes = self.facts().file_bytes;
        let opened: std::io::Result<Box<dyn WriteFile>> = self.env.append(path, bytes);
        let file = opened.map_err(|error| Error::io("append to", path, error))?;
        let file = BatchFile::new(file, path, self.file.table, bytes);
        run(Some(self), file, options, entries, rules)
    }
}

/// The state of a batch.
struct Batch<'a, C, B> {
    base: Option<&'a AppendTable>,
    fold: Fold<GroupWalk<'a, C>, B>,
    values: ValueWriter,
    leaves: LeafBuilder,
    /// The keys that the table did not have.
    new_keys: NewKeys,
    appended: Appended,
    /// Entries of the table in front of the next key of the batch.
    passed: u64,
    replaced: ReplacedNodes,
    /// The written entries that expire.
    expiring: ExpiryTally,
    seq_min: SeqNo,
    seq_max: SeqNo,
}

fn run<C: Walk, B: FnMut(&[u8]) -> bool>(
    base: Option<&AppendTable>,
    file: BatchFile,
    options: &TableOptions,
    entries: C,
    rules: BatchRules<B>,
) -> Result<Appended> {
    let BatchRules { snapshots, nothing_beneath, forgets, operators, hiding } = rules;
    let start = file.end();
    let walk = GroupWalk::new(entries, base);
    let before = base.map(|base| &base.root).filter(|root| root.levels > 0);
    let mut batch = Batch {
        base,
        fold: Fold::new(walk, snapshots, nothing_beneath)?
            .forgetting(forgets)
            .combining(operators)
            .hiding(hiding),
        values: ValueWriter::new(file, options),
        leaves: LeafBuilder::default(),
        new_keys: NewKeys::new(options),
        appended: Appended::default(),
        passed: 0,
        replaced: ReplacedNodes::of(before.map_or(0, |root| root.top.sum.size.entries)),
        expiring: ExpiryTally::default(),
        seq_min: before.map_or(SeqNo::MAX, |root| root.seq_min),
        seq_max: before.map_or(SeqNo(0), |root| root.seq_max),
    };
    let (children, level) = match before {
        Some(root) => {
            (batch.children(vec![(Vec::new(), root.top)], root.levels, None)?, root.levels)
        }
        None => {
            batch.merge_leaf(None, None)?;
            (batch.end_leaves()?, 1)
        }
    };
    batch.appended.value_bytes = batch.values.file.end() - start;
    batch.finish(children, level - 1, options)
}

impl<C: Walk, B: FnMut(&[u8]) -> bool> Batch<'_, C, B> {
    /// Returns true if the batch has another key below `end`.
    fn has_key_below(&self, end: Option<&[u8]>) -> bool {
        let next = self.fold.walk().batch.here();
        next.is_some_and(|entry| end.is_none_or(|end| entry.key < end))
    }

    /// Returns what `children`, on the level below `level`, become. `end` is the separator behind
    /// them.
    fn children(
        &mut self,
        children: Vec<(Vec<u8>, ChildRef)>,
        level: u64,
        end: Option<&[u8]>,
    ) -> Result<Vec<Child>> {
        let mut made = Vec::new();
        for index in 0..children.len() {
            let (separator, child) = &children[index];
            let end = children.get(index + 1).map(|(next, _)| &next[..]).or(end);
            let touched = self.has_key_below(end);
            if level > 1 {
                made.push(self.inner(separator, *child, level, end)?);
                continue;
            }
            // A leaf joins the small one that deletions have left in front of it.
            let joins = !self.leaves.is_empty() && self.leaves.fits_with(child.node.bytes);
            if touched || joins {
                self.leaves.begin(separator);
                self.merge_leaf(Some(child.node), end)?;
                if self.leaves.is_small() && touched {
                    continue;
                }
                made.extend(self.end_leaves()?);
            } else {
                made.extend(self.end_leaves()?);
                self.passed += child.sum.size.entries;
                made.push(Child::Kept(separator.clone(), *child));
            }
        }
        if level == 1 {
            made.extend(self.end_leaves()?);
        }
        Ok(made)
    }

    /// Returns what an inner node on the level below `level` becomes.
    fn inner(
        &mut self,
        separator: &[u8],
        child: ChildRef,
        level: u64,
        end: Option<&[u8]>,
    ) -> Result<Child> {
        if !self.has_key_below(end) {
            self.passed += child.sum.size.entries;
            return Ok(Child::Kept(separator.to_vec(), child));
        }
        let base = self.base.expect("an empty table has no nodes");
        let mut below = base.children(child.node)?;
        self.appended.read_bytes += child.node.bytes;
        // Nodes in front of this one may have vanished since it was written.
        if let Some((first, _)) = below.first_mut() {
            *first = separator.to_vec();
        }
        Ok(Child::Inner(self.children(below, level - 1, end)?))
    }

    /// Ends the leaf that is being built, and returns all new ones.
    fn end_leaves(&mut self) -> Result<Vec<Child>> {
        self.cut_values()?;
        Ok(self.leaves.end().into_iter().map(Child::Leaf).collect())
    }

    fn cut_values(&mut self) -> Result<()> {
        if let Some(span) = self.values.cut()? {
            self.appended.value_blocks += 1;
            self.leaves.close(span);
        }
        Ok(())
    }

    /// Adds the entries of the old leaf at `span`, if there is one, and the batch's entries below
    /// `end`, to the leaf that is being built.
    fn merge_leaf(&mut self, span: Option<Span>, end: Option<&[u8]>) -> Result<()> {
        let mut old = match (self.base, span) {
            (Some(base), Some(span)) => Some(OldLeaf::open(base, span)?),
            _ => None,
        };
        self.appended.read_bytes += span.map_or(0, |span| span.bytes);
        loop {
            let has_new = self.has_key_below(end);
            let key = old.as_ref().and_then(OldLeaf::key);
            let new = self.fold.walk().batch.here().filter(|_| has_new);
            let keeps = match (key, &new) {
                (None, None) => return Ok(()),
                (Some(key), Some(new)) => key < new.key,
                (key, _) => key.is_some(),
            };
            if keeps && let Some(leaf) = &mut old {
                let entry = leaf.take()?;
                self.passed += 1;
                self.add(entry)?;
                continue;
            }
            let mut versions = Vec::new();
            if let Some((leaf, new)) = old.as_mut().zip(new) {
                while leaf.key() == Some(new.key) {
                    versions.push(leaf.take_version()?);
                }
            }
            self.merge_key(versions)?;
        }
    }

    /// Adds the next key of the batch. `old` has its versions in the table.
    fn merge_key(&mut self, old: Vec<OldVersion>) -> Result<()> {
        let was_there = !old.is_empty();
        self.replaced.add(self.passed);
        self.passed += old.len() as u64;
        self.fold.walk_mut().enter(old);
        self.appended.met += self.fold.walk().old_size();
        self.check_next()?;
        let mut hashes = None;
        while let Some(entry) = self.fold.next_entry()? {
            hashes = Some(self.new_keys.hashes_of(entry.key));
            let is_old = self.fold.last_mark() == OLD;
            let entry = self.fold.last_entry();
            let value_bytes = if is_old { value_bytes(entry.value) } else { entry.value.len() };
            let size = Size {
                bytes: logical_bytes(entry.key.len(), value_bytes),
                entries: 1,
                tombstones: u64::from(entry.kind.is_tombstone()),
            };
            if !is_old && !self.values.has_room_for(size.bytes) {
                self.cut_values()?;
            }
            let entry = self.fold.last_entry();
            let value = match (is_old, entry.value.is_empty()) {
                (true, _) => ValueRef::parse(entry.value, u64::MAX).expect("it was read before"),
                (false, true) => ValueRef::default(),
                (false, false) => self.values.add(&entry),
            };
            if is_old {
                self.appended.kept += size;
            } else {
                self.appended.written += size;
                self.expiring.add(entry.kind, entry.value);
            }
            // An old version may have lost its sequence number too.
            self.seq_min = self.seq_min.min(entry.seq);
            self.seq_max = self.seq_max.max(entry.seq);
            let EntryRef { key, seq, kind, .. } = entry;
            let entry = LeafEntry { key: key.to_vec(), seq, kind, value };
            self.add(entry)?;
        }
        if let Some(hashes) = hashes.filter(|_| !was_there) {
            self.new_keys.add(hashes);
        }
        Ok(())
    }

    /// Fails if the next entries of the batch are none that a table can have.
    fn check_next(&self) -> Result<()> {
        let walk = self.fold.walk();
        let checked = walk.batch.here().map_or(Ok(()), |entry| check_entry(&entry));
        checked.map_err(|what| self.values.file.refused(what))
    }

    fn add(&mut self, entry: LeafEntry) -> Result<()> {
        self.leaves.add(entry).map_err(|what| self.values.file.refused(what))
    }

    /// Writes filter, nodes and root.
    fn finish(self, children: Vec<Child>, level: u64, options: &TableOptions) -> Result<Appended> {
        let Batch { base, fold, values, mut appended, .. } = self;
        appended.replaced_bytes = self.replaced.bytes();
        let compressed = if values.has_compressed() { FEATURE_COMPRESSED } else { 0 };
        let mut file = values.file;
        let keys = key_count(&children);
        let filter_start = file.end();
        let filter = filter::write(&mut file, base, options, keys, self.new_keys)?;
        let NextFilter { room, parts, prefix_bytes, prefixes } = filter;
        let nodes_start = file.end();
        let top = nodes::write(&mut file, children, level)?;
        let properties_start = file.end();
        appended.filter_bytes = nodes_start - filter_start;
        appended.node_bytes = properties_start - nodes_start;
        let before = base.map(|base| &base.root);
        let mut root = AppendRoot {
            batches: 1 + before.map_or(0, |root| root.batches),
            appended_bytes: appended.written.bytes
                + appended.replaced_bytes
                + before.map_or(0, |root| root.appended_bytes),
            filter_room: room,
            filter: parts,
            prefix_bytes,
            filter_prefixes: prefixes,
            ..AppendRoot::default()
        };
        if let Some(Top { child, levels, first, last }) = top {
            let key = |edge, is_last| match (edge, base) {
                (nodes::Edge::Key(key), _) => Ok(key),
                (edge, Some(base)) => base.edge_key(edge, is_last),
                (_, None) => unreachable!("only an old table has nodes that are kept"),
            };
            root.levels = levels;
            root.top = child;
            root.first_key = Key::from(key(first, false)?);
            root.last_key = Key::from(key(last, true)?);
            root.seq_min = self.seq_min;
            root.seq_max = self.seq_max;
            root.expires = expires(before, self.expiring, appended.written);
        }
        let properties = file.part(root.encode())?;
        let prefixed = if prefix_bytes > 0 { FEATURE_PREFIXES } else { 0 };
        let expires = if root.expires > 0 { FEATURE_EXPIRES } else { 0 };
        let own = FEATURE_PREFIXES | FEATURE_EXPIRES;
        let inherited = base.map_or(0, |base| base.features & !own);
        let footer = Footer {
            table: file.table(),
            filter: filter_start..nodes_start,
            index: nodes_start..properties_start,
            properties: properties_start..properties.end(),
            features: FEATURE_APPEND | compressed | prefixed | expires | inherited,
        };
        appended.root = file.finish(&footer.encode())?;
        appended.counts = fold.counts();
        Ok(appended)
    }
}

/// Returns a bound on the latest expiry in the table after this batch, or 0 if an entry never
/// expires. `written` counts the batch's entries. Old entries that it replaced still count.
fn expires(before: Option<&AppendRoot>, expiring: ExpiryTally, written: Size) -> u64 {
    let all_expire = before.is_none_or(AppendRoot::expires_wholly) && expiring.is_all_of(written);
    let older = before.map_or(0, |root| root.expires);
    if all_expire { older.max(expiring.latest()) } else { 0 }
}

/// Returns the number of keys below `children`.
fn key_count(children: &[Child]) -> u64 {
    let of = |child: &Child| match child {
        Child::Kept(_, child) => child.sum.keys,
        Child::Leaf(leaf) => leaf.sum.keys,
        Child::Inner(below) => key_count(below),
    };
    children.iter().map(of).sum()
}
