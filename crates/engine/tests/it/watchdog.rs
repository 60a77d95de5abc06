//! An end for tests that would hang if they failed.

use std::io::Write;
use std::process::abort;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::Duration;

/// Far more than any test takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends the process unless it is dropped in time: a thread that waits for a lock for ever can be
/// told nothing else.
pub(crate) struct Watchdog {
    _alive: Sender<()>,
}

impl Watchdog {
    /// Tells `told` should it come to that.
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
