//! Foreign files in the directory of a store.
//!
//! Promised: files with names that no store gives stay as they are, and so do files with numbers
//! that no store reaches. They neither keep a store from opening nor change a counter. A name of
//! the store that is not a regular file is reported, with its path and its type, and nothing waits
//! for it. No symbolic link is followed except one to the directory itself. Files of the store
//! belong to their owner alone. A store in new directories, however deep, survives power loss.

use crate::frame::small::{open, small_at, small_on_disk};
#[cfg(unix)]
use lsmith::env::Env;
use lsmith::env::{MemEnv, RealEnv};
use lsmith::{Cache, PersistMode, Store};
use std::fs;
#[cfg(unix)]
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Names with the pattern of the store's own, but with numbers that it never uses.
const ABSURD: [&str; 9] = [
    "18446744073709551615.table",
    "18446744073709551614.table",
    "18446744073709551614.wal",
    "9223372036854775808.manifest",
    "1099511627776.table",
    "99999999999.spill",
    "0000012.table",
    "00000000000000000013.wal",
    "18446744073709551616.wal",
];

/// Makes a closed store with a table, and with an entry that is only in the log.
fn make_store(dir: &Path) {
    let (_store, keyspace) = open(small_on_disk(dir));
    keyspace.put("in a table", "1").unwrap();
    keyspace.flush().unwrap();
    keyspace.put("in the log", "2").unwrap();
}

fn check_store(store: &Store) {
    let keyspace = store.existing_keyspace("default").unwrap();
    assert_eq!(keyspace.get("in a table").unwrap().as_deref(), Some(&b"1"[..]));
    assert_eq!(keyspace.get("in the log").unwrap().as_deref(), Some(&b"2"[..]));
    assert_eq!(store.verify().unwrap().len(), 0);
}

/// Returns the result of `work`. Panics if it does not end.
fn in_time<T: Send + 'static>(told: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = channel();
    std::thread::spawn(move || send.send(work()));
    let done = receive.recv_timeout(Duration::from_secs(300));
    done.unwrap_or_else(|error| panic!("{told}: {error}"))
}

/// What broke: after a table with the greatest number the next number was 0, so that the store
/// overwrote its own files. A table with the number before that stopped it for ever.
#[test]
fn a_file_with_an_absurd_number_is_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    make_store(dir.path());
    let strangers = ABSURD.map(|name| dir.path().join(name));
    strangers.iter().for_each(|path| fs::write(path, "not ours").unwrap());
    for round in 0..3 {
        let store = small_on_disk(dir.path()).open().unwrap();
        check_store(&store);
        let keyspace = store.keyspace("default").unwrap();
        keyspace.put(format!("key {round}"), "value").unwrap();
        keyspace.flush().unwrap();
        assert_eq!(keyspace.iter().count(), 3 + round);
        drop((keyspace, store));
        check_store(&small_on_disk(dir.path()).read_only(true).open().unwrap());
    }
    for path in &strangers {
        assert_eq!(fs::read(path).unwrap(), b"not ours", "{}", path.display());
    }
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let numbers = names.filter(|path| !strangers.contains(path));
    let numbers = numbers.filter_map(|path| path.file_stem()?.to_str()?.parse::<u64>().ok());
    assert!(numbers.max().unwrap() < 1000, "the counter went on from a stranger's number");
}

/// What broke: blocks in a cache were named by the shifted number of the store and the number of
/// the table, so that a table with a large number had the name of a table of the next store.
#[test]
fn a_shared_cache_keeps_stores_apart_whatever_their_numbers() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::new(1 << 20);
    let open = |name: &str| {
        let builder = small_on_disk(dir.path().join(name)).cache(&cache);
        builder.env(Arc::new(RealEnv::new().unmapped())).open().unwrap()
    };
    small_on_disk(dir.path().join("left")).open().unwrap();
    fs::write(dir.path().join("left/1099511627776.table"), "").unwrap();
    let stores = ["left", "right"].map(|name| (name, open(name)));
    for (name, store) in &stores {
        let keyspace = store.keyspace("default").unwrap();
        keyspace.put("who", name).unwrap();
        keyspace.flush().unwrap();
    }
    for (name, store) in &stores {
        let found = store.keyspace("default").unwrap().get("who").unwrap();
        assert_eq!(found.as_deref(), Some(name.as_bytes()), "it answers with another's value");
    }
}

