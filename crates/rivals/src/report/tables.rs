//! Text: the preface, a line as rows come in, and tables at the end.

use super::row::{Ratio, Row};
use crate::args::Args;
use crate::data::KEY_BYTES;
use crate::stores::{Contender, Settings};
use std::fmt::Write;

/// What was asked for, and in what the stores differ because they must.
pub(super) fn preface(args: &Args, contenders: &[Contender]) -> String {
    let Settings { buffer_bytes, cache_bytes, filter_bits, .. } = Settings::default();
    let mut told = format!(
        "{} operations; keys of {KEY_BYTES} bytes, values of {}; no compression; log on, no sync; \
         write buffers {} MiB in all, block cache {} MiB, Bloom filters of {filter_bits} bits\n",
        args.ops,
        args.value,
        buffer_bytes >> 20,
        cache_bytes >> 20,
    );
    for contender in contenders {
        // Writing to a string cannot fail.
        let _ = writeln!(told, "{}: {}", contender.label(), contender.kind.version);
        for difference in contender.kind.differences {
            let _ = writeln!(told, "  {difference}");
        }
    }
    told
}

/// One row, as it comes in.
pub(crate) fn line(row: &Row) -> String {
    let device = row.device_bytes_per_user_byte;
    format!(
        "{:<18} {:>8.3} us cpu  {:>9.0} ops/s  {} device bytes per user byte, {:.0} read per op",
        row.phase,
        row.cpu_us_per_op,
        row.ops_per_s,
        figure(device, 2),
        row.read_bytes_per_op,
    )
}

/// All rows as a table.
pub(super) fn rows(rows: &[Row]) -> String {
    let wide = width(rows.iter().map(|row| &row.store));
    let mut told = format!(
        "\n{:<20} {:<wide$} {:>9} {:>10} {:>7} {:>8} {:>8} {:>8} {:>9} {:>9} {:>8} {:>6} \
         {:>7}\n",
        "phase",
        "store",
        "cpu us",
        "ops/s",
        "device",
        "p50 us",
        "p99 us",
        "p99.9 us",
        "max ms",
        "disk MB",
        "rss MB",
        "space",
        "read B"
    );
    for row in rows {
        let micros = |nanos: u64| nanos as f64 / 1e3;
        let megabytes = |bytes: u64| bytes as f64 / 1e6;
        let _ = writeln!(
            told,
            "{:<20} {:<wide$} {:>9.3} {:>10.0} {:>7} {:>8.2} {:>8.2} {:>8.2} {:>9.2} {:>9.1} \
             {:>8.1} {:>6} {:>7.0}",
            row.phase,
            row.store,
            row.cpu_us_per_op,
            row.ops_per_s,
            figure(row.device_bytes_per_user_byte, 2),
            micros(row.p50_ns),
            micros(row.p99_ns),
            micros(row.p999_ns),
            micros(row.max_ns) / 1e3,
            megabytes(row.disk_bytes),
            megabytes(row.rss_bytes),
            figure(row.space_over_live, 2),
            row.read_bytes_per_op,
        );
    }
    told
}

/// All ratios as a table.
pub(super) fn ratios(ratios: &[Ratio]) -> String {
    let Some(first) = ratios.first() else { return String::new() };
    let wide = width(ratios.iter().map(|ratio| &ratio.rival));
    let mut told = format!(
        "\n{} over each rival, medians over turns (below 1 is better, but for ops/s)\n\
         {:<20} {:<wide$} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}\n",
        first.store,
        "phase",
        "rival",
        "cpu",
        "ops/s",
        "device",
        "p50",
        "p99",
        "p99.9",
        "max",
        "disk"
    );
    for ratio in ratios {
        let _ = writeln!(
            told,
            "{:<20} {:<wide$} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7} {:>7}",
            ratio.phase,
            ratio.rival,
            figure(ratio.cpu_us_per_op, 2),
            figure(ratio.ops_per_s, 2),
            figure(ratio.device_bytes_per_user_byte, 2),
            figure(ratio.p50_ns, 2),
            figure(ratio.p99_ns, 2),
            figure(ratio.p999_ns, 2),
            figure(ratio.max_ns, 2),
            figure(ratio.disk_bytes, 2),
        );
    }
    told
}

/// Returns the width of a column of stores.
fn width<'a>(stores: impl Iterator<Item = &'a String>) -> usize {
    stores.map(String::len).max().unwrap_or(0).max(8)
}

fn figure(figure: Option<f64>, digits: usize) -> String {
    figure.map_or_else(|| "-".to_string(), |figure| format!("{figure:.digits$}"))
}
