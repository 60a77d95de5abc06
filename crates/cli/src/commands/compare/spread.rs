//! How far repeated runs differ.

use crate::table::{binary, cost, table};
use lsmith_lab::{Extent, Row, Spread};

const HEADER: [&str; 9] = [
    "least, median, most\nof repeated runs",
    "\nmode",
    "\nruns",
    "\nseconds",
    "cpu\nseconds",
    "bytes\nwritten",
    "held\nback s",
    "write\nsystem",
    "read\nmean",
];

/// Returns a table of the least, the median and the most of what was measured.
pub(super) fn shown(rows: &[Row]) -> String {
    let lines = rows.iter().flat_map(|row| {
        let free = row.free.as_ref().and_then(|free| free.spread.as_ref());
        let both = [("lockstep", row.spread.as_ref()), ("free", free)];
        both.into_iter().filter_map(|(mode, spread)| Some(line(&row.policy, mode, spread?)))
    });
    format!("{}\n", table(&HEADER, 2, lines.collect()))
}

fn line(policy: &str, mode: &str, spread: &Spread) -> Vec<String> {
    let three = |extent: &Extent, show: fn(f64) -> String| {
        [extent.least, extent.median, extent.most].map(show).join(" ")
    };
    vec![
        policy.to_owned(),
        mode.to_owned(),
        spread.runs.to_string(),
        three(&spread.seconds, cost),
        three(&spread.cpu_seconds, cost),
        three(&spread.bytes_written, |bytes| binary(bytes as u64)),
        three(&spread.held_back_seconds, cost),
        three(&spread.write_cost_system, cost),
        three(&spread.read_cost_mean, cost),
    ]
}
