//! Tables that are written outside of a store and ingested.
//!
//! Promised: the entries of all files of a call are newer than all earlier writes and older than
//! all later ones, under every policy. They appear at once or not at all, for readers, for
//! snapshots, and after a crash at any moment. When the call has returned they survive power loss.
//! A file that is no whole, sound table from outside is refused, with all others of the call, and
//! leaves nothing behind. A file that is copied stays as it is.

use crate::dice::Dice;
use crate::frame::contents::{Map, contents};
use crate::frame::small::{DIR, open, plain, plain_at, threaded};
use crate::ingest::mixed::{mix, under_every_policy};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, RealEnv};
use lsmith::{
    Builder, ErrorKind, IngestOptions, Keyspace, KeyspaceOptions, Loaded, PersistMode,
    RepairOptions, Store, TableWriter, TableWriterOptions, repair,
};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Returns the builder of a store that flushes after a few writes.
fn builder(env: &(impl Env + Clone)) -> Builder {
    threaded(env).memtable_bytes(2000)
}

/// The entries of a table: `None` deletes a key.
pub(crate) type Changes = BTreeMap<Vec<u8>, Option<Vec<u8>>>;

pub(crate) fn key(number: usize) -> Vec<u8> {
    format!("{number:05}").into_bytes()
}

/// Puts the numbers with `value`, and deletes every fifth of them.
fn changes(numbers: impl IntoIterator<Item = usize>, value: &str) -> Changes {
    let change = |number: usize| (!number.is_multiple_of(5)).then(|| value.as_bytes().to_vec());
    numbers.into_iter().map(|number| (key(number), change(number))).collect()
}

fn apply(map: &mut Map, changes: &Changes) {
    for (key, change) in changes {
        match change {
            Some(value) => map.insert(key.clone(), value.clone()),
            None => map.remove(key),
        };
    }
}

/// Writes `changes` to a table at `path`, in small blocks.
pub(crate) fn write_table(env: &MemEnv, path: &str, changes: &Changes) -> PathBuf {
    let path = PathBuf::from(path);
    let mut options = TableWriterOptions { block_bytes: 200, ..TableWriterOptions::default() };
    options.env = Arc::new(env.clone());
    let mut writer = TableWriter::create_with(&path, &options).unwrap();
    for (key, change) in changes {
        match change {
            Some(value) => writer.put(key, value).unwrap(),
            None => writer.delete(key).unwrap(),
        }
    }
    assert_eq!(writer.finish().unwrap().entries, changes.len() as u64);
    path
}

pub(crate) fn ingest(space: &Keyspace, files: &[PathBuf], link: bool) -> lsmith::Result<Loaded> {
    space.store().ingest(space, files, &IngestOptions::default().link(link))
}

pub(crate) fn tables(env: &dyn Env) -> usize {
    let names = env.list(Path::new(DIR)).unwrap();
    names.iter().filter(|name| name.ends_with(".table")).count()
}

