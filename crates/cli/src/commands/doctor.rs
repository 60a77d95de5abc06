//! `doctor`: what the compactions of a RocksDB, a LevelDB or a Pebble cost, and what other settings
//! would have cost.

mod page;
mod replay;
mod text;
mod watch;
mod words;

use crate::args::DoctorArgs;
use crate::output::{Output, print_json};
use anyhow::Context;
use lsmith_doctor::{Case, Diagnosis, Named};
use lsmith_lab::FileInputs;
use lsmith_workload::Inputs;
use std::path::{Path, PathBuf};
use watch::Watched;

/// The names of files that are read begin so.
const READ: [&str; 6] =
    ["LOG", "MANIFEST-", "OPTIONS-", "CURRENT", "marker.manifest.", "compaction"];

pub(crate) fn doctor(args: &DoctorArgs, json: bool) -> anyhow::Result<()> {
    let files = files(&args.path)?;
    let case = Case::read(files).with_context(|| args.path.display().to_string())?;
    let mut watched = Watched::new(&case, args.html.is_some());
    let diagnosis = Diagnosis::of(&case).with_watched_replays(&case, &mut watched);
    let histories = watched.finish();
    if let Some(html) = &args.html {
        page::write(&args.path, &diagnosis, histories, html)?;
    }
    if json {
        return print_json(&diagnosis);
    }
    let mut output = Output::new();
    for part in text::shown(&diagnosis) {
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
        // Directories and pipes are not of the store, whatever their names.
        if READ.iter().any(|start| name.starts_with(start)) && path.is_file() {
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
