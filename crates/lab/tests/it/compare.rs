//! Comparisons.

use crate::lockstep::BLOCK_POLICIES;
use lsmith_lab::{
    Comparison, Content, FileInputs, Least, Mode, NoProgress, Options, Row, run, simulate,
};
use lsmith_model::optimum::least_of_sizes;
use lsmith_policy::{MergePolicy, Registry, Shape};
use lsmith_sim::KeyedWorkload;
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Place, Reason, TreeView};
use lsmith_workload::{FlushSizes, Workload};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

fn compare(policies: &[&str], spec: &str, dir: &Path) -> anyhow::Result<Vec<Row>> {
    compare_with(policies, spec, dir, &Options::default(), (false, 1))
}

fn compare_with(
    policies: &[&str],
    spec: &str,
    dir: &Path,
    options: &Options,
    (free, runs): (bool, usize),
) -> anyhow::Result<Vec<Row>> {
    let registry = Registry::builtin();
    let policies: Vec<Arc<dyn MergePolicy>> =
        policies.iter().map(|spec| registry.build(spec).unwrap()).collect();
    let workload = Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap();
    let workload = KeyedWorkload::new(workload);
    let options = Options { memtable_bytes: 64 << 10, ..options.clone() };
    let mut rows = Vec::new();
    let comparison =
        Comparison { policies: &policies, workload: &workload, dir, options: &options, free, runs };
    comparison.run(&NoProgress, &mut |row| rows.push(row))?;
    Ok(rows)
}

#[test]
fn keyed_simulation_predicts_the_store_exactly() {
    let dir = tempfile::tempdir().unwrap();
    let policies = ["none", "binomial(k=3)", "tiered(ratio=3)", "leveled(ratio=3)"];
    for spec in [
        "load(keys=3k)",
        "ycsb(a, records=1k, ops=4k)",
        "mix(get=0.1, get_absent=0.1, scan=0.1, put=0.5, insert=0.1, delete=0.1, keys=1k, ops=4k)",
        "churn(keys=500, ops=5k, value=500B)",
    ] {
        let rows = compare(&policies, spec, dir.path()).unwrap();
        assert_eq!(rows.len(), policies.len());
        for row in rows {
            let engine = &row.engine.costs;
            let keyed = &row.keyed.costs;
            assert_eq!(engine.write_cost_eager, keyed.write_cost_eager, "{row:?}");
            assert_eq!(engine.write_cost_system, keyed.write_cost_system, "{row:?}");
            assert_eq!(engine.read_cost_mean, keyed.read_cost_mean, "{row:?}");
            assert_eq!(engine.read_cost_mean_l0_one, keyed.read_cost_mean_l0_one, "{row:?}");
            assert_eq!(engine.runs_max, keyed.runs_max, "{row:?}");
            assert_eq!(row.engine.bytes.logical, row.keyed.bytes, "{row:?}");
            assert_eq!(row.errors.keyed.write_cost_system, Some(0.0), "{row:?}");
            assert_eq!(engine.space_cost_peak, keyed.space_cost_peak, "{row:?}");
            assert_eq!(engine.space_cost_mean, keyed.space_cost_mean, "{row:?}");
            assert_eq!(row.unit.unwrap().costs.flushes, engine.flushes);
        }
    }
    let left = std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(left, 0, "stores are removed");
}

/// Policies that count in blocks leave a part of memory in place and keep blocks that are partly
/// full. Space counts entries, in memory and in blocks.
#[test]
fn space_of_policies_that_keep_blocks_is_that_of_their_entries() {
    let dir = tempfile::tempdir().unwrap();
    for spec in [
        "load(keys=6k, value=100B, flushes=9)",
        "ycsb(a, records=2k, ops=9k, value=100B)",
        "churn(keys=2k, ops=9k, deletes=0.4, value=100B)",
        "uniform(domain=9k, keys=3k, ops=9k, value=100B)",
    ] {
        let mut most: f64 = 0.0;
        for row in compare(BLOCK_POLICIES, spec, dir.path()).unwrap() {
            let engine = &row.engine.costs;
            let keyed = &row.keyed.costs;
            assert_eq!(engine.space_cost_peak, keyed.space_cost_peak, "{row:?}");
            assert_eq!(engine.space_cost_mean, keyed.space_cost_mean, "{row:?}");
            assert_eq!(row.engine.bytes.logical, row.keyed.bytes, "{row:?}");
            let mean = engine.space_cost_mean.unwrap();
            if spec.starts_with("load") {
                assert_eq!((mean, engine.flushes), (1.0, 9), "{row:?}");
            }
            assert!(mean >= 1.0, "{row:?}");
            most = most.max(mean);
            assert_eq!((engine.flushes, engine.sealed), (keyed.flushes, keyed.sealed), "{row:?}");
            let fluid = row.fluid.unwrap().costs;
            assert!(fluid.flushes.abs_diff(keyed.flushes) <= 1, "{row:?}");
        }
        assert!(spec.starts_with("load") || most > 1.2, "obsolete entries are held: {most}");
    }
}

