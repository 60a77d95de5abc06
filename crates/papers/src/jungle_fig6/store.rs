//! Reads of the aged store.

use super::aging::{Aging, KEY_BYTES, TABLE_BYTES, VALUE_BYTES};
use crate::store::{self, check_plans};
use crate::unsynced::{ReadCount, Unsynced};
use anyhow::bail;
use lsmith::{Builder, DEFAULT_KEYSPACE, Event, Keyspace, Observer, PersistMode, StoreStats};
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
    pub(super) lookups: Lookups,
}

/// What lookups cost, each.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lookups {
    /// Lookups per second of one reader.
    pub(crate) rate: f64,
    /// Seconds that the median lookup takes, and that all but a hundredth take at most.
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    /// Reads of the device, and the reads that all but a hundredth of lookups make at most.
    pub(crate) device: f64,
    pub(crate) device_p99: f64,
    /// CPU seconds.
    pub(crate) cpu: f64,
    /// Tables that a filter ruled out.
    pub(crate) ruled_out: f64,
    /// Blocks looked at, wherever they were.
    pub(crate) blocks: f64,
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
        check_plans(&keyspace)?;
        let live = (keys * entry) as f64;
        let write = (written() - loaded) as f64 / (live * aging.rounds as f64);
        let held = std::mem::take(&mut *rests.all());
        let space = held.iter().sum::<f64>() / held.len().max(1) as f64 / live;
        let mut rng = Rng::new(2, 0);
        warm(&keyspace, keys, &mut rng)?;
        Ok(Read { write, space, lookups: look_up(&keyspace, keys, keys, &reads, &mut rng)? })
    }
}

/// Returns what opens the store of `aging` in `dir`. `reads` counts the reads of its device.
pub(crate) fn builder(aging: &Aging, dir: &Path, reads: &Arc<ReadCount>) -> Builder {
    let entry = (KEY_BYTES + VALUE_BYTES) as u64;
    store::builder(dir, Unsynced::counting(reads))
        .policy(aging.spec.clone())
        .memtable_bytes(TABLE_BYTES / aging.shrink)
        .cache_bytes(aging.keys() * entry / CACHE_PART)
        .persist(PersistMode::Buffer)
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

/// Fills the cache: looks each key up once on average, at random.
pub(crate) fn warm(space: &Keyspace, keys: u64, rng: &mut Rng) -> anyhow::Result<()> {
    for _ in 0..keys {
        space.get(rng.below(keys).to_be_bytes())?;
    }
    Ok(())
}

/// Looks `count` random keys up.
pub(crate) fn look_up(
    space: &Keyspace,
    keys: u64,
    count: u64,
    reads: &ReadCount,
    rng: &mut Rng,
) -> anyhow::Result<Lookups> {
    let mut all: Vec<(f64, f64)> = Vec::with_capacity(count as usize);
    let stats = || space.store().stats();
    let blocks = |stats: &StoreStats| stats.get_blocks_found + stats.get_blocks_absent;
    let old = stats();
    for _ in 0..count {
        let key = rng.below(keys).to_be_bytes();
        let (cpu, before) = (thread_cpu_seconds(), reads.get());
        let found = space.get(key)?;
        all.push((thread_cpu_seconds() - cpu, (reads.get() - before) as f64));
        if found.is_none_or(|value| value.len() != VALUE_BYTES) {
            bail!("a key was lost");
        }
    }
    let new = stats();
    let each = |sum: f64| sum / count as f64;
    let part = |percent: usize, of: fn(&(f64, f64)) -> f64| {
        let mut sorted: Vec<f64> = all.iter().map(of).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
    };
    let seconds = |(cpu, device): &(f64, f64)| cpu + device * READ_SECONDS;
    Ok(Lookups {
        rate: count as f64 / all.iter().map(seconds).sum::<f64>(),
        p50: part(50, seconds),
        p99: part(99, seconds),
        device: each(all.iter().map(|(_, device)| device).sum()),
        device_p99: part(99, |(_, device)| *device),
        cpu: each(all.iter().map(|(cpu, _)| cpu).sum()),
        ruled_out: each((new.filter_negatives - old.filter_negatives) as f64),
        blocks: each((blocks(&new) - blocks(&old)) as f64),
    })
}
