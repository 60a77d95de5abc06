//! Keys and values of any bytes at every door of `lsmith db`.

use crate::command::{fine, json, refused, store_dir};
use lsmith::Store;
use serde_json::json;
use std::fs;
use std::io::Write;
use std::process::{Command, Output, Stdio};

type Entries = Vec<(Vec<u8>, Vec<u8>)>;

/// Runs `lsmith` with `args` and `input`. Returns what it does with bytes that are no text.
fn piped(args: &[&str], input: &[u8]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lsmith"));
    let command = command.args(args).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(input).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{args:?}: {output:?}");
    output
}

fn contents(db: &str) -> Entries {
    let store = Store::builder(db).read_only(true).open().unwrap();
    let entries = store.existing_keyspace("default").unwrap().iter();
    let owned = entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())));
    owned.collect::<Result<_, _>>().unwrap()
}

fn fill(db: &str, entries: &Entries) {
    let store = Store::builder(db).open().unwrap();
    let space = store.keyspace("default").unwrap();
    entries.iter().for_each(|(key, value)| space.put(key, value).unwrap());
}

/// Bytes that an escape, a line or a column could lose, as often as any other.
fn random_bytes(rng: &mut lsmith_workload::Rng, length_min: u64) -> Vec<u8> {
    const HARD: &[u8] = b"\\\\\\xx09\t\n\r\0 \xff\xc3\xa4\xe2\x80\xa8\"'=";
    let length = length_min + rng.below(12);
    let byte = |rng: &mut lsmith_workload::Rng| match rng.below(2) {
        0 => HARD[rng.below(HARD.len() as u64) as usize],
        _ => rng.below(256) as u8,
    };
    (0..length).map(|_| byte(rng)).collect()
}

/// A tab and the text `\x09` were once printed alike, so that one of two entries was lost.
#[test]
fn scan_read_back_gives_the_same_scan() {
    let mut rng = lsmith_workload::Rng::new(1, 0);
    let mut random: Entries =
        (0..500).map(|_| (random_bytes(&mut rng, 1), random_bytes(&mut rng, 0))).collect();
    random.extend([b"a\tb".as_slice(), b"a\\x09b", b"a\\b", b"\0"].map(|k| (k.into(), k.into())));
    let (_dir, db) = store_dir();
    fill(&db, &random);
    let wanted = contents(&db);
    assert!(wanted.len() > 450);
    for options in [&[][..], &["--hex"]] {
        let scan = |db: &str| piped(&[&["db", db, "scan"], options].concat(), b"").stdout;
        let lines = scan(&db);
        assert_eq!(lines.iter().filter(|byte| **byte == b'\n').count(), wanted.len());
        for door in ["ingest", "load"] {
            let (_dir, other) = store_dir();
            piped(&[&["db", &other, door, "-"], options].concat(), &lines);
            assert!(contents(&other) == wanted, "{options:?}: {door} gives other entries");
            assert!(scan(&other) == lines, "{options:?}: {door} gives another scan");
        }
    }
}

#[test]
fn any_key_can_be_named_at_every_door() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k\\x00z", "v\\xff\\\\"]);
    fine(&["db", db, "put", "--hex", "6b09", "00"]);
    assert_eq!(fine(&["db", db, "scan"]), "k\\x00z\tv\\xff\\\\\nk\\x09\t\\x00\n");
    assert_eq!(fine(&["db", db, "scan", "--hex"]), "6b007a\t76ff5c\n6b09\t00\n");
    assert_eq!(fine(&["db", db, "get", "k\\x00z"]), "v\\xff\\\\\n");
    assert_eq!(piped(&["db", db, "get", "--hex", "6b007a"], b"").stdout, b"76ff5c\n");
    let got = piped(&["db", db, "get", "--raw", "k\t"], b"").stdout;
    assert_eq!(got, b"\0", "the value and nothing else");
    for range in [&["--from", "k\\x00", "--to", "k\\x01"][..], &["--prefix", "k\\x00"]] {
        assert_eq!(fine(&[&["db", db, "scan"], range].concat()).lines().count(), 1, "{range:?}");
    }
    let table = dir.path().join("t.table");
    let table = table.to_str().unwrap();
    let exported = json(&["db", db, "export", table, "--prefix", "k\\x00"]);
    assert_eq!(exported["exported"], json!(1));
    let changes = fine(&["db", db, "changes"]);
    assert!(changes.starts_with("1\tdefault\tput\tk\\x00z\tv\\xff\\\\\n"), "{changes}");
    fine(&["db", db, "delete-range", "k\\x08", "k\\x0a"]);
    assert_eq!(fine(&["db", db, "scan"]).lines().count(), 1);
    fine(&["db", db, "delete", "k\\x00z"]);
    assert_eq!(fine(&["db", db, "scan"]), "");
}

