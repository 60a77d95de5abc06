//! The common part of `uniform`, `normal` and `tpc`: the number of records grows, then inserts and
//! removes keep it about equal.

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use crate::info::{ParamUnit, WorkloadParam, param};
use crate::parts::{KEYS_MAX, value_bytes};
use crate::present::PresentKeys;
use crate::{Op, Rng};

/// Where the workloads come from.
pub(crate) const SOURCE: &str = "Thonangi & Yang, VLDB 2017, section V";

/// The parameters of [`Steady`], and `domain`.
pub(crate) const KEYS: WorkloadParam =
    param("keys", ParamUnit::Count, "the records of the load phase, 0 to 2^32 - 1").or("1M");
pub(crate) const OPS: WorkloadParam =
    param("ops", ParamUnit::Count, "the operations of the run phase; as many as keys if left out");
pub(crate) const DELETES: WorkloadParam =
    param("deletes", ParamUnit::Number, "the share of the run phase that removes, 0 to 1")
        .or("0.5");
pub(crate) const STEADY_VALUE: WorkloadParam =
    param("value", ParamUnit::Bytes, "the length of each value, 0B to 256MiB").or("100B");
pub(crate) const WEIGH: WorkloadParam = param(
    "weigh",
    ParamUnit::Word,
    "what a remove counts for in simulations: its key (`entries`), or as much as a record \
     (`records`, as in the paper)",
)
.or("entries");
pub(crate) const DOMAIN: WorkloadParam =
    param("domain", ParamUnit::Count, "keys are numbers below it, 1 to 2^32 - 1").or("1G");

/// Purposes of the random numbers, each with a stream of its own.
#[derive(Clone, Copy)]
pub(crate) enum Purpose {
    /// Insert or remove.
    Kinds,
    /// Where to insert.
    Inserts,
    /// What to remove.
    Removes,
    /// Where the mean moves.
    Means,
}

impl Purpose {
    pub(crate) fn rng(self, seed: u64) -> Rng {
        Rng::new(seed, self as u64)
    }
}

/// The experiments of Thonangi & Yang, "On log-structured merge for solid-state drives" (2017),
/// section V. The load phase inserts `keys` records. The run phase makes `ops` requests. A share
/// `deletes` of them remove records. With a share of one half the number of records stays the same,
/// except for chance.
///
/// Every insert is of an absent key and every remove of a present one, so operations are inserts
/// and removes, not puts and deletes.
#[derive(Clone, Debug)]
pub(crate) struct Steady {
    keys: u64,
    ops: u64,
    deletes: f64,
    value_bytes: u32,
    /// True if a remove counts for the bytes of a record, as in the paper, and not only for its
    /// key.
    weigh_records: bool,
}

impl Steady {
    /// Reads the shared parameters, `keys`, `ops`, `deletes`, `value` and `weigh`.
    pub(crate) fn from_params(params: &Params) -> Result<Self, SpecError> {
        let keys = params.count("keys", 1_000_000, ..=KEYS_MAX)?;
        Ok(Self {
            keys,
            ops: params.count("ops", keys, ..=KEYS_MAX)?,
            deletes: params.real("deletes", 0.5, 0.0..=1.0)?,
            value_bytes: value_bytes(params, 100)?,
            weigh_records: params.choice("weigh", "entries", &["entries", "records"])? == "records",
        })
    }

    /// Adds the shared parameters to a spec.
    pub(crate) fn spell(&self, spec: Spec) -> Spec {
        spec.with("keys", format_count(self.keys))
            .with("ops", format_count(self.ops))
            .with("deletes", self.deletes)
            .with("value", format_bytes(self.value_bytes.into()))
            .with("weigh", if self.weigh_records { "records" } else { "entries" })
    }

    /// Returns the number of records of the load phase, which is also its number of operations.
    pub(crate) fn load_ops(&self) -> u64 {
        self.keys
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.keys + self.ops
    }

    /// Returns the fraction of the run phase that removes.
    pub(crate) fn deletes(&self) -> f64 {
        self.deletes
    }

    pub(crate) fn insert(&self, item: u64) -> Op {
        Op::insert(item, self.value_bytes)
    }

    pub(crate) fn remove(&self, item: u64) -> Op {
        let value_bytes = if self.weigh_records { self.value_bytes } else { 0 };
        Op { value_bytes, ..Op::remove(item, self.value_bytes) }
    }
}

/// Returns the size of the key space: keys are the numbers below it.
///
/// 10^9 as in the paper unless given. It must hold all records; without deletes, the records of the
/// run phase too.
pub(crate) fn domain(params: &Params, steady: &Steady) -> Result<u32, SpecError> {
    let domain = params.count("domain", 1_000_000_000, 1..=KEYS_MAX)?;
    let records = if steady.deletes == 0.0 { steady.ops_max() } else { steady.keys };
    if records > domain {
        let message = format!("{records} records don't fit into a domain of {domain} keys");
        return Err(SpecError::conflict(message));
    }
    Ok(u32::try_from(domain).expect("the range ends below 2^32"))
}

/// Where a workload inserts.
pub(crate) trait InsertKeys {
    /// Inserts an absent key. There must be one.
    fn insert(&mut self, present: &mut PresentKeys) -> u32;
}

/// Inserts keys drawn by `K`, and removes any present key with equal chance. Inserts if no key is
/// present, and removes if every key is present.
#[derive(Clone, Debug)]
pub(crate) struct SteadyOps<K> {
    steady: Steady,
    domain: u64,
    made: u64,
    present: PresentKeys,
    inserts: K,
    kinds: Rng,
    removes: Rng,
}

impl<K: InsertKeys> SteadyOps<K> {
    pub(crate) fn new(steady: &Steady, domain: u32, inserts: K, seed: u64) -> Self {
        Self {
            steady: steady.clone(),
            domain: domain.into(),
            made: 0,
            present: PresentKeys::new(steady.keys),
            inserts,
            kinds: Purpose::Kinds.rng(seed),
            removes: Purpose::Removes.rng(seed),
        }
    }

    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        if self.made == self.steady.ops_max() {
            return None;
        }
        let runs = self.made >= self.steady.load_ops();
        self.made += 1;
        let removes = runs && self.kinds.unit() < self.steady.deletes;
        let present = self.present.len();
        Some(if present == self.domain || (removes && present > 0) {
            self.steady.remove(self.present.remove_any(&mut self.removes).into())
        } else {
            self.steady.insert(self.inserts.insert(&mut self.present).into())
        })
    }
}
