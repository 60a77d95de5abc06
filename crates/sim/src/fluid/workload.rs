//! A stream of writes, described by counts of keys.

use super::amount::Amount;
use super::measured::{Counted, DistinctKeys};
use super::place::{PLACES, behind};
use super::segment::Segment;
use crate::{SCAN_ITEMS, SimError};
use lsmith_model::Popularity;
use lsmith_policy::written_bytes_max;
use lsmith_spec::{Spec, parse_bytes};
use lsmith_tree::logical_bytes;
use lsmith_workload::{OpKind, Workload};

/// Memtables of fewer entries are full after equally many.
const FEW_ENTRIES: f64 = 64.0;

/// The number of keys that are read for their mean length.
const KEYS_SAMPLED: u64 = 10_000;

/// The share of the entries of a full part of the key space that a part in part has at most.
const FULL: f64 = 0.9;

/// A memtable of this many times the keys of a part of the key space hardly shows the parts at the
/// ends of its stretches, which its writes reach only in part.
const PARTS_OF_MEMTABLE: f64 = 64.0;

/// The properties of a workload that fluid simulations need: the number of different keys in any
/// interval of its writes, and the size of entries.
#[derive(Clone, Debug)]
pub struct FluidWorkload {
    spec: Option<Spec>,
    flushes_max: u64,
    /// The mean number of entries of a range read.
    scan_items: f64,
    keys: Keys,
    /// True if a memtable leaves out parts of the key space that its writes reach only in part.
    is_inner: bool,
}

/// The written keys.
#[derive(Clone, Debug)]
enum Keys {
    /// A formula, with equal entries except tombstones.
    Formula(Formula, Entries),
    /// Counts from the writes themselves.
    Counted(Counted),
}

/// The formula for the number of different keys in an interval of writes.
#[derive(Clone, Debug)]
enum Formula {
    /// No key twice.
    New,
    /// This number of keys in key order, no key twice.
    Swept(f64),
    /// Each write draws its key independently, with the same probabilities.
    Drawn(Popularity),
}

/// The properties of equal writes.
#[derive(Clone, Copy, Debug)]
struct Entries {
    writes: f64,
    put_bytes: f64,
    tombstone_bytes: f64,
    delete_share: f64,
    /// The standard deviation of the size of a write, relative to the mean.
    spread: f64,
}

impl FluidWorkload {
    /// Returns a workload of puts of `entry_bytes` logical bytes to keys drawn by `popularity`.
    #[must_use]
    pub fn drawn(popularity: Popularity, writes: u64, entry_bytes: u64) -> FluidWorkload {
        let entries = Entries {
            writes: writes as f64,
            put_bytes: entry_bytes.max(1) as f64,
            tombstone_bytes: 0.0,
            delete_share: 0.0,
            spread: 0.0,
        };
        let keys = Keys::Formula(Formula::Drawn(popularity), entries);
        FluidWorkload {
            spec: None,
            flushes_max: u64::MAX,
            scan_items: SCAN_ITEMS,
            keys,
            is_inner: false,
        }
    }

    /// Returns the properties of `workload`: for `load` and `churn` by formula, with any number of
    /// keys; for all others by one pass over the operations.
    ///
    /// # Errors
    /// Fails with [`SimError::NotFluid`] if the workload writes nothing or too much to be counted,
    /// if its entries expire, or if it deletes ranges, and with [`SimError::Workload`] if it has a
    /// damaged line.
    pub fn new(workload: &Workload) -> Result<FluidWorkload, SimError> {
        let spec = workload.spec();
        if workload.lives().expire() {
            let what = "its entries expire, which only keyed simulations know";
            return Err(SimError::NotFluid { workload: spec.clone(), what });
        }
        if workload.deletes_ranges() {
            let what = "it deletes ranges, which only keyed simulations know";
            return Err(SimError::NotFluid { workload: spec.clone(), what });
        }
        let items = workload.items();
        let known = match (spec.name.as_str(), spec.param("order")) {
            ("load", Some("hashed")) => Ok(Formula::New),
            ("load", Some("sequential")) => Ok(Formula::Swept(items.max(1) as f64)),
            ("load", _) => Popularity::zipf(items, LOAD_SKEW).map(Formula::Drawn),
            ("churn", _) => Popularity::uniform(items).map(Formula::Drawn),
            _ => {
                let keys = Keys::Counted(Counted::of(workload)?);
                return Ok(FluidWorkload::of(workload, keys));
            }
        };
        let not_fluid = |_| SimError::NotFluid { workload: spec.clone(), what: "it has no keys" };
        let formula = known.map_err(not_fluid)?;
        Ok(FluidWorkload::of(workload, Keys::Formula(formula, Entries::of(workload))))
    }