/// The same number of flushes is the same writes under every policy.
#[test]
fn flushes_are_memtables_of_logical_bytes_under_every_policy() {
    let dir = tempfile::tempdir().unwrap();
    let policies = ["none", "leveled(ratio=3)", "full(ratio=3)", "rr(ratio=3)", "mixed(ratio=3)"];
    for spec in
        ["load(keys=3k, value=500B, flushes=12)", "churn(keys=50, value=500B, ops=9k, flushes=5)"]
    {
        let rows = compare(&policies, spec, dir.path()).unwrap();
        for row in &rows {
            let flushes = rows[0].engine.costs.flushes;
            assert_eq!(row.engine.ops, rows[0].engine.ops, "{row:?}");
            for costs in [row.engine.costs, row.keyed.costs, row.fluid.unwrap().costs] {
                assert_eq!(costs.flushes, flushes, "{row:?}");
            }
        }
    }
}

#[test]
fn unit_simulation_is_exact_without_updates() {
    let dir = tempfile::tempdir().unwrap();
    for row in compare(&["constant(k=3)", "minlatency(k=3)"], "load(keys=3k)", dir.path()).unwrap()
    {
        let error = row.errors.unit.unwrap().write_cost_system.unwrap();
        assert!(error.abs() < 0.01, "{}: {error}", row.policy);
    }
}

#[test]
fn missing_directory_ends_the_comparison() {
    let dir = tempfile::tempdir().unwrap();
    let error = compare(&["tiered"], "load(keys=10)", &dir.path().join("none")).unwrap_err();
    let message = format!("{error:#}");
    assert!(message.contains("policy tiered(ratio=4): cannot make a directory in"), "{message}");
}

/// A policy that calls itself `tiered(ratio=9)`, and rewrites a run without end.
#[derive(Debug)]
struct Restless;

impl MergePolicy for Restless {
    fn spec(&self) -> Spec {
        Spec::bare("tiered").with("ratio", 9)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let run = view.tree.disk_runs().last()?.id();
        Some(MergePlan::merge([run], Place::Oldest, Reason::new("once more", [0; 3])))
    }

    fn shape(&self) -> Shape {
        Shape::Tiered { ratio: 9 }
    }
}

/// What broke: the first policy that failed took the rows of all others with it.
#[test]
fn a_policy_that_fails_costs_its_own_row() {
    let dir = tempfile::tempdir().unwrap();
    let registry = Registry::builtin();
    let build = |spec| registry.build(spec).unwrap();
    let policies = [Arc::new(Restless) as Arc<dyn MergePolicy>, build("tiered"), build("leveled")];
    let workload = Workload::from_spec(&"load(keys=50)".parse().unwrap(), &FileInputs).unwrap();
    let comparison = Comparison {
        policies: &policies,
        workload: &KeyedWorkload::new(workload),
        dir: dir.path(),
        options: &Options { memtable_bytes: 8 << 10, ..Options::default() },
        free: false,
        runs: 1,
    };
    let mut rows = Vec::new();
    let failed = comparison.run(&NoProgress, &mut |row| rows.push(row.policy)).unwrap_err();
    assert_eq!(rows, [build("tiered"), build("leveled")].map(|policy| policy.spec().to_string()));
    assert!(format!("{failed:#}").starts_with("policy tiered(ratio=9): "), "{failed:#}");
}

