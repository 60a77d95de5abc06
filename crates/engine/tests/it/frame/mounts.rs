//! Runs a test of this program in a process that has mounts of its own.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The environment variable of the child: the directory that `prepare` was given.
const DIR: &str = "LSMITH_MOUNT_DIR";

/// The exit code of a child that has no mount.
const NO_MOUNT: i32 = 77;

/// Returns the directory of the mount in a process that [`with_mount`] has started.
pub(crate) fn mounted() -> Option<PathBuf> {
    env::var_os(DIR).map(PathBuf::from)
}

/// Runs the test `child` of this program in a process of its own, after the shell has run `prepare`
/// with an empty directory as `$D`, where mounts end with the process. Says so where a process may
/// not mount anything: the caller then tests the same by an environment that refuses.
pub(crate) fn with_mount(child: &str, prepare: &str) {
    let dir = tempfile::tempdir().unwrap();
    let script = format!("({prepare}) || exit {NO_MOUNT}; exec \"$0\" --exact {child} --nocapture");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", &script]).arg(env::current_exe().unwrap());
    command.env("D", dir.path()).env(DIR, dir.path());
    let output = match command.output() {
        Ok(output) => output,
        Err(error) => return eprintln!("{child} is left out: no `unshare`: {error}"),
    };
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let refused = output.status.code() == Some(NO_MOUNT) || told.starts_with("unshare:");
    if refused {
        return eprintln!("{child} is left out: no mount: {told}");
    }
    assert!(output.status.success() && said.contains("1 passed"), "{child}: {said}{told}");
}

/// Mounts something, or fails: in a child, after its first mount has succeeded.
pub(crate) fn mount(arguments: &[&str], at: &Path) {
    let done = Command::new("mount").args(arguments).arg(at).status().unwrap();
    assert!(done.success(), "mount {arguments:?}");
}
