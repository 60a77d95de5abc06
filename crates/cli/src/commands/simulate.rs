//! `simulate`: simulates a policy without a disk.

use super::notes::unfilled;
use super::run::{cost_rows, size_list};
use crate::args::SimulateArgs;
use crate::bars::Bars;
use crate::failure::{bad_argument, print_line};
use crate::output::{Output, print_json};
use crate::page;
use crate::specs;
use crate::table::{cost, percent, short, short_bytes, table};
use lsmith_lab::history::Recorder;
use lsmith_lab::page::Group;
use lsmith_lab::{
    Content, FileSizes, Least, Optimum, Options, Progress, Simulated, SimulatedTime, fluid_fits,
    keyed_fits, sealing, simulate_observed, simulate_time, unit_fits,
};
use lsmith_policy::{MergePolicy, Shape};
use lsmith_sim::{Event, FluidWorkload, KeyedWorkload, Machine, SimError};
use lsmith_spec::{SpecError, format_bytes};
use lsmith_workload::{FlushSizes, Workload};
use serde::Serialize;
use std::sync::Arc;

/// Bytes of each value of the default workload.
const VALUE_BYTES: u64 = 1000;

/// The most bytes of a unit simulation. Write costs of thousands then fit 64 bits.
const UNIT_BYTES_MAX: u64 = 1 << 50;

pub(crate) fn simulate(args: &SimulateArgs, json: bool) -> anyhow::Result<()> {
    let sizes = specs::flush_sizes(args.flush_sizes.sizes.as_deref())?;
    let (built, keyed, fluid);
    check_keyed(args)?;
    let machine = specs::machine(args.machine.machine.as_deref())?;
    let mut memtable_bytes = args.memtable.bytes();
    let content = match args.content.as_str() {
        "unit" => {
            built = specs::policy(&args.policy)?;
            check_unit(args, &sizes, built.needs().windows)?;
            Content::Unit { flushes: args.flushes, sizes: &sizes }
        }
        "keyed" => {
            keyed = keyed_workload(args, &sizes)?;
            memtable_bytes = args.memtable.of(keyed.workload());
            built = policy_for(args, keyed.workload())?;
            Content::Keyed(&keyed)
        }
        "fluid" => {
            let workload = workload(args, &sizes)?;
            memtable_bytes = args.memtable.of(&workload);
            built = policy_for(args, &workload)?;
            fluid = fluid_workload(&workload)?;
            Content::Fluid(&fluid)
        }
        other => {
            let known = ["unit", "keyed", "fluid"];
            return Err(bad_argument(SpecError::unknown("content", other, &known)));
        }
    };
    specs::check_sealing(&sizes, std::slice::from_ref(&built))?;
    let policy = sealing(built, &sizes);

    let mut output = Output::new();
    let mut trace = args.trace.then(|| Trace::new((!json).then_some(&mut output)));
    let bars = Bars::new();
    bars.begin(&format!("{}: {} simulation", policy.spec(), content.name()), args.flushes);
    let mut done = 0;
    let mut recorder = args.html.is_some().then(|| Recorder::new(content.key_scale()));
    let mut on_event = |event: Event<'_>| {
        recorder.iter_mut().for_each(|recorder| recorder.observe(event));
        trace.iter_mut().for_each(|trace| trace.observe(event));
        if let Event::Flushed { .. } = event {
            done += 1;
            bars.advance(done);
        }
    };
    let files = file_sizes(&content, memtable_bytes)?;
    let outcome =
        simulate_observed(&policy, &content, memtable_bytes, files.as_ref(), &mut on_event);
    let mut simulated = outcome.map_err(refusal)?;
    let least = least(args, &content, &sizes, memtable_bytes).map_err(refusal)?;
    simulated.optimum = least.optimum(&simulated);
    let time = time(args, &policy, &content, machine.as_ref())?;
    let has_levels = matches!(policy.shape(), Shape::Leveled { .. });
    drop(bars);
    check_flushes(args, &sizes, simulated.report.costs.flushes)?;
    recorder.map_or(Ok(()), |recorder| write_page(args, &simulated, &least, recorder))?;
    let traced = trace.map(Trace::finish).transpose()?;
    if json {
        let flush_sizes = (!sizes.is_constant()).then(|| sizes.spec().to_string());
        return print_json(&Traced { simulated, time, flush_sizes, trace: traced });
    }
    output.line(shown(has_levels, &simulated))?;
    if let Some(time) = time {
        output.line(format_args!("\n{}", shown_time(&time)))?;
    }
    Ok(output.finish()?)
}

