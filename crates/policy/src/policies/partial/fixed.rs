//! The partial policies whose choice depends on the level alone: one row of a table each.

use super::{BOTTOM, PIECE, Partial, RATE, RATIO, REUSE, SLICES_MAX, Take, WASTE};
use crate::{Load, MergePolicy, Needs, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// What differs between these policies.
#[derive(Debug)]
struct FixedRow {
    info: PolicyInfo,
    /// How much of memory goes down when it is full.
    from_memory: Take,
    /// How much of a level on storage goes down when it is full.
    from_level: Take,
}

/// Merges all of an overfull level into the next. An overfull bottom level becomes the next one.
static FULL: FixedRow = FixedRow {
    info: PolicyInfo {
        name: "full",
        source: "Thonangi & Yang, ICDE 2017, section III-A",
        summary: "merges all of an overfull level into the next, in blocks",
        params: &[RATIO, REUSE, PIECE, SLICES_MAX, WASTE, BOTTOM],
        build: |params| FixedTake::build(&FULL, params),
    },
    from_memory: Take::All,
    from_level: Take::All,
};

/// Merges the next `rate * K_i` blocks in key order, behind the blocks that went down last.
static ROUND_ROBIN: FixedRow = FixedRow {
    info: PolicyInfo {
        name: "rr",
        source: "Thonangi & Yang, ICDE 2017, section III-B",
        summary: "merges the next window of an overfull level, in key order, into the next level",
        params: &[RATIO, RATE, REUSE, PIECE, SLICES_MAX, WASTE, BOTTOM],
        build: |params| FixedTake::build(&ROUND_ROBIN, params),
    },
    from_memory: Take::Next,
    from_level: Take::Next,
};

/// Merges the `rate * K_i` neighbouring blocks that overlap the fewest blocks below. A merge writes
/// at most `rate * (1/ratio + 1) * K_(i+1)` blocks, plus one, unless memory is behind and more
/// than that goes down at once.
static CHOOSE_BEST: FixedRow = FixedRow {
    info: PolicyInfo {
        name: "choose_best",
        source: "Thonangi & Yang, ICDE 2017, section III-C",
        summary: "merges the window of a full level that overlaps the fewest blocks of the next",
        params: &[RATIO, RATE, REUSE, PIECE, SLICES_MAX, WASTE, BOTTOM],
        build: |params| FixedTake::build(&CHOOSE_BEST, params),
    },
    from_memory: Take::Best,
    from_level: Take::Best,
};

/// Merges the best window of memory into level 1, and all of every level below. This is the
/// paper's experiment that leads to `mixed`.
static TEST_MIXED: FixedRow = FixedRow {
    info: PolicyInfo {
        name: "test_mixed",
        source: "Thonangi & Yang, ICDE 2017, section IV-A",
        summary: "choose_best from memory into level 1, full below",
        params: &[RATIO, RATE, REUSE, PIECE, SLICES_MAX, WASTE, BOTTOM],
        build: |params| FixedTake::build(&TEST_MIXED, params),
    },
    from_memory: Take::Best,
    from_level: Take::All,
};

/// A partial policy that takes the same part of each level every time: `full`, `rr`, `choose_best`
/// or `test_mixed`.
#[derive(Clone, Copy, Debug)]
pub struct FixedTake {
    row: &'static FixedRow,
    partial: Partial,
}

impl FixedTake {
    /// Returns how specs name and build these policies.
    pub fn infos() -> [PolicyInfo; 4] {
        [&FULL, &ROUND_ROBIN, &CHOOSE_BEST, &TEST_MIXED].map(|row| row.info)
    }

    /// Returns `full` with `ratio`, more than 1 and up to 1000. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn full(ratio: f64) -> Result<FixedTake, SpecError> {
        FixedTake::of(&FULL, ratio)
    }

    /// Returns `rr` with `ratio`, more than 1 and up to 1000. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn round_robin(ratio: f64) -> Result<FixedTake, SpecError> {
        FixedTake::of(&ROUND_ROBIN, ratio)
    }

    /// Returns `choose_best` with `ratio`, more than 1 and up to 1000. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn choose_best(ratio: f64) -> Result<FixedTake, SpecError> {
        FixedTake::of(&CHOOSE_BEST, ratio)
    }

    /// Returns `test_mixed` with `ratio`, more than 1 and up to 1000. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn test_mixed(ratio: f64) -> Result<FixedTake, SpecError> {
        FixedTake::of(&TEST_MIXED, ratio)
    }

    fn of(row: &'static FixedRow, ratio: f64) -> Result<FixedTake, SpecError> {
        let spec = Spec::bare(row.info.name).with("ratio", ratio);
        row.info.read(&spec, |params| Ok(FixedTake { row, partial: Partial::read(params)? }))
    }

    fn build(
        row: &'static FixedRow,
        params: &Params<'_>,
    ) -> Result<Arc<dyn MergePolicy>, SpecError> {
        Ok(Arc::new(FixedTake { row, partial: Partial::read(params)? }))
    }
}

impl MergePolicy for FixedTake {
    fn spec(&self) -> Spec {
        self.partial.write(&self.row.info)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let row = self.row;
        let take = |level| if level == 0 { row.from_memory } else { row.from_level };
        self.partial.choose_merge(view, take)
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        self.partial.seal_bytes(view, self.row.from_memory)
    }

    fn needs(&self) -> Needs {
        Needs::BLOCKS
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.partial.pressure(view, load)
    }

    fn shape(&self) -> Shape {
        self.partial.shape()
    }
}
