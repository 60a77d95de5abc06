//! Runs one workload on the real store.

use crate::clock::Clock;
use crate::meter::{Meter, Mode};
use crate::newest::Newest;
use crate::play::Player;
use crate::progress::Progress;
use crate::report::{
    Costs, EngineReport, LogicalBytes, Lookups, Moment, Percentiles, Phase, PhysicalBytes,
    Settings, StoreBytes, Versions,
};
use crate::scans::Scans;
use crate::sealing::sealing;
use anyhow::{Context, bail};
use lsmith::env::{Env, RealEnv};
use lsmith::{
    DEFAULT_KEYSPACE, Histograms, Keyspace, KeyspaceOptions, Observer, PersistMode, Store,
};
use lsmith_policy::{MergePolicy, PolicyChoice, Registry};
use lsmith_sim::{Course, Machine, SCAN_ITEMS};
use lsmith_workload::{FlushSizes, Ops, Workload};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bytes of the block cache: the store's default.
const CACHE_BYTES: u64 = 64 << 20;

/// Threads that merge: the store's default.
const THREADS: usize = 2;

/// The name of the group of keyspaces that one workload writes.
const GROUP: &str = "keyspaces";

/// Operations between two looks at the clock, if the time of a run is limited.
const OPS_PER_LOOK: u64 = 16;

/// Operations between two updates of the progress.
const OPS_PER_UPDATE: u64 = 1024;

/// The options of an experiment, besides policy and workload.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policies that specs may name.
    pub registry: Registry,
    /// Logical bytes of a full memtable.
    pub memtable_bytes: u64,
    /// The sizes at which memtables are sealed, except under policies that count in blocks.
    pub flush_sizes: Arc<FlushSizes>,
    /// The codecs of the store's tables, level by level, such as `lz4`. `None` for no compression
    /// in a new store, and for no change in an existing one.
    pub compression: Option<String>,
    /// The door of the store to its files.
    pub env: Arc<dyn Env>,
    /// Bytes of the store's cache of data blocks. It holds blocks of compressed tables, and all
    /// blocks if `env` does not map files.
    pub cache_bytes: u64,
    /// When the store runs its merges.
    pub mode: Mode,
    /// True if the report contains histograms.
    pub histograms: bool,
    /// True if a comparison records the trees of its keyed simulations.
    pub record_trees: bool,
    /// Threads that merge in a free run.
    pub threads: usize,
    /// When writers of a free run stop, at the latest. Merges then come to rest.
    pub duration: Option<Duration>,
    /// The machine on which a comparison simulates free runs.
    pub machine: Option<Machine>,
}

impl Default for Options {
    /// Returns built-in policies, memtables of 4 MiB that are sealed when full, no compression, the
    /// mapped files of this machine, a cache of 64 MiB, lockstep, no histograms, no trees, two
    /// merging threads, no limit on time and no machine.
    fn default() -> Options {
        Options {
            registry: Registry::builtin(),
            memtable_bytes: 4 << 20,
            flush_sizes: Arc::default(),
            compression: None,
            env: Arc::new(RealEnv::default()),
            cache_bytes: CACHE_BYTES,
            mode: Mode::Lockstep,
            histograms: false,
            record_trees: false,
            threads: THREADS,
            duration: None,
            machine: None,
        }
    }
}

/// A store with a meter.
struct Bench {
    store: Store,
    /// One keyspace, or all keyspaces of a group, which have one tree and one policy.
    keyspaces: Vec<Keyspace>,
    meter: Arc<Meter>,
    /// The clock of the store, which counts writes.
    writes: Arc<AtomicU64>,
    /// True if the store was empty, so that live bytes are known.
    fresh: bool,
    /// True if the policy counts in blocks.
    by_block: bool,
    /// True if merges run beside writes.
    is_free: bool,
    /// How long writers may write.
    duration: Option<Duration>,
}

