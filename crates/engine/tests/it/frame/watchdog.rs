//! Timeouts for tests that would hang if they failed.

use std::io::Write;
use std::panic::resume_unwind;
use std::process::abort;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Far longer than any test takes, also if many run at once.
const PATIENCE: Duration = Duration::from_secs(180);

/// Ends the process unless it is dropped in time: nothing else ends a thread that waits for a lock
/// for ever.
pub(crate) struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    /// Prints `told` if the time is over.
    pub(crate) fn new(told: &'static str) -> Watchdog {
        let (alive, heard) = channel();
        thread::spawn(move || {
            if heard.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                // Past what the test harness captures, which ends with the process.
                let _ = writeln!(std::io::stderr(), "a test hangs: {told}");
                abort();
            }
        });
        Watchdog { _alive: alive }
    }
}

/// Runs `test` on a thread of its own. Fails if the thread has not ended in time, and leaves it
/// waiting.
pub(crate) fn ends(test: impl FnOnce() + Send + 'static) {
    let (sender, over) = channel();
    let name = thread::current().name().unwrap_or("a test").to_string();
    let thread = thread::Builder::new().name(name);
    let thread = thread.spawn(move || {
        test();
        let _ = sender.send(());
    });
    let thread = thread.unwrap();
    match over.recv_timeout(PATIENCE) {
        Ok(()) => thread.join().unwrap(),
        Err(RecvTimeoutError::Disconnected) => {
            resume_unwind(thread.join().expect_err("it ended without a word"))
        }
        Err(RecvTimeoutError::Timeout) => panic!("still waiting after {PATIENCE:?}"),
    }
}

/// Waits until `done`, for as long as [`ends`] allows.
pub(crate) fn wait_until(done: impl Fn() -> bool) {
    while !done() {
        thread::yield_now();
    }
}