    fn of(workload: &Workload, keys: Keys) -> FluidWorkload {
        let flushes_max = workload.limit_flushes().unwrap_or(u64::MAX);
        let scan_items = workload.scan_items().unwrap_or(SCAN_ITEMS);
        FluidWorkload {
            spec: Some(workload.spec().clone()),
            flushes_max,
            scan_items,
            keys,
            is_inner: false,
        }
    }

    /// Returns the spec of the workload, if it has one.
    #[must_use]
    pub fn spec(&self) -> Option<&Spec> {
        self.spec.as_ref()
    }

    /// Returns the number of flushes after which the simulation ends.
    pub(super) fn flushes_max(&self) -> u64 {
        self.flushes_max
    }

    /// Returns the expected number of different keys among the writes of an interval, if all of the
    /// key space were as at `place`.
    pub(super) fn keys(&self, place: u64, from: f64, until: f64) -> f64 {
        match &self.keys {
            Keys::Formula(formula, _) => formula.keys(from, until),
            Keys::Counted(counted) => counted.found(place, from, until).keys,
        }
    }

    /// Returns the content of a run with the writes of an interval, if all of the key space were as
    /// at `place`, with or without tombstones.
    pub(super) fn density(&self, place: u64, from: f64, until: f64, is_clean: bool) -> Amount {
        match &self.keys {
            Keys::Formula(formula, entries) => {
                Amount::of(entries.found(formula.keys(from, until)), is_clean)
            }
            Keys::Counted(counted) => Amount::of(counted.found(place, from, until), is_clean),
        }
    }

    /// Returns a memtable with the writes of an interval, in key order.
    pub(super) fn memory_segments(&self, from: f64, until: f64) -> Vec<Segment> {
        let (mut start, end) = match &self.keys {
            Keys::Formula(Formula::Swept(keys), _) => {
                let place = |writes: f64| behind(0, writes / keys, PLACES);
                (place(from), place(until))
            }
            _ => (0, PLACES),
        };
        let mut segments = Vec::new();
        while start < end {
            let border = self.border_after(start).min(end);
            let density = self.density(start, from, until, false);
            if density.entries > 0.0 {
                segments.push(Segment {
                    start,
                    end: border,
                    from,
                    until,
                    is_clean: false,
                    density,
                });
            }
            start = border;
        }
        if self.is_inner {
            segments = inner(segments);
        }
        segments
    }

    /// Returns true if simulations of the workload keep [tables](lsmith_tree::KeptTables), as keyed
    /// ones do: if its keys are written in key order. Elsewhere it hangs on single keys whether one
    /// table ends before the next begins, and expected sizes do not know. Merges then write all
    /// that they take, as in keyed simulations [with rewrites](crate::KeyedSim::with_rewrites).
    pub fn keeps_tables(&self) -> bool {
        self.is_swept()
    }

    /// Returns true if keys are written in key order.
    pub(super) fn is_swept(&self) -> bool {
        matches!(self.keys, Keys::Formula(Formula::Swept(_), _))
    }

    /// Checks that the number of blocks that overlap nothing is known, with memtables of
    /// `memtable_bytes`.
    ///
    /// # Errors
    /// Fails with [`SimError::NotFluid`] if keys that are written together lie next to each other,
    /// or if deletes leave less than half of the data.
    pub(super) fn check_blocks(&self, memtable_bytes: u64) -> Result<(), SimError> {
        let (Keys::Counted(counted), Some(spec)) = (&self.keys, &self.spec) else { return Ok(()) };
        let entries = memtable_bytes as f64 / self.entry_bytes();
        let is_ordered = entries < PARTS_OF_MEMTABLE * counted.ordered_keys() as f64;
        let what = if !counted.is_even() || is_ordered {
            "keys that are written together lie next to each other, so the number of keys does not \
             tell which blocks meet nothing"
        } else if counted.shrinks() {
            "deletes leave less than half of its data, so the number of keys does not tell how \
             blocks share tombstones and values"
        } else {
            return Ok(());
        };
        Err(SimError::NotFluid { workload: spec.clone(), what })
    }

