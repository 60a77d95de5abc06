//! `doctor`: what the compactions of a RocksDB, a LevelDB or a Pebble cost, and what other settings
//! would have cost.

mod replay;

use crate::args::DoctorArgs;
use crate::output::{Output, print_json};
use crate::table::{cost, percent, short, table};
use anyhow::Context;
use lsmith_doctor::{Case, Diagnosis, FamilyCosts, Named, Store, Written};
use lsmith_lab::FileInputs;
use lsmith_workload::Inputs;
use std::path::{Path, PathBuf};

/// The names of files that are read begin so.
const READ: [&str; 5] = ["LOG", "MANIFEST-", "OPTIONS-", "CURRENT", "marker.manifest."];

pub(crate) fn doctor(args: &DoctorArgs, json: bool) -> anyhow::Result<()> {
    let files = files(&args.path)?;
    let case = Case::read(files).with_context(|| args.path.display().to_string())?;
    let diagnosis = Diagnosis::of(&case).with_replays(&case);
    if json {
        return print_json(&diagnosis);
    }
    let mut output = Output::new();
    for part in shown(&diagnosis) {
        output.line(part)?;
    }
    Ok(output.finish()?)
}

/// Returns the files of a store, or the one file that `path` is.
fn files(path: &Path) -> anyhow::Result<Vec<Named>> {
    if !path.is_dir() {
        return Ok(vec![read(path)?]);
    }
    let dir = || path.display().to_string();
    let mut paths: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(path).with_context(dir)? {
        let path = entry.with_context(dir)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if READ.iter().any(|start| name.starts_with(start)) {
            paths.push(path);
        }
    }
    paths.iter().map(|path| read(path)).collect()
}

/// Reads a file, decompressed, and returns its name without the ending of the compression.
fn read(path: &Path) -> anyhow::Result<Named> {
    let text = path.to_str().with_context(|| format!("{}: not UTF-8", path.display()))?;
    let of_file = || path.display().to_string();
    let mut bytes = Vec::new();
    let mut input = FileInputs.open(text).map_err(anyhow::Error::msg).with_context(of_file)?;
    input.read_to_end(&mut bytes).with_context(of_file)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").or(name.strip_suffix(".zst")).unwrap_or(&name);
    Ok((name.to_owned(), bytes))
}

fn shown(diagnosis: &Diagnosis) -> Vec<String> {
    let version = diagnosis.version.as_deref().unwrap_or("of an unknown version");
    let opened = times(diagnosis.openings);
    let mut parts = vec![match diagnosis.store {
        Store::RocksDb => format!("RocksDB {version}, opened {opened}."),
        store if diagnosis.openings > 0 => format!("{}, opened {opened}.", store.name()),
        store => format!("{}.", store.name()),
    }];
    parts.extend(diagnosis.remarks.clone());
    if let Some(held) = diagnosis.stalled.filter(|held| held.seconds > 0.0) {
        let (seconds, percent) = (held.seconds, held.percent);
        parts.push(format!("Writers were held back for {seconds:.1} s, {percent} % of the time."));
    }
    for family in &diagnosis.families {
        parts.extend(of_family(family, diagnosis.store));
    }
    parts
}

fn of_family(family: &FamilyCosts, store: Store) -> Vec<String> {
    let of = match store {
        Store::RocksDb => format!("Column family {}", family.name),
        Store::LevelDb | Store::Pebble => "Compactions".to_owned(),
    };
    let mut parts = vec![String::new(), format!("{of}: {}.", family.policy)];
    if let Some(spec) = &family.spec {
        parts.push(format!("The nearest policy of lsmith is {spec}."));
    }
    let without = &family.without_counterpart;
    parts.extend(without.iter().map(|setting| format!("Without a counterpart: {setting}.")));
    if let Some(write) = family.write_amplification {
        parts.push(format!(
            "{} flushes wrote {}, and {} compactions {}: {} bytes written per byte flushed.",
            family.flushes,
            bytes(family.flushed_bytes),
            family.compactions,
            bytes(family.compacted_bytes),
            cost(write)
        ));
        if family.raw_bytes > 0 {
            let raw = bytes(family.raw_bytes);
            parts.push(format!("What was flushed held {raw} of keys and values, uncompressed."));
        }
    } else {
        parts.push("The files tell of no flush.".to_owned());
    }
    if let Some(dropped) = family.dropped {
        let dropped = percent(Some(dropped)).trim_start_matches('+').to_owned();
        parts.push(format!("Compactions dropped {dropped} % of the entries that they read."));
    }
    for (cause, count) in &family.stalls {
        parts.push(format!("The LOG says {}: {cause}.", times(*count)));
    }
    if !family.levels.is_empty() {
        let rows = family.levels.iter().map(|level| {
            let name = format!("level {}", level.level);
            vec![name, level.files.to_string(), short(level.bytes as f64)]
        });
        parts.extend([String::new(), table(&["level now", "files", "bytes"], 1, rows.collect())]);
    }
    for (what, rows) in [("into", &family.by_level), ("because of", &family.by_reason)] {
        if !rows.is_empty() {
            parts.extend([String::new(), written(what, rows)]);
        }
    }
    parts.push(String::new());
    parts.extend(family.no_replay.clone());
    parts.extend(family.replay.iter().flat_map(replay::shown));
    parts
}

fn written(what: &str, rows: &[Written]) -> String {
    let rows = rows.iter().map(|row| {
        vec![
            row.what.clone(),
            row.compactions.to_string(),
            short(row.read_bytes as f64),
            short(row.written_bytes as f64),
        ]
    });
    table(&[what, "compactions", "bytes read", "bytes written"], 1, rows.collect())
}

/// Returns `once`, or how many times.
fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

fn bytes(count: u64) -> String {
    format!("{}B", short(count as f64))
}
