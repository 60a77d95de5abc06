//! `tune`: the best policy for a workload.

use crate::args::TuneArgs;
use crate::output::{print, print_json};
use crate::specs;
use crate::table::{cost, short, table};
use lsmith_lab::tune::{Choice, Limits, Tuned, tune as tune_in_lab};

pub(crate) fn tune(args: &TuneArgs, json: bool) -> anyhow::Result<()> {
    let workload = specs::workload(&args.workload)?;
    let limits = Limits {
        read_cost_max: args.read_cost_max,
        space_cost_max: args.space_cost_max,
        memory_bytes: args.memory,
        memtable_bytes: args.memtable.bytes,
    };
    let tuned = tune_in_lab(&workload, &limits)?;
    match json {
        true => print_json(&tuned),
        false => Ok(print(shown(&tuned))?),
    }
}

fn shown(tuned: &Tuned) -> String {
    let best = &tuned.best;
    let mut rows = vec![vec!["best".to_owned(), best.policy.clone()]];
    let mut row = |name: &str, value: String| rows.push(vec![name.to_owned(), value]);
    row("memtable bytes", best.memtable_bytes.to_string());
    row("filter bits per key", cost(best.filter_bits));
    row("memory bytes", short(best.memory_bytes as f64));
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
    let figures = table(&["figure", "value"], 2, rows);
    let header = ["policy", "on the store", "write_cost_user", "read_cost_mean", "space_cost_mean"];
    let choice = |choice: &Choice| {
        let on_store = if choice.runs_on_store { "yes" } else { "formula only" };
        vec![
            choice.policy.clone(),
            on_store.to_owned(),
            cost(choice.write_cost_user),
            cost(choice.read_cost_mean),
            cost(choice.space_cost_mean),
        ]
    };
    let frontier = table(&header, 2, tuned.frontier.iter().map(choice).collect());
    format!("{figures}\n\n{frontier}")
}
