//! The crate of `docs/policies.md`. Its program is compiled as an example of `lsmith-cli`: alone it
//! would have every crate compiled again, with the features that it asks for.

use crate::command::root;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

/// Returns the first block of `language` in the page.
fn block(page: &str, language: &str) -> String {
    let start = format!("```{language}\n");
    let (_, rest) = page.split_once(&start).unwrap_or_else(|| panic!("no {language}"));
    rest.split_once("```").unwrap().0.to_owned()
}

/// Writes the crate of the page into `dir`, with the versions of this workspace, and asks cargo for
/// its dependencies.
fn resolve(dir: &Path, page: &str) -> Vec<String> {
    let cli = fs::canonicalize(root().join("crates/cli")).unwrap();
    let manifest = block(page, "toml").replace("../lsmith/crates/cli", cli.to_str().unwrap());
    fs::create_dir(dir.join("src")).unwrap();
    fs::write(dir.join("Cargo.toml"), manifest).unwrap();
    fs::write(dir.join("src/main.rs"), block(page, "rust")).unwrap();
    fs::copy(root().join("Cargo.lock"), dir.join("Cargo.lock")).unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["tree", "--offline", "--depth", "1", "--prefix", "none", "--format", "{lib}"]);
    let crates = text(&cargo.current_dir(dir).output().unwrap());
    crates.lines().filter(|name| !name.is_empty()).map(str::to_owned).collect()
}

/// Returns the program of the page. `cargo test` compiles it, unless it is asked for one test file.
fn program() -> PathBuf {
    let profile = Path::new(env!("CARGO_BIN_EXE_lsmith")).parent().unwrap();
    let example = profile.join("examples").join(format!("geometric{}", env::consts::EXE_SUFFIX));
    if !example.exists() {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "-p", "lsmith-cli", "--example", "geometric"]);
        cargo.args(profile.ends_with("release").then_some("--release"));
        cargo.env("CARGO_TARGET_DIR", profile.parent().unwrap());
        text(&cargo.current_dir(root()).output().unwrap());
    }
    example
}

fn run(binary: &Path, args: &[&str]) -> Output {
    Command::new(binary).args(args).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn crate_of_the_page_compares_its_policy() {
    let page = fs::read_to_string(root().join("docs/policies.md")).unwrap();
    assert!(page.lines().count() < 100, "the page is short");
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(resolve(dir.path(), &page), ["lsmith_cli"], "it has one dependency");
    let source = fs::read_to_string(root().join("crates/cli/examples/geometric.rs")).unwrap();
    assert!(source.ends_with(&format!("\n\n{}", block(&page, "rust"))), "both show one program");
    let imports = source.lines().filter(|line| line.starts_with("use "));
    let known = |line: &str| line.starts_with("use lsmith_cli::") || line.starts_with("use std::");
    assert!(imports.into_iter().all(known), "it names its dependency only");
    let binary = program();

    assert_eq!(text(&run(&binary, &["laws", "geometric"])), "geometric(ratio=2) keeps all laws\n");
    assert!(text(&run(&binary, &["policies"])).contains("older over newer, 2 to 100"));
    let wrong = run(&binary, &["laws", "geometrc"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&wrong.stderr).contains("did you mean `geometric`?"));

    let args = ["compare", "--policies", "geometric(ratio=4); tiered", "--memtable", "16KiB"];
    let args = [&args[..], &["--workload", "load(keys=5k, value=100B)", "--json"]].concat();
    let compared: Value = serde_json::from_str(&text(&run(&binary, &args))).unwrap();
    let row = &compared["rows"][0];
    assert_eq!(row["policy"], "geometric(ratio=4)");
    assert_eq!(row["engine"]["write_cost_system"], row["keyed"]["write_cost_system"]);
    assert!(row["engine"]["merges"].as_u64() > Some(10), "{row}");

    // Nothing but its declaration says which ratios it takes.
    let tune = ["tune", "--workload", "churn(keys=5k, ops=30k, value=100B)", "--memtable", "32KiB"];
    let tuned: Value =
        serde_json::from_str(&text(&run(&binary, &[&tune[..], &["--json"]].concat()))).unwrap();
    let fared = &tuned["fared"][0];
    assert_eq!(fared["asked"], "geometric");
    assert!(fared["choices"].as_u64() > Some(8), "{fared}");
    assert!(fared["best"]["policy"].as_str().unwrap().starts_with("geometric("), "{fared}");
    assert!(fared["above"].as_f64() >= Some(0.0) && fared["is_within"] == true, "{fared}");

    let figure = ["reproduce", "mao-fig6", "--quick", "--policy", "geometric(ratio=3)", "--json"];
    let figure: Value = serde_json::from_str(&text(&run(&binary, &figure))).unwrap();
    let points = figure["series"].as_array().unwrap();
    assert!(points.iter().any(|point| point["policy"] == "geometric(ratio=3)"), "{figure}");

    let store = dir.path().join("store");
    let store = store.to_str().unwrap();
    let workload = ["--workload", "load(keys=1k)", "--dir", store];
    text(&run(&binary, &[&["run", "--policy", "geometric"][..], &workload].concat()));
    assert!(text(&run(&binary, &["db", store, "policy"])).starts_with("policy geometric(ratio=2)"));
}
