//! Combine operators.
//!
//! Promised: a combine is a write like any other: in batches, over snapshots, in groups, across
//! flushes, merges, ingests, repairs and reopenings. A store whose operator is missing does not
//! open. Whatever an operator does, it costs at most the read or the merge that needed it, and no
//! operand is lost: once it works again, all values are there.

use crate::frame::contents::get;
use crate::frame::operators::{Append, Mood, Moody};
use crate::frame::small::{DIR, plain, plain_at, threaded};
use crate::frame::watchdog::ends;
use lsmith::env::{Env, MemEnv};
use lsmith::inspect::{FileType, TableFile};
use lsmith::{
    Batch, ErrorKind, FindingKind, IngestOptions, Keyspace, KeyspaceOptions, PersistMode,
    RepairOptions, SeqNo, Store, TableWriter, TableWriterOptions, repair,
};
use std::path::Path;
use std::sync::Arc;

fn with(operator: &str) -> KeyspaceOptions {
    KeyspaceOptions { operator: Some(operator.into()), ..KeyspaceOptions::default() }
}

fn open(env: &MemEnv, moody: &Moody) -> Store {
    let builder = threaded(env).memtable_bytes(3000).threads(2);
    builder.operator(Append).operator(moody.clone()).open().unwrap()
}

fn get_number(space: &Keyspace, key: &str) -> Option<i64> {
    space.get(key).unwrap().map(|value| i64::from_le_bytes(value[..].try_into().unwrap()))
}

#[test]
fn combines_apply_to_whatever_is_there() {
    let env = MemEnv::new();
    let store = open(&env, &Moody::new(Mood::Good));
    let notes = store.keyspace_with("notes", &with("append")).unwrap();
    assert_eq!(notes.operator().as_deref(), Some("append"));
    notes.combine("absent", "a").unwrap();
    notes.put("put", "v").unwrap();
    notes.combine("put", "a").unwrap();
    notes.put_new_unchecked("inserted", "v").unwrap();
    notes.combine("inserted", "a").unwrap();
    notes.put("deleted", "v").unwrap();
    notes.delete("deleted").unwrap();
    notes.combine("deleted", "a").unwrap();
    let before = store.snapshot();
    let mut batch = Batch::new();
    for key in ["absent", "put", "inserted", "deleted"] {
        batch.combine(&notes, key, "b");
        batch.combine(&notes, key, "c");
    }
    store.write(batch, PersistMode::Buffer).unwrap();
    let check = |notes: &Keyspace| {
        let expected =
            [("absent", "abc"), ("deleted", "abc"), ("inserted", "vabc"), ("put", "vabc")];
        for (key, value) in expected {
            assert_eq!(get(notes, key).as_deref(), Some(value), "{key}");
        }
        let found: Vec<_> = notes.iter().map(|entry| entry.unwrap()).collect();
        assert!(
            found
                .iter()
                .map(|(key, value)| (&key[..], &value[..]))
                .eq(expected.iter().map(|(key, value)| (key.as_bytes(), value.as_bytes())))
        );
        let mut back: Vec<_> = notes.iter().rev().map(|entry| entry.unwrap()).collect();
        back.reverse();
        assert_eq!(back, found);
    };
    check(&notes);
    for _ in 0..2 {
        store.flush().unwrap();
        check(&notes);
        assert_eq!(before.get(&notes, "put").unwrap().unwrap(), "va");
        notes.merge().unwrap();
        assert_eq!(before.get(&notes, "absent").unwrap().unwrap(), "a");
    }
    drop(before);
    notes.merge().unwrap();
    check(&notes);
    // A remove of what was inserted once takes the combined value away.
    notes.delete_single_unchecked("inserted").unwrap();
    notes.merge().unwrap();
    assert_eq!(get(&notes, "inserted"), None);
    drop((notes, store));
    let store = open(&env, &Moody::new(Mood::Good));
    assert_eq!(get(&store.keyspace("notes").unwrap(), "put").as_deref(), Some("vabc"));
}

