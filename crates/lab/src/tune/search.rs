//! Finds the best policies: many on a small sample, some on a larger one, few on all writes.

use super::candidate::Candidate;
use super::grid::{coarse, neighbours};
use super::memory::Memory;
use super::objective::Objective;
use super::ranges;
use super::sample::Sample;
use super::survey::Survey;
use super::trial::{Trial, TrialCosts};
use crate::jobs::{SharedProgress, measure_all};
use crate::physical::FileSizes;
use anyhow::Result;
use lsmith_policy::Registry;
use lsmith_spec::{Spec, format_bytes};
use lsmith_workload::Workload;
use std::collections::HashSet;

/// Writes of the smallest sample, at least and at most.
const SMALL: (u64, u64) = (60_000, 100_000);

/// A workload of so few writes has no samples: all policies are simulated on all writes.
const FEW_WRITES: u64 = 200_000;

/// Writes per memtable of the smallest sample, if there are not too many memtables.
const SMALL_PER_MEMTABLE: u64 = 32;

/// The middle sample has this many times the writes of the smallest.
const MIDDLE: u64 = 4;

/// With more writes than this, the largest sample has this many.
const WHOLE_MAX: u64 = 1_000_000;

/// The number of best candidates whose neighbours are tried, how many of them may be of one family,
/// and how often neighbours are tried. As many more are tried for candidates whose costs may be
/// best if their error is as large as it can be.
const REFINED: usize = 6;
const REFINED_OF_FAMILY: usize = 2;
const ROUNDS: usize = 4;

/// The candidates that go on to the middle sample: some because their costs may be best if their
/// error is as large as it can be, some because their measured costs are best. The errors of
/// policies of blocks are large, so that these could take all places of the first kind.
const MIDDLE_COUNT: usize = 32;
const MEASURED_COUNT: usize = 16;

/// The candidates that go on to all writes at once.
const LAST_COUNT: usize = 4;

/// The error of figures on a sample that has not all writes: of a small sample, of a middle one,
/// and of the largest. docs/tune.md has the measurements.
const ERRORS: [f64; 3] = [0.10, 0.05, 0.02];

/// The most memtables that are simulated on each of the samples.
pub(super) const FLUSHES_MAX: [f64; 3] = [2000.0, 5000.0, 20_000.0];

/// Scores that differ by less than this share are alike.
const ALIKE: f64 = 0.005;

/// Policies that count in blocks write more where a memtable has few blocks: by this share,
/// divided by the number of blocks.
const FEW_BLOCKS: f64 = 6.0;

/// Bytes of a block in keyed simulations.
const BLOCK_BYTES: f64 = 4096.0;

/// The candidates for a workload.
pub(super) struct Search<'a> {
    pub(super) registry: &'a Registry,
    pub(super) workload: &'a Workload,
    pub(super) survey: &'a Survey,
    pub(super) memory: &'a Memory,
    /// The memtable in the simulated workload.
    pub(super) memtable_bytes: u64,
    /// The factor between the workload that is asked for and the simulated one.
    pub(super) shrink: f64,
    pub(super) objective: Objective,
    /// The policies that are asked for. Parameters that a spec leaves out are varied.
    pub(super) asked: Vec<Spec>,
    /// What files of the simulated workload take, if known.
    pub(super) files: Option<FileSizes>,
    pub(super) progress: &'a SharedProgress,
    pub(super) candidates: Vec<Candidate>,
}

