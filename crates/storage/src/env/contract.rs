//! The contract of all environments, as one check.

use super::{Env, LogFile, PAGE_BYTES, SyncReach, WriteFile};
use crate::system::NAMES_MAY_STAY;
use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Checks every promise of [`Env`] and of its files inside `dir`, which must not exist yet but
/// whose parent must. It cannot check that data survives power loss.
///
/// # Panics
///
/// Panics if a promise is broken.
pub fn check(env: &dyn Env, dir: &Path) {
    directories(env, dir);
    written_files(env, dir);
    appended_files(env, dir);
    reading(env, dir);
    names(env, dir);
    holes(env, dir);
    logs(env, dir);
    cut_logs(env, dir);
    full_logs(env, dir);
    appends_of_many_threads(env, dir);
    locks(env, dir);
    surroundings(env, dir);
}

fn kind<T>(result: io::Result<T>) -> Option<ErrorKind> {
    result.err().map(|error| error.kind())
}

fn contents(env: &dyn Env, path: &Path) -> Vec<u8> {
    let file = env.open(path).expect("opens a file");
    let mut bytes = vec![0xEE; file.bytes().expect("tells its length") as usize];
    file.read_exact_at(&mut bytes, 0).expect("reads a whole file");
    bytes
}

fn created(env: &dyn Env, path: &Path, bytes: &[u8]) -> Box<dyn WriteFile> {
    let mut file = env.create(path).expect("creates a file");
    file.write_all(bytes).expect("writes");
    file.sync().expect("syncs");
    file
}

fn directories(env: &dyn Env, dir: &Path) {
    assert_eq!(kind(env.list(dir)), Some(ErrorKind::NotFound));
    let deep = dir.join("deep").join("deeper");
    env.create_dir_all(&deep).expect("creates a directory and its parents");
    env.create_dir_all(&deep).expect("an existing directory is fine");
    assert_eq!(env.list(&deep).expect("lists"), Vec::<String>::new());
    created(env, &dir.join("b"), b"");
    created(env, &dir.join("a"), b"");
    created(env, &dir.join("c"), b"");
    assert_eq!(env.list(dir).expect("lists"), ["a", "b", "c", "deep"]);
    env.sync_dir(dir).expect("syncs a directory");
    env.sync_dir(&deep).expect("syncs an empty directory");
    assert_eq!(kind(env.sync_dir(&dir.join("none"))), Some(ErrorKind::NotFound));
    assert_eq!(kind(env.create(&dir.join("none/a"))), Some(ErrorKind::NotFound));
    removed_directories(env, dir);
}

/// An environment may be unable to remove directories, and must then remove none.
fn removed_directories(env: &dyn Env, dir: &Path) {
    let inner = dir.join("outer").join("inner");
    env.create_dir_all(&inner).expect("creates a directory and its parent");
    let outer = dir.join("outer");
    match kind(env.remove_dir(&outer)) {
        Some(ErrorKind::Unsupported) => {
            assert_eq!(kind(env.remove_dir(&inner)), Some(ErrorKind::Unsupported));
            assert!(env.list(&inner).is_ok());
        }
        refused => {
            assert_eq!(refused, Some(ErrorKind::DirectoryNotEmpty));
            env.remove_dir(&inner).expect("removes an empty directory");
            env.remove_dir(&outer).expect("removes a directory that is empty now");
            assert_eq!(kind(env.remove_dir(&outer)), Some(ErrorKind::NotFound));
            assert!(!env.list(dir).expect("lists").contains(&"outer".to_string()));
        }
    }
    assert!(env.remove_dir(&dir.join("a")).is_err(), "it is a file");
    assert_eq!(env.file_bytes(&dir.join("a")).expect("exists"), 0);
}

