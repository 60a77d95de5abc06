//! Readers that a writer overtakes while they open a store.
//!
//! Promised: a reader that looks at files while a writer changes them sees no damage, and nothing
//! by halves.

use super::contents::files;
use crate::frame::scripted::{Call, Op, Scripted, When};
use crate::frame::small::{DIR, reader, small};
use lsmith::env::{Env, MemEnv};
use lsmith::{Batch, KeyspaceOptions, PersistMode};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::thread;

/// Returns `disk`, whose logs a first read shows without the bytes `missed`: the reader was there
/// before a record was appended, and the writer was faster.
fn overtaken(disk: &MemEnv, missed: std::ops::Range<usize>) -> impl Env + Clone + use<> {
    // Files that were opened, and not read since.
    let unread = Mutex::new(BTreeSet::new());
    Scripted::new(disk.clone(), move |call: &mut Call<'_>| {
        if call.is_done(Op::Open) && call.is_of("wal") {
            unread.lock().unwrap().insert(call.path.to_path_buf());
        } else if call.is_done(Op::Read)
            && call.read.len() > missed.end
            && unread.lock().unwrap().remove(call.path)
        {
            call.read[missed.clone()].fill(0);
        }
        Ok(())
    })
}

#[test]
fn a_reader_that_a_writer_overtakes_sees_no_damage() {
    let disk = MemEnv::new();
    let store = small(&disk).policy("constant(k=1)").open().unwrap();
    let space = store.keyspace("a").unwrap();
    for number in 0..10_u8 {
        let mut batch = Batch::new();
        batch.put(&space, [number], [number; 40]);
        // A later record says that this one was synced.
        store.write(batch, PersistMode::SyncData).unwrap();
    }
    let log = files(&disk).into_iter().rfind(|name| name.ends_with("wal")).unwrap();
    let log = lsmith::inspect::LogFile::open(&disk, &Path::new(DIR).join(log)).unwrap();
    let records: Vec<_> = log.records().collect();
    assert!(records.len() > 8 && records.last().unwrap().marked);
    // What the last record lacks was not there yet.
    for record in &records[..records.len() - 1] {
        for bytes in [8, record.bytes as usize] {
            let start = record.offset as usize;
            let read = reader(&overtaken(&disk, start..start + bytes)).open().unwrap();
            assert_eq!(read.existing_keyspace("a").unwrap().iter().count(), 10);
        }
    }
}

/// Returns `disk`, where `act` is done when a directory has been listed for the first time.
fn listed_then<A: FnOnce() + Send + 'static>(disk: &MemEnv, act: A) -> impl Env + Clone + use<A> {
    let act = Mutex::new(Some(act));
    Scripted::new(disk.clone(), move |call: &mut Call<'_>| {
        if call.op == Op::List && call.when != When::Before {
            let act = act.lock().unwrap().take();
            if let Some(act) = act {
                act();
            }
        }
        Ok(())
    })
}

/// The reader lists a log that nobody needs, and the writer removes it then.
#[test]
fn a_log_that_a_writer_removes_meanwhile_fails_no_opening() {
    let disk = MemEnv::new();
    let store = small(&disk).policy("constant(k=1)").open().unwrap();
    store.keyspace("a").unwrap().put("key", "1").unwrap();
    drop(store);
    // A writer that died had made it ahead.
    disk.create_log(&Path::new(DIR).join("000099.wal"), 4096).unwrap();
    let (at_removal, removing) = std::sync::mpsc::channel();
    let (listed, may_remove) = std::sync::mpsc::channel();
    let may_remove = Mutex::new(may_remove);
    let writer = Scripted::new(disk.clone(), move |call: &mut Call<'_>| {
        if call.is_before(Op::Remove) && call.path.ends_with("000099.wal") {
            at_removal.send(()).unwrap();
            may_remove.lock().unwrap().recv().unwrap();
        }
        Ok(())
    });
    thread::scope(|scope| {
        let writing = scope.spawn(|| small(&writer).policy("constant(k=1)").open().unwrap());
        removing.recv().unwrap();
        let path = Path::new(DIR).join("000099.wal");
        let there = disk.clone();
        let env = listed_then(&disk, move || {
            listed.send(()).unwrap();
            while there.file_bytes(&path).is_ok() {
                thread::yield_now();
            }
        });
        let read = reader(&env).open().unwrap();
        let value = read.existing_keyspace("a").unwrap().get("key").unwrap();
        assert_eq!(value.as_deref(), Some(&b"1"[..]));
        drop(writing.join().unwrap());
    });
}

/// The manifest is read before the keyspace is made, and the logs are read after it was written.
#[test]
fn a_batch_to_a_new_keyspace_of_a_group_is_seen_as_a_whole() {
    for (member, group) in [("two", Some("g")), ("two", None)] {
        let disk = MemEnv::new();
        let store = small(&disk).policy("constant(k=1)").memtable_bytes(1 << 20).open().unwrap();
        let options = KeyspaceOptions { group: group.map(str::to_string), ..Default::default() };
        let one = store.keyspace_with("one", &options).unwrap();
        one.put("before", "0").unwrap();
        let env = listed_then(&disk, move || {
            let two = store.keyspace_with(member, &options).unwrap();
            let mut batch = Batch::new();
            batch.put(&one, "key", "1");
            batch.put(&two, "key", "1");
            store.write(batch, PersistMode::Buffer).unwrap();
            std::mem::forget((store, one, two));
        });
        let read = reader(&env).open().unwrap();
        let sees = |name: &str| {
            let space = read.existing_keyspace(name).ok()?;
            space.get("key").unwrap()
        };
        assert_eq!(sees("one"), sees("two"), "a batch is torn, group {group:?}");
        read.refresh().unwrap();
        assert_eq!(sees("one"), sees("two"));
        assert!(sees("two").is_some());
    }
}
