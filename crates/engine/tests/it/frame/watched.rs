//! A disk that tells what readers ask of it, and says how long a read seems to take.

use crate::frame::scripted::{Call, Op, Script, Scripted};
use lsmith::env::{Env, RealEnv};
use parking_lot::Mutex;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::thread::{self, ThreadId};
use std::time::Duration;

/// A call of a reader to the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Announce(PathBuf, Range<u64>),
    Clock,
}

#[derive(Debug)]
struct Seen {
    thread: ThreadId,
    calls: Vec<Look>,
    now: Duration,
    /// The time by which each reading of the clock advances it.
    step: Duration,
}

/// A clock that the test advances, and the calls of the test's thread.
#[derive(Debug)]
pub(crate) struct Watch(Mutex<Seen>);

pub(crate) type Watched = Scripted<Watch>;

impl Watch {
    /// Returns the real disk, watched.
    pub(crate) fn new() -> Watched {
        Watch::over(RealEnv::new())
    }

    /// Returns `disk`, watched.
    pub(crate) fn over(disk: impl Env) -> Watched {
        let thread = thread::current().id();
        let calls = Vec::new();
        let seen = Seen { thread, calls, now: Duration::ZERO, step: Duration::ZERO };
        Scripted::new(disk, Watch(Mutex::new(seen)))
    }

    /// Makes timed accesses seem to take `time` from now on.
    pub(crate) fn all_takes(&self, time: Duration) {
        self.0.lock().step = time;
    }

    /// Returns the calls that `read` made.
    pub(crate) fn calls(&self, read: impl FnOnce()) -> Vec<Look> {
        self.0.lock().calls.clear();
        read();
        std::mem::take(&mut self.0.lock().calls)
    }
}

impl Seen {
    fn note(&mut self, call: Look) {
        if thread::current().id() == self.thread {
            self.calls.push(call);
        }
    }
}

impl Script for Watch {
    fn on(&self, call: &mut Call<'_>) -> io::Result<()> {
        let mut seen = self.0.lock();
        if call.is_before(Op::Announce) {
            seen.note(Look::Announce(call.path.to_path_buf(), call.range.clone()));
        } else if call.op == Op::Now {
            seen.note(Look::Clock);
            let step = seen.step;
            seen.now += step;
            call.time = seen.now;
        }
        Ok(())
    }
}

/// Returns the number of announcements among `calls`.
pub(crate) fn announces(calls: &[Look]) -> usize {
    calls.iter().filter(|call| **call != Look::Clock).count()
}
