//! `lsmith workloads`, completions, manual pages and help.

use crate::command::{fine, fine_in, json, refused, root};
use serde_json::Value;

#[test]
fn workloads_are_listed_with_examples_that_run() {
    let listed = json(&["workloads"]);
    let workloads = listed["workloads"].as_array().unwrap();
    assert_eq!(workloads.len(), 10);
    for workload in workloads {
        let example = workload["example"].as_str().unwrap();
        let args = ["simulate", "--policy", "none", "--flushes", "3", "--content", "keyed"];
        let args = [&args[..], &["--memtable", "16KiB", "--workload", example, "--json"]].concat();
        let simulated: Value = serde_json::from_str(&fine_in(&root(), &args)).unwrap();
        assert_eq!(simulated["sealed"], 3, "{example}");
        for param in workload["params"].as_array().unwrap() {
            assert!(!param["meaning"].as_str().unwrap().is_empty(), "{param}");
            assert!(param["unit"].is_string() && param.get("default").is_some(), "{param}");
        }
    }
    let names: Vec<&str> =
        listed["common"].as_array().unwrap().iter().filter_map(|p| p["name"].as_str()).collect();
    assert_eq!(names, ["bytes", "flushes", "key_bytes", "compressible", "expire", "seed"]);
    assert!(listed["trace_format"].as_str().unwrap().starts_with("timestamp,op,key,value_size\n"));

    let text = fine(&["workloads"]);
    for part in ["for example", "ycsb(a, records=5k", "timestamp,op,key,value_size", "64KiB"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

/// Calls the completion of bash. The words are arguments, so that no quote of theirs is one of the
/// script.
const BASH: [&str; 4] = [
    "bash",
    "--norc",
    "-c",
    "source \"$1\"; COMP_WORDS=(\"${@:2}\"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); \
     _lsmith_with_values \"$2\" \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; \
     printf '%s\\n' \"${COMPREPLY[@]}\"",
];

/// Calls the completion of zsh, and shows what it gives to the shell.
const ZSH: [&str; 4] = [
    "zsh",
    "-f",
    "-c",
    "compdef() { }; compset() { }; source \"$1\"; \
     compadd() { while [[ $1 != -- ]]; do shift; done; shift; print -l -- \"$@\" }; \
     _lsmith_plain() { print -r -- \"plain: $words[CURRENT]\" }; \
     words=(\"${@:2}\"); CURRENT=$#words; _lsmith",
];

/// Has fish complete a line.
const FISH: [&str; 4] = [
    "fish",
    "--no-config",
    "-c",
    "source $argv[1]; set -p PATH (path dirname $argv[2] 2>/dev/null; or dirname $argv[2]); \
     complete -C \"lsmith $argv[3..-1]\"",
];

/// Returns what a shell would show for a line whose last word is to be completed. `None` if there
/// is no such shell.
fn completed(shell: [&str; 4], dir: &std::path::Path, words: &[&str]) -> Option<Vec<String>> {
    let script = dir.join("completions");
    std::fs::write(&script, fine(&["completions", shell[0]])).unwrap();
    let binary = env!("CARGO_BIN_EXE_lsmith");
    let mut command = std::process::Command::new(shell[0]);
    command.args(&shell[1..]);
    // fish has no word in front of the arguments.
    command.args((shell[0] != "fish").then_some(shell[0]));
    let output = match command.arg(script).arg(binary).args(words).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
        output => output.unwrap(),
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| !line.is_empty());
    // Behind a tab, fish shows a description.
    let mut found: Vec<String> =
        lines.map(|line| line.split('\t').next().unwrap_or(line).to_owned()).collect();
    found.sort();
    Some(found)
}

/// A directory with a store of three keyspaces, and the store.
fn three_keyspaces() -> (tempfile::TempDir, String) {
    let (dir, store) = crate::command::store_dir();
    for name in ["users", "uploads", "events"] {
        fine(&["db", &store, "--keyspace", name, "put", "key", "value"]);
    }
    (dir, store)
}

/// A shell that is not there is not tested, and the test says so.
#[test]
fn zsh_and_fish_complete_what_bash_does() {
    let (dir, store) = three_keyspaces();
    for shell in [ZSH, FISH] {
        let of = |words: &[&str]| completed(shell, dir.path(), words);
        let name = shell[0];
        let Some(keyspaces) = of(&["db", &store, "--keyspace", "u"]) else {
            eprintln!("the completions of {name} are not tested: there is no {name}");
            continue;
        };
        let of = |words: &[&str]| of(words).unwrap();
        assert_eq!(keyspaces, ["uploads", "users"], "{name}");
        assert_eq!(of(&["run", "--dir", &store, "--keyspace", "us"]), ["users"], "{name}");
        assert_eq!(of(&["tune", "--policy", "'tie"]), ["tiered", "tiered("], "{name}");
        let ratio = ["tiered(ratio=", "tiered(ratio=4"];
        assert_eq!(of(&["tune", "--policy", "'tiered(r"]), ratio, "{name}");
        assert_eq!(of(&["laws", "'tiered(r"]), ratio, "{name}");
        let params = of(&["compare", "--workload", "'churn(keys"]);
        assert!(params.iter().any(|param| param.starts_with("churn(keys=")), "{name}: {params:?}");
        let figures = of(&["reproduce", "thonangi-fig"]);
        assert!(figures.contains(&"thonangi-fig2".to_owned()), "{name}: {figures:?}");
        // The script of clap knows these.
        let option = of(&["compare", "--explain"]);
        let expected = if name == "zsh" { "plain: --explain" } else { "--explain-columns" };
        assert_eq!(option, [expected], "{name}");
    }
}

#[test]
fn bash_completes_keyspaces_policies_parameters_workloads_and_figures() {
    let (dir, store) = three_keyspaces();
    let of = |words: &[&str]| completed(BASH, dir.path(), words).expect("bash is there");
    assert_eq!(of(&["db", &store, "--keyspace", "u"]), ["uploads", "users"]);
    let quoted = format!("'{store}");
    assert_eq!(of(&["db", &quoted, "get", "--keyspace", "ev"]), ["events"]);
    assert_eq!(of(&["run", "--dir", &store, "--keyspace", "us"]), ["users"]);
    assert_eq!(of(&["tune", "--policy", "'tie"]), ["tiered", "tiered("]);
    assert_eq!(of(&["tune", "--policy", "'tiered(r"]), ["tiered(ratio=", "tiered(ratio=4"]);
    assert_eq!(
        of(&["compare", "--policies", "'none; leveled(pick=o"]),
        ["none; leveled(pick=oldest", "none; leveled(pick=oldest_smallest"]
    );
    let params = of(&["compare", "--workload", "'churn(keys"]);
    assert!(params.iter().all(|param| param.starts_with("churn(keys=")), "{params:?}");
    assert!(!params.is_empty());
    assert_eq!(of(&["reproduce", "thonangi-fig2"]), ["thonangi-fig2"]);
    // The script of clap knows these.
    assert!(of(&["compare", "--html-"]).is_empty());
    assert_eq!(of(&["compare", "--explain"]), ["--explain-columns"]);
}

#[test]
fn completions_and_manual_pages_know_every_command() {
    let bash = fine(&["completions", "bash"]);
    for part in ["_lsmith()", "workloads", "--memtable", "lsmith__subcmd__db__subcmd__scan"] {
        assert!(bash.contains(part), "{part}");
    }
    for shell in ["zsh", "fish", "elvish", "powershell"] {
        assert!(fine(&["completions", shell]).contains("workloads"), "{shell}");
    }
    // Policies and workloads, where an option takes one.
    for shell in ["bash", "zsh", "fish"] {
        let script = fine(&["completions", shell]);
        let names = ["minlatency", "choose_best", "tpc", "mix", "fluid"];
        let is_missing = |name: &&&str| !script.contains(**name);
        assert_eq!(names.iter().find(is_missing), None, "{shell}");
    }
    assert!(json(&["completions", "fish"])["script"].as_str().unwrap().contains("lsmith"));
    assert!(refused(2, &["completions", "bsh"]).contains("did you mean `bash`?"));

    let dir = tempfile::tempdir().unwrap();
    let man = dir.path().join("man");
    let pages = json(&["man", man.to_str().unwrap()])["pages"].clone();
    let pages: Vec<&str> = pages.as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (page, part) in [
        ("lsmith.1", "reproduce"),
        ("lsmith-compare.1", "policies"),
        ("lsmith-db-scan.1", "prefix"),
    ] {
        let path = man.join(page);
        assert!(pages.contains(&path.to_str().unwrap()), "{pages:?}");
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.contains(".TH") && text.contains(part), "{text}");
    }
}

#[test]
fn help_fits_80_columns() {
    let commands = [
        "compare",
        "simulate",
        "model",
        "tune",
        "run",
        "reproduce",
        "policies",
        "workloads",
        "laws",
        "db",
        "watch",
        "completions",
        "man",
    ];
    let mut all: Vec<Vec<&str>> = commands.iter().map(|command| vec![*command]).collect();
    all.push(Vec::new());
    all.extend(["scan", "dump", "tree", "stats", "load"].map(|command| vec!["db", "d", command]));
    for command in all {
        for flag in ["-h", "--help"] {
            let text = fine(&[&command[..], &[flag]].concat());
            let long: Vec<&str> = text.lines().filter(|line| line.chars().count() > 80).collect();
            assert!(long.is_empty(), "{command:?} {flag}: {long:#?}");
        }
    }
}
