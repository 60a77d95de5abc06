//! Tables that a merge keeps as they are, because no other input has keys there.
//!
//! [`KeptTables`] chooses them, in the simulation too. Here is what only a store knows.

use super::reserved::ReservedPlan;
use crate::version::Version;
use lsmith_storage::table::ReadTable;
use lsmith_tree::{KeptTables, KeyRange, LevelId, Outcome, SeqNo, Table};

impl ReservedPlan {
    /// Returns the tables that the merge keeps, if its store `keeps` tables. The inputs are in
    /// `version`.
    pub(crate) fn tables_kept(&self, keeps: bool, version: &Version) -> KeptTables {
        // Operators, filters and expiry change what merges write. The tree does not know in which
        // tables there is something to change.
        let writes_as_it_is = self.forgets && self.keyspace.rules.for_merges().is_none();
        if !keeps || !self.may_keep || !writes_as_it_is || self.changes_codec(version) {
            return KeptTables::default();
        }
        // Entries have no sequence numbers once no reader needs them, and only such entries can be
        // the only ones of their keys for sure. Others are rewritten until then.
        let is_settled = |table: &Table| table.seq_max == SeqNo(0);
        KeptTables::of(&version.tree, &self.plan, &version.all_range_deletes(), is_settled)
    }

    /// Returns true if the output has another compression than an input.
    fn changes_codec(&self, version: &Version) -> bool {
        let compression = self.keyspace.state.lock().compression.clone();
        let output = compression.of_level(self.output_level(&version.tree));
        let mut inputs = self.plan.inputs.iter().filter_map(|input| version.tree.run(input.run));
        inputs.any(|(level, _)| match level {
            LevelId::Memory => false,
            LevelId::Disk(level) => compression.of_level(level) != output,
        })
    }
}

/// Adds the `kept` tables that start in `range` to `outcome`. They are in `version`.
pub(super) fn add_kept(
    kept: &KeptTables,
    range: &KeyRange,
    version: &Version,
    outcome: &mut Outcome,
) {
    let slices = kept.within(range);
    if slices.is_empty() {
        return;
    }
    let found = version.shown(|id| kept.has(id));
    for slice in slices {
        outcome.read += slice.size();
        outcome.reused += slice.size();
        if let Some((handle, _)) = found.get(&slice.table().id) {
            outcome.blocks.reused += handle.table().facts().data_blocks;
        }
    }
    KeptTables::join(slices, &mut outcome.slices);
}
