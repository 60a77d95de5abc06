//! Measures what work costs on a machine.

use crate::meter::Mode;
use crate::progress::{NoProgress, Progress};
use crate::report::EngineReport;
use crate::run::{Options, run};
use crate::scratch::Scratch;
use crate::time::simulate_time;
use anyhow::Context;
use lsmith_policy::Registry;
use lsmith_sim::{KeyedWorkload, Machine, PutTimes, Rate};
use lsmith_spec::{Spec, format_count, parse_count};
use lsmith_workload::{NoInputs, Workload};
use std::path::Path;
use std::time::{Duration, Instant};

/// Measures this machine on stores in `parent`. Takes about two minutes.
///
/// # Errors
/// Fails if a store does.
pub fn calibrate(parent: &Path, progress: &dyn Progress) -> anyhow::Result<Machine> {
    Bench { parent, progress, shrink: 1 }.machine()
}

/// The times that each run is made: see [`typical`].
const TRIES: usize = 5;

/// Free runs that show what client and merging threads cost each other.
const SIDE_BY_SIDE: [(&str, &str); 3] = [
    ("tiered(ratio=4)", "churn(keys=300k, ops=900k, value=80B)"),
    ("leveled(ratio=8)", "mix(get=0.4, put=0.6, keys=300k, ops=600k, value=120B)"),
    ("leveled(ratio=8)", "churn(keys=50k, ops=150k, value=800B)"),
];

/// How often simulated time is held against them.
const SLOWDOWN_STEPS: usize = 4;

/// How long threads compete for cores.
const SPIN: Duration = Duration::from_millis(300);

/// Bytes of the memtables of most runs.
const MEMTABLE_BYTES: u64 = 4 << 20;

/// Bytes of small memtables, which show what a plan costs.
const MEMTABLE_BYTES_SMALL: u64 = 128 << 10;

/// Runs stores to measure a machine.
struct Bench<'a> {
    parent: &'a Path,
    progress: &'a dyn Progress,
    /// By how much operations and memtables are fewer and smaller than they should be.
    shrink: u64,
}

/// A run, and what it took in nanoseconds.
#[derive(Clone)]
struct Taken {
    report: EngineReport,
    /// Operations of the last phase.
    ops: f64,
    /// Logical bytes of an entry.
    entry_bytes: f64,
    /// CPU of the client in the last phase, without merges.
    client: f64,
    /// CPU of flushes and merges in the last phase.
    merges: f64,
    /// Time in the last phase in which nothing ran.
    waiting: f64,
    /// Percentiles of writes, as in [`PutTimes`].
    puts: [f64; 3],
}

