//! What lsmith must reach with ten million keys, and whether it does.

use super::row::Row;
use std::fmt::Write;

/// The value size for which the targets hold.
pub(super) const VALUE_BYTES: usize = 100;

/// A limit for one figure of one phase.
struct Target {
    phase: &'static str,
    figure: &'static str,
    of: fn(&Row) -> Option<f64>,
    at_most: f64,
    /// What RocksDB had on the machine for which the limit was set. On others the part that the
    /// limit is of this is what counts.
    rocksdb: f64,
}

const fn target(
    phase: &'static str,
    figure: &'static str,
    of: fn(&Row) -> Option<f64>,
    [at_most, rocksdb]: [f64; 2],
) -> Target {
    Target { phase, figure, of, at_most, rocksdb }
}

fn cpu(row: &Row) -> Option<f64> {
    Some(row.cpu_us_per_op)
}

fn device(row: &Row) -> Option<f64> {
    row.device_bytes_per_user_byte
}

const TARGETS: [Target; 15] = [
    target("fill_random", "cpu_us", cpu, [2.0, 4.45]),
    target("fill_batch100", "cpu_us", cpu, [1.3, 3.0]),
    target("fill_random", "device_bytes", device, [2.4, 4.9]),
    target("overwrite", "cpu_us", cpu, [2.4, 5.0]),
    target("overwrite", "device_bytes", device, [3.2, 6.4]),
    target("overwrite", "space_over_live", |row| row.space_over_live, [1.35, 1.32]),
    target("get_present", "cpu_us", cpu, [2.2, 4.1]),
    target("get_absent", "cpu_us", cpu, [0.35, 0.6]),
    target("seek_next10", "cpu_us", cpu, [4.5, 9.3]),
    target("scan", "cpu_us", cpu, [0.08, 0.17]),
    target("ycsb_a", "cpu_us", cpu, [2.5, 4.7]),
    target("fill_random", "longest pause, ms", |row| Some(row.max_ns as f64 / 1e6), [20.0, 39.0]),
    target("fill_random", "p50, us", |row| Some(row.p50_ns as f64 / 1e3), [1.0, 2.7]),
    target("fill_random", "p99, us", |row| Some(row.p99_ns as f64 / 1e3), [3.0, 5.8]),
    target("fill_random", "p99.9, us", |row| Some(row.p999_ns as f64 / 1e3), [10.0, 23.0]),
];

/// Whether `figure` is not above `at_most`.
fn verdict(figure: f64, at_most: f64) -> String {
    match figure <= at_most {
        true => "holds".to_string(),
        false => format!("misses by {:.0} %", (figure / at_most - 1.0) * 100.0),
    }
}

/// A line for every target whose phase was measured on lsmith, and behind it the part that lsmith's
/// figure is of RocksDB's, where that was measured too. Both are medians over turns.
pub(super) fn judge(rows: &[Row]) -> String {
    let mut told = String::from("\nlsmith must reach (with 10 million keys)\n");
    for target in &TARGETS {
        let figure = |store: &str| {
            let row = rows.iter().find(|row| row.store == store && row.phase == target.phase);
            row.and_then(target.of)
        };
        let Some(reached) = figure("lsmith") else { continue };
        let name = format!("{} {}", target.phase, target.figure);
        let told_now = verdict(reached, target.at_most);
        let part = figure("rocksdb").map_or(String::new(), |rocksdb| {
            let part = reached / rocksdb;
            let wanted = target.at_most / target.rocksdb;
            format!("{part:.2} of {wanted:.2} of RocksDB's  {}", verdict(part, wanted))
        });
        // Writing to a string cannot fail.
        let _ = writeln!(
            told,
            "{name:<32} {reached:>6.2} of {:>5.2}  {told_now:<16} {part}",
            target.at_most
        );
    }
    told
}
