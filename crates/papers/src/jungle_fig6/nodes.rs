//! The bytes of nodes that merges of a simulation write.

use lsmith_sim::Event;
use lsmith_tree::{Mode, node_bytes};
use std::collections::BTreeMap;

/// What is known of a file: the bytes of entries and dead nodes, and the entries of its root.
#[derive(Clone, Copy, Default)]
struct Known {
    bytes: u64,
    entries: u64,
}

/// Counts nodes as the policy does.
#[derive(Default)]
pub(super) struct NodeMeter {
    files: BTreeMap<u64, Known>,
    written: i64,
}

impl NodeMeter {
    /// Counts what a merge writes. A file grows by the entries that are written and by the nodes
    /// that these replace. As many nodes are written again, and the
    /// additional nodes of the append table.
    pub(super) fn observe(&mut self, event: Event<'_>) {
        let Event::Merge { plan, edit, .. } = event else { return };
        if !plan.makes_append() || plan.mode != Mode::Merge {
            return;
        }
        let entries: u64 = edit.counters.iter().map(|(_, count)| count.bytes_written).sum();
        self.written -= entries as i64;
        for slice in edit.add.iter().flat_map(|addition| &addition.slices) {
            let bytes = slice.size().bytes + slice.dead_bytes();
            let now = Known { bytes, entries: slice.size().entries };
            let before = self.files.insert(slice.table().id.0, now);
            let nodes = |known: Known| (known.bytes + node_bytes(known.entries)) as i64;
            self.written += nodes(now) - before.map_or(0, nodes);
        }
    }

    /// Returns the bytes of nodes so far.
    pub(super) fn written(&self) -> u64 {
        self.written.max(0) as u64
    }
}