    /// Checks that the workload only writes, for a policy that counts reads.
    ///
    /// # Errors
    /// Fails with [`SimError::NotFluid`] if it may have reads.
    pub(super) fn check_reads(&self) -> Result<(), SimError> {
        match (&self.keys, &self.spec) {
            (Keys::Counted(_), Some(spec)) => {
                let what = "the policy counts reads, and only keyed content has them one by one";
                Err(SimError::NotFluid { workload: spec.clone(), what })
            }
            _ => Ok(()),
        }
    }

    /// Returns true if the properties of the key space change at `place`.
    pub(super) fn is_border(&self, place: u64) -> bool {
        place > 0 && self.border_after(place - 1) == place
    }

    fn border_after(&self, place: u64) -> u64 {
        match &self.keys {
            Keys::Formula(..) => PLACES,
            Keys::Counted(counted) => counted.border_after(place),
        }
    }

    /// Returns the logical bytes of all live entries after the given number of writes.
    pub(super) fn live_bytes(&self, until: f64) -> f64 {
        match &self.keys {
            Keys::Formula(Formula::Swept(_), entries) => entries.found(until).put_bytes,
            Keys::Formula(..) => self.density(0, 0.0, until, true).bytes,
            Keys::Counted(counted) => counted.all(0.0, until).put_bytes,
        }
    }

    /// Returns the number of live entries after the given number of writes.
    pub(super) fn live_entries(&self, until: f64) -> f64 {
        match &self.keys {
            Keys::Formula(Formula::Swept(_), entries) => entries.found(until).puts,
            Keys::Formula(..) => self.density(0, 0.0, until, true).entries,
            Keys::Counted(counted) => counted.all(0.0, until).puts,
        }
    }

    /// Returns the same workload with half as many parts of the key space. `None` if keys that are
    /// written together lie anywhere.
    pub(super) fn coarser(&self) -> Option<FluidWorkload> {
        let Keys::Counted(counted) = &self.keys else { return None };
        Some(FluidWorkload { keys: Keys::Counted(counted.coarser()?), ..self.clone() })
    }

    /// Returns the same workload with memtables that leave out the ends of their stretches of the
    /// key space, where writes in key order reach parts of it only in part. Two memtables whose
    /// writes follow each other in key order then share no part. `None` if keys that are written
    /// together lie anywhere.
    pub(super) fn narrower(&self) -> Option<FluidWorkload> {
        self.is_clustered().then(|| FluidWorkload { is_inner: true, ..self.clone() })
    }

    /// Returns the mean number of entries of a range read.
    pub(super) fn scan_items(&self) -> f64 {
        self.scan_items
    }

    /// Returns the mean logical bytes of a write.
    pub(super) fn entry_bytes(&self) -> f64 {
        self.requested_bytes(self.writes()) / self.writes().max(1.0)
    }

    /// Returns true if keys are hashes of consecutive numbers.
    pub(super) fn is_hashed(&self) -> bool {
        let Some(spec) = &self.spec else { return false };
        let is_named = ["load", "ycsb", "mix", "update"].contains(&spec.name.as_str());
        is_named && spec.param("order") != Some("sequential")
    }

    /// Returns true if chance decides how many keys an interval has.
    pub(super) fn is_drawn(&self) -> bool {
        matches!(self.keys, Keys::Formula(Formula::Drawn(_), _))
    }

    /// Returns true if keys that are written together lie together.
    pub(super) fn is_clustered(&self) -> bool {
        matches!(&self.keys, Keys::Counted(counted) if counted.is_clustered())
    }

    /// Returns the number of all writes.
    pub(super) fn writes(&self) -> f64 {
        match &self.keys {
            Keys::Formula(_, entries) => entries.writes,
            Keys::Counted(counted) => counted.writes() as f64,
        }
    }

    /// Returns the logical bytes of the given number of writes.
    pub(super) fn requested_bytes(&self, writes: f64) -> f64 {
        match &self.keys {
            Keys::Formula(_, entries) => writes * entries.entry_bytes(),
            Keys::Counted(counted) => counted.requested_bytes(writes),
        }
    }

