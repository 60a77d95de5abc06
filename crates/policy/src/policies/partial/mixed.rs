//! Mixed: full merges where they are cheaper, partial merges elsewhere, by thresholds that are
//! given or learned.

mod learn;

use super::{BOTTOM, PIECE, Partial, RATE, RATIO, REUSE, SLICES_MAX, Take, WASTE};
use crate::{Explanation, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use learn::{Lesson, ThresholdSearch, Thresholds};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// Merges the best window of memory into level 1. Merges all of level i-1 into an inner level i if
/// level i holds less than `tau_i * K_i` blocks, and the best window otherwise. Merges all of the
/// level above the bottom into the bottom level if `beta` is true, and the best window otherwise.
///
/// Thresholds that are not given are learned from the top down, one level at a time. The counters
/// of the tree measure what each setting costs over a cycle of the level; the head of
/// `mixed/learn.rs` says how.
///
/// Source: Thonangi & Yang, ICDE 2017, section IV; the search is a reconstruction of what their
/// technical report describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    partial: Partial,
    /// Thresholds of the levels from 2 on, in tenths; `None` to learn them.
    tau: Option<Vec<u64>>,
    beta: Option<bool>,
    search: ThresholdSearch,
}

impl Mixed {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "mixed",
        source: "Thonangi & Yang, ICDE 2017, section IV",
        summary: "full merges into small levels, choose_best into full ones, by learned thresholds",
        params: &[
            RATIO,
            RATE,
            REUSE,
            PIECE,
            SLICES_MAX,
            WASTE,
            BOTTOM,
            ParamInfo {
                name: "tau",
                default: "learn",
                meaning: "thresholds of the inner levels from level 2 on, as 0.3/0.5; or learn",
            },
            ParamInfo {
                name: "beta",
                default: "learn",
                meaning: "whether merges into the bottom level are full: true, false or learn",
            },
            ParamInfo {
                name: "search",
                default: "linear",
                meaning: "how a threshold is looked for: linear (from 0 up, until it gets worse) \
                          or golden (golden section)",
            },
        ],
        build: |params| Ok(Arc::new(Mixed::read(params)?)),
    };

    /// Returns the policy with `ratio`, more than 1 and up to 1000, which learns its thresholds.
    /// Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn new(ratio: f64) -> Result<Mixed, SpecError> {
        Mixed::INFO.read(&Spec::bare(Mixed::INFO.name).with("ratio", ratio), Mixed::read)
    }

    fn read(params: &Params<'_>) -> Result<Mixed, SpecError> {
        let tau = match params.text("tau") {
            None | Some("learn") => None,
            Some(text) => Some(read_tau(text)?),
        };
        let beta = match params.choice("beta", "learn", &["learn", "true", "false"])? {
            "learn" => None,
            text => Some(text == "true"),
        };
        let search = match params.choice("search", "linear", &["linear", "golden"])? {
            "golden" => ThresholdSearch::Golden,
            _ => ThresholdSearch::Linear,
        };
        Ok(Mixed { partial: Partial::read(params)?, tau, beta, search })
    }

    fn lesson<'a>(&'a self, view: &'a TreeView) -> Lesson<'a> {
        let given = Thresholds { tau: self.tau.as_deref(), beta: self.beta };
        Lesson::of(view, given, self.search)
    }
}

fn read_tau(text: &str) -> Result<Vec<u64>, SpecError> {
    let tenths = |part: &str| {
        let value: f64 = part.trim().parse().ok()?;
        let tenths = (value * 10.0).round();
        ((0.0..=10.0).contains(&tenths) && (tenths - value * 10.0).abs() < 1e-9)
            .then_some(tenths as u64)
    };
    let error = || {
        let message = "expected multiples of 0.1 from 0 to 1, such as 0.3/0.5";
        SpecError::conflict(format!("tau = {text}: {message}"))
    };
    text.split('/').map(|part| tenths(part).ok_or_else(error)).collect()
}

impl MergePolicy for Mixed {
    fn spec(&self) -> Spec {
        let mut spec = self.partial.write(&Mixed::INFO);
        if let Some(tau) = &self.tau {
            let tau: Vec<_> =
                tau.iter().map(|tenths| (*tenths as f64 / 10.0).to_string()).collect();
            spec = spec.with("tau", tau.join("/"));
        }
        if let Some(beta) = self.beta {
            spec = spec.with("beta", beta);
        }
        if self.search == ThresholdSearch::Golden { spec.with("search", "golden") } else { spec }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let lesson = self.lesson(view);
        let capacity = |level| self.partial.capacity_blocks(view, level);
        let take = |level| if lesson.is_full(level, capacity) { Take::All } else { Take::Best };
        let mut plan = self.partial.choose_merge(view, take)?;
        plan.memo.extend(lesson.learn_from(&plan, capacity));
        Some(plan)
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        self.partial.seal_bytes(view, Take::Best)
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

    fn explain(&self, view: &TreeView) -> Explanation {
        let learned = self.lesson(view).to_string();
        Explanation { plan: self.next_merge(view), notes: vec![learned], ..Explanation::default() }
    }
}
