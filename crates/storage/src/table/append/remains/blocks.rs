//! Finds roots, nodes and data blocks of a file without a root that leads to them.

use super::node::Node;
use crate::error::Result;
use crate::format::{
    AppendRoot, Block, FEATURE_APPEND, FOOTER_BYTES, Footer, SEAL_BYTES, SealedPlace, Span,
    TABLE_MAGIC, unseal,
};
use crate::table::append::parts::{read_part, read_root};
use crate::table::remains::ends_of;
use crate::table::search::BlockSearch;
use crate::table::table_file::TableFile;
use bytes::Bytes;
use lsmith_tree::{Key, KeyRange, key_after};
use std::ops::Range;

/// Bytes of one read.
const WINDOW_BYTES: u64 = 1 << 20;

/// Bytes of the longest block that is found if only its end is known.
const BLOCK_BYTES_MAX: u64 = 64 << 10;

/// A root with an intact footer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FoundRoot {
    /// The end of its footer, which is its name.
    pub end: u64,
    /// The footer.
    pub footer: Footer,
    /// The root block, if it can be read.
    pub root: Option<AppendRoot>,
}

/// Returns the roots in the first `end` bytes of `file`, oldest first.
pub(super) fn roots(file: &TableFile, end: u64) -> Result<Vec<FoundRoot>> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < end {
        let window_end = end.min(start + WINDOW_BYTES);
        let bytes = file.read(start..window_end)?;
        for (at, _) in
            bytes.windows(TABLE_MAGIC.len()).enumerate().filter(|(_, it)| *it == TABLE_MAGIC)
        {
            found.extend(root_at(file, start + (at + TABLE_MAGIC.len()) as u64));
        }
        if window_end == end {
            break;
        }
        start = window_end - (TABLE_MAGIC.len() as u64 - 1);
    }
    Ok(found)
}

/// Returns the root that ends at `end`, if its footer is whole.
fn root_at(file: &TableFile, end: u64) -> Option<FoundRoot> {
    let start = end.checked_sub(FOOTER_BYTES as u64)?;
    let bytes = file.read(start..end).ok()?;
    let footer = Footer::decode(bytes.first_chunk()?, start).ok()?;
    if footer.features & FEATURE_APPEND == 0 || footer.table != file.table {
        return None;
    }
    let root = read_root(file, end).ok().map(|parts| parts.root);
    Some(FoundRoot { end, footer, root })
}

/// Returns the payload of the block that ends at `end`, and its place.
pub(super) fn block_ending(file: &TableFile, end: u64) -> Option<(Span, Bytes)> {
    let from = end.saturating_sub(BLOCK_BYTES_MAX);
    let bytes = file.read(from..end).ok()?;
    (from..end.saturating_sub(SEAL_BYTES as u64)).rev().find_map(|offset| {
        let sealed = bytes.slice((offset - from) as usize..);
        let place = SealedPlace { table: file.sealed_as, offset };
        let payload = unseal(&sealed, place).ok()?.len();
        Some((Span { offset, bytes: end - offset }, sealed.slice(..payload)))
    })
}

/// Returns the root block that ends at `end`.
pub(super) fn root_block_ending(file: &TableFile, end: u64) -> Option<AppendRoot> {
    let (span, _) = block_ending(file, end)?;
    read_part(file, span, |payload| AppendRoot::parse(payload, span.offset)).ok()
}

/// A node or a data block.
#[derive(Debug)]
pub(super) struct FoundBlock {
    pub(super) span: Span,
    /// A range with all keys of its entries.
    pub(super) keys: KeyRange,
    pub(super) kind: BlockKind,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    /// A data block. Its entries of the key, if there is one, are older versions of the last key of
    /// the block before.
    Data(Option<Key>),
    Node,
    /// Nothing proves which of the two it is.
    Unknown,
}

/// Returns the blocks in the first `end` bytes of `file`, in their order. `roots` are the roots
/// there.
pub(super) fn blocks(file: &TableFile, end: u64, roots: &[FoundRoot]) -> Vec<FoundBlock> {
    let mut found = Vec::new();
    let mut start = 0;
    let mut batches = Some(0);
    for FoundRoot { end, footer, root } in roots {
        let after = root.as_ref().map(|root| root.batches);
        // With the root before it, the data blocks of a batch are known to be nothing else.
        let is_data = after.is_some() && batches.map(|batches| batches + 1) == after;
        let kind = is_data.then_some(BlockKind::Data(None));
        search(file, start..footer.filter.start, kind.as_ref(), &mut found);
        search(file, footer.index.clone(), Some(&BlockKind::Node), &mut found);
        batches = after;
        start = *end;
    }
    search(file, start..end, None, &mut found);
    found
}

/// Returns true if a block of `file`, which has lost all footers, is a node or may be one.
pub(super) fn has_node(file: &TableFile, end: u64) -> bool {
    blocks(file, end, &[]).iter().any(|found| match found.kind {
        BlockKind::Data(_) => false,
        // Leaves without values are as data blocks of sorted tables.
        BlockKind::Node => Node::read(file, found.span).is_ok_and(|node| node.is_proven(file)),
        BlockKind::Unknown => true,
    })
}

/// Adds the blocks at `place`, which are of `kind` if that is known.
fn search(
    file: &TableFile,
    place: Range<u64>,
    kind: Option<&BlockKind>,
    found: &mut Vec<FoundBlock>,
) {
    let mut search = BlockSearch::new(file, place);
    // What lies behind a part that cannot be read is not searched.
    while let Ok(Some((place, block))) = search.next() {
        let Some(block) = block else { continue };
        let span = Span { offset: place.start, bytes: place.end - place.start };
        let node = Node::parse(&block, span.offset).ok();
        let node = node.filter(|_| !matches!(kind, Some(BlockKind::Data(_))));
        match (kind, node) {
            (_, Some(node)) => {
                let is_node = kind.is_some() || node.has_empty_value() || node.is_proven(file);
                let kind = if is_node { BlockKind::Node } else { BlockKind::Unknown };
                found.push(FoundBlock { span, keys: node.keys(), kind });
            }
            (Some(BlockKind::Node), None) => {}
            (_, None) => found.extend(data_block(&block, span, found.last())),
        }
    }
}

/// Returns the data block at `span`, behind the block `before`.
fn data_block(block: &Block, span: Span, before: Option<&FoundBlock>) -> Option<FoundBlock> {
    let (first, last) = ends_of(block)?;
    let after_first = key_after(&first);
    let continues = before.is_some_and(|before| {
        matches!(before.kind, BlockKind::Data(_))
            && before.span.end() == span.offset
            && before.keys.end.as_ref() == Some(&after_first)
    });
    let kind = BlockKind::Data(continues.then(|| Key::copy_from_slice(&first)));
    Some(FoundBlock { span, keys: KeyRange::inclusive(&first, &last), kind })
}
