//! Free runs beside runs in lockstep.

use crate::table::{cost, cost_if_known, percent, table};
use lsmith_lab::page::PutTimes;
use lsmith_lab::{FreeRun, PutNanos, Row};

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

const PUT_HEADER: [&str; 10] = [
    "a put of\nthe free run",
    "p50\nus",
    "simu-\nlated",
    "p99\nus",
    "simu-\nlated",
    "p99.9\nus",
    "simu-\nlated",
    "longest\npause ms",
    "held\nback s",
    "1000\nops/s",
];

/// Returns the times of puts under one policy, with the simulated ones after the measured ones.
fn put(policy: &str, put: PutTimes, simulated: Option<PutNanos>) -> Vec<String> {
    let micros = |nanos: u64| format!("{:.1}", nanos as f64 * 1e-3);
    let known = |of: fn(PutNanos) -> u64| {
        simulated.map_or_else(|| "-".to_owned(), |found| micros(of(found)))
    };
    vec![
        policy.to_owned(),
        micros(put.nanos.p50),
        known(|found| found.p50),
        micros(put.nanos.p99),
        known(|found| found.p99),
        micros(put.nanos.p999),
        known(|found| found.p999),
        format!("{:.1}", put.nanos.max as f64 * 1e-6),
        format!("{:.2}", put.held_back_seconds),
        format!("{:.1}", put.ops_per_second * 1e-3),
    ]
}

/// Returns the table of the times of puts. It has simulated times if there are any.
fn puts(rows: &[Row]) -> Option<String> {
    let free = rows.iter().filter_map(|row| Some((row, row.free.as_ref()?)));
    let simulated = |free: &FreeRun| free.simulated.as_ref().and_then(|time| time.put_nanos);
    let found: Vec<_> = free
        .filter_map(|(row, free)| Some((row, PutTimes::of(&free.engine)?, simulated(free))))
        .collect();
    let has_simulated = found.iter().any(|(.., simulated)| simulated.is_some());
    let shown = |index: usize| has_simulated || !PUT_HEADER[index].starts_with("simu");
    let only = |cells: Vec<String>| -> Vec<String> {
        let cells = cells.into_iter().enumerate().filter(|(index, _)| shown(*index));
        cells.map(|(_, cell)| cell).collect()
    };
    let header: Vec<&str> =
        (0..PUT_HEADER.len()).filter(|index| shown(*index)).map(|at| PUT_HEADER[at]).collect();
    let cells =
        found.iter().map(|(row, times, simulated)| only(put(&row.policy, *times, *simulated)));
    (!found.is_empty()).then(|| table(&header, 1, cells.collect()))
}

pub(super) const LEGEND: &str = "\
In free runs, writers and merging threads went at their own speed. read mean and space mean are
  taken when the next memtable is sealed, whether or not merges have come to rest.
held back: seconds for which writers were delayed, because merges were behind. merges owed: seconds
  during which there was a merge to make.";

const TIME_HEADER: [&str; 13] = [
    "measured (M),\nsimulated (S)",
    "1000\nops/s M",
    "\nS",
    "cpu s\nM",
    "\nS",
    "write\nsys. M",
    "\nS",
    "read\nmean M",
    "\nS",
    "held\n% M",
    "\nS",
    "longest\nms M",
    "\nS",
];

/// Returns a table of free runs beside the same runs in simulated time, if a machine is given.
pub(super) fn time(rows: &[Row]) -> Option<String> {
    let runs = rows.iter().filter_map(|row| Some((row, row.free.as_ref()?)));
    let both = runs.filter_map(|(row, free)| Some((row, &free.engine, free.simulated.as_ref()?)));
    let share =
        |part: f64, whole: f64| format!("{:.0}", 100.0 * part / whole.max(f64::MIN_POSITIVE));
    let cells = both.map(|(row, measured, simulated)| {
        let writes = measured.histograms.as_ref().and_then(|found| found.get("write_nanos"));
        vec![
            row.policy.clone(),
            format!("{:.1}", measured.ops_per_second * 1e-3),
            format!("{:.1}", simulated.ops_per_second * 1e-3),
            format!("{:.1}", measured.cpu_seconds),
            format!("{:.1}", simulated.cpu_seconds),
            cost(measured.costs.write_cost_system),
            cost(simulated.costs.write_cost_system),
            cost(measured.costs.read_cost_mean),
            cost(simulated.costs.read_cost_mean),
            share(measured.held_back_seconds, measured.seconds),
            share(simulated.held_back_seconds, simulated.seconds),
            writes
                .map_or_else(|| "-".to_owned(), |found| format!("{:.0}", found.max as f64 * 1e-6)),
            format!("{:.0}", simulated.pause_longest * 1e3),
        ]
    });
    let cells: Vec<_> = cells.collect();
    (!cells.is_empty()).then(|| format!("{}\n{TIME_LEGEND}\n", table(&TIME_HEADER, 1, cells)))
}

const TIME_LEGEND: &str = "\
simulated: the same free run in time, on the machine that is given. held: the part of the time in
  which writers were held back. longest: the longest pause of a write.";

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
    if let Some(puts) = puts(rows) {
        text.push_str(&format!("\n\n{puts}"));
    }
    for (row, free) in both() {
        text.push_str(&format!("\n\n{}:", row.policy));
        for line in &free.why {
            text.push_str(&format!("\n- {line}"));
        }
    }
    text.push('\n');
    text
}
