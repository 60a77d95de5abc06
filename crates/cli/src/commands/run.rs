//! `run`: runs one workload on the real store.

use super::notes::why_unfilled;
use crate::args::RunArgs;
use crate::bars::Bars;
use crate::output::{print, print_json};
use crate::specs;
use crate::table::{cost, cost_if_known, short, short_bytes, table};
use lsmith_lab::{Amount, Costs, EngineReport, Mode, Options, Percentiles, run as run_in_lab};
use lsmith_policy::Shape;
use std::collections::BTreeMap;

pub(crate) fn run(args: &RunArgs, json: bool) -> anyhow::Result<()> {
    let workload = args.group.applied_to(specs::workload(&args.workload)?)?;
    let usual = Options::default();
    let flush_sizes = specs::flush_sizes(args.flush_sizes.sizes.as_deref())?;
    let policy = specs::policy_for(&args.policy, &workload, args.memtable.of(&workload))?;
    specs::check_sealing(&flush_sizes, std::slice::from_ref(&policy))?;
    args.group.check(&*policy)?;
    let options = args.cache.added_to(Options {
        registry: specs::registry().clone(),
        memtable_bytes: args.memtable.of(&workload),
        compression: args.compression.checked()?,
        flush_sizes,
        mode: if args.free { Mode::Free } else { Mode::Lockstep },
        histograms: args.histograms,
        duration: args.duration,
        threads: args.threads.unwrap_or(usual.threads),
        ..usual
    });
    let bars = Bars::new();
    let has_levels = matches!(policy.shape(), Shape::Leveled { .. });
    let report = run_in_lab(policy, &workload, &args.dir, &options, &bars)?;
    drop(bars);
    if json {
        return print_json(&report);
    }
    let keyspace = if args.group.shares.is_empty() { "" } else { "--keyspace keyspace-0 " };
    let dir = args.dir.display();
    let kept = format!("The store is kept: `lsmith db {dir} {keyspace}stats` looks into it.");
    Ok(print(format_args!("{}\n{kept}", shown(has_levels, &report)))?)
}

/// Returns the figures that store and simulations share, one per row, of a policy that builds
/// levels or not.
pub(crate) fn cost_rows(has_levels: bool, costs: &Costs) -> Vec<Vec<String>> {
    let measured = costs.scan_cost_measured;
    let rows = [
        ("sealed", costs.sealed.to_string()),
        ("flushes", costs.flushes.to_string()),
        ("merges", costs.merges.to_string()),
        ("moves", costs.moves.to_string()),
        ("write_cost_eager", cost(costs.write_cost_eager)),
        ("write_cost_system", cost(costs.write_cost_system)),
        ("read_cost_mean", cost(costs.read_cost_mean)),
        ("read_cost_mean_l0_one", cost_if_known(l0_one(has_levels, costs))),
        ("scan_cost_mean, runs", cost(costs.scan_cost_mean.runs)),
        ("scan_cost_mean, blocks", cost_if_known(costs.scan_cost_mean.blocks)),
        ("scan_cost_measured, runs", cost_if_known(measured.map(|scan| scan.runs))),
        ("scan_cost_measured, blocks", cost_if_known(measured.and_then(|scan| scan.blocks))),
        ("read_cost_uncached", cost_if_known(costs.read_cost_uncached)),
        ("scan_cost_uncached", cost_if_known(costs.scan_cost_uncached)),
        ("runs_max", costs.runs_max.to_string()),
        ("settled_runs_mean", cost(costs.settled_runs_mean)),
        ("merge_bytes_max", short_bytes(costs.merge_bytes_max)),
        ("flushes_unmerged_max", costs.flushes_unmerged_max.to_string()),
        ("space_cost_peak", cost_if_known(costs.space_cost_peak)),
        ("space_cost_mean", cost_if_known(costs.space_cost_mean)),
        ("write_cost_blocks", cost(costs.write_cost_blocks)),
        ("blocks_written", costs.blocks_written.to_string()),
        ("blocks_reused", costs.blocks_reused.to_string()),
    ];
    rows.into_iter().map(|(name, value)| vec![name.to_owned(), value]).collect()
}