impl Bench<'_> {
    fn machine(&self) -> anyhow::Result<Machine> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let mut machine = Machine { cores: cores as f64, slowdown: 1.0, ..Machine::default() };
        self.writes(&mut machine)?;
        self.merges(&mut machine)?;
        self.reads(&mut machine)?;
        if cores > 1 {
            self.slowdown(&mut machine)?;
        }
        machine.slice = slice(cores);
        Ok(machine)
    }

    /// Returns what [`TRIES`] runs show together.
    fn run(&self, policy: &str, workload: &str, memtable_bytes: u64) -> anyhow::Result<Taken> {
        self.progress.begin(&format!("{policy}: {workload}"), TRIES as u64);
        let mut all = Vec::with_capacity(TRIES);
        for done in 0..TRIES {
            all.push(self.run_once(policy, workload, memtable_bytes, Mode::Lockstep)?);
            self.progress.advance(done as u64 + 1);
        }
        Ok(typical(all))
    }

    /// Runs `workload`. In lockstep one thread does all work, so that it shares no core. Latencies
    /// are measured, as in the free runs that are held against simulated time.
    fn run_once(
        &self,
        policy: &str,
        workload: &str,
        memtable_bytes: u64,
        mode: Mode,
    ) -> anyhow::Result<Taken> {
        let workload = Workload::from_spec(&self.shrunk(workload)?, &NoInputs)?;
        let dir = Scratch::new_in(self.parent, "lsmith-calibrate-")?;
        let memtable_bytes = memtable_bytes / self.shrink;
        let options = Options { memtable_bytes, mode, histograms: true, ..Options::default() };
        let report = run(policy, &workload, dir.path(), &options, &NoProgress)?;
        let phase = report.phases.last().context("the workload has no operations")?;
        let merges = phase.merge_cpu_seconds * 1e9;
        let writes = report.phases.first().map_or(1, |phase| phase.ops).max(1);
        let puts = report.histograms.as_ref().and_then(|found| found.get("write_nanos"));
        let puts = puts.context("the store has no times of writes")?;
        let puts = [puts.p50, puts.p99, puts.p999].map(|nanos| nanos as f64);
        Ok(Taken {
            ops: phase.ops as f64,
            entry_bytes: report.bytes.physical.user as f64 / writes as f64 + 8.0,
            client: phase.cpu_seconds * 1e9 - merges,
            merges,
            waiting: (phase.seconds - phase.cpu_seconds).max(0.0) * 1e9,
            puts,
            report,
        })
    }

    /// Returns the spec of a workload with as many keys and operations as are to be measured.
    fn shrunk(&self, workload: &str) -> anyhow::Result<Spec> {
        let mut spec: Spec = workload.parse()?;
        for (name, value) in &mut spec.params {
            if matches!(name.as_str(), "keys" | "ops") {
                *value = format_count(parse_count(value)?.div_ceil(self.shrink));
            }
        }
        Ok(spec)
    }

    /// Measures writes, flushes, plans and syncs.
    fn writes(&self, machine: &mut Machine) -> anyhow::Result<()> {
        let small = self.run("none", "load(keys=2M, value=20B)", MEMTABLE_BYTES)?;
        let large = self.run("none", "load(keys=200k, value=1kB)", MEMTABLE_BYTES)?;
        let bytes = (small.entry_bytes, large.entry_bytes);
        let per_op = |of: fn(&Taken) -> f64| (of(&small) / small.ops, of(&large) / large.ops);
        machine.write = line(bytes, per_op(|taken| taken.client));
        machine.flush = line(bytes, per_op(|taken| taken.merges));
        // Few of these writes seal a memtable: no percentile shows it.
        let usual = self.run("none", "load(keys=400k, value=100B)", MEMTABLE_BYTES)?;
        machine.put = PutTimes { small: usual.puts, large: large.puts };
        let many = self.run("none", "load(keys=60k, value=20B)", MEMTABLE_BYTES_SMALL)?;
        let plans = |taken: &Taken| taken.report.costs.sealed.max(1) as f64;
        let entries = machine.flush.nanos(many.ops, many.ops * many.entry_bytes);
        machine.plan = ((many.merges - entries) / plans(&many)).max(0.0);
        let of_plan = |taken: &Taken| {
            (taken.ops * taken.entry_bytes / plans(taken), taken.waiting / plans(taken))
        };
        let (many, large) = (of_plan(&many), of_plan(&large));
        machine.sync = line((many.0, large.0), (many.1, large.1));
        Ok(())
    }

    /// Measures merges.
    fn merges(&self, machine: &mut Machine) -> anyhow::Result<()> {
        let workloads = [
            ("churn(keys=1M, ops=2M, value=20B)", "churn(keys=500k, ops=1M, value=20B)"),
            ("churn(keys=60k, ops=200k, value=1kB)", "churn(keys=60k, ops=120k, value=1kB)"),
        ];
        let (mut merges, mut appends) = (Vec::new(), Vec::new());
        for (large, small) in workloads {
            let taken = self.run("tiered(ratio=4)", large, MEMTABLE_BYTES)?;
            let (cpu, read, written) = taken.of_merges(machine);
            merges.push((written / read, cpu / read));
            let taken = self.run("jungle", small, MEMTABLE_BYTES)?;
            let (cpu, entries, written) = taken.of_appends(machine);
            appends.push((written / entries, cpu / entries));
        }
        machine.merge = line((merges[0].0, merges[1].0), (merges[0].1, merges[1].1));
        machine.append = line((appends[0].0, appends[1].0), (appends[0].1, appends[1].1));
        let by_block = "churn(keys=100k, ops=400k, value=100B)";
        let taken = self.run("rr", by_block, MEMTABLE_BYTES / 4)?;
        let (cpu, read, written) = taken.of_merges(machine);
        machine.fold = ((cpu - machine.merge.nanos(read, written)) / taken.ops).max(0.0);
        Ok(())
    }

    /// Measures lookups and range reads.
    fn reads(&self, machine: &mut Machine) -> anyhow::Result<()> {
        let per_op = |policy: &str, shares: &str| -> anyhow::Result<(f64, f64)> {
            let workload = format!("mix({shares}, keys=400k, value=100B)");
            let taken = self.run(policy, &workload, MEMTABLE_BYTES)?;
            let runs = if policy == "none" { taken.report.costs.sealed as f64 } else { 1.0 };
            Ok((runs, taken.client / taken.ops))
        };
        let of_runs = |shares: &str| -> anyhow::Result<Rate> {
            let (one, many) = (per_op("minlatency(k=1)", shares)?, per_op("none", shares)?);
            Ok(line((one.0, many.0), (one.1, many.1)))
        };
        machine.get = of_runs("get=1, ops=400k")?;
        let short = of_runs("scan=1, scan_length=1, ops=40k")?;
        let (_, long) = per_op("minlatency(k=1)", "scan=1, scan_length=101, ops=40k")?;
        machine.scan_entry = ((long - short.nanos(1.0, 1.0)) / 100.0).max(0.0);
        machine.scan = Rate { each: (short.each - machine.scan_entry).max(0.0), ..short };
        Ok(())
    }

    /// Sets how many times as much CPU work takes while client and merging threads run at once, so
    /// that free runs take as much CPU in simulated time as on the store.
    fn slowdown(&self, machine: &mut Machine) -> anyhow::Result<()> {
        let mut pairs = Vec::new();
        for (policy, workload) in SIDE_BY_SIDE {
            self.progress.begin(&format!("side by side: {workload}"), TRIES as u64);
            let mut all = Vec::with_capacity(TRIES);
            for done in 0..TRIES {
                let free = self.run_once(policy, workload, MEMTABLE_BYTES, Mode::Free)?;
                all.push(free.report.cpu_seconds);
                self.progress.advance(done as u64 + 1);
            }
            all.sort_by(f64::total_cmp);
            let workload = Workload::from_spec(&self.shrunk(workload)?, &NoInputs)?;
            let policy = Registry::builtin().build(policy)?;
            pairs.push((policy, KeyedWorkload::new(workload), all[TRIES / 2]));
        }
        // Not all work has others beside it, so that one step does not get there.
        for _ in 0..SLOWDOWN_STEPS {
            let (mut measured, mut simulated) = (0.0, 0.0);
            for (policy, workload, cpu_seconds) in &pairs {
                let memtable_bytes = MEMTABLE_BYTES / self.shrink;
                let options = Options { memtable_bytes, ..Options::default() };
                measured += cpu_seconds;
                simulated += simulate_time(policy, workload, machine, &options)?.cpu_seconds;
            }
            machine.slowdown = (machine.slowdown * measured / simulated).max(1.0);
        }
        Ok(())
    }
}

