//! Tests that the workspace is tidy and that violations are found.

use super::{Finding, check, excuse, files, layers, sizes};
use crate::chores;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

#[test]
fn the_workspace_is_tidy() {
    let findings = check(&chores::root()).unwrap();
    let lines: Vec<String> =
        findings.iter().map(|Finding { place, what, .. }| format!("{place}: {what}")).collect();
    assert!(lines.is_empty(), "{}", lines.join("\n"));
}

fn excuses(text: &str) -> Vec<String> {
    sizes::check("a.rs", text).into_iter().filter_map(|finding| finding.excuse).collect()
}

#[test]
fn large_files_and_long_lines_are_found() {
    assert_eq!(excuses(&"\n".repeat(600)), [""; 0]);
    assert_eq!(excuses(&"\n".repeat(601)), ["a.rs lines"]);
    assert_eq!(excuses(&"x".repeat(100)), [""; 0]);
    assert_eq!(excuses(&"x".repeat(101)), ["a.rs columns"]);
    assert_eq!(excuses(&format!("/// | {} |", "x".repeat(100))), [""; 0]);
}

#[test]
fn long_functions_are_found() {
    let function = |head: &str, lines: usize, foot: &str| {
        format!("{head}\n{}{foot}\n", "    }\n    let x = 1;\n".repeat(lines / 2))
    };
    assert_eq!(excuses(&function("fn fine() {", 68, "}")), [""; 0]);
    assert_eq!(excuses(&function("fn long() {", 70, "}")), ["a.rs fn long"]);
    assert_eq!(excuses(&function("pub(crate) async fn long<T>(", 70, "}")), ["a.rs fn long"]);
    // A declaration without a body ends at its semicolon.
    let declared = format!("    fn declared(&self);\n{}", "\n".repeat(80));
    assert_eq!(excuses(&declared), [""; 0]);
}

#[test]
fn the_list_of_what_is_allowed_only_shrinks() {
    let finding = Finding {
        place: "a.rs:1".into(),
        what: "101 columns".into(),
        excuse: Some("a.rs columns".into()),
    };
    assert_eq!(excuse(vec![finding.clone()], "").len(), 1);
    assert_eq!(excuse(vec![finding.clone()], "# why\na.rs columns\n"), []);
    let left = excuse(vec![finding], "a.rs columns\nb.rs columns");
    assert_eq!(left.len(), 1);
    assert!(left[0].what.contains("`b.rs columns`: nothing"), "{left:?}");
}

#[test]
fn dependencies_against_the_layers_are_found() {
    let package = |name: &str, used: &str, kind: Option<&str>| {
        let metadata = json!({"packages": [
            {"name": name, "dependencies": [{"name": used, "kind": kind}]},
            {"name": "lsmith", "dependencies": []},
            {"name": "lsmith-spec", "dependencies": []},
            {"name": "lsmith-tree", "dependencies": []},
        ]});
        layers::check(&metadata).into_iter().map(|finding| finding.what).collect::<Vec<_>>()
    };
    assert_eq!(package("lsmith-sim", "lsmith-tree", None), [""; 0]);
    assert_eq!(package("lsmith-sim", "lsmith-spec", None), [""; 0]);
    assert_eq!(package("lsmith-sim", "lsmith", None), ["must not use lsmith"]);
    assert_eq!(package("lsmith-sim", "lsmith", Some("dev")), [""; 0]);
    assert_eq!(package("lsmith-sim", "libc", None), ["must not use libc"]);
    assert_eq!(package("lsmith-sim", "libc", Some("build")), ["must not use libc"]);
    assert_eq!(package("lsmith-lab", "libc", None), [""; 0]);
    assert_eq!(package("lsmith-new", "libc", None), ["has no layer: add it to LAYERS in xtask"]);
}

#[test]
fn a_pure_package_that_lifts_the_bans_is_found() {
    let lifts = |path: &str, text: &str| layers::check_lifted(path, text).is_some();
    assert!(lifts("crates/tree/src/lib.rs", "#![allow(clippy::disallowed_types)]"));
    assert!(!lifts("crates/tree/src/lib.rs", "use std::collections::BTreeMap;"));
    assert!(!lifts("crates/lab/src/lib.rs", "#![allow(clippy::disallowed_types)]"));
}

#[test]
fn files_that_nobody_declares_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir_all(path("a")).unwrap();
    for (name, text) in [
        ("lib.rs", "mod a;\npub(crate) mod b;\n// mod c;\n"),
        ("a.rs", "#[cfg(test)]\nmod tests;\n"),
        ("a/tests.rs", ""),
        ("b.rs", ""),
        ("c.rs", ""),
    ] {
        fs::write(path(name), text).unwrap();
    }
    let paths: Vec<PathBuf> = ["lib.rs", "a.rs", "a/tests.rs", "b.rs", "c.rs"].map(path).to_vec();
    let found = files::check(folder.path(), &[path("lib.rs")], &paths).unwrap();
    assert_eq!(found.iter().map(|finding| &finding.place).collect::<Vec<_>>(), ["c.rs"]);
}

#[test]
fn modules_in_files_of_their_own_are_recognised() {
    assert_eq!(files::module("    pub(super) mod inner;"), Some("inner"));
    assert_eq!(files::module("mod tests {"), None);
    assert_eq!(files::module("// mod old;"), None);
}
