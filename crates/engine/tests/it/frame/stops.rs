//! Stops a piece of work at every operation on the disk.
//!
//! A [`Script`] runs once to count its operations. Then it runs again and again, each time on a
//! copy of the same disk, and is stopped at one operation: that operation fails, with no effect, a
//! partial effect, or its whole effect. All later operations fail too, or work again. The result is
//! examined as the next process finds it, and as a machine finds it after each class of power loss.
//!
//! Promised: the store opens without damage. It holds a prefix of the batches, in their order,
//! which includes all that had to survive. A bulk load is there completely or not at all. The store
//! goes on, and batches that are synced from then on survive the next power loss and the next
//! opening.
//!
//! A failure names its stop point. `LSMITH_STOP=name:n` repeats that one, with every effect and
//! every loss. `LSMITH_STOP=name` runs all stop points of that script, `LSMITH_FULL=1` all of every
//! script.

use crate::dice::{Dice, full};
use crate::frame::batches::{Batches, Progress, mapped_or_not};
use lsmith::env::{Effect, Fault, FaultEnv, Lasting, Loss, MemEnv};
use lsmith::{Builder, PersistMode, Store};
use std::io::ErrorKind;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Two directories deep, so that creating the store makes more than one.
pub(crate) const DIR: &str = "/made/for/store";

/// The keyspace of bulk loads, and the number of their entries.
const LOADED: &str = "loaded";
const LOADED_ENTRIES: usize = 300;

/// The length of the values of bulk loads. No other writes there have values of that length.
const LOADED_BYTES: usize = 50;

type Work = fn(&Store, &mut Life) -> lsmith::Result<()>;

/// A piece of work.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    pub(crate) name: &'static str,
    pub(crate) batches: Batches,
    pub(crate) options: fn(Builder) -> Builder,
    /// Runs once, before everything else.
    pub(crate) before: Work,
    /// How the store ends after that.
    pub(crate) end: End,
    /// Runs each time, without being stopped, in the store that then does the work. If there is
    /// none, opening the store is a part of the work.
    pub(crate) ready: Option<Work>,
    pub(crate) work: Work,
    /// Returns true if the work, when it is not stopped, has the effect that it is here for.
    pub(crate) proof: fn(&FaultEnv, &MemEnv) -> bool,
}

/// The end of a store.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// The store was closed.
    Closed,
    /// The process was killed.
    Killed,
    /// Power was lost.
    PowerLost,
}

/// The writes to a store so far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Life {
    pub(crate) batches: Batches,
    pub(crate) progress: Progress,
    load_tried: bool,
    load_done: bool,
}

impl Life {
    /// Writes `count` batches.
    pub(crate) fn write(
        &mut self,
        store: &Store,
        count: u64,
        mode: PersistMode,
    ) -> lsmith::Result<()> {
        (0..count).try_for_each(|_| self.batches.go_on(store, &mut self.progress, mode))
    }

    /// All earlier writes must survive from now on.
    pub(crate) fn synced(&mut self) {
        self.progress.synced = self.progress.acknowledged;
    }

    /// Loads all entries of [`LOADED`].
    pub(crate) fn load(&mut self, store: &Store) -> lsmith::Result<()> {
        let mut load = store.keyspace(LOADED)?.bulk_load()?;
        for number in 0..LOADED_ENTRIES {
            load.put(format!("{number:05}"), [number as u8; LOADED_BYTES])?;
        }
        self.load_tried = true;
        load.finish()?;
        self.load_done = true;
        // A load is newer than all that was written before it, and does not survive without that.
        self.synced();
        Ok(())
    }