pub(crate) fn bytes(env: &dyn Env, path: &Path) -> Vec<u8> {
    let file = env.open(path).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

pub(crate) fn write_file(env: &dyn Env, path: &Path, bytes: &[u8]) {
    let mut file = env.create(path).unwrap();
    file.write_all(bytes).unwrap();
    file.sync().unwrap();
}

#[test]
fn tables_are_newer_than_what_was_and_older_than_what_comes() {
    for link in [false, true] {
        let env = MemEnv::new();
        let (store, space) = open(builder(&env).lockstep(true));
        let mut expected = Map::new();
        for number in 0..300 {
            space.put(key(number), "first").unwrap();
            expected.insert(key(number), b"first".to_vec());
        }
        let before = store.snapshot();
        // Not in key order.
        let second = changes((500..900).step_by(2), "second");
        let first = changes(100..400, "ingested");
        let files = [write_table(&env, "/second", &second), write_table(&env, "/first", &first)];
        let made = files.each_ref().map(|file| bytes(&env, file));
        let ingested = ingest(&space, &files, link).unwrap();
        assert_eq!((ingested.tables, ingested.entries), (2, 500));
        assert_eq!(store.stats().load_bytes, ingested.table_bytes);
        assert_eq!(before.range::<&[u8]>(&space, ..).count(), 300);
        assert_eq!(before.get(&space, key(100)).unwrap().unwrap(), "first");
        drop(before);
        apply(&mut expected, &first);
        apply(&mut expected, &second);
        assert_eq!(contents(&space), expected);
        assert_eq!(space.get(key(100)).unwrap(), None);
        assert_eq!(space.get(key(101)).unwrap().unwrap(), "ingested");

        space.put(key(101), "last").unwrap();
        space.delete(key(102)).unwrap();
        expected.insert(key(101), b"last".to_vec());
        expected.remove(&key(102));
        assert_eq!(contents(&space), expected);
        if !link {
            assert_eq!(files.each_ref().map(|file| bytes(&env, file)), made);
        }
        for file in &files {
            env.remove_file(file).unwrap();
        }
        store.flush().unwrap();
        assert!(store.verify().unwrap().is_empty());
        drop((space, store));
        let (store, space) = open(builder(&env));
        assert_eq!(contents(&space), expected);
        assert!(store.verify().unwrap().is_empty());
        space.merge().unwrap();
        assert_eq!(contents(&space), expected);
        assert!(store.verify().unwrap().is_empty());
    }
}

#[test]
fn one_file_may_be_ingested_again_and_again() {
    let env = MemEnv::new();
    let (store, space) = open(builder(&env));
    let file = [write_table(&env, "/made", &changes(0..50, "ingested"))];
    for round in 0..4 {
        space.put(key(1), "written").unwrap();
        space.put(key(5), "written").unwrap();
        ingest(&space, &file, round % 2 == 1).unwrap();
        assert_eq!(space.get(key(1)).unwrap().unwrap(), "ingested");
        assert_eq!(space.get(key(5)).unwrap(), None);
    }
    space.merge().unwrap();
    assert_eq!(contents(&space).len(), 40);
    assert!(store.verify().unwrap().is_empty());
}

/// A linked file shares its blocks with all its other names.
#[test]
fn no_hole_is_punched_into_a_file_that_others_may_use() {
    let env = MemEnv::new();
    let entries: Map = (0..8000).map(|number| (key(number), vec![1; 100])).collect();
    let changes = entries.iter().map(|(key, value)| (key.clone(), Some(value.clone())));
    let file = [write_table(&env, "/made", &changes.collect())];
    let open = |dir| {
        let builder = plain_at(dir, &env).memtable_bytes(64 << 10);
        let store = builder.policy("choose_best(ratio=3, rate=0.2)").lockstep(true).open().unwrap();
        let space = store.keyspace("default").unwrap();
        (store, space)
    };
    let (written, space) = open("/written");
    let (other, kept) = open("/other");
    ingest(&space, &file, true).unwrap();
    ingest(&kept, &file, true).unwrap();
    let made = bytes(&env, &file[0]);
    let mut expected = entries.clone();
    for number in 0..4000 {
        let key = key(number * 3919 % 8000);
        space.put(&key, [2; 100]).unwrap();
        expected.insert(key, vec![2; 100]);
    }
    let stats = space.stats();
    assert!(stats.dead_bytes > 100_000, "{stats:?}");
    assert_eq!(bytes(&env, &file[0]), made);
    assert_eq!(contents(&kept), entries);
    assert_eq!(contents(&space), expected);
    for store in [written, other] {
        assert!(store.verify().unwrap().is_empty());
    }
}

/// Makes a store with one entry, which every refusal must leave alone.
pub(crate) fn small_store(env: &MemEnv) -> (Store, Keyspace) {
    let (store, space) = open(builder(env));
    space.put(key(3), "kept").unwrap();
    (store, space)
}

/// Asserts that ingesting `files` is refused as a whole, with an error that `says` so.
#[track_caller]
pub(crate) fn assert_refused(
    env: &MemEnv,
    space: &Keyspace,
    files: &[PathBuf],
    says: &str,
) -> ErrorKind {
    for link in [false, true] {
        let before = tables(env);
        let error = ingest(space, files, link).unwrap_err();
        assert!(error.to_string().contains(says), "{error}");
        assert_eq!(tables(env), before);
        assert_eq!(contents(space), Map::from([(key(3), b"kept".to_vec())]));
        space.put(key(3), "kept").unwrap();
    }
    ingest(space, files, false).unwrap_err().kind()
}

#[test]
fn what_is_no_sound_table_from_outside_is_refused_whole() {
    let env = MemEnv::new();
    let (store, space) = small_store(&env);
    let good = write_table(&env, "/good", &changes(0..100, "ingested"));
    let refused = |name: &str, says: &str| {
        let files = [good.clone(), PathBuf::from(name)];
        assert_refused(&env, &space, &files, says)
    };
    assert_eq!(refused("/nothing", "/nothing"), ErrorKind::Io);
    write_file(&env, Path::new("/empty"), b"");
    assert_eq!(refused("/empty", "too short"), ErrorKind::Corruption);
    write_file(&env, Path::new("/text"), &b"no table at all. ".repeat(50));
    assert_eq!(refused("/text", "/text"), ErrorKind::Corruption);

    store.flush().unwrap();
    let names = env.list(Path::new(DIR)).unwrap();
    let own = names.iter().find(|name| name.ends_with(".table")).unwrap();
    let own = format!("{DIR}/{own}");
    let says = "expected a table written outside of a store, found table ";
    assert_eq!(refused(&own, says), ErrorKind::Corruption);
    write_table(&env, "/overlaps", &changes(99..300, "ingested"));
    assert_eq!(refused("/overlaps", "share keys from `00099` on"), ErrorKind::InvalidArgument);
    assert_eq!(refused("/good", "share keys"), ErrorKind::InvalidArgument);
    assert!(store.verify().unwrap().is_empty());
}

/// Keeps the sequence numbers of all entries.
pub(crate) fn numbered(store: &Store) -> Keyspace {
    let options = KeyspaceOptions { keep_numbers: Some(true), ..KeyspaceOptions::default() };
    store.keyspace_with("numbered", &options).unwrap()
}

/// A report that panics comes after its entry, which then has its place in the order.
#[test]
fn a_report_that_panics_leaves_the_writer_as_it_is_after_the_entry() {
    let env = MemEnv::new();
    let options =
        TableWriterOptions { env: Arc::new(env.clone()), ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with("/table", &options).unwrap();
    writer.on_progress(|_| panic!("a bad report"));
    (0..4095_u32).for_each(|number| writer.put(number.to_be_bytes(), "value").unwrap());
    let last = 4095_u32.to_be_bytes();
    let put = |writer: &mut TableWriter| writer.put(last, "value");
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| put(&mut writer)));
    assert!(panicked.is_err());
    assert_eq!(put(&mut writer).unwrap_err().kind(), ErrorKind::InvalidArgument);
    writer.put(4096_u32.to_be_bytes(), "value").unwrap();
    assert_eq!(writer.finish().unwrap().entries, 4097);
}

