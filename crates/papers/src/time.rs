//! Holds free runs in simulated time against free runs on the store.

use crate::form::*;
use lsmith_lab::{
    EngineReport, FileInputs, Mode, NoProgress, Options, Percentiles, Scratch, SimulatedTime,
    calibrate, run, simulate_time, spec_of_machine,
};
use lsmith_policy::Registry;
use lsmith_sim::{KeyedWorkload, Machine};
use lsmith_spec::parse_bytes;
use lsmith_workload::Workload;

/// Policies, each with two of the workloads.
const POLICIES: [&str; 20] = [
    "minlatency(k=6)",
    "leveled(ratio=10)",
    "tiered(ratio=3)",
    "rocksdb(level1=16MiB)",
    "universal",
    "bigtable(k=4)",
    "leveled(ratio=4)",
    "leveldb(level1=16MiB)",
    "binomial(k=5)",
    "triangular",
    "minlatency(k=3)",
    "sweep(k=6)",
    "tiered(ratio=8)",
    "exploring",
    "universal(trigger=12)",
    "rr(ratio=8)",
    "leveled(ratio=6)",
    "jungle(c=3)",
    "binomial(k=8)",
    "samt(ratio=4)",
];

/// Workloads, memtables and merging threads, in turn.
const WORKLOADS: [(&str, &str, usize); 13] = [
    ("churn(keys=400k, ops=1200k, value=100B)", "4MiB", 2),
    ("load(keys=1M, value=60B)", "2MiB", 1),
    ("ycsb(a, records=300k, ops=900k, value=150B)", "4MiB", 2),
    ("load(keys=150k, value=1kB)", "8MiB", 2),
    ("churn(keys=100k, ops=900k, value=50B)", "1MiB", 3),
    ("ycsb(b, records=300k, ops=900k, value=100B)", "2MiB", 2),
    ("update(keys=400k, value=200B)", "4MiB", 1),
    ("churn(keys=40k, ops=120k, value=1kB)", "4MiB", 2),
    ("ycsb(f, records=200k, ops=500k, value=200B)", "2MiB", 3),
    ("mix(get=0.2, get_absent=0.3, put=0.5, keys=300k, ops=900k, value=100B)", "4MiB", 2),
    ("churn(keys=300k, ops=900k, value=100B, deletes=0.3)", "1MiB", 2),
    ("ycsb(e, records=200k, ops=60k, value=100B)", "1MiB", 2),
    ("load(keys=600k, value=200B)", "4MiB", 4),
];

/// How many settings are measured.
const SETTINGS: usize = 40;
const SETTINGS_QUICK: usize = 6;

/// How often each setting runs on the store: the run of median throughput counts.
const RUNS: usize = 3;

/// A figure that is compared: its name, its value on the store and in simulated time, whether the
/// difference is a part of the value or a difference of points, and the most that it may be.
struct Compared {
    name: &'static str,
    measured: fn(&EngineReport) -> f64,
    simulated: fn(&SimulatedTime) -> f64,
    is_part: bool,
    most: f64,
}

const COMPARED: [Compared; 9] = [
    Compared {
        name: "throughput",
        measured: |run| run.ops_per_second,
        simulated: |run| run.ops_per_second,
        is_part: true,
        most: 15.0,
    },
    Compared {
        name: "CPU",
        measured: |run| run.cpu_seconds,
        simulated: |run| run.cpu_seconds,
        is_part: true,
        most: 15.0,
    },
    Compared {
        name: "writes",
        measured: |run| run.costs.write_cost_system,
        simulated: |run| run.costs.write_cost_system,
        is_part: true,
        most: 5.0,
    },
    Compared {
        name: "mean runs",
        measured: |run| run.costs.read_cost_mean,
        simulated: |run| run.costs.read_cost_mean,
        is_part: true,
        most: 10.0,
    },
    Compared {
        name: "time held back",
        measured: |run| 100.0 * run.held_back_seconds / run.seconds,
        simulated: |run| 100.0 * run.held_back_seconds / run.seconds,
        is_part: false,
        most: 10.0,
    },
    Compared {
        name: "longest pause",
        measured: longest_write,
        simulated: |run| run.pause_longest,
        is_part: true,
        most: 50.0,
    },
    Compared {
        name: "put p50",
        measured: |run| puts(run).map_or(0.0, |puts| puts.p50 as f64 * 1e-3),
        simulated: |run| run.put_nanos.map_or(0.0, |puts| puts.p50 as f64 * 1e-3),
        is_part: true,
        most: 25.0,
    },
    Compared {
        name: "put p99",
        measured: |run| puts(run).map_or(0.0, |puts| puts.p99 as f64 * 1e-3),
        simulated: |run| run.put_nanos.map_or(0.0, |puts| puts.p99 as f64 * 1e-3),
        is_part: true,
        most: 50.0,
    },
    Compared {
        name: "put p99.9",
        measured: |run| puts(run).map_or(0.0, |puts| puts.p999 as f64 * 1e-3),
        simulated: |run| run.put_nanos.map_or(0.0, |puts| puts.p999 as f64 * 1e-3),
        is_part: true,
        most: 50.0,
    },
];

