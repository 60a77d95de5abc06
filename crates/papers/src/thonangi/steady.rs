//! The protocol of section V: an index grows by inserts, reaches a steady state, and is measured.

use super::index::{Cpu, Index};
use crate::Task;
use anyhow::{Context, bail};
use lsmith_lab::Ticker;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{BlockSim, BlockSizes};
use lsmith_spec::Spec;
use lsmith_tree::{LevelId, Tree};
use lsmith_workload::{NoInputs, Ops, Workload};
use std::sync::Arc;

/// Bytes of a key.
const KEY_BYTES: u64 = 4;
/// The default bytes of a payload.
const PAYLOAD_BYTES: u64 = 100;
/// Bytes of a data block.
const BLOCK_BYTES: u64 = 4096;
/// The paper's ratio of neighbouring levels, which is the default of its policies.
const RATIO: u64 = 10;
/// Requests between two looks at the tree: far fewer than between two merges.
const STRIDE: u64 = 64;
/// Requests of a workload in a steady state: more than any measurement needs.
pub(super) const REQUESTS_MAX: u64 = 3_000_000_000;
/// A tree that is not steady after this many requests never will be. The unit is the capacity of
/// the second-to-last level.
const PATIENCE: u64 = 100;
/// The records over which a tree of three levels is measured, in capacities of the second-to-last
/// level. A tree of more levels is measured over one capacity, which is ten times as large.
const CYCLES: u64 = 2;

/// A bound above the slices of any run in these figures.
const SLICES_MAX: u64 = 1 << 20;

/// The keys of inserts and deletes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Keys {
    Uniform,
    /// `sigma` is a part of the domain; `omega` is the inserts between two moves of the mean.
    Normal {
        sigma: f64,
        omega: u64,
    },
    /// The number of districts of all warehouses together.
    Tpc {
        districts: u64,
    },
}

impl Keys {
    /// The paper's standard `normal`.
    pub(super) const NORMAL: Keys = Keys::Normal { sigma: 0.005, omega: 10_000 };

    /// `tpc` with a hundred warehouses.
    pub(super) const TPC: Keys = Keys::Tpc { districts: 1000 };
}

/// Returns the orders of the standard size in this many megabytes.
pub(super) fn orders(size_mb: u64) -> u64 {
    size_mb * 1_000_000 / (KEY_BYTES + PAYLOAD_BYTES)
}

/// A policy of the caller, or none.
#[derive(Clone, Debug, Default)]
pub(super) struct Own(Option<Arc<dyn MergePolicy>>);

impl PartialEq for Own {
    fn eq(&self, other: &Own) -> bool {
        let spec = |Own(own): &Own| own.as_ref().map(|own| own.spec());
        spec(self) == spec(other)
    }
}

/// An index and its workload, in the paper's sizes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bench {
    /// The spec of the policy; without its rate if the policy is one of the paper's.
    pub(super) policy: String,
    /// The policy that `policy` names, if it is one of the caller's.
    pub(super) own: Own,
    pub(super) keys: Keys,
    /// Megabytes of present records.
    pub(super) dataset_mb: u64,
    pub(super) payload_bytes: u64,
    /// K_0: the blocks of memory.
    pub(super) memory_blocks: u64,
    /// The part of a level that a partial merge reads.
    pub(super) rate: f64,
    /// The factor by which data, memory, `omega` and districts are reduced for the measurement.
    pub(super) shrink: u64,
}

/// The costs of a steady state.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Steady {
    /// Data blocks written per megabyte of requests.
    pub(super) write_cost_blocks: f64,
    /// The same cost by output level, the paper's level 1 first.
    pub(super) level_costs: Vec<f64>,
    /// The number of levels, including memory.
    pub(super) levels: usize,
    /// Records that left memory, per megabyte of requests.
    pub(super) records_merged: f64,
    /// Blocks in the bottom level per block of its capacity.
    pub(super) bottom_fill: f64,
    /// The learned thresholds as a parameter, such as `0.3/0.5`; empty if there are none.
    pub(super) tau: String,
    /// The learned decision for the bottom level, if any.
    pub(super) beta: Option<bool>,
    /// CPU time of the index, per megabyte of requests.
    pub(super) cpu: Cpu,
}

