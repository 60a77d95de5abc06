//! Repeatable random choices. A test with dice prints its seed when it fails, and makes the same
//! choices again if `LSMITH_SEED` is set to this seed. `LSMITH_FULL=1` runs more seeds,
//! `LSMITH_QUICK=1` fewer.

use lsmith_spec::random;
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{Write, stderr};
use std::thread;

/// A seeded source of random numbers.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Returns dice. Equal seeds give equal numbers.
    #[must_use]
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        random::next(&mut self.0)
    }

    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit.max(1) as u64) as usize
    }

    /// Returns true in `percent` of 100 cases.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns one of `choices`.
    pub fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Returns `length` random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

/// Returns true if `LSMITH_FULL` asks for long runs.
pub fn full() -> bool {
    env::var_os("LSMITH_FULL").is_some_and(|value| value != "0")
}

/// Returns true if `LSMITH_QUICK` asks for short runs: on machines that are emulated.
pub fn quick() -> bool {
    env::var_os("LSMITH_QUICK").is_some_and(|value| value != "0")
}

/// Returns how many of `count` seeds or inputs a run takes: all, `more` times as many in a full
/// run, a fifth in a quick one.
pub(crate) fn share(count: u64, more: u64) -> u64 {
    match (full(), quick()) {
        (true, _) => count * more,
        (false, true) => count.div_ceil(5),
        (false, false) => count,
    }
}

/// Returns the seed in `LSMITH_SEED`, or a new one. The caller must print it on failure.
pub fn any_seed() -> u64 {
    asked_seed().unwrap_or_else(new_seed)
}

/// Returns the seed in `LSMITH_SEED`, or `usual`.
pub fn seed_or(usual: u64) -> u64 {
    asked_seed().unwrap_or(usual)
}

/// Returns the seed in `LSMITH_SEED`, if set.
pub(crate) fn asked_seed() -> Option<u64> {
    let asked = env::var("LSMITH_SEED").ok();
    asked.map(|seed| seed.parse().expect("LSMITH_SEED is a number"))
}

/// Returns a new random seed, from the hash keys that the standard library draws per process.
pub(crate) fn new_seed() -> u64 {
    RandomState::new().build_hasher().finish() >> 16
}

/// How many times as many seeds a full run takes.
const SEEDS_FULL: u64 = 10;

/// Runs `test` with `count` seeds, ten times as many in a full run, a fifth in a quick one, or with
/// the seed in `LSMITH_SEED`.
pub fn with_seeds(count: u64, test: impl Fn(u64)) {
    let seeds = match asked_seed() {
        Some(seed) => seed..seed + 1,
        None => 0..share(count, SEEDS_FULL),
    };
    for seed in seeds {
        let _on_panic = SeedOnPanic(seed);
        test(seed);
    }
}

/// Runs `test` with the same seeds and with as many new random seeds.
pub fn with_new_seeds(count: u64, test: impl Fn(u64)) {
    with_seeds(count, &test);
    if asked_seed().is_some() {
        return;
    }
    let first = new_seed();
    eprintln!("new seeds from {first} on");
    for seed in first..first + share(count, SEEDS_FULL) {
        let _on_panic = SeedOnPanic(seed);
        test(seed);
    }
}

/// Prints the seed if the test panics while this is alive.
pub(crate) struct SeedOnPanic(pub(crate) u64);

impl Drop for SeedOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = writeln!(stderr(), "failed with LSMITH_SEED={}", self.0);
        }
    }
}
