//! Runs targets without a coverage-guided fuzzer.

use crate::Choices;
use crate::dice::{SeedOnPanic, asked_seed, new_seed, share};
use std::io::Write;
use std::process::abort;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

/// The factor of inputs in a long run. It takes a minute if the short run takes a second.
const FULL: u64 = 60;

/// The time limit of an input: far more than any input takes, even if many tests run at once.
const PATIENCE: Duration = Duration::from_secs(180);

/// Runs `target` with `inputs` inputs.
///
/// # Panics
/// Panics if the target panics.
pub fn run(inputs: u64, target: impl Fn(&mut Choices<'_>)) {
    if let Some(seed) = asked_seed() {
        return target(&mut Choices::of_seed(seed));
    }
    let first = new_seed();
    let count = share(inputs, FULL);
    let (started, heard) = channel();
    thread::spawn(move || watch(&heard));
    for seed in first..first + count {
        let _on_panic = SeedOnPanic(seed);
        let _ = started.send(seed);
        target(&mut Choices::of_seed(seed));
    }
}

/// Prints the seed of a hanging input and aborts the process. A hanging thread cannot be stopped.
fn watch(heard: &Receiver<u64>) {
    let mut last = 0;
    loop {
        match heard.recv_timeout(PATIENCE) {
            Ok(seed) => last = seed,
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {
                // Written directly: the test harness would lose captured output on abort.
                let _ = writeln!(std::io::stderr(), "an input hangs: LSMITH_SEED={last}");
                abort();
            }
        }
    }
}
