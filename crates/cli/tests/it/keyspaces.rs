//! `lsmith db`: keyspaces are made with options, listed, renamed and dropped.

use crate::command::{fine, json, refused, store_dir};
use serde_json::{Value, json};

#[test]
fn keyspaces_are_apart() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k", "one"]);
    fine(&["db", db, "put", "k", "two", "--keyspace", "other"]);
    assert_eq!(fine(&["db", db, "get", "k"]), "one\n");
    assert_eq!(fine(&["db", db, "--keyspace", "other", "get", "k"]), "two\n");
    let line = refused(2, &["db", db, "--keyspace", "othr", "get", "k"]);
    assert!(line.contains("did you mean `other`?"), "{line}");
    let line = refused(2, &["db", db, "--keyspace", "quite-different", "get", "k"]);
    assert!(line.contains("no keyspace") && line.contains("one of: default, other"), "{line}");
}

#[test]
fn keyspaces_of_a_group_are_made_listed_and_kept_together() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "--keyspace", "rows", "--group", "orders", "put", "k", "one"]);
    fine(&["db", db, "--keyspace", "dates", "--group", "orders", "put", "k", "two"]);
    fine(&["db", db, "put", "k", "three"]);
    assert_eq!(fine(&["db", db, "--keyspace", "dates", "get", "k"]), "two\n");
    let stats = json(&["db", db, "--keyspace", "rows", "stats"]);
    assert_eq!((&stats["keyspace"], &stats["group"]), (&json!("rows"), &json!("orders")));
    let text = fine(&["db", db, "stats"]);
    assert!(!text.contains("group"), "{text}");
    let listed = json(&["db", db, "keyspaces"]);
    let groups = listed["keyspaces"].as_array().unwrap().iter();
    let groups: Vec<_> = groups.map(|space| (&space["name"], &space["group"])).collect();
    let (orders, none) = (json!("orders"), json!(null));
    let names = [json!("dates"), json!("rows"), json!("default")];
    assert_eq!(groups, [(&names[0], &orders), (&names[1], &orders), (&names[2], &none)]);
    assert!(fine(&["db", db, "keyspaces"]).contains("orders"));
    assert!(fine(&["watch", db, "--once"]).contains("group orders of rows, dates: "));
    let line = refused(2, &["db", db, "--keyspace", "orders", "get", "k"]);
    assert!(line.contains("`orders` is a group") && line.contains("`rows`, `dates`"), "{line}");
    for command in [&["put", "k", "v"][..], &["get", "k"]] {
        let words = ["db", db, "--keyspace", "rows", "--group", "people"];
        let line = refused(2, &[&words[..], command].concat());
        assert!(line.contains("in the group `orders`, not in the group `people`"), "{line}");
    }
    let line = refused(2, &["db", db, "--keyspace", "rows", "policy", "leveled(ratio=4)"]);
    assert!(line.contains("such as tiered(ratio=4)"), "{line}");
}

#[test]
fn all_keyspaces_are_listed() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k", "one"]);
    fine(&["db", db, "put", "k", "two", "--keyspace", "b", "--compression", "lz4"]);
    fine(&["db", db, "put", "l", "three", "--keyspace", "a"]);
    fine(&["db", db, "compact", "--keyspace", "b"]);
    fine(&["db", db, "policy", "tiered(ratio=3)", "--keyspace", "a"]);
    let listed = json(&["db", db, "keyspaces"])["keyspaces"].clone();
    let column = |name: &str| -> Vec<Value> {
        listed.as_array().unwrap().iter().map(|space| space[name].clone()).collect()
    };
    assert_eq!(column("id"), [0, 1, 2]);
    assert_eq!(column("name"), ["default", "b", "a"]);
    assert_eq!(column("policy"), ["minlatency(k=6)", "minlatency(k=6)", "tiered(ratio=3)"]);
    assert_eq!(column("compression"), ["none", "lz4", "none"]);
    assert_eq!(column("tables"), [0, 1, 0]);
    assert_eq!(column("entries"), [0, 1, 0]);
    assert_eq!(column("logical_bytes"), [0, 12, 0]);
    assert_eq!(column("memory_bytes"), [12, 0, 14]);
    assert!(column("table_bytes")[1].as_u64() > Some(100));
    let text = fine(&["db", db, "keyspaces"]);
    assert_eq!(text.lines().count(), 5, "{text}");
    assert!(text.lines().nth(3).unwrap().starts_with("1    b "), "{text}");
    let missing = refused(1, &["db", &format!("{db}-other"), "keyspaces"]);
    assert!(missing.contains("there is no store"), "{missing}");
}

