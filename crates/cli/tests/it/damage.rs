//! `lsmith db` on damaged stores: what is listed, dumped and saved.

use crate::command::{fine, json, lsmith, refused, store_dir};
use crate::db::file;
use serde_json::{Value, json};
use std::fs;

#[test]
fn damage_is_listed_with_path_and_offset() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k", "value"]);
    fine(&["db", db, "compact"]);
    let files = fs::read_dir(db).unwrap().map(|entry| entry.unwrap().path());
    let table =
        files.into_iter().find(|path| path.extension().is_some_and(|e| e == "table")).unwrap();
    let mut bytes = fs::read(&table).unwrap();
    bytes[3] ^= 1;
    fs::write(&table, bytes).unwrap();
    let done = lsmith(&["db", db, "verify", "--json"]);
    assert_eq!(done.code, 1, "{done:?}");
    let found: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!(found["damage"][0]["path"], json!(table.to_str().unwrap()));
    assert_eq!(found["damage"][0]["offset"], json!(0));
    assert!(done.err.contains("1 place is damaged"), "{done:?}");
}

#[test]
fn damaged_files_are_dumped_as_far_as_they_can_be_read() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    for key in ["a", "b", "c"] {
        fine(&["db", db, "put", key, "value"]);
    }
    let log = file(db, ".wal");
    let path = format!("{db}/{log}");
    let bytes = fs::read(&path).unwrap();
    let mut damaged = bytes.clone();
    damaged[50] ^= 1;
    fs::write(&path, &damaged).unwrap();
    let done = lsmith(&["db", db, "dump", &log]);
    assert_eq!((done.code, &*done.err), (1, "lsmith: 1 place is damaged\n"), "{done:?}");
    assert!(done.out.contains("damaged: ") && done.out.contains("at offset 32"), "{done:?}");
    let done = lsmith(&["db", db, "dump", &log, "--json"]);
    let found: Value = serde_json::from_str(&done.out).unwrap();
    assert_eq!((done.code, &found["damage"][0]["offset"]), (1, &json!(32)));
    assert_eq!(found["end"]["how"], json!("damaged"));
    fs::write(&path, &bytes).unwrap();

    fine(&["db", db, "compact"]);
    let table = file(db, ".table");
    let path = format!("{db}/{table}");
    let mut bytes = fs::read(&path).unwrap();
    bytes[3] ^= 1;
    fs::write(&path, bytes).unwrap();
    let done = lsmith(&["db", db, "dump", &table]);
    assert!(done.code == 1 && done.out.contains("damaged, keys within a..\"c\\x00\""), "{done:?}");
}

#[test]
fn left_out_logs_are_reported_and_are_no_damage() {
    let (_first, living) = store_dir();
    let (_second, db) = store_dir();
    let db = db.as_str();
    fine(&["db", &living, "put", "a", "value"]);
    // A store that was closed has synced its log, and a cut would be damage. So these are the files
    // of an open store.
    let store = lsmith::Store::builder(&living).log_bytes(64 << 10).open().unwrap();
    let space = store.existing_keyspace("default").unwrap();
    ["b", "c"].iter().for_each(|key| space.put(key, "value").unwrap());
    fs::create_dir(db).unwrap();
    for entry in fs::read_dir(&living).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), format!("{db}/{}", entry.file_name().display())).unwrap();
        }
    }
    // The end of the last log as power loss leaves it: within a record, zeros.
    let mut logs: Vec<String> = fs::read_dir(db)
        .unwrap()
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".wal"))
        .collect();
    logs.sort();
    let last = &logs[logs.len() - 1];
    let mut bytes = fs::read(last).unwrap();
    bytes[80..].fill(0);
    fs::write(last, bytes).unwrap();
    fs::write(format!("{db}/000001.wal.lost"), [7; 70]).unwrap();
    fs::write(format!("{db}/000077.table"), [7; 20]).unwrap();
    fs::write(format!("{db}/letter.txt"), "hello").unwrap();

    // What opening leaves out is warned of on standard error as well.
    let out = |args: &[&str]| {
        let done = lsmith(&[&["db", db], args].concat());
        assert_eq!(done.code, 0, "{done:?}");
        done.out
    };
    let verified: Value = serde_json::from_str(&out(&["verify", "--json"])).unwrap();
    assert_eq!(verified["damage"], json!([]));
    let reported: Vec<(&str, u64, u64)> = verified["left_out"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| {
            let number = |name: &str| left[name].as_u64().unwrap();
            (left["reason"].as_str().unwrap(), number("offset"), number("bytes"))
        })
        .collect();
    let expected =
        [("torn_end", 56, 24), ("unnamed", 0, 20), ("set_aside", 0, 70), ("stranger", 0, 5)];
    assert_eq!(reported, expected);
    let text = out(&["verify"]);
    assert!(text.contains("is torn at offset 56: 24 bytes left out"), "{text}");
    assert!(text.ends_with("no damage found\n"), "{text}");
    assert_eq!(out(&["scan"]), "a\tvalue\n");
}

