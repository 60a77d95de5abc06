//! Knots: runs whose order says nothing about age. They must be merged together or not at all.

use lsmith_tree::{Level, MergePlan, Place, Reason, Run, TreeView, check_plan};
use std::sync::Arc;

/// Returns `None` for a tree without knots. For a tree with a knot, returns the plan that merges
/// its members, and all runs between them, into one run; or `Some(None)` if that plan must wait for
/// another one.
///
/// Knots are rare: they come with tables that were written elsewhere.
/// [`MergePolicy::next_merge`](crate::MergePolicy::next_merge) unties them, so that policies never
/// see one.
pub fn untie(view: &TreeView) -> Option<Option<MergePlan>> {
    let is_tied = |run: &Arc<Run>| run.knot().is_some();
    if !view.tree.memory().has_knots() && !view.tree.levels().iter().any(Level::has_knots) {
        return None;
    }
    let runs: Vec<_> = view.tree.runs().map(|(_, run)| run).collect();
    let first = runs.iter().position(|run| is_tied(run))?;
    let mut last = first;
    let mut at = first;
    // A second knot within the first can reach further.
    while at <= last {
        let knot = runs[at].knot();
        if knot.is_some() {
            last = runs.iter().rposition(|run| run.knot() == knot).unwrap_or(last).max(last);
        }
        at += 1;
    }
    let tied = &runs[first..=last];
    let reason = Reason::new("{} runs are tied in a knot", [tied.len() as u64, 0, 0]);
    let plan = MergePlan::merge(tied.iter().map(|run| run.id()), Place::Oldest, reason);
    Some(check_plan(view, &plan).is_ok().then_some(plan))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn untied(text: &str) -> Option<Option<String>> {
        let view: TreeView = text.parse().expect(text);
        untie(&view).map(|plan| plan.map(|plan| plan.to_string()))
    }

    #[test]
    fn a_tree_without_knots_is_left_alone() {
        assert_eq!(untied("tree\nL0 r2[t2:a..z 1MB] r1[t1:a..z 1MB]"), None);
    }

    #[test]
    fn all_between_the_ends_of_a_knot_is_merged() {
        let text = "tree
L0 r5[t5:a..z 1MB] r4~k1[t4:a..c 1MB] r3~k2[t3:a..z 1MB] r2~k1[t2:x..z 1MB]
L1 r1~k2[t1:a..z 1MB]
L2 r0[t0:a..z 1MB]";
        let expected = "merge r4 r3 r2 r1 over .. in place # 4 runs are tied in a knot";
        assert_eq!(untied(text), Some(Some(expected.to_string())));
        let held = format!("{text}\nblocked merge r1 r0 over .. in place");
        assert_eq!(untied(&held), Some(None));
    }
}
