//! What formulas need to know of a workload.

use anyhow::{Result, bail};
use lsmith_model::{Popularity, Setting};
use lsmith_tree::logical_bytes;
use lsmith_workload::{OpKind, Workload};

/// Operations looked at of a workload whose popularity has no formula.
const OPS_MAX: usize = 2_000_000;

/// Operations looked at to learn how large entries are.
const SAMPLED: usize = 10_000;

/// Skew of `load(order=zipf)`.
const LOAD_SKEW: f64 = 0.99;

/// Which keys are written, how often, and how large they are.
#[derive(Clone, Debug)]
pub(crate) struct Profile {
    pub(crate) popularity: Popularity,
    pub(crate) writes: f64,
    pub(crate) entry_bytes: f64,
}

impl Profile {
    /// Loads and `churn` by formula, others by counting up to two million operations.
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
        let (mut ops, mut writes) = (0.0, 0.0);
        for op in workload.ops().take(OPS_MAX) {
            let op = op?;
            ops += 1.0;
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
        // What was not looked at is taken to go on as it began.
        let scale = (all as f64 / ops).max(1.0);
        Ok(Profile {
            popularity: Popularity::from_histogram(&histogram)?,
            writes: writes * scale,
            entry_bytes,
        })
    }

    /// Keys there are in the end.
    pub(crate) fn keys(&self) -> f64 {
        self.popularity.unique(self.writes).max(1.0)
    }

    /// As it is when a share of all writes was made.
    pub(crate) fn at(&self, share: f64) -> Profile {
        let writes = (self.writes * share.min(1.0)).max(1.0);
        let live = self.popularity.unique(writes);
        Profile { popularity: self.popularity.clone().with_live(live), writes, ..*self }
    }

    /// As it is when so many memtables have been filled, if the writes don't end before.
    pub(crate) fn up_to_flushes(self, flushes: Option<u64>, memtable_bytes: u64) -> Profile {
        let Some(flushes) = flushes else { return self };
        let requests = flushes as f64 * self.setting(memtable_bytes).memtable_requests();
        // A part of a request more, lest rounding take the last flush away.
        self.at((requests + 0.5) / self.writes)
    }

    pub(crate) fn setting(&self, memtable_bytes: u64) -> Setting<'_> {
        Setting {
            popularity: &self.popularity,
            memtable: memtable_bytes as f64 / self.entry_bytes,
            item_bytes: self.entry_bytes,
            requests: self.writes,
            false_positives: 1.0,
        }
    }
}

fn is_write(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Read | OpKind::Scan)
}

/// Mean logical bytes of an entry among the first writes.
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