#[test]
fn export_says_how_far_it_is() {
    let env = MemEnv::new();
    let store = plain(&env).open().unwrap();
    let space = store.keyspace("space").unwrap();
    for number in 0..10_000_u32 {
        space.put(number.to_be_bytes(), "value").unwrap();
    }
    let options =
        TableWriterOptions { env: Arc::new(env.clone()), ..TableWriterOptions::default() };
    for path in ["/newest", "/part"] {
        let mut writer = TableWriter::create_with(path, &options).unwrap();
        let (report, reports) = std::sync::mpsc::sync_channel(9);
        writer.on_progress(move |entries| report.send(entries).unwrap());
        let first = if path == "/part" { 5000_u32.to_be_bytes() } else { [0; 4] };
        store.snapshot().export_newest(&space, first.., &mut writer).unwrap();
        writer.finish().unwrap();
        let expected = if path == "/part" { &[4096][..] } else { &[4096, 8192] };
        assert_eq!(reports.iter().collect::<Vec<u64>>(), expected);
    }
}

#[test]
fn every_flipped_byte_and_every_cut_is_found() {
    let env = MemEnv::new();
    let (_store, space) = small_store(&env);
    let good = write_table(&env, "/good", &changes(0..40, "ingested"));
    let sound = bytes(&env, &good);
    let bad = [PathBuf::from("/bad")];
    for at in 0..sound.len() {
        let mut damaged = sound.clone();
        damaged[at] ^= 1 << (at % 8);
        write_file(&env, &bad[0], &damaged);
        let error = ingest(&space, &bad, at % 2 == 0).unwrap_err();
        assert_eq!(error.path(), Some(&*bad[0]), "byte {at}: {error}");
        env.remove_file(&bad[0]).unwrap();
        if at % 7 == 0 {
            write_file(&env, &bad[0], &sound[..at]);
            assert_refused(&env, &space, &bad, "/bad");
            env.remove_file(&bad[0]).unwrap();
        }
    }
    assert_eq!(tables(&env), 0);
    ingest(&space, &[good], false).unwrap();
}