#[test]
fn free_runs_stand_beside_runs_in_lockstep() {
    let dir = tempfile::tempdir().unwrap();
    let policies = ["leveled(ratio=3)", "choose_best(ratio=3)"];
    let options = Options { threads: 3, ..Options::default() };
    let spec = "ycsb(a, records=500, ops=1k)";
    let rows = compare_with(&policies, spec, dir.path(), &options, (true, 3)).unwrap();
    for row in rows {
        let free = row.free.as_ref().unwrap();
        assert_eq!((row.engine.mode, free.engine.mode), ("lockstep", "free"));
        assert_eq!((row.engine.debt, row.engine.settings.threads), (None, None));
        assert_eq!((free.engine.ops, free.engine.settings.threads), (row.engine.ops, Some(3)));
        let debt = free.engine.debt.unwrap();
        assert!(debt.times > 0 && debt.seconds_longest <= debt.seconds, "{debt:?}");
        assert!(debt.seconds <= free.engine.seconds, "{debt:?}");
        assert!(debt.memtables_waiting_mean <= debt.memtables_waiting_max as f64, "{debt:?}");
        // What broke: under policies that count in blocks, free runs had no samples.
        assert!(free.engine.costs.read_cost_mean > 0.0, "{}", row.policy);
        assert!(free.engine.costs.space_cost_mean.unwrap() > 0.0, "{}", row.policy);
        assert!(free.why.len() >= 4, "{:?}", free.why);
        for spread in [row.spread.unwrap(), free.spread.unwrap()] {
            assert_eq!(spread.runs, 3);
            let seconds = spread.seconds;
            assert!(seconds.least <= seconds.median && seconds.median <= seconds.most);
        }
        let spread = row.spread.unwrap();
        let costs = &row.engine.costs;
        assert_eq!(spread.read_cost_mean.least, spread.read_cost_mean.most, "lockstep repeats");
        assert_eq!(
            (row.engine.seconds, spread.seconds.median),
            (spread.seconds.median, row.engine.seconds)
        );
        // Policies that count in blocks rest at other times than in a simulation.
        if row.unit.is_some() {
            assert_eq!(costs.read_cost_mean, row.keyed.costs.read_cost_mean);
        }
    }
}

/// With merges that keep up, a free run takes the same samples as a run in lockstep.
#[test]
fn a_free_run_takes_one_sample_per_memtable() {
    let dir = tempfile::tempdir().unwrap();
    let workload = Workload::from_spec(&"load(keys=2k)".parse().unwrap(), &FileInputs).unwrap();
    let figures = |mode: Mode| {
        let options = Options { memtable_bytes: 64 << 10, mode, ..Options::default() };
        run("none", &workload, &dir.path().join(mode.name()), &options, &NoProgress).unwrap().costs
    };
    let free = figures(Mode::Free);
    let lockstep = figures(Mode::Lockstep);
    assert_eq!(free.runs_max, free.sealed);
    assert_eq!(lockstep.runs_max, lockstep.sealed);
    // While flushes are late, a memtable may take more than its size: then there are fewer.
    let fewer = lockstep.sealed - free.sealed;
    assert!(fewer <= 3, "{free:?} {lockstep:?}");
    // Each memtable that is late to become a run is missed once or a few times.
    let late = lockstep.read_cost_mean - free.read_cost_mean;
    assert!((0.0..=4.0 + fewer as f64).contains(&late), "{free:?} {lockstep:?}");
}

#[test]
fn a_limit_on_time_holds_for_all_parts() {
    let dir = tempfile::tempdir().unwrap();
    let duration = Some(Duration::from_millis(300));
    let options = Options { duration, ..Options::default() };
    // Far more than any machine writes in that time.
    let spec = "load(keys=2M, value=1000B)";
    let policies = ["tiered", "rr"];
    let rows = compare_with(&policies, spec, dir.path(), &options, (true, 1)).unwrap();
    for row in rows {
        let free = row.free.as_ref().unwrap();
        let flushes = free.engine.costs.flushes;
        assert!(flushes > 0 && free.engine.ops < 2_000_000, "{free:?}");
        assert_eq!((row.engine.costs.flushes, row.keyed.costs.flushes), (flushes, flushes));
        assert!(row.engine.ops <= free.engine.ops, "{} {free:?}", row.engine.ops);
        assert!(row.workload.contains("flushes="), "{}", row.workload);
    }
}