/// What can be put under a name of the store. Few may make links on Windows.
const OTHERS: &[&str] =
    if cfg!(unix) { &["FIFO", "directory", "socket", "symbolic link"] } else { &["directory"] };

/// Makes something other than a regular file at `path`: one of [`OTHERS`].
#[cfg(unix)]
fn put_in_the_way(what: &str, path: &Path, outside: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    match what {
        "FIFO" => mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap(),
        "directory" => fs::create_dir(path).unwrap(),
        "socket" => drop(std::os::unix::net::UnixListener::bind(path).unwrap()),
        "symbolic link" => symlink(outside, path).unwrap(),
        _ => unreachable!(),
    }
}

#[cfg(not(unix))]
fn put_in_the_way(_directory: &str, path: &Path, _outside: &Path) {
    fs::create_dir(path).unwrap();
}

/// What broke: opening waited for a writer of a FIFO in place of a log.
#[test]
fn what_is_no_regular_file_is_told_with_its_path() {
    for &what in OTHERS {
        for victim in ["CURRENT", "LOCK", "manifest", "table", "wal", "000999.wal"] {
            // Paths of sockets are short.
            let dir = tempfile::tempdir_in("/tmp").or_else(|_| tempfile::tempdir()).unwrap();
            let store = dir.path().join("store");
            make_store(&store);
            let names = fs::read_dir(&store).unwrap().map(|entry| entry.unwrap().path());
            let of_kind = |path: &PathBuf| path.extension().is_some_and(|kind| kind == victim);
            let path = names.into_iter().find(of_kind).unwrap_or(store.join(victim));
            let outside = dir.path().join("outside");
            if path.exists() {
                fs::rename(&path, &outside).unwrap();
            } else {
                fs::write(&outside, "outside").unwrap();
            }
            let before = fs::read(&outside).unwrap();
            put_in_the_way(what, &path, &outside);
            // Readers take no lock of the store.
            let reads = if victim == "LOCK" { &[false][..] } else { &[true, false] };
            for &read_only in reads {
                let builder = small_on_disk(&store).read_only(read_only);
                let opened = in_time(&format!("{what} as {victim}"), move || builder.open());
                let told = opened.expect_err(what).to_string();
                let name = path.file_name().unwrap().to_str().unwrap();
                assert!(told.contains(name), "{what} as {victim}: {told}");
                assert!(told.contains(what), "{what} as {victim}: {told}");
            }
            assert!(path.symlink_metadata().is_ok(), "{what} as {victim}: it stays");
            assert_eq!(fs::read(&outside).unwrap(), before, "{what} as {victim}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_link_is_never_followed_but_to_the_directory() {
    let dir = tempfile::tempdir().unwrap();
    let real = dir.path().join("real");
    let store = dir.path().join("store");
    make_store(&real);
    symlink(&real, &store).unwrap();
    check_store(&small_on_disk(&store).open().unwrap());
    let outside = dir.path().join("outside");
    fs::write(&outside, [7; 10_000]).unwrap();
    for name in ["000700.table", "000701.manifest", "CURRENT.new", "stranger"] {
        symlink(&outside, real.join(name)).unwrap();
    }
    check_store(&small_on_disk(&store).open().unwrap());
    assert_eq!(fs::read(&outside).unwrap(), [7; 10_000]);
    assert!(real.join("stranger").symlink_metadata().is_ok());
    // The lock file is made where there is none: not somewhere else.
    fs::remove_file(real.join("LOCK")).unwrap();
    let elsewhere = dir.path().join("elsewhere");
    symlink(&elsewhere, real.join("LOCK")).unwrap();
    small_on_disk(&store).open().unwrap_err();
    assert!(!elsewhere.exists());
}

#[cfg(unix)]
#[test]
fn leases_are_made_in_the_store_and_nowhere_else() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    make_store(&store);
    let outside = dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("000001.32.0"), "a stranger's").unwrap();
    symlink(&outside, store.join("readers")).unwrap();
    let error = small_on_disk(&store).read_only(true).open().unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    check_store(&small_on_disk(&store).open().unwrap());
    let names = fs::read_dir(&outside).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(names.collect::<Vec<_>>(), ["000001.32.0"]);
}

#[cfg(unix)]
#[test]
fn the_environment_follows_no_link() {
    let dir = tempfile::tempdir().unwrap();
    let outside = dir.path().join("outside");
    let link = dir.path().join("link");
    fs::write(&outside, [7; 10_000]).unwrap();
    symlink(&outside, &link).unwrap();
    let env = RealEnv::new();
    let all = 0..4096;
    env.punch(&link, all.clone()).unwrap_err();
    env.punch_all(&link, &[all]).unwrap_err();
    env.sync_file(&link).unwrap_err();
    env.file_bytes(&link).unwrap_err();
    env.held_bytes(&link).unwrap_err();
    env.create(&link).map(drop).unwrap_err();
    env.create_log(&link, 4096).map(drop).unwrap_err();
    let error = env.open(&link).map(drop).unwrap_err();
    assert_eq!(error.to_string(), "expected a regular file, found a symbolic link");
    assert_eq!(fs::read(&outside).unwrap(), [7; 10_000]);
    env.remove_file(&link).unwrap();
    assert!(outside.exists());
}

#[cfg(unix)]
#[test]
fn files_and_new_directories_are_for_their_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let others = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o077;
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let store = dir.path().join("new/store");
    make_store(&store);
    let kept_open = small_on_disk(&store).open().unwrap();
    let mut count = 0;
    for entry in fs::read_dir(&store).unwrap() {
        let path = entry.unwrap().path();
        assert_eq!(others(&path), 0, "{}", path.display());
        count += 1;
    }
    assert!(count >= 5, "{count} files");
    drop(kept_open);
    assert_eq!((others(&store), others(&dir.path().join("new"))), (0, 0));
    assert_eq!(others(dir.path()), 0o055, "what was there stays as it was");
}

