//! Limits that a plan must not break: on space, and on the age of deletes.

use crate::{ParamInfo, Stack};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{LevelId, Run, TreeView};

/// What holds after each flush, whatever it costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Limits {
    /// The most bytes on storage per live byte.
    space: Option<f64>,
    /// The most bytes that may be flushed after a delete before what it hides is gone.
    deletes_within: Option<u64>,
}

impl Limits {
    pub(super) const SPACE: ParamInfo = ParamInfo {
        name: "space",
        default: "none",
        meaning: "most bytes on storage per live byte, 1.01 to 100: runs above the oldest have at \
                  most what exceeds 1 of it",
    };
    pub(super) const DELETES_WITHIN: ParamInfo = ParamInfo {
        name: "deletes_within",
        default: "none",
        meaning: "most bytes that are flushed after a delete before what it hides is merged away",
    };

    /// Reads both parameters. `is_bounded` says that there is a largest merge.
    ///
    /// # Errors
    /// Fails if a value is out of range, or if a largest merge stands in the way.
    pub(super) fn read(params: &Params<'_>, is_bounded: bool) -> Result<Limits, SpecError> {
        let space = params.real_if_given("space", 1.01..=100.0)?;
        let deletes_within = params.bytes_if_given("deletes_within", 1..=u64::MAX)?;
        if is_bounded && (space.is_some() || deletes_within.is_some()) {
            let message = "space and deletes_within need merges of all runs, which `largest` does \
                           not allow: leave out one of them";
            return Err(SpecError::conflict(message));
        }
        Ok(Limits { space, deletes_within })
    }

    /// Returns `spec` with the limits that are set.
    pub(super) fn write(self, spec: Spec) -> Spec {
        let spec = match self.space {
            Some(space) => spec.with("space", space),
            None => spec,
        };
        match self.deletes_within {
            Some(bytes) => spec.with("deletes_within", format_bytes(bytes)),
            None => spec,
        }
    }

    /// Returns true if plans look at how old tombstones are.
    pub(super) fn needs_tombstone_ages(self) -> bool {
        self.deletes_within.is_some()
    }

    /// Returns the newest run that has to be merged with all older ones, and why.
    pub(super) fn reached(self, view: &TreeView, stack: &Stack) -> Option<(usize, &'static str)> {
        let (oldest, newer) = stack.runs().split_last()?;
        if newer.is_empty() {
            return None;
        }
        let bytes: f64 = newer.iter().map(|run| run.bytes as f64).sum();
        if self.space.is_some_and(|space| bytes > (space - 1.0) * oldest.bytes as f64) {
            return Some((0, "the newest {} of {} runs reach the limit on space"));
        }
        let within = self.deletes_within? as f64;
        let unit = stack.mean_flush_bytes()?;
        let is_due = |run: &Run| {
            let oldest = oldest_tombstone(run);
            let age = |flush: u64| stack.flushes().saturating_sub(flush) as f64 + 1.0;
            oldest.is_some_and(|flush| age(flush) * unit > within)
        };
        // Deletes in memory have just come, and not all interpreters count them.
        let is_due = |id| match view.tree.run(id) {
            Some((LevelId::Disk(_), run)) => is_due(run),
            _ => false,
        };
        let due = newer.iter().position(|run| is_due(run.id))?;
        Some((due, "{} of {} runs have the oldest deletes that are still to be done"))
    }
}

/// Returns the flush that brought the oldest tombstone of `run`, if it has any. If that is not
/// known, it is the first.
fn oldest_tombstone(run: &Run) -> Option<u64> {
    let slices = run.slices().iter().filter(|slice| slice.size().tombstones > 0);
    slices.map(|slice| slice.table().oldest_tombstone.max(1)).min()
}

#[cfg(test)]
mod tests {
    use crate::Registry;
    use lsmith_tree::TreeView;

    /// Returns the plan of `policy` for level 0 as in `runs`, after 30 flushes of a megabyte.
    fn plan(policy: &str, runs: &str) -> Option<String> {
        let head = "view memtable 1MB\ntree runs 20 tables 20 flushes 30 flushed 30MB";
        let view: TreeView = format!("{head}\nnote merged_at = 30\nL0 {runs}").parse().unwrap();
        Registry::builtin().build(policy).unwrap().next_merge(&view).map(|plan| plan.to_string())
    }

    #[test]
    fn runs_above_the_oldest_have_at_most_what_the_limit_on_space_leaves() {
        let runs = |newest: u64| format!("r3[t3:a..z {newest}kB] r2[t2:a..z 2MB] r1[t1:a..z 10MB]");
        let policy = "auto(space=1.3, price=0.001)";
        assert_eq!(plan(policy, &runs(1000)), None);
        let merge = plan(policy, &runs(1001)).expect("a byte too many");
        assert!(merge.starts_with("merge r3 r2 r1 "), "{merge}");
        assert_eq!(plan(policy, "r1[t1:a..z 10MB]"), None);
    }

    #[test]
    fn runs_with_due_deletes_are_merged_with_all_that_is_older() {
        let runs = |flush: u64| {
            format!(
                "r4[t4:a..z 1MB 9e 1d deleted 29] r3[t3:a..z 1MB 9e 1d deleted {flush}] \
                 r2[t2:a..z 2MB] r1[t1:a..z 9MB 9e 1d deleted 1]"
            )
        };
        let policy = "auto(deletes_within=10MB, price=0.001)";
        // The next flush is the tenth after flush 21.
        assert_eq!(plan(policy, &runs(21)), None);
        let merge = plan(policy, &runs(20)).expect("it must be gone with the next flush");
        assert!(merge.starts_with("merge r3 r2 r1 "), "{merge}");
        // Of what is not known everything may be true.
        assert!(plan(policy, &runs(1).replace(" deleted 1]", "]")).is_some());
        // The oldest run has nothing below it.
        assert_eq!(plan(policy, "r1[t1:a..z 9MB 9e 1d deleted 1]"), None);
    }

    #[test]
    fn limits_that_a_largest_merge_breaks_are_refused() {
        for spec in ["auto(space=1.3, largest=1GB)", "auto(deletes_within=1GB, largest=1GB)"] {
            let error = Registry::builtin().build(spec).unwrap_err().to_string();
            assert!(error.contains("largest") && error.contains("leave out"), "{error}");
        }
        let error = Registry::builtin().build("auto(get=5)").unwrap_err().to_string();
        assert!(error.contains("price=reads"), "{error}");
    }
}