#[test]
fn json_has_any_bytes() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "a\\x09b", "\\xff\\x00"]);
    fine(&["db", db, "put", "a\\\\x09b", "text"]);
    let entries = json!([
        { "key": "a\tb", "value_base64": "/wA=" },
        { "key": "a\\x09b", "value": "text" },
    ]);
    assert_eq!(json(&["db", db, "scan"]), json!({ "entries": entries }));
    let entry = json!({ "key_hex": "610962", "value_hex": "ff00" });
    assert_eq!(json(&["db", db, "get", "--hex", "610962"]), entry);
    let changes = json(&["db", db, "changes", "--limit", "1"]);
    assert_eq!(changes["changes"][0]["put"], json!("a\tb"));
    assert_eq!(changes["changes"][0]["value_base64"], json!("/wA="));
    assert_eq!(json(&["db", db, "put", "\\xff", "v"]), json!({ "put_base64": "/w==" }));
}

#[test]
fn what_is_no_text_of_bytes_is_refused() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    let file = dir.path().join("lines");
    fs::write(&file, "a\t1\nb\t{\"x\": \"\\n\"}\n").unwrap();
    let file = file.to_str().unwrap();
    let said = refused(2, &["db", db, "put", "a\\b", "v"]);
    assert!(said.contains("found `\\b`; `--raw` takes keys and values as they are"), "{said}");
    assert!(fs::metadata(db).is_err(), "a wrong argument makes no store");
    assert!(refused(2, &["db", db, "put", "--hex", "6", "v"]).contains("two hexadecimal digits"));
    assert!(refused(2, &["db", db, "get", "--hex", "--raw", "k"]).contains("cannot be used with"));
    let said = refused(1, &["db", db, "ingest", file]);
    assert!(said.contains("line 2: expected `\\\\` for a backslash"), "{said}");
    fine(&["db", db, "ingest", "--raw", file]);
    assert_eq!(piped(&["db", db, "get", "--raw", "b"], b"").stdout, b"{\"x\": \"\\n\"}");
    fine(&["db", db, "put", "--raw", "a\\b", "c\\d"]);
    assert_eq!(fine(&["db", db, "get", "a\\\\b"]), "c\\\\d\n");
}

#[test]
fn dump_writes_keys_in_quotes_or_digits() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "a b", "\\xff"]);
    let log = fs::read_dir(db).unwrap().flatten().map(|entry| entry.file_name());
    let log = log.filter_map(|name| name.into_string().ok()).find(|name| name.ends_with(".wal"));
    let log = log.unwrap();
    let text = fine(&["db", db, "dump", &log, "--values"]);
    assert!(text.contains("\"a b\" number 1 put 1B keyspace 0 \"\\xff\""), "{text}");
    let text = fine(&["db", db, "dump", &log, "--values", "--hex"]);
    assert!(text.contains("612062 number 1 put 1B keyspace 0 ff"), "{text}");
    let dumped = json(&["db", db, "dump", &log, "--values"]).to_string();
    assert!(dumped.contains("\"key\":\"a b\"") && dumped.contains("\"value_base64\":\"/w==\""));
}

/// A store of combines once had an operator that `db` did not know.
#[test]
fn stores_that_run_keeps_can_be_opened() {
    let (dir, db) = store_dir();
    let trace = dir.path().join("trace.csv");
    fs::write(&trace, "timestamp,op,key,value_size\n1,put,a,5\n2,combine,a,6\n").unwrap();
    let trace = format!("trace({})", trace.display());
    let said = fine(&["run", "--policy", "tiered", "--workload", &trace, "--dir", &db]);
    assert!(said.contains(&format!("`lsmith db {db} stats` looks into it")), "{said}");
    assert_eq!(fine(&["db", &db, "scan", "--hex"]).len(), "61\t\n".len() + 12);
    fine(&["db", &db, "compact"]);
    let other = dir.path().join("group");
    let other = other.to_str().unwrap();
    let work = ["--workload", "load(keys=100)", "--group", "1,0.5", "--dir", other];
    let said = fine(&[&["run", "--policy", "tiered"], &work[..]].concat());
    assert!(said.contains(&format!("`lsmith db {other} --keyspace keyspace-0 stats`")), "{said}");
    fine(&["db", other, "--keyspace", "keyspace-0", "stats"]);
}
