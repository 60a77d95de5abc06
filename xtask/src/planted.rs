//! Plants bugs on purpose; the tests must catch each of them.
//!
//! `crates/engine/tests/planted.txt` lists them:
//!
//! ```text
//! == the name of the bug
//! file crates/engine/src/write/log.rs
//! test lives:: power::
//! -lines that the file has exactly once
//! +lines that replace them, if any
//! ```
//!
//! A bug that several layers guard against has several places, each with a line `file`.
//!
//! Each bug is planted in a copy of the workspace. There the tests whose names contain one of the
//! words after `test` run until one fails or runs for too long; otherwise the bug is not caught. A
//! line that starts with `schedules` instead names tests that decide the schedule of every step.
//! One that starts with `campaign` names tests of the campaigns, `features_` and `accidents_`, and
//! variables of the environment for them: `LSMITH_WORLD=chdir`. An underscore in a value stands for
//! a space.

use crate::chores::{cargo, scheduled};
use anyhow::{Context, Result, bail, ensure};
use std::fs::{self, File};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// The path of the list.
const LIST: &str = "crates/engine/tests/planted.txt";

/// The parts of the workspace that are copied. Tests compare pages with what is measured.
const COPIED: [&str; 8] =
    ["Cargo.toml", "Cargo.lock", ".cargo", "crates", "docs", "examples", "hosts", "xtask"];

/// The example that is a workspace of its own, with tests of its own.
const EXAMPLE: &str = "examples/raft-kv/";

/// The packages outside the store whose own tests catch bugs.
const OUTER: [(&str, &str); 5] = [
    ("crates/cli/", "lsmith-cli"),
    ("crates/policy/", "lsmith-policy"),
    ("crates/sim/", "lsmith-sim"),
    ("crates/workload/", "lsmith-workload"),
    ("crates/doctor/", "lsmith-doctor"),
];

/// The time after which tests count as hanging.
const PATIENCE: Duration = Duration::from_secs(600);

/// A bug to plant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Bug {
    name: String,
    places: Vec<Place>,
    tests: Vec<String>,
    /// Variables of the environment of the tests, with their values.
    variables: Vec<(String, String)>,
    /// True if the tests are tests of schedules.
    is_scheduled: bool,
    /// True if the tests are campaigns.
    is_campaign: bool,
}

/// Lines of a file that a bug replaces.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Place {
    file: String,
    old: String,
    new: String,
}

fn parse(text: &str) -> Result<Vec<Bug>> {
    let mut bugs: Vec<Bug> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(name) = line.strip_prefix("== ") {
            bugs.push(Bug { name: name.to_string(), ..Bug::default() });
            continue;
        }
        let at = || format!("{LIST}, line {}", number + 1);
        let bug = bugs.last_mut().with_context(|| format!("{}: no bug has begun", at()))?;
        let code = |rest: &str| format!("{rest}\n");
        let lines = || format!("{}: `file` comes before the lines of a file", at());
        match line.split_at(1) {
            ("-", rest) => {
                let place = bug.places.last_mut().with_context(lines)?;
                place.old.push_str(&code(rest));
            }
            ("+", rest) => {
                let place = bug.places.last_mut().with_context(lines)?;
                place.new.push_str(&code(rest));
            }
            _ => match line.split_once(' ') {
                Some(("file", file)) => {
                    bug.places.push(Place { file: file.to_string(), ..Place::default() });
                }
                Some((kind @ ("test" | "schedules" | "campaign"), words)) => {
                    bug.take_tests(words);
                    bug.is_scheduled = kind == "schedules";
                    bug.is_campaign = kind == "campaign";
                }
                _ => bail!(
                    "{}: expected `file`, `test`, `schedules`, `campaign`, `-` or `+`, found \
                     `{line}`",
                    at()
                ),
            },
        }
    }
    Ok(bugs)
}

impl Bug {
    /// Takes the words of a line with tests and variables.
    fn take_tests(&mut self, words: &str) {
        for word in words.split_whitespace() {
            match word.split_once('=') {
                Some((name, value)) => {
                    self.variables.push((name.to_string(), value.replace('_', " ")));
                }
                None => self.tests.push(word.to_string()),
            }
        }
    }

    /// Returns true if all its files are in `folder`.
    fn is_in(&self, folder: &str) -> bool {
        self.places.iter().all(|place| place.file.starts_with(folder))
    }

    /// Plants the bug in the workspace at `root`. Returns the files with their texts before.
    fn plant(&self, root: &Path) -> Result<Vec<(PathBuf, String)>> {
        ensure!(!self.places.is_empty(), "the bug `{}` has no lines", self.name);
        let mut before = Vec::new();
        for place in &self.places {
            let path = root.join(&place.file);
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            let planted = place.plant(&text).with_context(|| format!("the bug `{}`", self.name))?;
            fs::write(&path, planted)?;
            before.push((path, text));
        }
        Ok(before)
    }
}