impl Steady {
    pub(super) fn cost(&self) -> f64 {
        self.write_cost_blocks
    }
}

impl Bench {
    /// Returns the setting of section V for one policy.
    pub(super) fn standard(policy: &str, keys: Keys, dataset_mb: u64, shrink: u64) -> Bench {
        let (policy, own) = (policy.to_owned(), Own::default());
        let payload_bytes = PAYLOAD_BYTES;
        let memory_blocks = 4000;
        let rate = 0.07;
        Bench { policy, own, keys, dataset_mb, payload_bytes, memory_blocks, rate, shrink }
    }

    /// Returns the setting of sections III-E and IV.
    pub(super) fn small(policy: &str, keys: Keys, dataset_mb: u64, shrink: u64) -> Bench {
        let memory_blocks = 250;
        let rate = 0.05;
        Bench { memory_blocks, rate, ..Bench::standard(policy, keys, dataset_mb, shrink) }
    }

    /// Returns the bench with the caller's policy, if `policy` names one.
    pub(super) fn with_own(self, task: &Task<'_>) -> Bench {
        Bench { own: Own(task.own(&self.policy)), ..self }
    }

    pub(super) fn record_bytes(&self) -> u64 {
        KEY_BYTES + self.payload_bytes
    }

    pub(super) fn sizes(&self) -> BlockSizes {
        // One byte of a record is neither key nor payload. A block then holds 136 records of 25
        // bytes, as in the paper, or one of 4000.
        let per_block = BLOCK_BYTES / (self.record_bytes() + 1);
        BlockSizes {
            memory_blocks: (self.memory_blocks / self.shrink).max(1),
            per_block: per_block as usize,
            entry_bytes: self.record_bytes(),
        }
    }

    pub(super) fn records(&self) -> u64 {
        (self.dataset_mb * 1_000_000 / self.record_bytes() / self.shrink).max(1)
    }

    /// Returns the approximate requests of the measurement: the growth, and a few times the level
    /// above the bottom, which grows with the data in steps.
    pub(super) fn work(&self) -> u64 {
        self.records() * 4
    }

    /// Returns a load to the full size, then `requests`. A part `deletes` of them are deletes.
    pub(super) fn workload(&self, deletes: f64, requests: u64) -> anyhow::Result<Workload> {
        let keys = match self.keys {
            Keys::Uniform => Spec::bare("uniform"),
            Keys::Normal { sigma, omega } => {
                let omega = (omega / self.shrink).max(1);
                Spec::bare("normal").with("sigma", sigma).with("omega", omega)
            }
            // Memory holds as many orders of a district as at the paper's scale.
            Keys::Tpc { districts } => {
                let districts = districts / self.shrink;
                // Keys depend only on the total of districts; there are at most 10,000 warehouses.
                let of_each = if districts > 100_000 { 100 } else { 10 };
                let warehouses = (districts / of_each).max(1);
                Spec::bare("tpc").with("warehouses", warehouses).with("districts", of_each)
            }
        };
        let spec = keys
            .with("keys", self.records())
            .with("ops", requests)
            .with("deletes", deletes)
            .with("value", format!("{}B", self.payload_bytes))
            .with("weigh", "records");
        Ok(Workload::from_spec(&spec, &NoInputs)?)
    }

    pub(super) fn build_policy(&self) -> anyhow::Result<Arc<dyn MergePolicy>> {
        if let Own(Some(own)) = &self.own {
            return Ok(Arc::clone(own));
        }
        let own: Spec = self.policy.parse()?;
        let rated = if own.name == "full" { own } else { own.with("rate", self.rate) };
        // The paper has no bound on the pieces of a level.
        let spec = rated.with("slices_max", SLICES_MAX);
        Ok(Registry::builtin().build_spec(&spec)?)
    }
}

/// An index that runs a workload.
pub(super) struct Course<'a, I> {
    pub(super) index: I,
    pub(super) ops: Ops<'a>,
    pub(super) ticker: &'a Ticker<'a>,
}

impl<I: Index> Course<'_, I> {
    /// Makes `count` requests.
    pub(super) fn run(&mut self, count: u64) -> anyhow::Result<()> {
        for _ in 0..count {
            let op = self.ops.next().context("the workload has ended")??;
            self.index.write(&op)?;
        }
        self.index.look();
        self.ticker.tick(count);
        Ok(())
    }
}

