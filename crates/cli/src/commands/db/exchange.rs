//! Tables that stores exchange: `ingest` and `export`.

use super::access::{Print, bounds_of, wrong_argument};
use super::work;
use crate::args::ExportArgs;
use crate::bars::Bars;
use crate::failure::bad_argument;
use crate::files;
use crate::output::{print, print_json};
use crate::text::Coding;
use lsmith::{IngestOptions, Keyspace, Loaded, TableWriter, TableWriterOptions, inspect};
use lsmith_lab::Progress;
use serde_json::json;
use std::fs;
use std::io::BufRead;
use std::path::{Path, PathBuf};

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
    Ok(inspect::is_table(&*files::env(), &file.canonicalize()?)?)
}

fn is_regular(file: &Path) -> anyhow::Result<bool> {
    let found = fs::metadata(file);
    let failed = |error| bad_argument(format!("cannot open {}: {error}", file.display()));
    Ok(found.map_err(failed)?.is_file())
}

pub(super) fn ingest_tables(
    keyspace: &Keyspace,
    files: &[PathBuf],
    options: &IngestOptions,
    json: bool,
) -> anyhow::Result<()> {
    let ingested = keyspace.store().ingest(keyspace, files, options).map_err(wrong_argument)?;
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
    how: Print,
) -> anyhow::Result<()> {
    let mut count = 0;
    for (file, input) in files.iter().zip(inputs) {
        count += work::put_lines(keyspace, file, input, how.coding)?;
    }
    if how.json {
        print_json(&json!({ "ingested": count }))
    } else {
        Ok(print(format_args!("ingested {count} entries"))?)
    }
}

pub(super) fn export(
    keyspace: &Keyspace,
    args: &ExportArgs,
    compression: Option<&str>,
    how: Print,
) -> anyhow::Result<()> {
    let compression = compression.unwrap_or("none").to_string();
    let options =
        TableWriterOptions { compression, env: files::env(), ..TableWriterOptions::default() };
    let (count, written) = export_entries(keyspace, args, &options, how.coding)?;
    let Some(written) = written else {
        return Err(bad_argument("there is no entry in the range to export"));
    };
    let bytes = written.table_bytes;
    if how.json {
        return print_json(&json!({ "exported": count, "table_bytes": bytes }));
    }
    Ok(print(format_args!("exported {count} entries, {bytes} bytes"))?)
}

/// Writes the entries. Returns their number and what was written, if there was one.
fn export_entries(
    keyspace: &Keyspace,
    args: &ExportArgs,
    options: &TableWriterOptions,
    coding: Coding,
) -> anyhow::Result<(u64, Option<Loaded>)> {
    let bounds = bounds_of(&args.range, coding)?;
    let bars = Bars::new();
    // Older versions and deletions count, and what is in memory does not. A part is not known.
    let entries = if args.range.is_all() { keyspace.stats().entries } else { 0 };
    bars.begin(&format!("exporting to {}", args.file.display()), entries);
    let mut writer = TableWriter::create_with(&args.file, options)?;
    writer.on_progress(move |count| bars.advance(count));
    let snapshot = keyspace.store().snapshot();
    let exported = if args.numbers {
        snapshot.export(keyspace, bounds, &mut writer)
    } else {
        snapshot.export_newest(keyspace, bounds, &mut writer)
    };
    let count = exported.map_err(wrong_argument)?;
    // A writer without entries removes its file.
    Ok((count, if count > 0 { Some(writer.finish()?) } else { None }))
}