fn written_files(env: &dyn Env, dir: &Path) {
    let path = dir.join("written");
    let mut file = env.create(&path).expect("creates a file");
    assert_eq!(kind(env.create(&path)), Some(ErrorKind::AlreadyExists));
    assert_eq!(env.file_bytes(&path).expect("exists"), 0);

    // Pieces smaller than any buffer, about as large, and much larger, each with bytes of its own.
    let mut all = Vec::new();
    for (index, length) in [0, 1, 511, 4096, 300_000, 7, 2_000_000, 1, 262_143].iter().enumerate() {
        let piece = vec![index as u8 + 1; *length];
        file.write_all(&piece).expect("writes");
        all.extend_from_slice(&piece);
    }
    file.sync().expect("syncs");
    assert!(contents(env, &path) == all, "reads what was written");
    file.set_uncached();
    let piece = vec![b'x'; 300_000];
    file.write_all(&piece).expect("writes past the cache");
    all.extend_from_slice(&piece);
    file.sync().expect("syncs what went past the cache");
    assert!(contents(env, &path) == all, "reads what was written past the cache");
    file.write_all(b"more").expect("writes after a sync");
    file.flush().expect("passes the bytes on");
    assert!(contents(env, &path).ends_with(b"xmore"), "readers see what was passed on");
    file.sync().expect("syncs again");
    file.sync().expect("syncs with nothing new");
    drop(file);
    env.sync_file(&path).expect("syncs a file that nobody writes");
    assert_eq!(kind(env.sync_file(&dir.join("none"))), Some(ErrorKind::NotFound));
    assert_eq!(env.file_bytes(&path).expect("exists"), all.len() as u64 + 4);
    assert!(contents(env, &path).ends_with(b"xmore"));
}

fn appended_files(env: &dyn Env, dir: &Path) {
    let path = dir.join("appended");
    created(env, &path, b"0123456789");
    let before = env.open(&path).expect("opens");
    let mut file = env.append(&path, 6).expect("opens a file to write on");
    assert_eq!(env.file_bytes(&path).expect("exists"), 6);
    file.write_all(b"abc").expect("writes");
    file.sync().expect("syncs");
    file.write_all(b"d").expect("writes after a sync");
    file.sync().expect("syncs again");
    drop(file);
    assert_eq!(contents(env, &path), b"012345abcd");
    let mut buffer = [0; 7];
    before.read_exact_at(&mut buffer, 0).expect("an open file sees what is appended");
    assert_eq!(&buffer, b"012345a");
    env.append(&path, 10).expect("appends at the end").sync().expect("syncs nothing");
    assert_eq!(contents(env, &path), b"012345abcd");
    assert_eq!(kind(env.append(&path, 11)), Some(ErrorKind::UnexpectedEof));
    assert_eq!(kind(env.append(&dir.join("none"), 0)), Some(ErrorKind::NotFound));
}

fn reading(env: &dyn Env, dir: &Path) {
    let path = dir.join("read");
    created(env, &path, b"0123456789");
    let file = env.open(&path).expect("opens");
    assert_eq!(file.bytes().expect("tells its length"), 10);
    let mut buffer = [0; 4];
    file.read_exact_at(&mut buffer, 6).expect("reads up to the end");
    assert_eq!(&buffer, b"6789");
    file.read_exact_at(&mut buffer, 0).expect("reads backwards too");
    assert_eq!(&buffer, b"0123");
    file.read_once_at(&mut buffer, 3).expect("reads past the cache");
    assert_eq!(&buffer, b"3456");
    assert_eq!(kind(file.read_once_at(&mut buffer, 7)), Some(ErrorKind::UnexpectedEof));
    file.read_exact_at(&mut [], 10).expect("reads nothing");
    assert_eq!(kind(file.read_exact_at(&mut buffer, 7)), Some(ErrorKind::UnexpectedEof));
    assert_eq!(kind(file.read_exact_at(&mut buffer, 1 << 40)), Some(ErrorKind::UnexpectedEof));
    assert_eq!(kind(env.open(&dir.join("none"))), Some(ErrorKind::NotFound));

    let map = file.map().expect("maps, or has no maps");
    env.remove_file(&path).expect("removes an open file");
    file.read_exact_at(&mut buffer, 3).expect("an open file outlives its name");
    assert_eq!(&buffer, b"3456");
    drop(file);
    assert!(map.is_none_or(|map| *map == b"0123456789"[..]), "a map outlives both");
}

