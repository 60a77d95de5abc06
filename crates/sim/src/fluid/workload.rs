//! A stream of writes of which only counts are known.

use crate::SimError;
use lsmith_model::Popularity;
use lsmith_policy::written_bytes_max;
use lsmith_spec::{Spec, parse_bytes};
use lsmith_tree::{Size, logical_bytes};
use lsmith_workload::{OpKind, Workload};

/// Keys looked at to find the mean length of all.
const KEYS_SAMPLED: u64 = 10_000;

/// What fluid simulations need of a workload: how many different keys any stretch of its writes
/// comes to, and how large an entry is.
#[derive(Clone, Debug)]
pub struct FluidWorkload {
    spec: Option<Spec>,
    writes: f64,
    flushes_max: u64,
    keys: Keys,
    put_bytes: f64,
    tombstone_bytes: f64,
    delete_share: f64,
    /// The standard deviation of the size of a write over its mean.
    spread: f64,
}

/// Which keys are written.
#[derive(Clone, Debug)]
enum Keys {
    /// No key twice.
    New,
    /// Any key at any time with the same chance, independent of all writes before.
    Drawn(Popularity),
}

impl FluidWorkload {
    /// Puts of `entry_bytes` logical bytes each, to keys drawn by `popularity`.
    #[must_use]
    pub fn drawn(popularity: Popularity, writes: u64, entry_bytes: u64) -> FluidWorkload {
        FluidWorkload {
            spec: None,
            writes: writes as f64,
            flushes_max: u64::MAX,
            keys: Keys::Drawn(popularity),
            put_bytes: entry_bytes.max(1) as f64,
            tombstone_bytes: 0.0,
            delete_share: 0.0,
            spread: 0.0,
        }
    }

    /// What is known of `workload` without drawing its operations: of `load` with `order=hashed` or
    /// `order=zipf`, and of `churn`.
    ///
    /// # Errors
    /// [`SimError::NotFluid`] for all others.
    pub fn new(workload: &Workload) -> Result<FluidWorkload, SimError> {
        let spec = workload.spec();
        let not_fluid = |what| SimError::NotFluid { workload: spec.clone(), what };
        let popularity = match (spec.name.as_str(), spec.param("order")) {
            ("load", Some("hashed")) => None,
            ("load", Some("zipf")) => Some(Popularity::zipf(workload.items(), LOAD_SKEW)),
            ("churn", _) => Some(Popularity::uniform(workload.items())),
            _ => {
                return Err(not_fluid("when and where a key is written must not depend on others"));
            }
        };
        let keys = match popularity {
            None => Keys::New,
            Some(Ok(popularity)) => Keys::Drawn(popularity),
            Some(Err(_)) => return Err(not_fluid("it has no keys")),
        };
        let delete_share = spec.param("deletes").and_then(|share| share.parse().ok());
        let delete_share = delete_share.unwrap_or(0.0);
        let (key_bytes, key_variance) = key_bytes(workload);
        let mut ops = workload.ops().filter_map(Result::ok);
        let put = ops.find(|op| op.kind == OpKind::Put);
        let value_bytes = put.map_or(0.0, |put| f64::from(put.value_bytes));
        let head_bytes = key_bytes + logical_bytes(0, 0) as f64;
        let limit = spec.param("bytes").and_then(|bytes| parse_bytes(bytes).ok());
        let user_bytes = key_bytes + (1.0 - delete_share) * value_bytes;
        let limit = limit.map_or(f64::INFINITY, |bytes| (bytes as f64 / user_bytes).ceil());
        let variance = key_variance + delete_share * (1.0 - delete_share) * value_bytes.powi(2);
        Ok(FluidWorkload {
            spec: Some(spec.clone()),
            writes: (workload.ops_max() as f64).min(limit),
            flushes_max: workload.limit_flushes().unwrap_or(u64::MAX),
            keys,
            put_bytes: head_bytes + value_bytes,
            tombstone_bytes: head_bytes,
            delete_share,
            spread: variance.sqrt() / (user_bytes + logical_bytes(0, 0) as f64),
        })
    }