impl Search<'_> {
    /// Simulates all candidates, and `more` up to the largest sample. Returns the indexes of the
    /// candidates that reached the largest sample and are within the limits, best first.
    pub(super) fn run(&mut self, more: &[Spec]) -> Result<Vec<usize>> {
        let flushes = self.survey.bytes / self.memtable_bytes.max(1);
        let small = if self.survey.writes <= FEW_WRITES {
            self.survey.writes
        } else {
            (flushes * SMALL_PER_MEMTABLE).clamp(SMALL.0, SMALL.1)
        };
        let sample = self.sample(small)?;
        let named: Vec<usize> = more.iter().filter_map(|spec| self.index_of(spec)).collect();
        let mut specs = coarse(self.registry);
        specs.extend(self.asked.iter().flat_map(|asked| ranges::tried(self.registry, asked)));
        let specs = specs.into_iter().map(|spec| self.bounded(spec)).collect::<Vec<_>>();
        let all: Vec<usize> = specs.iter().filter_map(|spec| self.index_of(spec)).collect();
        self.simulate("policies", 0, &sample, &[all, named.clone()].concat())?;
        for _ in 0..ROUNDS {
            let measured = self.best_of_families(0, |index| self.score(index));
            let hoped = self.best_of_families(0, |index| self.least_score(index));
            let best = measured.into_iter().chain(hoped);
            let mut near: Vec<Spec> = Vec::new();
            for index in best {
                near.extend(neighbours(self.registry, &self.candidates[index].spec));
            }
            for asked in &self.asked {
                let best = self.best_of(asked).map(|index| &self.candidates[index].spec);
                near.extend(best.into_iter().flat_map(|it| ranges::near(self.registry, asked, it)));
            }
            let known = self.candidates.len();
            let near = near.into_iter().map(|spec| self.bounded(spec)).collect::<Vec<_>>();
            let indices: Vec<usize> = near.iter().filter_map(|spec| self.index_of(spec)).collect();
            if self.candidates.len() == known {
                break;
            }
            self.simulate("parameters", 0, &sample, &indices)?;
        }
        let asked: Vec<usize> = self.asked.iter().filter_map(|it| self.best_of(it)).collect();
        let named = [named, asked].concat();
        let middle = self.larger(sample, small * MIDDLE)?;
        let hoped = self.best(0, MIDDLE_COUNT, |index| self.least_score(index));
        let measured = self.best(0, MEASURED_COUNT, |index| self.score(index));
        let chosen = [hoped, measured, self.frontier(0), named.clone()].concat();
        self.simulate("larger sample", 1, &middle, &chosen)?;
        let last = self.larger(middle, WHOLE_MAX)?;
        self.simulate("finalists", 2, &last, &named)?;
        loop {
            let left = self.best(1, LAST_COUNT, |index| self.least_score(index));
            self.simulate("finalists", 2, &last, &left)?;
            let mut found = self.within();
            found.sort_by(|&left, &right| self.score(left).total_cmp(&self.score(right)));
            self.break_ties(&mut found);
            // A candidate that is a little worse on the middle sample may be better.
            let is_settled = found.first().is_some_and(|&best| {
                let score = self.score(best);
                let next = self.best(1, 1, |index| self.least_score(index));
                next.iter().all(|&next| self.least_score(next) >= score)
            });
            if is_settled || left.is_empty() {
                return Ok(found);
            }
        }
    }

    /// Returns the indexes of the candidates that are `asked` with any value of the parameters that
    /// it leaves out, if they were simulated.
    pub(super) fn of(&self, asked: &Spec) -> impl Iterator<Item = usize> {
        let full = self.registry.build_spec(asked).map(|policy| policy.spec()).ok();
        let fits = move |candidate: &Candidate| {
            let spec = candidate.policy.spec();
            let is_fixed = |name: &str| asked.param(name).is_some();
            let fixed = |of: &Spec| -> Vec<(String, String)> {
                of.params.iter().filter(|(name, _)| is_fixed(name)).cloned().collect()
            };
            let full = full.as_ref().filter(|full| full.name == spec.name);
            candidate.costs.is_some() && full.is_some_and(|full| fixed(full) == fixed(&spec))
        };
        (0..self.candidates.len()).filter(move |&index| fits(&self.candidates[index]))
    }

    /// Returns the best of these candidates: on the largest sample so far, within the limits if one
    /// is, of the least score.
    pub(super) fn best_of(&self, asked: &Spec) -> Option<usize> {
        let order = |index: usize| {
            let step = self.candidates[index].step;
            (std::cmp::Reverse(step), !self.is_within(index))
        };
        self.of(asked).min_by(|&one, &other| {
            let scores = self.score(one).total_cmp(&self.score(other));
            order(one).cmp(&order(other)).then(scores)
        })
    }

    /// Returns true if the costs of a candidate are known and within the limits.
    pub(super) fn is_within(&self, index: usize) -> bool {
        let costs = self.candidates[index].costs;
        costs.is_some_and(|costs| self.allows(&costs, -margin(&costs)))
    }

    /// Returns `spec` with the longest merge that is allowed as its largest, if it takes one and
    /// has none.
    fn bounded(&self, spec: Spec) -> Spec {
        let Some(bytes) = self.objective.merge_bytes_max else { return spec };
        let bounded = spec.clone().with("largest", format_bytes(bytes));
        let is_free = spec.param("largest").is_none();
        if is_free && self.registry.build_spec(&bounded).is_ok() { bounded } else { spec }
    }

    fn sample(&self, writes: u64) -> Result<Sample> {
        Sample::of(self.workload, self.survey, writes)
    }

    /// Returns a sample of about so many writes, or `smaller` if that has all writes already.
    fn larger(&self, smaller: Sample, writes: u64) -> Result<Sample> {
        if smaller.share == 1.0 {
            return Ok(smaller);
        }
        self.sample(writes.min(self.survey.writes))
    }

    /// Returns the candidates that were simulated on more than the smallest sample, with their
    /// costs. Leaves out candidates whose costs, plus the error of their sample, exceed a limit.
    pub(super) fn well_known(&self) -> Vec<(&Candidate, TrialCosts)> {
        let indexes = (0..self.candidates.len()).filter(|&index| self.candidates[index].step > 0);
        let within = |index: usize| {
            let costs = self.candidates[index].costs?;
            let is_within = self.allows(&costs, -self.error(index));
            is_within.then_some((&self.candidates[index], costs))
        };
        indexes.filter_map(within).collect()
    }

    /// Returns the indexes of up to `count` candidates within the limits, the least score first.
    /// Leaves out candidates that were simulated on the smallest sample alone.
    pub(super) fn finalists(&self, count: usize) -> Vec<usize> {
        let is_known = |index: &usize| self.candidates[*index].step > 0 && self.is_within(*index);
        let all = (0..self.candidates.len()).filter(is_known);
        let mut found: Vec<usize> = all.filter(|&at| !self.candidates[at].is_double).collect();
        found.sort_by(|&left, &right| self.score(left).total_cmp(&self.score(right)));
        found.truncate(count);
        found
    }

    /// Returns the index of `spec`, which becomes a candidate if it is none yet. `None` if there is
    /// no such policy.
    fn index_of(&mut self, spec: &Spec) -> Option<usize> {
        let policy = self.registry.build_spec(spec).ok()?;
        let full = policy.spec();
        let known = self.candidates.iter().position(|known| known.policy.spec() == full);
        if known.is_some() {
            return known;
        }
        let new = Candidate { spec: spec.clone(), policy, step: 0, costs: None, is_double: false };
        self.candidates.push(new);
        Some(self.candidates.len() - 1)
    }

    /// Simulates candidates on a sample, unless their costs on as many writes are known.
    fn simulate(&mut self, name: &str, step: usize, on: &Sample, which: &[usize]) -> Result<()> {
        let mut which = which.to_vec();
        which.sort_unstable();
        which.dedup();
        let is_known = |candidate: &Candidate| {
            candidate.costs.is_some_and(|costs| {
                costs.writes == on.writes.len() as u64 && costs.memtable_factor == 1.0
            })
        };
        let (known, new): (Vec<usize>, Vec<usize>) =
            which.into_iter().partition(|&index| is_known(&self.candidates[index]));
        for index in known {
            self.candidates[index].step = step;
        }
        let memtable_bytes = self.memtable_bytes;
        // Extrapolated costs are a poor reason to drop a candidate.
        let flushes_max = if on.share == 1.0 { FLUSHES_MAX[2] } else { FLUSHES_MAX[step] };
        let trial = |&index: &usize| {
            let policy = &self.candidates[index].policy;
            Trial {
                policy,
                sample: on,
                memtable_bytes,
                flushes_max,
                files: self.files,
                registry: self.registry,
                shrink: self.shrink,
            }
        };
        let trials: Vec<Trial<'_>> = new.iter().map(trial).collect();
        let found = measure_all(name, &trials, self.progress)?;
        for (index, costs) in new.into_iter().zip(found) {
            self.candidates[index].step = step;
            self.candidates[index].costs = costs;
        }
        self.note_doubles(step);
        Ok(())
    }

    /// Notes which candidates of a step have merged the same as an earlier one.
    fn note_doubles(&mut self, step: usize) {
        let mut known = HashSet::new();
        for candidate in self.candidates.iter_mut().filter(|candidate| candidate.step == step) {
            let costs = candidate.costs.filter(|_| !candidate.is_double);
            candidate.is_double |= costs.is_some_and(|costs| !known.insert(costs.in_bits()));
        }
    }

    /// Returns up to `count` candidates of a step with the least `score` that may be within the
    /// limits, best first.
    fn best(&self, step: usize, count: usize, score: impl Fn(usize) -> f64) -> Vec<usize> {
        let mut found: Vec<usize> =
            self.of_step(step).filter(|&index| self.may_pass(index)).collect();
        found.sort_by(|&left, &right| score(left).total_cmp(&score(right)));
        found.truncate(count);
        found
    }

    /// Returns the candidates of a step with the least `score` that may be within the limits. Only
    /// a few are of one family, or one family would keep all others from being refined.
    fn best_of_families(&self, step: usize, score: impl Fn(usize) -> f64) -> Vec<usize> {
        let family = |index: usize| self.candidates[index].spec.name.as_str();
        let all = self.best(step, usize::MAX, score);
        let mut found: Vec<usize> = Vec::new();
        for index in all {
            let of_family = found.iter().filter(|&&known| family(known) == family(index)).count();
            if of_family < REFINED_OF_FAMILY {
                found.push(index);
            }
        }
        found.truncate(REFINED);
        found
    }

    fn of_step(&self, step: usize) -> impl Iterator<Item = usize> {
        let indexes = 0..self.candidates.len();
        indexes.filter(move |&index| {
            let candidate = &self.candidates[index];
            candidate.step == step && !candidate.is_double
        })
    }

    /// Returns the candidates that no other one beats in all costs.
    pub(super) fn frontier(&self, step: usize) -> Vec<usize> {
        let known = |index: &usize| self.candidates[*index].costs.map(|costs| (*index, costs));
        let mut all: Vec<(usize, TrialCosts)> = (0..self.candidates.len())
            .filter(|&index| self.candidates[index].step >= step)
            .filter_map(|index| known(&index))
            .collect();
        let order = |costs: &TrialCosts| {
            [costs.write_cost_user, costs.read_cost_mean, costs.space_cost_physical_mean]
        };
        all.sort_by(|left, right| {
            order(&left.1).partial_cmp(&order(&right.1)).unwrap_or(std::cmp::Ordering::Equal)
        });
        let mut frontier: Vec<(usize, TrialCosts)> = Vec::new();
        for (index, costs) in all {
            let is_beaten = frontier.iter().any(|(_, better)| {
                better.read_cost_mean <= costs.read_cost_mean
                    && better.space_cost_physical_mean <= costs.space_cost_physical_mean
            });
            if !is_beaten {
                frontier.push((index, costs));
            }
        }
        frontier.into_iter().map(|(index, _)| index).collect()
    }

    /// Breaks near-ties: sorts the candidates within `ALIKE` of the best score by all their costs
    /// together.
    fn break_ties(&self, sorted: &mut [usize]) {
        let Some(&first) = sorted.first() else { return };
        let is_alike = |&&index: &&usize| self.score(index) <= self.score(first) * (1.0 + ALIKE);
        let alike = sorted.iter().take_while(is_alike).count();
        let overall = |index: usize| {
            let costs = self.candidates[index].costs;
            costs.map_or(f64::INFINITY, |costs| self.objective.even.score(&(&costs).into()))
        };
        sorted[..alike].sort_by(|&left, &right| overall(left).total_cmp(&overall(right)));
    }

    /// Returns the candidates within the limits whose costs on the largest sample are known. Costs
    /// that may be off keep a margin from the limits.
    fn within(&self) -> Vec<usize> {
        self.of_step(2).filter(|&index| self.is_within(index)).collect()
    }

    /// Returns true if costs that may be `tolerance` too high can be within all limits.
    pub(super) fn allows(&self, costs: &TrialCosts, tolerance: f64) -> bool {
        let (need, _) = self.memory.need(costs.space_cost_mean);
        self.objective.allows(&costs.into(), tolerance) && self.memory.allows(&need)
    }

    /// Returns the error that the costs of a candidate may have.
    fn error(&self, index: usize) -> f64 {
        let candidate = &self.candidates[index];
        match candidate.costs {
            Some(costs) if margin(&costs) == 0.0 => 0.0,
            Some(costs) if candidate.policy.needs().blocks => {
                let memtable = self.memtable_bytes as f64 * costs.share;
                ERRORS[candidate.step] + FEW_BLOCKS / (memtable / BLOCK_BYTES).max(1.0)
            }
            _ => ERRORS[candidate.step],
        }
    }

    fn may_pass(&self, index: usize) -> bool {
        let costs = self.candidates[index].costs;
        costs.is_some_and(|costs| self.allows(&costs, self.error(index)))
    }

    pub(super) fn score(&self, index: usize) -> f64 {
        let costs = self.candidates[index].costs;
        costs.map_or(f64::INFINITY, |costs| self.objective.score(&(&costs).into()))
    }

    /// Returns the score that a candidate may have on all writes, at best.
    fn least_score(&self, index: usize) -> f64 {
        self.score(index) / (1.0 + self.error(index))
    }
}

/// Returns the error that costs on the largest sample may have.
fn margin(costs: &TrialCosts) -> f64 {
    let sampled = if costs.share == 1.0 { 0.0 } else { ERRORS[2] };
    let extrapolated = if costs.memtable_factor > 1.0 { ERRORS[1] } else { 0.0 };
    sampled + extrapolated
}
