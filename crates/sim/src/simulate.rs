//! Whole simulations: a policy, its input, and the result.

use crate::drive::Observer;
use crate::simulation::counted;
use crate::{Drive, Event, FigureCounter, KeyedSim, SCAN_ITEMS, SimError, Simulation, UnitContent};
use lsmith_model::optimum::Unions;
use lsmith_policy::MergePolicy;
use lsmith_tree::{EntryKind, logical_bytes};
use lsmith_workload::{LiveBytes, Op, OpKind, Ranks, TIME_BYTES, Workload};
use std::sync::Arc;

/// Flushes memtables of the given sizes in bytes, with unit content: `repeat_n(UNIT_BYTES, 1000)`
/// for a thousand flushes of size one. `memtable_bytes` is the capacity that the policy sees.
///
/// # Errors
/// Fails if the policy takes windows of keys, proposes an illegal plan, or never rests.
pub fn simulate_unit(
    policy: &Arc<dyn MergePolicy>,
    flush_bytes: impl IntoIterator<Item = u64>,
    memtable_bytes: u64,
    observe: &mut Observer<'_>,
) -> Result<Simulation, SimError> {
    if policy.needs().windows {
        return Err(SimError::NoKeys { policy: policy.spec() });
    }
    let content = UnitContent::of(&**policy);
    let mut drive = Drive::new(Arc::clone(policy), content, memtable_bytes);
    let mut counter = FigureCounter::under(&**policy, SCAN_ITEMS);
    let mut live_bytes = 0;
    for bytes in flush_bytes {
        live_bytes += bytes;
        let memtable = UnitContent::memtable(drive.tree(), bytes);
        drive.flush(memtable, &mut |event| counted(event, live_bytes, &mut counter, observe))?;
        observe(Event::Flushed { tree: drive.tree() });
    }
    let keyspaces = Vec::new();
    Ok(Simulation { figures: counter.figures(), keyspaces, tree: drive.into_tree() })
}

/// A workload with the ranks of its keys, and the cache of its readers. Several simulations can
/// share it, since ranking ten million hashed keys takes seconds.
#[derive(Clone, Debug)]
pub struct KeyedWorkload {
    workload: Workload,
    ranks: Ranks,
    cache_bytes: Option<u64>,
    rewrites: bool,
}

impl KeyedWorkload {
    /// Ranks the keys of `workload`.
    pub fn new(workload: Workload) -> KeyedWorkload {
        KeyedWorkload { ranks: workload.ranks(), workload, cache_bytes: None, rewrites: false }
    }

    /// Returns the same workload, whose simulations keep no tables: merges [rewrite all that they
    /// take](KeyedSim::with_rewrites).
    #[must_use]
    pub fn with_rewrites(self) -> KeyedWorkload {
        KeyedWorkload { rewrites: true, ..self }
    }

    /// Returns the same workload, whose lookups and range reads go through a cache of `bytes`, if
    /// any.
    #[must_use]
    pub fn with_cache(self, bytes: Option<u64>) -> KeyedWorkload {
        KeyedWorkload { cache_bytes: bytes, ..self }
    }

    /// Returns the bytes of the cache, if there is one.
    pub fn cache_bytes(&self) -> Option<u64> {
        self.cache_bytes
    }

    /// Returns the workload.
    pub fn workload(&self) -> &Workload {
        &self.workload
    }

    /// Returns the rank of each item's key in byte order.
    pub fn ranks(&self) -> &Ranks {
        &self.ranks
    }
}

/// Simulates the writes and the range reads of a workload with keyed content and memtables of
/// `memtable_bytes`, up to the end of the workload or of its limit on flushes. Writes left in the
/// active memtable are in no figure.
///
/// # Errors
/// Fails if the policy proposes an illegal plan, if it never rests, or if the workload has a
/// damaged line.
pub fn simulate_keyed(
    policy: &Arc<dyn MergePolicy>,
    input: &KeyedWorkload,
    memtable_bytes: u64,
    observe: &mut Observer<'_>,
) -> Result<Simulation, SimError> {
    watch_keyed(policy, input, memtable_bytes, observe, &mut |_| {})
}