#[test]
fn all_damage_of_a_store_that_does_not_open_is_listed() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k", "value"]);
    fine(&["db", db, "compact"]);
    let mut expected = Vec::new();
    for (ending, at, offset) in [("CURRENT", 30, 23), (".manifest", 60, 32), (".table", 3, 0)] {
        let path = format!("{db}/{}", file(db, ending));
        let mut bytes = fs::read(&path).unwrap();
        bytes[at] ^= 1;
        fs::write(&path, bytes).unwrap();
        expected.push((path, offset));
    }
    expected.sort();
    let done = lsmith(&["db", db, "verify", "--json"]);
    let found: Value = serde_json::from_str(&done.out).unwrap();
    let mut reported: Vec<(String, u64)> = found["damage"]
        .as_array()
        .unwrap()
        .iter()
        .map(|damage| {
            (damage["path"].as_str().unwrap().to_owned(), damage["offset"].as_u64().unwrap())
        })
        .collect();
    reported.sort();
    assert_eq!((done.code, reported), (1, expected), "{done:?}");
    assert_eq!(done.err, "lsmith: 3 places are damaged\n");
}

#[test]
fn readable_entries_are_saved() {
    let (dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k", "old"]);
    fine(&["db", db, "compact"]);
    fine(&["db", db, "put", "l", "new"]);
    fine(&["db", db, "put", "m", "apart", "--keyspace", "other"]);
    let to = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let repaired = json(&["db", db, "repair", &to("whole")]);
    assert_eq!((&repaired["exact"], &repaired["findings"]), (&json!(true), &json!([])));
    assert_eq!(fine(&["db", &to("whole"), "scan"]), "k\told\nl\tnew\n");
    assert_eq!(fine(&["db", &to("whole"), "scan", "--keyspace", "other"]), "m\tapart\n");

    let table = format!("{db}/{}", file(db, ".table"));
    let mut bytes = fs::read(&table).unwrap();
    bytes[3] ^= 1;
    fs::write(&table, bytes).unwrap();
    let repaired = json(&["db", db, "repair", &to("part")]);
    let finding = &repaired["findings"][0];
    assert_eq!(repaired["exact"], json!(false));
    assert_eq!((&finding["kind"], &finding["path"]), (&json!("lost_keys"), &json!(table)));
    assert_eq!((&finding["offset"], &finding["keyspace"]), (&json!(0), &json!("default")));
    assert_eq!(finding["keys"], json!("k..\"k\\x00\""));
    assert_eq!(fine(&["db", &to("part"), "scan"]), "l\tnew\n");
    let text = fine(&["db", db, "repair", &to("again")]);
    assert!(text.starts_with("lost: a checksum does not match in "), "{text}");
    assert!(text.contains("\nkeyspace default: 1 entries\n"), "{text}");

    let line = refused(2, &["db", db, "repair", &to("part")]);
    assert!(line.contains("is not empty"), "{line}");
    refused(1, &["db", &to("none"), "repair", &to("new")]);
}
