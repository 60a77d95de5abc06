//! Reads of the aged store.

use super::aging::{Aging, KEY_BYTES, TABLE_BYTES, VALUE_BYTES};
use crate::unsynced::{ReadCount, Unsynced};
use anyhow::bail;
use lsmith::{Builder, DEFAULT_KEYSPACE, Event, Keyspace, Observer, PersistMode, Store};
use lsmith_lab::{Scratch, Ticker, thread_cpu_seconds};
use lsmith_workload::{Rng, fill_value};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

/// Memory for blocks is the data over this.
const CACHE_PART: u64 = 10;

/// Seconds that the device takes for a read. They are added to the CPU time of a lookup, and nobody
/// waits for them, so that other work of the machine does not matter.
pub(crate) const READ_SECONDS: f64 = 100e-6;

/// A policy on the real store.
#[derive(Clone, Debug)]
pub(super) struct Reading(pub(super) Aging);

/// Costs of the aged store.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Read {
    /// Bytes written to tables per byte of updates, key and value. Nodes and filters are in it.
    pub(super) write: f64,
    /// Bytes of files per live byte, at rest after each flush.
    pub(super) space: f64,
    /// Lookups per second of one reader.
    pub(super) lookups: f64,
    /// Seconds that the median lookup takes.
    pub(super) p50: f64,
    /// Seconds that all but a hundredth of lookups take at most.
    pub(super) p99: f64,
    /// Reads of the device per lookup.
    pub(super) device_reads: f64,
    /// CPU seconds per lookup.
    pub(super) cpu: f64,
}

/// The bytes of files at each rest.
#[derive(Debug, Default)]
struct Rests(Mutex<Vec<f64>>);

impl Rests {
    fn all(&self) -> MutexGuard<'_, Vec<f64>> {
        self.0.lock().expect("no one panics while holding it")
    }
}

impl Observer for Rests {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Rest { table_bytes, .. } = event {
            self.all().push(*table_bytes as f64);
        }
    }
}

impl Reading {
    pub(super) fn work(&self) -> u64 {
        self.0.work()
    }

    pub(super) fn measure(&self, ticker: &Ticker<'_>) -> anyhow::Result<Read> {
        let Reading(aging) = self;
        let keys = aging.keys();
        let entry = (KEY_BYTES + VALUE_BYTES) as u64;
        let dir = Scratch::new("lsmith-reproduce-")?;
        let reads = Arc::new(ReadCount::default());
        let rests = Arc::new(Rests::default());
        let observer: Arc<dyn Observer> = Arc::<Rests>::clone(&rests);
        let builder = builder(aging, dir.path(), &reads);
        let store = builder.observer(observer).open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let written = || {
            let stats = store.stats();
            stats.flush_bytes + stats.merge_bytes_written
        };
        let mut ranks = aging.ranks();
        write(&keyspace, ranks.by_ref().take(keys as usize), ticker)?;
        let loaded = written();
        rests.all().clear();
        write(&keyspace, ranks, ticker)?;
        let stats = store.stats();
        if stats.plans_refused + stats.plans_failed > 0 {
            bail!("{}: plans were refused or failed", aging.spec);
        }
        let live = (keys * entry) as f64;
        let write = (written() - loaded) as f64 / (live * aging.rounds as f64);
        let held = std::mem::take(&mut *rests.all());
        let space = held.iter().sum::<f64>() / held.len().max(1) as f64 / live;
        Ok(Read { write, space, ..look_up(&keyspace, keys, &reads)? })
    }
}

/// Returns what opens the store of `aging` in `dir`. `reads` counts the reads of its device.
pub(crate) fn builder(aging: &Aging, dir: &Path, reads: &Arc<ReadCount>) -> Builder {
    let entry = (KEY_BYTES + VALUE_BYTES) as u64;
    Store::builder(dir)
        .env(Arc::new(Unsynced::counting(reads)))
        .policy(aging.spec.clone())
        .memtable_bytes(TABLE_BYTES / aging.shrink)
        .cache_bytes(aging.keys() * entry / CACHE_PART)
        .persist(PersistMode::Buffer)
        .lockstep(true)
}

/// Writes all keys of `ranks`, in their order.
pub(crate) fn write(
    space: &Keyspace,
    ranks: impl Iterator<Item = u32>,
    ticker: &Ticker<'_>,
) -> anyhow::Result<()> {
    let mut value = [0; VALUE_BYTES];
    for (write, rank) in ranks.enumerate() {
        fill_value(write as u64, &mut value);
        space.put(u64::from(rank).to_be_bytes(), value)?;
        if write % 1024 == 1023 {
            ticker.tick(1024);
        }
    }
    Ok(())
}

/// Looks each key up once on average, at random, when as many lookups have filled the cache.
fn look_up(space: &Keyspace, keys: u64, reads: &ReadCount) -> anyhow::Result<Read> {
    let mut rng = Rng::new(2, 0);
    let mut next = || rng.below(keys).to_be_bytes();
    for _ in 0..keys {
        space.get(next())?;
    }
    let mut seconds = Vec::with_capacity(keys as usize);
    let mut all = Read::default();
    for _ in 0..keys {
        let key = next();
        let (cpu, before) = (thread_cpu_seconds(), reads.get());
        let found = space.get(key)?;
        let cpu = thread_cpu_seconds() - cpu;
        let device = (reads.get() - before) as f64;
        if found.is_none_or(|value| value.len() != VALUE_BYTES) {
            bail!("a key was lost");
        }
        all.cpu += cpu;
        all.device_reads += device;
        seconds.push(cpu + device * READ_SECONDS);
    }
    seconds.sort_by(f64::total_cmp);
    let count = keys as f64;
    let part = |share: f64| seconds[((count * share) as usize).min(seconds.len() - 1)];
    Ok(Read {
        lookups: count / seconds.iter().sum::<f64>(),
        p50: part(0.5),
        p99: part(0.99),
        device_reads: all.device_reads / count,
        cpu: all.cpu / count,
        ..all
    })
}
