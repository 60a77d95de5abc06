//! Any environment, with operations that fail on demand.

use super::{Env, LogFile, ReadFile, SyncReach, WriteFile};
use parking_lot::Mutex;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Kinds of operations, counted and failed apart from each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OpClass {
    /// [`Env::create`] and [`Env::create_dir_all`].
    Create,
    /// [`Env::create_log`].
    CreateLog,
    /// [`WriteFile::write_all`].
    Write,
    /// [`WriteFile::sync`] and [`Env::sync_file`].
    Sync,
    /// [`Env::sync_dir`].
    SyncDir,
    /// [`Env::rename`].
    Rename,
    /// [`Env::remove_file`].
    Remove,
    /// [`LogFile::append`].
    Append,
    /// [`LogFile::sync`].
    LogSync,
    /// [`Env::open`] and [`ReadFile::read_exact_at`].
    Read,
    /// [`Env::punch`].
    Punch,
    /// [`LogFile::cut`].
    Cut,
    /// [`Env::truncate`].
    Truncate,
}

impl OpClass {
    /// Every class.
    pub const ALL: [OpClass; 13] = [
        OpClass::Create,
        OpClass::CreateLog,
        OpClass::Write,
        OpClass::Sync,
        OpClass::SyncDir,
        OpClass::Rename,
        OpClass::Remove,
        OpClass::Append,
        OpClass::LogSync,
        OpClass::Read,
        OpClass::Punch,
        OpClass::Cut,
        OpClass::Truncate,
    ];
}

/// How long a fault lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasting {
    /// One operation fails, the next ones work.
    Once,
    /// All later operations fail too.
    Forever,
}

/// A rule: which operations fail, and how. What fails has no effect at all.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The operations concerned; all of them where `None`.
    pub class: Option<OpClass>,
    /// How many of them still work, counted from the moment the rule is set.
    pub after: u64,
    /// Whether they work again later.
    pub lasting: Lasting,
    /// The error they return.
    pub kind: io::ErrorKind,
}

/// Wraps an environment, counts its operations and lets some of them fail.
///
/// Clones share counts and rules, so that a test keeps one and gives the other to the store.
///
/// # Examples
///
/// ```
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
    plan: Arc<Plan>,
}

#[derive(Debug, Default)]
struct Plan(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: [u64; OpClass::ALL.len()],
    rules: Vec<Fault>,
}

impl Plan {
    /// Counts an operation of `class`; fails where a rule says so.
    fn step(&self, class: OpClass) -> io::Result<()> {
        let mut state = self.0.lock();
        state.counts[class as usize] += 1;
        let mut failure = None;
        state.rules.retain_mut(|rule| {
            if rule.class.is_some_and(|concerned| concerned != class) {
                return true;
            }
            if rule.after > 0 {
                rule.after -= 1;
                return true;
            }
            failure.get_or_insert(rule.kind);
            rule.lasting == Lasting::Forever
        });
        match failure {
            Some(kind) => Err(io::Error::new(kind, format!("injected fault in {class:?}"))),
            None => Ok(()),
        }
    }
}

impl FaultEnv {
    /// `inner`, without any fault yet.
    pub fn new(inner: Arc<dyn Env>) -> FaultEnv {
        FaultEnv { inner, plan: Arc::default() }
    }

    /// Sets a rule, in addition to those that are set.
    pub fn set(&self, fault: Fault) {
        self.plan.0.lock().rules.push(fault);
    }

    /// Takes all rules back; counts go on.
    pub fn clear(&self) {
        self.plan.0.lock().rules.clear();
    }

    /// Operations of `class` since the start, failed ones included.
    pub fn count(&self, class: OpClass) -> u64 {
        self.plan.0.lock().counts[class as usize]
    }

    /// Operations of all classes since the start, failed ones included.
    pub fn count_all(&self) -> u64 {
        self.plan.0.lock().counts.iter().sum()
    }
}

impl Env for FaultEnv {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.plan.step(OpClass::Create)?;
        self.inner.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.inner.list(dir)
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.inner.file_bytes(path)
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.inner.held_bytes(path)
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        self.plan.step(OpClass::Punch)?;
        self.inner.punch(path, range)
    }

    fn truncate(&self, path: &Path, bytes: u64) -> io::Result<()> {
        self.plan.step(OpClass::Truncate)?;
        self.inner.truncate(path, bytes)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.plan.step(OpClass::Remove)?;
        self.inner.remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.plan.step(OpClass::Rename)?;
        self.inner.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.plan.step(OpClass::SyncDir)?;
        self.inner.sync_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.plan.step(OpClass::Sync)?;
        self.inner.sync_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.plan.step(OpClass::Create)?;
        let inner = self.inner.create(path)?;
        Ok(Box::new(FaultWrite { inner, plan: Arc::clone(&self.plan), failed: false }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.plan.step(OpClass::Read)?;
        let inner = self.inner.open(path)?;
        Ok(Arc::new(FaultRead { inner, plan: Arc::clone(&self.plan) }))
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.plan.step(OpClass::CreateLog)?;
        let inner = self.inner.create_log(path, capacity)?;
        Ok(Box::new(FaultLog { inner, plan: Arc::clone(&self.plan) }))
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        self.inner.lock(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.inner.free_bytes(dir)
    }

    fn now(&self) -> Duration {
        self.inner.now()
    }
}

#[derive(Debug)]
struct FaultWrite {
    inner: Box<dyn WriteFile>,
    plan: Arc<Plan>,
    failed: bool,
}

impl FaultWrite {
    fn step(&mut self, class: OpClass) -> io::Result<()> {
        if self.failed {
            return Err(io::Error::other("an earlier write to this file failed"));
        }
        let result = self.plan.step(class);
        self.failed = result.is_err();
        result
    }
}

impl WriteFile for FaultWrite {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.step(OpClass::Write)?;
        self.inner.write_all(bytes)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.step(OpClass::Sync)?;
        self.inner.sync()
    }
}

#[derive(Debug)]
struct FaultRead {
    inner: Arc<dyn ReadFile>,
    plan: Arc<Plan>,
}

impl ReadFile for FaultRead {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.plan.step(OpClass::Read)?;
        self.inner.read_exact_at(buffer, offset)
    }

    fn bytes(&self) -> io::Result<u64> {
        self.inner.bytes()
    }
}

#[derive(Debug)]
struct FaultLog {
    inner: Box<dyn LogFile>,
    plan: Arc<Plan>,
}

impl LogFile for FaultLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.plan.step(OpClass::Append)?;
        self.inner.append(bytes)
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        self.plan.step(OpClass::LogSync)?;
        self.inner.sync(reach)
    }

    fn bytes(&self) -> u64 {
        self.inner.bytes()
    }

    fn capacity(&self) -> u64 {
        self.inner.capacity()
    }

    fn cut(&self) -> io::Result<()> {
        self.plan.step(OpClass::Cut)?;
        self.inner.cut()
    }
}
