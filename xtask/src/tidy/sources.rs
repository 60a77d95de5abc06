//! The files that are checked.

use anyhow::{Context, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the Rust files of all workspaces.
pub(super) fn sources(root: &Path) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for folder in ["crates", "examples", "hosts", "xtask"] {
        files_with("rs", &root.join(folder), &mut paths)?;
    }
    Ok(paths)
}

pub(super) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Adds the files below `folder` whose names end with `.extension`, sorted by name. Skips hidden
/// folders and `target`.
pub(crate) fn files_with(extension: &str, folder: &Path, paths: &mut Vec<PathBuf>) -> Result<()> {
    let entries = fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    for entry in entries {
        let entry = entry?;
        let path = entry.path();
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        if path.is_dir() && !path.ends_with("target") && !is_hidden {
            files_with(extension, &path, paths)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(())
}

pub(super) fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root).unwrap_or(path).display().to_string()
}