/// Returns the flushes of `content`, in key ranges too if `args` ask for them.
fn least(
    args: &SimulateArgs,
    content: &Content<'_>,
    sizes: &Arc<FlushSizes>,
    memtable_bytes: u64,
) -> Result<Least, SimError> {
    let least = Least::of(content, sizes, memtable_bytes)?;
    match (args.key_ranges, content) {
        (Some(ranges), Content::Keyed(workload)) => {
            least.with_key_ranges(workload, sizes, memtable_bytes, ranges)
        }
        _ => Ok(least),
    }
}

fn write_page(
    args: &SimulateArgs,
    simulated: &Simulated,
    least: &Least,
    recorder: Recorder,
) -> anyhow::Result<()> {
    let least = least.points(simulated);
    let group = Group::of_simulations(vec![(simulated.clone(), recorder)], &least)?;
    page::write("lsmith simulate", vec![group], args.html.as_deref(), None)
}

/// Fails if the workload has ended before the first of its `flushes`. Prints a line if it has ended
/// before as many as the arguments ask for.
fn check_flushes(args: &SimulateArgs, sizes: &FlushSizes, flushes: u64) -> anyhow::Result<()> {
    if flushes == 0 {
        let workload = args.group.applied_to(workload(args, sizes)?)?;
        // As no memtable was filled, these are few.
        let mut written = 0;
        for op in workload.ops() {
            let op = op?;
            written += op.user_bytes(workload.key_bytes(op.item));
        }
        return Err(unfilled(&args.policy, written, args.memtable.of(&workload)));
    }
    if flushes < args.flushes {
        print_line(&format!("the workload ended after {flushes} of {} flushes", args.flushes));
    }
    Ok(())
}

/// Returns what files of the workload take, if its keys are simulated.
fn file_sizes(content: &Content<'_>, memtable_bytes: u64) -> anyhow::Result<Option<FileSizes>> {
    let Content::Keyed(keyed) = content else { return Ok(None) };
    let options = Options { memtable_bytes, ..Options::default() };
    FileSizes::measured(keyed.workload(), &options)
}

/// Fails if a group, a cache or time is simulated without keys.
fn check_keyed(args: &SimulateArgs) -> anyhow::Result<()> {
    let found = [
        (!args.group.shares.is_empty(), "a group has keys"),
        (args.cache.is_some(), "a cache has blocks"),
        (args.machine.machine.is_some(), "time depends on keys"),
        (args.key_ranges.is_some(), "key ranges have keys"),
    ];
    let (most, flushes) = (Least::FLUSHES_OF_PARTS_MAX as u64, args.flushes);
    if let Some(ranges) = args.key_ranges.filter(|_| flushes > most) {
        let message = format!(
            "the least of {ranges} key ranges is known for up to {most} flushes, found {flushes}: \
             leave out `--key-ranges`, or take a larger memtable and fewer flushes"
        );
        return Err(bad_argument(message));
    }
    let found = found.iter().find(|(is_asked, _)| *is_asked && args.content != "keyed");
    let Some((_, what)) = found else {
        return Ok(());
    };
    let content = &args.content;
    Err(bad_argument(format!("{what}: expected `--content keyed`, found `{content}`")))
}

/// Returns the bytes at which all memtables are sealed together.
fn flushed_bytes(args: &SimulateArgs, sizes: &FlushSizes) -> u64 {
    if sizes.is_constant() {
        return args.flushes.saturating_mul(args.memtable.bytes());
    }
    let sizes = (0..args.flushes).map(|flush| sizes.bytes(flush, args.memtable.bytes()));
    sizes.fold(0, u64::saturating_add)
}

/// Fails if unit content cannot do what the arguments ask for.
fn check_unit(args: &SimulateArgs, sizes: &FlushSizes, takes_windows: bool) -> anyhow::Result<()> {
    if args.workload.is_some() {
        let message = "unit content has no keys: a workload needs `--content keyed` or `fluid`";
        return Err(bad_argument(message));
    }
    if takes_windows {
        let needs = "takes windows of keys: it needs `--content keyed` or `fluid`";
        return Err(bad_argument(format!("{} {needs}", args.policy)));
    }
    if flushed_bytes(args, sizes) > UNIT_BYTES_MAX {
        let flushes = args.flushes;
        let bytes = format_bytes(args.memtable.bytes());
        let message =
            format!("{flushes} flushes of {bytes} are too large: expected at most 2^50 bytes");
        return Err(bad_argument(message));
    }
    unit_fits(args.flushes)
}

/// Prints merges and trees flush by flush, or collects them for JSON.
struct Trace<'a> {
    /// `None` to collect.
    output: Option<&'a mut Output>,
    printed: std::io::Result<()>,
    steps: Vec<Step>,
    /// The number of flushes so far.
    flushes: u64,
    /// The merges since the last flush.
    merges: Vec<String>,
}

