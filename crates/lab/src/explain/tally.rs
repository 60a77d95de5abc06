//! Counts the merges of a tree by where they put their output, by size and by rule.

use lsmith_tree::{Causes, Counters, LevelId, MergePlan, PlanCauses, Tree, TreeEdit};
use std::collections::BTreeMap;

/// Where an output went, and what was newest in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Route {
    /// The level of the newest input.
    pub(super) from: LevelId,
    /// The level that received the output.
    pub(super) to: usize,
    /// The number of runs older than the output.
    pub(super) older_runs: usize,
    /// True if a memtable became a run of its own.
    pub(super) is_flush: bool,
}

/// What happened on one route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct RouteCounts {
    pub(super) merges: u64,
    pub(super) moves: u64,
    pub(super) causes: Causes,
}

impl RouteCounts {
    pub(super) fn add(&mut self, other: &RouteCounts) {
        self.merges += other.merges;
        self.moves += other.moves;
        self.causes.add(&other.causes);
    }
}

/// Merges, and the bytes that they wrote.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct MergeCount {
    pub(super) merges: u64,
    pub(super) bytes: u64,
}

impl MergeCount {
    fn add(&mut self, bytes: u64) {
        self.merges += 1;
        self.bytes += bytes;
    }
}

/// Why a tree's merges wrote what they wrote, and how many runs lookups met.
///
/// The caller reports each plan before its edit is applied, and each rest: the events of a
/// simulation, or of a store in lockstep. Equal plans with equal outcomes give equal tallies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub(super) routes: BTreeMap<Route, RouteCounts>,
    /// Plans that wrote something, by the power of 2 that their bytes do not exceed.
    pub(super) sizes: BTreeMap<u32, MergeCount>,
    /// Plans by the [rule](lsmith_tree::Reason::rule) that proposed them.
    pub(super) rules: BTreeMap<String, MergeCount>,
    pub(super) entries_written: u64,
    pub(super) tombstones_written: u64,
    pub(super) rests: u64,
    /// Runs at rest by level on storage, summed over rests.
    pub(super) runs: Vec<u64>,
}

impl Tally {
    /// Returns a tally of nothing.
    #[must_use]
    pub fn new() -> Tally {
        Tally::default()
    }

    /// Reports that `edit`, the outcome of `plan`, is about to be applied to `tree`.
    ///
    /// # Panics
    /// If the plan names runs that the tree does not have: it was not made for this tree.
    pub fn merge(&mut self, tree: &Tree, plan: &MergePlan, edit: &TreeEdit) {
        let found = PlanCauses::of(tree, plan, edit).expect("a plan of this tree");
        let mut counts = Counters::default();
        edit.counters.iter().for_each(|(_, counters)| counts.add(counters));
        let PlanCauses { from, to, older_runs, causes, tombstones } = found;
        let route = Route { from, to, older_runs, is_flush: counts.flushes > 0 };
        let moves = counts.moves;
        let merges = 1 - moves.min(1);
        self.routes.entry(route).or_default().add(&RouteCounts { merges, moves, causes });
        let bytes = counts.bytes_written;
        if bytes > 0 {
            self.sizes.entry(power_of_2(bytes)).or_default().add(bytes);
        }
        self.rules.entry(plan.reason.rule().to_owned()).or_default().add(bytes);
        self.entries_written += counts.entries_written;
        self.tombstones_written += tombstones;
    }

    /// Reports that `tree` is at rest.
    pub fn rest(&mut self, tree: &Tree) {
        self.rests += 1;
        let levels = tree.levels();
        self.runs.resize(self.runs.len().max(levels.len()), 0);
        for (sum, level) in self.runs.iter_mut().zip(levels) {
            *sum += level.runs().len() as u64;
        }
    }

    /// Returns the bytes written, by cause.
    #[must_use]
    pub fn causes(&self) -> Causes {
        let mut causes = Causes::default();
        self.routes.values().for_each(|counts| causes.add(&counts.causes));
        causes
    }

    /// Returns true if some output went below level 0. A policy that never does that reads its tree
    /// as one stack of runs.
    pub(super) fn has_levels(&self) -> bool {
        self.routes.keys().any(|route| route.to > 0)
    }
}

/// Returns the least `n` for which `bytes` is not more than 2 to the power of `n`.
fn power_of_2(bytes: u64) -> u32 {
    bytes.saturating_sub(1).checked_ilog2().map_or(0, |log| log + 1)
}

#[cfg(test)]
mod tests {
    use super::power_of_2;

    #[test]
    fn sizes_are_bounded_by_powers_of_2() {
        for (bytes, power) in [(1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1 << 20, 20)] {
            assert_eq!(power_of_2(bytes), power, "{bytes}");
        }
        assert_eq!(power_of_2((1 << 20) + 1), 21);
    }
}
