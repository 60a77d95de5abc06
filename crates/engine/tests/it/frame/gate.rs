//! A gate on a disk, at which a thread can be blocked.

use super::scripted::{Call, Op, Script, Scripted, When};
use lsmith::env::MemEnv;
use parking_lot::{Condvar, Mutex};
use std::io;
use std::thread::{self, ThreadId};

/// A disk in memory that blocks the thread that makes a certain call.
pub(crate) type GateEnv = Scripted<Gate>;

#[derive(Debug, Default)]
pub(crate) struct Gate {
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
    /// Before a file other than a log is created, written on, or gets a second name.
    Create,
    /// Before a file is removed.
    Remove,
    /// Before the manifest is synced.
    ManifestSync,
    /// Before a manifest is made.
    ManifestMade,
}

impl Gate {
    pub(crate) fn over(disk: MemEnv) -> GateEnv {
        Scripted::new(disk, Gate::default())
    }

    /// Blocks the thread that reaches `step` for the `count`th time from now on.
    pub(crate) fn hold_at(&self, step: Step, count: u32) {
        *self.state.lock() = State::Closes(step, count);
    }

    /// Waits until a thread is blocked, and returns its id.
    pub(crate) fn wait_until_held(&self) -> ThreadId {
        let mut state = self.state.lock();
        loop {
            if let State::Held(thread) = *state {
                return thread;
            }
            self.changed.wait(&mut state);
        }
    }

    /// Returns true if a thread is blocked.
    pub(crate) fn holds(&self) -> bool {
        matches!(*self.state.lock(), State::Held(_))
    }

    /// Releases the blocked thread, and makes its operation fail.
    pub(crate) fn release_to_fail(&self) {
        *self.state.lock() = State::Fails;
        self.changed.notify_all();
    }

    /// Releases the blocked thread.
    pub(crate) fn release(&self) {
        *self.state.lock() = State::Open;
        self.changed.notify_all();
    }

    fn pass(&self, step: Step) -> io::Result<()> {
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

impl Script for Gate {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        match (call.op, call.when) {
            (Op::LogSync, When::Before) if call.is_of("manifest") => self.pass(Step::ManifestSync),
            (Op::LogSync, When::Done) => self.pass(Step::LogSynced),
            (Op::CreateLog, When::Before) if call.is_of("manifest") => {
                self.pass(Step::ManifestMade)
            }
            (Op::Create | Op::WriteOn | Op::Link, When::Before) => self.pass(Step::Create),
            (Op::Remove, When::Before) => self.pass(Step::Remove),
            _ => Ok(()),
        }
    }
}
