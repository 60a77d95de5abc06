//! All policies and their parameters, by formula.

use crate::growth::Formula;
use crate::profile::Profile;
use lsmith_model::formulas::{LeveledModel, Sweep};
use lsmith_model::optimal_sizes;
use lsmith_spec::{Spec, format_bytes};

/// Ratios of levels that are tried.
const RATIOS: [u32; 11] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32];

/// Bounds on runs that are tried.
const RUNS: [u64; 12] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32];

/// A policy with what it costs.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) policy: String,
    pub(super) runs_on_store: bool,
    pub(super) costs: Formula,
}

/// Everything that is considered.
pub(super) fn candidates(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let mut all = on_store(profile, memtable_bytes);
    all.extend(free_sizes(profile, memtable_bytes));
    all
}

/// What the store has policies for.
pub(super) fn on_store(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let candidate = |spec: Spec| {
        let costs = Formula::of(&spec, profile, memtable_bytes)?;
        Some(Candidate { policy: spec.to_string(), runs_on_store: true, costs })
    };
    specs().into_iter().filter_map(candidate).collect()
}

fn specs() -> Vec<Spec> {
    let mut all = vec![Spec::bare("none")];
    for runs in RUNS {
        all.extend(["minlatency", "constant"].map(|name| Spec::bare(name).with("k", runs)));
    }
    for ratio in RATIOS {
        all.push(Spec::bare("tiered").with("ratio", ratio));
        let leveled = |l0: u32| Spec::bare("leveled").with("ratio", ratio).with("l0", l0);
        all.extend([1, 2, 4].map(|l0| leveled(l0).with("pick", "round_robin")));
        all.push(leveled(1).with("pick", "whole_level"));
    }
    all
}

/// Level sizes as free variables, for all the data there are in the end.
fn free_sizes(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let end = profile.at(1.0);
    let setting = end.setting(memtable_bytes);
    let mut all = Vec::new();
    for level0 in [1_u32, 4] {
        let mut model = LeveledModel {
            memtable: setting.memtable_requests(),
            level0_merged: f64::from(level0),
            level0_kept: f64::from(level0 - 1) / 2.0,
            sizes: Vec::new(),
            sweep: Sweep::RoundRobin,
            false_overlap: 1.0,
        };
        model.sizes = optimal_sizes(&model, setting.popularity, None);
        let bytes = |size: &f64| format_bytes((size * setting.item_bytes) as u64);
        let sizes: Vec<String> = model.sizes.iter().map(bytes).collect();
        let policy = match sizes.is_empty() {
            true => continue,
            false => format!("leveldb(l0={level0}, sizes={})", sizes.join(":")),
        };
        let costs = Formula::at(&model.evaluate(&setting), &setting);
        all.push(Candidate { policy, runs_on_store: false, costs });
    }
    all
}
