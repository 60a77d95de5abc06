//! Checks the dependencies between packages.

use super::finding::Finding;
use crate::chores;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs;
use std::path::Path;

/// The workspace packages that each package may use outside its tests. Every package may use
/// `lsmith-spec`.
const LAYERS: [(&str, &[&str]); 15] = [
    ("lsmith-spec", &[]),
    ("lsmith-tree", &[]),
    ("lsmith-policy", &["lsmith-tree"]),
    ("lsmith-workload", &[]),
    ("lsmith-model", &["lsmith-tree", "lsmith-policy"]),
    ("lsmith-sim", &["lsmith-tree", "lsmith-policy", "lsmith-workload", "lsmith-model"]),
    ("lsmith-storage", &["lsmith-tree"]),
    ("lsmith", &["lsmith-storage", "lsmith-tree", "lsmith-policy"]),
    ("lsmith-lab", &BELOW_LAB),
    (
        "lsmith-papers",
        &[
            "lsmith-tree",
            "lsmith-policy",
            "lsmith-workload",
            "lsmith-model",
            "lsmith-sim",
            "lsmith",
            "lsmith-lab",
        ],
    ),
    (
        "lsmith-doctor",
        &["lsmith-tree", "lsmith-policy", "lsmith-workload", "lsmith-model", "lsmith-sim"],
    ),
    (
        "lsmith-cli",
        &[
            "lsmith-tree",
            "lsmith-policy",
            "lsmith-workload",
            "lsmith-model",
            "lsmith-sim",
            "lsmith",
            "lsmith-lab",
            "lsmith-papers",
            "lsmith-doctor",
        ],
    ),
    ("lsmith-capi", &["lsmith"]),
    // Only tests use it, so no package lists it.
    ("lsmith-fuzz", &[]),
    ("xtask", &[]),
];

/// All libraries; experiments may use them.
const BELOW_LAB: [&str; 6] =
    ["lsmith-tree", "lsmith-policy", "lsmith-workload", "lsmith-model", "lsmith-sim", "lsmith"];

/// The packages without I/O, each with the foreign packages that it may use.
const PURE: [(&str, &[&str]); 7] = [
    ("lsmith-spec", &[]),
    ("lsmith-tree", &["smallvec"]),
    ("lsmith-policy", &["smallvec"]),
    ("lsmith-workload", &[]),
    ("lsmith-model", &[]),
    ("lsmith-sim", &[]),
    ("lsmith-doctor", &["serde", "serde_json"]),
];

/// The items that `clippy.toml` must forbid. Packages with I/O allow the two lints in their roots.
const BANS: [&str; 7] = [
    "std::fs::File",
    "std::fs::read",
    "std::thread::spawn",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::collections::HashMap",
    "std::collections::HashSet",
];

/// Returns cargo's metadata of the workspace.
pub(super) fn metadata(root: &Path) -> Result<Value> {
    let mut command = chores::cargo(root);
    command.args(["metadata", "--format-version", "1", "--no-deps", "--offline"]);
    let output = command.output().context("cargo metadata did not start")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "cargo metadata failed: {errors}");
    serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")
}

pub(super) fn packages(metadata: &Value) -> impl Iterator<Item = &Value> {
    metadata["packages"].as_array().into_iter().flatten()
}

/// Returns the dependencies that no layer allows.
pub(super) fn check(metadata: &Value) -> Vec<Finding> {
    let ours: Vec<&str> = packages(metadata).map(name).collect();
    let mut findings = Vec::new();
    for package in packages(metadata) {
        let user = name(package);
        let Some((_, below)) = LAYERS.iter().find(|(known, _)| *known == user) else {
            findings.push(finding(user, "has no layer: add it to LAYERS in xtask".to_string()));
            continue;
        };
        let pure = PURE.iter().find(|(known, _)| *known == user).map(|(_, outside)| *outside);
        let all = package["dependencies"].as_array().into_iter().flatten();
        for used in all.filter(|dependency| dependency["kind"] != "dev").map(name) {
            let allowed = if ours.contains(&used) {
                used == "lsmith-spec" || below.contains(&used)
            } else {
                pure.is_none_or(|outside| outside.contains(&used))
            };
            if !allowed {
                findings.push(finding(user, format!("must not use {used}")));
            }
        }
    }
    findings
}

/// Returns the bans that `clippy.toml` lacks, and packages without I/O that have lint settings of
/// their own: Clippy reads the nearest file only.
pub(super) fn check_bans(root: &Path) -> Result<Vec<Finding>> {
    let text = fs::read_to_string(root.join("clippy.toml")).context("clippy.toml")?;
    let missing = BANS.iter().filter(|ban| !text.contains(&format!("\"{ban}\"")));
    let mut findings: Vec<_> =
        missing.map(|ban| finding("clippy.toml", format!("does not forbid {ban}"))).collect();
    for (package, _) in PURE {
        let folder = package.trim_start_matches("lsmith-");
        let own = format!("crates/{folder}/clippy.toml");
        if root.join(&own).exists() {
            findings.push(finding(&own, "hides the bans of clippy.toml above it".to_string()));
        }
    }
    Ok(findings)
}

/// Returns a finding if a source file of a package without I/O lifts the bans.
pub(super) fn check_lifted(path: &str, text: &str) -> Option<Finding> {
    let of = |package: &str| format!("crates/{}/src/", package.trim_start_matches("lsmith-"));
    let is_pure = PURE.iter().any(|(package, _)| path.starts_with(&of(package)));
    let lifts = text.contains("clippy::disallowed_") || text.contains("clippy::style");
    (is_pure && lifts).then(|| finding(path, "must not lift the bans of clippy.toml".to_string()))
}

fn name(value: &Value) -> &str {
    value["name"].as_str().unwrap_or_default()
}

fn finding(place: &str, what: String) -> Finding {
    Finding { place: place.to_string(), what, excuse: None }
}
