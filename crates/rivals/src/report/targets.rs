//! What lsmith must reach with ten million keys, and whether it does.

use super::Row;
use std::fmt::Write;

/// The value size for which the targets hold.
pub(super) const VALUE_BYTES: usize = 100;

/// A limit for one figure of one phase.
struct Target {
    phase: &'static str,
    figure: &'static str,
    of: fn(&Row) -> Option<f64>,
    at_most: f64,
}

const fn target(
    phase: &'static str,
    figure: &'static str,
    of: fn(&Row) -> Option<f64>,
    at_most: f64,
) -> Target {
    Target { phase, figure, of, at_most }
}

fn cpu(row: &Row) -> Option<f64> {
    Some(row.cpu_us_per_op)
}

fn device(row: &Row) -> Option<f64> {
    row.device_bytes_per_user_byte
}

const TARGETS: [Target; 15] = [
    target("fill_random", "cpu_us", cpu, 2.0),
    target("fill_batch100", "cpu_us", cpu, 1.3),
    target("fill_random", "device_bytes", device, 2.4),
    target("overwrite", "cpu_us", cpu, 2.4),
    target("overwrite", "device_bytes", device, 3.2),
    target("overwrite", "space_over_live", |row| row.space_over_live, 1.35),
    target("get_present", "cpu_us", cpu, 2.2),
    target("get_absent", "cpu_us", cpu, 0.35),
    target("seek_next10", "cpu_us", cpu, 4.5),
    target("scan", "cpu_us", cpu, 0.08),
    target("ycsb_a", "cpu_us", cpu, 2.5),
    target("fill_random", "longest pause, ms", |row| Some(row.max_ns as f64 / 1e6), 20.0),
    target("fill_random", "p50, us", |row| Some(row.p50_ns as f64 / 1e3), 1.0),
    target("fill_random", "p99, us", |row| Some(row.p99_ns as f64 / 1e3), 3.0),
    target("fill_random", "p99.9, us", |row| Some(row.p999_ns as f64 / 1e3), 10.0),
];

/// A line for every target whose phase was measured on lsmith.
pub(super) fn judge(rows: &[Row]) -> String {
    let mut told = String::from("\nlsmith must reach (with 10 million keys)\n");
    for target in &TARGETS {
        let row = rows.iter().find(|row| row.store == "lsmith" && row.phase == target.phase);
        let Some(figure) = row.and_then(target.of) else { continue };
        let verdict = match figure <= target.at_most {
            true => "holds".to_string(),
            false => format!("misses by {:.0} %", (figure / target.at_most - 1.0) * 100.0),
        };
        let name = format!("{} {}", target.phase, target.figure);
        // Writing to a string cannot fail.
        let _ = writeln!(told, "{name:<36} {figure:>8.2} of {:>5.2}  {verdict}", target.at_most);
    }
    told
}