/// Combines of one key in every memtable, below and above a snapshot: reads go through all runs,
/// and merges leave one value.
#[test]
fn merges_leave_one_value_of_a_counter() {
    let env = MemEnv::new();
    let builder = plain(&env).lockstep(true);
    let store = builder.policy("tiered(ratio=20)").memtable_bytes(2000).open().unwrap();
    let visits = store.keyspace_with("visits", &with("counter")).unwrap();
    for round in 1..=10_i64 {
        for page in 0..20 {
            visits.combine(format!("page {page}"), round.to_le_bytes()).unwrap();
        }
        store.flush().unwrap();
    }
    assert!(visits.tree().disk_runs().count() > 5, "runs wait to be merged");
    assert_eq!(get_number(&visits, "page 7"), Some(55));
    visits.merge().unwrap();
    let tree = visits.tree();
    let entries: u64 = tree.disk_runs().map(|run| run.size().entries).sum();
    assert_eq!(entries, 20, "{tree}");
    assert_eq!(get_number(&visits, "page 7"), Some(55));
    let tables = env.list(Path::new(DIR)).unwrap();
    let path = |name: &String| Path::new(DIR).join(name);
    let is_table =
        |path: &std::path::PathBuf| FileType::of(path).is_some_and(|of| of.0 == FileType::Table);
    for path in tables.iter().map(path).filter(is_table) {
        let table = TableFile::open(&env, &path).unwrap();
        let blocks = (0..table.block_count()).map(|index| table.block(index).unwrap().unwrap());
        let kinds: Vec<_> =
            blocks.flat_map(|block| block.entries).map(|entry| entry.kind).collect();
        assert!(kinds.iter().all(|kind| kind.is_value()), "{kinds:?}");
    }
}

#[test]
fn store_without_its_operator_does_not_open() {
    let env = MemEnv::new();
    let store = open(&env, &Moody::new(Mood::Good));
    let notes = store.keyspace_with("notes", &with("append")).unwrap();
    notes.combine("key", "a").unwrap();
    let group = KeyspaceOptions { group: Some("all".into()), ..with("moody") };
    store.keyspace_with("rows", &group).unwrap().combine("key", "b").unwrap();
    drop((notes, store));
    let builder = || plain(&env);
    for read_only in [false, true] {
        let error = builder().read_only(read_only).open().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let message =
            "keyspace `notes` needs the combine operator `append`, which is not registered";
        assert_eq!(error.message(), message);
        let error = builder().operator(Append).read_only(read_only).open().unwrap_err();
        assert!(error.message().contains("keyspace `rows`"), "{error}");
        assert!(error.message().contains("operator `moody`"), "{error}");
    }
    let store = open(&env, &Moody::new(Mood::Good));
    assert_eq!(get(&store.keyspace("notes").unwrap(), "key").as_deref(), Some("a"));
    assert_eq!(get(&store.keyspace("rows").unwrap(), "key").as_deref(), Some("b"));
}

#[test]
fn keyspace_has_its_operator_from_the_beginning() {
    let env = MemEnv::new();
    let store = open(&env, &Moody::new(Mood::Good));
    let error = store.keyspace_with("notes", &with("unknown")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("`unknown`"), "{error}");
    let plain = store.keyspace("plain").unwrap();
    let error = store.keyspace_with("plain", &with("append")).unwrap_err();
    assert!(error.message().contains("with no combine operator, not append"), "{error}");
    let notes = store.keyspace_with("notes", &with("append")).unwrap();
    let error = store.keyspace_with("notes", &with("moody")).unwrap_err();
    assert!(error.message().contains("with the operator append, not moody"), "{error}");
    let error = plain.combine("key", "a").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.message().contains("`plain` has no combine operator"), "{error}");
    let mut batch = Batch::new();
    batch.combine(&notes, "key", "a");
    batch.combine(&plain, "key", "a");
    let error = store.write(batch, PersistMode::Buffer).unwrap_err();
    assert!(error.message().contains("write 2 of the batch, a combine"), "{error}");
    assert_eq!(get(&notes, "key"), None, "the batch left nothing");
    let error = plain_at("/other", &env).operator(BadName).open();
    assert_eq!(error.unwrap_err().kind(), ErrorKind::InvalidArgument);
}

struct BadName;

impl lsmith::Combine for BadName {
    fn name(&self) -> &str {
        "two words"
    }

    fn combine(
        &self,
        _: &[u8],
        _: Option<&[u8]>,
        _: &[&[u8]],
    ) -> Result<Vec<u8>, lsmith::CombineError> {
        Ok(Vec::new())
    }
}