#[test]
fn keyspaces_choose_their_filters_when_they_are_made() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    let chosen = ["--filter-bits", "7", "--prefix-bytes", "4"];
    fine(&[&["db", db, "--keyspace", "edges", "put", "k", "v"][..], &chosen].concat());
    fine(&["db", db, "put", "k", "v"]);
    let listed = json(&["db", db, "list"])["keyspaces"].clone();
    let filters = |space: &Value| (space["filter_bits"].clone(), space["prefix_bytes"].clone());
    let filters: Vec<_> = listed.as_array().unwrap().iter().map(filters).collect();
    assert_eq!(filters, [(json!(null), json!(null)), (json!(7), json!(4))]);
    assert_eq!(
        fine(&[&["db", db, "--keyspace", "edges", "get", "k"][..], &chosen].concat()),
        "v\n"
    );
    let other = refused(2, &["db", db, "--keyspace", "edges", "--prefix-bytes", "5", "get", "k"]);
    assert!(other.contains("4-byte prefixes in its filters, not 5-byte prefixes"), "{other}");
    let wrong =
        refused(2, &["db", db, "--keyspace", "new", "--prefix-bytes", "0", "put", "k", "v"]);
    assert!(wrong.contains("prefixes of 0 bytes: expected 1 to 1024"), "{wrong}");
}

#[test]
fn values_of_a_keyspace_expire_as_it_says_when_it_is_made() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    let hour = ["db", db, "--keyspace", "hour"];
    fine(&[&hour[..], &["put", "a", "first", "--expire-after", "3600"]].concat());
    fine(&[&hour[..], &["put", "b", "second"]].concat());
    assert_eq!(fine(&[&hour[..], &["get", "a"]].concat()), "first\n");
    assert_eq!(
        fine(&[&hour[..], &["scan", "--expire-after", "3600"]].concat()),
        "a\tfirst\nb\tsecond\n"
    );
    fine(&["db", db, "put", "k", "v"]);
    let listed = json(&["db", db, "list"])["keyspaces"].clone();
    let expiry = |space: &Value| (space["expires"].clone(), space["expire_after"].clone());
    let expiry: Vec<_> = listed.as_array().unwrap().iter().map(expiry).collect();
    assert_eq!(expiry, [(json!(false), json!(null)), (json!(true), json!(3600))]);
    let other = refused(2, &[&hour[..], &["get", "a", "--expire-after", "60"]].concat());
    assert!(other.contains("with expiry after 3600, not with expiry after 60"), "{other}");
    let other = refused(2, &["db", db, "--expire-after", "60", "put", "k", "v"]);
    assert!(other.contains("without expiry, not with expiry after 60"), "{other}");
    refused(2, &["db", db, "--keyspace", "new", "--expire-after", "0", "put", "k", "v"]);
    // An hour later both are gone.
    let since = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    for (now, there) in [(since + 3500, true), (since + 3601, false)] {
        let store = lsmith::Store::builder(db).clock(lsmith::Clock::fixed(now)).open().unwrap();
        let space = store.existing_keyspace("hour").unwrap();
        assert_eq!([space.contains("a").unwrap(), space.contains("b").unwrap()], [there; 2]);
    }
}

/// What broke: the command took seconds since 1970 for the time of any store, and its merges
/// dropped all values of stores with another clock.
#[test]
fn store_with_another_clock_needs_the_time() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    let clock = lsmith::Clock::new("steps", || 7);
    let store = lsmith::Store::builder(db).clock(clock).open().unwrap();
    let expiry = Some(lsmith::Expiry::default());
    let options = lsmith::KeyspaceOptions { expiry, ..Default::default() };
    store.keyspace_with("default", &options).unwrap().put_until("a", "x", 9).unwrap();
    drop(store);
    for command in [&["scan"][..], &["put", "b", "y"], &["compact"]] {
        let told = refused(1, &[&["db", db], command].concat());
        assert!(told.contains("the clock `steps`, not `unix_seconds`"), "{told}");
        assert!(told.contains("`--time`"), "{told}");
    }
    assert_eq!(fine(&["db", db, "verify"]), "no damage found\n");
    assert_eq!(fine(&["db", db, "--time", "9", "scan"]), "");
    fine(&["db", db, "--time", "0", "put", "b", "y"]);
    fine(&["db", db, "--time", "0", "compact"]);
    assert_eq!(fine(&["db", db, "--time", "8", "scan"]), "a\tx\nb\ty\n");
}

