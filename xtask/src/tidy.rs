//! Checks that the compiler does not make: sizes, layers, modules, doors, undeclared files, the
//! width of documents, and phrases in prose.
//!
//! `allowed.txt` lists the items that were too large when a rule was introduced. The list may only
//! shrink, so an unneeded line is an error too. `phrases.txt` records counts in the same way.

mod doors;
mod files;
mod finding;
mod layers;
mod modules;
mod named_tests;
mod phrases;
mod prose;
mod sizes;
mod sources;

pub(crate) use modules::print as print_modules;
pub(crate) use sources::files_with;

use anyhow::{Result, bail};
use finding::Finding;
use sources::{read, relative, sources};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// Prints all violations. Fails if there are any.
pub(crate) fn report(root: &Path) -> Result<()> {
    let findings = check(root)?;
    for Finding { place, what, .. } in &findings {
        eprintln!("{place}: {what}");
    }
    match findings.len() {
        0 => Ok(()),
        count => bail!("tidy found {count} violations"),
    }
}

/// Lowers the record of phrases to what the files have now.
pub(crate) fn bless(root: &Path) -> Result<()> {
    let mut counts = phrases::Counts::default();
    let mut paths = sources(root)?;
    files_with("md", root, &mut paths)?;
    for path in &paths {
        counts.add(&relative(root, path), &read(path)?);
    }
    phrases::bless(root, &counts)
}

/// Returns all violations.
pub(crate) fn check(root: &Path) -> Result<Vec<Finding>> {
    let metadata = layers::metadata(root)?;
    let mut findings = Vec::new();
    let mut counts = phrases::Counts::default();
    let mut tests = named_tests::Tests::default();
    let paths = sources(root)?;
    for path in &paths {
        let text = read(path)?;
        counts.add(&relative(root, path), &text);
        tests.add(&relative(root, path), &text);
        findings.extend(phrases::check_docs(&relative(root, path), &text));
        findings.extend(sizes::check(&relative(root, path), &text));
        findings.extend(doors::check(&relative(root, path), &text));
        findings.extend(layers::check_lifted(&relative(root, path), &text));
    }
    let mut documents = Vec::new();
    files_with("md", root, &mut documents)?;
    for path in &documents {
        let text = read(path)?;
        counts.add(&relative(root, path), &text);
        findings.extend(prose::check(&relative(root, path), &text));
        findings.extend(tests.check(&relative(root, path), &text));
    }
    findings.extend(phrases::check(root, &counts)?);
    findings.extend(layers::check(&metadata));
    findings.extend(layers::check_bans(root)?);
    findings.extend(modules::check(root)?);
    let mut roots = files::roots(&metadata);
    // Workspaces of their own.
    roots.push(root.join("crates/rivals/src/main.rs"));
    for file in ["src/lib.rs", "src/main.rs", "tests/it/main.rs"] {
        roots.push(root.join("examples/raft-kv").join(file));
    }
    roots.push(root.join("examples/own-policy/src/main.rs"));
    roots.push(root.join("hosts/python/src/lib.rs"));
    for file in ["src/lib.rs", "src/bin/wasi.rs"] {
        roots.push(root.join("hosts/wasm").join(file));
    }
    findings.extend(files::check(root, &roots, &paths)?);
    let allowed = fs::read_to_string(root.join("xtask/allowed.txt"))?;
    Ok(excuse(findings, &allowed))
}

/// Removes allowed violations, and adds one for each unneeded line of the list.
fn excuse(findings: Vec<Finding>, allowed: &str) -> Vec<Finding> {
    let lines = allowed.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let allowed: BTreeSet<&str> = lines.collect();
    let used: BTreeSet<String> =
        findings.iter().filter_map(|finding| finding.excuse.clone()).collect();
    let mut left: Vec<Finding> = findings;
    left.retain(|finding| !finding.excuse.as_deref().is_some_and(|line| allowed.contains(line)));
    let unused = allowed.into_iter().filter(|line| !used.contains(*line));
    left.extend(unused.map(|line| Finding {
        place: "xtask/allowed.txt".to_string(),
        what: format!("remove the line `{line}`: nothing needs it"),
        excuse: None,
    }));
    left
}

#[cfg(test)]
mod tests;
