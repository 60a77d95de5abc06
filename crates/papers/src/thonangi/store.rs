//! The real store as an index.

use super::index::{Cpu, Index};
use super::steady::Bench;
use crate::unsynced::Unsynced;
use anyhow::bail;
use lsmith::{DEFAULT_KEYSPACE, Event, Keyspace, Observer, PersistMode, Store};
use lsmith_lab::{Scratch, thread_cpu_seconds};
use lsmith_sim::BlockSizes;
use lsmith_tree::{Tree, logical_bytes};
use lsmith_workload::{Op, OpKind, Workload, fill_value, value_seed};
use std::sync::{Arc, Mutex};

/// Bytes of a data block.
const BLOCK_BYTES: u64 = 4096;
/// Logical bytes of an entry besides key and value. Payloads are shorter by these bytes, so that
/// entries and levels are as large as the paper's.
const ENTRY_BYTES: usize = logical_bytes(0, 0) as usize;

/// A store in lockstep: the writing thread runs merges.
pub(super) struct StoreIndex<'a> {
    store: Store,
    keyspace: Keyspace,
    tree: Tree,
    workload: &'a Workload,
    key: Vec<u8>,
    value: Vec<u8>,
    requests: u64,
    stopwatch: Arc<Stopwatch>,
    /// The directory of the store, removed on drop.
    _dir: Scratch,
}

/// Measures the CPU time of merges from plan to commit. In lockstep one thread runs them.
#[derive(Debug, Default)]
struct Stopwatch(Mutex<Times>);

#[derive(Debug, Default)]
struct Times {
    /// The CPU seconds of the thread at the start of the current plan.
    start: Option<f64>,
    /// The CPU seconds of all merges so far.
    sum: f64,
}

impl Stopwatch {
    fn times(&self) -> std::sync::MutexGuard<'_, Times> {
        self.0.lock().expect("no observer panics")
    }
}

impl Observer for Stopwatch {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        match event {
            Event::Planned { .. } => self.times().start = Some(thread_cpu_seconds()),
            Event::Committed { .. } => {
                let mut times = self.times();
                if let Some(start) = times.start.take() {
                    times.sum += thread_cpu_seconds() - start;
                }
            }
            _ => {}
        }
    }
}

impl<'a> StoreIndex<'a> {
    /// Makes an empty store in a new directory for `bench`, whose workload is `workload`.
    pub(super) fn open(bench: &Bench, workload: &'a Workload) -> anyhow::Result<StoreIndex<'a>> {
        let dir = Scratch::new("lsmith-reproduce-")?;
        let BlockSizes { memory_blocks, per_block, entry_bytes } = bench.sizes();
        let stopwatch = Arc::new(Stopwatch::default());
        let observer: Arc<dyn Observer> = Arc::<Stopwatch>::clone(&stopwatch);
        let store = Store::builder(dir.path())
            .env(Arc::new(Unsynced::default()))
            .policy(bench.build_policy()?)
            .memtable_bytes(memory_blocks * per_block as u64 * entry_bytes)
            .block_bytes(BLOCK_BYTES as usize)
            .persist(PersistMode::Buffer)
            .lockstep(true)
            .observer(observer)
            .open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let tree = keyspace.tree();
        let key = Vec::new();
        let value = Vec::new();
        let requests = 0;
        Ok(StoreIndex {
            store,
            keyspace,
            tree,
            workload,
            key,
            value,
            requests,
            stopwatch,
            _dir: dir,
        })
    }
}

impl Index for &mut StoreIndex<'_> {
    fn write(&mut self, op: &Op) -> anyhow::Result<()> {
        let StoreIndex { keyspace, workload, key, value, .. } = self;
        workload.key(op.item, key);
        match op.kind {
            OpKind::Insert => {
                value.resize((op.value_bytes as usize).saturating_sub(ENTRY_BYTES), 0);
                fill_value(value_seed(workload.seed(), op.item, self.requests), value);
                keyspace.put_new_unchecked(key, value)?;
            }
            OpKind::Remove => keyspace.delete_single_unchecked(key)?,
            other => bail!("this index is only inserted into and removed from: no {other:?}"),
        }
        self.requests += 1;
        Ok(())
    }

    fn look(&mut self) {
        self.tree = self.keyspace.tree();
    }

    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn cpu(&self) -> Cpu {
        let choosing = self.store.stats().planning_nanos as f64 * 1e-9;
        Cpu { all: thread_cpu_seconds(), choosing, merging: self.stopwatch.times().sum }
    }
}

impl StoreIndex<'_> {
    /// Fails if merges were refused or given up: another policy would have had these costs.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        let stats = self.store.stats();
        if stats.plans_refused + stats.plans_failed > 0 {
            bail!(
                "{} plans of {} were refused, {} failed",
                stats.plans_refused,
                self.keyspace.merge_policy(),
                stats.plans_failed
            );
        }
        Ok(())
    }
}