#[test]
fn keyspaces_of_programs_whose_entries_expire_are_read_and_written() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    let store = lsmith::Store::builder(db).open().unwrap();
    let expiry = Some(lsmith::Expiry::default());
    let options = lsmith::KeyspaceOptions { expiry, ..Default::default() };
    let space = store.keyspace_with("default", &options).unwrap();
    space.put_until("gone", "x", 1_000_000_000).unwrap();
    space.put_until("there", "y", u64::MAX).unwrap();
    drop((space, store));
    fine(&["db", db, "put", "stays", "z"]);
    assert_eq!(fine(&["db", db, "scan"]), "stays\tz\nthere\ty\n");
    refused(1, &["db", db, "get", "gone"]);
    let listed = json(&["db", db, "list"])["keyspaces"][0].clone();
    assert_eq!((&listed["expires"], &listed["expire_after"]), (&json!(true), &json!(null)));
    let other = refused(2, &["db", db, "--expire-after", "60", "get", "there"]);
    assert!(other.contains("with expiry at times of each entry, not"), "{other}");
}

#[test]
fn keyspace_gets_a_combine_operator_when_it_is_made() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "--operator", "counter", "put", "visits", "12345678"]);
    let store = lsmith::Store::builder(db).open().unwrap();
    store.keyspace("default").unwrap().combine("visits", 1_i64.to_le_bytes()).unwrap();
    drop(store);
    assert_eq!(fine(&["db", db, "get", "visits"]), "22345678\n");
    assert_eq!(json(&["db", db, "list"])["keyspaces"][0]["operator"], json!("counter"));
    let wrong = refused(2, &["db", db, "--keyspace", "b", "--operator", "adder", "put", "k", "v"]);
    assert!(wrong.contains("invalid value 'adder'"), "{wrong}");
    let both = ["--operator", "counter", "--expire-after", "5", "put", "k", "v"];
    let both = refused(2, &[&["db", db, "--keyspace", "b"][..], &both].concat());
    assert!(both.contains("cannot expire: leave out one"), "{both}");
}

#[test]
fn keyspaces_are_cleared_renamed_dropped_and_listed() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    for name in ["a", "b", "c"] {
        fine(&["db", db, "put", "k", name, "--keyspace", name]);
    }
    let open = lsmith::Store::builder(db).open().unwrap();
    let names = || -> Vec<String> {
        let listed = json(&["db", db, "list"])["keyspaces"].clone();
        let name = |space: &Value| space["name"].as_str().unwrap().to_string();
        listed.as_array().unwrap().iter().map(name).collect()
    };
    assert_eq!(names(), ["a", "b", "c"], "another process has the store open");
    drop(open);
    assert_eq!(fine(&["db", db, "clear", "--keyspace", "a"]), "cleared a\n");
    assert!(fine(&["db", db, "scan", "--keyspace", "a"]).is_empty());
    assert_eq!(fine(&["db", db, "rename", "b", "z"]), "renamed b to z\n");
    assert_eq!(fine(&["db", db, "get", "k", "--keyspace", "z"]), "b\n");
    assert_eq!(json(&["db", db, "drop", "c"]), json!({ "dropped": "c" }));
    assert_eq!(names(), ["a", "z"]);
    assert!(fine(&["db", db, "list"]).contains("minlatency(k=6)"));
    let missing = refused(2, &["db", db, "drop", "zz"]);
    assert!(missing.contains("did you mean `z`?"), "{missing}");
    let taken = refused(2, &["db", db, "rename", "a", "z"]);
    assert!(taken.contains("expected a name not in use"), "{taken}");
}

#[test]
fn a_store_is_destroyed_only_if_that_is_said_twice() {
    let (_dir, db) = store_dir();
    let db = db.as_str();
    fine(&["db", db, "put", "k", "one"]);
    let line = refused(2, &["db", db, "destroy"]);
    assert!(line.contains("`--yes`"), "{line}");
    assert_eq!(fine(&["db", db, "get", "k"]), "one\n");
    let notes = std::path::Path::new(db).join("notes.txt");
    std::fs::write(&notes, "somebody's").unwrap();
    assert!(fine(&["db", db, "destroy", "--yes"]).contains("notes.txt is not the store's"));
    assert!(refused(1, &["db", db, "destroy", "--yes"]).contains("there is no store"));
    std::fs::remove_file(notes).unwrap();
    fine(&["db", db, "put", "k", "two"]);
    assert_eq!(json(&["db", db, "destroy", "--yes"]), json!({ "destroyed": true, "left": [] }));
    assert!(!std::path::Path::new(db).exists());
}