    /// The spelling of the workload, if it has one.
    #[must_use]
    pub fn spec(&self) -> Option<&Spec> {
        self.spec.as_ref()
    }

    /// After how many flushes the simulation ends.
    pub(super) fn flushes_max(&self) -> u64 {
        self.flushes_max
    }

    /// Expected number of different keys among the writes from one up to another, without the
    /// keys deleted last if tombstones are gone.
    pub(super) fn density(&self, from: f64, upto: f64, is_clean: bool) -> f64 {
        let keys = match &self.keys {
            Keys::New => upto - from,
            Keys::Drawn(popularity) => popularity.unique(upto - from),
        };
        if is_clean { keys * (1.0 - self.delete_share) } else { keys }
    }

    /// The share of writes that delete.
    pub(super) fn delete_share(&self) -> f64 {
        self.delete_share
    }

    /// Mean logical bytes of an entry.
    pub(super) fn entry_bytes(&self, is_clean: bool) -> f64 {
        let share = if is_clean { 0.0 } else { self.delete_share };
        (1.0 - share) * self.put_bytes + share * self.tombstone_bytes
    }

    /// Logical bytes of the newest versions of all keys that are not deleted, after so many writes.
    pub(super) fn live_bytes(&self, upto: f64) -> f64 {
        self.density(0.0, upto, true) * self.put_bytes
    }

    /// Logical bytes of so many writes.
    pub(super) fn requested_bytes(&self, writes: f64) -> f64 {
        writes * self.entry_bytes(false)
    }

    /// How many writes there are when a memtable is full that took its first after `from` of them;
    /// `None` if the writes end before. Entries that differ in size make memtables differ, which
    /// decides what is the larger of two: `draw`, with mean 0 and variance 1, says by how much.
    pub(super) fn memtable_end(&self, from: f64, seal_bytes: u64, draw: f64) -> Option<f64> {
        let entry_bytes = self.entry_bytes(false);
        let entries = seal_bytes as f64 / entry_bytes;
        let more = draw * self.spread * entries.sqrt();
        // So many small entries, which come to less than as many of mean size.
        let entries = (entries + more).ceil().max(1.0) - more;
        let unique = match &self.keys {
            Keys::New => entries,
            Keys::Drawn(popularity) => popularity.inverse(entries),
        };
        let end = from + unique.min((written_bytes_max(seal_bytes) as f64 / entry_bytes).ceil());
        (end <= self.writes).then_some(end)
    }

    /// What entries, of which tombstones may be gone, come to.
    pub(super) fn size(&self, entries: f64, is_clean: bool) -> Amount {
        let share = if is_clean { 0.0 } else { self.delete_share };
        Amount { entries, bytes: entries * self.entry_bytes(is_clean), tombstones: entries * share }
    }
}

/// Exponent of the draws of `load(order=zipf)`.
const LOAD_SKEW: f64 = 0.99;

/// Mean and variance of the length of a key.
fn key_bytes(workload: &Workload) -> (f64, f64) {
    let items = workload.items().max(1);
    let count = items.min(KEYS_SAMPLED);
    let bytes = |index: u64| workload.key_bytes(index * (items / count)) as f64;
    let mean = (0..count).map(bytes).sum::<f64>() / count as f64;
    let squares = (0..count).map(|index| (bytes(index) - mean).powi(2));
    (mean, squares.sum::<f64>() / count as f64)
}

/// A [`Size`] that need not be whole.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amount {
    pub(super) entries: f64,
    pub(super) bytes: f64,
    pub(super) tombstones: f64,
}

impl Amount {
    pub(super) fn rounded(self) -> Size {
        Size {
            bytes: self.bytes.round() as u64,
            entries: self.entries.round() as u64,
            tombstones: self.tombstones.round() as u64,
        }
    }
}

impl std::ops::AddAssign for Amount {
    fn add_assign(&mut self, other: Amount) {
        self.entries += other.entries;
        self.bytes += other.bytes;
        self.tombstones += other.tombstones;
    }
}
