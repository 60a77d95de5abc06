//! `tune`: the best policy for a workload.

use crate::args::TuneArgs;
use crate::bars::Bars;
use crate::output::{print, print_json};
use crate::page;
use crate::specs;
use crate::table::{cost, cost_if_known, percent, short, table};
use lsmith_lab::Row;
use lsmith_lab::page::Group;
use lsmith_lab::tune::{
    Choice, DriftChoice, Drifted, Limits, Mix, Tuned, Verified, tune as tune_in_lab,
};
use lsmith_spec::format_bytes;

pub(crate) fn tune(args: &TuneArgs, json: bool) -> anyhow::Result<()> {
    let workload = specs::workload(&args.workload)?;
    let limits = Limits {
        read_cost_max: args.read_cost_max,
        space_cost_max: args.space_cost_max,
        memory_bytes: args.memory,
        memtable_bytes: args.memtable.bytes,
        drift: args.drift,
    };
    let mut tuned = tune_in_lab(&workload, &limits)?;
    if args.verify {
        let bars = Bars::new();
        tuned.verify(&workload, &std::env::temp_dir(), &bars)?;
    }
    if args.html.is_some() || args.svg.is_some() {
        let group = Group::of_tuned(&serde_json::to_value(&tuned)?)?;
        page::write("lsmith tune", vec![group], args.html.as_deref(), args.svg.as_deref())?;
    }
    if json { print_json(&tuned) } else { Ok(print(shown(&tuned))?) }
}

fn shown(tuned: &Tuned) -> String {
    let mut parts = vec![best(tuned), frontier(&tuned.frontier)];
    parts.extend(tuned.drift.as_ref().map(drift));
    parts.extend(tuned.verified.as_ref().map(verified));
    parts.join("\n\n")
}

fn best(tuned: &Tuned) -> String {
    let best = &tuned.best;
    let mut rows = vec![vec!["best".to_owned(), best.policy.clone()]];
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("memtable bytes", best.memtable_bytes.to_string());
    row("filter bits per entry", cost(best.filter_bits));
    row("memory bytes", short(best.memory_bytes as f64));
    row("of these memtables", short(best.memory.memtables as f64));
    row("of these filters", short(best.memory.filters as f64));
    row("of these fence pointers", short(best.memory.fences as f64));
    row("write_cost_user", cost(best.write_cost_user));
    row("read_cost_mean", cost(best.read_cost_mean));
    row("space_cost_mean", cost(best.space_cost_mean));
    if let Some(confirmed) = &best.confirmed {
        row("simulated with memtable bytes", confirmed.memtable_bytes.to_string());
        row("write_cost_system, formula", cost(confirmed.model_write_cost_system));
        row("write_cost_system, fluid", cost(confirmed.fluid_write_cost_system));
    }
    row("choices considered", tuned.considered.to_string());
    row("seconds", short(tuned.seconds));
    table(&["figure", "value"], 2, rows)
}

fn frontier(choices: &[Choice]) -> String {
    let header = [
        "policy",
        "on the store",
        "write_cost_user",
        "read_cost_mean",
        "space_cost_mean",
        "memory bytes",
    ];
    let choice = |choice: &Choice| {
        let on_store = if choice.runs_on_store { "yes" } else { "formula only" };
        vec![
            choice.policy.clone(),
            on_store.to_owned(),
            cost(choice.write_cost_user),
            cost(choice.read_cost_mean),
            cost(choice.space_cost_mean),
            short(choice.memory_bytes as f64),
        ]
    };
    table(&header, 2, choices.iter().map(choice).collect())
}

/// Returns a table of the nominal and the robust choice.
fn drift(drifted: &Drifted) -> String {
    let header = ["choice", "policy", "as expected", "at worst", "worst mix", "worst popularity"];
    let row = |name: &str, stand: &DriftChoice| {
        vec![
            name.to_owned(),
            stand.policy.clone(),
            cost(stand.cost_expected),
            cost(stand.cost_worst),
            mix(&stand.worst_mix),
            format!("to the power {}", cost(stand.worst_power)),
        ]
    };
    let rows = vec![row("nominal", &drifted.nominal), row("robust", &drifted.robust)];
    format!(
        "Blocks of 4 KiB per operation, as expected ({}) and at worst within {} nats:\n{}",
        mix(&drifted.mix),
        drifted.distance,
        table(&header, 2, rows)
    )
}

fn mix(mix: &Mix) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let [writes, hits, misses, scans] = [mix.writes, mix.hits, mix.misses, mix.scans].map(percent);
    format!("writes {writes}, hits {hits}, misses {misses}, scans {scans}")
}

/// Returns a table of measured and predicted figures.
fn verified(verified: &Verified) -> String {
    let header =
        ["policy", "figure", "store", "model", "error %", "fluid", "error %", "keyed", "error %"];
    let rows = verified.rows.iter().flat_map(|row| [writes(row), reads(row), space(row)]);
    format!(
        "On the store, {}, memtables of {}:\n{}",
        verified.workload,
        format_bytes(verified.memtable_bytes),
        table(&header, 2, rows.collect())
    )
}

/// Returns the cells of one figure: the measured value, then value and error of each prediction
/// (formula, fluid simulation, keyed simulation).
fn figure(
    row: &Row,
    name: &str,
    measured: Option<f64>,
    predicted: [Option<f64>; 3],
) -> Vec<String> {
    let mut cells = vec![row.policy.clone(), name.to_owned(), cost_if_known(measured)];
    for prediction in predicted {
        let relative = |(predicted, measured): (f64, f64)| predicted / measured - 1.0;
        let error = prediction.zip(measured).map(relative);
        cells.extend([cost_if_known(prediction), percent(error)]);
    }
    cells
}

fn writes(row: &Row) -> Vec<String> {
    let predicted = [
        row.model.map(|model| model.write_cost_system),
        row.fluid.map(|fluid| fluid.costs.write_cost_system),
        Some(row.keyed.costs.write_cost_system),
    ];
    figure(row, "write_cost_system", Some(row.engine.costs.write_cost_system), predicted)
}

fn reads(row: &Row) -> Vec<String> {
    let predicted = [
        row.model.map(|model| model.read_cost_mean),
        row.fluid.map(|fluid| fluid.costs.read_cost_mean),
        Some(row.keyed.costs.read_cost_mean),
    ];
    figure(row, "read_cost_mean", Some(row.engine.costs.read_cost_mean), predicted)
}

fn space(row: &Row) -> Vec<String> {
    let predicted = [
        row.model.map(|model| model.space_cost_mean),
        row.fluid.and_then(|fluid| fluid.costs.space_cost_mean),
        row.keyed.costs.space_cost_mean,
    ];
    figure(row, "space_cost_mean", row.engine.costs.space_cost_mean, predicted)
}