fn names(env: &dyn Env, dir: &Path) {
    let old = dir.join("old");
    let new = dir.join("new");
    created(env, &old, b"old");
    env.rename(&old, &new).expect("renames");
    assert_eq!(kind(env.file_bytes(&old)), Some(ErrorKind::NotFound));
    assert_eq!(contents(env, &new), b"old");
    created(env, &old, b"newer");
    let replaced = env.open(&new).expect("opens");
    if frees_names(env, dir) {
        env.rename(&old, &new).expect("renames onto an open file");
        assert_eq!(replaced.bytes().expect("an open file outlives its name"), 3);
    } else {
        drop(replaced);
        env.rename(&old, &new).expect("renames onto a file");
    }
    assert_eq!(contents(env, &new), b"newer");
    env.rename(&new, &new).expect("renames onto itself");
    env.rename(&new, &dir.join("deep/new")).expect("renames into another directory");
    assert_eq!(contents(env, &dir.join("deep/new")), b"newer");
    assert_eq!(kind(env.rename(&old, &new)), Some(ErrorKind::NotFound));

    second_name(env, &dir.join("deep/new"), &old);
    assert_eq!(kind(env.remove_file(&new)), Some(ErrorKind::NotFound));
    created(env, &new, b"again");
    assert_eq!(contents(env, &new), b"again");
}

/// Returns true if a removed file that somebody has open loses its name at once. There are systems
/// where its name may stay until nobody has it open.
fn frees_names(env: &dyn Env, dir: &Path) -> bool {
    let path = dir.join("freed");
    created(env, &path, b"freed");
    let file = env.open(&path).expect("opens");
    env.remove_file(&path).expect("removes an open file");
    let is_free = kind(env.file_bytes(&path)) == Some(ErrorKind::NotFound);
    assert!(is_free || NAMES_MAY_STAY, "the name of a removed file is free");
    drop(file);
    assert_eq!(kind(env.file_bytes(&path)), Some(ErrorKind::NotFound));
    is_free
}

/// An environment may lack second names, but must then give none. Removes the file `first`.
fn second_name(env: &dyn Env, first: &Path, second: &Path) {
    let linked = kind(env.link(first, second));
    if linked == Some(ErrorKind::Unsupported) {
        assert_eq!(kind(env.file_bytes(second)), Some(ErrorKind::NotFound));
        return env.remove_file(first).expect("removes");
    }
    assert_eq!(linked, None, "gives a second name");
    assert_eq!(env.link_count(first).expect("counts"), 2);
    assert_eq!(kind(env.link(first, second)), Some(ErrorKind::AlreadyExists));
    let third = second.with_extension("third");
    assert_eq!(kind(env.link(&first.with_extension("none"), &third)), Some(ErrorKind::NotFound));
    env.remove_file(first).expect("removes");
    assert_eq!(contents(env, second), b"newer", "one name is left");
    assert_eq!(env.link_count(second).expect("counts"), 1);
    assert_eq!(kind(env.link_count(first)), Some(ErrorKind::NotFound));
    env.remove_file(second).expect("removes the last name");
}

/// An environment may lack holes, but a punch must then change nothing.
fn holes(env: &dyn Env, dir: &Path) {
    let path = dir.join("holes");
    let page = PAGE_BYTES as usize;
    let bytes = 100 * PAGE_BYTES as usize + 7;
    created(env, &path, &vec![5; bytes]);
    let held = env.held_bytes(&path).expect("exists");
    // Encrypted bytes need room for tags and for what begins the file.
    let more = if env.encryption().is_some() { 3 * PAGE_BYTES } else { 0 };
    let most = bytes as u64 + more;
    assert!((1..=most).contains(&held), "a file takes up to its length: {held}");
    let file = env.open(&path).expect("opens");
    let map = file.map().expect("maps, or has no maps");
    let mut expected = vec![5; bytes];
    match env.punch(&path, 8 * PAGE_BYTES..72 * PAGE_BYTES) {
        Ok(()) => {
            expected[8 * page..72 * page].fill(0);
            let left = env.held_bytes(&path).expect("exists");
            assert!(left <= held - 60 * PAGE_BYTES, "{held} bytes before, {left} afterwards");
            env.punch(&path, 0..9 * PAGE_BYTES).expect("punches where a hole is already");
            expected[..9 * page].fill(0);
            assert_eq!(
                kind(env.punch(&dir.join("none"), 0..PAGE_BYTES)),
                Some(ErrorKind::NotFound)
            );
        }
        Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
    }
    if env.encryption().is_some() {
        ends_of_holes_may_stay(&contents(env, &path), &mut expected);
    }
    assert!(contents(env, &path) == expected, "the rest is as it was");
    let mut read = vec![0; bytes];
    file.read_exact_at(&mut read, 0).expect("reads over holes");
    assert!(read == expected, "a file that was open before reads the same");
    let rest = 72 * page..;
    assert!(map.is_none_or(|map| map[rest] == vec![5; 28 * page + 7]), "a map keeps the rest");
    assert_eq!(env.file_bytes(&path).expect("exists"), bytes as u64);
    drop(file);
    env.remove_file(&path).expect("removes");
    assert_eq!(kind(env.held_bytes(&path)), Some(ErrorKind::NotFound));
}

