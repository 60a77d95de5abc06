//! All policies and their parameters, by formula.

use super::profile::Profile;
use lsmith_model::formulas::{
    LeveledModel, Sweep, WholeLevelModel, constant, scheduled, tiered, unmerged,
};
use lsmith_model::{Model, Setting, optimal_sizes, optimum};
use lsmith_spec::format_bytes;

/// Ratios of levels that are tried.
const RATIOS: [u32; 11] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32];

/// Bounds on runs that are tried.
const RUNS: [u64; 12] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 16, 24, 32];

/// Moments at which a tree of levels is looked at while the data grow, each standing for as many
/// writes.
const MOMENTS: u32 = 6;

/// A policy with what it costs.
#[derive(Clone, Debug)]
pub(super) struct Candidate {
    pub(super) policy: String,
    pub(super) runs_on_store: bool,
    pub(super) costs: Costs,
}

/// Figures of a policy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Costs {
    pub(super) user: f64,
    pub(super) system: f64,
    pub(super) runs: f64,
    pub(super) space: f64,
}

impl Costs {
    fn of(model: &Model, setting: &Setting<'_>) -> Costs {
        Costs {
            user: model.write_cost_user(),
            system: model.write_cost_system(),
            runs: model.reads(setting).runs,
            space: model.space_cost,
        }
    }
}

/// Everything that is considered.
pub(super) fn candidates(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let mut all = on_store(profile, memtable_bytes);
    all.extend(free_sizes(profile, memtable_bytes));
    all
}

/// What the store has policies for.
pub(super) fn on_store(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let mut all = stacks(profile, memtable_bytes);
    all.extend(levels(profile, memtable_bytes));
    all
}

/// Policies of whole runs: their formulas follow the data as they grow.
fn stacks(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let profile = profile.at(1.0);
    let setting = profile.setting(memtable_bytes);
    let candidate = |policy: String, model: &Model| Candidate {
        policy,
        runs_on_store: true,
        costs: Costs::of(model, &setting),
    };
    let flushes = (setting.requests / setting.memtable_requests()).floor().max(1.0) as u64;
    let mut all = vec![candidate("none".to_owned(), &unmerged(&setting))];
    for runs in RUNS {
        let schedule = optimum::schedule(flushes, runs);
        let policy = format!("minlatency(k={runs})");
        all.push(candidate(policy, &scheduled(&setting, schedule)));
        all.push(candidate(format!("constant(k={runs})"), &constant(&setting, runs)));
    }
    for ratio in RATIOS {
        let model = tiered(&setting, u64::from(ratio));
        all.push(candidate(format!("tiered(ratio={ratio})"), &model));
    }
    all
}

/// Policies of levels: steady at each moment.
fn levels(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let moments = moments(profile);
    let mut all = Vec::new();
    for ratio in RATIOS {
        for level0 in [1_u32, 2, 4] {
            let costs = mean(&moments, memtable_bytes, |setting| {
                model_of(setting, f64::from(level0), geometric(setting, ratio)).evaluate(setting)
            });
            let policy = format!("leveled(ratio={ratio}, l0={level0}, pick=round_robin)");
            all.push(Candidate { policy, runs_on_store: true, costs });
        }
        let costs = mean(&moments, memtable_bytes, |setting| {
            let (memtable, sizes) = (setting.memtable_requests(), geometric(setting, ratio));
            WholeLevelModel { memtable, level0_merged: 1.0, sizes }.evaluate(setting)
        });
        let policy = format!("leveled(ratio={ratio}, l0=1, pick=whole_level)");
        all.push(Candidate { policy, runs_on_store: true, costs });
    }
    all
}

/// Level sizes as free variables, for all the data there are in the end.
fn free_sizes(profile: &Profile, memtable_bytes: u64) -> Vec<Candidate> {
    let end = profile.at(1.0);
    let setting = end.setting(memtable_bytes);
    let mut all = Vec::new();
    for level0 in [1_u32, 4] {
        let mut model = model_of(&setting, 0.0, Vec::new());
        model.level0_merged = f64::from(level0);
        model.level0_kept = f64::from(level0 - 1) / 2.0;
        model.sizes = optimal_sizes(&model, setting.popularity, None);
        let bytes = |size: &f64| format_bytes((size * setting.item_bytes) as u64);
        let sizes: Vec<String> = model.sizes.iter().map(bytes).collect();
        let policy = match sizes.is_empty() {
            true => continue,
            false => format!("leveldb(l0={level0}, sizes={})", sizes.join(":")),
        };
        let costs = Costs::of(&model.evaluate(&setting), &setting);
        all.push(Candidate { policy, runs_on_store: false, costs });
    }
    all
}

fn geometric(setting: &Setting<'_>, ratio: u32) -> Vec<f64> {
    let ratio = f64::from(ratio);
    LeveledModel::geometric(setting.memtable * ratio, ratio, setting.popularity.live())
}

fn model_of(setting: &Setting<'_>, level0_kept: f64, sizes: Vec<f64>) -> LeveledModel {
    LeveledModel {
        memtable: setting.memtable_requests(),
        level0_merged: 1.0,
        level0_kept,
        sizes,
        sweep: Sweep::RoundRobin,
        false_overlap: 1.0,
    }
}

fn moments(profile: &Profile) -> Vec<Profile> {
    let share = |moment: u32| (f64::from(moment) + 0.5) / f64::from(MOMENTS);
    (0..MOMENTS).map(|moment| profile.at(share(moment))).collect()
}

fn mean(moments: &[Profile], memtable_bytes: u64, model: impl Fn(&Setting<'_>) -> Model) -> Costs {
    let mut sum = Costs::default();
    for moment in moments {
        let setting = moment.setting(memtable_bytes);
        let costs = Costs::of(&model(&setting), &setting);
        sum.user += costs.user;
        sum.system += costs.system;
        sum.runs += costs.runs;
        sum.space += costs.space;
    }
    let count = moments.len() as f64;
    Costs {
        user: sum.user / count,
        system: sum.system / count,
        runs: sum.runs / count,
        space: sum.space / count,
    }
}
