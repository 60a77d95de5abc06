//! Plans of triangles: where the output goes, and how much one plan takes.

use super::Triangular;
use super::batch::Batch;
use super::closure::Triangle;
use super::score::Score;
use lsmith_tree::{
    Cuts, Key, KeyRange, LevelId, MergePlan, Mode, Overlap, Place, Reason, ReservationState,
    TreeView,
};

/// Which runs of level 0 a triangle starts from, and down to which level it reaches, for a triangle
/// that may be merged piece by piece.
pub(super) struct InPieces {
    pub(super) batch: Batch,
    pub(super) down_to: usize,
}

/// The most tables' worth of bytes that a table of an output overlaps in the next level (LevelDB's
/// limit).
const OVERLAP_TABLES_MAX: u64 = 10;

impl Triangular {
    /// Returns the plan that merges `triangle` into its last level, or further down as long as
    /// nothing is met there. Only the first piece of a triangle that exceeds the limits is taken.
    /// `in_pieces` then notes where to go on.
    ///
    /// `None` if the output would stay in the top level, or if another plan is about to make the
    /// run that takes it in.
    pub(super) fn plan_of(
        self,
        view: &TreeView,
        triangle: &Triangle<'_>,
        in_pieces: Option<InPieces>,
        reason: Reason,
    ) -> Option<MergePlan> {
        let top = &triangle.layers[0];
        let piece = triangle.first_piece(self.max_bytes, self.max_files);
        let all = &triangle.last().range;
        let hull = piece.as_ref().unwrap_or(all);
        let level = sunk(view, hull, triangle.last().level, Triangular::deepest(view));
        if level == top.level {
            return None;
        }
        let inputs = match &piece {
            Some(piece) => triangle.inputs_within(piece),
            None => triangle.inputs(),
        };
        let memo = in_pieces.map(|InPieces { batch, down_to }| {
            let end = piece.as_ref().map_or(&top.range.end, |piece| &piece.end).as_ref();
            let end = end.filter(|end| batch.has_more(view, end));
            let is_within = |end: &&Key| top.range.end.as_ref().is_none_or(|last| *end < last);
            batch.notes(view, end, end.filter(is_within).map(|_| down_to))
        });
        Some(MergePlan {
            place: place(view, level)?,
            mode: if inputs.len() == 1 { Mode::Move } else { Mode::Merge },
            inputs,
            cut_bytes: Some(view.memtable_bytes.max(1)),
            cuts: match self.score {
                Score::Ratio => Cuts::default(),
                Score::Bytes => cuts(view, hull, level),
            },
            reuse: None,
            memo: memo.unwrap_or_default(),
            reason,
        })
    }
}

/// Returns the deepest level from `level` on, at most `deepest`, that `range` reaches without
/// meeting anything below `level`.
pub(super) fn sunk(view: &TreeView, range: &KeyRange, level: usize, deepest: usize) -> usize {
    let meets = |level: &usize| {
        let runs = view.tree.runs_at(LevelId::Disk(*level));
        runs.iter().any(|run| !run.overlapping(range).is_empty())
    };
    (level + 1..=deepest).find(meets).map_or(deepest.max(level), |met| met - 1)
}

/// Returns the place of an output in `level`: its oldest run, or a new run if it has none. `None`
/// if a plan under way makes that run.
pub(super) fn place(view: &TreeView, level: usize) -> Option<Place> {
    if let Some(oldest) = view.tree.runs_at(LevelId::Disk(level)).last() {
        return Some(Place::Into(oldest.id()));
    }
    let makes_it = |reservation: &lsmith_tree::Reservation| {
        reservation.state == ReservationState::UnderWay
            && reservation.plan.place == Place::NewRun(level)
    };
    (!view.reservations.iter().any(makes_it)).then_some(Place::NewRun(level))
}

/// Returns where an output in `level` is cut, so that none of its tables lies above too much of the
/// next level that has tables there: a triangle that starts from one table stays narrow. Triangles
/// of `score=ratio` start from all of level 0, and would only get more tables.
fn cuts(view: &TreeView, range: &KeyRange, level: usize) -> Cuts {
    let runs = view.tree.levels().iter().skip(level + 1).filter_map(|level| level.runs().last());
    let below = runs.into_iter().find(|run| !run.overlapping(range).is_empty());
    let bytes = OVERLAP_TABLES_MAX.saturating_mul(view.memtable_bytes.max(1));
    Cuts { keys: Vec::new(), overlap: below.map(|run| Overlap { run: run.id(), bytes }) }
}
