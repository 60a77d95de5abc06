//! Free runs beside runs in lockstep.

use crate::table::{cost, cost_if_known, percent, table};
use lsmith_lab::Row;

const HEADER: [&str; 13] = [
    "lockstep (L),\nfree (F)",
    "write\nsys. L",
    "\nF",
    "keyed\nerror %",
    "read\nmean L",
    "\nF",
    "keyed\nerror %",
    "space\nmean L",
    "\nF",
    "seconds\nL",
    "\nF",
    "held\nback s",
    "merges\nowed s",
];

pub(super) const LEGEND: &str = "\
In free runs, writers and merging threads went at their own speed. read mean and space mean are
  taken when the next memtable is sealed, whether or not merges have come to rest.
held back: seconds for which writers were delayed, because merges were behind. merges owed: seconds
  during which there was a merge to make.";

/// Returns a table of both kinds of run, and below it why they differ.
pub(super) fn shown(rows: &[Row]) -> String {
    let both = || rows.iter().filter_map(|row| Some((row, row.free.as_ref()?)));
    let cells = both().map(|(row, free)| {
        let locked = &row.engine;
        let loose = &free.engine;
        vec![
            row.policy.clone(),
            cost(locked.costs.write_cost_system),
            cost(loose.costs.write_cost_system),
            percent(free.errors.write_cost_system),
            cost(locked.costs.read_cost_mean),
            cost(loose.costs.read_cost_mean),
            percent(free.errors.read_cost_mean),
            cost_if_known(locked.costs.space_cost_mean),
            cost_if_known(loose.costs.space_cost_mean),
            format!("{:.1}", locked.seconds),
            format!("{:.1}", loose.seconds),
            format!("{:.1}", loose.held_back_seconds),
            loose.debt.map_or_else(|| "-".to_owned(), |debt| format!("{:.1}", debt.seconds)),
        ]
    });
    let mut text = table(&HEADER, 1, cells.collect());
    for (row, free) in both() {
        text.push_str(&format!("\n\n{}:", row.policy));
        for line in &free.why {
            text.push_str(&format!("\n- {line}"));
        }
    }
    text.push('\n');
    text
}