/// A tree on its way to a steady state, or in it.
pub(super) struct Settling<'a, I> {
    pub(super) course: Course<'a, I>,
    sizes: BlockSizes,
    learns: bool,
    /// Bytes of key and payload per request.
    request_bytes: u64,
    /// The number of requests since the load.
    requests: u64,
}

/// The counters at one moment.
struct Moment {
    requests: u64,
    cpu: Cpu,
    records_merged: u64,
    blocks_written: Vec<u64>,
}

/// One level while a tree is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LevelNow {
    /// Blocks written to the level since the tree was created.
    pub(super) written: u64,
    /// Merges into the level since then.
    pub(super) merges: u64,
    /// The blocks of the level.
    pub(super) blocks: u64,
}

impl<I: Index> Settling<'_, I> {
    fn tree(&self) -> &Tree {
        self.course.index.tree()
    }

    /// Returns the paper's number of the deepest level with data.
    fn bottom(&self) -> usize {
        let levels = self.tree().levels();
        levels.iter().rposition(|level| !level.runs().is_empty()).unwrap_or(0)
    }

    fn blocks(&self, level: usize) -> u64 {
        self.tree().runs_at(LevelId::Disk(level)).iter().map(|run| run.cell_count()).sum()
    }

    fn capacity(&self, level: usize) -> u64 {
        self.sizes.memory_blocks * RATIO.pow(level as u32)
    }

    /// Returns the records that fit into the level above the bottom.
    fn records_above_bottom(&self) -> u64 {
        self.capacity(self.bottom().saturating_sub(1)) * self.sizes.per_block as u64
    }

    /// Returns the records that have moved down into the bottom level: the inputs of merges into
    /// it, minus the records that were in it before.
    fn moved(&self) -> u64 {
        let level = &self.tree().levels()[self.bottom()];
        let counters = level.counters();
        let here: u64 = level.runs().iter().map(|run| run.bytes()).sum();
        let gone = counters.bytes_written + counters.bytes_reused + counters.bytes_moved;
        let moved = counters.bytes_in + counters.bytes_from_memory + here - gone;
        moved / self.sizes.entry_bytes
    }

    /// Makes requests until `is_over`.
    fn until(&mut self, is_over: impl Fn(&Self) -> bool) -> anyhow::Result<()> {
        let patience = self.records_above_bottom() * PATIENCE;
        let mut made = 0;
        while !is_over(self) {
            if made > patience {
                bail!("no steady state after {made} requests");
            }
            self.course.run(STRIDE)?;
            self.requests += STRIDE;
            made += STRIDE;
        }
        Ok(())
    }

    /// Makes requests until at least `records` more have moved down into the bottom level, and the
    /// merge that moves the last one has ended.
    fn until_moved(&mut self, records: u64) -> anyhow::Result<()> {
        let aim = self.moved() + records;
        self.until(|settling| settling.moved() >= aim)
    }

    /// Returns true if nothing is left to learn for a tree of this height.
    fn has_learned(&self) -> bool {
        let memo = self.tree().memo();
        let height = memo.text("learned_at").and_then(|text| text.split(' ').next());
        memo.text("learn") == Some("done") && height == Some(&self.bottom().to_string())
    }

    fn settle(&mut self) -> anyhow::Result<()> {
        self.until_moved(self.records_above_bottom())?;
        if self.learns {
            self.until(Self::has_learned)?;
        }
        // A cycle begins just after records have moved down.
        self.until_moved(1)
    }

    /// Makes the requests of a measurement, which begins with a cycle, and returns the costs.
    pub(super) fn measure(&mut self) -> anyhow::Result<Steady> {
        let start = self.now();
        let cycle = self.records_above_bottom();
        self.until_moved(if self.bottom() < 3 { cycle * CYCLES } else { cycle })?;
        self.found(&start, &self.now())
    }

    /// Returns the megabytes of requests since the load.
    pub(super) fn megabytes(&self) -> f64 {
        (self.requests * self.request_bytes) as f64 / 1e6
    }

    /// Makes requests until there were `megabytes` of them. Returns the levels, the paper's level 1
    /// first, after every few requests, with the megabytes so far.
    pub(super) fn watch(&mut self, megabytes: f64) -> anyhow::Result<Vec<(f64, Vec<LevelNow>)>> {
        let requests = (megabytes * 1e6 / self.request_bytes as f64) as u64;
        let mut seen = vec![(0.0, self.levels())];
        for stride in 1..=requests / STRIDE {
            self.course.run(STRIDE)?;
            let bytes = stride * STRIDE * self.request_bytes;
            seen.push((bytes as f64 / 1e6, self.levels()));
        }
        Ok(seen)
    }

    fn levels(&self) -> Vec<LevelNow> {
        let levels = self.tree().levels().iter().enumerate().skip(1);
        let now = levels.map(|(level, counted)| {
            let counters = counted.counters();
            let blocks = self.blocks(level);
            LevelNow { written: counters.blocks_written, merges: counters.merges, blocks }
        });
        now.collect()
    }

    fn now(&self) -> Moment {
        let levels: Vec<_> =
            self.tree().levels().iter().skip(1).map(|level| level.counters()).collect();
        let from_memory: u64 = levels.iter().map(|level| level.bytes_from_memory).sum();
        Moment {
            requests: self.requests,
            cpu: self.course.index.cpu(),
            records_merged: from_memory / self.sizes.entry_bytes,
            blocks_written: levels.iter().map(|level| level.blocks_written).collect(),
        }
    }

    fn found(&self, start: &Moment, end: &Moment) -> anyhow::Result<Steady> {
        let requests_bytes = (end.requests - start.requests) * self.request_bytes;
        let requests_mb = requests_bytes as f64 / 1e6;
        let levels = start.blocks_written.iter().zip(&end.blocks_written);
        let level_costs: Vec<f64> =
            levels.map(|(before, after)| (after - before) as f64 / requests_mb).collect();
        let bottom = self.bottom();
        let memo = self.tree().memo();
        let tenths = (2..bottom).map_while(|level| memo.text(&format!("tau_{level}")));
        let taus = tenths.map(|tenths| anyhow::Ok((tenths.parse::<f64>()? / 10.0).to_string()));
        Ok(Steady {
            write_cost_blocks: level_costs.iter().sum(),
            level_costs,
            levels: bottom + 1,
            records_merged: (end.records_merged - start.records_merged) as f64 / requests_mb,
            bottom_fill: self.blocks(bottom) as f64 / self.capacity(bottom) as f64,
            tau: taus.collect::<anyhow::Result<Vec<String>>>()?.join("/"),
            beta: memo.text("beta").map(|text| text == "true"),
            cpu: end.cpu.since(start.cpu).per(requests_mb),
        })
    }
}

