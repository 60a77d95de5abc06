//! Random choices that can be made again: every test that throws dice tells its seed when it
//! fails, and throws the same again with `LSMITH_SEED` set to it. `LSMITH_FULL=1` throws more.

use std::env;
use std::hash::{BuildHasher, RandomState};
use std::thread;

/// A seeded source of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// The next number (splitmix64).
    pub(crate) fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `limit`.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.number() % limit.max(1) as u64) as usize
    }

    /// True in `percent` of 100 cases.
    pub(crate) fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// One of `choices`.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        &choices[self.below(choices.len())]
    }

    /// Random bytes, `length` of them.
    pub(crate) fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(length + 8);
        while bytes.len() < length {
            bytes.extend_from_slice(&self.number().to_le_bytes());
        }
        bytes.truncate(length);
        bytes
    }
}

/// Whether the long runs were asked for.
pub(crate) fn full() -> bool {
    env::var_os("LSMITH_FULL").is_some_and(|value| value != "0")
}

/// A seed that is another each time, or the one asked for. Whoever takes it must tell it.
pub(crate) fn any_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    match env::var("LSMITH_SEED") {
        Ok(seed) => seed.parse().expect("LSMITH_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    }
}

/// Runs `test` with `count` seeds, ten times as many in a full run, or with the one seed asked for.
pub(crate) fn with_seeds(count: u64, test: impl Fn(u64)) {
    let asked = env::var("LSMITH_SEED").ok();
    let seeds = match asked.map(|seed| seed.parse::<u64>().expect("LSMITH_SEED is a number")) {
        Some(seed) => seed..seed + 1,
        None => 0..if full() { 10 * count } else { count },
    };
    for seed in seeds {
        let _told = Told(seed);
        test(seed);
    }
}

/// The same, and as many seeds again that no run before has thrown.
pub(crate) fn with_new_seeds(count: u64, test: impl Fn(u64)) {
    with_seeds(count, &test);
    if env::var_os("LSMITH_SEED").is_some() {
        return;
    }
    // The standard library draws this anew for each process.
    let first = RandomState::new().hash_one(count) >> 16;
    eprintln!("new seeds from {first} on");
    for seed in first..first + if full() { 10 * count } else { count } {
        let _told = Told(seed);
        test(seed);
    }
}

/// Tells the seed if the test fails while this is alive.
struct Told(u64);

impl Drop for Told {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("failed with LSMITH_SEED={}", self.0);
        }
    }
}
