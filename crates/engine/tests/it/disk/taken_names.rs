//! Files of others under the names that the store would use next.
//!
//! Promised: the store takes other names and goes on. It removes only files that it has made.

use crate::frame::contents::read_file;
use crate::frame::small::{DIR, small};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{
    Builder, DEFAULT_KEYSPACE, ErrorKind, IngestOptions, Keyspace, PersistMode, Store, TableWriter,
    TableWriterOptions,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// How many numbers, from the next one on, are taken by files of others.
const TAKEN: u64 = 20;

const KINDS: [&str; 4] = ["table", "wal", "spill", "manifest"];

const LETTER: &[u8] = b"a letter";

fn keyspace(store: &Store) -> Keyspace {
    store.keyspace(DEFAULT_KEYSPACE).unwrap()
}

fn put(store: &Store, count: u32) -> lsmith::Result<()> {
    let keyspace = keyspace(store);
    (0..count).try_for_each(|number| keyspace.put(number.to_be_bytes(), [7; 100]))
}

/// Takes the next numbers of the store. Returns the paths of the files.
fn take_next(env: &MemEnv) -> Vec<PathBuf> {
    let names = env.list(Path::new(DIR)).unwrap();
    let number = |name: &String| name.split_once('.')?.0.parse::<u64>().ok();
    let next = names.iter().filter_map(number).max().unwrap() + 1;
    let mut paths = Vec::new();
    for number in next..next + TAKEN {
        for kind in KINDS {
            let path = Path::new(DIR).join(format!("{number:06}.{kind}"));
            let mut file = env.create(&path).unwrap();
            file.write_all(LETTER).unwrap();
            file.sync().unwrap();
            paths.push(path);
        }
    }
    paths
}

/// Opens a store as `options` say, puts files of others in its way, and lets it `act`. It must
/// leave them alone, and make a file of `kind`.
fn gets_past(
    kind: &str,
    options: impl Fn(Builder) -> Builder,
    act: impl FnOnce(&Store, &FaultEnv) -> lsmith::Result<()>,
) {
    let disk = MemEnv::new();
    let env = FaultEnv::over(disk.clone());
    let store = options(small(&env)).open().unwrap();
    put(&store, 50).unwrap();
    let files = || -> Vec<String> {
        let names = disk.list(Path::new(DIR)).unwrap().into_iter();
        names.filter(|name| name.ends_with(&format!(".{kind}"))).collect()
    };
    let before = files();
    let letters = take_next(&disk);
    let taken = files();
    act(&store, &env).unwrap();
    assert!(files().iter().any(|name| !taken.contains(name)), "{kind}: {before:?} {:?}", files());
    let unharmed =
        |path: &&PathBuf| disk.file_bytes(path).is_ok() && read_file(&disk, path) == LETTER;
    let harmed: Vec<_> = letters.iter().filter(|path| !unharmed(path)).collect();
    assert!(harmed.is_empty(), "{harmed:?}");
    // What looks like a log of the store would be read as one.
    letters.iter().for_each(|path| disk.remove_file(path).unwrap());
    let read = |store: &Store| keyspace(store).iter().map(Result::unwrap).collect::<Vec<_>>();
    let expected = read(&store);
    drop(store);
    let store = options(small(&env)).open().unwrap();
    assert!(store.verify().unwrap().is_empty());
    assert!(read(&store) == expected);
}

/// What broke: the number of a table was noted before its file was made. So a failed flush removed
/// what others had there, and each further try removed the file under the next number.
#[test]
fn a_flush_gets_past_the_files_of_others() {
    gets_past("table", |builder| builder, |store, _| store.flush());
    gets_past(
        "table",
        |builder| builder.policy("jungle(c=1.5, ratio=2, table=400B)"),
        |store, _| store.flush(),
    );
}

#[test]
fn a_flush_that_fails_removes_only_its_own_file() {
    gets_past(
        "table",
        |builder| builder,
        |store, env| {
            let lasting = Lasting::Once;
            let kind = std::io::ErrorKind::Other;
            env.set(Fault { class: Some(OpClass::Sync), after: 0, lasting, kind });
            assert_eq!(store.flush().unwrap_err().kind(), ErrorKind::Io);
            store.retry();
            store.flush()
        },
    );
}

#[test]
fn a_load_gets_past_the_files_of_others() {
    let load = |finish: bool| {
        move |store: &Store, _: &FaultEnv| {
            let mut load = keyspace(store).bulk_load()?;
            for number in 0..1000_u32 {
                load.put(number.to_be_bytes(), [8; 100])?;
            }
            if finish {
                load.finish()?;
                return Ok(());
            }
            drop(load);
            store.flush()
        }
    };
    gets_past("table", |builder| builder, load(true));
    gets_past("table", |builder| builder, load(false));
}

#[test]
fn an_ingest_gets_past_the_files_of_others() {
    for link in [false, true] {
        gets_past(
            "table",
            |builder| builder,
            |store, _| {
                let env = Arc::clone(store.env());
                let options = TableWriterOptions { env, ..TableWriterOptions::default() };
                let mut table = TableWriter::create_with("/outside", &options)?;
                table.put("key", "value")?;
                table.finish()?;
                let options = IngestOptions::default().link(link);
                store.ingest(&keyspace(store), &["/outside"], &options).map(drop)
            },
        );
    }
}

#[test]
fn logs_and_manifests_get_past_the_files_of_others() {
    gets_past(
        "wal",
        |builder| builder,
        |store, _| {
            put(store, 3000)?;
            store.persist(PersistMode::SyncAll)
        },
    );
    gets_past(
        "manifest",
        |builder| builder,
        |store, _| {
            for number in 0..10_u8 {
                // The edit of the flush names the keys.
                keyspace(store).put([number; 60_000], "value")?;
                store.flush()?;
            }
            Ok(())
        },
    );
}

#[test]
fn spills_get_past_the_files_of_others() {
    gets_past(
        "spill",
        |builder| {
            let builder = builder.policy("choose_best(ratio=2, rate=0.2)").memtable_bytes(200_000);
            builder.log_bytes_max(100_000)
        },
        |store, _| put(store, 4000),
    );
}