impl<'a> Trace<'a> {
    fn new(output: Option<&'a mut Output>) -> Trace<'a> {
        Trace { output, printed: Ok(()), steps: Vec::new(), flushes: 0, merges: Vec::new() }
    }

    fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Merge { plan, .. } => self.merges.push(plan.to_string()),
            Event::Flushed { tree } => {
                self.flushes += 1;
                let merges = std::mem::take(&mut self.merges);
                self.take(Step { flush: self.flushes, merges, tree: tree.to_string() });
            }
            // A policy that counts in blocks has several in a flush.
            Event::Sealed { .. } | Event::Rest { .. } => {}
        }
    }

    fn take(&mut self, step: Step) {
        match &mut self.output {
            Some(output) if self.printed.is_ok() => self.printed = step.print(output),
            Some(_) => {}
            None => self.steps.push(step),
        }
    }

    fn finish(self) -> std::io::Result<Vec<Step>> {
        self.printed.map(|()| self.steps)
    }
}

/// The JSON object of this command.
#[derive(Serialize)]
struct Traced {
    #[serde(flatten)]
    simulated: Simulated,
    /// A free run in simulated time, if a machine is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<SimulatedTime>,
    /// The sizes at which memtables are sealed, if not when they are full.
    #[serde(skip_serializing_if = "Option::is_none")]
    flush_sizes: Option<String>,
    /// The merges and trees of `--trace`.
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<Vec<Step>>,
}

/// The merges of a flush, each with its reason, and the tree at rest after it, as text.
#[derive(Serialize)]
struct Step {
    flush: u64,
    merges: Vec<String>,
    tree: String,
}

impl Step {
    fn print(&self, output: &mut Output) -> std::io::Result<()> {
        output.line(format_args!("# flush {}", self.flush))?;
        for merge in &self.merges {
            output.line(format_args!("# {merge}"))?;
        }
        output.line(&self.tree)
    }
}

fn keyed_workload(args: &SimulateArgs, sizes: &FlushSizes) -> anyhow::Result<KeyedWorkload> {
    let workload = args.group.applied_to(workload(args, sizes)?)?;
    keyed_fits(&workload, args.memtable.of(&workload))?;
    Ok(KeyedWorkload::new(workload).with_cache(args.cache))
}

fn fluid_workload(workload: &Workload) -> anyhow::Result<FluidWorkload> {
    fluid_fits(workload)?;
    FluidWorkload::new(workload).map_err(refusal)
}

fn policy_for(args: &SimulateArgs, workload: &Workload) -> anyhow::Result<Arc<dyn MergePolicy>> {
    let policy = specs::policy_for(&args.policy, workload, args.memtable.of(workload))?;
    args.group.check(&*policy)?;
    Ok(policy)
}

/// Turns a simulation error into an exit code: 2 if expected sizes do not fit the workload, else 1.
fn refusal(error: SimError) -> anyhow::Error {
    match error {
        SimError::NotFluid { .. } | SimError::FewEntries { .. } => bad_argument(error),
        _ => error.into(),
    }
}

fn workload(args: &SimulateArgs, sizes: &FlushSizes) -> anyhow::Result<Workload> {
    let enough = || {
        // A small memtable may take a whole entry.
        let more = if sizes.is_constant() { 1 } else { args.flushes };
        let keys = flushed_bytes(args, sizes) / VALUE_BYTES + more;
        format!("load(keys={keys}, value={VALUE_BYTES}B)")
    };
    let spec = args.workload.clone().unwrap_or_else(enough);
    Ok(specs::workload(&spec)?.limited_to(args.flushes))
}

/// Simulates a free run in time, if there is a machine.
fn time(
    args: &SimulateArgs,
    policy: &Arc<dyn MergePolicy>,
    content: &Content<'_>,
    machine: Option<&Machine>,
) -> anyhow::Result<Option<SimulatedTime>> {
    let (Some(machine), Content::Keyed(keyed)) = (machine, content) else { return Ok(None) };
    let usual = Options::default();
    let threads = args.threads.unwrap_or(usual.threads);
    let options = Options { memtable_bytes: args.memtable.of(keyed.workload()), threads, ..usual };
    Ok(Some(simulate_time(policy, keyed, machine, &options)?))
}

