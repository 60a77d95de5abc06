//! One workload on the real store.

use crate::clock::Clock;
use crate::meter::{Meter, Mode};
use crate::play::Player;
use crate::progress::Progress;
use crate::report::{
    Costs, EngineReport, LogicalBytes, Lookups, Percentiles, Phase, PhysicalBytes, Settings,
    StoreBytes, Versions,
};
use anyhow::{Context, bail};
use lsmith::{DEFAULT_KEYSPACE, Histograms, Keyspace, Observer, PersistMode, Store};
use lsmith_policy::Registry;
use lsmith_workload::{Ops, Workload};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Bytes of the block cache: the store's default.
const CACHE_BYTES: u64 = 64 << 20;

/// Operations between two notes of progress.
const OPS_PER_NOTE: u64 = 1024;

/// What an experiment needs to know beside policy and workload.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policies that specs may name.
    pub registry: Registry,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// How the store takes its merges.
    pub mode: Mode,
    /// Whether the report has histograms.
    pub histograms: bool,
}

impl Default for Options {
    /// Built-in policies, memtables of 4 MiB, lockstep.
    fn default() -> Options {
        Options {
            registry: Registry::builtin(),
            memtable_bytes: 4 << 20,
            mode: Mode::Lockstep,
            histograms: false,
        }
    }
}

/// A store with somebody who counts what it does.
struct Bench {
    store: Store,
    keyspace: Keyspace,
    meter: Arc<Meter>,
    /// Whether there was nothing in the store, so that live bytes are known.
    fresh: bool,
}

impl Bench {
    fn open(dir: &Path, policy: &str, options: &Options) -> lsmith::Result<Bench> {
        let meter = Arc::new(Meter::new(options.mode));
        let observer: Arc<dyn Observer> = Arc::<Meter>::clone(&meter);
        let store = Store::builder(dir)
            .registry(options.registry.clone())
            .policy(policy)
            .memtable_bytes(options.memtable_bytes)
            .cache_bytes(CACHE_BYTES)
            .persist(PersistMode::Buffer)
            .lockstep(options.mode == Mode::Lockstep)
            .histograms(options.histograms)
            .observer(observer)
            .open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let stats = keyspace.stats();
        let fresh = stats.entries == 0 && stats.memory_bytes == 0;
        if keyspace.merge_policy() != policy {
            keyspace.set_merge_policy(policy)?;
        }
        Ok(Bench { store, keyspace, meter, fresh })
    }

    /// An error if merges were refused or given up: the figures would be those of another policy.
    fn check(&self) -> anyhow::Result<()> {
        let stats = self.store.stats();
        if let Some(failure) = self.keyspace.stats().failures.first() {
            bail!("a merge failed: {failure}");
        }
        if stats.plans_refused > 0 {
            bail!("{} plans of the policy broke a rule and were refused", stats.plans_refused);
        }
        Ok(())
    }
}

/// Plays `workload` on the store in `dir` under `policy`, and reports what it cost.
///
/// `dir` is new, or empty, or holds a store, which is then gone on with: under the new policy, but
/// with memtables of the size that it was made with, and without figures of space, because nobody
/// knows what of its content is live. The store stays there.
///
/// # Errors
/// The policy can't be built; what the store refuses; a damaged line of a trace. Operations before
/// the error are in the store.
pub fn run(
    policy: &str,
    workload: &Workload,
    dir: &Path,
    options: &Options,
    progress: &dyn Progress,
) -> anyhow::Result<EngineReport> {
    let policy = options.registry.build(policy)?.spec().to_string();
    let bench = Bench::open(dir, &policy, options)?;
    let steps = format!("{policy}: {}", workload.spec());
    progress.begin(&steps, workload.ops_max());

    let clock = Clock::start();
    let phases = play(&bench, workload, progress)?;
    bench.store.settle().context("merges did not come to rest")?;
    let (seconds, cpu_seconds) = (clock.seconds(), clock.cpu_seconds());
    bench.check()?;

    let (stats, measured) = (bench.store.stats(), bench.meter.measured());
    let physical = PhysicalBytes::of(&stats);
    let lookups = Lookups::of(&stats);
    let ops = phases.iter().map(|phase| phase.ops).sum();
    Ok(EngineReport {
        mode: options.mode.name(),
        costs: Costs::of_store(&measured, bench.fresh),
        write_cost_user: (physical.user > 0)
            .then(|| physical.written() as f64 / physical.user as f64),
        read_cost_measured: lookups.cost(),
        ops,
        seconds,
        cpu_seconds,
        ops_per_second: per_second(ops, seconds),
        held_back_seconds: stats.held_back_micros as f64 * 1e-6,
        phases,
        histograms: bench.store.histograms().map(|found| percentiles(&found)),
        bytes: StoreBytes { logical: LogicalBytes::of(&measured.figures.parts), physical },
        lookups,
        seed: workload.seed(),
        versions: Versions::THIS,
        settings: Settings {
            policy,
            workload: workload.spec().to_string(),
            mode: options.mode.name(),
            memtable_bytes: bench.keyspace.stats().memtable_bytes,
            cache_bytes: CACHE_BYTES,
            persist: "buffer",
        },
    })
}

fn percentiles(histograms: &Histograms) -> BTreeMap<&'static str, Percentiles> {
    histograms.fields().map(|(name, histogram)| (name, Percentiles::of(histogram))).collect()
}

/// Plays all phases.
fn play(bench: &Bench, workload: &Workload, progress: &dyn Progress) -> anyhow::Result<Vec<Phase>> {
    let mut player = Player::new(&bench.keyspace, workload, &bench.meter);
    let mut ops = workload.ops();
    let flushes_max = workload.limit_flushes().unwrap_or(u64::MAX);
    let mut phases = Vec::new();
    for (name, upto) in [("load", workload.load_ops()), ("run", u64::MAX)] {
        let (clock, before) = (Clock::start(), player.ops());
        play_until(&mut player, &mut ops, upto, |done| {
            if done % OPS_PER_NOTE == 0 {
                progress.advance(done);
            }
            bench.meter.sealed() >= flushes_max
        })?;
        let (ops, seconds) = (player.ops() - before, clock.seconds());
        if ops > 0 {
            phases.push(Phase { name, ops, seconds, ops_per_second: per_second(ops, seconds) });
        }
    }
    Ok(phases)
}

/// Plays operations until there are none left, `upto` are done, or `enough` says so when told how
/// many are done.
fn play_until(
    player: &mut Player<'_>,
    ops: &mut Ops<'_>,
    upto: u64,
    enough: impl Fn(u64) -> bool,
) -> anyhow::Result<()> {
    while player.ops() < upto && !enough(player.ops()) {
        match ops.next() {
            Some(op) => player.play(&op?)?,
            None => break,
        }
    }
    Ok(())
}

pub(crate) fn per_second(ops: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { ops as f64 / seconds } else { 0.0 }
}
