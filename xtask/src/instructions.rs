//! Compares the instructions of the store's hot paths with recorded figures.
//!
//! A program runs a path many times under valgrind's callgrind, once with and once without the path
//! itself. The difference divided by the count is the cost of one operation. Unlike time it is the
//! same on a busy machine, within one percent.

use crate::chores::cargo;
use anyhow::{Context, Result, bail, ensure};
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// The paths.
const PATHS: [&str; 11] = [
    "put", "recorded", "batch", "get", "absent", "seek", "next", "back", "merge", "mapped", "apart",
];

/// The number of operations per path; a merge has as many entries.
const OPS: u64 = 10_000;

/// The recorded figures: a line per path, with instructions per operation.
const RECORD: &str = "crates/engine/benches/paths/instructions.txt";

/// The part by which a path may exceed its recorded figure.
const RISE_MAX: f64 = 0.05;

/// Counts instructions and compares them with the recorded figures, or records them if `bless`.
pub(crate) fn instructions(root: &Path, bless: bool) -> Result<()> {
    let build = ["bench", "-p", "lsmith", "--bench", "paths", "--no-run", "--message-format=json"];
    // Incremental builds inline less across crates.
    let mut build_cargo = cargo(root);
    build_cargo.args(build).env("CARGO_INCREMENTAL", "0").stderr(std::process::Stdio::inherit());
    let built = build_cargo.output()?;
    ensure!(built.status.success(), "the bench `paths` does not build");
    let program = program(&built.stdout).context("cargo did not name what it built")?;
    let mut counted = Vec::new();
    for path in PATHS {
        let with = count(&program, path, OPS)?;
        let without = count(&program, path, 0)?;
        counted.push((path, with.saturating_sub(without) / OPS));
    }
    let file = root.join(RECORD);
    if bless {
        let mut record = String::new();
        for (path, each) in &counted {
            writeln!(record, "{path} {each}")?;
        }
        return std::fs::write(&file, record).with_context(|| RECORD);
    }
    let record = std::fs::read_to_string(&file).with_context(|| RECORD)?;
    judge(&counted, &record)
}

/// Returns the executable in cargo's messages.
fn program(messages: &[u8]) -> Option<String> {
    let lines = std::str::from_utf8(messages).ok()?.lines();
    let messages = lines.filter_map(|line| serde_json::from_str(line).ok());
    let named = |message: serde_json::Value| Some(message["executable"].as_str()?.to_string());
    messages.filter_map(named).next_back()
}

fn count(program: &str, path: &str, ops: u64) -> Result<u64> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null", program, "once", path]);
    let output = command.arg(ops.to_string()).output().context("valgrind did not start")?;
    let report = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{path} failed under valgrind: {report}");
    let found = report.lines().find_map(|line| line.split("Collected :").nth(1));
    let collected = found.with_context(|| format!("valgrind counted nothing: {report}"))?;
    Ok(collected.trim().parse()?)
}

fn judge(counted: &[(&str, u64)], record: &str) -> Result<()> {
    let mut risen = 0;
    for (path, now) in counted {
        let line = record.lines().find_map(|line| line.strip_prefix(path)?.strip_prefix(' '));
        let Some(before) = line.and_then(|before| before.trim().parse::<u64>().ok()) else {
            bail!("{RECORD} has no line for {path}");
        };
        let change = *now as f64 / before as f64 - 1.0;
        eprintln!("{path:8} {now:6} instructions, recorded {before:6}: {:+.1} %", 100.0 * change);
        risen += usize::from(*now as f64 > before as f64 * (1.0 + RISE_MAX));
    }
    ensure!(
        risen == 0,
        "{risen} paths take over {:.0} % more than recorded; if it must be so: \
         cargo xtask instructions --bless",
        100.0 * RISE_MAX
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rise_of_more_than_a_twentieth_fails() {
        let record = "put 1000\nget 200\n";
        assert!(judge(&[("put", 1050), ("get", 150)], record).is_ok());
        assert!(judge(&[("put", 1051), ("get", 150)], record).is_err());
        assert!(judge(&[("next", 1)], record).is_err());
    }
}