/// Does what [`simulate_keyed`] does, and calls `at_rest` with the simulation after each flush. The
/// caller can so look at entries, which no event has.
///
/// # Errors
/// As [`simulate_keyed`].
pub fn watch_keyed(
    policy: &Arc<dyn MergePolicy>,
    input: &KeyedWorkload,
    memtable_bytes: u64,
    observe: &mut Observer<'_>,
    at_rest: &mut dyn FnMut(&KeyedSim),
) -> Result<Simulation, SimError> {
    let flushes_max = input.workload.limit_flushes().unwrap_or(u64::MAX);
    let mut feed = Feed::new(input);
    let mut sim = feed.sim(policy, memtable_bytes);
    for op in input.workload.ops() {
        let flushes = sim.flushes();
        if !feed.op(&mut sim, &op?) {
            continue;
        }
        if sim.is_full() {
            sim.set_live_entries(feed.live_entries());
            sim.flush(feed.live_bytes(), observe)?;
            at_rest(&sim);
        }
        if sim.flushes() > flushes {
            observe(Event::Flushed { tree: sim.tree() });
            if sim.flushes() >= flushes_max {
                break;
            }
        }
    }
    Ok(sim.finish())
}

/// Returns the sizes of all merges of consecutive flushes of a workload, in each of `ranges` key
/// ranges. `unmerged` is a policy that never merges; it decides when memtables are sealed. Ranges
/// have equally many keys. Tombstones come out of every merge that leaves out an older flush.
///
/// `None` for more than `flushes_max` flushes, and where the size of a merge also depends on
/// other things than the newest version of each key: if entries expire, are combined or go by
/// ranges, or if inserts and removes cancel each other.
///
/// # Errors
/// As [`simulate_keyed`].
///
/// # Panics
/// Panics if `ranges` is 0.
pub fn keyed_unions(
    unmerged: &Arc<dyn MergePolicy>,
    input: &KeyedWorkload,
    memtable_bytes: u64,
    [ranges, flushes_max]: [usize; 2],
) -> Result<Option<Vec<Unions>>, SimError> {
    assert!(ranges > 0, "no key range");
    let workload = input.workload();
    if workload.lives().expire() || workload.deletes_ranges() {
        return Ok(None);
    }
    let mut feed = Feed::new(input);
    let mut sim = feed.sim(unmerged, memtable_bytes);
    for op in workload.ops() {
        let op = op?;
        // Reads would look at all runs.
        if written_kind(op.kind).is_some() && feed.op(&mut sim, &op) && sim.is_full() {
            sim.flush(feed.live_bytes(), &mut |_| {})?;
            if Some(sim.flushes()) == workload.limit_flushes() {
                break;
            }
            if sim.flushes() > flushes_max as u64 {
                return Ok(None);
            }
        }
    }
    Ok(sim.unions(ranges))
}

/// Feeds the operations of a workload to a keyed simulation.
pub(crate) struct Feed<'a> {
    input: &'a KeyedWorkload,
    live: LiveBytes,
    /// True if entries do not expire and no range is deleted.
    is_plain: bool,
}

