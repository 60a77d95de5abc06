//! `lsmith db`: reads, changes, checks and repairs a store.

use crate::command::{fine, json, lsmith, refused, store_dir};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

#[test]
fn put_values_can_be_read() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    assert_eq!(fine(&["db", db, "put", "apple", "red"]), "");
    assert_eq!(json(&["db", db, "put", "pear", "green"]), json!({ "put": "pear" }));
    assert_eq!(fine(&["db", db, "get", "apple"]), "red\n");
    assert_eq!(json(&["db", db, "get", "pear"]), json!({ "key": "pear", "value": "green" }));
    assert_eq!(json(&["db", db, "delete", "apple"]), json!({ "deleted": "apple" }));
    let line = refused(1, &["db", db, "get", "apple"]);
    assert!(line.contains("there is no key `apple`"), "{line}");
    refused(1, &["db", db, "get", "apple", "--json"]);
    // What looks like an option is a key all the same.
    fine(&["db", db, "put", "--x", "-1"]);
    assert_eq!(fine(&["db", db, "get", "--x"]), "-1\n");
}

#[test]
fn a_store_in_use_can_be_read() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    let store = lsmith::Store::builder(db).open().unwrap();
    let space = store.keyspace("default").unwrap();
    for round in ["1", "2"] {
        space.put("apple", round).unwrap();
        assert_eq!(fine(&["db", db, "get", "apple"]), format!("{round}\n"));
        assert_eq!(fine(&["db", db, "scan"]), format!("apple\t{round}\n"));
        space.flush().unwrap();
    }
    for command in ["stats", "keyspaces", "tree", "why", "verify"] {
        fine(&["db", db, command]);
    }
    let line = refused(1, &["db", db, "put", "apple", "3"]);
    assert!(line.contains("open already"), "{line}");
    drop((store, space));
    fine(&["db", db, "put", "apple", "3"]);
}

#[test]
fn scans_go_both_ways_within_bounds() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    let file = dir.path().join("entries");
    fs::write(&file, "a\t1\nb/1\t2\nb/2\t3\nc\t\nd\tx\ty\n").unwrap();
    let ingested = json(&["db", db, "ingest", file.to_str().unwrap()]);
    assert_eq!(ingested, json!({ "ingested": 5 }));
    let scan = |args: &[&str]| {
        let out = fine(&[&["db", db, "scan"], args].concat());
        let keys: Vec<_> = out.lines().map(|line| line.split('\t').next().unwrap()).collect();
        keys.join(" ")
    };
    assert_eq!(scan(&[]), "a b/1 b/2 c d");
    assert_eq!(scan(&["--reverse"]), "d c b/2 b/1 a");
    assert_eq!(scan(&["--prefix", "b/"]), "b/1 b/2");
    assert_eq!(scan(&["--from", "b", "--to", "c"]), "b/1 b/2");
    assert_eq!(scan(&["--from", "b/2", "--limit", "2"]), "b/2 c");
    assert_eq!(scan(&["--reverse", "--limit", "1"]), "d");
    assert_eq!(scan(&["--from", "x", "--to", "b"]), "");
    let entries = json(&["db", db, "scan", "--from", "c"]);
    let expected = json!([{ "key": "c", "value": "" }, { "key": "d", "value": "x\ty" }]);
    assert_eq!(entries, json!({ "entries": expected }));
    assert_eq!(json(&["db", db, "scan", "--prefix", "zz"]), json!({ "entries": [] }));
}

#[test]
fn lines_before_a_malformed_one_stay() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    let file = dir.path().join("entries");
    fs::write(&file, b"a\t1\nb\xff\t2\nno tab here\nc\t3\n").unwrap();
    let line = refused(1, &["db", db, "ingest", file.to_str().unwrap()]);
    assert!(line.contains("line 3") && line.contains("no tab"), "{line}");
    assert_eq!(fine(&["db", db, "scan"]), "a\t1\nb\\xff\t2\n");
    fs::write(&file, "c\t3\n\tno key\n").unwrap();
    let line = refused(1, &["db", db, "ingest", file.to_str().unwrap()]);
    assert!(
        line.contains("line 2") && line.contains("expected a key of at least 1 byte"),
        "{line}"
    );
}

#[test]
fn an_empty_key_is_refused() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k", "v"]);
    let file = dir.path().join("entries");
    fs::write(&file, "\tno key\n").unwrap();
    let file = file.to_str().unwrap();
    for door in [&["put", "", "v"][..], &["delete", ""], &["ingest", file], &["load", file]] {
        let said = refused(1, &[&["db", db], door].concat());
        assert!(said.contains("expected a key of at least 1 byte"), "{door:?}: {said}");
    }
    assert_eq!(fine(&["db", db, "scan"]), "k\tv\n");
}

