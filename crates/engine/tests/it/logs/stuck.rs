//! Logs that are not needed, on a disk that does not remove them.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, Progress, any_mode};
use lsmith::env::{Env, LogFile, MemEnv, ReadFile, WriteFile};
use lsmith::{Builder, PersistMode, Store};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

fn builder(env: impl Env) -> Builder {
    let builder = Store::builder("/store").env(Arc::new(env)).lockstep(true);
    builder.log_bytes(64 << 10).memtable_bytes(4 << 20)
}

/// A disk on which no existing log can be removed or renamed.
#[derive(Debug)]
struct Stuck {
    disk: MemEnv,
    refused: Arc<AtomicU64>,
}

impl Stuck {
    fn refuse(&self, path: &Path) -> io::Result<()> {
        if path.extension().is_some_and(|kind| kind == "wal") && self.disk.file_bytes(path).is_ok()
        {
            self.refused.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    }
}

impl Env for Stuck {
    left_to_the_disk!(but rename);

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.refuse(from)?;
        self.disk.rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.refuse(path)?;
        self.disk.remove_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.disk.create(path)
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        self.disk.open(path)
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.disk.create_log(path, capacity)
    }

    fn now(&self) -> Duration {
        self.disk.now()
    }
}

/// What broke: a log that was left out, and could not be removed while the store was opened,
/// reappeared in front of later writes, which were then left out in its place.
#[test]
fn a_log_that_cannot_be_removed_while_opening_stays_away() {
    let refused = Arc::new(AtomicU64::new(0));
    with_seeds(60, |seed| {
        let mut dice = Dice::new(seed);
        let batches = Batches { value_bytes: 1500, ..Batches::new(seed) };
        let env = MemEnv::new();
        let store = builder(env.clone()).open().unwrap();
        let mut progress = Progress::default();
        for _ in 0..60 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        let mut env = env.crash_clone(dice.number(), 0.5);
        for _ in 0..3 {
            let stuck = Stuck { disk: env.clone(), refused: Arc::clone(&refused) };
            let store = builder(stuck).open().unwrap();
            let found = batches.check(&store);
            let mut progress = Progress { tried: found, acknowledged: found, synced: found };
            for _ in 0..1 + dice.below(50) {
                batches.go_on(&store, &mut progress, any_mode(&mut dice)).unwrap();
            }
            batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
            env = env.crash_clone(dice.number(), *dice.pick(&[0.0, 0.5]));
            let store = builder(env.clone()).open().unwrap();
            let found = batches.check(&store);
            assert!(found >= progress.synced, "{progress:?}, found {found}");
        }
    });
    let refused = refused.load(Ordering::SeqCst);
    assert!(refused > 60, "{refused} logs could not be removed");
}
