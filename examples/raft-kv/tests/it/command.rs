//! The commands that the README shows.

use crate::cluster::free_ports;
use std::path::Path;
use std::process::{Command, Output};

fn run(args: &[&str], dir: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_raft-kv"));
    command.args(args.iter().map(|arg| if *arg == "DIR" { dir.as_os_str() } else { arg.as_ref() }));
    command.output().unwrap()
}

/// Runs a command that must succeed, and returns what it prints.
fn print(args: &[&str], dir: &Path) -> String {
    let Output { status, stdout, stderr } = run(args, dir);
    assert!(status.success(), "{args:?}: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Stops the cluster if a test ends early.
struct Running<'a>(&'a Path);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        run(&["cluster", "stop", "DIR"], self.0);
    }
}

#[test]
fn two_commands_start_a_cluster_and_write() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path().join("cluster");
    let port = free_ports().to_string();
    let _running = Running(&dir);
    let started = print(&["cluster", "start", "DIR", "--port", &port], &dir);
    assert!(started.contains("node 3 starts at 127.0.0.1:"), "{started}");
    assert!(started.ends_with(" leads\n"), "{started}");
    assert_eq!(print(&["client", "DIR", "put", "apple", "red"], &dir), "");
    assert_eq!(print(&["client", "DIR", "get", "apple"], &dir), "red\n");
    print(&["client", "DIR", "put", "pear", "green"], &dir);
    print(&["client", "DIR", "delete", "pear"], &dir);
    assert!(!run(&["client", "DIR", "get", "pear"], &dir).status.success());
    // What no node could apply must not get into the log.
    assert!(!run(&["client", "DIR", "put", "", "red"], &dir).status.success());
    assert!(!run(&["client", "DIR", "delete", &"k".repeat(2000)], &dir).status.success());
    assert_eq!(print(&["client", "DIR", "get", "apple"], &dir), "red\n");

    // What runs is left alone.
    let again = print(&["cluster", "start", "DIR"], &dir);
    assert!(!again.contains("starts"), "{again}");
    print(&["cluster", "stop", "DIR"], &dir);
    assert!(!run(&["client", "DIR", "put", "apple", "green"], &dir).status.success());
    print(&["cluster", "start", "DIR"], &dir);
    assert_eq!(print(&["client", "DIR", "get", "apple"], &dir), "red\n");
    assert_eq!(print(&["cluster", "status", "DIR"], &dir).lines().count(), 4);
    print(&["cluster", "stop", "DIR"], &dir);
}
