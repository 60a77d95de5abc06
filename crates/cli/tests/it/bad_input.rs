//! An error is one line with the nearest valid spelling and the right exit code.

use crate::command::{fine, lsmith, refused, root};
use std::fs;

/// Checks that the command fails with exit code 2 and a line that contains `message`.
fn bad(args: &[&str], message: &str) {
    let line = refused(2, args);
    assert!(line.contains(message), "{args:?}: {line}");
}

#[test]
fn error_for_unknown_name_suggests_the_nearest() {
    bad(&["simulat"], "did you mean `simulate`?");
    bad(&["compare", "--polices", "all"], "did you mean `--policies`?");
    bad(&["compare", "--policies", "teired"], "unknown policy `teired`; did you mean `tiered`?");
    bad(&["compare", "--policies", "none;exploring(lamda=2)"], "did you mean `lambda`?");
    bad(&["compare", "--policies", "tiered(size=2)"], "expected one of: ratio, eager");
    bad(&["compare", "--policies", "leveled(pick=old)"], "pick");
    bad(&["compare", "--workload", "laod"], "unknown workload `laod`; did you mean `load`?");
    bad(&["compare", "--workload", "load(kys=5)"], "did you mean `keys`?");
    bad(&["compare", "--workload", "load(order=hash)"], "did you mean `hashed`?");
    bad(&["simulate", "--policy", "none", "--flushes", "1", "--content", "kyed"], "`keyed`?");
    let near = ["--content", "fluid", "--workload", "trace(../workload/data/small-trace.csv)"];
    bad(
        &[&["simulate", "--policy", "choose_best", "--flushes", "1"], &near[..]].concat(),
        "no expected sizes",
    );
    let group = |policy, shares, content| {
        let words = ["simulate", "--policy", policy, "--flushes", "9", "--group", shares];
        [&words[..], &["--content", content]].concat()
    };
    bad(&group("tiered", "1,0.2", "unit"), "expected `--content keyed`, found `unit`");
    bad(&group("tiered", "1,1.5", "keyed"), "a share of 1.5: expected more than 0 and at most 1");
    bad(&group("leveled(ratio=5)", "1,0.2", "keyed"), "such as tiered(ratio=5), found leveled");
    let compare = |policies| ["compare", "--policies", policies, "--group", "1,0.2"];
    bad(&compare("tiered; leveled(ratio=5)"), "such as tiered(ratio=5), found leveled");
    bad(&[&compare("tiered")[..], &["--workload", "ycsb(e)"]].concat(), "has scans");
    let run = ["run", "--policy", "rr", "--workload", "load", "--dir", "nowhere", "--group", "1"];
    bad(&run, "the keyspaces of a group merge whole runs");
    let simulate = ["simulate", "--policy", "tiered", "--flushes", "1", "--flush-sizes"];
    bad(&[&simulate[..], &["lognormall"]].concat(), "did you mean `lognormal`?");
    bad(&[&simulate[..], &["lognormal(sgima=1)"]].concat(), "did you mean `sigma`?");
    bad(&[&simulate[..], &["file(nowhere.txt)"]].concat(), "nowhere.txt: no such file");
    bad(
        &["compare", "--policies", "tiered;rr", "--flush-sizes", "lognormal"],
        "counts in blocks and seals memory by itself",
    );
    bad(&["compare", "--compression", "zst"], "did you mean `zstd`?");
    bad(&["db", "somewhere", "gett", "key"], "did you mean `get`?");
    bad(&["db", "somewhere", "policy", "binomal"], "did you mean `binomial`?");
}

