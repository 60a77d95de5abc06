//! Runs without anybody who watches coverage.

use crate::Choices;
use crate::dice::{Told, asked_seed, full, new_seed};
use std::io::Write;
use std::process::abort;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// A long run has so many times the inputs: a minute, where the short one takes a second.
const FULL: u64 = 60;

/// Far more than any input takes, also where many tests run at once.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs `target` with `inputs` inputs.
///
/// # Panics
/// Where the target does.
pub fn run(inputs: u64, target: impl Fn(&mut Choices<'_>)) {
    if let Some(seed) = asked_seed() {
        return target(&mut Choices::of_seed(seed));
    }
    let first = new_seed();
    let count = inputs * if full() { FULL } else { 1 };
    let (started, heard) = channel();
    thread::spawn(move || watch(&heard));
    for seed in first..first + count {
        let _told = Told(seed);
        let _ = started.send(seed);
        target(&mut Choices::of_seed(seed));
    }
}

/// Ends the process where an input does not come to an end: nothing else can be told of it.
fn watch(heard: &Receiver<u64>) {
    let mut last = 0;
    loop {
        match heard.recv_timeout(PATIENCE) {
            Ok(seed) => last = seed,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                // Past what the test harness captures, which ends with the process.
                let _ = writeln!(std::io::stderr(), "an input hangs: LSMITH_SEED={last}");
                abort();
            }
        }
    }
}