#[test]
fn standard_input_is_ingested() {
    let (_dir, db) = store_dir();
    let mut child = Command::new(env!("CARGO_BIN_EXE_lsmith"))
        .args(["db", &db, "ingest", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"k\tv\n").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(fine(&["db", &db, "get", "k"]), "v\n");
}

#[test]
fn a_store_can_be_looked_into() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["run", "--policy", "none", "--workload", "load(keys=20k)", "--dir", db]);
    let stats = json(&["db", db, "stats"]);
    assert_eq!((&stats["policy"], &stats["runs"]), (&json!("none"), &json!(4)));
    assert_eq!(stats["keyspaces"], json!(["default"]));
    assert_eq!((&stats["dead_bytes"], &stats["punched_bytes"]), (&json!(0), &json!(0)));
    assert_eq!(stats["live_bytes"], stats["table_bytes"]);
    let text = fine(&["db", db, "stats"]);
    assert!(text.contains("logical_bytes") && text.contains("bytes (4.19 MB)"), "{text}");
    let tree = json(&["db", db, "tree"])["tree"].as_str().unwrap().to_owned();
    assert_eq!(tree.trim_end(), fine(&["db", db, "tree"]).trim_end());
    let parsed: lsmith_tree::Tree = tree.parse().unwrap();
    assert_eq!(parsed.disk_run_count(), 4);
    let runs = json(&["db", db, "tree"])["runs"].clone();
    let on_storage = runs.as_array().unwrap().iter().filter(|run| run["level"] == "L0");
    assert_eq!(on_storage.count(), 4, "{runs}");
    let short = fine(&["db", db, "tree", "--short"]);
    let rows = short.lines().filter(|line| line.starts_with("L0 ") && line.contains("MB"));
    assert_eq!(rows.count(), 4, "{short}");
    assert!(short.contains("Newest run first."), "{short}");
    assert!(fine(&["db", db, "tree", "--help"]).contains("r4          the number of the run"));
    assert_eq!(json(&["db", db, "policy"])["plan"], Value::Null);
    assert!(fine(&["db", db, "policy"]).starts_with("policy none\n"));

    assert_eq!(
        json(&["db", db, "policy", "tiered(ratio=3)"]),
        json!({ "policy": "tiered(ratio=3)" })
    );
    let compacted = json(&["db", db, "compact"]);
    assert_eq!((&compacted["runs"], &compacted["entries"]), (&json!(1), &json!(20_000)));
    assert_eq!(json(&["db", db, "stats"])["policy"], json!("tiered(ratio=3)"));
    assert_eq!(json(&["db", db, "verify"]), json!({ "damage": [], "left_out": [] }));
}

#[test]
fn policy_command_prints_the_next_plan() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["run", "--policy", "none", "--workload", "load(keys=20k)", "--dir", db]);
    let before = json(&["db", db, "stats"])["runs"].clone();
    fine(&["db", db, "policy", "constant(k=8)"]);
    let shown = json(&["db", db, "policy"]);
    assert_eq!((&shown["policy"], &shown["plan"]), (&json!("constant(k=8)"), &Value::Null));
    assert_eq!(shown["notes"], json!([]));
    assert_eq!(json(&["db", db, "stats"])["runs"], before);
}

#[test]
fn policy_command_prints_notes_of_learning() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    let work = "uniform(keys=6k, ops=60k)";
    fine(&["run", "--policy", "mixed", "--memtable", "16KiB", "--workload", work, "--dir", db]);
    let notes = json(&["db", db, "policy"])["notes"].clone();
    let note = notes[0].as_str().unwrap();
    assert!(note.contains("; learned with ") && note.contains(" blocks in level 2 at "), "{note}");
    assert!(fine(&["db", db, "policy"]).ends_with(&format!("{note}\n")));
}

#[test]
fn closed_pipe_is_no_failure() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["run", "--policy", "none", "--workload", "load(keys=3k)", "--dir", db]);
    let mut child = Command::new(env!("CARGO_BIN_EXE_lsmith"))
        .args(["db", db, "scan"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("user"));
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), &output.stderr[..]), (Some(0), &b""[..]));
}

