//! Tables that a merge keeps as they are, because no other input has keys there. [`KeptTables`] chooses
//! them, in the simulation too; here is what only a store knows.

use super::{Merger, ReservedPlan, output_level};
use crate::version::Version;
use lsmith_storage::table::ReadTable;
use lsmith_tree::{KeptTables, KeyRange, LevelId, Outcome, SeqNo, Table};

impl Merger {
    /// Returns the tables that the merge of `reserved` keeps. Its inputs are in `version`.
    pub(crate) fn kept(&self, reserved: &ReservedPlan, version: &Version) -> KeptTables {
        let may_keep = reserved.may_keep && self.context.options.keep_tables && reserved.forgets;
        // Operators, filters and expiry change what merges write. The tree does not know of which
        // tables they would change something.
        if !may_keep
            || reserved.keyspace.rules.for_merges().is_some()
            || changes_codec(reserved, version)
        {
            return KeptTables::default();
        }
        // Entries have no sequence numbers once no reader needs them, and only such entries can be
        // the only ones of their keys for sure. Others are rewritten until then.
        let is_settled = |table: &Table| table.seq_max == SeqNo(0);
        KeptTables::of(&version.tree, &reserved.plan, &version.all_range_deletes(), is_settled)
    }
}

/// Returns true if the output of `reserved` has another compression than an input.
fn changes_codec(reserved: &ReservedPlan, version: &Version) -> bool {
    let compression = reserved.keyspace.state.lock().compression.clone();
    let output = compression.of_level(output_level(&reserved.plan, &version.tree));
    let levels = reserved.plan.inputs.iter().filter_map(|input| version.tree.run(input.run));
    levels.into_iter().any(|(level, _)| match level {
        LevelId::Memory => false,
        LevelId::Disk(level) => compression.of_level(level) != output,
    })
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
