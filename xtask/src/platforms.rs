//! Builds and tests the store for other systems, as far as this machine can.

use crate::chores::{answers, cargo, run};
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Windows, with the compiler of mingw.
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// Targets that are type-checked. `zstd` is left out: it would need a C compiler for each.
const CHECKED: [&str; 6] = [
    "x86_64-apple-darwin",
    "aarch64-apple-darwin",
    "i686-unknown-linux-gnu",
    "s390x-unknown-linux-gnu",
    "wasm32-unknown-unknown",
    "wasm32-wasip1",
];

/// The packages that every system has. They bring `lsmith-spec`, `-tree`, `-policy` and `-storage`.
const EVERYWHERE: [&str; 4] = ["lsmith", "lsmith-model", "lsmith-sim", "lsmith-workload"];

/// Checks every target, and with `quick` nothing more. Otherwise also runs the suite of the storage
/// crate under Wine. Says what it leaves out, and how to get it.
pub(crate) fn platforms(root: &Path, quick: bool) -> Result<()> {
    let installed = targets()?;
    for target in CHECKED {
        if !has(&installed, target) {
            continue;
        }
        let mut check = cargo(root);
        check.args(["check", "--no-default-features", "--features", "lsmith/lz4"]);
        run(check.args(packages()).args(["--target", target]))?;
    }
    if !has(&installed, WINDOWS) {
        return Ok(());
    }
    if !answers("x86_64-w64-mingw32-gcc") {
        eprintln!("skipped {WINDOWS}: there is no mingw (`apt-get install gcc-mingw-w64-x86-64`)");
        return Ok(());
    }
    run(cargo(root).args(["check"]).args(packages()).args(["--target", WINDOWS]))?;
    if quick {
        eprintln!("skipped the suites under Wine: they are no part of the quick run");
    } else if answers("wine") {
        let mut suite = cargo(root);
        suite.args(["test", "-p", "lsmith-storage", "--lib", "--target", WINDOWS]);
        suite.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine").env("WINEDEBUG", "-all");
        run(&mut suite)?;
    } else {
        eprintln!("skipped the suites under Wine: there is none (`apt-get install wine64`)");
    }
    Ok(())
}

fn packages() -> impl Iterator<Item = &'static str> {
    EVERYWHERE.into_iter().flat_map(|package| ["-p", package])
}

/// Returns the targets for which there is a standard library, one per line.
fn targets() -> Result<String> {
    let mut rustup = Command::new("rustup");
    let output = rustup.args(["target", "list", "--installed"]).output();
    let output = output.context("rustup, which knows the installed targets, did not start")?;
    String::from_utf8(output.stdout).context("rustup printed no text")
}

/// Returns true if `target` is one of `installed`. Says how to get it otherwise.
fn has(installed: &str, target: &str) -> bool {
    let found = installed.lines().any(|line| line == target);
    if !found {
        eprintln!("skipped {target}: it is not installed (`rustup target add {target}`)");
    }
    found
}