/// Returns what a free run is expected to take.
fn shown_time(time: &SimulatedTime) -> String {
    let share = 100.0 * time.held_back_seconds / time.seconds.max(f64::MIN_POSITIVE);
    let micros = |nanos: u64| format!("{:.1}", nanos as f64 * 1e-3);
    let puts = time.put_nanos.iter().flat_map(|put| {
        [("p50", put.p50), ("p99", put.p99), ("p99.9", put.p999)]
            .map(|(name, nanos)| (format!("a put, {name}, us"), micros(nanos)))
    });
    let rows = [
        ("operations per second", short(time.ops_per_second)),
        ("seconds", short(time.seconds)),
        ("cpu seconds", short(time.cpu_seconds)),
        ("cpu seconds of merges", short(time.merge_cpu_seconds)),
        ("writers held back, % of the time", format!("{share:.0}")),
        ("longest pause of a write, ms", format!("{:.0}", time.pause_longest * 1e3)),
        ("write_cost_system", cost(time.costs.write_cost_system)),
        ("read_cost_mean", cost(time.costs.read_cost_mean)),
        ("runs_max", time.costs.runs_max.to_string()),
    ];
    let rows = rows.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(puts);
    let rows = rows.map(|(name, value)| vec![name, value]).collect();
    table(&["free run in simulated time", "value"], 2, rows)
}

/// What the least write cost assumes.
/// Returns the rows of the optimum of merges of parts, if it is known.
fn parts_rows(simulated: &Simulated, optimum: &Optimum) -> Vec<Vec<String>> {
    let Some(parts) = &optimum.of_parts else {
        return Vec::new();
    };
    let runs = cost(simulated.report.costs.read_cost_mean);
    let (least, found) = (cost(parts.write_cost_system), cost(parts.found));
    let name = format!("least of {} key ranges, {runs} runs in the mean", parts.key_ranges);
    vec![
        vec![name, least],
        vec!["a schedule that was found".to_owned(), found],
        vec!["above the least, %".to_owned(), percent(Some(parts.above))],
    ]
}

const LEAST: &str = "\
No policy that merges whole runs of the same flushes writes less than the least. Policies that move
tables instead of merging them, or merge parts of runs, may be below it.";

/// What it assumes beside if keys are unknown.
const LEAST_WITHOUT_KEYS: &str = " Here no key is taken to be written twice.";

fn shown(has_levels: bool, simulated: &Simulated) -> String {
    let mut rows = vec![vec!["policy".to_owned(), simulated.policy.clone()]];
    rows.extend(simulated.workload.iter().map(|spec| vec!["workload".to_owned(), spec.clone()]));
    rows.extend(cost_rows(has_levels, &simulated.report.costs));
    for (number, keyspace) in simulated.keyspaces.iter().enumerate() {
        let flushed = short_bytes(keyspace.flushed_bytes);
        let name = format!("write_cost_system, keyspace {number} ({flushed} flushed)");
        rows.push(vec![name, cost(keyspace.write_cost_system)]);
    }
    if let Some(optimum) = &simulated.optimum {
        let about = if optimum.is_exact { "" } else { "at least " };
        let least = format!("{about}{}", cost(optimum.write_cost_system));
        rows.push(vec![format!("least write_cost_system, {} runs", optimum.runs_max), least]);
        rows.push(vec!["above it, %".to_owned(), percent(Some(optimum.above))]);
        if let Some(at_mean) = &optimum.at_mean_runs {
            let runs = cost(simulated.report.costs.read_cost_mean);
            let least = cost(at_mean.write_cost_system);
            rows.push(vec![format!("least write_cost_system, {runs} runs in the mean"), least]);
            rows.push(vec!["above it, %".to_owned(), percent(Some(at_mean.above))]);
        }
        rows.extend(parts_rows(simulated, optimum));
    }
    if let Some(uncertainty) = simulated.report.uncertainty {
        rows.push(vec!["uncertainty of write costs, %".to_owned(), percent(Some(uncertainty))]);
    }
    if let Some(physical) = &simulated.report.physical {
        let space = physical.space_cost_physical_mean;
        rows.push(vec!["write_cost_user".to_owned(), cost(physical.write_cost_user)]);
        rows.push(vec!["space_cost_physical_mean".to_owned(), cost(space)]);
    }
    rows.push(vec!["seconds".to_owned(), short(simulated.report.seconds)]);
    let unit = if simulated.content == "unit" { "flushes" } else { "bytes" };
    if let Some(sizes) = &simulated.sizes_oldest_first {
        rows.push(vec![format!("runs, oldest first, {unit}"), size_list(sizes)]);
    }
    if let Some(levels) = &simulated.levels {
        rows.push(vec![format!("levels, newest first, {unit}"), size_list(levels)]);
    }
    let shown = table(&["figure", "value"], 2, rows);
    match &simulated.optimum {
        None => shown,
        Some(optimum) if optimum.knows_keys || simulated.content == "unit" => {
            format!("{shown}\n{LEAST}")
        }
        Some(_) => format!("{shown}\n{LEAST}{LEAST_WITHOUT_KEYS}"),
    }
}