/// The operator fails in reads, which is an error of the key, then in a flush and in a merge, which
/// keep the operands. Nothing is lost.
#[test]
fn failing_operator_costs_only_what_needs_it() {
    for mood in [Mood::Panics, Mood::Fails, Mood::Exaggerates] {
        ends(move || {
            let env = MemEnv::new();
            let moody = Moody::new(Mood::Good);
            let store = open(&env, &moody);
            let notes = store.keyspace_with("notes", &with("moody")).unwrap();
            notes.put("a", "v").unwrap();
            notes.put("b", "v").unwrap();
            store.flush().unwrap();
            moody.set(mood);
            for operand in ["1", "2"] {
                notes.combine("b", operand).unwrap();
            }
            assert_eq!(get(&notes, "a").as_deref(), Some("v"), "no operator is needed");
            assert_eq!(notes.get("b").unwrap_err().kind(), ErrorKind::Callback);
            assert_eq!(notes.contains("b").unwrap_err().kind(), ErrorKind::Callback);
            let mut entries = notes.iter();
            assert_eq!(entries.next().unwrap().unwrap().0, "a");
            assert_eq!(entries.next().unwrap().unwrap_err().kind(), ErrorKind::Callback);
            assert!(entries.next().is_none(), "there is no key behind");
            let back = notes.iter().next_back().unwrap();
            assert_eq!(back.unwrap_err().kind(), ErrorKind::Callback);
            store.flush().unwrap();
            notes.merge().unwrap();
            let error = notes.get("b").unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Callback, "{error}");
            assert!(error.to_string().contains("operator of keyspace `notes`"), "{error}");
            notes.put("c", "v").unwrap();
            assert_eq!(get(&notes, "c").as_deref(), Some("v"), "the store is not poisoned");
            moody.set(Mood::Good);
            assert_eq!(get(&notes, "b").as_deref(), Some("v12"));
            notes.merge().unwrap();
            assert_eq!(get(&notes, "b").as_deref(), Some("v12"));
            assert!(store.verify().unwrap().is_empty());
            // The same across a reopening in a bad mood.
            notes.combine("b", "3").unwrap();
            drop((entries, notes, store));
            moody.set(mood);
            let store = open(&env, &moody);
            let notes = store.keyspace("notes").unwrap();
            assert_eq!(notes.get("b").unwrap_err().kind(), ErrorKind::Callback);
            moody.set(Mood::Good);
            assert_eq!(get(&notes, "b").as_deref(), Some("v123"));
        });
    }
}

#[test]
fn keyspaces_of_a_group_have_operators_of_their_own() {
    let env = MemEnv::new();
    let store = open(&env, &Moody::new(Mood::Good));
    let member = |name: &str, operator: Option<&str>| {
        let options = KeyspaceOptions {
            group: Some("all".into()),
            operator: operator.map(String::from),
            policy: Some("minlatency(k=2)".into()),
            ..KeyspaceOptions::default()
        };
        store.keyspace_with(name, &options).unwrap()
    };
    let plain = member("plain", None);
    let notes = member("notes", Some("append"));
    let visits = member("visits", Some("counter"));
    assert!(plain.combine("key", "a").is_err());
    for _ in 0..3 {
        let mut batch = Batch::new();
        batch.put(&plain, "key", "v");
        batch.combine(&notes, "key", "a");
        batch.combine(&visits, "key", 2_i64.to_le_bytes());
        store.write(batch, PersistMode::Buffer).unwrap();
        store.flush().unwrap();
    }
    let check = |store: &Store| {
        assert_eq!(get(&store.keyspace("notes").unwrap(), "key").as_deref(), Some("aaa"));
        assert_eq!(get_number(&store.keyspace("visits").unwrap(), "key"), Some(6));
    };
    check(&store);
    notes.merge().unwrap();
    check(&store);
    drop((plain, notes, visits, store));
    let store = open(&env, &Moody::new(Mood::Good));
    check(&store);
    drop(store);
    let mut options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    options.operators.add(Arc::new(Append));
    repair(&options, DIR, "/saved").unwrap();
    check(&Store::builder("/saved").env(Arc::new(env)).operator(Append).open().unwrap());
}