#[test]
fn values_out_of_range_are_refused() {
    bad(&["compare", "--policies", "constant(k=0)"], "k = 0 is out of range: expected 1 to 64");
    bad(&["compare", "--policies", "tiered(ratio=1)"], "ratio = 1 is out of range");
    bad(&["compare", "--policies", "leveled(ratio=1)"], "expected more than 1");
    bad(&["compare", "--policies", "tiered(ratio=many)"], "many");
    bad(&["compare", "--policies", "tiered(ratio=4"], "expected `)`");
    bad(&["compare", "--policies", ""], "expected a name");
    bad(&["compare", "--workload", "load(keys=0)"], "keys = 0 is out of range");
    bad(&["compare", "--memtable", "0"], "at least 1B");
    bad(&["compare", "--memtable", "4XiB"], "a size such as");
    bad(&["compare", "--memtable", "99999999999GiB"], "`99999999999GiB` is too large");
    bad(&["compare", "--memtable", "1025GiB"], "`1025GiB` is too large: expected at most 1024GiB");
    let most = u64::MAX.to_string();
    bad(
        &["simulate", "--policy", "none", "--flushes", &most],
        "are too large: expected at most 2^50",
    );
    bad(&["compare", "--workload", "load(ops=1e30)"], "ops = 1e30 is too large: expected at most");
    bad(&["model", "--policy", "leveldb", "--keys", "99999999999G"], "too large");
    bad(&["watch", "somewhere", "--interval", "0"], "expected a number from 0.1 to 3600");
    bad(&["compare", "--csv", "--json"], "--csv");
    bad(&["simulate", "--policy", "none", "--flushes", "0"], "at least 1");
    bad(&["simulate", "--policy", "none", "--flushes", "x"], "`x` is not a whole number");
    bad(&["db", "somewhere", "scan", "--limit", "-1"], "-1");
}

#[test]
fn missing_or_conflicting_arguments_are_refused() {
    bad(&["db", "somewhere"], "a command is missing");
    bad(&["run", "--policy", "none", "--dir", "d"], "--workload");
    bad(&["compare", "--memtable"], "--memtable");
    bad(&["compare", "--duration", "10s"], "--free");
    bad(&["compare", "--free", "--duration", "10"], "a time such as 500ms");
    bad(&["compare", "--free", "--threads", "0"], "from 1 to 64");
    bad(&["compare", "--repeat", "0"], "at least 1");
    let unit = ["simulate", "--policy", "none", "--flushes", "1", "--workload", "load"];
    bad(&unit, "--content keyed");
    bad(&["db", "d", "scan", "--prefix", "a", "--from", "b"], "--prefix");
}

/// A table full of zeros once looked like a result.
#[test]
fn workload_that_fills_no_memtable_is_refused_with_the_memtable_to_take() {
    let rewrites = "churn(keys=50, ops=5k, value=100B)";
    for workload in ["load(keys=5k, value=100B)", rewrites] {
        let compare = ["compare", "--policies", "none; tiered", "--workload", workload];
        let line = refused(2, &compare);
        assert!(line.contains("no memtable of 4MiB was flushed"), "{line}");
        assert!(line.contains("such as `--memtable 16KiB`"), "{line}");
        fine(&[&compare[..], &["--memtable", "16KiB"]].concat());
        for content in ["keyed", "fluid"] {
            let simulate = ["simulate", "--policy", "tiered", "--content", content];
            let simulate = [&simulate[..], &["--flushes", "3", "--workload", workload]].concat();
            let line = refused(2, &simulate);
            assert!(line.contains("such as `--memtable 16KiB`"), "{line}");
            fine(&[&simulate[..], &["--memtable", "16KiB"]].concat());
        }
    }
    let other =
        ["--workload", "load(keys=9, value=10B)", "--workload", "load(keys=3k, value=100B)"];
    let compare = ["compare", "--policies", "none", "--memtable", "64KiB"];
    let done = lsmith(&[&compare[..], &other].concat());
    assert_eq!(done.code, 2, "{done:?}");
    assert!(done.err.contains("load(keys=9, ") && done.err.contains("a larger workload"));
    assert!(done.out.contains("load(keys=3k, value=100B"), "{done:?}");

    // What was measured of a store that is kept is not lost.
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let run = ["run", "--policy", "none", "--workload", rewrites, "--dir", store.to_str().unwrap()];
    let text = fine(&run);
    assert!(text.contains("Note: no memtable of 4MiB was flushed"), "{text}");
}

