//! An end to tests whose subject may wait for ever.

use std::panic::resume_unwind;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// Far more than any test needs, also where many run at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// Runs `test` on a thread of its own. Fails where it has not ended after a minute: whatever waits
/// there goes on waiting.
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
