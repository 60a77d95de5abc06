//! The sample and the examples of the README.

use crate::command::root;
use std::fs;
use std::path::Path;
use std::process::Command;

fn readme() -> String {
    fs::read_to_string(root().join("README.md")).unwrap()
}

/// Splits a command line at spaces outside quotes. A `#` begins a comment.
fn words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quoted = false;
    for c in line.chars() {
        match c {
            '#' if !quoted => break,
            '\'' => quoted = !quoted,
            ' ' if !quoted => words.push(String::new()),
            c => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Runs a command line at the root of the repository, with 120 columns.
fn run(line: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lsmith"));
    let output = command.args(words(line)).env("COLUMNS", "120").current_dir(root()).output();
    let output = output.unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Returns the cells of each row. The columns of times are empty.
fn cells(table: &str) -> Vec<Vec<String>> {
    let split = |line: &str| -> Vec<String> {
        line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).map(Into::into).collect()
    };
    let mut rows: Vec<_> = table.lines().filter(|line| !line.starts_with('-')).map(split).collect();
    let head = rows.iter().find(|row| row.first().is_some_and(|cell| cell == "policy"));
    let head = head.expect("a header").clone();
    let times = head.iter().enumerate().filter(|(_, name)| ["ops/s", "s"].contains(&name.as_str()));
    let times: Vec<usize> = times.map(|(at, _)| at).collect();
    for row in rows.iter_mut().filter(|row| row.len() == head.len() && **row != head) {
        times.iter().for_each(|at| row[*at].clear());
    }
    rows
}

#[test]
fn sample_is_what_the_command_prints() {
    let readme = readme();
    let (_, sample) = readme.split_once("```\n$ lsmith ").unwrap();
    let (sample, _) = sample.split_once("```").unwrap();
    let sample = sample.replace("\\\n", " ");
    let (line, table) = sample.split_once('\n').unwrap();
    let printed = run(line);
    assert_eq!(cells(table), cells(&printed), "{printed}");
}

/// Leaves out what takes minutes in a debug build.
#[test]
fn examples_show_something() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let readme = readme();
    let lines = readme.lines().filter_map(|line| line.strip_prefix("cargo run --release -- "));
    let quick = |line: &&str| {
        let is_quick = ["simulate", "run", "db", "watch", "model", "policies", "workloads"];
        is_quick.iter().any(|name| line.starts_with(name)) || line.contains("small-trace")
    };
    let lines: Vec<&str> = lines.filter(quick).collect();
    assert!(lines.len() >= 9, "{lines:?}");
    for line in lines {
        let printed = run(&line.replace("/tmp/store", store.to_str().unwrap()));
        assert!(printed.lines().count() > 3, "{line}: {printed}");
        assert!(!printed.contains("no memtable") && !printed.contains("NaN"), "{line}: {printed}");
    }
    assert!(Path::exists(&store));
}
