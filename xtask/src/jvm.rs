//! Builds the packages for the JVM, and runs their tests.

use crate::chores::answers;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "hosts/jvm";

/// Tests of Cassandra write here why their node did not start.
const NODE_FAILURE: &str = "hosts/jvm/cassandra/target/node-failure.txt";

/// The programs that the build calls.
const PROGRAMS: [&str; 4] = ["mvn", "javac", "cc", "strip"];

/// The oldest Java that the packages are for.
const JAVA_MIN: u32 = 17;

/// Says so and does nothing where the packages cannot be built.
pub(crate) fn jvm(root: &Path) -> Result<()> {
    // Left by a run of Maven alone.
    taken(&root.join(NODE_FAILURE))?;
    if let Some(lacking) = lacking() {
        eprintln!("{FOLDER} is not tested: there is no {lacking}");
        return Ok(());
    }
    if verify(root, &[])? {
        return Ok(());
    }
    let Some(cause) = taken(&root.join(NODE_FAILURE))? else { bail!("tests of {FOLDER} failed") };
    eprintln!("Cassandra did not start, a second process tries:\n{cause}");
    if verify(root, &["--projects", ":lsmith-cassandra", "--also-make"])? {
        return Ok(());
    }
    let Some(cause) = taken(&root.join(NODE_FAILURE))? else { bail!("tests of {FOLDER} failed") };
    // A wrong configuration is ours. What else keeps a node from its start is the machine's.
    ensure!(!cause.contains("ConfigurationException"), "Cassandra refused to start:\n{cause}");
    eprintln!("{FOLDER}/cassandra is not tested: Cassandra does not start here:\n{cause}");
    Ok(())
}

/// Returns whether all tests passed.
fn verify(root: &Path, from: &[&str]) -> Result<bool> {
    let mut arguments = vec!["--batch-mode", "--quiet", "--file", "hosts/jvm/pom.xml", "verify"];
    arguments.extend(from);
    eprintln!("mvn {}", arguments.join(" "));
    let mut maven = Command::new("mvn");
    let status = maven.args(arguments).current_dir(root).status().context("mvn did not start")?;
    Ok(status.success())
}

/// Reads and removes a file, if it is there.
fn taken(file: &Path) -> Result<Option<String>> {
    match fs::read_to_string(file) {
        Ok(text) => {
            fs::remove_file(file).with_context(|| file.display().to_string())?;
            Ok(Some(text))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| file.display().to_string()),
    }
}

/// Returns what the build needs and this system does not have.
fn lacking() -> Option<String> {
    if !cfg!(all(target_os = "linux", target_arch = "x86_64")) {
        return Some("library for systems other than x86-64 Linux".to_string());
    }
    if let Some(program) = PROGRAMS.iter().find(|program| !answers(program)) {
        return Some(format!("`{program}`"));
    }
    // `javac 17.0.15`; the programs before Java 9 call themselves `javac 1.8.0_392`.
    let output = Command::new("javac").arg("--version").output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = text.split_whitespace().nth(1).and_then(|version| version.split('.').next());
    let is_new_enough = version.and_then(|version| version.parse().ok()) >= Some(JAVA_MIN);
    (!is_new_enough).then(|| format!("Java {JAVA_MIN} or later"))
}
