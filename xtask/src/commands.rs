//! Checks that the commands that documents show can be run, and that every feature compiles.
//!
//! Everything in the workspace itself is compiled by other steps of CI. So its commands only have
//! to name packages, targets, features, tests and chores that exist. Workspaces of their own are
//! compiled here, and the features of published crates: none, and each alone, once.

mod documents;
mod judge;

use crate::chores::{DEV_PROFILE, cargo, run};
use crate::tidy::files_with;
use anyhow::{Context, Result, bail};
use documents::Shown;
use judge::Workspace;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Workspaces of their own, each with features that take longer than a minute to compile or need
/// more than a C compiler.
const OTHERS: [(&str, &[&str]); 5] = [
    ("crates/rivals", &["rocksdb", "leveldb", "mdbx"]),
    ("examples/raft-kv", &[]),
    ("examples/own-policy", &[]),
    ("hosts/python", &[]),
    ("hosts/wasm", &[]),
];

/// Checks all commands and features. With `all`, also features that take long to compile.
pub(crate) fn check(root: &Path, all: bool) -> Result<()> {
    let others = OTHERS.iter().map(|(folder, slow)| Workspace::read(root, folder, slow));
    let others = others.collect::<Result<Vec<_>>>()?;
    let own = Workspace::read(root, "", &[])?;
    let shown = shown(root)?;
    let mut wanted: BTreeSet<(&str, String)> = BTreeSet::new();
    let mut wrong = 0;
    for shown in &shown {
        let other = others.iter().find(|other| folder(shown).starts_with(&other.folder));
        match other.unwrap_or(&own).judge(shown) {
            Ok(features) => {
                let folder = other.map(|other| other.folder.as_str());
                wanted.extend(folder.map(|folder| (folder, features)));
            }
            Err(error) => {
                wrong += 1;
                eprintln!("{}: `cargo {}`: {error}", shown.place, shown.words.join(" "));
            }
        }
    }
    if wrong > 0 {
        bail!("{wrong} of {} documented commands cannot be run", shown.len());
    }
    eprintln!("{} documented commands name what there is", shown.len());
    for other in &others {
        wanted.extend(other.features(all).map(|features| (other.folder.as_str(), features)));
    }
    for (folder, features) in wanted {
        let other = others.iter().find(|other| other.folder == folder);
        compile_other(root, other.context("its folder is that of a workspace")?, &features, all)?;
    }
    for (features, packages) in own.partial_features() {
        let mut check = cargo(root);
        check.args(["check", "--no-default-features", "--features", features]);
        for package in packages {
            check.args(["-p", package]);
        }
        run(&mut check)?;
    }
    Ok(())
}

/// Compiles a workspace of its own with `features`, unless that takes long and is not asked for.
fn compile_other(root: &Path, other: &Workspace, features: &str, all: bool) -> Result<()> {
    let check = ["check", "--all-targets", "--features", features];
    if other.is_slow(features) {
        let folder = &other.folder;
        match all {
            // What C and C++ need is in the settings of the folder.
            true => return run(cargo(&root.join(folder)).args(check)),
            false => eprintln!("{folder}: features {features} are left to `xtask commands all`"),
        }
        return Ok(());
    }
    // From here, in the target and profile of the workspace, to share what it has compiled.
    let manifest = format!("{}/Cargo.toml", other.folder);
    let place = ["--manifest-path", &manifest, "--target-dir", "target"];
    run(cargo(root).args(check).args(place).args(DEV_PROFILE))
}

/// Returns the folder in which a command is run, from the root.
fn folder(shown: &Shown) -> &str {
    shown.folder.as_deref().unwrap_or(&shown.place)
}

/// Returns the commands of all documents that say what holds now; notes do not.
fn shown(root: &Path) -> Result<Vec<Shown>> {
    let mut documents = Vec::new();
    files_with("md", root, &mut documents)?;
    let names = documents.iter().filter_map(|path| path.strip_prefix(root).ok());
    let past = ["docs/notes", "docs/design", "CHANGELOG.md"];
    let names = names.filter(|name| !past.iter().any(|past| name.starts_with(past)));
    let mut all = Vec::new();
    for name in names.map(Path::to_path_buf).collect::<Vec<PathBuf>>() {
        let text = fs::read_to_string(root.join(&name))?;
        all.extend(documents::shown(&name.to_string_lossy(), &text));
    }
    Ok(all)
}