#[test]
fn mix_whose_shares_do_not_add_up_is_refused() {
    let simulate = ["simulate", "--policy", "none", "--flushes", "1", "--content", "keyed"];
    let mix = |shares: &str| format!("mix({shares}, keys=9)");
    for (shares, message) in [
        ("get=0.6, put=0.3", "add up to 0.9, not to 1 (get=0.6, put=0.3): add 0.1"),
        ("get=0.6, put=0.6", "add up to 1.2, not to 1 (get=0.6, put=0.6): take off 0.2"),
        ("gets=0.6, put=0.6", "did you mean `get`?"),
    ] {
        bad(&[&simulate[..], &["--workload", &mix(shares)]].concat(), message);
    }
}

/// The codes that `docs/command-line.md` lists. Signals are in `signals.rs`.
#[test]
fn every_kind_of_fault_has_its_exit_code() {
    let page = fs::read_to_string(root().join("docs/command-line.md")).unwrap();
    for code in ["| 0 |", "| 1 |", "| 2 |", "| 128 + N |"] {
        assert!(page.contains(code), "{code}");
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let path = path.to_str().unwrap();
    fine(&["db", path, "put", "k", "v"]);
    for args in [
        &["db", "no-such-store", "get", "k"][..],
        &["watch", "no-such-store", "--once"],
        &["db", path, "get", "absent"],
        &["tune", "--workload", "load(keys=10k)", "--read-cost-max", "0.5"],
    ] {
        refused(1, args);
    }
    for args in [
        &["db", path, "--keyspace", "quite-different", "get", "k"][..],
        &["db", path, "--keyspace", "defalt", "get", "k"],
        &["db", path, "policy", "teired"],
        &["db", path, "compression", "zst"],
        &["db", path, "ingest", "no-such-file"],
        &["db", path, "dump", "no-such-file"],
        &["laws", "teired"],
        &["reproduce", "no-such-figure"],
        &["compare", "--workload", "trace(no-such-file)"],
        &["compare", "--policies", "none", "--workload", "load(keys=9, ops=0)"],
        &["completions", "no-such-shell"],
    ] {
        refused(2, args);
    }
}

#[test]
fn help_is_no_failure() {
    let alone = [&[][..], &["db"]];
    let commands = [["compare", "watch"], ["ingest", "verify"]];
    for (args, commands) in alone.iter().zip(commands) {
        let done = lsmith(args);
        assert_eq!((done.code, done.out.as_str()), (2, ""), "{args:?}: {done:?}");
        let is_there = |part: &&str| done.err.contains(*part);
        assert!(["Usage: lsmith", "Commands:"].iter().all(is_there), "{args:?}: {done:?}");
        assert!(commands.iter().all(is_there), "{args:?}: {done:?}");
        assert_eq!(done.err.trim_end(), fine(&[args, &["-h"][..]].concat()).trim_end(), "{args:?}");
    }
    assert!(fine(&["--help"]).contains("compare"));
    assert!(fine(&["db", "--help"]).contains("ingest"));
    assert!(fine(&["--version"]).starts_with("lsmith "));
}

#[test]
fn error_for_missing_file_suggests_the_nearest() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("history.csv"), "timestamp,op,key,value_size\n").unwrap();
    let trace = format!("trace({})", dir.path().join("histroy.csv").display());
    bad(&["compare", "--workload", &trace], "history.csv`?");
    let properties = format!("ycsb({})", dir.path().join("workloada").display());
    bad(&["compare", "--workload", &properties], "no such file");
    let store = dir.path().join("store");
    bad(&["db", store.to_str().unwrap(), "ingest", "/no/such/file"], "/no/such/file");
    assert!(!store.exists(), "nothing is made for a wrong name");
}

