//! Judges the policy that prices runs by reads, beside policies with any fixed parameter.

mod production;
mod workloads;

use crate::form::*;
use anyhow::Context;
use lsmith_sim::KeyedSim;
use lsmith_tree::EntryKind;
use lsmith_workload::{Rng, Zipf};
use production::{CLUSTERS, Cluster};

/// The policy that is judged: nothing of it is chosen for a setting.
const AUTO: &str = "auto(runs=40, price=reads)";

/// Policies with fixed parameters. The best of them in hindsight is what `AUTO` has to reach.
const FIXED: [&str; 27] = [
    "minlatency(k=2)",
    "minlatency(k=3)",
    "minlatency(k=4)",
    "minlatency(k=5)",
    "minlatency(k=6)",
    "minlatency(k=8)",
    "minlatency(k=12)",
    "minlatency(k=16)",
    "minlatency(k=24)",
    "binomial(k=4)",
    "binomial(k=8)",
    "binomial(k=16)",
    "tiered(ratio=2)",
    "tiered(ratio=4)",
    "tiered(ratio=8)",
    "lazy_leveling(ratio=4)",
    "lazy_leveling(ratio=8)",
    "bigtable",
    "bigtable(k=8)",
    "exploring",
    "universal(trigger=8)",
    "cola",
    "samt",
    "leveled(ratio=8)",
    "leveled(ratio=4)",
    "clickhouse",
    "lucene_tiered",
];

/// The fixed policies that have curves of their own.
const DRAWN: [&str; 2] = ["minlatency(k=5)", "tiered(ratio=4)"];

/// What one run costs a lookup and a range read, in written bytes: the defaults of the policy.
const GET: f64 = 24.0;
const SCAN: f64 = 430.0;

const ENTRY_BYTES: u32 = 124;
const TOMBSTONE_BYTES: u32 = 24;
const MEMTABLE_BYTES: u64 = 500 * ENTRY_BYTES as u64;

/// Keys, and puts in all phases together.
const KEYS: u64 = 40_000;
const PUTS: u64 = 160_000;
const PUTS_QUICK: u64 = 30_000;

/// Shares of reads among all operations, which stay or shift.
const STEADY: [f64; 5] = [0.1, 0.3, 0.5, 0.7, 0.9];
const SHIFTS: [&[f64]; 4] =
    [&[0.0, 0.9, 0.0, 0.9], &[0.9, 0.1, 0.9, 0.1], &[0.1, 0.3, 0.9], &[0.95, 0.5, 0.0]];

/// The fewest and the most keys of a cluster. Clusters have many more, and far larger memtables.
const CLUSTER_KEYS: [f64; 2] = [5e3, 2e5];

/// What the judged policy costs in a setting, and what all fixed ones cost.
struct Costs {
    auto: f64,
    fixed: Vec<f64>,
}

impl Costs {
    fn of(cost: impl Fn(&str) -> anyhow::Result<f64>) -> anyhow::Result<Costs> {
        let fixed = FIXED.into_iter().map(&cost).collect::<anyhow::Result<Vec<f64>>>()?;
        Ok(Costs { auto: cost(AUTO)?, fixed })
    }

    /// Returns the cost of the best fixed policy.
    fn best(&self) -> f64 {
        self.fixed.iter().copied().fold(f64::INFINITY, f64::min)
    }

    /// Returns the cost of the judged policy over the cost of the best fixed one.
    fn over(&self) -> f64 {
        self.auto / self.best()
    }
}

/// A workload: puts, and lookups or range reads whose share changes from phase to phase.
#[derive(Clone)]
struct Setting {
    panel: &'static str,
    /// Written bytes that one run costs a read.
    read: f64,
    keys: u64,
    /// The exponent of Zipf's law; 0 if keys are drawn evenly.
    skew: f64,
    /// The share of deletes among puts and deletes.
    deletes: f64,
    shares: Vec<f64>,
}

