//! Which append tables are rewritten because too much of their files is dead.

use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{Run, Slice, TreeView};

/// How much may be dead.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum DeadLimit {
    /// Of each append table: bytes of its file over its live bytes. One number for each level,
    /// level 0 first; the last one holds for all deeper levels too.
    Each(Vec<f64>),
    /// Of all append tables together: bytes of their files over their live bytes.
    All(f64),
}

impl DeadLimit {
    pub(super) fn read(params: &Params<'_>) -> Result<DeadLimit, SpecError> {
        if let Some(space) = params.real_if_given("space", 1.0..=1000.0)? {
            if params.has("c") {
                let what = "c and space limit the same: expected one of them";
                return Err(SpecError::conflict(what));
            }
            if space <= 1.0 {
                let what = "space = 1 is out of range: expected more than 1";
                return Err(SpecError::conflict(what));
            }
            return Ok(DeadLimit::All(space));
        }
        let Some(list) = params.text("c").filter(|text| text.contains('/')) else {
            return Ok(DeadLimit::Each(vec![params.real("c", 3.0, 1.0..=1000.0)?]));
        };
        let limit = |text: &str| {
            let limit = text.parse::<f64>().ok().filter(|c| (1.0..=1000.0).contains(c));
            limit.ok_or_else(|| {
                let expected = "expected a number from 1 to 1000 for each level, as 10/5/3";
                SpecError::conflict(format!("c = {list}: {text} is out of range: {expected}"))
            })
        };
        Ok(DeadLimit::Each(list.split('/').map(limit).collect::<Result<_, _>>()?))
    }

    pub(super) fn print(&self, spec: Spec) -> Spec {
        match self {
            DeadLimit::Each(levels) => {
                let levels: Vec<String> = levels.iter().map(f64::to_string).collect();
                spec.with("c", levels.join("/"))
            }
            DeadLimit::All(space) => spec.with("space", space),
        }
    }

    /// Returns how many times its live bytes the file of an append table of `level` may have.
    fn of_level(levels: &[f64], level: usize) -> f64 {
        levels.get(level).or(levels.last()).copied().unwrap_or(3.0)
    }

    /// Returns the dead bytes over the limit.
    pub(super) fn excess(&self, view: &TreeView) -> f64 {
        match self {
            DeadLimit::Each(levels) => {
                let over = |(level, slice): (usize, &Slice)| {
                    over(slice, DeadLimit::of_level(levels, level)).max(0.0)
                };
                slices(view).map(|(level, _, slice)| over((level, slice))).sum()
            }
            DeadLimit::All(space) => over_all(view, *space).max(0.0),
        }
    }

    /// Returns the append table that must be rewritten next. `is_free` says which append tables no
    /// plan takes.
    pub(super) fn due<'a>(
        &self,
        view: &'a TreeView,
        is_free: impl Fn(&Run, &Slice) -> bool,
    ) -> Option<(&'a Run, &'a Slice)> {
        match self {
            DeadLimit::Each(levels) => {
                let is_due =
                    |level, slice: &Slice| over(slice, DeadLimit::of_level(levels, level)) > 0.0;
                let mut due = slices(view).filter(|(level, _, slice)| is_due(*level, slice));
                due.find(|(_, run, slice)| is_free(run, slice)).map(|(_, run, slice)| (run, slice))
            }
            DeadLimit::All(space) => due_of_all(view, *space, is_free),
        }
    }
}

/// Returns the dead bytes of an append table over what a file of `c` times its live bytes has.
fn over(slice: &Slice, c: f64) -> f64 {
    slice.dead_bytes() as f64 - (c - 1.0) * slice.bytes_with_nodes() as f64
}

/// Returns the dead bytes of all append tables over what files of `space` times their live bytes
/// have.
fn over_all(view: &TreeView, space: f64) -> f64 {
    let dead = view.tree.disk_runs().map(|run| run.dead_bytes()).fold(0, u64::saturating_add);
    let nodes = slices(view).map(|(_, _, slice)| slice.bytes_with_nodes() - slice.size().bytes);
    let live = nodes.fold(view.tree.disk_bytes(), u64::saturating_add);
    dead as f64 - (space - 1.0) * live as f64
}

/// Returns the append tables of all levels, level 0 first.
fn slices(view: &TreeView) -> impl Iterator<Item = (usize, &Run, &Slice)> {
    let levels = view.tree.levels().iter().enumerate();
    let runs = levels.flat_map(|(at, level)| level.runs().iter().map(move |run| (at, &**run)));
    let slices = runs.flat_map(|(at, run)| run.slices().iter().map(move |slice| (at, run, slice)));
    slices.filter(|(_, _, slice)| slice.is_append())
}

/// Returns the append table that is rewritten next, so that in the end all append tables together
/// have at most `space` times their live bytes.
///
/// A rewrite of an append table of `l` live bytes costs `l`. If the append table gets `r` dead
/// bytes per flush and is rewritten at `x l` dead bytes, it costs `r / x` per flush and holds `x l
/// / 2` dead bytes on average. For a given total of dead bytes, the cost is least if `x² l / r` is
/// the same for all append tables. As `x l / r` is the age of the file, this is the share of dead
/// bytes times the age. The append table with the greatest value comes first. Append tables that
/// are seldom written then hold few dead bytes, and append tables that are often written hold many.
fn due_of_all(
    view: &TreeView,
    space: f64,
    is_free: impl Fn(&Run, &Slice) -> bool,
) -> Option<(&Run, &Slice)> {
    let mut excess = over_all(view, space);
    if excess <= 0.0 {
        return None;
    }
    let score = |slice: &Slice| {
        let age = view.tree.flushes().saturating_sub(slice.table().born).max(1);
        slice.dead_bytes() as f64 / slice.bytes_with_nodes() as f64 * age as f64
    };
    let all = slices(view).filter(|(_, _, slice)| slice.dead_bytes() > 0);
    let mut all: Vec<_> = all.map(|(_, run, slice)| (score(slice), run, slice)).collect();
    all.sort_by(|(left, ..), (right, ..)| right.total_cmp(left));
    for (_, run, slice) in all {
        if is_free(run, slice) {
            return Some((run, slice));
        }
        // What another plan takes will be gone.
        excess -= slice.dead_bytes() as f64;
        if excess <= 0.0 {
            break;
        }
    }
    None
}