impl<'a> Feed<'a> {
    pub(crate) fn new(input: &'a KeyedWorkload) -> Feed<'a> {
        let workload = &input.workload;
        let is_plain = !workload.lives().expire() && !workload.deletes_ranges();
        Feed { input, live: LiveBytes::of(workload), is_plain }
    }

    /// Returns an empty simulation that counts what the workload has.
    pub(crate) fn sim(&self, policy: &Arc<dyn MergePolicy>, memtable_bytes: u64) -> KeyedSim {
        let workload = &self.input.workload;
        let mut sim = KeyedSim::new(policy, memtable_bytes);
        if let Some(items) = workload.scan_items() {
            sim = sim.with_scan_items(items).with_scans();
        }
        if let Some(items) = workload.keyspace_items() {
            sim = sim.with_keyspaces(items);
        }
        if let Some(bytes) = self.input.cache_bytes {
            sim = sim.with_cache(bytes);
        }
        if workload.lives().expire() {
            sim = sim.with_expiry(workload.lives());
        }
        if workload.deletes_ranges() {
            sim = sim.with_range_deletes();
        }
        // A merge may compute values of combines. Nobody knows whether a table has some.
        if workload.combines() || self.input.rewrites {
            sim = sim.with_rewrites();
        }
        sim
    }

    /// Returns the logical bytes of the entry that `op` writes, if it writes one.
    pub(crate) fn written_bytes(&self, op: &Op) -> Option<u64> {
        let (_, bytes) = written_entry(op, self.input.workload.key_bytes(op.item))?;
        Some(bytes.into())
    }

    /// Does `op`. Returns true if it has written.
    pub(crate) fn op(&mut self, sim: &mut KeyedSim, op: &Op) -> bool {
        let KeyedWorkload { workload, ranks, cache_bytes, .. } = self.input;
        let rank = || u32::try_from(ranks.rank(op.item)).expect("workloads have 2^32 keys at most");
        if sim.counts_reads() && matches!(op.kind, OpKind::Read | OpKind::ReadModifyWrite) {
            let found = u64::from(self.live.holds(op.item));
            sim.note_reads([found, 1 - found, 0]);
        }
        match op.kind {
            OpKind::Scan => sim.scan(rank(), op.items),
            OpKind::Read | OpKind::ReadModifyWrite if cache_bytes.is_some() => sim.lookup(rank()),
            _ => {}
        }
        let key_bytes = workload.key_bytes(op.item);
        let Some((kind, bytes)) = written_entry(op, key_bytes) else { return false };
        self.live.observe(op, key_bytes);
        if self.is_plain {
            sim.write(kind, rank(), bytes);
        } else {
            let tombstone_bytes = logical_bytes(key_bytes, 0) as u32;
            write_special(sim, op, rank(), (kind, bytes), tombstone_bytes);
        }
        true
    }

    /// Returns the logical bytes of all live entries.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live.bytes()
    }

    /// Returns the number of live entries.
    pub(crate) fn live_entries(&self) -> u64 {
        self.live.entries()
    }
}

/// Writes what `op` writes to the key with this rank, in a simulation with range deletes or with
/// entries that expire.
#[cold]
fn write_special(
    sim: &mut KeyedSim,
    op: &Op,
    rank: u32,
    (kind, bytes): (EntryKind, u32),
    tombstone_bytes: u32,
) {
    if kind == EntryKind::Expiring {
        sim.write_expiring(rank, bytes, tombstone_bytes);
    } else if op.kind == OpKind::DeleteRange {
        // Items of such a workload are in key order.
        sim.delete_range(op.item..op.end(), bytes);
    } else {
        sim.write(kind, rank, bytes);
    }
}

/// Returns the kind and the logical bytes of the entry that `op` writes, if it writes one. Its key
/// has `key_bytes`.
pub fn written_entry(op: &Op, key_bytes: usize) -> Option<(EntryKind, u32)> {
    let mut kind = written_kind(op.kind)?;
    let mut bytes = logical_bytes(key_bytes, op.value_bytes as usize);
    if op.life > 0 {
        kind = EntryKind::Expiring;
        bytes += TIME_BYTES;
    }
    Some((kind, u32::try_from(bytes).expect("values end far below 4 GiB")))
}

/// Returns the kind of entry that an operation writes, if it writes one and entries do not expire.
pub fn written_kind(op: OpKind) -> Option<EntryKind> {
    match op {
        OpKind::Read | OpKind::Scan => None,
        OpKind::Put | OpKind::ReadModifyWrite => Some(EntryKind::Put),
        OpKind::Insert => Some(EntryKind::Insert),
        // A tombstone of its first key stands for a range delete in memory.
        OpKind::Delete | OpKind::DeleteRange => Some(EntryKind::Delete),
        OpKind::Remove => Some(EntryKind::Remove),
        OpKind::Combine => Some(EntryKind::Combine),
    }
}
