//! Gives the new nodes of a batch their places in the file, from the leaves to the top.

use super::leaves::Leaf;
use super::reader::AppendTable;
use super::values::BatchFile;
use crate::cursor::EntryRef;
use crate::error::Result;
use crate::format::{
    Block, BlockBuilder, ChildRef, Damage, NODE_BYTES, NodeSum, Span, Trail, common_prefix_bytes,
};
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};

/// A node of the table after a batch.
#[derive(Debug)]
pub(super) enum Child {
    /// A node of the table before, with its separator.
    Kept(Vec<u8>, ChildRef),
    /// A new leaf.
    Leaf(Leaf),
    /// A new inner node, or several of them, or none.
    Inner(Vec<Child>),
}

/// Where the first or the last key of a part of the table is.
#[derive(Debug)]
pub(super) enum Edge {
    Key(Vec<u8>),
    /// In the node at this place of the table before, on this level.
    Kept(Span, u64),
}

/// A node that has its place.
#[derive(Debug)]
pub(super) struct Placed {
    separator: Vec<u8>,
    child: ChildRef,
    first: Edge,
    last: Edge,
    /// The child of an inner node that has only one.
    only: Option<Box<Placed>>,
}

/// The uppermost node of a table.
#[derive(Debug)]
pub(super) struct Top {
    pub(super) child: ChildRef,
    pub(super) levels: u64,
    pub(super) first: Edge,
    pub(super) last: Edge,
}

/// Writes all new nodes among `children`, which are on `level`, and below, and the nodes above
/// them. Returns the top of the table, or `None` for an empty table.
pub(super) fn write(
    file: &mut BatchFile,
    children: Vec<Child>,
    mut level: u64,
) -> Result<Option<Top>> {
    let mut placed = place(file, children, level)?;
    while placed.len() > 1 {
        level += 1;
        placed = pack(file, placed)?;
    }
    let Some(mut top) = placed.pop() else { return Ok(None) };
    while let Some(only) = top.only {
        top = *only;
        level -= 1;
    }
    Ok(Some(Top { child: top.child, levels: level + 1, first: top.first, last: top.last }))
}

fn place(file: &mut BatchFile, children: Vec<Child>, level: u64) -> Result<Vec<Placed>> {
    let mut placed = Vec::with_capacity(children.len());
    for child in children {
        match child {
            Child::Kept(separator, child) => placed.push(Placed {
                separator,
                child,
                first: Edge::Kept(child.node, level),
                last: Edge::Kept(child.node, level),
                only: None,
            }),
            Child::Leaf(leaf) => placed.push(place_leaf(file, leaf)?),
            Child::Inner(below) => {
                let below = place(file, below, level - 1)?;
                placed.extend(pack(file, below)?);
            }
        }
    }
    Ok(placed)
}

fn place_leaf(file: &mut BatchFile, leaf: Leaf) -> Result<Placed> {
    let Leaf { separator, payload, sum } = leaf;
    let payload = Bytes::from(payload);
    let [first, last] = ends(&Block::from_payload(payload.clone()).expect("it was just built"))
        .expect("it was just built");
    let node = file.part(payload.into())?;
    let child = ChildRef { node, sum };
    Ok(Placed { separator, child, first: Edge::Key(first), last: Edge::Key(last), only: None })
}

/// Writes inner nodes with `children`.
fn pack(file: &mut BatchFile, mut children: Vec<Placed>) -> Result<Vec<Placed>> {
    let mut packed = Vec::new();
    while !children.is_empty() {
        let (payload, count) = inner(&children);
        let rest = children.split_off(count);
        packed.push(parent(file, payload, children)?);
        children = rest;
    }
    Ok(packed)
}

/// Returns the node above `children`.
fn parent(file: &mut BatchFile, payload: Vec<u8>, mut children: Vec<Placed>) -> Result<Placed> {
    let mut sum = NodeSum::default();
    children.iter().for_each(|child| sum.add(child.child.sum));
    let child = ChildRef { node: file.part(payload)?, sum };
    let last = children.pop().expect("a node has a child");
    if children.is_empty() {
        let edge = |edge: &Edge| match edge {
            Edge::Key(key) => Edge::Key(key.clone()),
            Edge::Kept(span, level) => Edge::Kept(*span, *level),
        };
        let (first, end) = (edge(&last.first), edge(&last.last));
        let separator = last.separator.clone();
        return Ok(Placed { separator, child, first, last: end, only: Some(Box::new(last)) });
    }
    let first = children.swap_remove(0);
    Ok(Placed {
        separator: first.separator,
        child,
        first: first.first,
        last: last.last,
        only: None,
    })
}

/// Returns the payload of a node with the first of `children`, and their count: as many as fit,
/// but at least two. If what is left would make a small node, both get about half.
fn inner(children: &[Placed]) -> (Vec<u8>, usize) {
    let (payload, count) = inner_within(children, children.len());
    let left = children.len() - count;
    if left > 0 && left < count / 2 {
        return inner_within(children, children.len().div_ceil(2));
    }
    (payload, count)
}

fn inner_within(children: &[Placed], count_max: usize) -> (Vec<u8>, usize) {
    let mut builder = BlockBuilder::default();
    let mut payload = Vec::new();
    let mut reference = Vec::new();
    let mut last: &[u8] = &[];
    let mut count = 0;
    for Placed { separator, child, .. } in &children[..count_max] {
        reference.clear();
        child.put(&mut reference);
        let shared = common_prefix_bytes(last, separator);
        let bytes = builder.bytes_with(&payload, shared, separator.len() + reference.len());
        if count >= 2 && bytes > NODE_BYTES {
            break;
        }
        let entry =
            EntryRef { key: separator, seq: SeqNo(0), kind: EntryKind::Put, value: &reference };
        builder.add(&mut payload, shared, &entry);
        last = separator;
        count += 1;
    }
    builder.finish_payload(&mut payload);
    (payload, count)
}

/// Returns the first and the last key of a leaf.
fn ends(leaf: &Block) -> std::result::Result<[Vec<u8>; 2], Damage> {
    let mut first = Vec::new();
    leaf.step(&leaf.slot(0)?, &mut first)?;
    let mut last = Vec::new();
    leaf.slot_ending(leaf.entries_end(), &mut last, &mut Trail::default())?;
    Ok([first, last])
}

impl AppendTable {
    /// Returns the key at `edge`: the last of the table's part if `is_last`, or else the first.
    pub(super) fn edge_key(&self, edge: Edge, is_last: bool) -> Result<Vec<u8>> {
        let (mut span, level) = match edge {
            Edge::Key(key) => return Ok(key),
            Edge::Kept(span, level) => (span, level),
        };
        for _ in 0..level {
            let children = self.children(span)?;
            let child = if is_last { children.last() } else { children.first() };
            span = child.map_or(span, |(_, child)| child.node);
        }
        let found = ends(&self.fresh_block(span)?);
        let [first, last] = found.map_err(|damage| self.file.damaged(damage, span.offset))?;
        Ok(if is_last { last } else { first })
    }
}