/// What broke: only the direct parent of the store was synced.
#[test]
fn a_store_in_new_directories_survives_power_loss() {
    for dir in ["/a/b/c/store", "a/b/store", "./a/store", "store", "/store"] {
        let env = MemEnv::new();
        let open = |env: &MemEnv| small_at(dir, env);
        let store = open(&env).open().unwrap();
        let keyspace = store.keyspace("default").unwrap();
        let mut batch = lsmith::Batch::new();
        batch.put(&keyspace, "key", "value");
        store.write(batch, PersistMode::SyncData).unwrap();
        for seed in 0..5 {
            let left = env.crash_clone(seed, 0.0);
            let store = open(&left).create_if_missing(false).open();
            let store = store.unwrap_or_else(|error| panic!("{dir}: {error}"));
            let keyspace = store.existing_keyspace("default").unwrap();
            assert_eq!(keyspace.get("key").unwrap().as_deref(), Some(&b"value"[..]), "{dir}");
        }
    }
}

/// Files without contents can have any length. A file that cannot be read is an error, and not the
/// end of the process.
#[test]
fn a_file_of_absurd_length_is_told() {
    for kind in ["manifest", "table", "wal"] {
        // In memory, where files may be that long.
        let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        make_store(dir.path());
        let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        let of_kind = |path: &PathBuf| path.extension().is_some_and(|found| found == kind);
        let path = names.into_iter().find(of_kind).unwrap();
        let file = fs::OpenOptions::new().write(true).open(&path).unwrap();
        // More than a process has addresses, so that none of it is ever read. A file system that
        // knows no files of that length has nothing to tell.
        if file.set_len(1 << 48).is_err() {
            continue;
        }
        let told = small_on_disk(dir.path()).read_only(true).open().expect_err(kind).to_string();
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(told.contains(name), "{told}");
    }
}