    /// Compares the store with what was written. All batches up to `floor` must be there.
    fn check(&self, store: &Store, floor: u64) -> u64 {
        let found = self.batches.check(store);
        assert!(found >= floor, "batch {floor} was promised, found {found}");
        assert!(found <= self.progress.tried, "batch {found} was never tried");
        let space = store.existing_keyspace(LOADED).ok();
        let loads = |space: lsmith::Keyspace| {
            space.iter().filter(|entry| entry.as_ref().unwrap().1.len() == LOADED_BYTES).count()
        };
        let loaded = space.map_or(0, loads);
        assert!([0, LOADED_ENTRIES].contains(&loaded), "{loaded} entries of a load");
        assert!(!self.load_done || loaded > 0, "a load is gone");
        assert!(self.load_tried || loaded == 0, "a load is there that was not tried");
        let damage = store.verify().unwrap();
        assert!(damage.is_empty(), "{damage:?}");
        found
    }
}

/// The result of a script.
struct Left {
    disk: MemEnv,
    env: FaultEnv,
    life: Life,
    result: lsmith::Result<()>,
    /// The number of operations before the script could be stopped.
    ready_operations: u64,
}

/// The place at which a script is stopped.
#[derive(Clone, Copy, Debug)]
struct Stop {
    operation: u64,
    effect: Effect,
    /// True if all later operations fail too.
    lasting: Lasting,
}

/// A way to examine the result.
#[derive(Clone, Copy, Debug)]
enum Accident {
    Killed,
    PowerLost(Loss),
}

impl Accident {
    fn all() -> impl Iterator<Item = Accident> {
        Loss::ALL.into_iter().map(Accident::PowerLost).chain([Accident::Killed])
    }
}

impl Script {
    fn open(&self, builder: Builder) -> lsmith::Result<Store> {
        (self.options)(builder.log_bytes(64 << 10).block_bytes(200).lockstep(true)).open()
    }

    fn builder(env: impl lsmith::env::Env) -> Builder {
        Store::builder(DIR).env(Arc::new(env))
    }

    /// Returns the disk on which the work begins.
    fn start(&self, seed: u64) -> (MemEnv, Life) {
        let disk = MemEnv::new();
        let progress = Progress::default();
        let mut life =
            Life { batches: self.batches, progress, load_tried: false, load_done: false };
        let store = self.open(Script::builder(disk.clone())).unwrap();
        (self.before)(&store, &mut life).unwrap();
        let disk = match self.end {
            End::Closed => {
                drop(store);
                life.synced();
                disk
            }
            End::Killed => disk.process_crash_clone(),
            End::PowerLost => disk.power_loss(seed, Loss::Parts { keep: 0.8 }),
        };
        if matches!(self.end, End::PowerLost) {
            // What is there now is there to stay, but only the work may open the store.
            let copy = disk.process_crash_clone();
            let found =
                life.check(&self.open(Script::builder(copy)).unwrap(), life.progress.synced);
            life.progress = Progress { tried: found, acknowledged: found, synced: found };
        }
        (disk, life)
    }

    /// Does the work on a copy of `start`, stopped or not.
    fn run(&self, start: &(MemEnv, Life), stop: Option<Stop>, seed: u64) -> Left {
        let disk = start.0.process_crash_clone();
        let mut dice = Dice::new(seed);
        let env = FaultEnv::over(mapped_or_not(&disk, &mut dice));
        let closes = stop.is_none() || dice.chance(50);
        let mut left = Left { disk, env, life: start.1, result: Ok(()), ready_operations: 0 };
        let set = |env: &FaultEnv| {
            if let Some(Stop { operation, effect, lasting }) = stop {
                let kind = ErrorKind::Other;
                env.set_with(Fault { class: None, after: operation, lasting, kind }, effect);
            }
        };
        if self.ready.is_none() {
            set(&left.env);
        }
        left.result = self.open(Script::builder(left.env.clone())).and_then(|store| {
            if let Some(ready) = self.ready {
                ready(&store, &mut left.life).unwrap();
                left.ready_operations = left.env.count_all();
                set(&left.env);
            }
            let result = (self.work)(&store, &mut left.life);
            if !closes {
                // The accident comes before the store is closed.
                left.disk = left.disk.process_crash_clone();
            }
            result
        });
        if closes && left.result.is_ok() && left.env.first_failed().is_none() {
            left.life.synced();
        }
        left
    }

