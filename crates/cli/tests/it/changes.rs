//! `lsmith db changes`.

use crate::command::{fine, json, refused};
use serde_json::json;

#[test]
fn changes_are_printed_from_a_number_on() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("store").to_str().unwrap().to_owned();
    let db = db.as_str();
    fine(&["db", db, "put", "apple", "red"]);
    fine(&["db", db, "put", "pear", "green"]);
    fine(&["db", db, "delete", "apple"]);
    let lines = "1\tdefault\tput\tapple\tred\n2\tdefault\tput\tpear\tgreen\n\
                 3\tdefault\tdelete\tapple\n";
    assert_eq!(fine(&["db", db, "changes"]), lines);
    assert_eq!(fine(&["db", db, "changes", "--from", "1", "--limit", "1"]), &lines[..24]);
    let found = json(&["db", db, "changes", "--from", "3"]);
    let expected = json!([{ "seq": 3, "keyspace": "default", "delete": "apple" }]);
    assert_eq!(found, json!({ "changes": expected }));
    assert_eq!(fine(&["db", db, "changes", "--from", "4"]), "");
    let line = refused(2, &["db", db, "changes", "--from", "5"]);
    assert!(line.contains("expected a number up to 4"), "{line}");
    // Merging everything flushes memory, and nothing asked to keep the logs.
    fine(&["db", db, "compact"]);
    fine(&["db", db, "put", "fig", "blue"]);
    let line = refused(1, &["db", db, "changes", "--from", "1"]);
    assert!(line.contains("expected the logs to hold write 1"), "{line}");
}

#[test]
fn range_of_keys_is_deleted_and_told_as_one_change() {
    let dir = tempfile::tempdir().unwrap();
    let db = dir.path().join("store").to_str().unwrap().to_owned();
    let db = db.as_str();
    for key in ["apple", "fig", "pear"] {
        fine(&["db", db, "put", key, "x"]);
    }
    fine(&["db", db, "delete-range", "apple", "pear"]);
    assert_eq!(fine(&["db", db, "scan"]), "pear\tx\n");
    let line = "4\tdefault\tdelete_range\tapple\tpear\n";
    assert_eq!(fine(&["db", db, "changes", "--from", "4"]), line);
    let found = json(&["db", db, "changes", "--from", "4"]);
    let expected = json!([
        { "seq": 4, "keyspace": "default", "delete_range": "apple", "end": "pear" }
    ]);
    assert_eq!(found, json!({ "changes": expected }));
    let line = refused(2, &["db", db, "delete-range", "pear", "apple"]);
    assert!(line.contains("does not end before it begins"), "{line}");
}
