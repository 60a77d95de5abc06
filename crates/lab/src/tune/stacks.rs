//! Costs of stacks of runs whose merges have no formula: bigtable, exploring, binomial.
//!
//! The merges come from a simulation of flushes of one size, once for all workloads. The costs of
//! the merges with shared keys come from expected sizes. After the last simulated flush the costs
//! are extrapolated: `binomial` keeps its distance from the optimum, and the others grow in a
//! straight line, as they do once their bound on runs limits them (Mao et al., section 5). For
//! large bounds the line is too high.

use crate::growth::Formula;
use crate::profile::Profile;
use lsmith_model::formulas::scheduled;
use lsmith_model::{Setting, optimum};
use lsmith_policy::Registry;
use lsmith_sim::{Event, UNIT_BYTES, simulate_unit};
use lsmith_spec::Spec;

/// The most flushes that are simulated: those of a hundred million entries of 1 kB.
const FLUSHES: u64 = 25_000;

/// The factor between the two flushes at which growth is measured.
const STEP: f64 = 4.0;

const NAMES: [&str; 3] = ["binomial", "bigtable", "exploring"];
const RUNS: [u64; 5] = [4, 5, 6, 8, 12];
const BINOMIAL: &str = NAMES[0];

/// A policy with its merges.
#[derive(Clone, Debug)]
pub(super) struct Stack {
    pub(super) spec: Spec,
    runs_max: u64,
    /// For each flush, the number of newest runs that it was merged with.
    merges: Vec<u64>,
}

/// Returns all stacks, for as many flushes as `profile` has with memtables of `memtable_bytes`.
pub(super) fn stacks(profile: &Profile, memtable_bytes: u64) -> Vec<Stack> {
    let flushes = (flushes(&profile.setting(memtable_bytes)) as u64).min(FLUSHES);
    let specs = NAMES.iter().flat_map(|name| RUNS.map(|runs| (Spec::bare(*name), runs)));
    specs.filter_map(|(spec, runs)| Stack::of(spec.with("k", runs), runs, flushes)).collect()
}

fn flushes(setting: &Setting<'_>) -> f64 {
    (setting.requests / setting.memtable_requests()).floor().max(1.0)
}

impl Stack {
    fn of(spec: Spec, runs_max: u64, flushes: u64) -> Option<Stack> {
        let policy = Registry::builtin().build_spec(&spec).ok()?;
        let (mut merges, mut before) = (Vec::new(), 0);
        let sizes = std::iter::repeat_n(UNIT_BYTES, flushes as usize);
        let simulated = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |event| {
            if let Event::Rest { tree } = event {
                let runs = tree.disk_run_count() as u64;
                merges.push(before + 1 - runs);
                before = runs;
            }
        });
        simulated.ok()?;
        Some(Stack { spec, runs_max, merges })
    }

    /// Returns the costs of the stack.
    pub(super) fn costs(&self, profile: &Profile, memtable_bytes: u64) -> Formula {
        let setting = profile.setting(memtable_bytes);
        let (all, known) = (flushes(&setting), self.merges.len() as f64);
        let at = |flushes: f64| {
            let requests = setting.memtable_requests() * flushes;
            Setting { requests: requests.min(setting.requests), ..setting }
        };
        let last = self.by_merges(&at(known));
        if all <= known {
            return last;
        }
        let first = self.by_merges(&at((known / STEP).floor().max(1.0)));
        let least = [self.optimum(&at(known)), self.optimum(&setting)];
        let steps = (all / known).ln() / STEP.ln();
        let grown = |figure: fn(&Formula) -> f64| match self.spec.name.as_str() {
            BINOMIAL => figure(&last) * figure(&least[1]) / figure(&least[0]),
            _ => {
                let slope = (figure(&last) - figure(&first)).max(0.0) / (known - known / STEP);
                figure(&last) + slope * (all - known)
            }
        };
        let runs = last.read_cost_mean + (last.read_cost_mean - first.read_cost_mean) * steps;
        Formula {
            write_cost_user: grown(|costs| costs.write_cost_user),
            write_cost_system: grown(|costs| costs.write_cost_system),
            read_cost_mean: runs.min(self.runs_max as f64),
            space_cost_mean: last.space_cost_mean,
        }
    }

    fn by_merges(&self, setting: &Setting<'_>) -> Formula {
        Formula::at(&scheduled(setting, self.merges.iter().copied()), setting)
    }

    fn optimum(&self, setting: &Setting<'_>) -> Formula {
        let schedule = optimum::schedule(flushes(setting) as u64, self.runs_max);
        Formula::at(&scheduled(setting, schedule), setting)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_workload::{NoInputs, Workload};

    fn profile(keys: u64) -> Profile {
        let spec = format!("load(keys={keys}, value=100B)").parse().unwrap();
        Profile::of(&Workload::from_spec(&spec, &NoInputs).unwrap()).unwrap()
    }

    /// For flushes of one size that share no key, the result equals that of the simulation.
    #[test]
    fn merges_are_those_of_the_policy() {
        let profile = profile(100_000);
        let memtable_bytes = (profile.writes * profile.entry_bytes / 2000.0) as u64;
        for (spec, runs) in [("binomial(k=4)", 4), ("bigtable(k=6)", 6), ("exploring(k=6)", 6)] {
            let policy = Registry::builtin().build(spec).unwrap();
            let sizes = std::iter::repeat_n(UNIT_BYTES, 2000);
            let simulated = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |_| {}).unwrap();
            let found =
                Stack::of(policy.spec(), runs, 2000).unwrap().costs(&profile, memtable_bytes);
            let off = found.write_cost_system / simulated.figures.write_cost_system - 1.0;
            assert!(off.abs() < 0.01, "{spec}: {off}");
            let off = found.read_cost_mean / simulated.figures.read_cost_mean - 1.0;
            assert!(off.abs() < 0.01, "{spec}: {off}");
        }
    }

    /// Extrapolates to four times the simulated flushes.
    #[test]
    fn longer_runs_are_as_they_have_begun() {
        let profile = profile(1_000_000);
        let flushes = 4 * FLUSHES as usize;
        let memtable_bytes = (profile.writes * profile.entry_bytes / flushes as f64) as u64;
        for (spec, runs, near) in [("binomial(k=5)", 5, 0.12), ("bigtable(k=5)", 5, 0.12)] {
            let policy = Registry::builtin().build(spec).unwrap();
            let sizes = std::iter::repeat_n(UNIT_BYTES, flushes);
            let simulated = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |_| {}).unwrap();
            let found =
                Stack::of(policy.spec(), runs, FLUSHES).unwrap().costs(&profile, memtable_bytes);
            let off = found.write_cost_system / simulated.figures.write_cost_system - 1.0;
            assert!(off.abs() < near, "{spec}: {off}");
        }
    }
}
