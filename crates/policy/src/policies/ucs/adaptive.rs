//! The scaling parameter with which reads and merges cost least.

use super::Scale;
use crate::Stack;
use crate::read_price::ReadPrice;
use lsmith_tree::{MemoChange, TreeView};

/// Weighs reads and merges, as the documentation of [`Ucs`](super::Ucs) says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Adaptive {
    pub(super) price: ReadPrice,
}

/// The parameters that are tried: from `L12` up to `T52`.
const LEAST: Scale = Scale(-10);
pub(super) const MOST: Scale = Scale(50);

/// The parameter before reads were counted.
const START: Scale = Scale(0);

/// The part of the cost that a change of the parameter must save.
const GAIN: f64 = 0.15;

/// The note of the parameter that the last merge went by.
const NOTED: &str = "ucs_w";

/// Returns the note that a merge goes by `scale`.
pub(super) fn note(scale: Scale) -> MemoChange {
    (NOTED.into(), Some(scale.0.to_string()))
}

impl Adaptive {
    /// Returns the parameter of all levels for the tree of `view`.
    pub(super) fn scale(&self, view: &TreeView, stack: &Stack) -> Scale {
        let noted = view.memo(NOTED).and_then(|text| text.parse().ok()).map(Scale);
        let kept = noted.filter(|scale| (LEAST.0..=MOST.0).contains(&scale.0)).unwrap_or(START);
        let unit = stack.mean_flush_bytes().unwrap_or(view.memtable_bytes as f64).max(1.0);
        let Some(price) = self.price.at(view, unit) else { return kept };
        let bytes: f64 = stack.runs().iter().map(|run| run.bytes as f64).sum();
        let cost = |scale: Scale| cost(scale, bytes / unit, price);
        let all = (LEAST.0..=MOST.0).map(Scale);
        let best = all.min_by(|one, other| cost(*one).total_cmp(&cost(*other))).unwrap_or(kept);
        if cost(best) < cost(kept) * (1.0 - GAIN) { best } else { kept }
    }
}

/// Returns what runs and merges cost while a memtable is written, in written memtables, if the tree
/// has so many `flushes` and a run costs `price`.
fn cost(scale: Scale, flushes: f64, price: f64) -> f64 {
    let factor = scale.fan_factor() as f64;
    // A tree of one flush has a level too.
    let levels = (flushes.max(factor).ln() / factor.ln()).max(1.0);
    match scale.0 > 0 {
        true => price * (factor - 1.0) * levels + levels,
        false => price * levels + (factor - 1.0) * levels,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parameter of a tree of 64 flushes with so many range reads in each, whose last
    /// merge went by `noted`.
    fn scale(scans: u64, noted: Option<i64>) -> i64 {
        let note = noted.map_or(String::new(), |scale| format!("note {NOTED}={scale}\n"));
        let reads = format!("reads 64 0 0 {}", scans * 64);
        let view = format!(
            "view memtable 1MB\ntree runs 3 tables 3 flushes 64 flushed 64MB 64e {reads}\n\
             {note}L0 r2[t2:a..z 64MB]"
        );
        let view: TreeView = view.parse().unwrap();
        let price = ReadPrice { get: 10, scan: 1000 };
        Adaptive { price }.scale(&view, &Stack::of(&view)).0
    }

    #[test]
    fn many_reads_ask_for_levels_and_few_for_tiers() {
        // A run costs ten memtables, one, a tenth, and nothing.
        let found = [10_000, 1000, 100, 0].map(|scans| scale(scans, None));
        assert_eq!(found, [-6, 0, 6, 50]);
    }

    #[test]
    fn a_little_gain_changes_nothing() {
        assert_eq!([scale(1000, Some(1)), scale(1000, Some(50))], [1, -1]);
        // A note that no merge can have left is as none.
        assert_eq!(scale(1000, Some(99)), 0);
    }
}