impl Place {
    /// Returns `text`, the content of the file, with the bug.
    fn plant(&self, text: &str) -> Result<String> {
        let count = text.matches(&self.old).count();
        ensure!(
            count == 1 && !self.old.is_empty(),
            "the lines are in {} {count} times, expected once",
            self.file
        );
        Ok(text.replacen(&self.old, &self.new, 1))
    }
}

/// Plants the bugs whose names contain `word`, one after the other, and prints the test that caught
/// each.
pub(crate) fn run(root: &Path, word: &str) -> Result<()> {
    let list = root.join(LIST);
    let all = parse(&fs::read_to_string(&list).with_context(|| list.display().to_string())?)?;
    let bugs: Vec<Bug> = all.into_iter().filter(|bug| bug.name.contains(word)).collect();
    ensure!(!bugs.is_empty(), "no planted bug has `{word}` in its name");
    let copy = root.join("target/planted");
    fs::create_dir_all(&copy)?;
    for part in COPIED {
        copy_all(&root.join(part), &copy.join(part))?;
    }
    let mut missed = 0;
    for bug in &bugs {
        let before = bug.plant(&copy)?;
        let outcome = caught(&copy, bug);
        // Last to first: a file with two places has its own text back.
        before.iter().rev().try_for_each(|(path, text)| fs::write(path, text))?;
        let caught = outcome?;
        missed += usize::from(caught.is_none());
        eprintln!("{:<66} {}", bug.name, caught.unwrap_or_else(|| "NOT CAUGHT".to_string()));
    }
    eprintln!("{} of {} planted bugs were caught", bugs.len() - missed, bugs.len());
    ensure!(missed == 0, "{missed} planted bugs were not caught");
    Ok(())
}

/// Returns the test that fails with `bug`; `None` if all pass.
fn caught(copy: &Path, bug: &Bug) -> Result<Option<String>> {
    let status = command(copy, bug).arg("--no-run").stderr(Stdio::null()).status()?;
    ensure!(status.success(), "with the bug `{}` the store does not compile", bug.name);
    let output = copy.join("target/output");
    let mut cargo = command(copy, bug);
    cargo.arg("--").args(&bug.tests).stderr(Stdio::null());
    cargo.process_group(0);
    let mut tests = cargo.stdout(File::create(&output)?).spawn()?;
    let start = Instant::now();
    let (caught, printed) = loop {
        // Checked before reading: after the end the output is complete.
        let ended = tests.try_wait()?;
        let printed = fs::read_to_string(&output)?;
        let failed = failed(&printed).or_else(|| match ended {
            Some(status) => (!status.success()).then(|| "the death of the tests".to_string()),
            None => (start.elapsed() > PATIENCE).then(|| "a test that does not end".to_string()),
        });
        if ended.is_some() || failed.is_some() {
            break (failed, printed);
        }
        sleep(Duration::from_millis(200));
    };
    if tests.try_wait()?.is_none() {
        // Kills the process group: cargo and its tests.
        Command::new("kill").args(["-KILL", "--", &format!("-{}", tests.id())]).status()?;
        tests.wait()?;
    }
    ensure!(
        printed.lines().any(|line| line.starts_with("running ") && line != "running 0 tests"),
        "no test of the bug `{}` was run",
        bug.name
    );
    Ok(caught)
}

/// Returns the first failed test. libtest prints it after the dots of passed tests.
fn failed(printed: &str) -> Option<String> {
    let name = printed.lines().find_map(|line| line.strip_suffix(" --- FAILED"))?;
    Some(name.trim_start_matches('.').to_string())
}

/// Returns the cargo command for the tests that must catch `bug`.
fn command(copy: &Path, bug: &Bug) -> Command {
    if bug.is_scheduled {
        let mut command = scheduled(copy);
        command.arg("--quiet");
        return command;
    }
    let mut command = cargo(copy);
    command.env("CARGO_TARGET_DIR", copy.join("target")).env("CARGO_PROFILE_TEST_DEBUG", "0");
    command.envs(bug.variables.iter().map(|(name, value)| (name, value)));
    if bug.is_campaign {
        // Both: a campaign is short, and building it anew takes seconds.
        command.args(["test", "--quiet", "-p", "lsmith", "--test", "world", "--test", "features"]);
        return command;
    }
    command.args(["test", "--quiet", "--test", "it"]);
    if bug.is_in(EXAMPLE) {
        command.arg("--manifest-path").arg(copy.join(EXAMPLE).join("Cargo.toml"));
        return command;
    }
    command.arg("--lib");
    match OUTER.iter().find(|(folder, _)| bug.is_in(folder)) {
        Some((_, package)) => command.args(["-p", package]),
        None => command.args(["-p", "lsmith", "-p", "lsmith-storage", "-p", "lsmith-tree"]),
    };
    command
}

