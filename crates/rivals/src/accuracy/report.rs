//! Rows: what was measured beside what the formula says.

use super::counted::Counted;
use super::design::Design;
use anyhow::{Result, ensure};
use lsmith_model::Model;
use serde::Serialize;
use std::io::Write;

/// One design under one workload. Costs are bytes per byte of requests.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Row {
    /// The design.
    pub(crate) design: &'static str,
    /// The formula.
    pub(crate) formula: &'static str,
    /// Different keys.
    pub(crate) keys: u32,
    /// The skew of their popularity; 0 is uniform.
    pub(crate) zipf: f64,
    /// Requests after the load.
    pub(crate) requests: u64,
    /// Bytes of tables per entry after the load.
    pub(crate) item_bytes: f64,
    /// Requests from one flush to the next.
    pub(crate) memtable_requests: f64,
    /// Written by flushes.
    pub(crate) flushed: f64,
    /// Written by merges.
    pub(crate) merged: f64,
    /// Written by merges into each level from 1 on, where the store tells them apart.
    pub(crate) merged_by_level: Vec<f64>,
    /// Written in all, with the log once.
    pub(crate) measured: f64,
    /// The same by formula.
    pub(crate) expected: f64,
    /// The same if merges rewrote no more of the next level than tables overlap.
    pub(crate) expected_aligned: f64,
    /// Written into each level from 0 on, by formula.
    pub(crate) expected_by_level: Vec<f64>,
    /// How far the formula is off what was measured, in percent.
    pub(crate) off_percent: f64,
}

impl Row {
    /// Puts together what was `counted` and what the formula says.
    pub(crate) fn new(
        design: Design,
        keys: u32,
        skew: f64,
        requests: u64,
        item_bytes: f64,
        counted: &Counted,
    ) -> Result<Row> {
        ensure!(counted.flushes > 0, "too few requests: no memtable was flushed");
        let memtable_requests = requests as f64 / counted.flushes as f64;
        let formula = |false_overlap: f64| -> Result<Model> {
            design.model(keys, skew, item_bytes, memtable_requests, false_overlap)
        };
        let model = formula(1.0)?;
        let per_byte = |bytes: f64| bytes / (requests as f64 * item_bytes);
        let flushed = per_byte(counted.flush_bytes);
        let mut levels: Vec<f64> = counted.merge_bytes.iter().copied().map(per_byte).collect();
        let merged: f64 = levels.iter().sum();
        if levels.len() == 1 {
            levels.clear();
        }
        while levels.last() == Some(&0.0) {
            levels.pop();
        }
        let measured = 1.0 + flushed + merged;
        let expected = model.write_cost_user();
        Ok(Row {
            design: design.name,
            formula: design.formula,
            keys,
            zipf: skew,
            requests,
            item_bytes,
            memtable_requests,
            flushed,
            merged,
            merged_by_level: levels,
            measured,
            expected,
            expected_aligned: formula(0.0)?.write_cost_user(),
            expected_by_level: model.stages[1..].iter().map(|stage| stage.writes).collect(),
            off_percent: (expected / measured - 1.0) * 100.0,
        })
    }
}

/// The heading of [`line`].
const HEADING: &str = "\
    design                 keys  zipf  item B  memtable  measured  formula  off, %  aligned  \
    flushed  merged (by level) and by formula";

/// One row as text.
pub(crate) fn line(row: &Row) -> String {
    let costs = |costs: &[f64]| {
        let costs: Vec<String> = costs.iter().map(|cost| format!("{cost:.2}")).collect();
        costs.join(" ")
    };
    let settings = format!(
        "{:18} {:>8} {:>5} {:>7.1} {:>9.0}",
        row.design, row.keys, row.zipf, row.item_bytes, row.memtable_requests
    );
    let totals = format!(
        "{:>9.2} {:>8.2} {:>+7.1} {:>8.2} {:>8.2}",
        row.measured, row.expected, row.off_percent, row.expected_aligned, row.flushed
    );
    let levels = format!("{:.2} ({})", row.merged, costs(&row.merged_by_level));
    format!("{settings} {totals}  {levels} and {}", costs(&row.expected_by_level))
}

/// Prints all rows.
pub(crate) fn print(rows: &[Row], is_json: bool) -> Result<()> {
    let mut out = std::io::stdout().lock();
    if is_json {
        serde_json::to_writer_pretty(&mut out, &serde_json::json!({ "rows": rows }))?;
        writeln!(out)?;
        return Ok(());
    }
    writeln!(out, "{HEADING}")?;
    for row in rows {
        writeln!(out, "{}", line(row))?;
    }
    Ok(())
}
