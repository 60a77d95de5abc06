//! The properties of a workload that formulas need.

use anyhow::{Result, bail};
use lsmith_model::{Popularity, Setting};
use lsmith_tree::logical_bytes;
use lsmith_workload::{OpKind, Workload};

/// The operations that are read to learn the size of entries.
const SAMPLED: usize = 10_000;

/// The skew of `load(order=zipf)`.
const LOAD_SKEW: f64 = 0.99;

/// The popularity of written keys, the number of writes, and the size of entries.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) popularity: Popularity,
    pub(crate) writes: f64,
    pub(crate) entry_bytes: f64,
}

impl Profile {
    /// Profiles loads and `churn` by formula, other workloads by counting all operations.
    pub(crate) fn of(workload: &Workload) -> Result<Profile> {
        let spec = workload.spec();
        let entry_bytes = entry_bytes(workload)?;
        let (items, all) = (workload.items(), workload.ops_max());
        let known = match (spec.name.as_str(), spec.param("order")) {
            ("load", Some("zipf")) => Some(Popularity::zipf(items, LOAD_SKEW)?),
            ("load", _) => Some(Popularity::unshared(items)?),
            ("churn", _) => Some(Popularity::uniform(items)?),
            _ => None,
        };
        if let Some(popularity) = known {
            return Ok(Profile { popularity, writes: all as f64, entry_bytes });
        }
        let mut counts: Vec<u32> = Vec::new();
        let mut writes = 0.0;
        for op in workload.ops() {
            let op = op?;
            if !is_write(op.kind) {
                continue;
            }
            writes += 1.0;
            let item = usize::try_from(op.item)?;
            if item >= counts.len() {
                counts.resize(item + 1, 0);
            }
            counts[item] += 1;
        }
        if writes == 0.0 {
            bail!("the workload writes nothing");
        }
        counts.sort_unstable();
        let runs = counts.chunk_by(|left, right| left == right);
        let histogram: Vec<(u64, u64)> =
            runs.map(|run| (run.len() as u64, u64::from(run[0]))).collect();
        Ok(Profile { popularity: Popularity::from_histogram(&histogram)?, writes, entry_bytes })
    }

    /// Returns the setting after the given share of all writes.
    pub(crate) fn at(&self, share: f64) -> Profile {
        let writes = (self.writes * share.min(1.0)).max(1.0);
        let live = self.popularity.unique(writes);
        Profile { popularity: self.popularity.clone().with_live(live), writes, ..*self }
    }

    /// Returns the setting after `flushes` memtables, or at the end of the writes if sooner.
    pub(crate) fn up_to_flushes(self, flushes: Option<u64>, memtable_bytes: u64) -> Profile {
        let Some(flushes) = flushes else { return self };
        let requests = flushes as f64 * self.setting(memtable_bytes).memtable_requests();
        // The added part of a request keeps rounding from dropping the last flush.
        self.at((requests + 0.5) / self.writes)
    }

    pub(crate) fn setting(&self, memtable_bytes: u64) -> Setting<'_> {
        Setting {
            popularity: &self.popularity,
            // A memtable holds whole entries. It is sealed by the entry that fills it.
            memtable: (memtable_bytes as f64 / self.entry_bytes).ceil(),
            item_bytes: self.entry_bytes,
            requests: self.writes,
            false_positives: 1.0,
        }
    }
}

fn is_write(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Read | OpKind::Scan)
}

/// Returns the mean logical bytes of an entry over the first writes.
fn entry_bytes(workload: &Workload) -> Result<f64> {
    let (mut bytes, mut count) = (0_u64, 0_u64);
    for op in workload.ops().take(SAMPLED) {
        let op = op?;
        if is_write(op.kind) {
            let key_bytes = workload.key_bytes(op.item);
            bytes += logical_bytes(key_bytes, op.value_bytes as usize);
            count += 1;
        }
    }
    if count == 0 {
        bail!("the workload writes nothing");
    }
    Ok(bytes as f64 / count as f64)
}