/// Copies a file or a folder with its content. Skips files whose copies are equal.
fn copy_all(from: &Path, to: &Path) -> Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let name = entry?.file_name();
            if name != "target" {
                copy_all(&from.join(&name), &to.join(&name))?;
            }
        }
        return remove_strays(from, to);
    }
    let bytes = fs::read(from).with_context(|| from.display().to_string())?;
    if fs::read(to).ok().as_ref() != Some(&bytes) {
        fs::write(to, bytes).with_context(|| to.display().to_string())?;
    }
    Ok(())
}

/// Removes the files of folder `to` that folder `from` does not have any more.
fn remove_strays(from: &Path, to: &Path) -> Result<()> {
    for entry in fs::read_dir(to)? {
        let path = entry?.path();
        let is_stray = path.file_name().is_some_and(|name| !from.join(name).exists());
        if is_stray && path.is_dir() {
            fs::remove_dir_all(&path)?;
        } else if is_stray {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_has_the_files_of_the_original_and_no_others() {
        let root = tempfile::tempdir().expect("a folder can be made");
        let [from, to] = ["from", "to"].map(|name| root.path().join(name));
        for path in [from.join("room/mod.rs"), to.join("room.rs"), to.join("old/mod.rs")] {
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder can be made");
            fs::write(path, "code").expect("a file can be written");
        }
        copy_all(&from, &to).expect("the copy works");
        let found = fs::read_dir(&to).expect("a folder").map(|entry| entry.expect("a file"));
        let names: Vec<_> = found.map(|entry| entry.file_name()).collect();
        assert_eq!(names, ["room"]);
        assert!(to.join("room/mod.rs").exists());
    }

    /// A change of lines with a planted bug must also update the bug.
    #[test]
    fn every_planted_bug_fits_the_code_as_it_is() {
        let root = crate::chores::root();
        let list = fs::read_to_string(root.join(LIST)).expect("it is there");
        let misfits: Vec<String> = parse(&list)
            .expect("a legal list")
            .iter()
            .flat_map(|bug| bug.places.iter().map(|place| (&bug.name, place)))
            .filter_map(|(name, place)| {
                let text = fs::read_to_string(root.join(&place.file)).unwrap_or_default();
                place.plant(&text).err().map(|error| format!("{name}: {error}"))
            })
            .collect();
        assert!(misfits.is_empty(), "{misfits:#?}");
    }

    #[test]
    fn the_first_failure_is_found_among_the_dots() {
        assert_eq!(failed("running 3 tests\n.. 2/3\n"), None);
        let printed = "running 3 tests\n..a::b --- FAILED\n.\nc::d --- FAILED\n";
        assert_eq!(failed(printed).as_deref(), Some("a::b"));
    }

    /// docs/planted.md has a table row for each bug, with the test that catches it.
    #[test]
    fn every_planted_bug_is_in_the_table() {
        let root = crate::chores::root();
        let read = |file: &str| fs::read_to_string(root.join(file)).expect("it is there");
        let bugs = parse(&read(LIST)).expect("a legal list");
        let page = read("docs/planted.md");
        let rows = page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next());
        let listed: Vec<&str> = rows.filter(|name| *name != "Planted bug").collect();
        let names: Vec<&str> = bugs.iter().map(|bug| &*bug.name).collect();
        assert_eq!(listed, names);
    }

    #[test]
    fn a_bug_is_planted_in_the_one_place_where_its_lines_are() {
        let text = "# heading\n== no sync\nfile a.rs\ntest x y\n-    sync();\n+    // none\n";
        let bugs = parse(text).expect("a legal list");
        assert_eq!(bugs[0].tests, ["x", "y"]);
        let place = &bugs[0].places[0];
        let planted = place.plant("{\n    sync();\n}\n").expect("it is there");
        assert_eq!(planted, "{\n    // none\n}\n");
        assert!(place.plant("{}\n").is_err());
        assert!(place.plant("    sync();\n    sync();\n").is_err());
        assert!(parse("- x\n").is_err() && parse("== a\nfiles b\n").is_err());
        assert!(parse("== a\n-no file\n").is_err());
    }

    #[test]
    fn a_bug_of_two_places_is_planted_in_both_and_taken_back() {
        let root = tempfile::tempdir().expect("a folder can be made");
        let text = "== two\nfile a.rs\n-one\n+1\nfile a.rs\n-two\ncampaign X=a_b accidents_\n";
        let bugs = parse(text).expect("a legal list");
        assert_eq!(bugs[0].variables, [("X".to_string(), "a b".to_string())]);
        fs::write(root.path().join("a.rs"), "one\ntwo\n").expect("a file can be written");
        let before = bugs[0].plant(root.path()).expect("it fits");
        let read = || fs::read_to_string(root.path().join("a.rs")).expect("it is there");
        assert_eq!(read(), "1\n");
        before.iter().rev().for_each(|(path, text)| fs::write(path, text).expect("it is there"));
        assert_eq!(read(), "one\ntwo\n");
    }
}
