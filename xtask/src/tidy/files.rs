//! Finds source files that no `mod` declares. The compiler silently ignores them.

use super::finding::Finding;
use super::layers;
use super::sources::relative;
use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root files of libraries, binaries, tests, examples and benchmarks.
pub(super) fn roots(metadata: &Value) -> Vec<PathBuf> {
    let targets = layers::packages(metadata)
        .flat_map(|package| package["targets"].as_array().into_iter().flatten());
    targets.filter_map(|target| target["src_path"].as_str()).map(PathBuf::from).collect()
}

/// Returns the files among `paths` that cannot be reached from `roots`.
pub(super) fn check(root: &Path, roots: &[PathBuf], paths: &[PathBuf]) -> Result<Vec<Finding>> {
    let mut reached = BTreeSet::new();
    for path in roots {
        let folder = path.parent().unwrap_or(path).to_path_buf();
        reach(path, &folder, &mut reached)?;
    }
    let dead = paths.iter().filter(|path| !reached.contains(*path));
    Ok(dead
        .map(|path| Finding {
            place: relative(root, path),
            what: "no `mod` declares this file".to_string(),
            excuse: None,
        })
        .collect())
}

/// Adds `path` and the modules that it declares, which lie in `folder`.
fn reach(path: &Path, folder: &Path, reached: &mut BTreeSet<PathBuf>) -> Result<()> {
    if !reached.insert(path.to_path_buf()) {
        return Ok(());
    }
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let mut elsewhere = None;
    for line in text.lines() {
        let Some(name) = module(line) else {
            elsewhere = path_attribute(line);
            continue;
        };
        if let Some(path) = elsewhere.take() {
            let file = folder.join(path).canonicalize()?;
            reach(&file, file.parent().unwrap_or(folder), reached)?;
            continue;
        }
        let inner = folder.join(name);
        let beside = folder.join(format!("{name}.rs"));
        let file = if beside.is_file() { beside } else { inner.join("mod.rs") };
        reach(&file, &inner, reached)?;
    }
    Ok(())
}

/// Returns the file that `#[path = "..."]` names.
fn path_attribute(line: &str) -> Option<&str> {
    line.trim().strip_prefix("#[path = \"")?.strip_suffix("\"]")
}

/// Returns the module that a line declares, if it has a file of its own.
pub(super) fn module(line: &str) -> Option<&str> {
    let trimmed = line.trim_start();
    let line = match trimmed.strip_prefix("pub") {
        Some(rest) => {
            rest.strip_prefix("(crate)").or_else(|| rest.strip_prefix("(super)")).unwrap_or(rest)
        }
        None => trimmed,
    };
    line.trim_start().strip_prefix("mod ")?.trim_end().strip_suffix(';')
}