    /// Returns the number of the write at which a memtable is full that started after write `from`;
    /// `None` if the writes end before. Entries of different sizes make memtables differ, which
    /// decides which of two is larger. `draw`, with mean 0 and variance 1, selects the difference.
    pub(super) fn memtable_end(&self, from: f64, seal_bytes: u64, draw: f64) -> Option<f64> {
        let (formula, all) = match &self.keys {
            Keys::Formula(formula, entries) => (formula, entries),
            Keys::Counted(counted) => return counted.memtable_end(from, seal_bytes),
        };
        let entry_bytes = all.entry_bytes();
        let mean_entries = seal_bytes as f64 / entry_bytes;
        // Few entries make no difference: a memtable of few is full after whole entries.
        let more =
            if mean_entries < FEW_ENTRIES { 0.0 } else { draw * all.spread * mean_entries.sqrt() };
        // Smaller entries: `mean_entries + more` of them have the bytes of `entries` mean ones.
        let entries = (mean_entries + more).ceil().max(1.0) - more;
        let unique = match formula {
            Formula::New | Formula::Swept(_) => entries,
            Formula::Drawn(popularity) => popularity.inverse(entries),
        };
        let end = from + unique.min((written_bytes_max(seal_bytes) as f64 / entry_bytes).ceil());
        (end <= all.writes).then_some(end)
    }
}

/// Returns the segments without the ends of stretches that hold less than [`FULL`] of what is next
/// to them.
fn inner(segments: Vec<Segment>) -> Vec<Segment> {
    let entries = |at: usize| segments[at].density.entries;
    let touches = |left: usize, right: usize| segments[left].end == segments[right].start;
    let is_partial = |at: usize| {
        let before = at.checked_sub(1).filter(|before| touches(*before, at));
        let after = Some(at + 1).filter(|after| *after < segments.len() && touches(at, *after));
        match (before, after) {
            (Some(other), None) | (None, Some(other)) => entries(at) < FULL * entries(other),
            _ => false,
        }
    };
    (0..segments.len()).filter(|at| !is_partial(*at)).map(|at| segments[at]).collect()
}

impl Formula {
    fn keys(&self, from: f64, until: f64) -> f64 {
        match self {
            Formula::New => until - from,
            Formula::Swept(keys) => *keys,
            Formula::Drawn(popularity) => popularity.unique(until - from),
        }
    }
}

impl Entries {
    /// Returns the properties of a workload whose puts are equal.
    fn of(workload: &Workload) -> Entries {
        let spec = workload.spec();
        let deletes = spec.param("deletes").and_then(|share| share.parse().ok());
        let delete_share = deletes.unwrap_or(0.0);
        let (key_bytes, key_variance) = key_bytes(workload);
        let mut ops = workload.ops().filter_map(Result::ok);
        let put = ops.find(|op| op.kind == OpKind::Put);
        let value_bytes = put.map_or(0.0, |put| f64::from(put.value_bytes));
        let head_bytes = key_bytes + logical_bytes(0, 0) as f64;
        let bytes_max = spec.param("bytes").and_then(|bytes| parse_bytes(bytes).ok());
        let user_bytes = key_bytes + (1.0 - delete_share) * value_bytes;
        let limit = bytes_max.map_or(f64::INFINITY, |bytes| (bytes as f64 / user_bytes).ceil());
        let variance = key_variance + delete_share * (1.0 - delete_share) * value_bytes.powi(2);
        Entries {
            writes: (workload.ops_max() as f64).min(limit),
            put_bytes: head_bytes + value_bytes,
            tombstone_bytes: head_bytes,
            delete_share,
            spread: variance.sqrt() / (user_bytes + logical_bytes(0, 0) as f64),
        }
    }

    /// Returns the content of the newest writes to the given number of keys.
    fn found(&self, keys: f64) -> DistinctKeys {
        let puts = keys * (1.0 - self.delete_share);
        let tombstones = keys * self.delete_share;
        DistinctKeys {
            keys,
            puts,
            put_bytes: puts * self.put_bytes,
            tombstones,
            tombstone_bytes: tombstones * self.tombstone_bytes,
        }
    }

    /// Returns the mean logical bytes of a write.
    fn entry_bytes(&self) -> f64 {
        let share = self.delete_share;
        (1.0 - share) * self.put_bytes + share * self.tombstone_bytes
    }
}

/// The exponent of `load(order=zipf)`.
const LOAD_SKEW: f64 = 0.99;

/// Returns the mean and the variance of the length of a key.
fn key_bytes(workload: &Workload) -> (f64, f64) {
    let items = workload.items().max(1);
    let count = items.min(KEYS_SAMPLED);
    let bytes = |index: u64| workload.key_bytes(index * (items / count)) as f64;
    let mean = (0..count).map(bytes).sum::<f64>() / count as f64;
    let squares = (0..count).map(|index| (bytes(index) - mean).powi(2));
    (mean, squares.sum::<f64>() / count as f64)
}
