//! Chores that run other commands.

use anyhow::{Context, Result, ensure};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Packages with golden scripts, with the test binary that plays them.
const GOLDENS: [(&str, &str); 3] =
    [("lsmith-tree", "it"), ("lsmith-policy", "it"), ("lsmith", "it")];

/// The profile of the workspace, for workspaces of their own that share what it has compiled.
pub(crate) const DEV_PROFILE: [&str; 6] = [
    "--config",
    "profile.dev.opt-level=3",
    "--config",
    "profile.dev.debug=\"line-tables-only\"",
    "--config",
    "profile.dev.codegen-units=16",
];

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

/// Returns true if there is a program called `name`.
pub(crate) fn answers(name: &str) -> bool {
    let found = Command::new(name).arg("--version").output();
    found.is_ok_and(|output| output.status.success())
}

/// Runs `command`, after its line. Fails if it does.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
    let program = Path::new(command.get_program()).file_name().unwrap_or_default();
    let line = format!("{} {}", program.to_string_lossy(), arguments.join(" "));
    eprintln!("{line}");
    let status = command.status().with_context(|| format!("{line} did not start"))?;
    ensure!(status.success(), "{line} failed");
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

/// Checks that a store without cargo features builds without C, and runs its tests of formats and
/// codecs.
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
    // The tests that see what such a store refuses.
    let mut tests = cargo(root);
    tests.args(["test", "-p", "lsmith", "-p", "lsmith-storage", "--no-default-features", "--lib"]);
    // Few tests of much code: most of the time is the compiler's.
    tests.args(["--config", "profile.dev.opt-level=0", "--", "format::", "compression::"]);
    run(&mut tests)
}

/// Packages every crate that is published, and checks that each compiles from its package, with the
/// others from theirs: as one workspace, so that every crate is compiled once. `cargo package`
/// would compile a crate once for itself and once for its users.
pub(crate) fn package(root: &Path) -> Result<()> {
    let packages = root.join("target/package");
    for entry in files_of(&packages)? {
        if entry.extension().is_some_and(|ending| ending == "crate") {
            fs::remove_file(entry)?;
        }
    }
    let left_out = ["--exclude", "lsmith-fuzz", "--exclude", "xtask"];
    let pack = ["package", "--workspace", "--allow-dirty", "--no-verify"];
    run(cargo(root).args(pack).args(left_out))?;
    let unpacked = root.join("target/unpacked");
    if unpacked.exists() {
        fs::remove_dir_all(&unpacked)?;
    }
    fs::create_dir_all(&unpacked)?;
    let mut patches = String::new();
    for package in files_of(&packages)? {
        let Some(folder) = package.file_name().and_then(|name| name.to_str()) else { continue };
        let Some(folder) = folder.strip_suffix(".crate") else { continue };
        let (name, _) = folder.rsplit_once('-').context("a package has a version")?;
        let mut tar = Command::new("tar");
        // Files get the time of now (`m`): packages say 2006, and cargo would take them for built.
        let status = tar.arg("-xzmf").arg(&package).arg("-C").arg(&unpacked).status()?;
        ensure!(status.success(), "tar cannot unpack {}", package.display());
        writeln!(patches, "{name} = {{ path = \"{folder}\" }}")?;
    }
    ensure!(!patches.is_empty(), "cargo made no packages in {}", packages.display());
    let workspace = "[workspace]\nresolver = \"3\"\nmembers = [\"*\"]\n";
    let manifest = format!("{workspace}\n[patch.crates-io]\n{patches}\n");
    fs::write(unpacked.join("Cargo.toml"), manifest)?;
    fs::copy(root.join("Cargo.lock"), unpacked.join("Cargo.lock"))?;
    let check = ["check", "--workspace", "--target-dir", "../../target"];
    run(cargo(&unpacked).args(check).args(DEV_PROFILE))
}

/// Returns the paths of what is in `folder`, in order; none if there is no such folder.
fn files_of(folder: &Path) -> Result<Vec<PathBuf>> {
    if !folder.exists() {
        return Ok(Vec::new());
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        files.push(entry?.path());
    }
    files.sort();
    Ok(files)
}

/// Runs the tests of a store in many schedules.
pub(crate) fn schedules(root: &Path) -> Result<()> {
    run(scheduled(root).args(["--", "--nocapture"]))
}
