//! Runs the suites of the store, and the command, for Windows under Wine.

use super::WINDOWS;
use crate::chores::{answers, cargo, run};
use anyhow::Result;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The suites, as arguments of `cargo test`.
const SUITES: [&str; 8] =
    ["-p", "lsmith-storage", "-p", "lsmith", "--lib", "--test", "it", "--no-fail-fast"];

/// Tests that are left out under Wine, each with the reason. What Windows itself cannot do is left
/// out where the tests are.
const LEFT_OUT: [(&str, &str); 0] = [];

/// What the command does under Wine, each in a process of its own: it fills a store, copies it, and
/// looks at both.
const SCENE: [&[&str]; 6] = [
    &["run", "--policy", "minlatency", "--workload", "load(keys=2k)", "--dir", "store"],
    &["db", "store", "put", "a key", "a value"],
    &["db", "store", "checkpoint", "copy"],
    &["db", "copy", "get", "a key"],
    &["db", "store", "verify"],
    &["db", "store", "destroy", "--yes"],
];

/// Runs the suites, if there is Wine: a fifth of their seeds, which Linux tries all.
pub(super) fn suites(root: &Path) -> Result<()> {
    if !answers("wine") {
        eprintln!("skipped the suites under Wine: there is none (`apt-get install wine64`)");
        return Ok(());
    }
    let libraries = libraries(root)?;
    // Wine's server ends some seconds behind the last program. One that starts just then fails.
    let server = Command::new("wineserver").arg("-p600").status();
    if !server.is_ok_and(|status| status.success()) {
        eprintln!("the server of Wine may end between two suites: `wineserver` does not start");
    }
    let mut tests = cargo(root);
    tests.args(["test", "--target", WINDOWS]).args(SUITES).arg("--");
    for (test, why) in LEFT_OUT {
        eprintln!("skipped under Wine: {test}: {why}");
        tests.args(["--skip", test]);
    }
    tests.env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER", "wine").env("LSMITH_QUICK", "1");
    run(tests.env("WINEDEBUG", "-all").env("WINEPATH", &libraries))?;
    command(root, &libraries)
}

/// Plays the scene in a new folder.
fn command(root: &Path, libraries: &OsStr) -> Result<()> {
    run(cargo(root).args([
        "build",
        "--target",
        WINDOWS,
        "-p",
        "lsmith-cli",
        "--target-dir",
        "target",
    ]))?;
    let program = root.join("target").join(WINDOWS).join("debug/lsmith.exe");
    let folder = root.join("target/wine/scene");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    for arguments in SCENE {
        let mut wine = Command::new("wine");
        wine.arg(&program).args(arguments).current_dir(&folder);
        run(wine.env("WINEDEBUG", "-all").env("WINEPATH", libraries))?;
    }
    Ok(())
}

/// Makes the libraries that an older Wine lacks. Returns their folder as Wine names it. Libraries
/// of Wine go before those in this folder.
fn libraries(root: &Path) -> Result<OsString> {
    let folder = root.join("target/wine");
    fs::create_dir_all(&folder)?;
    let mut compile = Command::new("x86_64-w64-mingw32-gcc");
    compile.args(["-shared", "-o"]).arg(folder.join("bcryptprimitives.dll"));
    compile.arg(root.join("xtask/src/platforms/random.c")).arg("-ladvapi32");
    run(&mut compile)?;
    // The drive of Wine that shows the files of this system.
    let mut there = OsString::from("Z:");
    there.push(folder.canonicalize()?);
    Ok(there)
}
