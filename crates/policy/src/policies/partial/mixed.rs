//! Mixed: full merges where they pay, partial ones elsewhere, by thresholds that are given or
//! learned.

mod learn;

use super::{PIECE, Partial, RATE, RATIO, REUSE, SLICES_MAX, Take};
use crate::{Explanation, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use learn::{Lesson, Search, Thresholds};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// From memory always the best window. From level i-1 into an inner level i all, if level i holds
/// less than `tau_i * K_i` blocks, else the best window. Into the bottom level all if `beta`, else
/// the best window.
///
/// Thresholds that are not given are learned, top down, one level at a time, by measuring with
/// the counters of the tree what each costs over a cycle of the level; the head of
/// `mixed/learn.rs` says how.
///
/// Source: Thonangi & Yang, ICDE 2017, section IV; the search is a reconstruction of what their
/// technical report describes.
#[derive(Clone, Debug, PartialEq)]
pub struct Mixed {
    partial: Partial,
    /// Thresholds of levels 2, 3 and so on, in tenths; `None` to learn.
    tau: Option<Vec<u64>>,
    beta: Option<bool>,
    search: Search,
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
            "golden" => Search::Golden,
            _ => Search::Linear,
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
        if self.search == Search::Golden { spec.with("search", "golden") } else { spec }
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
