//! The memory of this process without pages of files.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Returns the bytes of memory that this process holds, without pages of files.
pub(crate) fn anon_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux has it");
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    kilobytes.expect("Linux says it") * 1024
}

/// Samples the memory of this process until it is stopped.
pub(crate) struct Sampler {
    over: Arc<AtomicBool>,
    thread: JoinHandle<u64>,
}

impl Sampler {
    pub(crate) fn start() -> Sampler {
        let over = Arc::<AtomicBool>::default();
        let is_over = Arc::clone(&over);
        let sample = move || {
            let mut most = 0;
            while !is_over.load(Ordering::Relaxed) {
                most = anon_bytes().max(most);
                thread::sleep(Duration::from_millis(3));
            }
            most
        };
        Sampler { over, thread: thread::spawn(sample) }
    }

    /// Returns the most bytes of any sample.
    pub(crate) fn stop(self) -> u64 {
        self.over.store(true, Ordering::Relaxed);
        self.thread.join().expect("sampling does not fail")
    }
}
