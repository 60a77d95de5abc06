//! What merges of consecutive runs write.

use super::entry::KeyedEntry;
use super::{KeyedContent, KeyedSim};
use lsmith_model::optimum::{Unions, UnionsBuilder};
use lsmith_tree::{EntryKind, Tree};

impl KeyedSim {
    /// Returns the sizes of all merges of consecutive runs, in each of `ranges` key ranges with
    /// equally many keys; `None` if they do not depend on the newest version of each key alone.
    pub(crate) fn unions(&self, ranges: usize) -> Option<Vec<Unions>> {
        let (tree, content) = (self.tree(), self.content());
        let kinds = kinds(tree, content);
        let has = |kind: EntryKind| kinds >> kind as u8 & 1 == 1;
        let cancels = has(EntryKind::Insert) && has(EntryKind::Remove);
        if cancels || has(EntryKind::Combine) || has(EntryKind::Expiring) {
            return None;
        }
        let runs = tree.disk_run_count();
        let entries = tree.runs().flat_map(|(_, run)| content.entries(run));
        let ranks = entries.map(|entry| entry.rank() as usize + 1).max().unwrap_or(0);
        let mut unions = vec![UnionsBuilder::new(runs); ranges];
        // One more than the flush that has the next newer version of each key; 0 if none has.
        let mut newer = vec![0_u32; ranks];
        // Newest run first.
        for (flush, (_, run)) in (0..runs).rev().zip(tree.runs()) {
            for entry in content.entries(run) {
                let rank = entry.rank() as usize;
                let next = newer[rank].checked_sub(1).map(|next| next as usize);
                let range = &mut unions[rank * ranges / ranks];
                range.add(flush, next, entry.bytes(), entry.is_tombstone());
                newer[rank] = flush as u32 + 1;
            }
        }
        Some(unions.into_iter().map(UnionsBuilder::finish).collect())
    }
}

/// Returns the kinds of all entries of `tree`, a bit for each.
fn kinds(tree: &Tree, content: &KeyedContent) -> u32 {
    let entries = tree.runs().flat_map(|(_, run)| content.entries(run));
    entries.fold(0, |kinds, entry| kinds | 1 << entry.kind() as u8)
}
