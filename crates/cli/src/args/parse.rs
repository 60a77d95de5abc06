//! Parses the values of options.

use lsmith_lab::tune::{Aim, Weights};
use std::time::Duration;

/// Parses the seconds between two pictures.
pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let parsed = text.parse().ok().filter(|seconds| (0.1..=3600.0).contains(seconds));
    let seconds = parsed.ok_or_else(|| "expected a number from 0.1 to 3600".to_owned())?;
    Ok(Duration::from_secs_f64(seconds))
}

/// Parses the seconds that values live.
pub(super) fn seconds_of_life(text: &str) -> Result<u64, String> {
    let seconds = text.parse().ok().filter(|seconds| *seconds > 0);
    seconds.ok_or_else(|| "expected a whole number of seconds, at least 1".to_owned())
}

/// Parses a size greater than 0.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    match lsmith_spec::parse_bytes(text) {
        Ok(0) => Err("expected at least 1B".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// Parses the bytes of a memtable, which are bounded as in a store.
pub(super) fn memtable_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        bytes if bytes > 1 << 40 => Err(format!("`{text}` is too large: expected at most 1024GiB")),
        bytes => Ok(bytes),
    }
}

/// Parses filter bits per key, 0 to 64.
pub(super) fn bits(text: &str) -> Result<f64, String> {
    let bits = text.parse().ok().filter(|bits| (0.0..=64.0).contains(bits));
    bits.ok_or_else(|| "expected a number from 0 to 64".to_owned())
}

/// The words for weights that the workload decides.
const AIMS: [(&str, Aim); 5] = [
    ("balanced", Aim::Balanced),
    ("fewest-bytes", Aim::FewestBytes),
    ("lowest-latency", Aim::LowestLatency),
    ("fastest", Aim::Fastest),
    ("least-space", Aim::LeastSpace),
];

/// Parses a word such as `balanced`, or weights such as `write=1,read=0.5`. What is not named has
/// no weight.
pub(super) fn weights(text: &str) -> Result<Aim, String> {
    if let Some((_, aim)) = AIMS.iter().find(|(word, _)| *word == text) {
        return Ok(*aim);
    }
    let mut weights = Weights { write: 0.0, read: 0.0, scan: None, space: 0.0 };
    for part in text.split(',') {
        let Some((name, value)) = part.split_once('=') else {
            let words = AIMS.map(|(word, _)| format!("`{word}`")).join(", ");
            return Err(format!("expected {words} or `name=number`, found `{part}`"));
        };
        let value = value.trim().parse().ok().filter(|value: &f64| (0.0..=1000.0).contains(value));
        let Some(value) = value else {
            return Err(format!("expected a number from 0 to 1000 in `{part}`"));
        };
        match name.trim() {
            "write" => weights.write = value,
            "read" => weights.read = value,
            "scan" => weights.scan = Some(value),
            "space" => weights.space = value,
            other => {
                let names = "expected `write`, `read`, `scan` or `space`";
                return Err(format!("{names}, found `{other}`"));
            }
        }
    }
    let scan = weights.scan.unwrap_or_default();
    if weights.write + weights.read + scan + weights.space == 0.0 {
        return Err("expected a weight above 0".to_owned());
    }
    Ok(Aim::Weights(weights))
}

/// Parses a limit on a cost, greater than 0.
pub(super) fn cost_max(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost: &f64| cost.is_finite() && *cost > 0.0);
    cost.ok_or_else(|| "expected a number above 0".to_owned())
}

/// Parses the distance that a workload may drift, 0 to 100 nats.
pub(super) fn distance(text: &str) -> Result<f64, String> {
    let distance = text.parse().ok().filter(|distance| (0.0..=100.0).contains(distance));
    distance.ok_or_else(|| "expected a number from 0 to 100".to_owned())
}

/// Parses a number of merging threads, 1 to 64.
pub(super) fn threads(text: &str) -> Result<usize, String> {
    let threads = text.parse().ok().filter(|threads| (1..=64).contains(threads));
    threads.ok_or_else(|| "expected a whole number from 1 to 64".to_owned())
}

/// Parses a number of key ranges that merge by themselves.
pub(super) fn key_ranges(text: &str) -> Result<usize, String> {
    let ranges = text.parse().ok().filter(|ranges| (2..=64).contains(ranges));
    ranges.ok_or_else(|| "expected a whole number from 2 to 64".to_owned())
}

/// Parses a time greater than 0, of a day at most.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let units = [("ms", 1e-3), ("s", 1.0), ("m", 60.0)];
    let parsed = units.iter().find_map(|(unit, seconds)| {
        Some(text.strip_suffix(unit)?.trim().parse::<f64>().ok()? * seconds)
    });
    let seconds = parsed.filter(|seconds| *seconds > 0.0 && *seconds <= 86_400.0);
    let duration = seconds.map(Duration::from_secs_f64);
    duration.ok_or_else(|| "expected a time such as 500ms, 10s or 2m, of a day at most".to_owned())
}

/// Parses a count greater than 0.
pub(super) fn count(text: &str) -> Result<u64, String> {
    match lsmith_spec::parse_count(text) {
        Ok(0) => Err("expected at least 1".to_owned()),
        Ok(count) => Ok(count),
        Err(error) => Err(error.to_string()),
    }
}