impl Setting {
    fn all() -> Vec<Setting> {
        let mut all = Vec::new();
        for (panel, read) in [("gets", GET), ("scans", SCAN)] {
            for skew in [0.0, 0.99] {
                let steady = STEADY.iter().map(std::slice::from_ref);
                all.extend(steady.chain(SHIFTS).map(|shares| Setting {
                    panel,
                    read,
                    keys: KEYS,
                    skew,
                    deletes: 0.0,
                    shares: shares.to_vec(),
                }));
            }
        }
        all
    }

    /// Returns the operations of a cluster in production, with `writes` puts and deletes.
    fn of_cluster(cluster: &Cluster, writes: u64) -> Setting {
        let share = cluster.puts + cluster.deletes;
        let keys = writes as f64 / share / cluster.per_key;
        Setting {
            panel: "production",
            read: GET,
            keys: keys.clamp(CLUSTER_KEYS[0], CLUSTER_KEYS[1]) as u64,
            skew: cluster.skew,
            deletes: cluster.deletes / share,
            shares: vec![cluster.gets],
        }
    }

    fn is_steady(&self) -> bool {
        self.shares.len() == 1
    }

    fn costs(&self, puts: u64, task: &Task<'_>, ticker: &Ticker<'_>) -> anyhow::Result<Costs> {
        Costs::of(|spec| {
            ticker.tick(puts);
            self.cost(spec, puts, task)
        })
    }

    /// Returns what `spec` costs per byte that is put: written bytes, and for each run of each read
    /// the bytes that it is worth.
    fn cost(&self, spec: &str, puts: u64, task: &Task<'_>) -> anyhow::Result<f64> {
        let policy = task.policy(spec)?;
        let mut sim = KeyedSim::new(&policy, MEMTABLE_BYTES);
        let mut random = Rng::new(1, 0);
        let zipf = (self.skew > 0.0).then(|| Zipf::new(self.keys, self.skew));
        let (mut is_live, mut live) = (vec![false; self.keys as usize], 0);
        let (mut due, mut reads_cost) = (0.0, 0.0);
        for put in 0..puts {
            let phase = put as usize * self.shares.len() / puts as usize;
            due += self.shares[phase] / (1.0 - self.shares[phase]);
            let reads = due as u64;
            due -= reads as f64;
            let runs = sim.tree().disk_run_count();
            reads_cost += self.read * (reads * runs as u64) as f64;
            match self.panel {
                "scans" => sim.note_reads([0, 0, reads]),
                _ => sim.note_reads([reads, 0, 0]),
            }
            // Popular keys lie anywhere among the others.
            let key = match &zipf {
                Some(zipf) => zipf.draw(&mut random),
                None => random.below(self.keys),
            };
            let key = key * 7_919 % self.keys;
            let is_put = self.deletes == 0.0 || random.unit() >= self.deletes;
            match (std::mem::replace(&mut is_live[key as usize], is_put), is_put) {
                (false, true) => live += u64::from(ENTRY_BYTES),
                (true, false) => live -= u64::from(ENTRY_BYTES),
                _ => {}
            }
            match is_put {
                true => sim.write(EntryKind::Put, key as u32, ENTRY_BYTES),
                false => sim.write(EntryKind::Delete, key as u32, TOMBSTONE_BYTES),
            }
            if sim.is_full() {
                sim.flush(live, &mut |_| {}).with_context(|| format!("policy {spec}"))?;
            }
        }
        let parts = sim.figures().parts;
        let written =
            parts.flush_written_bytes + parts.merge_memory_bytes + parts.merge_written_bytes;
        Ok((written as f64 + reads_cost) / (puts * u64::from(ENTRY_BYTES)) as f64)
    }
}

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let shares = || Axis::linear("share of reads", "");
    let cost = || Axis::log("written and read", "bytes per byte put");
    let mut figure = task.figure([
        Panel::new("gets", "lookups", shares(), cost()),
        Panel::new("scans", "range reads", shares(), cost()),
        Panel::new(
            "production",
            "clusters in production",
            Axis::log("cost of the best fixed policy", "bytes per byte put"),
            Axis::log("cost over it", ""),
        ),
        Panel::new(
            "workloads",
            "benchmarks",
            Axis::log("cost of the best fixed policy", "bytes per byte put"),
            Axis::log("cost over it", ""),
        ),
    ]);
    let puts = task.pick(PUTS_QUICK, PUTS);
    let settings = Setting::all();
    let work = |_: &Setting| puts * (FIXED.len() as u64 + 1);
    let found =
        task.each("reads that stay and reads that shift", &settings, work, |setting, ticker| {
            setting.costs(puts, task, ticker)
        })?;
    in_production(&mut figure, puts, task)?;
    workloads::judge(&mut figure, task)?;
    let mut over = [Vec::new(), Vec::new()];
    for (setting, costs) in settings.iter().zip(&found) {
        over[usize::from(!setting.is_steady())].push(costs.over());
        if setting.is_steady() && setting.skew == 0.0 {
            let share = setting.shares[0];
            figure.point(setting.panel, "auto", share, costs.auto);
            figure.point(setting.panel, "best fixed", share, costs.best());
            let fixed = FIXED.iter().zip(&costs.fixed);
            for (spec, cost) in fixed.filter(|(spec, _)| DRAWN.contains(spec)) {
                figure.point(setting.panel, spec, share, *cost);
            }
        }
    }
    let [steady, shifting] = over;
    figure.at_most(
        "steady: cost over the best fixed policy, most",
        most(steady.iter().copied()),
        1.03,
    );
    figure.at_most("steady: cost over the best fixed policy, mean", mean(steady), 1.03);
    figure.at_most(
        "shifting: cost over the best fixed policy, most",
        most(shifting.iter().copied()),
        1.0,
    );
    figure.at_most("shifting: cost over the best fixed policy, mean", mean(shifting), 1.0);
    figure.note(format!(
        "Keyed simulation of {puts} puts to {KEYS} keys, even or by Zipf's law (drawn: even), with \
         memtables of 500 entries. The cost is the bytes of all flushes and merges, plus {GET} \
         bytes for each run at each lookup or {SCAN} at each range read. The best fixed policy is \
         the cheapest of {} policies and parameters in that setting, known afterwards.",
        FIXED.len()
    ));
    Ok(figure)
}