#[test]
fn tables_use_the_given_codec() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "--compression", "none,zstd(level=9)", "put", "apple", "red"]);
    assert_eq!(fine(&["db", db, "compression"]), "compression none,zstd(level=9)\n");
    assert_eq!(fine(&["db", db, "compression", "lz4"]), "compression lz4\n");
    assert_eq!(json(&["db", db, "compression"]), json!({ "compression": "lz4" }));
    assert_eq!(json(&["db", db, "stats"])["compression"], "lz4");
    let line = refused(2, &["db", db, "compression", "zst"]);
    assert!(line.contains("did you mean `zstd`?"), "{line}");
    let line = refused(2, &["db", db, "--compression", "gzip", "put", "a", "b"]);
    assert!(line.contains("there is no `gzip`"), "{line}");
}

#[test]
fn sorted_lines_are_loaded_all_or_nothing() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    let file = dir.path().join("entries");
    let path = file.to_str().unwrap();
    fs::write(&file, "a\t1\nb\t2\nb\t3\n").unwrap();
    let line = refused(1, &["db", db, "load", path]);
    assert!(line.contains("line 3") && line.contains("found `b` after `b`"), "{line}");
    assert_eq!(fine(&["db", db, "scan"]), "");
    fs::write(&file, "a\t1\nb\t2\nc\t3\n").unwrap();
    fine(&["db", db, "put", "b", "old"]);
    let loaded = json(&["db", db, "load", path]);
    assert_eq!((&loaded["loaded"], &loaded["tables"]), (&json!(3), &json!(1)));
    assert_eq!(fine(&["db", db, "scan"]), "a\t1\nb\t2\nc\t3\n");
    assert!(fine(&["db", db, "load", path]).starts_with("loaded 3 entries"));
    assert_eq!(json(&["db", db, "verify"]), json!({ "damage": [], "left_out": [] }));
}

/// Returns the oldest file of a store whose name has this ending.
pub(crate) fn file(db: &str, ending: &str) -> String {
    let names = fs::read_dir(db).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).min().unwrap()
}

#[test]
fn files_are_dumped_as_text() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "b", "old"]);
    fine(&["db", db, "compact"]);
    let lines = dir.path().join("lines");
    fs::write(&lines, b"a\xff\tnew\nc\t\n").unwrap();
    fine(&["db", db, "ingest", lines.to_str().unwrap()]);

    let table = file(db, ".table");
    let text = fine(&["db", db, "dump", &table, "--values"]);
    assert!(text.ends_with("\n  b number 0 put 3B old\n"), "{text}");
    assert!(text.contains(", format 3, undated\n") && text.contains("entries: 1"), "{text}");
    let dumped = json(&["db", db, "dump", &format!("{db}/{table}")]);
    assert_eq!((&dumped["type"], &dumped["damage"]), (&json!("table"), &json!([])));
    let entry = json!({ "key": "b", "seq": 0, "kind": "put", "value_bytes": 3 });
    assert_eq!(dumped["blocks"][0]["shown"], json!([entry]));

    let log = file(db, ".wal");
    let text = fine(&["db", db, "dump", &log, "--limit", "1"]);
    let lines: Vec<&str> = text.lines().collect();
    let start = "record at 32, 24 bytes, follows log 0, of which 0 bytes were synced";
    assert_eq!(lines[1], format!("{start}; first number 2"), "{text}");
    assert_eq!(lines[3], "  \"a\\xff\" number 2 put 3B keyspace 0", "{text}");
    assert_eq!(lines[5..], ["1 more left out", "end: clean at 112"], "{text}");
    let dumped = json(&["db", db, "dump", &log, "--values"]);
    let record = &dumped["records"][2];
    assert_eq!((&record["first"], &record["shown"][0]["kind"]), (&json!(3), &json!("put")));
    assert_eq!(dumped["end"], json!({ "how": "clean", "offset": 112, "bytes_dropped": 0 }));

    let manifest = file(db, ".manifest");
    let text = fine(&["db", db, "dump", &manifest]);
    assert!(text.contains("\n  keyspace 0 default memtable "), "{text}");
    let text = fine(&["db", db, "dump", "CURRENT"]);
    let file_id = manifest.split('.').next().unwrap().trim_start_matches('0');
    assert!(text.ends_with(&format!("names manifest {file_id}\n")), "{text}");
    assert_eq!(json(&["db", db, "dump", "CURRENT"])["manifest"].to_string(), file_id);

    let line = refused(2, &["db", db, "dump", "LOCK"]);
    assert!(line.contains("expected CURRENT"), "{line}");
    refused(1, &["db", db, "dump", "000099.table"]);
}

