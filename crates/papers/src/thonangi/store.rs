//! The real store as an index.

use super::index::{Cpu, Index};
use super::steady::Bench;
use crate::store::{Stopwatch, builder, check_plans};
use crate::unsynced::Unsynced;
use anyhow::bail;
use lsmith::{DEFAULT_KEYSPACE, Keyspace, Observer, PersistMode, Store};
use lsmith_lab::{Scratch, thread_cpu_seconds};
use lsmith_sim::BlockSizes;
use lsmith_tree::{Tree, logical_bytes};
use lsmith_workload::{Op, OpKind, Workload, fill_value, value_seed};
use std::sync::Arc;

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

impl<'a> StoreIndex<'a> {
    /// Makes an empty store in a new directory for `bench`, whose workload is `workload`.
    pub(super) fn open(bench: &Bench, workload: &'a Workload) -> anyhow::Result<StoreIndex<'a>> {
        let dir = Scratch::new("lsmith-reproduce-")?;
        let BlockSizes { memory_blocks, per_block, entry_bytes } = bench.sizes();
        let stopwatch = Arc::new(Stopwatch::default());
        let observer: Arc<dyn Observer> = Arc::<Stopwatch>::clone(&stopwatch);
        let store = builder(dir.path(), Unsynced::default())
            .policy(bench.build_policy()?)
            .memtable_bytes(memory_blocks * per_block as u64 * entry_bytes)
            .block_bytes(BLOCK_BYTES as usize)
            .persist(PersistMode::Buffer)
            .observer(observer)
            .open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let tree = keyspace.tree();
        let (key, value, requests) = (Vec::new(), Vec::new(), 0);
        let _dir = dir;
        Ok(StoreIndex { store, keyspace, tree, workload, key, value, requests, stopwatch, _dir })
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
        Cpu { all: thread_cpu_seconds(), choosing, merging: self.stopwatch.times().cpu_seconds }
    }
}

impl StoreIndex<'_> {
    /// Fails if merges were refused or given up.
    pub(super) fn check(&self) -> anyhow::Result<()> {
        check_plans(&self.keyspace)
    }
}
