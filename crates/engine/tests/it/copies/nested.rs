//! Copies within what they are copies of.
//!
//! Promised: the directory of a store holds the files of that store alone. A checkpoint, a backup,
//! a repaired store or an exported table is refused there, whatever path leads there. A restored
//! store is refused within the directory of the backups.

use lsmith::env::{Env, MemEnv, RealEnv};
use lsmith::{Backups, ErrorKind, Keyspace, RepairOptions, Result, Store, TableWriter, repair};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn make(dir: &Path) -> (Store, Keyspace) {
    let store = Store::builder(dir).open().unwrap();
    let space = store.keyspace("space").unwrap();
    space.put("key", "value").unwrap();
    space.flush().unwrap();
    (store, space)
}

/// Returns the names of all files and directories in `dir` and below.
fn names(dir: &Path) -> Vec<PathBuf> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.is_symlink() {
            names.extend(self::names(&path));
        }
        names.push(path);
    }
    names.sort();
    names
}

/// Returns paths that lead into `store`, which is a directory, and may have the link `link` to it
/// beside it.
fn paths_into(dir: &Path) -> Vec<PathBuf> {
    let mut paths = vec![dir.join("store"), dir.join("./store/./new")];
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    let up: PathBuf = here.ancestors().skip(1).map(|_| "..").collect();
    // No relative path leads to another drive of Windows.
    if let Ok(down) = dir.canonicalize().unwrap().strip_prefix(here.ancestors().last().unwrap()) {
        paths.push(up.join(down).join("store"));
    }
    paths.extend(
        ["readers", "readers/deep", "new/deep", "../store/new"]
            .map(|name| dir.join("store").join(name)),
    );
    paths.push(dir.join("none/../store/new"));
    if dir.join("link").exists() {
        paths.extend(["link", "store/../link/new", "link/readers"].map(|name| dir.join(name)));
    }
    paths
}

fn refused<T>(what: &str, path: &Path, done: Result<T>) {
    let Err(error) = done else { panic!("{what} at {}", path.display()) };
    assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{what} at {}: {error}", path.display());
}

/// What broke: a checkpoint into `readers`, or into a new directory within the store, was made.
#[test]
fn nothing_is_copied_into_the_directory_of_the_store() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let (store, space) = make(&dir.join("store"));
    // Few may make links on Windows.
    #[cfg(unix)]
    std::os::unix::fs::symlink(dir.join("store"), dir.join("link")).unwrap();
    drop(Store::builder(dir.join("store")).read_only(true).open().unwrap());
    let before = names(dir);
    for path in paths_into(dir) {
        refused("a checkpoint", &path, store.checkpoint(&path));
        refused("a backup", &path, store.backup(&Backups::new(&path)));
        refused("a repair", &path, repair(&RepairOptions::default(), dir.join("store"), &path));
        assert_eq!(names(dir), before, "at {}", path.display());
        let file = path.join("000999.table");
        // It may be made before anybody knows of what store it becomes a table.
        if let Ok(mut writer) = TableWriter::create(&file) {
            let snapshot = store.snapshot();
            refused("a table", &file, snapshot.export_newest::<&str>(&space, .., &mut writer));
            drop(writer);
        }
        assert_eq!(names(dir), before, "at {}", file.display());
    }
    // Names that begin alike are others.
    store.checkpoint(dir.join("store2")).unwrap();
    store.backup(&Backups::new(dir.join("store3"))).unwrap();
    drop((space, store));
    repair(&RepairOptions::default(), dir.join("store"), dir.join("store4")).unwrap();
}

#[test]
fn no_store_is_restored_among_the_backups() {
    let temp = tempfile::tempdir().unwrap();
    let dir = temp.path();
    let (store, _space) = make(&dir.join("store"));
    let backups = Backups::new(dir.join("backups"));
    let backup = store.backup(&backups).unwrap();
    for path in ["backups", "backups/new", "none/../backups/new"] {
        refused("a store", Path::new(path), backups.restore(backup.id, dir.join(path)));
    }
    backups.restore(backup.id, dir.join("restored")).unwrap();
    assert!(backups.verify().unwrap().is_empty());
}

#[test]
fn the_same_holds_for_a_disk_in_memory() {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let store = Store::builder("/store").env(Arc::clone(&env)).open().unwrap();
    for path in ["/store", "/store/new", "/other/../store/new", "/./store"] {
        refused("a checkpoint", Path::new(path), store.checkpoint(path));
    }
    store.checkpoint("/store2").unwrap();
    let real = RealEnv::new();
    assert!(real.is_within(Path::new("/none"), Path::new("/")).unwrap());
    assert!(!real.is_within(Path::new("/"), Path::new("/tmp")).unwrap());
    real.is_within(Path::new("/"), Path::new("/no such directory")).unwrap_err();
}
