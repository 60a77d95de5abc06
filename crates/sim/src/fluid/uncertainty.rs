//! How far expected sizes may be off.
//!
//! A fluid simulation makes the decisions of a policy on expected sizes. Where real sizes, which
//! vary by chance, decide otherwise, an answer may be off by a whole merge of a level. So the error
//! is measured: the workload is simulated again, with changes as small as chance makes them, and
//! with other bounds of the parts of the key space. What answers then differ by is their spread.
//! What such changes do not show has constants, from measured errors (`docs/model.md`).

use super::FluidWorkload;
use super::run::{Variation, simulate_varied};
use crate::{Figures, SimError, Simulation, simulate_fluid};
use lsmith_policy::{MergePolicy, Shape};
use lsmith_tree::{BLOCK_BYTES_USUAL, MergePlan, Tree};
use std::sync::Arc;

/// The error of stacks, besides the spread.
const STACKS: f64 = 0.012;

/// The added error of stacks: this over the entries of a memtable, which ends with a whole entry.
const FEW_OF_STACKS: f64 = 0.3;

/// The error of levels of many tables.
const LEVELS: f64 = 0.015;

/// The added error of levels: this over the entries of a table. Tables of few entries vary in size.
const FEW: f64 = 1.5;

/// The added error of policies that compare sizes which are equal but for chance, and of policies
/// that take windows of whole entries. The changes that are tried do not show all of it.
const TIES: f64 = 0.05;
const WINDOWS: f64 = 0.03;

/// The spreads by which an answer may be off. The few changes that are tried do not find the
/// largest one.
const SPREADS: f64 = 1.25;

/// The bytes at which memtables are sealed in changed simulations, over the usual ones.
const FACTORS: [f64; 2] = [0.99, 1.01];

/// The same for policies that compare sizes which are equal but for chance. There are more courses
/// that merges can take.
const FACTORS_OF_TIES: [f64; 6] = [0.98, 0.99, 0.997, 1.003, 1.01, 1.02];

/// The same if the number of keys is known, and no table overlaps another by chance.
const SAME: [f64; 2] = [1.0; 2];

/// The standard deviation of the size of a memtable in changed simulations, over the standard
/// deviation of a random number of so many entries.
const CHANCE: f64 = 0.3;

/// The error of policies that keep blocks, if windows hold many entries.
const BLOCKS: f64 = 0.05;

/// The added error of policies that keep blocks, if each entry fills a block. The more entries a
/// block has, the less they vary.
const BLOCKS_OF_ONE: f64 = 0.15;

/// The added error of policies that keep blocks, if keys are hashes of numbers in a row. Such keys
/// do not lie as by chance, and whole levels merge or not by a few blocks.
const HASHED: f64 = 0.10;

/// The added error of policies that keep blocks, if keys that are written together lie together.
const CLUSTERS: f64 = 0.20;

/// The added error under policies that use append tables: this over the entries of a memtable.
/// Expected trees are equally large, where real ones vary, and are split and fused one by one.
const TREES: f64 = 30.0;

/// The added error under policies that use append tables if all writes are for new keys. Expected
/// trees grow alike and are split at the same moment, where real ones are split one by one. So what
/// a load has written for splits up to its end may be off by as much.
const SPLITS: f64 = 0.1;

/// The added error if a single entry between two trees makes a tree. It is then fused with a
/// neighbour. Expected sizes have no such gaps.
const TREES_OF_ONE: f64 = 0.25;

/// The part of a level that one merge takes, by default.
const WINDOW: f64 = 0.07;

/// The least entries of a memtable if plans cut levels into tables.
const TABLE_ENTRIES_MIN: f64 = 16.0;

/// The least entries of a memtable if plans take windows of blocks.
const BLOCK_ENTRIES_MIN: f64 = 64.0;

impl FluidWorkload {
    /// Returns how far the write costs of `found`, a fluid simulation under `policy`, may be off: a
    /// keyed simulation should find costs that differ from them by at most this share of them. The
    /// claim is about write costs alone. Where these simulations do not [keep
    /// tables](FluidWorkload::keeps_tables), it is about a keyed simulation with rewrites: one that
    /// keeps tables may write less.
    ///
    /// Simulates the workload two to eight times more.
    ///
    /// # Errors
    /// Fails as [`simulate_fluid`] does.
    pub fn uncertainty(
        &self,
        policy: &Arc<dyn MergePolicy>,
        memtable_bytes: u64,
        found: &Simulation,
    ) -> Result<f64, SimError> {
        let mut spread = 0.0_f64;
        for variation in self.variations(&**policy, memtable_bytes, &found.figures) {
            let other = simulate_varied(policy, self, memtable_bytes, &variation, &mut |_| {})?;
            spread = spread.max(difference(&found.figures, &other.figures));
        }
        // Whole runs do not depend on the parts of the key space.
        let others = [self.coarser(), self.narrower()].into_iter().flatten();
        for other in others.filter(|_| takes_parts(&**policy)) {
            let other = simulate_fluid(policy, &other, memtable_bytes, &mut |_| {})?;
            spread = spread.max(difference(&found.figures, &other.figures));
        }
        Ok(self.usual_error(&**policy, memtable_bytes, &found.tree) + SPREADS * spread)
    }