/// Every interpreter asks the same policy when to seal, so the same sizes hold everywhere.
#[test]
fn given_flush_sizes_hold_in_store_and_simulations() {
    let dir = tempfile::tempdir().unwrap();
    let spec = "lognormal(mean=0.25, sigma=1)".parse().unwrap();
    let sizes = Arc::new(FlushSizes::from_spec(&spec, &FileInputs).unwrap());
    let options = Options { flush_sizes: Arc::clone(&sizes), ..Options::default() };
    let policies = ["minlatency(k=3)", "bigtable(k=3, eager=never)", "tiered", "leveled(ratio=3)"];
    let load = "load(keys=20k, value=100B)";
    let rows = compare_with(&policies, load, dir.path(), &options, (true, 1)).unwrap();
    assert_eq!(rows.len(), policies.len());
    for row in rows {
        let engine = &row.engine.costs;
        let keyed = &row.keyed.costs;
        assert_eq!(engine.flushes, keyed.flushes, "{row:?}");
        assert_eq!(engine.write_cost_system, keyed.write_cost_system, "{row:?}");
        assert_eq!(engine.read_cost_mean, keyed.read_cost_mean, "{row:?}");
        assert_eq!(row.engine.bytes.logical, row.keyed.bytes, "{row:?}");
        let fluid = row.fluid.unwrap().costs;
        assert!(fluid.flushes.abs_diff(engine.flushes) <= 1, "{row:?}");
        let error = fluid.write_cost_system / engine.write_cost_system - 1.0;
        assert!(error.abs() < 0.05, "{row:?}");
        // An entry of 127 bytes takes a memtable beyond its size by half of that on average.
        let flushed: u64 = (0..engine.flushes).map(|flush| sizes.bytes(flush, 64 << 10)).sum();
        let more = row.engine.bytes.logical.flush - flushed;
        assert!((40..90).contains(&(more / engine.flushes)), "{more} more than {flushed}");
        let unit = row.unit.unwrap();
        assert_eq!(unit.bytes.flush, flushed, "{row:?}");
        assert!(row.model.is_none(), "{row:?}");
        assert_eq!(row.engine.settings.flush_sizes, Some(sizes.spec().to_string()));
        let free = row.free.unwrap().engine.costs;
        // A free writer that finds the tree locked leaves the sealing to a later write.
        assert!(free.flushes <= engine.flushes + 1, "{} {free:?}", engine.flushes);
        assert!(free.flushes > engine.flushes / 2, "{} {free:?}", engine.flushes);
    }
}

fn keyed(spec: &str) -> KeyedWorkload {
    let spec: Spec = spec.parse().unwrap();
    KeyedWorkload::new(Workload::from_spec(&spec, &FileInputs).unwrap())
}

/// The optimum is that for the sizes of these flushes.
#[test]
fn the_optimum_knows_the_sizes_of_flushes() {
    let sizes = FlushSizes::listed("listed", &[1000, 3000, 500, 4000, 100, 100, 2500]).unwrap();
    let content = Content::Unit { flushes: 60, sizes: &sizes };
    let shared = Arc::new(sizes.clone());
    for policy in ["minlatency(k=3)", "exploring(k=3)", "bigtable(k=3)"] {
        let policy = Registry::builtin().build(policy).unwrap();
        let simulated = simulate(&policy, &content, 4000, &mut |_| {}).unwrap();
        let least = Least::of(&content, &shared, 4000).unwrap();
        let optimum = least.optimum(&simulated).unwrap();
        let bytes: Vec<u64> = (0..60).map(|flush| sizes.bytes(flush, 4000)).collect();
        let least = least_of_sizes(&bytes, simulated.report.costs.runs_max);
        let cost = 1.0 + least.merged / bytes.iter().sum::<u64>() as f64;
        assert!(optimum.is_exact && !optimum.knows_keys);
        assert_eq!(optimum.write_cost_system, cost);
        assert!(simulated.report.costs.write_cost_system > cost);
        assert!(optimum.at_mean_runs.unwrap().above > 0.0);
    }
}

