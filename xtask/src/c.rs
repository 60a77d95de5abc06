//! Compiles the examples and the tests in C and C++, and runs them.

use crate::chores::{answers, cargo, run};
use anyhow::{Context, Result, ensure};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const CRATE: &str = "crates/capi";

/// Folders of the crate with programs.
const FOLDERS: [&str; 2] = ["examples", "tests/c"];

/// What valgrind looks for: a leak is an error too. Stacks reach back to the program's function.
const VALGRIND: [&str; 5] = [
    "-q",
    "--error-exitcode=9",
    "--leak-check=full",
    "--errors-for-leak-kinds=definite,possible",
    "--num-callers=60",
];

/// What valgrind finds in libraries, with the reasons.
const KNOWN: &str = "tests/c/valgrind.supp";

/// Runs each program on a new directory, under valgrind if there is one.
///
/// Says so and does nothing if there is no compiler of C.
pub(crate) fn c(root: &Path) -> Result<()> {
    if !answers("cc") || !answers("c++") {
        eprintln!("{CRATE} is not tested in C: there is no `cc` or no `c++`");
        return Ok(());
    }
    let has_valgrind = answers("valgrind");
    if !has_valgrind {
        eprintln!("{CRATE} is tested without valgrind: there is none");
    }
    let build = ["build", "-p", "lsmith-capi", "--target-dir", "target"];
    // At level 3 the compiler has bytes without a meaning looked at: errors, for valgrind.
    run(cargo(root).args(build).args(["--config", "profile.dev.opt-level=1"]))?;
    let place = root.join("target/c");
    for folder in FOLDERS {
        let mut sources = Vec::new();
        for entry in fs::read_dir(root.join(CRATE).join(folder))? {
            sources.push(entry?.path());
        }
        sources.sort();
        for source in sources.iter().filter(|source| compiler(source).is_some()) {
            let program = compile(root, &place, source)?;
            let dir = place.join("dir");
            fs::remove_dir_all(&dir).or_else(|error| match error.kind() {
                std::io::ErrorKind::NotFound => Ok(()),
                _ => Err(error),
            })?;
            fs::create_dir_all(&dir)?;
            let mut command = match has_valgrind {
                true => Command::new("valgrind"),
                false => Command::new(&program),
            };
            if has_valgrind {
                let known = root.join(CRATE).join(KNOWN);
                command.args(VALGRIND).arg(format!("--suppressions={}", known.display()));
                command.arg(&program);
            }
            let status = command.arg(&dir).status()?;
            ensure!(status.success(), "{} failed: {status}", source.display());
            eprintln!("{}: ok", source.strip_prefix(root).unwrap_or(source).display());
        }
    }
    Ok(())
}

/// Returns the compiler of a source file and the standard that it is held to.
fn compiler(source: &Path) -> Option<(&'static str, &'static str)> {
    match source.extension().and_then(OsStr::to_str) {
        Some("c") => Some(("cc", "-std=c11")),
        Some("cc") => Some(("c++", "-std=c++17")),
        _ => None,
    }
}

/// Compiles a program, and returns where it is.
fn compile(root: &Path, place: &Path, source: &Path) -> Result<PathBuf> {
    fs::create_dir_all(place)?;
    let program = place.join(source.file_stem().context("a source file has a name")?);
    let (compiler, standard) = compiler(source).context("the file is no program")?;
    let mut command = Command::new(compiler);
    command.args([standard, "-Wall", "-Wextra", "-Werror", "-g", "-I"]);
    command.arg(root.join(CRATE).join("include")).arg(source);
    command.arg(root.join("target/debug/liblsmith_c.a"));
    command.args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&program);
    let status = command.status()?;
    ensure!(status.success(), "{} does not compile: {status}", source.display());
    Ok(program)
}
