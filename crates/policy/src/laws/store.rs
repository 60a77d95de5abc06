//! A store without contents: it carries out plans on a tree of sizes, and checks each plan.

use super::law::{Law, LawError};
use super::outcome::scaled_outcome;
use super::random::Random;
use crate::{Load, MergePolicy, Shape};
use lsmith_tree::{
    MergePlan, PlanError, Reservation, ReservationState, TreeEdit, TreeView, check_plan,
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The ratio between the sizes of outputs and of inputs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    /// Output bytes per 1000 input bytes. Less than 1000 stands for updates and deletes.
    pub(super) kept_per_mille: u64,
    /// The most by which each table differs from that, in per mille.
    pub(super) off_per_mille: u64,
}

impl Sizes {
    /// Sizes add up.
    pub(super) const EXACT: Sizes = Sizes { kept_per_mille: 1000, off_per_mille: 0 };
    /// Sizes add up but for a tenth.
    pub(super) const ROUGH: Sizes = Sizes { kept_per_mille: 1000, off_per_mille: 100 };
}

pub(super) struct Store<'a> {
    pub(super) view: TreeView,
    pub(super) random: &'a mut Random,
    sizes: Sizes,
    policy: &'a dyn MergePolicy,
    /// Input bytes of merges, without flushes and moves.
    pub(super) merged_bytes: u64,
    asked: u64,
}