    /// Returns changes as small as chance makes them. The number of keys in a table always varies;
    /// in a whole run it may be known. Then a few bytes more or less show whether a policy compares
    /// sizes that are nearly equal.
    fn variations(
        &self,
        policy: &dyn MergePolicy,
        memtable_bytes: u64,
        found: &Figures,
    ) -> Vec<Variation> {
        let entries = memtable_bytes as f64 / self.entry_bytes();
        let needs = policy.needs();
        // In a load in key order each write has an entry of its own, so the sizes of whole runs are
        // known. There are few bytes of merges to compare with, and one merge more or less would
        // pass for a great error.
        if needs.appends || self.keeps_tables() && !takes_parts(policy) {
            return Vec::new();
        }
        let chance = CHANCE / entries.max(1.0).sqrt();
        let is_known = if takes_parts(policy) { self.is_swept() } else { !self.is_drawn() };
        let (factors, spread) = match (is_known, needs.exact_sizes) {
            (true, _) => (&SAME[..], chance / 10.0),
            (false, true) => (&FACTORS_OF_TIES[..], chance),
            // A policy that keeps blocks seals small parts of a memtable.
            (false, false) => (&FACTORS[..], if needs.blocks { 0.0 } else { chance }),
        };
        let variation = |(seed, factor): (u64, &f64)| Variation {
            seed,
            factor: *factor,
            spread,
            flushes_max: found.parts.flushes,
        };
        (2..).zip(factors).map(variation).collect()
    }

    /// Returns the relative error of write costs that was not exceeded, as far as it does not hang
    /// on chance or on the parts of the key space. Tables and windows of few entries vary more than
    /// expected sizes do.
    fn usual_error(&self, policy: &dyn MergePolicy, memtable_bytes: u64, tree: &Tree) -> f64 {
        let needs = policy.needs();
        let entries = memtable_bytes as f64 / self.entry_bytes();
        let mut error = match (needs.blocks, takes_parts(policy)) {
            (true, _) => BLOCKS + 2.5 / (WINDOW * entries).max(1.0),
            (false, true) => LEVELS + FEW / table_entries(tree).unwrap_or(entries).min(entries),
            (false, false) => STACKS + FEW_OF_STACKS / entries,
        };
        if needs.exact_sizes {
            error += TIES;
        }
        if needs.windows && !needs.blocks {
            error += WINDOWS;
        }
        if needs.blocks {
            error += BLOCKS_OF_ONE * (self.entry_bytes() / BLOCK_BYTES_USUAL as f64).min(1.0);
        }
        if needs.blocks && self.is_hashed() {
            error += HASHED;
        }
        if needs.blocks && self.is_clustered() {
            error += CLUSTERS;
        }
        if let (true, Shape::Leveled { ratio, .. }) = (needs.appends, policy.shape()) {
            let least = entries / (ratio * MergePlan::NEW_APPEND_PARTS as f64);
            let is_one = least < 1.0;
            error += if is_one { TREES_OF_ONE } else { (TREES / entries).min(TREES_OF_ONE) };
            error += SPLITS * self.live_entries(self.writes()) / self.writes().max(1.0);
        }
        error
    }

    /// Checks that tables and windows hold enough entries for their expected sizes to mean
    /// anything. [`simulate_fluid`](crate::simulate_fluid) does not check that.
    ///
    /// # Errors
    /// Fails with [`SimError::FewEntries`] if they do not.
    pub fn check_entries(
        &self,
        policy: &dyn MergePolicy,
        memtable_bytes: u64,
    ) -> Result<(), SimError> {
        let least = match (policy.needs().blocks, is_leveled(policy)) {
            (true, _) => BLOCK_ENTRIES_MIN,
            (false, true) => TABLE_ENTRIES_MIN,
            (false, false) => return Ok(()),
        };
        let entries = memtable_bytes as f64 / self.entry_bytes();
        if entries >= least {
            return Ok(());
        }
        let entry_bytes = self.entry_bytes() as u64;
        let memtable_bytes_min = (least * self.entry_bytes()).ceil() as u64;
        Err(SimError::FewEntries { policy: policy.spec(), entry_bytes, memtable_bytes_min })
    }
}

fn is_leveled(policy: &dyn MergePolicy) -> bool {
    matches!(policy.shape(), Shape::Leveled { .. })
}

/// Returns true if merges take parts of runs.
fn takes_parts(policy: &dyn MergePolicy) -> bool {
    is_leveled(policy) || policy.needs().windows
}

/// Returns the mean number of entries of a table below level 0; `None` if there is none.
fn table_entries(tree: &Tree) -> Option<f64> {
    let below = tree.levels().iter().skip(1).flat_map(|level| level.runs());
    let slices = || below.clone().flat_map(|run| run.slices().iter());
    let entries: u64 = slices().map(|slice| slice.size().entries).sum();
    let count = slices().count();
    (count > 0).then(|| (entries as f64 / count as f64).max(1.0))
}

/// Returns the largest relative difference between two write costs.
fn difference(found: &Figures, other: &Figures) -> f64 {
    let costs = |figures: &Figures| {
        [figures.write_cost_eager, figures.write_cost_system, figures.write_cost_blocks]
    };
    let pairs = costs(found).into_iter().zip(costs(other));
    let differences = pairs.map(|(found, other)| (other / found - 1.0).abs());
    // A cost of nothing is no number.
    differences.filter(|difference| difference.is_finite()).fold(0.0, f64::max)
}
