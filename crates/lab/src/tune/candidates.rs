//! All policies and their parameters, by formula.

use super::stacks::Stack;
use super::{Choice, Memory, MemoryNeed};
use crate::growth::Formula;
use crate::profile::Profile;
use lsmith_model::formulas::{LeveledModel, MemoryBufferModel, Sweep, WholeLevelModel};
use lsmith_model::{Flushes, Model, Setting, optimal_sizes};
use lsmith_spec::{Spec, format_bytes};

/// Ratios of levels that are tried.
const RATIOS: [u32; 11] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32];

/// Bounds on runs that are tried.
const RUNS: [u64; 12] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32];

/// Policies that merge parts of levels out of memory. `test_mixed` and `mixed` are between `full`
/// and `choose_best`, by what no formula says.
const PARTIAL: [&str; 3] = ["full", "rr", "choose_best"];

/// A policy with what it costs.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) policy: String,
    pub(super) runs_on_store: bool,
    pub(super) costs: Formula,
}

impl Candidate {
    pub(super) fn into_choice(self, memory: &Memory) -> Choice {
        let mut choice = Choice {
            policy: self.policy,
            runs_on_store: self.runs_on_store,
            memtable_bytes: memory.memtable_bytes,
            filter_bits: 0.0,
            memory_bytes: 0,
            memory: MemoryNeed::default(),
            write_cost_user: self.costs.write_cost_user,
            write_cost_system: self.costs.write_cost_system,
            read_cost_mean: self.costs.read_cost_mean,
            point_read_miss: 0.0,
            space_cost_mean: self.costs.space_cost_mean,
            confirmed: None,
        };
        memory.share_out(&mut choice);
        choice
    }
}

/// Everything that is considered.
pub(super) fn candidates(
    profile: &Profile,
    memtable_bytes: u64,
    stacks: &[Stack],
) -> Vec<Candidate> {
    let mut all = on_store(profile, memtable_bytes, stacks);
    all.extend(free_sizes(profile, memtable_bytes));
    all
}

/// What the store has policies for.
fn on_store(profile: &Profile, memtable_bytes: u64, stacks: &[Stack]) -> Vec<Candidate> {
    let of_stacks = stacks.iter().map(|stack| stack.spec.clone());
    let all = specs().into_iter().chain(of_stacks).chain(partial_specs());
    let candidate = |spec: Spec| {
        let costs = costs_of(&spec, profile, memtable_bytes, stacks)?;
        Some(Candidate { policy: spec.to_string(), runs_on_store: true, costs })
    };
    all.filter_map(candidate).collect()
}

/// What a policy costs.
pub(super) fn costs_of(
    spec: &Spec,
    profile: &Profile,
    memtable_bytes: u64,
    stacks: &[Stack],
) -> Option<Formula> {
    if let Some(stack) = stacks.iter().find(|stack| stack.spec == *spec) {
        return Some(stack.costs(&profile.at(1.0), memtable_bytes));
    }
    if !PARTIAL.contains(&spec.name.as_str()) {
        return Formula::of(spec, profile, memtable_bytes);
    }
    let ratio = spec.param("ratio").and_then(|ratio| ratio.parse().ok())?;
    let costs = Formula::over_moments(profile, memtable_bytes, |setting| {
        Ok(partial(&spec.name, ratio, setting))
    });
    costs.ok()
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

fn partial_specs() -> Vec<Spec> {
    let ratios = PARTIAL.iter().flat_map(|name| RATIOS.map(|ratio| (*name, ratio)));
    ratios.map(|(name, ratio)| Spec::bare(name).with("ratio", ratio)).collect()
}

/// Policies that count in blocks, without what they keep of them: where records are small no block
/// meets nothing, and where they are large the store writes less than this. Memory is the first
/// level, and is swept or emptied like the others. `choose_best` is taken for `rr`.
///
/// Source: the formulas of Lim et al. for a memory buffer, and for whole levels, in which memory
/// takes the place of level 0.
fn partial(name: &str, ratio: f64, setting: &Setting<'_>) -> Model {
    let memtable = setting.memtable;
    let sizes = LeveledModel::geometric(memtable * ratio, ratio, setting.popularity.live());
    if name != "full" {
        let buffer = MemoryBufferModel {
            buffer: memtable,
            sizes,
            sweep: Sweep::RoundRobin,
            false_overlap: 0.0,
        };
        return buffer.evaluate(setting);
    }
    let requests = setting.memtable_requests();
    let mut model =
        WholeLevelModel { memtable: requests, level0_merged: 1.0, sizes }.evaluate(setting);
    // What leaves memory goes straight into level 1.
    model.stages.retain(|stage| stage.name != "memory -> 0");
    model.flushes = Flushes { are_merged: true, ..model.flushes };
    model
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
        let policy = if sizes.is_empty() {
            continue;
        } else {
            format!("leveldb(l0={level0}, sizes={})", sizes.join(":"))
        };
        let costs = Formula::at(&model.evaluate(&setting), &setting);
        all.push(Candidate { policy, runs_on_store: false, costs });
    }
    all
}
