//! A limit on what the files of a directory take.
//!
//! Beyond it, files are refused as a full device refuses them, so that whatever holds for a full
//! device holds for the limit. Small files that a store cannot do without, such as its manifest,
//! are counted and never refused.

use super::{Env, WriteFile};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The kinds of files that can be refused, by the ends of their names.
const REFUSED: [&str; 4] = ["table", "values", "wal", "spill"];

/// What the files of a directory take, and the most that they may take, in bytes.
#[derive(Debug)]
pub struct Space {
    limit: AtomicU64,
    used: AtomicU64,
    /// False while files are only counted.
    refuses: AtomicBool,
    files: Mutex<HashMap<PathBuf, Arc<FileSpace>>>,
}

/// The bytes of a file; `None` once it was removed.
#[derive(Debug)]
struct FileSpace(Mutex<Option<u64>>);

impl Space {
    /// Returns the space that the files in `dir` take, with a limit of `limit` bytes. Nothing is
    /// refused before [`begin`](Space::begin).
    ///
    /// # Errors
    /// Fails if the directory cannot be listed.
    pub fn of(env: &dyn Env, dir: &Path, limit: u64) -> io::Result<Space> {
        let space = Space {
            limit: AtomicU64::new(limit),
            used: AtomicU64::new(0),
            refuses: AtomicBool::new(false),
            files: Mutex::default(),
        };
        for name in env.list(dir)? {
            let path = dir.join(name);
            // Directories have no bytes of their own.
            if let Ok(bytes) = env.held_bytes(&path) {
                space.add(&path, bytes)?;
            }
        }
        Ok(space)
    }

    /// Refuses what does not fit from now on.
    pub fn begin(&self) {
        self.refuses.store(true, Ordering::Relaxed);
    }

    /// Sets another limit. Files that are there already stay, whatever they take.
    pub fn set_limit(&self, bytes: u64) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    /// Returns the most bytes that the files may take.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Returns the bytes that the files take.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns the bytes that files may still take.
    pub fn free(&self) -> u64 {
        self.limit().saturating_sub(self.used())
    }

    /// Counts a new file of `bytes`. Fails with `StorageFull` if it does not fit.
    pub(super) fn add(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.take(path, bytes)?;
        let file = Arc::new(FileSpace(Mutex::new(Some(bytes))));
        if let Some(old) = self.files.lock().insert(path.to_path_buf(), file) {
            self.forget(&old);
        }
        Ok(())
    }

    /// Returns `file`, which is now at `path`, such that each of its bytes is counted first.
    pub(super) fn count(
        self: &Arc<Space>,
        path: &Path,
        file: Box<dyn WriteFile>,
    ) -> Box<dyn WriteFile> {
        match self.files.lock().get(path) {
            Some(space) => Box::new(CountedFile {
                file,
                path: path.to_path_buf(),
                space: Arc::clone(self),
                bytes: Arc::clone(space),
                is_refused: false,
            }),
            None => file,
        }
    }

    /// Counts `bytes` for the file at `path` in place of what it had.
    pub(super) fn set(&self, path: &Path, bytes: u64) {
        let Some(file) = self.files.lock().get(path).cloned() else { return };
        if let Some(old) = &mut *file.0.lock() {
            self.used.fetch_add(bytes, Ordering::Relaxed);
            self.used.fetch_sub(std::mem::replace(old, bytes), Ordering::Relaxed);
        }
    }

    /// Notes that there is no file at `path` any more.
    pub(super) fn remove(&self, path: &Path) {
        if let Some(file) = self.files.lock().remove(path) {
            self.forget(&file);
        }
    }

    /// Notes that the file at `from` is at `to` now.
    pub(super) fn rename(&self, from: &Path, to: &Path) {
        let mut files = self.files.lock();
        let Some(file) = files.remove(from) else { return };
        if let Some(old) = files.insert(to.to_path_buf(), file) {
            self.forget(&old);
        }
    }