#[test]
fn a_warning_is_a_line_of_its_own_unless_the_command_fails() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let path = store.to_str().unwrap();
    fine(&["db", path, "put", "k", "v"]);
    let stranger = store.join("18446744073709551614.table");
    std::fs::write(&stranger, "not ours").unwrap();
    let done = lsmith(&["db", path, "get", "k"]);
    assert_eq!((done.code, &*done.out), (0, "v\n"), "{done:?}");
    assert!(done.err.starts_with("lsmith: warning: a file has a number"), "{done:?}");
    assert!(done.err.contains(stranger.to_str().unwrap()), "{done:?}");
    assert_eq!(done.err.lines().count(), 1, "{done:?}");
    assert!(refused(1, &["db", path, "get", "absent"]).contains("no key `absent`"));
}

#[test]
fn stores_exchange_tables() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    let other = dir.path().join("other").to_str().unwrap().to_string();
    let lines = dir.path().join("lines");
    fs::write(&lines, "a\t1\nb/1\t2\nb/2\t3\nc\t4\n").unwrap();
    let lines = lines.to_str().unwrap();
    fine(&["db", db, "ingest", lines]);
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    let part = file("part.table");
    let exported = json(&["db", db, "export", &part, "--prefix", "b/"]);
    assert_eq!(exported["exported"], json!(2));
    assert!(refused(1, &["db", db, "export", &part]).contains("part.table"));
    let rest = file("rest");
    let said = fine(&["db", db, "export", &rest, "--from", "c", "--compression", "lz4"]);
    assert!(said.starts_with("exported 1 entries"), "{said}");
    let line = refused(2, &["db", db, "export", &file("none"), "--from", "x"]);
    assert!(line.contains("no entry in the range"), "{line}");
    assert!(!dir.path().join("none").exists());

    // Names and ends tell tables from text.
    let line = refused(2, &["db", &other, "ingest", &part, lines]);
    assert!(line.contains("two steps"), "{line}");
    assert!(!dir.path().join("other").exists());
    let ingested = json(&["db", &other, "ingest", &rest, &part]);
    assert_eq!((&ingested["ingested"], &ingested["tables"]), (&json!(3), &json!(2)));
    assert_eq!(fine(&["db", &other, "scan"]), "b/1\t2\nb/2\t3\nc\t4\n");
    fine(&["db", &other, "put", "b/1", "new"]);
    fine(&["db", &other, "ingest", "--link", &part]);
    assert_eq!(fine(&["db", &other, "get", "b/1"]), "2\n");
    assert_eq!(fine(&["db", &other, "verify"]).lines().count(), 1);

    for made in [&rest, &part] {
        let dumped = fine(&["db", &other, "dump", made]);
        assert!(dumped.starts_with("table 0, ") && dumped.contains(", from outside\n"), "{dumped}");
    }

    let mut cut = fs::read(&part).unwrap();
    cut.pop();
    let damaged = file("damaged.table");
    fs::write(&damaged, cut).unwrap();
    let line = refused(1, &["db", &other, "ingest", &damaged]);
    assert!(line.contains("damaged.table"), "{line}");
    assert_eq!(fine(&["db", &other, "scan"]), "b/1\t2\nb/2\t3\nc\t4\n");
}

/// The command has no option that makes such a keyspace.
#[test]
fn exports_keep_the_times_of_entries_and_tables_say_so() {
    let (dir, db) = store_dir();
    let made = |keyspace: &str| {
        let store = lsmith::Store::builder(&db).open().unwrap();
        let expiry = Some(lsmith::Expiry::default());
        let options = lsmith::KeyspaceOptions { expiry, ..Default::default() };
        store.keyspace_with(keyspace, &options).unwrap()
    };
    let space = made("sessions");
    space.put_until("a", "long ago", 1_000_000_000).unwrap();
    space.put_until("b", "soon", 1 << 40).unwrap();
    space.put_until("c", "late", 1 << 41).unwrap();
    drop(space);
    let db = db.as_str();
    let table = dir.path().join("made.table").to_str().unwrap().to_string();
    let exported = json(&["db", db, "--keyspace", "sessions", "export", &table]);
    assert_eq!(exported["exported"], json!(2));
    let dumped = fine(&["db", db, "dump", &table]);
    assert!(dumped.contains(", from outside, with entries that expire\n"), "{dumped}");
    let line = refused(2, &["db", db, "ingest", &table]);
    assert!(line.contains("made.table") && line.contains("`default` cannot"), "{line}");
    drop(made("other"));
    fine(&["db", db, "--keyspace", "other", "ingest", &table]);
    assert_eq!(fine(&["db", db, "--keyspace", "other", "scan"]), "b\tsoon\nc\tlate\n");
    let later = lsmith::Store::builder(db).clock(lsmith::Clock::fixed(1 << 40)).open().unwrap();
    let other = later.existing_keyspace("other").unwrap();
    assert_eq!(other.iter().count(), 1);
}