/// Returns the times of writes.
fn puts(run: &EngineReport) -> Option<&Percentiles> {
    run.histograms.as_ref().and_then(|found| found.get("write_nanos"))
}

/// Returns the seconds of the longest write.
fn longest_write(run: &EngineReport) -> f64 {
    puts(run).map_or(0.0, |puts| puts.max as f64 * 1e-9)
}

/// A run that is measured and simulated.
struct Setting {
    number: usize,
    policy: &'static str,
    workload: &'static str,
    memtable: &'static str,
    threads: usize,
}

/// What a setting came to.
struct Held {
    measured: EngineReport,
    /// The most operations per second of the runs, over the least.
    spread: f64,
    simulated: SimulatedTime,
}

impl Setting {
    fn all(count: usize) -> Vec<Setting> {
        let pairs = POLICIES.into_iter().cycle().zip(WORKLOADS.into_iter().cycle());
        let numbered = (1..).zip(pairs).take(count);
        numbered
            .map(|(number, (policy, (workload, memtable, threads)))| Setting {
                number,
                policy,
                workload,
                memtable,
                threads,
            })
            .collect()
    }

    fn hold(&self, machine: &Machine) -> anyhow::Result<Held> {
        let workload = Workload::from_spec(&self.workload.parse()?, &FileInputs)?;
        let options = Options {
            memtable_bytes: parse_bytes(self.memtable)?,
            mode: Mode::Free,
            histograms: true,
            threads: self.threads,
            ..Options::default()
        };
        let mut runs = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            let dir = Scratch::new("lsmith-time-")?;
            runs.push(run(self.policy, &workload, dir.path(), &options, &NoProgress)?);
        }
        runs.sort_by(|one, other| one.ops_per_second.total_cmp(&other.ops_per_second));
        let spread = runs[RUNS - 1].ops_per_second / runs[0].ops_per_second;
        let policy = Registry::builtin().build(self.policy)?;
        let simulated = simulate_time(&policy, &KeyedWorkload::new(workload), machine, &options)?;
        Ok(Held { measured: runs.swap_remove(RUNS / 2), spread, simulated })
    }
}

impl Compared {
    /// Returns how far simulated time is off, in percent of the measured figure or in points.
    fn off(&self, held: &Held) -> f64 {
        let measured = (self.measured)(&held.measured);
        let simulated = (self.simulated)(&held.simulated);
        if self.is_part { percent_off(simulated, measured) } else { simulated - measured }
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    task.progress.begin("what work costs here", 0);
    let machine = calibrate(&std::env::temp_dir(), &NoProgress)?;
    let settings = Setting::all(task.pick(SETTINGS_QUICK, SETTINGS));
    let held = task.each_in_turn(
        "free runs",
        &settings,
        |_| 1,
        |setting, ticker| {
            let held = setting.hold(&machine);
            ticker.tick(1);
            held
        },
    )?;
    let panels = COMPARED.iter().map(|compared| {
        let unit = if compared.is_part { "%" } else { "points" };
        let x = Axis::linear("setting", "number");
        Panel::new(compared.name, compared.name, x, Axis::linear("simulated beyond measured", unit))
    });
    let mut figure = task.figure(panels);
    for compared in &COMPARED {
        let off: Vec<f64> = held.iter().map(|held| compared.off(held)).collect();
        for (setting, off) in settings.iter().zip(&off) {
            figure.point(compared.name, "simulated", setting.number as f64, *off);
        }
        let unit = if compared.is_part { "%" } else { "points" };
        let within = off.iter().filter(|off| off.abs() <= compared.most).count();
        let claim = format!(
            "settings of {} with {} within {} {unit}",
            off.len(),
            compared.name,
            compared.most
        );
        figure.at_least(claim, within as f64, off.len() as f64);
        let mut sizes: Vec<f64> = off.iter().map(|off| off.abs()).collect();
        sizes.sort_by(f64::total_cmp);
        let claim = format!("{}: median off, {unit}", compared.name);
        figure.at_most(claim, sizes[sizes.len() / 2], compared.most);
    }
    for (setting, held) in settings.iter().zip(&held) {
        figure.note(said(setting, held));
    }
    let spreads: Vec<f64> = held.iter().map(|held| 100.0 * (held.spread - 1.0)).collect();
    figure.note(format!(
        "Measured: the median of {RUNS} runs on the store, whose throughput differed by {:.0} % in \
         the mean and by {:.0} % at most. Simulated: on {}.",
        mean(spreads.iter().copied()).unwrap_or(0.0),
        most(spreads).unwrap_or(0.0),
        spec_of_machine(&machine),
    ));
    Ok(figure)
}

/// Returns a setting and its figures, measured and simulated.
fn said(setting: &Setting, held: &Held) -> String {
    let figures = COMPARED.iter().map(|compared| {
        let measured = (compared.measured)(&held.measured);
        let simulated = (compared.simulated)(&held.simulated);
        format!("{} {measured:.3} ({simulated:.3})", compared.name)
    });
    let figures: Vec<String> = figures.collect();
    let Setting { number, policy, workload, memtable, threads } = setting;
    format!(
        "{number}: {policy}, {workload}, memtable {memtable}, threads {threads}: measured \
         (simulated) {}",
        figures.join(", ")
    )
}