/// Expects what was `read` near the ends of the holes that were punched, if it is what was there or
/// zeros.
fn ends_of_holes_may_stay(read: &[u8], expected: &mut [u8]) {
    let page = PAGE_BYTES as usize;
    for end in [0, 8, 9, 72] {
        for at in (end * page).saturating_sub(page)..((end + 1) * page).min(72 * page) {
            if [0, 5].contains(&read[at]) {
                expected[at] = read[at];
            }
        }
    }
}

fn logs(env: &dyn Env, dir: &Path) {
    let path = dir.join("log.wal");
    let log = env.create_log(&path, 1000).expect("creates a log");
    assert_eq!(kind(env.create_log(&path, 1000)), Some(ErrorKind::AlreadyExists));
    assert_eq!((log.bytes(), log.capacity()), (0, 1000));
    assert!(contents(env, &path) == [0; 1000], "a new log has its full length, of zeros");

    log.append(b"8 bytes.").expect("appends");
    log.append(&[]).expect("appends nothing");
    log.append(&[7; 24]).expect("appends");
    assert_eq!(log.bytes(), 32);
    let mut expected = [b"8 bytes.".as_slice(), &[7; 24]].concat();
    expected.resize(1000, 0);
    assert!(contents(env, &path) == expected, "what was appended is there without a sync");
    log.sync(SyncReach::Data).expect("syncs");
    log.sync(SyncReach::All).expect("syncs everything");

    for bad in [&[1; 7][..], &[1; 33], &[1; 976], &[1; 1 << 20]] {
        assert_eq!(kind(log.append(bad)), Some(ErrorKind::InvalidInput));
    }
    assert_eq!(log.bytes(), 32);
    log.append(&[9; 968]).expect("fills the log");
    expected[32..].fill(9);
    assert!(contents(env, &path) == expected, "what was refused is not there");
    assert_eq!(kind(log.append(&[1; 8])), Some(ErrorKind::InvalidInput));

    env.remove_file(&path).expect("removes an open log");
    log.sync(SyncReach::Data).expect("an open log outlives its name");
}

/// An environment may lack cuts, but a cut must then change nothing.
fn cut_logs(env: &dyn Env, dir: &Path) {
    for used in [0, 32, 5000, 10_000] {
        let path = dir.join(format!("cut{used}.wal"));
        let log = env.create_log(&path, 10_000).expect("creates a log");
        log.append(&vec![6; used as usize]).expect("appends");
        match log.cut() {
            Ok(()) => {
                assert_eq!((log.bytes(), log.capacity()), (used, used));
                assert_eq!(env.file_bytes(&path).expect("exists"), used);
                assert_eq!(kind(log.append(&[1; 8])), Some(ErrorKind::InvalidInput));
                log.append(&[]).expect("appends nothing");
                log.cut().expect("cuts what is cut");
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::Unsupported),
        }
        log.sync(SyncReach::Data).expect("syncs a cut log");
        log.sync(SyncReach::All).expect("syncs all of a cut log");
        drop(log);
        let bytes = contents(env, &path);
        assert!(bytes[..used as usize].iter().all(|byte| *byte == 6), "what was appended stays");
        assert!(bytes[used as usize..].iter().all(|byte| *byte == 0), "and nothing else comes");
    }
}

fn full_logs(env: &dyn Env, dir: &Path) {
    let path = dir.join("large.wal");
    assert_eq!(kind(env.create_log(&path, 0)), Some(ErrorKind::InvalidInput));
    assert_eq!(kind(env.file_bytes(&path)), Some(ErrorKind::NotFound));
    let free = env.free_bytes(dir).expect("tells the room");
    // A larger number means that the device has no limit to check.
    if free < 1 << 60 {
        // Other programs may free room meanwhile, so ask for much more than there is.
        let result = env.create_log(&path, 2 * free + (1 << 40));
        assert_eq!(kind(result), Some(ErrorKind::StorageFull));
        assert_eq!(kind(env.file_bytes(&path)), Some(ErrorKind::NotFound));
    }
}

