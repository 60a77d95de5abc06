//! Finds the leaf of a key: a tree of nodes with separators.

use super::arena::Arena;
use super::chunk::Chunks;
use super::leaf::Leaf;
use super::numbers::{KEYS_MAX, Numbers};
use crate::format::{common_prefix_bytes, key_prefix};
use crate::sync::RwLock;
use std::sync::Arc;

/// Leaves in key order. A thread locks a leaf only while it holds the index.
#[derive(Debug, Default)]
pub(super) struct Index {
    root: Node,
    /// The keys and values of all leaves.
    pub(super) arena: Arena,
}

#[derive(Debug)]
enum Node {
    Inner(Box<Inner>),
    Leaf(Box<RwLock<Leaf>>),
}

impl Default for Node {
    fn default() -> Node {
        Node::Leaf(Box::default())
    }
}

/// A node above other nodes.
#[derive(Debug, Default)]
struct Inner {
    /// The numbers of the separators.
    numbers: Numbers,
    /// Child `i` has the keys from separator `i - 1` up to, not including, separator `i`.
    separators: Vec<Box<[u8]>>,
    children: Vec<Node>,
}

/// A leaf, and the bounds of its keys.
pub(super) struct FoundLeaf<'a> {
    pub(super) leaf: &'a RwLock<Leaf>,
    /// At most all of its keys; empty for the first leaf.
    pub(super) lower: &'a [u8],
    /// Above all of its keys; `None` for the last leaf.
    pub(super) upper: Option<&'a [u8]>,
}

/// The first separator of the upper half of a split node, and that half.
type Half = (Box<[u8]>, Node);

impl Index {
    /// Returns an empty index whose arena takes its memory from `chunks`.
    pub(super) fn new(chunks: &Arc<Chunks>) -> Index {
        Index { root: Node::default(), arena: Arena::new(chunks) }
    }

    /// Returns the leaf that must hold `key` if the memtable has it.
    #[inline]
    pub(super) fn leaf(&self, key: &[u8]) -> &RwLock<Leaf> {
        let mut node = &self.root;
        loop {
            match node {
                Node::Leaf(leaf) => return leaf,
                Node::Inner(inner) => node = &inner.children[inner.child(key)],
            }
        }
    }

    /// Returns the leaf that must hold `key` if the memtable has it, with its bounds.
    pub(super) fn find(&self, key: &[u8]) -> FoundLeaf<'_> {
        self.descend(|inner| inner.child(key))
    }

    /// Returns the last leaf that can hold keys below `key`.
    pub(super) fn find_below(&self, key: &[u8]) -> FoundLeaf<'_> {
        self.descend(|inner| inner.child_below(key))
    }

    /// Returns the last leaf.
    pub(super) fn last(&self) -> FoundLeaf<'_> {
        self.descend(|inner| inner.separators.len())
    }

    fn descend(&self, choose: impl Fn(&Inner) -> usize) -> FoundLeaf<'_> {
        let mut node = &self.root;
        let mut lower = &[][..];
        let mut upper = None;
        loop {
            match node {
                Node::Leaf(leaf) => return FoundLeaf { leaf, lower, upper },
                Node::Inner(inner) => {
                    let child = choose(inner);
                    let separator = |index: usize| inner.separators.get(index).map(|key| &**key);
                    lower = child.checked_sub(1).and_then(separator).unwrap_or(lower);
                    upper = separator(child).or(upper);
                    node = &inner.children[child];
                }
            }
        }
    }

    /// Splits the leaf of `key` if it is full.
    pub(super) fn split(&mut self, key: &[u8]) {
        if let Some((separator, above)) = self.root.split(key, true, &self.arena) {
            let below = std::mem::take(&mut self.root);
            let mut inner = Inner::default();
            inner.children.push(below);
            inner.add(0, (separator, above));
            self.root = Node::Inner(Box::new(inner));
        }
    }
}

impl Node {
    /// Splits the leaf of `key` if it is full, and every full node above it. Returns the half that
    /// must be added behind this node. `last` is true if no node is behind this one.
    fn split(&mut self, key: &[u8], last: bool, arena: &Arena) -> Option<Half> {
        match self {
            Node::Leaf(leaf) => split_leaf(leaf.get_mut(), key, last, arena),
            Node::Inner(inner) => {
                let child = inner.child(key);
                let last = last && child == inner.separators.len();
                let half = inner.children[child].split(key, last, arena)?;
                inner.add(child, half);
                (inner.separators.len() == KEYS_MAX).then(|| inner.split())
            }
        }
    }
}

fn split_leaf(leaf: &mut Leaf, key: &[u8], last: bool, arena: &Arena) -> Option<Half> {
    if !leaf.is_full() {
        return None;
    }
    // Keys that come in ascending order leave full leaves behind.
    let ascends = last && leaf.find(key, arena).0 == leaf.len();
    let position = if ascends { leaf.len() - 1 } else { leaf.len() / 2 };
    let mut node = Box::<RwLock<Leaf>>::default();
    let above = node.get_mut();
    leaf.split_off(position, above, arena);
    let before = leaf.key(position - 1, arena);
    let first = above.key(0, arena);
    let separator = &first[..common_prefix_bytes(&before, &first) + 1];
    Some((separator.into(), Node::Leaf(node)))
}

impl Inner {
    /// Returns the child that has `key`.
    #[inline]
    fn child(&self, key: &[u8]) -> usize {
        let ties = self.numbers.ties(key);
        let start = ties.start;
        start + self.separators[ties].partition_point(|separator| **separator <= *key)
    }

    /// Returns the last child that can have keys below `key`.
    fn child_below(&self, key: &[u8]) -> usize {
        let ties = self.numbers.ties(key);
        let start = ties.start;
        start + self.separators[ties].partition_point(|separator| **separator < *key)
    }

    /// Adds `above` behind child `child`.
    fn add(&mut self, child: usize, (separator, above): Half) {
        let numbered = self.numbers.insert(child, &separator);
        self.separators.insert(child, separator);
        self.children.insert(child + 1, above);
        if !numbered {
            self.renumber();
        }
    }

    /// Splits off the upper half.
    fn split(&mut self) -> Half {
        let middle = self.separators.len() / 2;
        let mut above = Inner {
            numbers: Numbers::default(),
            separators: self.separators.split_off(middle + 1),
            children: self.children.split_off(middle + 1),
        };
        let separator = self.separators.pop().expect("the middle one is the last now");
        self.renumber();
        above.renumber();
        (separator, Node::Inner(Box::new(above)))
    }

    fn renumber(&mut self) {
        let (Some(first), Some(last)) = (self.separators.first(), self.separators.last()) else {
            return;
        };
        self.numbers.renumber((first, last), |skip| {
            self.separators.iter().map(move |separator| key_prefix(&separator[skip..]))
        });
    }
}