impl Bench {
    fn open(
        dir: &Path,
        policy: &Arc<dyn MergePolicy>,
        workload: &Workload,
        options: &Options,
    ) -> lsmith::Result<Bench> {
        let scan_items = workload.scan_items().unwrap_or(SCAN_ITEMS);
        let meter = Arc::new(Meter::new(options.mode, &**policy, scan_items));
        let observer: Arc<dyn Observer> = Arc::<Meter>::clone(&meter);
        let writes = Arc::new(AtomicU64::new(0));
        let store = Store::builder(dir)
            .env(Arc::clone(&options.env))
            .registry(options.registry.clone())
            .policy(Arc::clone(policy))
            .memtable_bytes(options.memtable_bytes)
            .cache_bytes(options.cache_bytes)
            .persist(PersistMode::Buffer)
            .threads(options.threads)
            .lockstep(options.mode == Mode::Lockstep)
            .histograms(options.histograms)
            .observer(observer)
            .operator(Newest)
            .clock(Newest::clock(&writes))
            .open()?;
        // The clock goes on where an existing store has stopped: it must not go back. The last
        // sequence number is at least the number of writes so far.
        writes.store(store.snapshot().seq().0, Ordering::SeqCst);
        let keyspaces = keyspaces(&store, workload)?;
        let fresh = keyspaces.iter().all(|keyspace| {
            let stats = keyspace.stats();
            stats.entries == 0 && stats.memory_bytes == 0
        });
        let keyspace = &keyspaces[0];
        if keyspace.merge_policy() != policy.spec().to_string() {
            keyspace.set_merge_policy(Arc::clone(policy))?;
        }
        if let Some(codecs) = &options.compression {
            keyspace.set_compression(codecs)?;
        }
        let is_free = options.mode == Mode::Free;
        let duration = options.duration.filter(|_| is_free);
        let by_block = policy.needs().blocks;
        Ok(Bench { store, keyspaces, meter, writes, fresh, by_block, is_free, duration })
    }

    /// Returns the keyspace, or one that tells of its group.
    fn keyspace(&self) -> &Keyspace {
        &self.keyspaces[0]
    }

    /// Returns a clock that starts now. In lockstep the thread of the writer does all work, while
    /// other threads of the process may do other things.
    fn clock(&self) -> Clock {
        if self.is_free { Clock::start() } else { Clock::start_of_thread() }
    }

    /// Returns how far the run has come after so many operations and seconds.
    fn moment(&self, ops: u64, seconds: f64) -> lsmith_sim::Moment {
        let held_back_seconds = self.store.stats().held_back_micros as f64 * 1e-6;
        lsmith_sim::Moment { ops, seconds, held_back_seconds }
    }

    /// Fails if merges were refused or given up: another policy would have had these figures.
    fn check(&self) -> anyhow::Result<()> {
        let stats = self.store.stats();
        if let Some(failure) = self.keyspace().stats().failures.first() {
            bail!("a merge failed: {failure}");
        }
        if stats.plans_refused > 0 {
            bail!("{} plans of the policy broke a rule and were refused", stats.plans_refused);
        }
        Ok(())
    }
}

/// Returns the keyspaces that `workload` writes: one, or all keyspaces of a group.
fn keyspaces(store: &Store, workload: &Workload) -> lsmith::Result<Vec<Keyspace>> {
    let shares = workload.group_shares();
    if shares.is_empty() {
        return Ok(vec![store.keyspace_with(DEFAULT_KEYSPACE, &Newest::options(workload))?]);
    }
    let in_group = KeyspaceOptions { group: Some(GROUP.into()), ..Newest::options(workload) };
    let make = |index| store.keyspace_with(&format!("keyspace-{index}"), &in_group);
    (0..shares.len()).map(make).collect()
}

/// Plays `workload` on the store in `dir` under `policy`, and returns its costs.
///
/// `dir` is missing, empty, or holds a store. An existing store continues under the new policy and
/// keeps its memtable size. Its report has no space costs, because its live bytes are unknown. The
/// store is kept.
///
/// The writes of a [group](Workload::in_group) go to the keyspaces `keyspace-0`, `keyspace-1` and
/// so on of the group `keyspaces`. The report counts them together.
///
/// # Errors
/// Fails if the policy cannot be built or does not fit a group, the store fails, or a line of a
/// trace is damaged. The store keeps the operations before the error.
pub fn run(
    policy: impl Into<PolicyChoice>,
    workload: &Workload,
    dir: &Path,
    options: &Options,
    progress: &dyn Progress,
) -> anyhow::Result<EngineReport> {
    let policy = sealing(policy.into().build(&options.registry)?, &options.flush_sizes);
    let bench = Bench::open(dir, &policy, workload, options)?;
    let spec = policy.spec().to_string();
    let steps = format!("{spec}: {}", workload.spec());
    progress.begin(&steps, workload.ops_max());

    let clock = bench.clock();
    let (phases, course) = play(&bench, workload, progress)?;
    bench.store.settle().context("merges did not come to rest")?;
    let seconds = clock.seconds();
    let cpu_seconds = clock.cpu_seconds();
    bench.check()?;

    let stats = bench.store.stats();
    let measured = bench.meter.measured(&bench.keyspace().tree());
    let physical = PhysicalBytes::of(&stats);
    let lookups = Lookups::of(&stats);
    let range_reads = Scans::of(&stats);
    let ops = phases.iter().map(|phase| phase.ops).sum();
    Ok(EngineReport {
        mode: options.mode.name(),
        costs: Costs::of_store(&measured, &lookups, &range_reads, bench.fresh),
        space_cost_physical_peak: bench.fresh.then_some(measured.space_cost_physical_peak),
        space_cost_physical_mean: bench.fresh.then_some(measured.space_cost_physical_mean),
        write_cost_user: (physical.user > 0)
            .then(|| physical.written() as f64 / physical.user as f64),
        read_cost_measured: lookups.cost(),
        ops,
        seconds,
        cpu_seconds,
        ops_per_second: per_second(ops, seconds),
        held_back_seconds: stats.held_back_micros as f64 * 1e-6,
        debt: measured.debt,
        phases,
        course,
        histograms: bench.store.histograms().map(|found| percentiles(&found)),
        bytes: StoreBytes { logical: LogicalBytes::of(&measured.figures.parts), physical },
        lookups,
        range_reads,
        seed: workload.seed(),
        versions: Versions::THIS,
        settings: Settings {
            policy: spec,
            workload: workload.spec().to_string(),
            group: shares_of(workload),
            mode: options.mode.name(),
            memtable_bytes: bench.keyspace().stats().memtable_bytes,
            flush_sizes: (!options.flush_sizes.is_constant())
                .then(|| options.flush_sizes.spec().to_string()),
            compression: bench.keyspace().compression(),
            cache_bytes: options.cache_bytes,
            threads: (options.mode == Mode::Free).then_some(options.threads),
            persist: "buffer",
        },
    })
}

