//! A signal ends a command, and what the command has made is removed.

use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A workload that takes minutes.
const LONG: &str = "churn(keys=10k, ops=4G, value=100B)";

fn spawn(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lsmith"));
    command.args(args).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

/// Waits until `child` has made a store in `dir`, or in a directory of `dir`.
fn wait_for_store(child: &mut Child, dir: &Path) {
    let is_store = |dir: &Path| dir.join("CURRENT").exists();
    let names = || fs::read_dir(dir).into_iter().flatten().flatten().map(|entry| entry.path());
    while !is_store(dir) && !names().any(|path| is_store(&path)) {
        assert_eq!(child.try_wait().unwrap(), None, "the command has ended");
        std::thread::yield_now();
    }
}

fn end(child: Child, signal: Signal) -> (Output, String) {
    kill_process(Pid::from_child(&child), signal).unwrap();
    let output = child.wait_with_output().unwrap();
    let message = String::from_utf8(output.stderr.clone()).unwrap();
    (output, message)
}

#[test]
fn signals_remove_the_stores_of_a_comparison() {
    for (signal, name, code) in [(Signal::INT, "SIGINT", 130), (Signal::TERM, "SIGTERM", 143)] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().to_str().unwrap();
        let compare = ["compare", "--policies", "none", "--workload", LONG, "--dir", path];
        let mut child = spawn(&[&compare[..], &["--memtable", "64KiB"]].concat());
        wait_for_store(&mut child, dir.path());
        let (output, message) = end(child, signal);
        assert_eq!(output.status.code(), Some(code), "{message}");
        let start = format!("lsmith: ended by {name}; removed {path}/lsmith-compare-");
        assert!(message.starts_with(&start) && message.lines().count() == 1, "{message}");
        assert!(output.stdout.is_empty());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{message}");
    }
}

#[test]
fn signal_keeps_the_store_of_a_run() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    let mut child = spawn(&["run", "--policy", "none", "--workload", LONG, "--dir", path]);
    wait_for_store(&mut child, &store);
    let (output, message) = end(child, Signal::TERM);
    assert_eq!(output.status.code(), Some(143), "{message}");
    assert_eq!(message, format!("lsmith: ended by SIGTERM; {path} keeps the writes so far\n"));
    crate::command::fine(&["db", path, "verify"]);
}

#[test]
fn signal_removes_the_stores_of_a_figure() {
    let dir = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_lsmith"));
    command.args(["reproduce", "mao-fig9"]).env("TMPDIR", dir.path());
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for_store(&mut child, dir.path());
    let (output, message) = end(child, Signal::TERM);
    assert_eq!(output.status.code(), Some(143), "{message}");
    assert!(message.contains("; removed ") && message.contains("lsmith-reproduce-"), "{message}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "{message}");
}
