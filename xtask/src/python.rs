//! Builds the Python package, and runs its tests.

use crate::chores::{DEV_PROFILE, cargo, run};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "hosts/python";

/// Succeeds if the interpreter is one that the package is for.
const IS_NEW_ENOUGH: &str = "import sys; sys.exit(sys.version_info < (3, 9))";

/// Says so and does nothing if there is no `python3`, or an old one.
pub(crate) fn python(root: &Path) -> Result<()> {
    let found = Command::new("python3").args(["-c", IS_NEW_ENOUGH]).status();
    if !found.is_ok_and(|status| status.success()) {
        eprintln!("{FOLDER} is not tested: there is no python3 of version 3.9 or later");
        return Ok(());
    }
    let manifest = format!("{FOLDER}/Cargo.toml");
    // In the target and profile of the main workspace, to share what it has compiled.
    let build = ["build", "--manifest-path", &manifest, "--target-dir", "target"];
    let settings = ["--features", "pyo3/extension-module"];
    run(cargo(root).args(build).args(settings).args(DEV_PROFILE))?;
    let package = root.join("target/python/lsmith");
    fs::create_dir_all(&package)?;
    let sources = root.join(FOLDER).join("python/lsmith");
    for entry in fs::read_dir(&sources)? {
        let path = entry?.path();
        if path.is_file() {
            fs::copy(&path, package.join(path.file_name().context("a file has a name")?))?;
        }
    }
    fs::copy(root.join("target/debug/lib_lsmith.so"), package.join("_lsmith.abi3.so"))?;
    let mut tests = Command::new("python3");
    tests.args(["-m", "unittest", "discover", "-s"]).arg(root.join(FOLDER).join("tests"));
    tests.env("PYTHONPATH", root.join("target/python")).env("PYTHONDONTWRITEBYTECODE", "1");
    ensure!(tests.status()?.success(), "tests of {FOLDER} failed");
    Ok(())
}
