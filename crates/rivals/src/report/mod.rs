//! Rows, their medians, and the ratios between stores.

mod row;
mod tables;
mod targets;

use crate::args::Args;
use crate::stores::Contender;
use anyhow::Result;
use serde::Serialize;
use std::io::Write;

pub(crate) use row::Row;
pub(crate) use tables::line;

use row::Ratio;

/// Everything that was measured.
pub(crate) struct Report {
    preface: String,
    stores: Vec<String>,
    value_bytes: usize,
    /// All rows of all turns, in the order in which they were measured.
    pub(crate) runs: Vec<Row>,
}

/// Everything that was measured, as JSON.
#[derive(Serialize)]
struct Json<'a> {
    settings: Vec<&'a str>,
    rows: Vec<Row>,
    ratios: Vec<Ratio>,
    runs: &'a [Row],
}

impl Report {
    /// A report without rows yet.
    pub(crate) fn new(args: &Args, contenders: &[Contender]) -> Report {
        Report {
            preface: tables::preface(args, contenders),
            stores: contenders.iter().map(Contender::label).collect(),
            value_bytes: args.value,
            runs: Vec::new(),
        }
    }

    /// What was asked for, and in what the stores differ because they must.
    pub(crate) fn preface(&self) -> &str {
        &self.preface
    }

    /// Names of phases, in the order in which they were measured.
    fn phases(&self) -> Vec<&str> {
        let mut phases: Vec<&str> = Vec::new();
        for row in &self.runs {
            if !phases.contains(&row.phase.as_str()) {
                phases.push(&row.phase);
            }
        }
        phases
    }

    /// The rows of one store and phase, a turn each.
    fn turns(&self, phase: &str, store: &str) -> Vec<&Row> {
        let of = |row: &&Row| row.phase == phase && row.store == store;
        self.runs.iter().filter(of).collect()
    }

    /// One row for each phase and store: medians over turns.
    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        for phase in self.phases() {
            for store in &self.stores {
                rows.extend(middle(&self.turns(phase, store)));
            }
        }
        rows
    }

    /// The first store's figures over the figures of each other one.
    fn ratios(&self) -> Vec<Ratio> {
        let mut ratios = Vec::new();
        let Some((first, rivals)) = self.stores.split_first() else { return ratios };
        for phase in self.phases() {
            for rival in rivals {
                ratios.push(self.ratio(phase, first, rival));
            }
        }
        ratios
    }

    fn ratio(&self, phase: &str, store: &str, rival: &str) -> Ratio {
        let ours = self.turns(phase, store);
        let theirs = self.turns(phase, rival);
        let over = |figure: fn(&Row) -> Option<f64>| {
            let turns = ours.iter().zip(&theirs);
            let shares = turns.filter_map(|(one, other)| match figure(other)? {
                0.0 => None,
                other => Some(figure(one)? / other),
            });
            median(shares.collect())
        };
        Ratio {
            phase: phase.to_string(),
            store: store.to_string(),
            rival: rival.to_string(),
            ops_per_s: over(|row| Some(row.ops_per_s)),
            cpu_us_per_op: over(|row| Some(row.cpu_us_per_op)),
            device_bytes_per_user_byte: over(|row| row.device_bytes_per_user_byte),
            p50_ns: over(|row| Some(row.p50_ns as f64)),
            p99_ns: over(|row| Some(row.p99_ns as f64)),
            p999_ns: over(|row| Some(row.p999_ns as f64)),
            max_ns: over(|row| Some(row.max_ns as f64)),
            disk_bytes: over(|row| Some(row.disk_bytes as f64)),
            rss_bytes: over(|row| Some(row.rss_bytes as f64)),
        }
    }

    /// Writes one JSON object: `rows` with medians, `ratios`, and every turn in `runs`.
    pub(crate) fn write_json(&self, mut out: impl Write) -> Result<()> {
        let settings = self.preface.lines().collect();
        let json = Json { settings, rows: self.rows(), ratios: self.ratios(), runs: &self.runs };
        serde_json::to_writer(&mut out, &json)?;
        Ok(writeln!(out)?)
    }

    /// Writes tables to read.
    pub(crate) fn write_tables(&self, mut out: impl Write) -> Result<()> {
        out.write_all(tables::rows(&self.rows()).as_bytes())?;
        out.write_all(tables::ratios(&self.ratios()).as_bytes())?;
        if self.value_bytes == targets::VALUE_BYTES {
            out.write_all(targets::judge(&self.rows()).as_bytes())?;
        }
        Ok(())
    }
}

/// The median of each figure; `None` without rows.
fn middle(turns: &[&Row]) -> Option<Row> {
    let first = *turns.first()?;
    let real = |figure: fn(&Row) -> Option<f64>| {
        median(turns.iter().filter_map(|row| figure(row)).collect())
    };
    let number = |figure: fn(&Row) -> u64| {
        let mut figures: Vec<u64> = turns.iter().map(|row| figure(row)).collect();
        figures.sort_unstable();
        figures[figures.len() / 2]
    };
    Some(Row {
        store: first.store.clone(),
        phase: first.phase.clone(),
        threads: first.threads,
        ops: first.ops,
        ops_per_s: real(|row| Some(row.ops_per_s))?,
        cpu_us_per_op: real(|row| Some(row.cpu_us_per_op))?,
        device_bytes_per_user_byte: real(|row| row.device_bytes_per_user_byte),
        written_bytes_per_op: real(|row| Some(row.written_bytes_per_op))?,
        read_bytes_per_op: real(|row| Some(row.read_bytes_per_op))?,
        p50_ns: number(|row| row.p50_ns),
        p99_ns: number(|row| row.p99_ns),
        p999_ns: number(|row| row.p999_ns),
        max_ns: number(|row| row.max_ns),
        disk_bytes: number(|row| row.disk_bytes),
        rss_bytes: number(|row| row.rss_bytes),
        space_over_live: real(|row| row.space_over_live),
    })
}

/// The median; the mean of the two in the middle where there are as many on either side.
fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    match figures.len() {
        0 => None,
        count if count % 2 == 1 => Some(figures[middle]),
        _ => Some((figures[middle - 1] + figures[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests;
