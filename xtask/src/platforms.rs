//! Checks the store for other systems, as far as this machine can, and runs tests under Wine.
//! Nothing is installed: what is missing is said, with the way to get it, and left out.

mod wine;

use crate::chores::{answers, cargo, run};
use crate::machines;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;

/// Windows, the only one of [`TARGETS`] whose programs can run here.
const WINDOWS: &str = "x86_64-pc-windows-gnu";

/// The targets of a quick run. The others compile the same code, or `cargo xtask wasm` builds for
/// them. `.ci/run` installs the standard libraries of all these.
const QUICK: [&str; 3] = [WINDOWS, "aarch64-apple-darwin", "i686-unknown-linux-gnu"];

/// What is checked: targets, each with a compiler of C and a package of Debian that has it, if any.
const TARGETS: [(&str, Option<(&str, &str)>); 7] = [
    (WINDOWS, Some(("x86_64-w64-mingw32-gcc", "gcc-mingw-w64-x86-64"))),
    ("x86_64-apple-darwin", None),
    ("aarch64-apple-darwin", None),
    ("i686-unknown-linux-gnu", Some(("i686-linux-gnu-gcc", "gcc-i686-linux-gnu"))),
    ("s390x-unknown-linux-gnu", Some(("s390x-linux-gnu-gcc", "gcc-s390x-linux-gnu"))),
    ("wasm32-unknown-unknown", None),
    ("wasm32-wasip1", None),
];

/// The packages that every system has. They bring `lsmith-spec`, `-tree`, `-policy` and `-storage`.
const EVERYWHERE: [&str; 4] = ["lsmith", "lsmith-model", "lsmith-sim", "lsmith-workload"];

/// With `quick`, checks some targets and nothing more. Otherwise checks all, and runs suites under
/// Wine.
pub(crate) fn platforms(root: &Path, quick: bool) -> Result<()> {
    let Some(installed) = installed() else {
        eprintln!("skipped other systems: there is no rustup, which has their standard libraries");
        return Ok(());
    };
    for (target, compiler) in TARGETS {
        if quick && !QUICK.contains(&target) {
            continue;
        }
        if !installed.lines().any(|line| line == target) {
            eprintln!("skipped {target}: it is not installed (`rustup target add {target}`)");
            continue;
        }
        let has_c = has_c(target, compiler);
        check(root, target, has_c)?;
        if target == WINDOWS && !quick && has_c {
            wine::suites(root)?;
        }
    }
    if quick {
        eprintln!("skipped targets that share their code with these: the run is quick");
        eprintln!("skipped the tests of 32 bits and of the other order of bytes: the run is quick");
        eprintln!("skipped the suites under Wine and the oldest compiler: the run is quick");
        return Ok(());
    }
    machines::machines(root, &installed)?;
    with_the_oldest_compiler(root)
}

/// Type-checks the packages for `target`: without what needs C, if there is no compiler of it.
fn check(root: &Path, target: &str, has_c: bool) -> Result<()> {
    let mut check = cargo(root);
    check.args(["check", "--target", target]);
    for package in EVERYWHERE {
        check.args(["-p", package]);
    }
    // The other targets have its system calls from Linux, or no processes.
    if target == WINDOWS {
        check.args(["-p", "lsmith-cli"]);
    }
    if has_c {
        check.args(["--features", "lsmith/encryption"]);
    } else {
        check.args(["--no-default-features", "--features", "lsmith/lz4"]);
    }
    run(&mut check)
}

/// Type-checks the workspace and its tests with the oldest compiler that is promised.
fn with_the_oldest_compiler(root: &Path) -> Result<()> {
    let manifest = std::fs::read_to_string(root.join("Cargo.toml"))?;
    let version = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \""));
    let version = version.context("Cargo.toml has no rust-version")?.trim_end_matches('"');
    let mut cargo = Command::new("rustup");
    cargo.current_dir(root).args(["run", version, "cargo"]).env_remove("RUSTUP_TOOLCHAIN");
    if !cargo.arg("--version").output().is_ok_and(|output| output.status.success()) {
        eprintln!("skipped Rust {version}: `rustup toolchain install {version}` installs it");
        return Ok(());
    }
    let mut check = Command::new("rustup");
    check.current_dir(root).args(["run", version, "cargo", "check", "--workspace"]);
    // What another compiler has compiled is kept apart.
    check.args(["--all-targets", "--target-dir", "target/oldest"]).env_remove("RUSTUP_TOOLCHAIN");
    run(check.env_remove("CARGO").env_remove("RUSTC"))
}

/// Returns the targets for which there is a standard library, one per line; `None` if there is no
/// rustup.
pub(crate) fn installed() -> Option<String> {
    let mut rustup = Command::new("rustup");
    let output = rustup.args(["target", "list", "--installed"]).output().ok()?;
    let printed = output.status.success().then_some(output.stdout)?;
    String::from_utf8(printed).ok()
}

/// Returns true if `compiler` is there. Says otherwise what the check of `target` leaves out.
fn has_c(target: &str, compiler: Option<(&str, &str)>) -> bool {
    let found = compiler.is_some_and(|(name, _)| answers(name));
    if !found {
        let way = compiler.map(|(_, package)| format!(" (`apt-get install {package}`)"));
        let way = way.unwrap_or_default();
        eprintln!("{target} without Zstandard and encryption: there is no compiler of C{way}");
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chores::root;

    /// A target that `.ci/run` does not install is skipped on a new machine.
    #[test]
    fn the_checks_of_ci_install_every_target() {
        let script = std::fs::read_to_string(root().join(".ci/run")).unwrap();
        for target in QUICK {
            assert!(script.contains(target), "{target}");
            assert!(TARGETS.iter().any(|(known, _)| *known == target), "{target}");
        }
    }
}
