//! Runs the binary.

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The result of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Returns the root of the repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs `lsmith` with `args`.
pub(crate) fn lsmith(args: &[&str]) -> Done {
    lsmith_in(Path::new("."), args)
}

/// Runs `lsmith` with `args` in the directory `dir`.
pub(crate) fn lsmith_in(dir: &Path, args: &[&str]) -> Done {
    let output = Command::new(env!("CARGO_BIN_EXE_lsmith"))
        .args(args)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("the binary was built");
    Done {
        code: output.status.code().expect("not killed"),
        out: String::from_utf8(output.stdout).expect("text"),
        err: without_progress(&String::from_utf8(output.stderr).expect("text")),
    }
}

/// Leaves out the lines of progress: a slow machine has some.
fn without_progress(err: &str) -> String {
    err.split_inclusive('\n').filter(|line| !line.starts_with("progress: ")).collect()
}

/// Runs a command that must succeed without warnings, and returns its standard output.
pub(crate) fn fine(args: &[&str]) -> String {
    fine_in(Path::new("."), args)
}

/// Runs a command in the directory `dir`, as [`fine`] does.
pub(crate) fn fine_in(dir: &Path, args: &[&str]) -> String {
    let done = lsmith_in(dir, args);
    assert_eq!((done.code, done.err.as_str()), (0, ""), "{args:?}: {done:?}");
    done.out
}

/// Runs a command with `--json` and returns the object that it prints.
pub(crate) fn json(args: &[&str]) -> Value {
    let out = fine(&[args, &["--json"]].concat());
    assert_eq!(out.matches('\n').count(), 1, "{out}");
    let value: Value = serde_json::from_str(&out).expect("JSON");
    assert!(value.is_object(), "{value}");
    value
}

/// Runs a command that must exit with `code`, and returns its only line, on standard error.
pub(crate) fn refused(code: i32, args: &[&str]) -> String {
    let done = lsmith(args);
    assert_eq!((done.code, done.out.as_str()), (code, ""), "{args:?}: {done:?}");
    assert!(done.err.starts_with("lsmith: "), "{args:?}: {done:?}");
    assert_eq!(done.err.matches('\n').count(), 1, "{args:?}: {done:?}");
    done.err
}

/// Makes a directory for a store, and returns it with the store's path as text.
pub(crate) fn store_dir() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store").to_str().unwrap().to_owned();
    (dir, path)
}