/// Returns the shares of the keyspaces of a group, as text.
fn shares_of(workload: &Workload) -> Option<String> {
    let shares = workload.group_shares().iter().map(ToString::to_string);
    shares.reduce(|text, share| format!("{text},{share}"))
}

fn percentiles(histograms: &Histograms) -> BTreeMap<&'static str, Percentiles> {
    histograms.fields().map(|(name, histogram)| (name, Percentiles::of(histogram))).collect()
}

/// Plays all phases. Returns them and the course of a free run.
fn play(
    bench: &Bench,
    workload: &Workload,
    progress: &dyn Progress,
) -> anyhow::Result<(Vec<Phase>, Vec<Moment>)> {
    let mut player = Player::new(&bench.keyspaces, workload, &bench.meter, &bench.writes);
    if bench.by_block {
        player = player.counting_memtables_of(bench.keyspace().stats().memtable_bytes);
    }
    let mut ops = workload.ops();
    let flushes_max = workload.limit_flushes().unwrap_or(u64::MAX);
    let mut phases = Vec::new();
    let start = Clock::start();
    let is_over = |done: u64| {
        let due = bench.duration.filter(|_| done.is_multiple_of(OPS_PER_LOOK));
        due.is_some_and(|duration| start.seconds() >= duration.as_secs_f64())
    };
    let mut course = Course::default();
    for (name, ops_max) in [("load", workload.load_ops()), ("run", u64::MAX)] {
        let clock = bench.clock();
        let merge_cpu = || bench.store.stats().merge_cpu_nanos as f64 * 1e-9;
        let (before, merge_cpu_before) = (player.ops(), merge_cpu());
        play_until(&mut player, &mut ops, ops_max, |player| {
            if player.ops() % OPS_PER_UPDATE == 0 {
                progress.advance(player.ops());
            }
            if bench.is_free && course.is_due(player.ops()) {
                course.note(bench.moment(player.ops(), start.seconds()));
            }
            let flushes = player.filled().unwrap_or_else(|| bench.meter.sealed());
            flushes >= flushes_max || is_over(player.ops())
        })?;
        let ops = player.ops() - before;
        let seconds = clock.seconds();
        if ops > 0 {
            phases.push(Phase {
                name,
                ops,
                seconds,
                cpu_seconds: clock.cpu_seconds(),
                merge_cpu_seconds: merge_cpu() - merge_cpu_before,
                ops_per_second: per_second(ops, seconds),
            });
        }
    }
    if let Some(filled) = player.filled() {
        bench.meter.set_filled(filled);
    }
    if bench.is_free {
        course.note(bench.moment(player.ops(), start.seconds()));
    }
    Ok((phases, Moment::all(&course.moments())))
}

/// Plays operations until none are left, the player has done `ops_max`, or `enough` is true.
fn play_until(
    player: &mut Player<'_>,
    ops: &mut Ops<'_>,
    ops_max: u64,
    mut enough: impl FnMut(&Player<'_>) -> bool,
) -> anyhow::Result<()> {
    while player.ops() < ops_max && !enough(player) {
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
