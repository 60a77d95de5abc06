//! A disk in memory on which the sync of a log can be held up when it is done.

use lsmith::env::{Env, LogFile, MemEnv, ReadFile, SyncReach, WriteFile};
use parking_lot::{Condvar, Mutex};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Passes everything on, and waits after a certain sync of a log.
#[derive(Clone, Debug)]
pub(crate) struct GateEnv {
    disk: MemEnv,
    gate: Arc<Gate>,
}

#[derive(Debug, Default)]
struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    /// The sync that this counts down to will be held up.
    ClosesAfter(u32),
    Held,
}

impl GateEnv {
    pub(crate) fn new(disk: MemEnv) -> GateEnv {
        GateEnv { disk, gate: Arc::default() }
    }

    /// Holds up the `count`th sync from now on.
    pub(crate) fn hold_after_syncs(&self, count: u32) {
        *self.gate.state.lock() = State::ClosesAfter(count);
    }

    /// Waits until a sync is held up.
    pub(crate) fn wait_until_held(&self) {
        let mut state = self.gate.state.lock();
        self.gate.changed.wait_while(&mut state, |state| *state != State::Held);
    }

    /// Lets go on what is held up.
    pub(crate) fn release(&self) {
        *self.gate.state.lock() = State::Open;
        self.gate.changed.notify_all();
    }
}

impl Gate {
    fn pass(&self) {
        let mut state = self.state.lock();
        match *state {
            State::ClosesAfter(1) => *state = State::Held,
            State::ClosesAfter(count) => *state = State::ClosesAfter(count - 1),
            State::Open | State::Held => return,
        }
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| *state == State::Held);
    }
}

#[derive(Debug)]
struct GateLog {
    log: Box<dyn LogFile>,
    gate: Arc<Gate>,
}

impl LogFile for GateLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.log.append(bytes)
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        self.log.sync(reach)?;
        self.gate.pass();
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn capacity(&self) -> u64 {
        self.log.capacity()
    }
}

impl Env for GateEnv {
    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        let log = self.disk.create_log(path, capacity)?;
        Ok(Box::new(GateLog { log, gate: Arc::clone(&self.gate) }))
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.disk.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.disk.list(dir)
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.disk.file_bytes(path)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.disk.remove_file(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.disk.rename(from, to)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.disk.sync_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.disk.sync_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.disk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open(path)
    }

    fn lock(&self, dir: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        self.disk.lock(dir)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.disk.free_bytes(dir)
    }

    fn now(&self) -> Duration {
        self.disk.now()
    }
}