impl Bench {
    /// Returns an empty simulation of the index.
    pub(super) fn sim(&self) -> anyhow::Result<BlockSim> {
        Ok(BlockSim::new(&self.build_policy()?, self.sizes()))
    }

    /// Grows the empty `index`, brings it to its steady state, and calls `measure` with it.
    pub(super) fn when_steady<I: Index, T>(
        &self,
        index: I,
        ticker: &Ticker<'_>,
        measure: impl FnOnce(&mut Settling<'_, I>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let workload = self.workload(0.5, REQUESTS_MAX)?;
        let mut course = Course { index, ops: workload.ops(), ticker };
        course.run(workload.load_ops())?;
        measure(&mut self.settled(course)?)
    }

    /// Brings an index that has grown to its steady state.
    pub(super) fn settled<'a, I: Index>(
        &self,
        course: Course<'a, I>,
    ) -> anyhow::Result<Settling<'a, I>> {
        let spec = self.build_policy()?.spec();
        let learns =
            spec.name == "mixed" && (spec.param("tau").is_none() || spec.param("beta").is_none());
        let sizes = self.sizes();
        let request_bytes = self.record_bytes();
        let mut settling = Settling { course, sizes, learns, request_bytes, requests: 0 };
        settling.settle()?;
        Ok(settling)
    }

    /// Returns true if this and `other` are the same while they grow.
    pub(super) fn grows_as(&self, other: &Bench) -> bool {
        Bench { dataset_mb: self.dataset_mb, ..other.clone() } == *self
    }
}
