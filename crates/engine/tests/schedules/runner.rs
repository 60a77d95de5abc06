//! Runs a program in many orders.

use crate::dice::{Dice, with_new_seeds};
use lsmith::env::Env;
use lsmith::{Builder, ErrorKind, Store};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, FailurePersistence, MaxSteps, Runner};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The number of orders per seed: one in which any thread may go on at any step, and others in
/// which threads are interrupted only a few times.
const FEW_SWITCHES: usize = 4;

/// The most interruptions of a thread in those orders.
const SWITCHES_MAX: usize = 4;

/// The number of steps after which a program counts as hanging.
const STEPS_MAX: usize = 3_000_000;

pub(crate) const DIR: &str = "/store";

pub(crate) const POLICIES: [&str; 8] = [
    "minlatency(k=2)",
    "tiered(ratio=2)",
    "leveled(ratio=2, l0=1, table=300B)",
    "constant(k=1)",
    "full(ratio=2)",
    "choose_best(ratio=2, rate=0.3)",
    "mixed(ratio=2, rate=0.3)",
    "jungle(c=1.5, ratio=2, table=300B)",
];

/// Runs `program` in five orders per seed.
pub(crate) fn in_any_order(seeds: u64, program: fn(&mut Dice)) {
    let count = Arc::new(AtomicU64::new(0));
    with_new_seeds(seeds, |seed| {
        let mut config = Config::new();
        config.stack_size = 1 << 20;
        config.failure_persistence = FailurePersistence::None;
        config.max_steps = MaxSteps::FailAfter(STEPS_MAX);
        config.silence_warnings = true;
        let once = {
            let count = Arc::clone(&count);
            move || {
                program(&mut Dice::new(seed));
                count.fetch_add(1, Relaxed);
            }
        };
        Runner::new(RandomScheduler::new_from_seed(seed, 1), config.clone()).run(once.clone());
        let few = PctScheduler::new_from_seed(seed, SWITCHES_MAX, FEW_SWITCHES);
        Runner::new(few, config).run(once);
    });
    eprintln!("{} schedules", count.load(Relaxed));
}

/// Returns options of a small store in which everything happens.
pub(crate) fn builder(env: &(impl Env + Clone), dice: &mut Dice) -> Builder {
    Store::builder(DIR)
        .env(Arc::new(env.clone()))
        .policy(*dice.pick(&POLICIES))
        .memtable_bytes([150, 400, 1 << 20][dice.below(3)])
        .block_bytes(100)
        .cache_bytes([0, 1000][dice.below(2)])
        .log_bytes(64 << 10)
        .threads(1 + dice.below(2))
}

/// Opens a store that another thread may still be closing.
pub(crate) fn opened_when_closed(builder: &Builder) -> Store {
    loop {
        match builder.clone().open() {
            Err(error) if error.kind() == ErrorKind::Locked => shuttle::thread::yield_now(),
            store => return store.unwrap(),
        }
    }
}
