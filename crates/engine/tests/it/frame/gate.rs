//! A disk in memory that can block a thread.

use lsmith::env::{Env, LogFile, MemEnv, ReadFile, SyncReach, WriteFile};
use parking_lot::{Condvar, Mutex};
use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// Forwards all calls, and blocks the thread that makes a certain call.
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
    /// Blocks at the operation at which this count reaches zero.
    Closes(Step, u32),
    Held(ThreadId),
    /// Releases the blocked thread, whose operation then fails.
    Fails,
}

/// The places at which a thread can be blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// After the sync of a log.
    LogSynced,
    /// Before a file other than a log is created.
    Create,
    /// Before a file is removed.
    Remove,
    /// Before the manifest is synced.
    ManifestSync,
    /// Before a manifest is made.
    ManifestMade,
}

impl GateEnv {
    pub(crate) fn new(disk: MemEnv) -> GateEnv {
        GateEnv { disk, gate: Arc::default() }
    }

    /// Blocks the thread that reaches `step` for the `count`th time from now on.
    pub(crate) fn hold_at(&self, step: Step, count: u32) {
        *self.gate.state.lock() = State::Closes(step, count);
    }

    /// Waits until a thread is blocked, and returns its id.
    pub(crate) fn wait_until_held(&self) -> ThreadId {
        let mut state = self.gate.state.lock();
        loop {
            if let State::Held(thread) = *state {
                return thread;
            }
            self.gate.changed.wait(&mut state);
        }
    }

    /// Returns true if a thread is blocked.
    pub(crate) fn holds(&self) -> bool {
        matches!(*self.gate.state.lock(), State::Held(_))
    }

    /// Releases the blocked thread, and makes its operation fail.
    pub(crate) fn release_to_fail(&self) {
        *self.gate.state.lock() = State::Fails;
        self.gate.changed.notify_all();
    }

    /// Releases the blocked thread.
    pub(crate) fn release(&self) {
        *self.gate.state.lock() = State::Open;
        self.gate.changed.notify_all();
    }
}

impl Gate {
    fn pass(&self, step: Step) {
        self.pass_or_fail(step).expect("this step is not made to fail");
    }

    fn pass_or_fail(&self, step: Step) -> io::Result<()> {
        let mut state = self.state.lock();
        match *state {
            State::Closes(closes, 1) if closes == step => {
                *state = State::Held(thread::current().id());
            }
            State::Closes(closes, count) if closes == step => {
                *state = State::Closes(step, count - 1);
            }
            _ => return Ok(()),
        }
        self.changed.notify_all();
        self.changed.wait_while(&mut state, |state| matches!(state, State::Held(_)));
        match *state {
            State::Fails => {
                *state = State::Open;
                Err(io::Error::other("made to fail"))
            }
            _ => Ok(()),
        }
    }
}

#[derive(Debug)]
struct GateLog {
    log: Box<dyn LogFile>,
    is_manifest: bool,
    gate: Arc<Gate>,
}

impl LogFile for GateLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.log.append(bytes)
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        if self.is_manifest {
            self.gate.pass_or_fail(Step::ManifestSync)?;
        }
        self.log.sync(reach)?;
        self.gate.pass(Step::LogSynced);
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.log.bytes()
    }

    fn capacity(&self) -> u64 {
        self.log.capacity()
    }

    fn cut(&self) -> io::Result<()> {
        self.log.cut()
    }
}

impl Env for GateEnv {
    left_to_the_disk!();

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        let is_manifest = path.extension().is_some_and(|kind| kind == "manifest");
        if is_manifest {
            self.gate.pass_or_fail(Step::ManifestMade)?;
        }
        let log = self.disk.create_log(path, capacity)?;
        Ok(Box::new(GateLog { log, is_manifest, gate: Arc::clone(&self.gate) }))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.gate.pass(Step::Remove);
        self.disk.remove_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.gate.pass(Step::Create);
        self.disk.create(path)
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        self.gate.pass(Step::Create);
        self.disk.append(path, at)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open(path)
    }

    fn now(&self) -> Duration {
        self.disk.now()
    }
}