    /// Opens the store after `accident`, checks it, and makes it go on.
    fn examine(&self, left: &Left, accident: Accident, seed: u64) {
        let mut dice = Dice::new(seed);
        let progress = left.life.progress;
        let (disk, floor) = match accident {
            Accident::Killed => (left.disk.process_crash_clone(), progress.acknowledged),
            Accident::PowerLost(loss) => (left.disk.power_loss(seed, loss), progress.synced),
        };
        let mut life = left.life;
        let open = |disk: &MemEnv| self.open(Script::builder(disk.clone())).unwrap();
        let disk = mapped_or_not(&disk, &mut dice);
        let looked = dice.chance(25).then(|| self.look(&disk, floor));
        let store = open(&disk);
        let found = life.check(&store, floor);
        assert!(looked.is_none_or(|looked| looked == found), "{looked:?} to who only reads");
        life.progress = Progress { tried: found, acknowledged: found, synced: found };
        life.write(&store, 3, PersistMode::SyncData).unwrap();
        life.check(&store, found + 3);
        let cut = disk.power_loss(dice.number(), *dice.pick(&Loss::ALL));
        life.check(&open(&cut), found + 3);
        drop(store);
        life.check(&open(&disk), found + 3);
    }

    /// Returns the last batch that opening for reading only shows.
    fn look(&self, disk: &MemEnv, floor: u64) -> u64 {
        match self.open(Script::builder(disk.clone()).read_only(true)) {
            Ok(store) => self.batches.check(&store),
            Err(error) => {
                assert!(error.kind() == lsmith::ErrorKind::NotFound && floor == 0, "{error}");
                0
            }
        }
    }

    /// Stops the work everywhere, or at random places that `seed` chooses. Counts stop points, and
    /// returns the failures.
    pub(crate) fn stop_everywhere(&self, seed: u64, told: &mut Told) {
        let mut dice = Dice::new(seed);
        let start = self.start(seed);
        let whole = self.run(&start, None, seed);
        whole.result.as_ref().unwrap();
        let proven = (self.proof)(&whole.env, &whole.disk);
        assert!(proven, "{} does not do what it is here for", self.name);
        let operations = whole.env.count_all() - whole.ready_operations;
        told.note(self.name, operations);
        match self.asked() {
            Some(asked) => {
                let asked = asked.start..asked.end.min(operations);
                asked.for_each(|operation| self.stop_at(&start, operation, seed, told));
            }
            None => {
                (0..SAMPLE).for_each(|_| self.stop_by_dice(&start, operations, &mut dice, told));
            }
        }
    }

    /// Returns the operations at which to stop in every way; `None` if they are random.
    fn asked(&self) -> Option<Range<u64>> {
        let Ok(asked) = std::env::var("LSMITH_STOP") else {
            return full().then_some(0..u64::MAX);
        };
        let (name, number) = asked.split_once(':').unwrap_or((&asked, ""));
        Some(match number.parse() {
            _ if name != self.name => 0..0,
            Ok(number) => number..number + 1,
            Err(_) => 0..u64::MAX,
        })
    }

    fn stop_by_dice(
        &self,
        start: &(MemEnv, Life),
        operations: u64,
        dice: &mut Dice,
        told: &mut Told,
    ) {
        let operation = dice.below(operations as usize) as u64;
        let effects = [Effect::Nothing, Effect::Partly, Effect::Wholly, Effect::Dropped];
        let lasting = *dice.pick(&[Lasting::Once, Lasting::Forever]);
        let stop = Stop { operation, effect: *dice.pick(&effects), lasting };
        let accidents: Vec<Accident> = Accident::all().collect();
        self.stop_and_examine(start, stop, &[*dice.pick(&accidents)], dice.number(), told);
    }