impl Taken {
    /// Returns the nanoseconds of CPU in the last phase.
    fn cpu(&self) -> f64 {
        self.client + self.merges
    }

    fn plans(&self) -> f64 {
        (self.report.costs.flushes + self.report.costs.merges) as f64
    }

    /// Returns the nanoseconds of CPU of merges, without flushes and what plans take besides, the
    /// entries that they read and the logical bytes that they wrote.
    fn of_merges(&self, machine: &Machine) -> (f64, f64, f64) {
        let bytes = &self.report.bytes.logical;
        let flushed = (bytes.flush_written + bytes.merge_memory) as f64;
        let flushes = machine.flush.nanos(flushed / self.entry_bytes, flushed);
        let cpu = self.merges - flushes - machine.plan * self.plans();
        let read = bytes.merge_read.saturating_sub(bytes.reused) as f64 / self.entry_bytes;
        let written = bytes.merge_written.saturating_sub(bytes.merge_memory) as f64;
        (cpu.max(0.0), read.max(1.0), written)
    }

    /// Returns the same of a policy that appends, flushes included.
    fn of_appends(&self, machine: &Machine) -> (f64, f64, f64) {
        let bytes = &self.report.bytes.logical;
        let read = bytes.merge_read + bytes.merge_memory + bytes.flush_written;
        let written = (bytes.merge_written + bytes.flush_written) as f64;
        let cpu = self.merges - machine.plan * self.plans();
        (cpu.max(0.0), (read as f64 / self.entry_bytes).max(1.0), written)
    }
}

