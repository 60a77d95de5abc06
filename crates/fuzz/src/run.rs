//! Runs without anybody who watches coverage.

use crate::Choices;
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
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
    if let Ok(seed) = env::var("LSMITH_SEED") {
        let seed = seed.parse().expect("LSMITH_SEED is a number");
        return target(&mut Choices::of_seed(seed));
    }
    // The standard library draws this anew for each process.
    let first = RandomState::new().build_hasher().finish() >> 16;
    let is_full = env::var_os("LSMITH_FULL").is_some_and(|value| value != "0");
    let count = inputs * if is_full { FULL } else { 1 };
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

/// Tells the seed if the target fails while this is alive.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(std::io::stderr(), "failed with LSMITH_SEED={}", self.0);
        }
    }
}
