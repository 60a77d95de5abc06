//! Tables that stores exchange: `ingest` and `export`.

use super::look::entries_in;
use super::work;
use crate::args::ExportArgs;
use crate::bars::Bars;
use crate::failure::bad_argument;
use crate::output::{print, print_json};
use lsmith::env::RealEnv;
use lsmith::{IngestOptions, Keyspace, TableWriter, TableWriterOptions, inspect};
use lsmith_lab::Progress;
use serde_json::json;
use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};

/// Entries between two updates of the progress bar.
const ENTRIES_PER_UPDATE: u64 = 4096;

/// What the files of `ingest` are.
pub(super) enum Input {
    Tables,
    /// Text, open for reading, in the order of the files.
    Lines(Vec<Box<dyn BufRead>>),
}

/// Returns what all `files` are. Call it before opening the store: a wrong name must not create a
/// store.
pub(super) fn input_of(files: &[PathBuf]) -> anyhow::Result<Input> {
    let mut tables = Vec::new();
    let mut lines = Vec::new();
    for file in files {
        if is_table(file)? {
            tables.push(file);
        } else {
            lines.push(work::open_input(file)?);
        }
    }
    match tables.first() {
        None => Ok(Input::Lines(lines)),
        Some(_) if lines.is_empty() => Ok(Input::Tables),
        Some(table) => Err(bad_argument(format!(
            "{} is a table and not all other files are: ingest tables and text in two steps",
            table.display()
        ))),
    }
}

/// Returns true if `file` is a table, not text.
fn is_table(file: &Path) -> anyhow::Result<bool> {
    // Standard input and pipes cannot be read twice. They are text.
    if file == Path::new("-") || !is_regular(file)? {
        return Ok(false);
    }
    Ok(inspect::is_table(&RealEnv::new(), &file.canonicalize()?)?)
}

fn is_regular(file: &Path) -> anyhow::Result<bool> {
    let found = fs::metadata(file);
    let failed = |error| bad_argument(format!("cannot open {}: {error}", file.display()));
    Ok(found.map_err(failed)?.is_file())
}

pub(super) fn ingest_tables(
    keyspace: &Keyspace,
    files: &[PathBuf],
    link: bool,
    json: bool,
) -> anyhow::Result<()> {
    let options = IngestOptions::default().link(link);
    let ingested = keyspace.store().ingest(keyspace, files, &options)?;
    if json {
        return print_json(&json!({
            "ingested": ingested.entries,
            "tables": ingested.tables,
            "table_bytes": ingested.table_bytes,
        }));
    }
    let entries = ingested.entries;
    let bytes = ingested.table_bytes;
    let tables = ingested.tables;
    Ok(print(format_args!("ingested {entries} entries, {bytes} bytes in {tables} tables"))?)
}

pub(super) fn ingest_lines(
    keyspace: &Keyspace,
    files: &[PathBuf],
    inputs: Vec<Box<dyn BufRead>>,
    json: bool,
) -> anyhow::Result<()> {
    let mut count = 0;
    for (file, input) in files.iter().zip(inputs) {
        count += work::put_lines(keyspace, file, input)?;
    }
    if json {
        print_json(&json!({ "ingested": count }))
    } else {
        Ok(print(format_args!("ingested {count} entries"))?)
    }
}

pub(super) fn export(
    keyspace: &Keyspace,
    args: &ExportArgs,
    compression: Option<&str>,
    json: bool,
) -> anyhow::Result<()> {
    let compression = compression.unwrap_or("none").to_string();
    let options = TableWriterOptions { compression, ..TableWriterOptions::default() };
    let bars = Bars::new();
    bars.begin(&format!("exporting to {}", args.file.display()), 0);
    let mut entries = entries_in(keyspace, &args.range);
    let mut writer = None;
    let mut count = 0;
    while let Some(entry) = entries.next_ref() {
        let (key, value) = entry?;
        let writer = match &mut writer {
            Some(writer) => writer,
            // A range without entries leaves no file.
            None => writer.insert(TableWriter::create_with(&args.file, &options)?),
        };
        writer.put(key, value)?;
        count += 1;
        if count % ENTRIES_PER_UPDATE == 0 {
            bars.advance(count);
        }
    }
    let written = writer.map(TableWriter::finish).transpose()?;
    drop(bars);
    let Some(written) = written else {
        return Err(bad_argument("there is no entry in the range to export"));
    };
    let bytes = written.table_bytes;
    if json {
        return print_json(&json!({ "exported": count, "table_bytes": bytes }));
    }
    Ok(print(format_args!("exported {count} entries, {bytes} bytes"))?)
}