/// Where keys are spread evenly, merges of parts of runs can write no less than merges of whole
/// runs. Where keys come in order, they can.
#[test]
fn the_optimum_knows_merges_of_parts_of_runs() {
    let constant = Options::default().flush_sizes;
    let policy = Registry::builtin().build("minlatency(k=3)").unwrap();
    for (workload, parts_gain) in [
        ("mix(put=1, keys=3k, ops=20k, value=92B, flushes=40)", false),
        ("update(keys=20k, order=sequential, value=92B, flushes=40)", true),
    ] {
        let workload = keyed(workload);
        let content = Content::Keyed(&workload);
        let simulated = simulate(&policy, &content, 32_000, &mut |_| {}).unwrap();
        let optimum = |key_ranges: usize| {
            let least = Least::of(&content, &constant, 32_000).unwrap();
            let least = least.with_key_ranges(&workload, &constant, 32_000, key_ranges).unwrap();
            least.optimum(&simulated).unwrap()
        };
        let at_mean = optimum(1).at_mean_runs.unwrap().write_cost_system;
        let [one, eight] = [1, 8].map(|ranges| optimum(ranges).of_parts.unwrap());
        // One range is a whole run.
        assert!((one.write_cost_system / at_mean - 1.0).abs() < 0.01, "{one:?}, {at_mean}");
        assert_eq!((one.key_ranges, eight.key_ranges), (1, 8));
        let gain = 1.0 - eight.write_cost_system / one.write_cost_system;
        assert!(if parts_gain { gain > 0.3 } else { gain.abs() < 0.05 }, "{one:?}, {eight:?}");
        assert!(eight.write_cost_system <= eight.found && eight.above > 0.0, "{eight:?}");
        assert!(eight.found < eight.write_cost_system * 1.03, "{eight:?}");
    }
}

/// Merges of keys that repeat write less than they read. The optimum knows by how much.
#[test]
fn the_optimum_knows_the_keys_of_flushes() {
    let constant = Options::default().flush_sizes;
    // Bounds are for more than 500 flushes, or 300 at equal mean runs.
    for (workload, memtable_bytes, is_exact) in [
        ("mix(put=1, keys=3k, ops=20k, value=92B)", 64_000, true),
        ("mix(put=0.7, delete=0.3, keys=3k, ops=20k, value=92B, dist=zipf)", 32_000, true),
        ("ycsb(a, records=2k, ops=20k)", 60_000, true),
        ("mix(put=1, keys=3k, ops=100k, value=92B)", 16_000, false),
    ] {
        let workload = keyed(workload);
        let content = Content::Keyed(&workload);
        let least = Least::of(&content, &constant, memtable_bytes).unwrap();
        let mut below = 0;
        for policy in
            ["minlatency(k=3)", "binomial(k=6)", "bigtable(k=4)", "tiered(ratio=3)", "auto"]
        {
            let policy = Registry::builtin().build(policy).unwrap();
            let simulated = simulate(&policy, &content, memtable_bytes, &mut |_| {}).unwrap();
            let optimum = least.optimum(&simulated).unwrap();
            assert!(optimum.knows_keys);
            assert_eq!(optimum.is_exact, is_exact, "{}", simulated.flush_bytes.len());
            let at_mean = optimum.at_mean_runs.unwrap();
            assert!(optimum.above >= -1e-9, "{policy:?}: {optimum:?}");
            assert!(at_mean.above >= -1e-9, "{policy:?}: {optimum:?}");
            // Both are near: bounds that nobody reaches would say nothing.
            assert!(at_mean.above < 1.0 && optimum.above < 1.5, "{policy:?}: {optimum:?}");
            let costs = &simulated.report.costs;
            let apart = least_of_sizes(&simulated.flush_bytes, costs.runs_max).merged;
            let flushed: u64 = simulated.flush_bytes.iter().sum();
            below += u64::from(costs.write_cost_system < 1.0 + apart / flushed as f64);
        }
        assert!(below > 0, "no policy is below the optimum of flushes that share no key");
    }
    // Where more than the newest version of a key counts, keys are not known.
    for workload in ["queue(keys=20k, keep=2k, purge=200, value=92B)", "load(keys=20k, expire=3k)"]
    {
        let workload = keyed(workload);
        let content = Content::Keyed(&workload);
        let policy = Registry::builtin().build("minlatency").unwrap();
        let simulated = simulate(&policy, &content, 64_000, &mut |_| {}).unwrap();
        let optimum = Least::of(&content, &constant, 64_000).unwrap().optimum(&simulated);
        let optimum = optimum.unwrap();
        assert!(!optimum.knows_keys && optimum.at_mean_runs.is_none(), "{optimum:?}");
    }
    // Deletes leave nothing: no schedule has so few runs in the mean.
    let workload = keyed("mix(delete=1, keys=300, ops=60k, value=100B)");
    let content = Content::Keyed(&workload);
    let policy = Registry::builtin().build("minlatency(k=1)").unwrap();
    let simulated = simulate(&policy, &content, 8 << 10, &mut |_| {}).unwrap();
    assert!(simulated.report.costs.read_cost_mean < 1.0);
    let optimum = Least::of(&content, &constant, 8 << 10).unwrap().optimum(&simulated).unwrap();
    assert_eq!(optimum.at_mean_runs, None);
}
