//! Finds out which runs a policy merges after each flush.

use lsmith_model::formulas::RunMerge;
use lsmith_policy::MergePolicy;
use lsmith_sim::{Event, FluidWorkload, SimError, simulate_fluid};
use lsmith_tree::{MergePlan, Mode, Tree};
use std::sync::Arc;

/// Returns the merges after each flush that `policy` plans on runs of expected sizes. `None` for
/// policies that merge parts of runs.
///
/// Formulas may not run a policy. They get these merges and compute the sizes themselves.
pub(crate) fn schedule(
    policy: &Arc<dyn MergePolicy>,
    workload: &FluidWorkload,
    memtable_bytes: u64,
) -> Result<Option<Vec<Vec<RunMerge>>>, SimError> {
    let mut flushes: Vec<Vec<RunMerge>> = Vec::new();
    let mut is_whole = true;
    let mut observe = |event: Event<'_>| match event {
        Event::Sealed { .. } => flushes.push(Vec::new()),
        Event::Merge { tree, plan, .. } => match (neighbours(tree, plan), flushes.last_mut()) {
            (Some(merge), Some(merges)) if plan.mode == Mode::Merge => merges.push(merge),
            (Some(_), _) => {}
            (None, _) => is_whole = false,
        },
        Event::Rest { .. } | Event::Flushed { .. } => {}
    };
    simulate_fluid(policy, workload, memtable_bytes, &mut observe)?;
    Ok(is_whole.then_some(flushes))
}

/// Returns the inputs of a plan if they are whole runs that are adjacent in age.
fn neighbours(tree: &Tree, plan: &MergePlan) -> Option<RunMerge> {
    let stack = || tree.memory().runs().iter().chain(tree.disk_runs());
    let place = |input: &lsmith_tree::Input| {
        stack().position(|run| run.id() == input.run && run.lies_within(&input.range))
    };
    let mut places: Vec<usize> = plan.inputs.iter().filter_map(place).collect();
    places.sort_unstable();
    let first = *places.first()?;
    let last = *places.last()?;
    let runs = places.len();
    let follow = last - first + 1 == runs && runs == plan.inputs.len();
    follow.then_some(RunMerge { newer: first, runs })
}
