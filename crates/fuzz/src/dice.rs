//! Random choices that can be made again: every test that throws dice tells its seed when it
//! fails, and throws the same again with `LSMITH_SEED` set to it. `LSMITH_FULL=1` throws more.

use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Write, stderr};
use std::thread;

/// A seeded source of random numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// One that throws the same for the same seed.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number (splitmix64).
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit.max(1) as u64) as usize
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Random bytes, `length` of them.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

/// Whether the long runs were asked for.
pub fn full() -> bool {
    env::var_os("LSMITH_FULL").is_some_and(|value| value != "0")
}

/// A seed that is another each time, or the one asked for. Whoever takes it must tell it.
pub fn any_seed() -> u64 {
    asked_seed().unwrap_or_else(new_seed)
}

/// The seed in `LSMITH_SEED`.
pub(crate) fn asked_seed() -> Option<u64> {
    let asked = env::var("LSMITH_SEED").ok();
    asked.map(|seed| seed.parse().expect("LSMITH_SEED is a number"))
}

/// A seed that is another each time: the standard library draws it anew for each process.
pub(crate) fn new_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 16
}

/// Runs `test` with `count` seeds, ten times as many in a full run, or with the one seed asked for.
pub fn with_seeds(count: u64, test: impl Fn(u64)) {
    let seeds = match asked_seed() {
        Some(seed) => seed..seed + 1,
        None => 0..if full() { 10 * count } else { count },
    };
    for seed in seeds {
        let _told = Told(seed);
        test(seed);
    }
}

/// The same, and as many seeds again that no run before has thrown.
pub fn with_new_seeds(count: u64, test: impl Fn(u64)) {
    with_seeds(count, &test);
    if asked_seed().is_some() {
        return;
    }
    let first = new_seed();
    eprintln!("new seeds from {first} on");
    for seed in first..first + if full() { 10 * count } else { count } {
        let _told = Told(seed);
        test(seed);
    }
}

/// Tells the seed if the test fails while this is alive.
pub(crate) struct Told(pub(crate) u64);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(stderr(), "failed with LSMITH_SEED={}", self.0);
        }
    }
}
