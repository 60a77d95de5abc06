//! The environment that tests script.
//!
//! It does what the disk beneath does, and tells a script of each call: before the disk does it,
//! and after. A script counts, waits, panics, or returns an error, with which the call fails.

use bytes::Bytes;
use lsmith::env::{Env, HeldDir, LogFile, ReadFile, SyncReach, WriteFile};
use std::fmt::{self, Debug, Formatter};
use std::io;
use std::ops::{Deref, Range};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// What a call does. A script does not hear of small questions, such as the length of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op {
    CreateDir,
    List,
    Remove,
    RemoveDir,
    Rename,
    Link,
    Punch,
    SyncDir,
    SyncFile,
    Lock,
    LockFile,
    Now,
    /// A file is created, or opened to be written on.
    Create,
    WriteOn,
    /// What is written need not stay in the system's cache.
    Uncached,
    Write,
    Sync,
    /// A file is opened for reading, read, announced or closed.
    Open,
    Read,
    Announce,
    Close,
    CreateLog,
    Append,
    LogSync,
}

/// The moment at which a script hears of a call: before the disk works, or after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    Before,
    Done,
    Failed,
}

/// A call on its way.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) op: Op,
    pub(crate) when: When,
    /// The file or directory. The file that had the name, in a rename or a link.
    pub(crate) path: &'a Path,
    /// The bytes of the file that are read, written on, announced or punched out. The length alone
    /// is right in a write. In the creation of a log, as many as its records are said to have.
    pub(crate) range: Range<u64>,
    /// What was read, which the script may change.
    pub(crate) read: &'a mut [u8],
    /// The time that the clock shows, which the script may change.
    pub(crate) time: Duration,
}

impl<'a> Call<'a> {
    fn new(op: Op, when: When, path: &'a Path) -> Call<'a> {
        Call { op, when, path, range: 0..0, read: &mut [], time: Duration::ZERO }
    }

    /// Returns true before a call that does `op`.
    pub(crate) fn is_before(&self, op: Op) -> bool {
        (self.op, self.when) == (op, When::Before)
    }

    /// Returns true after `op` was done.
    pub(crate) fn is_done(&self, op: Op) -> bool {
        (self.op, self.when) == (op, When::Done)
    }

    /// Returns true if the file has the extension `kind`.
    pub(crate) fn is_of(&self, kind: &str) -> bool {
        self.path.extension().is_some_and(|extension| extension == kind)
    }
}

/// What a test makes of the calls of a store.
pub(crate) trait Script: Send + Sync + 'static {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()>;
}

impl<F: Fn(&mut Call<'_>) -> io::Result<()> + Send + Sync + 'static> Script for F {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        self(call)
    }
}

/// A disk with a script. The script is reached as what the environment points to.
pub(crate) struct Scripted<S> {
    disk: Arc<dyn Env>,
    script: Arc<S>,
    shared_memory: Option<u64>,
}

impl<S: Script> Scripted<S> {
    pub(crate) fn new(disk: impl Env, script: S) -> Scripted<S> {
        Scripted { disk: Arc::new(disk), script: Arc::new(script), shared_memory: None }
    }

    /// Returns the same on a machine with `bytes` bytes of memory.
    pub(crate) fn with_memory(self, bytes: u64) -> Scripted<S> {
        Scripted { shared_memory: Some(bytes), ..self }
    }

    fn told(&self, path: &Path) -> Told {
        Told { script: Arc::<S>::clone(&self.script), path: path.to_path_buf() }
    }

    fn tell<T>(
        &self,
        op: Op,
        path: &Path,
        work: impl FnOnce(&dyn Env) -> io::Result<T>,
    ) -> io::Result<T> {
        tell(&*self.script, &mut Call::new(op, When::Before, path), || work(&*self.disk))
    }
}

impl<S> Clone for Scripted<S> {
    fn clone(&self) -> Scripted<S> {
        let Scripted { disk, script, shared_memory } = self;
        let (disk, script) = (Arc::clone(disk), Arc::clone(script));
        Scripted { disk, script, shared_memory: *shared_memory }
    }
}

impl<S> Deref for Scripted<S> {
    type Target = S;

    fn deref(&self) -> &S {
        &self.script
    }
}

impl<S> Debug for Scripted<S> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scripted").field(&self.disk).finish()
    }
}

/// Tells `script` of `call` before and after `work`.
fn tell<T>(
    script: &dyn Script,
    call: &mut Call<'_>,
    work: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    script.on(call)?;
    let done = work();
    call.when = if done.is_ok() { When::Done } else { When::Failed };
    script.on(call)?;
    done
}

/// A file's path, and who is told of calls to it.
struct Told {
    script: Arc<dyn Script>,
    path: PathBuf,
}

impl Told {
    fn tell<T>(
        &self,
        op: Op,
        range: Range<u64>,
        work: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut call = Call { range, ..Call::new(op, When::Before, &self.path) };
        tell(&*self.script, &mut call, work)
    }
}

impl Debug for Told {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        Debug::fmt(&self.path, f)
    }
}

/// A file that is written, or a log.
#[derive(Debug)]
struct Written<F> {
    file: F,
    told: Told,
}