    /// Stops at `operation`, with every effect and then every accident, or with some.
    fn stop_at(&self, start: &(MemEnv, Life), operation: u64, seed: u64, told: &mut Told) {
        let all: Vec<Accident> = Accident::all().collect();
        let mut dice = Dice::new(seed ^ operation);
        for lasting in [Lasting::Forever, Lasting::Once] {
            let mut stop = |effect| {
                let stop = Stop { operation, effect, lasting };
                // What fails once seldom leaves more than what fails and ends everything.
                let few = [*dice.pick(&all), *dice.pick(&all), Accident::Killed];
                let accidents = if lasting == Lasting::Once { &few } else { &all[..] };
                self.stop_and_examine(start, stop, accidents, seed, told)
            };
            let Some(failed) = stop(Effect::Nothing) else { return };
            failed.0.effects().iter().skip(1).for_each(|effect| drop(stop(*effect)));
        }
    }

    fn stop_and_examine(
        &self,
        start: &(MemEnv, Life),
        stop: Stop,
        accidents: &[Accident],
        seed: u64,
        told: &mut Told,
    ) -> Option<(lsmith::env::OpClass, PathBuf)> {
        let seed = seed ^ stop.operation.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let Stop { operation, effect, lasting } = stop;
        let place = format!("{}:{operation} {effect:?} {lasting:?}", self.name);
        let left = catch_unwind(AssertUnwindSafe(|| self.run(start, Some(stop), seed)));
        let Ok(left) = left.map_err(|panic| told.fail(format!("{place}: {}", message(&*panic))))
        else {
            return None;
        };
        let failed = left.env.first_failed();
        for (index, accident) in accidents.iter().enumerate() {
            if failed.as_ref().is_some_and(|(_, path)| !is_promised(path, effect, *accident)) {
                continue;
            }
            told.points += 1;
            let seed = seed.wrapping_add(index as u64);
            let examined = catch_unwind(AssertUnwindSafe(|| self.examine(&left, *accident, seed)));
            if let Err(panic) = examined {
                let at =
                    failed.as_ref().map(|(class, path)| format!("{class:?} {}", path.display()));
                let at = at.unwrap_or_default();
                told.fail(format!("{place} ({at}) {accident:?}: {}", message(&*panic)));
            }
        }
        failed
    }
}

/// Returns true if the store must survive `accident` after an operation on the file at `path`
/// failed with `effect`.
///
/// There is one exception. The system may take pages of a log for clean that are not on the device.
/// If only the process dies, the next one reads batches there that no sync of its own can make
/// durable. The store cannot know that, and relies on that log.
fn is_promised(path: &Path, effect: Effect, accident: Accident) -> bool {
    let dropped = matches!(effect, Effect::Dropped | Effect::Partly);
    let is_log = path.extension().is_some_and(|extension| extension == "wal");
    !(dropped && is_log && matches!(accident, Accident::Killed))
}

/// The number of stop points of each script if not all are tried.
const SAMPLE: usize = 40;

/// The number of stop points that were tried, and the failures.
#[derive(Debug, Default)]
pub(crate) struct Told {
    points: usize,
    operations: Vec<String>,
    failures: Vec<String>,
}

impl Told {
    fn note(&mut self, name: &str, operations: u64) {
        eprintln!("{name}: {operations} operations");
        self.operations.push(format!("{name}: {operations}"));
    }

    fn fail(&mut self, failure: String) {
        // At once: a full run takes its time.
        eprintln!("{failure}");
        self.failures.push(failure);
    }

    /// Prints what was tried.
    ///
    /// # Panics
    ///
    /// Panics if something failed.
    pub(crate) fn end(self, seed: u64) {
        eprintln!(
            "{} stop points with seed {seed}; operations of {}",
            self.points,
            self.operations.join(", ")
        );
        let count = self.failures.len();
        assert!(count == 0, "{count} failures, seed {seed}:\n{}", self.failures.join("\n"));
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_string()));
    text.unwrap_or_else(|| "a panic without words".to_string())
}