/// Judges the policy under the operations of clusters in production.
fn in_production(figure: &mut Figure, writes: u64, task: &Task<'_>) -> anyhow::Result<()> {
    let work = |_: &Cluster| writes * (FIXED.len() as u64 + 1);
    let found = task.each("clusters in production", &CLUSTERS, work, |cluster, ticker| {
        Setting::of_cluster(cluster, writes).costs(writes, task, ticker)
    })?;
    judge_best(figure, "production", found);
    Ok(())
}

/// Judges the policy by the best fixed one of each setting, and draws it beside the fixed policy
/// that does best in all settings together.
fn judge_best(figure: &mut Figure, panel: &str, mut found: Vec<Costs>) {
    found.sort_by(|one, other| one.best().total_cmp(&other.best()));
    let over = || found.iter().map(Costs::over);
    let claim = format!("{panel}: cost over the best fixed policy");
    figure.at_most(format!("{claim}, mean"), mean(over()), 1.03);
    figure.at_most(format!("{claim}, most"), most(over()), 1.03);
    figure.draw(panel, "auto", found.iter().map(|it| (it.best(), it.over())));
    let fixed_over = |at: usize| found.iter().map(move |it| (it.best(), it.fixed[at] / it.best()));
    let in_all = |at: usize| mean(fixed_over(at).map(|it| it.1)).unwrap_or(f64::INFINITY);
    let all = (0..FIXED.len()).map(|at| (at, in_all(at)));
    if let Some((at, in_all)) = all.min_by(|one, other| one.1.total_cmp(&other.1)) {
        figure.draw(panel, &format!("{} everywhere", FIXED[at]), fixed_over(at));
        figure.note(format!(
            "{panel}: {} settings. Of the fixed policies, {} costs least in all of them together: \
             {in_all:.2} times the best of each, mean.",
            found.len(),
            FIXED[at]
        ));
    }
}