    fn forget(&self, file: &FileSpace) {
        let bytes = file.0.lock().take().unwrap_or(0);
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Counts `bytes` more of the file at `path`, if they fit.
    fn take(&self, path: &Path, bytes: u64) -> io::Result<()> {
        let limit = self.limit();
        let may_refuse = || path.extension().is_some_and(|end| REFUSED.iter().any(|it| end == *it));
        let is_limited = self.refuses.load(Ordering::Relaxed) && may_refuse();
        let sum = |used: u64| {
            let sum = used.saturating_add(bytes);
            // A file must not be refused once it was made, and so is empty.
            (!is_limited || bytes == 0 || sum <= limit).then_some(sum)
        };
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        taken.map(drop).map_err(|_| io::ErrorKind::StorageFull.into())
    }
}

/// A file whose bytes are counted.
#[derive(Debug)]
struct CountedFile {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    space: Arc<Space>,
    bytes: Arc<FileSpace>,
    /// True once bytes were refused: what the file holds is then not what was written.
    is_refused: bool,
}

impl CountedFile {
    fn check(&self) -> io::Result<()> {
        if self.is_refused { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }
}

impl WriteFile for CountedFile {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        if let Some(counted) = &mut *self.bytes.0.lock() {
            let more = bytes.len() as u64;
            let taken = self.space.take(&self.path, more);
            self.is_refused = taken.is_err();
            taken?;
            *counted += more;
        }
        self.file.write_all(bytes)
    }

    fn set_uncached(&mut self) {
        self.file.set_uncached();
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()?;
        self.file.flush()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.check()?;
        self.file.sync()
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Env, HeldEnv, MemEnv};
    use super::*;

    fn limited(limit: u64) -> (Arc<Space>, HeldEnv) {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let dir = Path::new("/store");
        env.create_dir_all(dir).unwrap();
        let mut file = env.create(Path::new("/store/000001.table")).unwrap();
        file.write_all(&[1; 1000]).unwrap();
        file.sync().unwrap();
        let space = Arc::new(Space::of(&*env, dir, limit).unwrap());
        let held = env.hold(dir).unwrap();
        let env = HeldEnv::new(env, dir, held).with_space(&space);
        space.begin();
        (space, env)
    }

    #[test]
    fn files_take_no_more_than_the_limit() {
        let (space, env) = limited(10_000);
        assert_eq!((space.used(), space.free()), (1000, 9000));
        let path = Path::new("/store/000002.table");
        let mut file = env.create(path).unwrap();
        file.write_all(&[2; 9000]).unwrap();
        let refused = file.write_all(&[2; 1]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        let log = env.create_log(Path::new("/store/000003.wal"), 4096).unwrap_err();
        assert_eq!(log.kind(), io::ErrorKind::StorageFull);
        assert_eq!(space.free(), 0);
        // A store cannot do without its manifest.
        env.create(Path::new("/store/000004.manifest")).unwrap().write_all(&[4; 100]).unwrap();
        assert_eq!(space.used(), 10_100);
        // Other directories are not the store's.
        env.create(Path::new("/000009.table")).unwrap().write_all(&[9; 100]).unwrap();
        assert_eq!(space.used(), 10_100);
        env.remove_file(path).unwrap();
        assert_eq!(space.used(), 1100);
        file.write_all(&[2; 100]).unwrap_err();
        assert_eq!(space.used(), 1100, "a removed file takes nothing any more");
        space.set_limit(1000);
        assert_eq!(space.free(), 0);
        // What refuses its bytes is removed by its writer, who has to have it first.
        let path = Path::new("/store/000005.table");
        let refused = env.create(path).unwrap().write_all(&[5; 1]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
        env.remove_file(path).unwrap();
        assert_eq!(space.used(), 1100);
    }

    #[test]
    fn files_that_move_shrink_or_replace_others_stay_counted() {
        let (space, env) = limited(1 << 20);
        let [one, two, three] =
            ["000001.table", "000002.wal", "000003.wal"].map(|name| Path::new("/store").join(name));
        env.create_log(&two, 8192).unwrap().append(&[1; 8192]).unwrap();
        assert_eq!(space.used(), 9192);
        env.link(&two, &three).unwrap();
        assert_eq!(space.used(), 9192 + 8192);
        env.rename(&two, &three).unwrap();
        assert_eq!(space.used(), 9192);
        env.rename(&three, &one).unwrap();
        assert_eq!(space.used(), 8192, "what was replaced is gone");
        let mut file = env.append(&one, 4096).unwrap();
        file.write_all(&[7; 8192]).unwrap();
        file.sync().unwrap();
        assert_eq!(space.used(), 12288);
        env.punch(&one, 0..8192).unwrap();
        assert_eq!(space.used(), 4096);
        assert_eq!(env.free_bytes(Path::new("/store")).unwrap(), (1 << 20) - 4096);
    }
}