#[test]
fn keyspaces_that_cannot_ingest_say_so() {
    let env = MemEnv::new();
    let (store, space) = small_store(&env);
    let file = [write_table(&env, "/made", &changes(0..100, "ingested"))];
    let none: [&str; 0] = [];
    let nothing = store.ingest(&space, &none, &IngestOptions::default()).unwrap();
    assert_eq!(nothing, Loaded::default());

    let group = KeyspaceOptions { group: Some("fruit".into()), ..KeyspaceOptions::default() };
    let member = store.keyspace_with("apples", &group).unwrap();
    let error = ingest(&member, &file, false).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert!(error.to_string().contains("use a bulk load"), "{error}");
    let (_other, foreign) = open(plain_at("/other", &env));
    let error = store.ingest(&foreign, &file, &IngestOptions::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    assert_eq!(tables(&env), 0);
    store.persist(PersistMode::SyncAll).unwrap();
    drop((member, space, store));
    let (_store, space) = open(builder(&env).read_only(true));
    assert_eq!(ingest(&space, &file, false).unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_table_is_complete_or_gone() {
    let disk = MemEnv::new();
    let env = FaultEnv::new(Arc::new(disk.clone()));
    let options =
        TableWriterOptions { env: Arc::new(env.clone()), ..TableWriterOptions::default() };
    let path = Path::new("/made");
    let there = || disk.list(Path::new("/")).unwrap().contains(&"made".to_string());
    let empty = TableWriter::create_with(path, &options).unwrap();
    assert_eq!(empty.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    assert!(!there());
    let mut operations = 0;
    loop {
        let mut writer = TableWriter::create_with(path, &options).unwrap();
        let kind = io::ErrorKind::Other;
        env.set(Fault { class: None, after: operations, lasting: Lasting::Once, kind });
        let mut written = Ok(());
        for number in 0..20_000 {
            if number % 10_000 == 3 {
                let wrong = writer.put("0", "out of order").unwrap_err();
                assert_eq!(wrong.kind(), ErrorKind::InvalidArgument);
            }
            written = written.and_then(|()| writer.put(key(number), [7; 30]));
        }
        let failed = written.is_err();
        assert!(!failed || writer.put(key(20_001), "more").is_err());
        let finished = writer.finish();
        env.clear();
        assert_eq!(finished.is_ok(), there());
        assert!(!failed || finished.is_err());
        if finished.is_ok() {
            break;
        }
        operations += 1;
    }
    assert!(operations > 3, "{operations}");
}

/// Makes a store with entries in tables and in the log alone.
fn before_the_ingest(env: &MemEnv, lockstep: bool) -> Map {
    let (store, space) = open(builder(env).lockstep(lockstep));
    let mut old = Map::new();
    for number in 0..150 {
        space.put(key(number), "before").unwrap();
        old.insert(key(number), b"before".to_vec());
    }
    store.persist(PersistMode::SyncAll).unwrap();
    old
}

/// Crashes in the middle of an ingest, opens, ingests again and writes, and crashes again.
#[test]
fn an_ingest_cut_short_by_a_crash_is_there_or_not() {
    for (lockstep, power, link) in
        [(true, true, false), (true, true, true), (true, false, true), (false, true, false)]
    {
        let parts = [changes((100..200).step_by(3), "part"), changes(200..260, "part")];
        let mut outcomes = [0, 0];
        let mut operations = 0;
        loop {
            let disk = MemEnv::new();
            let old = before_the_ingest(&disk, lockstep);
            let mut new = old.clone();
            parts.iter().for_each(|part| apply(&mut new, part));
            let files =
                [write_table(&disk, "/one", &parts[0]), write_table(&disk, "/two", &parts[1])];
            let env = FaultEnv::new(Arc::new(disk.clone()));
            let (store, space) = open(builder(&env).lockstep(lockstep));
            let (lasting, kind) = (Lasting::Forever, io::ErrorKind::Other);
            env.set(Fault { class: None, after: operations, lasting, kind });
            let result = ingest(&space, &files, link);
            let crashed = |disk: &MemEnv| match power {
                true => disk.crash_clone(operations, 0.3),
                false => disk.process_crash_clone(),
            };
            let copy = crashed(&disk);
            env.clear();
            if result.is_err() {
                let found = contents(&space);
                assert!(found == old || found == new);
            }
            drop((space, store));

            let (store, space) = open(builder(&copy).lockstep(lockstep));
            let mut found = contents(&space);
            let done = found == new;
            assert!(done || found == old, "torn by a crash after {operations} operations");
            assert!(done || result.is_err(), "lost");
            outcomes[usize::from(done)] += 1;
            assert!(store.verify().unwrap().is_empty());
            // The second life.
            let again = changes(120..240, "again");
            let file = [write_table(&copy, "/again", &again)];
            space.put(key(7), "between").unwrap();
            ingest(&space, &file, link).unwrap();
            found.insert(key(7), b"between".to_vec());
            apply(&mut found, &again);
            space.put(key(125), "later").unwrap();
            found.insert(key(125), b"later".to_vec());
            store.persist(PersistMode::SyncData).unwrap();
            let copy = crashed(&copy);
            drop((space, store));
            let store = builder(&copy).lockstep(lockstep).open().unwrap();
            assert_eq!(contents(&store.keyspace("default").unwrap()), found);
            store.flush().unwrap();
            assert!(store.verify().unwrap().is_empty());
            if result.is_ok() {
                break;
            }
            operations += 1;
        }
        assert!(outcomes[0] > 5 && outcomes[1] > 0, "{outcomes:?}");
    }
}

#[test]
fn random_ingests_between_random_writes() {
    under_every_policy(|dice, policy, lockstep| mix(dice, (policy, lockstep), arrive));
}

/// Ingests up to three tables in random order.
fn arrive(dice: &mut Dice, env: &MemEnv, (space, map): (&Keyspace, &mut Map), value: &str) {
    let mut files = Vec::new();
    let mut from = dice.below(100);
    for part in 0..=dice.below(3) {
        let upto = from + 1 + dice.below(150);
        let part_of = changes((from..upto).step_by(1 + dice.below(9)), value);
        files.push(write_table(env, &format!("/{value}-{part}"), &part_of));
        apply(map, &part_of);
        from = upto + dice.below(100);
    }
    files.reverse();
    ingest(space, &files, dice.chance(50)).unwrap();
    files.iter().for_each(|file| env.remove_file(file).unwrap());
}

#[test]
fn repair_reads_ingested_tables_without_manifest_and_without_footer() {
    let env = MemEnv::new();
    let (store, space) = small_store(&env);
    let made = changes(100..200, "ingested");
    ingest(&space, &[write_table(&env, "/made", &made)], false).unwrap();
    store.flush().unwrap();
    let mut expected = contents(&space);
    apply(&mut expected, &made);
    drop((space, store));
    let names = env.list(Path::new(DIR)).unwrap();
    let manifest = names.iter().find(|name| name.ends_with(".manifest")).unwrap();
    env.remove_file(&Path::new(DIR).join(manifest)).unwrap();
    for name in names.iter().filter(|name| name.ends_with(".table")) {
        let path = Path::new(DIR).join(name);
        let mut damaged = bytes(&env, &path);
        damaged.pop();
        env.remove_file(&path).unwrap();
        write_file(&env, &path, &damaged);
    }
    let saved = Path::new("/saved");
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    let report = repair(&options, DIR, saved).unwrap();
    let store = Store::builder(saved).env(Arc::new(env)).open().unwrap();
    let space = store.keyspace(&report.keyspaces[0].name).unwrap();
    assert_eq!(contents(&space), expected);
}

#[test]
fn files_on_a_real_disk_are_linked_or_copied() {
    let dir = tempfile::tempdir().unwrap();
    let made = dir.path().join("made.table");
    let mut writer = TableWriter::create(&made).unwrap();
    for number in 0..10_000 {
        writer.put(key(number), "ingested").unwrap();
    }
    writer.finish().unwrap();
    for link in [true, false] {
        let path = dir.path().join(format!("store-{link}"));
        let (store, space) = open(Store::builder(&path));
        ingest(&space, std::slice::from_ref(&made), link).unwrap();
        assert_eq!(contents(&space).len(), 10_000);
        let mut found = std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
        let table = found.find(|path| path.extension().is_some_and(|end| end == "table"));
        let names = RealEnv::new().link_count(&table.unwrap()).unwrap();
        assert_eq!(names, if link { 2 } else { 1 });
        drop((space, store));
        let store = Store::builder(&path).env(Arc::new(RealEnv::new())).open().unwrap();
        assert!(store.verify().unwrap().is_empty());
        assert_eq!(contents(&store.keyspace("default").unwrap()).len(), 10_000);
    }
}
