//! `lsmith db`: checkpoints, backups, restored stores.

use crate::command::{fine, json, lsmith, refused};
use serde_json::{Value, json};
use std::fs;

#[test]
fn a_checkpoint_is_a_store() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (db, then) = (path("store"), path("then"));
    fine(&["db", &db, "put", "apple", "red"]);
    fine(&["db", &db, "compact"]);
    let made = json(&["db", &db, "checkpoint", &then]);
    assert!(made["linked"].as_u64() > Some(0), "{made}");
    fine(&["db", &db, "put", "apple", "green"]);
    assert_eq!(fine(&["db", &then, "get", "apple"]), "red\n");
    assert_eq!(fine(&["db", &then, "verify"]), "no damage found\n");
    let line = refused(2, &["db", &db, "checkpoint", &then]);
    assert!(line.contains("expected an empty directory for a new store"), "{line}");
    let line = refused(1, &["db", &path("none"), "checkpoint", &path("other")]);
    assert!(line.contains("there is no store"), "{line}");
}

#[test]
fn backups_are_made_listed_checked_removed_and_restored() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (db, kept) = (path("store"), path("kept"));
    for value in ["red", "green", "blue"] {
        fine(&["db", &db, "put", "apple", value]);
        let line = fine(&["db", &db, "backup", &kept]);
        assert!(line.starts_with("backup ") && line.ends_with(" copied\n"), "{line}");
    }
    let list = json(&["db", &kept, "backups"]);
    let ids: Vec<&Value> =
        list["backups"].as_array().unwrap().iter().map(|backup| &backup["backup"]).collect();
    assert_eq!(ids, [1, 2, 3]);
    fine(&["db", &path("new"), "restore", &kept]);
    assert_eq!(fine(&["db", &path("new"), "get", "apple"]), "blue\n");
    fine(&["db", &path("old"), "restore", &kept, "--backup", "1"]);
    assert_eq!(fine(&["db", &path("old"), "get", "apple"]), "red\n");
    let line = refused(2, &["db", &path("old"), "restore", &kept]);
    assert!(line.contains("expected an empty directory"), "{line}");

    assert_eq!(json(&["db", &kept, "backups", "--remove", "2"]), json!({ "removed": 2 }));
    let made = json(&["db", &db, "backup", &kept, "--keep", "2", "--check"]);
    assert_eq!((&made["backup"], &made["removed"]), (&json!(4), &json!([1])));
    refused(2, &["db", &db, "backup", &kept, "--keep", "0"]);
    assert_eq!(fine(&["db", &kept, "backups", "--verify"]), "no damage found\n");
    let damaged = fs::read_dir(&kept).unwrap().map(|entry| entry.unwrap().path());
    let damaged = damaged.into_iter().find(|path| path.extension().is_some_and(|it| it == "wal"));
    fs::write(damaged.unwrap(), "short").unwrap();
    let done = lsmith(&["db", &kept, "backups", "--verify"]);
    assert_eq!(done.code, 1, "{done:?}");
    assert!(done.out.contains("found 5 in "), "{done:?}");
    assert_eq!(done.err, "lsmith: 1 file is damaged\n");
    let line = refused(1, &["db", &db, "backups"]);
    assert!(line.contains("there are no backups"), "{line}");
}