/// Returns the run of median CPU, with the least waiting and the least percentiles of all runs.
/// Whatever else the machine and its device do makes waits and writes longer, and never shorter.
/// CPU has its median because some of that makes it less: a clock that runs faster for a while.
fn typical(mut all: Vec<Taken>) -> Taken {
    all.sort_by(|one, other| one.cpu().total_cmp(&other.cpu()));
    let least = |of: &dyn Fn(&Taken) -> f64| all.iter().map(of).fold(f64::INFINITY, f64::min);
    let waiting = least(&|taken| taken.waiting);
    let puts = [0, 1, 2].map(|at| least(&|taken: &Taken| taken.puts[at]));
    let median = all.len() / 2;
    Taken { waiting, puts, ..all.swap_remove(median) }
}

/// Returns the nanoseconds for which a thread keeps one of `cores` that another wants: the longest
/// time in which one of more threads than cores did not run.
fn slice(cores: usize) -> f64 {
    let start = Instant::now();
    let longest_gap = || {
        let (mut last, mut longest) = (start.elapsed(), Duration::ZERO);
        while last < SPIN {
            let now = start.elapsed();
            longest = longest.max(now - last);
            last = now;
        }
        longest
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..=cores).map(|_| scope.spawn(longest_gap)).collect();
        let gaps = all.into_iter().map(|one| one.join().unwrap_or_default());
        gaps.min().unwrap_or_default().as_nanos() as f64
    })
}

/// Returns the line through two points, which does not fall and is nowhere below 0.
fn line((x, other_x): (f64, f64), (y, other_y): (f64, f64)) -> Rate {
    let part = ((other_y - y) / (other_x - x)).max(0.0);
    Rate { each: (y - part * x).max(0.0), part }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_go_through_both_points_unless_they_fall() {
        assert_eq!(line((1.0, 3.0), (10.0, 14.0)), Rate { each: 8.0, part: 2.0 });
        assert_eq!(line((1.0, 3.0), (10.0, 4.0)), Rate { each: 10.0, part: 0.0 });
    }

    /// The run of median CPU waited for longest, as if another process had synced meanwhile.
    #[test]
    fn waiting_of_one_disturbed_run_does_not_count() {
        let dir = Scratch::new("lsmith-calibrate-test-").unwrap();
        let bench = Bench { parent: dir.path(), progress: &NoProgress, shrink: 1 };
        let spec = "load(keys=1k, value=20B)";
        let any = bench.run_once("none", spec, MEMTABLE_BYTES_SMALL, Mode::Lockstep).unwrap();
        let taken = |client: f64, merges: f64, waiting: f64, puts: [f64; 3]| Taken {
            client,
            merges,
            waiting,
            puts,
            ..any.clone()
        };
        let all = vec![
            taken(50.0, 9.0, 30.0, [2.0, 5.0, 40.0]),
            taken(10.0, 2.0, 20.0, [3.0, 4.0, 50.0]),
            taken(30.0, 7.0, 90.0, [3.0, 9.0, 60.0]),
            taken(20.0, 3.0, 40.0, [4.0, 6.0, 30.0]),
            taken(40.0, 1.0, 50.0, [5.0, 7.0, 70.0]),
        ];
        let found = typical(all);
        assert_eq!((found.client, found.merges), (30.0, 7.0), "the run of median CPU");
        assert_eq!(found.waiting, 20.0, "the least waiting");
        assert_eq!(found.puts, [2.0, 4.0, 30.0], "the least of each percentile");
    }

    /// A small part of what is measured: all rates are found, and none is absurd.
    #[test]
    fn machine_is_measured() {
        let dir = Scratch::new("lsmith-calibrate-test-").unwrap();
        let bench = Bench { parent: dir.path(), progress: &NoProgress, shrink: 50 };
        let machine = bench.machine().unwrap();
        assert!(machine.cores >= 1.0 && machine.slowdown >= 1.0, "{machine:?}");
        for rate in [machine.write.nanos(1.0, 100.0), machine.flush.nanos(1.0, 100.0)] {
            assert!(rate > 1.0 && rate < 1e7, "{machine:?}");
        }
        for [p50, p99, p999] in [machine.put.small, machine.put.large] {
            assert!(p50 > 1.0 && p50 <= p99 && p99 <= p999 && p999 < 1e9, "{machine:?}");
        }
        assert!(machine.get.nanos(1.0, 1.0) > 1.0 && machine.scan.nanos(1.0, 1.0) > 1.0);
    }
}
