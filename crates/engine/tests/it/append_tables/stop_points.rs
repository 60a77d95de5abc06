//! Every stop point of merges that append to trees or rewrite them: see [`crate::frame::stops`].
//!
//! Promised, beside what that module says: what a stopped batch has left behind the root that the
//! manifest names does no harm to the batches of the next life, which write over it.

use crate::dice::any_seed;
use crate::frame::batches::Batches;
use crate::frame::stops::{End, Life, Script, Told};
use lsmith::env::{FaultEnv, MemEnv};
use lsmith::{Builder, Clock, Event, Expiry, KeyspaceOptions, Observer, PersistMode, Store};
use lsmith_tree::{MergePlan, Mode, Place};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

/// What merges do with trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Append,
    InPlace,
    Split,
    Fuse,
    Drop,
}

/// The number of merges of each kind since the work of a script has begun. A script has no place
/// for a state of its own, and those here run one after the other.
static SEEN: Mutex<BTreeMap<Kind, u64>> = Mutex::new(BTreeMap::new());

fn seen() -> MutexGuard<'static, BTreeMap<Kind, u64>> {
    SEEN.lock().unwrap()
}

fn has_seen(kind: Kind) -> bool {
    seen().get(&kind).is_some_and(|count| *count > 0)
}

#[derive(Debug)]
struct Kinds;

impl Observer for Kinds {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        let Event::Committed { plan, before, .. } = event else { return };
        if let MergePlan { mode: Mode::Drop, inputs, .. } = plan {
            let (_, run) = before.run(inputs[0].run).unwrap();
            let slices = run.overlapping(&inputs[0].range);
            let trees = slices.iter().filter(|slice| slice.table().root > 0).count();
            *seen().entry(Kind::Drop).or_default() += trees as u64;
        }
        let MergePlan { inputs, place: Place::Append(_), .. } = plan else { return };
        let trees = |at: usize| {
            let (_, run) = before.run(inputs[at].run).unwrap();
            run.overlapping(&inputs[at].range).len()
        };
        let kind = match inputs.len() {
            2 => Kind::Append,
            _ if trees(0) == 2 => Kind::Fuse,
            _ if plan.cut_bytes.is_some() => Kind::Split,
            _ => Kind::InPlace,
        };
        *seen().entry(kind).or_default() += 1;
    }
}

/// Memtables are small, so that the life after a stop appends too.
fn trees(builder: Builder, policy: &str) -> Builder {
    builder.policy(policy).memtable_bytes(300).observer(Arc::new(Kinds))
}

fn write_some(store: &Store, life: &mut Life) -> lsmith::Result<()> {
    seen().clear();
    life.write(store, 3, PersistMode::Buffer)?;
    life.write(store, 1, PersistMode::SyncData)?;
    life.write(store, 4, PersistMode::Buffer)
}

/// Trees that are never rewritten for their dead bytes.
const APPENDS: Script = Script {
    name: "tree_appends",
    batches: Batches {
        seed: 1,
        keys: 60,
        key_bytes: 8,
        value_bytes: 60,
        in_group: false,
        ranges: false,
    },
    options: |builder| trees(builder, "jungle(c=1000, ratio=2, table=2kB)"),
    before: |store, life| life.write(store, 40, PersistMode::Buffer),
    end: End::Closed,
    ready: None,
    work: write_some,
    proof: |_, _| has_seen(Kind::Append),
};

/// Trees that are rewritten when they have a dead byte for ten live ones.
const IN_PLACE: Script = Script {
    name: "tree_in_place",
    options: |builder| trees(builder, "jungle(c=1.1, ratio=2, table=1kB)"),
    proof: |_, _| has_seen(Kind::InPlace),
    ..APPENDS
};

fn write_more(store: &Store, life: &mut Life) -> lsmith::Result<()> {
    seen().clear();
    life.write(store, 10, PersistMode::Buffer)?;
    life.write(store, 1, PersistMode::SyncData)?;
    life.write(store, 9, PersistMode::Buffer)
}

/// Trees that grow.
const SPLITS: Script = Script {
    name: "tree_splits",
    batches: Batches { keys: 3000, value_bytes: 200, ..APPENDS.batches },
    options: |builder| trees(builder, "jungle(c=3, ratio=2, table=400B)"),
    before: |store, life| life.write(store, 80, PersistMode::Buffer),
    work: write_more,
    proof: |_, _| has_seen(Kind::Split),
    ..APPENDS
};

/// Small trees beside others.
const FUSES: Script = Script {
    name: "tree_fuses",
    before: |store, life| life.write(store, 100, PersistMode::Buffer),
    proof: |_, _| has_seen(Kind::Fuse),
    ..SPLITS
};

/// The life before ended while merges were under way.
const AFTER_POWER_LOSS: Script = Script {
    name: "tree_after_power_loss",
    end: End::PowerLost,
    proof: |_: &FaultEnv, _: &MemEnv| has_seen(Kind::Append) && has_seen(Kind::InPlace),
    ..IN_PLACE
};

/// The clock of [`DROPS`].
static NOW: AtomicU64 = AtomicU64::new(0);

/// Trees that go unread because they have expired, and are followed by others.
const DROPS: Script = Script {
    name: "tree_drops",
    options: |builder| {
        let builder = trees(builder, "jungle(c=1000, ratio=2, table=2kB)");
        builder.clock(Clock::new("test", || NOW.load(Ordering::SeqCst)))
    },
    before: |store, life| {
        let expiry = Some(Expiry::after(10));
        store.keyspace_with("cache", &KeyspaceOptions { expiry, ..Default::default() })?;
        life.write(store, 5, PersistMode::Buffer)
    },
    work: |store, life| {
        seen().clear();
        let cache = store.existing_keyspace("cache")?;
        for round in 0..6_u64 {
            NOW.store(5 * round, Ordering::SeqCst);
            for number in 0..8 {
                cache.put([number, round as u8], [1; 30])?;
            }
            store.flush()?;
            life.synced();
            life.write(store, 1, PersistMode::Buffer)?;
            NOW.store(if round % 3 == 2 { 5 * round + 10 } else { 5 * round }, Ordering::SeqCst);
        }
        life.write(store, 1, PersistMode::SyncData)
    },
    proof: |_, _| has_seen(Kind::Drop),
    ..APPENDS
};

#[test]
fn trees_survive_every_stop_and_every_loss() {
    let seed = any_seed();
    let mut told = Told::default();
    for script in [APPENDS, IN_PLACE, SPLITS, FUSES, AFTER_POWER_LOSS, DROPS] {
        script.stop_everywhere(seed, &mut told);
    }
    told.end(seed);
}
