//! Logs that are not needed, on a disk that does not remove them.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{Batches, Progress, any_mode};
use crate::frame::scripted::{Call, Op, Scripted};
use crate::frame::small::small;
use lsmith::PersistMode;
use lsmith::env::{Env, MemEnv};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Returns `disk`, on which no existing log can be removed or renamed. Counts refusals.
fn stuck(disk: &MemEnv, refused: &Arc<AtomicU64>) -> impl Env + Clone + use<> {
    let (there, refused) = (disk.clone(), Arc::clone(refused));
    Scripted::new(disk.clone(), move |call: &mut Call<'_>| {
        let is_of_log = call.is_of("wal") && there.file_bytes(call.path).is_ok();
        if is_of_log && (call.is_before(Op::Remove) || call.is_before(Op::Rename)) {
            refused.fetch_add(1, Ordering::SeqCst);
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        Ok(())
    })
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
        let store = small(&env).memtable_bytes(4 << 20).open().unwrap();
        let mut progress = Progress::default();
        for _ in 0..60 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        let mut env = env.crash_clone(dice.number(), 0.5);
        for _ in 0..3 {
            let store = small(&stuck(&env, &refused)).memtable_bytes(4 << 20).open().unwrap();
            let found = batches.check(&store);
            let mut progress = Progress { tried: found, acknowledged: found, synced: found };
            for _ in 0..1 + dice.below(50) {
                batches.go_on(&store, &mut progress, any_mode(&mut dice)).unwrap();
            }
            batches.go_on(&store, &mut progress, PersistMode::SyncData).unwrap();
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
            env = env.crash_clone(dice.number(), *dice.pick(&[0.0, 0.5]));
            let store = small(&env).memtable_bytes(4 << 20).open().unwrap();
            let found = batches.check(&store);
            assert!(found >= progress.synced, "{progress:?}, found {found}");
        }
    });
    let refused = refused.load(Ordering::SeqCst);
    assert!(refused > 60, "{refused} logs could not be removed");
}