impl WriteFile for Written<Box<dyn WriteFile>> {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.told.tell(Op::Write, 0..bytes.len() as u64, || self.file.write_all(bytes))
    }

    fn set_uncached(&mut self) {
        let set = || {
            self.file.set_uncached();
            Ok(())
        };
        self.told.tell(Op::Uncached, 0..0, set).expect("no script fails this call");
    }

    fn sync(&mut self) -> io::Result<()> {
        self.told.tell(Op::Sync, 0..0, || self.file.sync())
    }
}

impl LogFile for Written<Box<dyn LogFile>> {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.told.tell(Op::Append, 0..bytes.len() as u64, || self.file.append(bytes))
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        self.told.tell(Op::LogSync, 0..0, || self.file.sync(reach))
    }

    fn bytes(&self) -> u64 {
        self.file.bytes()
    }

    fn capacity(&self) -> u64 {
        self.file.capacity()
    }

    fn cut(&self) -> io::Result<()> {
        self.file.cut()
    }

    fn release(&self) {
        self.file.release();
    }
}

#[derive(Debug)]
struct Opened {
    file: Arc<dyn ReadFile>,
    told: Told,
}

impl ReadFile for Opened {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let range = offset..offset + buffer.len() as u64;
        let call =
            |when| Call { range: range.clone(), ..Call::new(Op::Read, when, &self.told.path) };
        self.told.script.on(&mut call(When::Before))?;
        let done = self.file.read_exact_at(buffer, offset);
        let when = if done.is_ok() { When::Done } else { When::Failed };
        self.told.script.on(&mut Call { read: buffer, ..call(when) })?;
        done
    }

    fn bytes(&self) -> io::Result<u64> {
        self.file.bytes()
    }

    fn announce(&self, range: Range<u64>) {
        let announce = || {
            self.file.announce(range.clone());
            Ok(())
        };
        let told = self.told.tell(Op::Announce, range.clone(), announce);
        told.expect("an announcement cannot fail");
    }

    fn map(&self) -> io::Result<Option<Bytes>> {
        self.file.map()
    }

    fn release(&self) {
        self.file.release();
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let told = self.told.script.on(&mut Call::new(Op::Close, When::Done, &self.told.path));
        told.expect("a close cannot fail");
    }
}

impl<S: Script> Env for Scripted<S> {
    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.tell(Op::CreateDir, dir, |disk| disk.create_dir_all(dir))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.tell(Op::List, dir, |disk| disk.list(dir))
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.file_bytes(path)
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.held_bytes(path)
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        self.told(path).tell(Op::Punch, range.clone(), || self.disk.punch(path, range))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.tell(Op::Remove, path, |disk| disk.remove_file(path))
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.tell(Op::RemoveDir, dir, |disk| disk.remove_dir(dir))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.tell(Op::Rename, from, |disk| disk.rename(from, to))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.tell(Op::Link, from, |disk| disk.link(from, to))
    }

    fn link_count(&self, path: &Path) -> io::Result<u64> {
        self.disk.link_count(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.tell(Op::SyncDir, dir, |disk| disk.sync_dir(dir))
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.tell(Op::SyncFile, path, |disk| disk.sync_file(path))
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let file = self.tell(Op::Create, path, |disk| disk.create(path))?;
        Ok(Box::new(Written { file, told: self.told(path) }))
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let file = self.tell(Op::WriteOn, path, |disk| disk.append(path, at))?;
        Ok(Box::new(Written { file, told: self.told(path) }))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let file = self.tell(Op::Open, path, |disk| disk.open(path))?;
        Ok(Arc::new(Opened { file, told: self.told(path) }))
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.create_log_for(path, capacity, 0)
    }

    fn create_log_for(
        &self,
        path: &Path,
        capacity: u64,
        record_bytes: u64,
    ) -> io::Result<Box<dyn LogFile>> {
        let told = self.told(path);
        let create = || self.disk.create_log_for(path, capacity, record_bytes);
        let file = told.tell(Op::CreateLog, 0..record_bytes, create)?;
        Ok(Box::new(Written { file, told }))
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.disk.absolute(path)
    }

    fn is_within(&self, path: &Path, dir: &Path) -> io::Result<bool> {
        self.disk.is_within(path, dir)
    }

    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.tell(Op::Lock, dir, |disk| disk.lock(dir))
    }

    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.disk.hold(dir)
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        self.tell(Op::LockFile, path, |disk| disk.lock_file(path))
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.free_bytes(dir)
    }

    fn random(&self) -> u128 {
        self.disk.random()
    }

    fn open_files_max(&self) -> Option<u64> {
        self.disk.open_files_max()
    }

    fn memory_max(&self) -> Option<u64> {
        self.disk.memory_max()
    }

    fn shared_memory(&self) -> Option<u64> {
        self.shared_memory
    }

    fn now(&self) -> Duration {
        let mut call = Call::new(Op::Now, When::Done, Path::new(""));
        call.time = self.disk.now();
        self.script.on(&mut call).expect("a look at the clock cannot fail");
        call.time
    }
}