#[test]
fn tables_with_numbers_go_where_their_age_puts_them() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    let line = refused(2, &["db", db, "--keep-numbers", "--group", "g", "put", "k", "v"]);
    assert!(line.contains("cannot keep sequence numbers"), "{line}");
    fine(&["db", db, "--keep-numbers", "put", "b/1", "old"]);
    fine(&["db", db, "put", "b/2", "old"]);
    fine(&["db", db, "delete", "b/2"]);
    fine(&["db", db, "put", "c", "old"]);
    let table = dir.path().join("backup.table").to_str().unwrap().to_string();
    let exported = json(&["db", db, "export", &table, "--numbers", "--prefix", "b/"]);
    assert_eq!(exported["exported"], json!(2), "the deletion too");
    fine(&["db", db, "put", "b/1", "new"]);
    // The flush has dropped the deletion, so the store cannot know what else it hid.
    let line = refused(2, &["db", db, "ingest", &table]);
    assert!(line.contains("deleted keys could come back"), "{line}");
    fine(&["db", db, "ingest", &table, "--allow-resurrect"]);
    assert_eq!(fine(&["db", db, "scan"]), "b/1\tnew\nc\told\n");

    let other = dir.path().join("other").to_str().unwrap().to_string();
    let line = refused(2, &["db", &other, "ingest", &table]);
    assert!(line.contains("`keep_numbers`"), "{line}");
    let line = refused(2, &["db", &other, "--keep-numbers", "get", "b/1"]);
    assert!(line.contains("forgotten sequence numbers"), "{line}");
    fine(&["db", &other, "--keyspace", "kept", "--keep-numbers", "put", "b/2", "first"]);
    fine(&["db", &other, "--keyspace", "kept", "ingest", &table]);
    assert_eq!(fine(&["db", &other, "--keyspace", "kept", "scan"]), "b/1\told\n");
    let file = dir.path().join("none").to_str().unwrap().to_string();
    let line = refused(2, &["db", &other, "export", &file, "--numbers"]);
    assert!(line.contains("forgets sequence numbers"), "{line}");
    assert!(!dir.path().join("none").exists());
}

#[test]
fn the_graph_of_tables_has_newer_ones_above() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "a", "1"]);
    fine(&["db", db, "policy", "none"]);
    let file = |name: &str| dir.path().join(name).to_str().unwrap().to_string();
    for (table, lines) in
        [("one", "a\t1\nf\t1\n"), ("two", "k\t1\np\t1\n"), ("three", "c\t1\nm\t1\n")]
    {
        let source = dir.path().join("source").to_str().unwrap().to_string();
        fs::write(file("lines"), lines).unwrap();
        fine(&["db", &source, "ingest", &file("lines")]);
        let first = lines.split('\t').next().unwrap();
        fine(&["db", &source, "export", &file(table), "--from", first]);
        fs::remove_dir_all(&source).unwrap();
        fine(&["db", db, "ingest", &file(table)]);
    }
    let rows = json(&["db", db, "tree", "--graph"]);
    let rows = rows["graph"].as_array().unwrap();
    let row = |range: &str| {
        let found = rows.iter().find(|table| table["range"].as_str().unwrap().starts_with(range));
        found.unwrap_or_else(|| panic!("no table from {range}: {rows:?}"))
    };
    assert_eq!((&row("c..")["row"], row("c..")["older"].as_array().unwrap().len()), (&json!(0), 2));
    assert_eq!((&row("k..")["row"], &row("k..")["older"]), (&json!(1), &json!([])));
    assert_eq!(row("a..")["row"], json!(1));
    let text = fine(&["db", db, "tree", "--graph"]);
    assert!(text.starts_with("0: t") && text.contains("\n1: t"), "{text}");
    let dot = fine(&["db", db, "tree", "--dot"]);
    assert!(dot.starts_with("digraph tables {") && dot.contains("n0 -> n1;"), "{dot}");
    let said = fine(&["db", db, "tree", "--svg", &file("tables.svg")]);
    assert!(said.contains("tables.svg: "), "{said}");
    let picture = fs::read_to_string(file("tables.svg")).unwrap();
    assert!(picture.contains("<svg") && picture.contains("row 1"), "{picture}");
    refused(2, &["db", db, "tree", "--graph", "--dot"]);
}