#[test]
fn damaged_line_ends_the_run_and_keeps_earlier_writes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("cut.csv");
    fs::write(&file, "timestamp,op,key,value_size\n1,put,a,10\n2,put,b,20\n3,pu").unwrap();
    let store = dir.path().join("store");
    let store = store.to_str().unwrap();
    let trace = format!("trace({})", file.display());
    let line = refused(1, &["run", "--policy", "none", "--workload", &trace, "--dir", store]);
    assert!(line.contains("cut.csv, line 4"), "{line}");
    assert_eq!(fine(&["db", store, "scan"]).lines().count(), 2);

    let line = refused(1, &["compare", "--workload", &trace, "--policies", "none"]);
    assert!(line.contains("cut.csv, line 4"), "{line}");

    fs::write(&file, "what,is,this\n1,2,3\n").unwrap();
    let line = refused(1, &["compare", "--workload", &trace]);
    assert!(line.contains("cut.csv, line 1: not a trace"), "{line}");
}

#[test]
fn directory_without_a_store_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    fs::write(dir.path().join("letter.txt"), "dear").unwrap();
    for command in [&["stats"][..], &["get", "k"], &["verify"], &["compact"], &["delete", "k"]] {
        let line = refused(1, &[&["db", path], command].concat());
        assert!(line.contains("there is no store"), "{line}");
    }
    let line = refused(1, &["db", path, "put", "k", "v"]);
    assert!(line.contains("holds other files, such as letter.txt"), "{line}");
    let run = ["run", "--policy", "none", "--workload", "load(keys=1)", "--dir", path];
    assert!(refused(1, &run).contains("letter.txt"));

    let newer = dir.path().join("newer");
    fs::create_dir(&newer).unwrap();
    let newer = newer.to_str().unwrap();
    fine(&["db", newer, "put", "k", "v"]);
    let current = format!("{newer}/CURRENT");
    let text = fs::read_to_string(&current).unwrap();
    assert!(text.starts_with("lsmith store, format 3"), "{text}");
    fs::write(&current, text.replace("format 3", "format 4")).unwrap();
    for command in [&["stats"][..], &["put", "k", "w"], &["verify"]] {
        let line = refused(1, &[&["db", newer], command].concat());
        assert!(line.contains("format 4") && line.contains("CURRENT"), "{line}");
    }
    fs::write(&current, text).unwrap();
    assert_eq!(fine(&["db", newer, "get", "k"]), "v\n", "nothing was lost");
}

#[test]
fn open_store_refuses_to_be_changed() {
    let dir = tempfile::tempdir().unwrap();
    let store = lsmith::Store::builder(dir.path()).open().unwrap();
    store.keyspace("default").unwrap().put("k", "v").unwrap();
    let path = dir.path().to_str().unwrap();
    for command in [&["put", "k", "w"][..], &["compact"]] {
        let line = refused(1, &[&["db", path], command].concat());
        assert!(line.contains("open already"), "{line}");
    }
}

#[test]
fn refusal_by_the_system_is_reported_and_loses_nothing() {
    // Files of at most 64 KiB: the log cannot be allocated.
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let path = path.to_str().unwrap();
    fine(&["db", path, "put", "k", "v"]);
    let binary = env!("CARGO_BIN_EXE_lsmith");
    let limited = format!("trap '' XFSZ; ulimit -f 64; exec {binary} db {path} put k w");
    let output = std::process::Command::new("bash").args(["-c", &limited]).output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{message}");
    assert!(message.starts_with("lsmith: ") && message.lines().count() == 1, "{message}");
    assert_eq!(fine(&["db", path, "get", "k"]), "v\n");
    assert_eq!(lsmith(&["db", path, "verify"]).code, 0);
}
