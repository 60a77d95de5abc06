//! Chores that run other commands.

use crate::{pages, tidy};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages with golden scripts, with the test binary that plays them.
const GOLDENS: [(&str, &str); 3] =
    [("lsmith-tree", "it"), ("lsmith-policy", "it"), ("lsmith", "it")];

/// Returns the folder of the workspace.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().map_or_else(|| here.to_path_buf(), Path::to_path_buf)
}

/// Returns a command of the cargo that runs this program.
pub(crate) fn cargo(root: &Path) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root);
    command
}

fn run(command: &mut Command) -> Result<()> {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let line = arguments.join(" ");
    eprintln!("cargo {line}");
    let status = command.status().with_context(|| format!("cargo {line} did not start"))?;
    ensure!(status.success(), "cargo {line} failed");
    Ok(())
}

/// Writes the current output of the golden scripts into them.
pub(crate) fn bless(root: &Path) -> Result<()> {
    for (package, test) in GOLDENS {
        let arguments = ["test", "--quiet", "-p", package, "--test", test, "scripts"];
        run(cargo(root).args(arguments).env("BLESS", "1"))?;
    }
    Ok(())
}

/// Returns a cargo command for tests that decide the schedule of every step of the store.
pub(crate) fn scheduled(root: &Path) -> Command {
    let mut command = cargo(root);
    let flags = std::env::var("RUSTFLAGS").unwrap_or_default();
    command.env("RUSTFLAGS", format!("{flags} --cfg shuttle").trim_start());
    // A separate target folder, so that switching this flag does not rebuild everything.
    command.args(["test", "--release", "-p", "lsmith", "--test", "schedules"]);
    command.args(["--target-dir", "target/schedules"]);
    command
}

/// Checks that a store without cargo features builds without C, and runs its unit tests.
pub(crate) fn plain(root: &Path) -> Result<()> {
    let mut tree = cargo(root);
    tree.args(["tree", "-p", "lsmith", "--no-default-features"]);
    tree.args(["--edges", "normal,build", "--prefix", "none"]);
    let printed = tree.output().context("cargo tree did not start")?;
    ensure!(printed.status.success(), "cargo tree failed");
    let crates = String::from_utf8(printed.stdout)?;
    ensure!(crates.contains("lsmith-storage"), "cargo tree printed no crate of ours");
    // The crate with which build scripts call a C compiler.
    let needs_c = crates.lines().any(|line| line.starts_with("cc v"));
    ensure!(!needs_c, "a store without features needs a C compiler:\n{crates}");
    let tests = ["test", "-p", "lsmith", "-p", "lsmith-storage", "--no-default-features", "--lib"];
    run(cargo(root).args(tests))
}

/// Packages every crate that is published, and builds it from its package.
pub(crate) fn package(root: &Path) -> Result<()> {
    let left_out = ["--exclude", "lsmith-fuzz", "--exclude", "xtask"];
    run(cargo(root).args(["package", "--workspace", "--allow-dirty"]).args(left_out))
}

/// Runs the tests of a store in many schedules.
pub(crate) fn schedules(root: &Path) -> Result<()> {
    run(scheduled(root).args(["--", "--nocapture"]))
}

/// Runs the steps of CI in the same order. Tidy comes before the tests, so that it fails early.
pub(crate) fn ci(root: &Path) -> Result<()> {
    run(cargo(root).args(["fmt", "--all", "--check"]))?;
    let lints = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    run(cargo(root).args(lints))?;
    tidy::report(root)?;
    let pages = ["doc", "--workspace", "--no-deps"];
    run(cargo(root).args(pages).env("RUSTDOCFLAGS", "-D warnings"))?;
    run(cargo(root).args(["test", "--release", "--workspace"]))?;
    // Overflow checks and debug assertions for crates with hostile bytes and threads.
    run(cargo(root).args(["test", "-p", "lsmith", "-p", "lsmith-storage", "-p", "lsmith-tree"]))?;
    plain(root)?;
    package(root)?;
    schedules(root)?;
    pages::run(root, None)
}
