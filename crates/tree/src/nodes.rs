//! The nodes of append tables, in logical bytes.
//!
//! An append-only file has a leaf for each so many entries, and nodes above. A batch writes anew
//! each leaf in which it has a key, and what lies above. What it replaces is dead.
//!
//! Stores and simulations must count the same bytes, and only a store has nodes. So all count
//! nodes that every entry makes alike: a leaf for each 128 entries in key order, of 24 bytes each.
//! A real leaf has fewer entries if their keys are long.

/// Bytes of an entry in a leaf: what is left of its key, and the place of its value.
const REFERENCE_BYTES: u64 = 24;

/// Bytes of a leaf in the node above, and the leaves that it has.
const CHILD_BYTES: u64 = 24;
const CHILDREN: u64 = 128;

/// Bytes of a root, with its footer.
const ROOT_BYTES: u64 = 192;

/// Returns the logical bytes of the nodes of a tree of `entries` entries that was just written.
#[must_use]
pub fn node_bytes(entries: u64) -> u64 {
    let leaves = entries.div_ceil(ReplacedNodes::LEAF_ENTRIES);
    let bytes = entries.saturating_mul(REFERENCE_BYTES);
    bytes.saturating_add(above(leaves)).saturating_add(ROOT_BYTES)
}

/// Returns the bytes of the nodes above `leaves` leaves.
fn above(leaves: u64) -> u64 {
    if leaves > 1 { leaves.saturating_mul(CHILD_BYTES) } else { 0 }
}

/// Counts the leaves of a tree that a batch replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReplacedNodes {
    /// Entries of the tree before the batch.
    entries: u64,
    leaves: u64,
    last: Option<u64>,
}

impl ReplacedNodes {
    /// Entries of a leaf.
    pub const LEAF_ENTRIES: u64 = 128;

    /// Returns the count for a tree that has `entries` entries before the batch.
    #[must_use]
    pub fn of(entries: u64) -> ReplacedNodes {
        ReplacedNodes { entries, ..ReplacedNodes::default() }
    }

    /// Returns the count for a tree of `entries` entries, with `leaves` replaced leaves. At least
    /// one is replaced, and at most all.
    #[must_use]
    pub fn expected(entries: u64, leaves: f64) -> ReplacedNodes {
        let all = entries.div_ceil(ReplacedNodes::LEAF_ENTRIES);
        // The cast saturates.
        let leaves = (leaves.round() as u64).clamp(1, all.max(1)).min(all);
        ReplacedNodes { entries, leaves, last: None }
    }

    /// Counts the leaf for a key of the batch, behind `below` entries of the tree. Keys come in
    /// order.
    #[inline]
    pub fn add(&mut self, below: u64) {
        let Some(greatest) = self.entries.checked_sub(1) else { return };
        let leaf = below.min(greatest) / ReplacedNodes::LEAF_ENTRIES;
        if self.last != Some(leaf) {
            self.leaves += 1;
            self.last = Some(leaf);
        }
    }

    /// Returns the logical bytes of the nodes that are dead after the batch: those leaves, the
    /// nodes above them, and the root.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        if self.leaves == 0 {
            return 0;
        }
        let leaf_bytes = self.leaves.saturating_mul(ReplacedNodes::LEAF_ENTRIES).min(self.entries);
        let all = self.entries.div_ceil(ReplacedNodes::LEAF_ENTRIES);
        let beside = all.min(self.leaves.saturating_mul(CHILDREN));
        leaf_bytes * REFERENCE_BYTES + above(beside) + ROOT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_leaf_counts_once_for_all_its_keys() {
        let mut replaced = ReplacedNodes::of(1000);
        assert_eq!(replaced.bytes(), 0);
        for below in [0, 5, 127, 128, 300, 383, 1000, 1000] {
            replaced.add(below);
        }
        // Leaves 0, 1, 2 and 7, the last, which has the keys behind all entries.
        assert_eq!(replaced.leaves, 4);
        assert_eq!(replaced.bytes(), 4 * 128 * 24 + 8 * 24 + 192);
        assert_eq!(ReplacedNodes::expected(1000, 4.2), ReplacedNodes { last: None, ..replaced });
    }

    #[test]
    fn a_batch_that_has_a_key_in_each_leaf_replaces_all_nodes() {
        for entries in [1, 127, 128, 129, 5000, 100_000] {
            let mut replaced = ReplacedNodes::of(entries);
            (0..entries).step_by(64).for_each(|below| replaced.add(below));
            assert_eq!(replaced.bytes(), node_bytes(entries), "{entries}");
            assert_eq!(ReplacedNodes::expected(entries, 1e30).bytes(), node_bytes(entries));
        }
    }

    #[test]
    fn an_empty_tree_has_nothing_to_replace() {
        let mut replaced = ReplacedNodes::of(0);
        replaced.add(0);
        assert_eq!((replaced.bytes(), ReplacedNodes::expected(0, 3.0).bytes()), (0, 0));
    }
}