/// Returns `read_cost_mean_l0_one` of a policy that builds levels. It says nothing of a stack,
/// whose runs all lie in level 0.
pub(crate) fn l0_one(has_levels: bool, costs: &Costs) -> Option<f64> {
    has_levels.then_some(costs.read_cost_mean_l0_one)
}

/// So many sizes stand in a line of a table.
const SIZES_SHOWN: usize = 16;

/// Returns sizes separated by spaces, the first of them if they are many. JSON has them all.
pub(crate) fn size_list(sizes: &[Amount]) -> String {
    let text =
        |size: &Amount| if size.0.fract() == 0.0 { size.0.to_string() } else { cost(size.0) };
    let shown = &sizes[..sizes.len().min(SIZES_SHOWN)];
    let mut texts: Vec<String> = shown.iter().map(text).collect();
    if shown.len() < sizes.len() {
        texts.push(format!("and {} more", sizes.len() - shown.len()));
    }
    texts.join(" ")
}

fn shown(has_levels: bool, report: &EngineReport) -> String {
    let mut rows = Vec::new();
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("policy", report.settings.policy.clone());
    row("workload", report.settings.workload.clone());
    if let Some(shares) = &report.settings.group {
        row("shares of the group", shares.clone());
    }
    row("mode", report.mode.to_owned());
    row("memtable bytes", report.settings.memtable_bytes.to_string());
    rows.extend(cost_rows(has_levels, &report.costs));
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("space_cost_physical_peak", cost_if_known(report.space_cost_physical_peak));
    row("space_cost_physical_mean", cost_if_known(report.space_cost_physical_mean));
    row("write_cost_user", cost_if_known(report.write_cost_user));
    row("read_cost_measured, hit", cost_if_known(report.read_cost_measured.hit));
    row("read_cost_measured, miss", cost_if_known(report.read_cost_measured.miss));
    row("operations", report.ops.to_string());
    for phase in &report.phases {
        let per_second = short(phase.ops_per_second);
        row(&format!("operations per second, {}", phase.name), per_second);
    }
    row("seconds", short(report.seconds));
    row("cpu seconds", short(report.cpu_seconds));
    if let Some(debt) = &report.debt {
        row("seconds for which writers were held back", short(report.held_back_seconds));
        row("seconds for which merges were owed", short(debt.seconds));
        row("the longest of them at a stretch", short(debt.seconds_longest));
        row("memtables waiting, mean", cost(debt.memtables_waiting_mean));
    }
    let bytes = &report.bytes.physical;
    for (name, bytes) in [
        ("bytes of the user", bytes.user),
        ("bytes of the log", bytes.log),
        ("bytes of flushes", bytes.flush),
        ("bytes read by merges", bytes.merge_read),
        ("bytes written by merges", bytes.merge_written),
        ("bytes of metadata", bytes.metadata),
    ] {
        row(name, short(bytes as f64));
    }
    let note = "All phases and all completed flushes count. The last active memtable stays in \
                memory and in the log.";
    let mut figures = format!("{}\n{note}", table(&["figure", "value"], 2, rows));
    if report.costs.flushes == 0 {
        let why = why_unfilled(bytes.user, report.settings.memtable_bytes);
        figures.push_str(&format!("\nNote: {why}."));
    }
    match &report.histograms {
        Some(histograms) => format!("{figures}\n\n{}", shown_histograms(histograms)),
        None => figures,
    }
}

fn shown_histograms(histograms: &BTreeMap<&'static str, Percentiles>) -> String {
    let row = |(name, found): (&&str, &Percentiles)| {
        let numbers = [found.p50, found.p99, found.p999, found.max].map(|n| n.to_string());
        let mut row = vec![(*name).to_owned(), found.count.to_string(), short(found.mean)];
        row.extend(numbers);
        row
    };
    let head = ["histogram", "count", "mean", "p50", "p99", "p999", "max"];
    table(&head, 1, histograms.iter().map(row).collect())
}