impl<'a> Store<'a> {
    pub(super) fn new(
        view: TreeView,
        policy: &'a dyn MergePolicy,
        sizes: Sizes,
        random: &'a mut Random,
    ) -> Store<'a> {
        Store { view, random, sizes, policy, merged_bytes: 0, asked: 0 }
    }

    pub(super) fn policy(&self) -> &'a dyn MergePolicy {
        self.policy
    }

    pub(super) fn shape(&self) -> Shape {
        self.policy.shape()
    }

    pub(super) fn broken(&self, law: Law, what: impl Into<String>) -> LawError {
        let policy = self.policy.spec().to_string();
        LawError { law, policy, what: what.into(), view: self.view.to_string() }
    }

    /// Returns the next plan of the policy, after it was checked.
    pub(super) fn ask(&mut self) -> Result<Option<MergePlan>, LawError> {
        let plan = self.next_merge(&self.view)?;
        let again = self.next_merge(&self.view)?;
        if again != plan {
            let what = format!("first {}, then {}", words(&plan), words(&again));
            return Err(self.broken(Law::Pure, what));
        }
        if self.asked.is_multiple_of(64) {
            self.ask_elsewhere(&plan)?;
        }
        self.asked += 1;
        let unexplained = |plan: &MergePlan| plan.reason.to_string().trim().is_empty();
        if plan.as_ref().is_some_and(unexplained) {
            return Err(self.broken(Law::Words, format!("{} has no reason", words(&plan))));
        }
        match plan.as_ref().map(|plan| check_plan(&self.view, plan)) {
            Some(Err(error)) => Err(self.broken(Law::Legal, format!("{}: {error}", words(&plan)))),
            _ => Ok(plan),
        }
    }

    /// Asks about another tree, and then about the text of this one. The answer must be the same
    /// plan.
    fn ask_elsewhere(&self, plan: &Option<MergePlan>) -> Result<(), LawError> {
        let mut without = self.view.clone();
        without.reservations.clear();
        without.memtable_bytes += 1;
        self.next_merge(&without)?;
        let text = self.view.to_string();
        let read: TreeView = text.parse().map_err(|error| {
            self.broken(Law::Pure, format!("the text of the view cannot be read: {error}"))
        })?;
        let again = self.next_merge(&read)?;
        if again != *plan {
            let what = format!("{}, but {} for the text", words(plan), words(&again));
            return Err(self.broken(Law::Pure, what));
        }
        Ok(())
    }

    fn next_merge(&self, view: &TreeView) -> Result<Option<MergePlan>, LawError> {
        self.guarded(|| self.policy.next_merge(view))
    }

    /// Returns what the policy answers. Fails if it panics.
    pub(super) fn guarded<T>(&self, ask: impl FnOnce() -> T) -> Result<T, LawError> {
        catch_unwind(AssertUnwindSafe(ask)).map_err(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            let said = text.map_or_else(String::new, |text| format!(": {text}"));
            self.broken(Law::Total, format!("no answer, but a panic{said}"))
        })
    }

    /// Returns the policy's plan, or else the flush of a waiting memtable. Returns `None` if there
    /// is nothing to do or both must wait for reservations.
    pub(super) fn next_plan(&mut self) -> Result<Option<MergePlan>, LawError> {
        if let Some(plan) = self.ask()? {
            return Ok(Some(plan));
        }
        let flush = MergePlan::flush(&self.view.tree);
        Ok(flush.filter(|plan| check_plan(&self.view, plan).is_ok()))
    }

    /// Carries out a plan that was checked.
    pub(super) fn commit(&mut self, plan: &MergePlan) -> Result<(), LawError> {
        let Sizes { kept_per_mille, off_per_mille } = self.sizes;
        let random = &mut *self.random;
        let outcome = scaled_outcome(&self.view.tree, plan, &mut || {
            let off = random.below(2 * off_per_mille + 1);
            kept_per_mille * (1000 + off - off_per_mille) / 1000
        });
        if plan.inputs.len() > 1 {
            self.merged_bytes += outcome.from_memory.bytes + outcome.read.bytes;
        }
        let edit = TreeEdit::of_plan(&self.view.tree, plan, outcome)
            .map_err(|error| self.refused(plan, &error))?;
        let done = edit.clone().apply_to(&mut self.view.tree);
        done.map_err(|error| self.broken(Law::Legal, format!("{plan}: {error}")))
    }

    pub(super) fn refused(&self, plan: &MergePlan, error: &PlanError) -> LawError {
        self.broken(Law::Reservations, format!("when it commits, {plan}: {error}"))
    }

    pub(super) fn reserve(&mut self, plan: MergePlan, state: ReservationState) {
        self.view.reservations.push(Reservation { plan, state });
    }

    /// More plans than any policy needs to bring this tree to rest: all that there is can go down
    /// through every level, piece by piece, and at each be merged with what is there.
    pub(super) fn plans_max(&self) -> u64 {
        let slices = self.view.tree.runs().flat_map(|(_, run)| run.slices());
        let points: usize = slices.map(|slice| slice.table().profile.len() + 2).sum();
        2 * 64 * (points as u64 + 16)
    }

    /// Asks and carries out, one plan at a time, until there is nothing to do.
    pub(super) fn settle(&mut self) -> Result<(), LawError> {
        let plans_max = self.plans_max();
        for _ in 0..plans_max {
            match self.next_plan()? {
                Some(plan) => self.commit(&plan)?,
                None => return self.rests(),
            }
        }
        Err(self.broken(Law::Rest, format!("no rest after {plans_max} plans")))
    }

    /// Returns an error if the tree is at rest and holds writers back.
    pub(super) fn stays_at_rest(&mut self) -> Result<(), LawError> {
        match self.next_plan()? {
            Some(_) => Ok(()),
            None => self.rests(),
        }
    }

    /// Returns an error if a tree at rest holds writers back. Does not judge a tree with
    /// reservations: it may have to wait for these plans.
    fn rests(&self) -> Result<(), LawError> {
        let pressure = self.policy.pressure(&self.view, &Load::default());
        if pressure == 0.0 || !self.view.reservations.is_empty() {
            return Ok(());
        }
        Err(self.broken(Law::Pressure, format!("its pressure is {pressure} at rest")))
    }

    /// Returns an error if the tree at rest has more runs than the policy allows itself.
    pub(super) fn bounded(&self) -> Result<(), LawError> {
        let tree = &self.view.tree;
        let runs = |level: usize| tree.levels()[level].runs().len() as u64;
        let levels = 0..tree.levels().len();
        let allowed = |level: usize| match self.shape() {
            Shape::Unmerged | Shape::Stack { .. } => u64::MAX,
            // The last level has none to merge into.
            Shape::Tiered { .. } if level + 1 >= lsmith_tree::LEVELS_MAX => u64::MAX,
            Shape::Tiered { ratio } => ratio - 1,
            Shape::Leveled { level0_runs, .. } if level == 0 => level0_runs,
            Shape::Leveled { .. } => 1,
        };
        if let Some(level) = levels.into_iter().find(|level| runs(*level) > allowed(*level)) {
            let what = format!("level {level} keeps {} runs", runs(level));
            return Err(self.broken(Law::Progress, what));
        }
        match self.shape() {
            Shape::Stack { runs_max } if tree.disk_run_count() as u64 > runs_max => {
                let what = format!("{} runs stay of {runs_max} allowed", tree.disk_run_count());
                Err(self.broken(Law::Progress, what))
            }
            _ => Ok(()),
        }
    }
}

fn words(plan: &Option<MergePlan>) -> String {
    plan.as_ref().map_or_else(|| "none".to_string(), |plan| plan.to_string())
}