fn appends_of_many_threads(env: &dyn Env, dir: &Path) {
    let path = dir.join("threads.wal");
    let log = env.create_log(&path, 4 * 100 * 72).expect("creates a log");
    let append_all = |log: &dyn LogFile, thread: u8| {
        for _ in 0..100 {
            log.append(&[thread; 72]).expect("appends");
        }
    };
    crate::sync::thread::scope(|scope| {
        for thread in 1..=4 {
            let log = &*log;
            scope.spawn(move || append_all(log, thread));
        }
    });
    assert_eq!(log.bytes(), log.capacity());
    let bytes = contents(env, &path);
    let mut counts = [0; 5];
    for record in bytes.chunks(72) {
        assert!(record.iter().all(|byte| *byte == record[0]), "appends do not mix");
        counts[usize::from(record[0])] += 1;
    }
    assert_eq!(counts, [0, 100, 100, 100, 100]);
}

fn locks(env: &dyn Env, dir: &Path) {
    let held = env.lock(dir).expect("takes a free lock");
    assert_eq!(kind(env.lock(dir)), Some(ErrorKind::WouldBlock));
    drop(env.lock(&dir.join("deep")).expect("another directory has a lock of its own"));
    assert_eq!(kind(env.lock(dir)), Some(ErrorKind::WouldBlock));
    held.check().expect("nothing has moved");
    match env.remove_file(&dir.join("LOCK")) {
        Ok(()) => drop(held.check().expect_err("another process may have taken the lock")),
        // A system may let nobody remove it.
        Err(_) if NAMES_MAY_STAY => {}
        Err(error) => panic!("removes the lock file of a locked directory: {error}"),
    };
    drop(held);
    env.lock(dir).expect("a lock that was given back is free").check().expect("nothing has moved");
    assert_eq!(kind(env.lock(&dir.join("none"))), Some(ErrorKind::NotFound));
    env.hold(dir).expect("holds a directory").check().expect("nothing has moved");
    assert_eq!(kind(env.hold(&dir.join("none"))), Some(ErrorKind::NotFound));
    let there = env.absolute(dir).expect("knows where a directory is");
    assert_eq!(env.list(&there).expect("lists"), env.list(dir).expect("lists"));
    locked_files(env, dir);
}

/// An environment may lack locks of files, but must then make none.
fn locked_files(env: &dyn Env, dir: &Path) {
    let path = dir.join("locked");
    let held = match env.lock_file(&path) {
        Ok(held) => held,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            return assert_eq!(kind(env.file_bytes(&path)), Some(ErrorKind::NotFound));
        }
    };
    assert_eq!(env.file_bytes(&path).expect("makes the file"), 0);
    assert_eq!(kind(env.lock_file(&path)), Some(ErrorKind::WouldBlock));
    drop(env.lock_file(&dir.join("other")).expect("another file has a lock of its own"));
    drop(env.lock(dir).expect("the directory has a lock of its own"));
    env.remove_file(&path).expect("removes a locked file");
    if frees_names(env, dir) {
        let again = env.lock_file(&path).expect("a new file of the same name has its own lock");
        drop(held);
        assert_eq!(kind(env.lock_file(&path)), Some(ErrorKind::WouldBlock));
        drop(again);
    } else {
        env.lock_file(&path).map(drop).expect_err("the name is not free");
        drop(held);
    }
    drop(env.lock_file(&path).expect("a lock that was given back is free"));
    assert_eq!(env.file_bytes(&path).expect("the file stays"), 0);
    assert_eq!(kind(env.lock_file(&dir.join("none/file"))), Some(ErrorKind::NotFound));
    env.remove_file(&path).expect("removes");
    env.remove_file(&dir.join("other")).expect("removes");
}

fn surroundings(env: &dyn Env, dir: &Path) {
    assert_eq!(kind(env.free_bytes(&dir.join("none"))), Some(ErrorKind::NotFound));
    let drawn: BTreeSet<u128> = (0..100).map(|_| env.random()).collect();
    assert_eq!(drawn.len(), 100, "no random number comes twice");
    let times: Vec<_> = (0..100).map(|_| env.now()).collect();
    assert!(times.is_sorted(), "time never goes back");
}