/// An entry that arrives with a number goes between the combines that it is older and newer than.
#[test]
fn ingested_entries_go_between_combines_by_their_numbers() {
    let env = MemEnv::new();
    for merged in [false, true] {
        let dir = format!("/ingest {merged}");
        let builder = plain_at(&dir, &env).operator(Append);
        let store = builder.lockstep(true).open().unwrap();
        let options = KeyspaceOptions { keep_numbers: Some(true), ..with("append") };
        let notes = store.keyspace_with("notes", &options).unwrap();
        notes.combine("key", "1").unwrap();
        let middle = store.snapshot().seq();
        for operand in ["2", "3"] {
            store.flush().unwrap();
            notes.combine("key", operand).unwrap();
        }
        let path = format!("/table {merged}");
        let options =
            TableWriterOptions { env: Arc::new(env.clone()), ..TableWriterOptions::default() };
        let mut writer = TableWriter::create_with(&path, &options).unwrap();
        writer.put_at("key", "v", SeqNo(middle.0)).unwrap();
        writer.finish().unwrap();
        // The number of the first combine is taken.
        let clash = store.ingest(&notes, &[&path], &IngestOptions::default());
        assert!(clash.is_err(), "{clash:?}");
        let mut writer = TableWriter::create_with(format!("{path} 2"), &options).unwrap();
        writer.put_at("key", "v", SeqNo(middle.0 + 100)).unwrap();
        writer.finish().unwrap();
        if merged {
            notes.merge().unwrap();
        }
        store.ingest(&notes, &[format!("{path} 2")], &IngestOptions::default()).unwrap();
        assert_eq!(get(&notes, "key").as_deref(), Some("v"), "newer than all combines");
        notes.combine("key", "4").unwrap();
        notes.merge().unwrap();
        assert_eq!(get(&notes, "key").as_deref(), Some("v4"));
    }
}

#[test]
fn bulk_load_hides_combines_and_export_writes_values() {
    let env = MemEnv::new();
    let store = open(&env, &Moody::new(Mood::Good));
    let options = KeyspaceOptions { keep_numbers: Some(true), ..with("append") };
    let notes = store.keyspace_with("notes", &options).unwrap();
    notes.combine("a", "1").unwrap();
    notes.combine("b", "1").unwrap();
    let mut load = notes.bulk_load().unwrap();
    load.put("a", "v").unwrap();
    load.finish().unwrap();
    notes.combine("a", "2").unwrap();
    notes.combine("b", "2").unwrap();
    assert_eq!(get(&notes, "a").as_deref(), Some("v2"));
    assert_eq!(get(&notes, "b").as_deref(), Some("12"));
    let options =
        TableWriterOptions { env: Arc::new(env.clone()), ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with("/exported", &options).unwrap();
    assert_eq!(store.snapshot().export::<&[u8]>(&notes, .., &mut writer).unwrap(), 2);
    writer.finish().unwrap();
    let other = store.keyspace_with(
        "other",
        &KeyspaceOptions { keep_numbers: Some(true), ..KeyspaceOptions::default() },
    );
    let other = other.unwrap();
    store.ingest(&other, &["/exported"], &IngestOptions::default()).unwrap();
    assert_eq!(get(&other, "a").as_deref(), Some("v2"));
    assert_eq!(get(&other, "b").as_deref(), Some("12"));
}

/// Combines in a spill, in the log and in runs.
#[test]
fn repair_saves_what_combines_make() {
    let env = MemEnv::new();
    let moody = Moody::new(Mood::Good);
    let store = open(&env, &moody);
    let notes = store.keyspace_with("notes", &with("moody")).unwrap();
    notes.put("put", "v").unwrap();
    for operand in ["1", "2", "3"] {
        notes.combine("put", operand).unwrap();
        notes.combine("bare", operand).unwrap();
        store.flush().unwrap();
    }
    for operand in ["4", "5"] {
        notes.combine("put", operand).unwrap();
        notes.combine("bare", operand).unwrap();
        notes.combine("new", operand).unwrap();
    }
    store.persist(PersistMode::SyncAll).unwrap();
    let disk = env.process_crash_clone();
    let mut options = RepairOptions { env: Arc::new(disk.clone()), ..RepairOptions::default() };
    let error = repair(&options, DIR, "/none").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    options.operators.add(Arc::new(moody.clone()));
    let report = repair(&options, DIR, "/saved").unwrap();
    assert!(report.is_exact(), "{report:?}");
    let builder = |dir| plain_at(dir, &disk).operator(moody.clone());
    let saved = builder("/saved").open().unwrap();
    let notes = saved.existing_keyspace("notes").unwrap();
    assert_eq!(get(&notes, "put").as_deref(), Some("v12345"));
    assert_eq!(get(&notes, "bare").as_deref(), Some("12345"));
    assert_eq!(get(&notes, "new").as_deref(), Some("45"));
    assert_eq!(notes.operator().as_deref(), Some("moody"));
    // An operator that fails costs its keys, and the report says which.
    moody.set(Mood::Panics);
    let report = repair(&options, DIR, "/poor").unwrap();
    let lost = report.findings.iter().filter(|finding| {
        let is_lost = matches!(finding.kind, FindingKind::LostKeys { .. });
        is_lost && finding.message.contains("panicked: bad mood")
    });
    assert!(lost.count() >= 2, "{report:?}");
}
