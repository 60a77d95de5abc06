//! An environment that makes operations of another one fail on demand.

mod class;
mod files;
mod rules;

pub use class::{Effect, Fault, Lasting, OpClass};

use super::{Encryption, Env, HeldDir, LogFile, MemEnv, PAGE_BYTES, ReadFile, WriteFile};
use files::{Around, FaultLog, FaultRead, FaultWrite, create_half_log};
use rules::FaultRules;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Wraps an environment, counts its operations and makes some of them fail.
///
/// Clones share counts and rules, so that a test can keep one and give the other to the store. An
/// operation that fails by a rule has no effect, or the effect [chosen](FaultEnv::set_with) for the
/// rule.
///
/// # Examples
///
/// ```
/// # use lsmith_storage as lsmith;
/// use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
/// use std::io::ErrorKind;
/// use std::path::Path;
/// use std::sync::Arc;
///
/// let env = FaultEnv::new(Arc::new(MemEnv::new()));
/// env.set(Fault {
///     class: Some(OpClass::Sync),
///     after: 1,
///     lasting: Lasting::Once,
///     kind: ErrorKind::StorageFull,
/// });
/// let mut file = env.create(Path::new("/a"))?;
/// file.sync()?;
/// assert_eq!(file.sync().map_err(|error| error.kind()), Err(ErrorKind::StorageFull));
/// assert_eq!(env.count(OpClass::Sync), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct FaultEnv {
    inner: Arc<dyn Env>,
    /// The same environment, if it is a disk in memory.
    disk: Option<MemEnv>,
    rules: Arc<FaultRules>,
}

impl FaultEnv {
    /// Wraps `inner`, without any rule yet.
    ///
    /// Only a disk in memory, wrapped by [`over`](FaultEnv::over), can simulate syncs that fail
    /// [partly](Effect::Partly) or [drop](Effect::Dropped) bytes. Here such syncs have no effect.
    pub fn new(inner: Arc<dyn Env>) -> FaultEnv {
        FaultEnv { inner, disk: None, rules: Arc::default() }
    }

    /// Wraps `disk`, without any rule yet.
    pub fn over(disk: MemEnv) -> FaultEnv {
        FaultEnv { disk: Some(disk.clone()), ..FaultEnv::new(Arc::new(disk)) }
    }

    /// Adds a rule. Operations that fail by it have no effect.
    pub fn set(&self, fault: Fault) {
        self.set_with(fault, Effect::Nothing);
    }

    /// Adds a rule. The first operation that fails by it has this effect, later ones have none.
    pub fn set_with(&self, fault: Fault, effect: Effect) {
        self.rules.set(fault, effect);
    }

    /// Removes all rules; the counts go on.
    pub fn clear(&self) {
        self.rules.clear();
    }

    /// Returns the class and path of the first operation that has failed by a rule since rules were
    /// last [cleared](FaultEnv::clear).
    pub fn first_failed(&self) -> Option<(OpClass, PathBuf)> {
        self.rules.first_failed()
    }

    /// Returns the number of operations of `class` since the start, failed ones included.
    pub fn count(&self, class: OpClass) -> u64 {
        self.rules.counts()[class as usize]
    }

    /// Returns the number of operations of all classes since the start, failed ones included.
    pub fn count_all(&self) -> u64 {
        self.rules.counts().iter().sum()
    }

    fn around(&self, path: &Path) -> Around {
        let rules = Arc::clone(&self.rules);
        let disk = self.disk.clone();
        Around { rules, disk, path: path.to_path_buf() }
    }
}

impl Env for FaultEnv {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let parents = || self.inner.create_dir_all(dir.parent().unwrap_or(dir));
        self.rules.run(OpClass::Create, dir, || self.inner.create_dir_all(dir), parents)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.rules.run_whole(OpClass::List, dir, || self.inner.list(dir))
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.rules.run_whole(OpClass::Measure, path, || self.inner.file_bytes(path))
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.rules.run_whole(OpClass::Measure, path, || self.inner.held_bytes(path))
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        let pages = (range.end - range.start) / PAGE_BYTES;
        let half = range.start..range.start + pages.div_ceil(2) * PAGE_BYTES;
        let partly = || self.inner.punch(path, half);
        self.rules.run(OpClass::Punch, path, || self.inner.punch(path, range), partly)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.rules.run_whole(OpClass::Remove, path, || self.inner.remove_file(path))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.rules.run_whole(OpClass::Remove, dir, || self.inner.remove_dir(dir))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.rules.run_whole(OpClass::Rename, from, || self.inner.rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.rules.run_whole(OpClass::Link, to, || self.inner.link(from, to))
    }

    fn link_count(&self, path: &Path) -> io::Result<u64> {
        self.rules.run_whole(OpClass::Measure, path, || self.inner.link_count(path))
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let partly = || self.disk.as_ref().map_or(Ok(()), |disk| disk.sync_half_dir(dir));
        self.rules.run(OpClass::SyncDir, dir, || self.inner.sync_dir(dir), partly)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.around(path).sync(OpClass::Sync, || self.inner.sync_file(path))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let create = || self.inner.create(path);
        let inner = self.rules.run(OpClass::Create, path, create, || create().map(drop))?;
        Ok(Box::new(FaultWrite { inner, around: self.around(path), failed: false }))
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let append = || self.inner.append(path, at);
        let inner = self.rules.run(OpClass::Create, path, append, || append().map(drop))?;
        Ok(Box::new(FaultWrite { inner, around: self.around(path), failed: false }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let inner = self.rules.run_whole(OpClass::Open, path, || self.inner.open(path))?;
        Ok(Arc::new(FaultRead { inner, around: self.around(path) }))
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        let wholly = || self.inner.create_log(path, capacity);
        let partly = || create_half_log(|path| self.inner.create(path), path, capacity);
        let inner = self.rules.run(OpClass::CreateLog, path, wholly, partly)?;
        Ok(Box::new(FaultLog { inner, around: self.around(path) }))
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.inner.absolute(path)
    }

    fn is_within(&self, path: &Path, dir: &Path) -> io::Result<bool> {
        self.inner.is_within(path, dir)
    }

    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.rules.run_whole(OpClass::Lock, dir, || self.inner.lock(dir))
    }

    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.rules.run_whole(OpClass::Lock, dir, || self.inner.hold(dir))
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        self.rules.run_whole(OpClass::Lock, path, || self.inner.lock_file(path))
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.rules.run_whole(OpClass::FreeBytes, dir, || self.inner.free_bytes(dir))
    }

    fn encryption(&self) -> Option<&Encryption> {
        self.inner.encryption()
    }

    fn random(&self) -> u128 {
        self.inner.random()
    }

    fn open_files_max(&self) -> Option<u64> {
        self.inner.open_files_max()
    }

    fn memory_max(&self) -> Option<u64> {
        self.inner.memory_max()
    }

    fn shared_memory(&self) -> Option<u64> {
        self.inner.shared_memory()
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }
}
