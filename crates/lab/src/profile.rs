//! The properties of a workload that formulas need.

use anyhow::{Result, bail};
use lsmith_model::{KeyOrder, Popularity, Setting};
use lsmith_sim::SCAN_ITEMS;
use lsmith_tree::logical_bytes;
use lsmith_workload::{Op, OpKind, Workload};

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
    /// The load phase, and the popularity after it, if there is one. `popularity` covers both.
    pub(crate) phases: Option<(f64, Popularity)>,
    /// The first writes that are a load phase; only in [`Profile::in_phases`].
    pub(crate) loaded: f64,
    pub(crate) order: KeyOrder,
    /// The mean number of entries of a range read.
    pub(crate) scan_items: f64,
    /// What is not known of the requests.
    pub(crate) unknown: Unknown,
    /// The live keys over all keys that were written before, mean over the writes. Formulas take
    /// it to be 1.
    pub(crate) live_share: f64,
}

/// What formulas do not know of requests that a report should name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unknown {
    Nothing,
    /// Some writes delete.
    Deletes,
    /// Keys become popular and unpopular.
    Time,
    /// As before, and the keys of a time lie together.
    TimeAndOrder,
}

impl Profile {
    /// Profiles loads and `churn` by formula, other workloads by counting all operations.
    pub(crate) fn of(workload: &Workload) -> Result<Profile> {
        let spec = workload.spec();
        let entry_bytes = entry_bytes(workload)?;
        let items = workload.items();
        let scan_items = workload.scan_items().unwrap_or(SCAN_ITEMS);
        let all = workload.ops_max();
        let known = match (spec.name.as_str(), spec.param("order")) {
            ("load", Some("zipf")) => Some(Popularity::zipf(items, LOAD_SKEW)?),
            ("load", _) => Some(Popularity::unshared(items)?),
            ("churn", _) => Some(Popularity::uniform(items)?),
            _ => None,
        };
        let order = match spec.param("order") {
            Some("sequential") if spec.name == "load" => KeyOrder::Ascending,
            _ => KeyOrder::Random,
        };
        let share = |name| spec.param(name).and_then(|share| share.parse::<f64>().ok());
        let is_above_0 = |name| spec.param(name).is_some_and(|share| share != "0");
        let deletes = is_above_0("deletes") || is_above_0("delete");
        if let Some(popularity) = known {
            return Ok(Profile {
                popularity,
                writes: all as f64,
                entry_bytes,
                phases: None,
                loaded: 0.0,
                order,
                scan_items,
                unknown: if deletes { Unknown::Deletes } else { Unknown::Nothing },
                live_share: 1.0 - share("deletes").unwrap_or(0.0),
            });
        }
        let mut counts = Counts::default();
        let mut later = Counts::default();
        let load_ops = usize::try_from(workload.load_ops())?;
        for (index, op) in workload.ops().enumerate() {
            let op = op?;
            counts.add(&op)?;
            if index >= load_ops {
                later.add(&op)?;
            }
        }
        // A run phase that writes new keys has no popularity.
        let is_load = counts.items.len() == load_ops && later.writes > 0.0;
        let live_share = counts.live_share();
        Ok(Profile {
            writes: counts.writes,
            popularity: counts.popularity()?,
            phases: if is_load { Some((load_ops as f64, later.popularity()?)) } else { None },
            entry_bytes,
            loaded: 0.0,
            order,
            scan_items,
            live_share,
            unknown: match spec.name.as_str() {
                "mix" if is_load && deletes => Unknown::Deletes,
                "ycsb" | "mix" if is_load => Unknown::Nothing,
                "ycsb" | "mix" | "uniform" => Unknown::Time,
                _ => Unknown::TimeAndOrder,
            },
        })
    }

    /// Returns the profile with the load phase apart, if there is one.
    pub(crate) fn in_phases(&self) -> Profile {
        match &self.phases {
            Some((loaded, later)) => {
                Profile { popularity: later.clone(), loaded: *loaded, ..self.clone() }
            }
            None => self.clone(),
        }
    }

    /// Returns what the formula of a policy does not know of the requests. The order of keys means
    /// something to policies of levels only.
    pub(crate) fn ignored(&self, has_levels: bool) -> &'static [&'static str] {
        match self.unknown {
            // After a load phase, formulas of levels do not follow how loaded keys go down.
            Unknown::Nothing if has_levels && self.phases.is_some() => &["time"],
            Unknown::Nothing => &[],
            Unknown::Deletes => &["deletes"],
            Unknown::TimeAndOrder if has_levels => &["time", "key order"],
            Unknown::Time | Unknown::TimeAndOrder => &["time"],
        }
    }

    /// Returns the setting after the given share of all writes.
    pub(crate) fn at(&self, share: f64) -> Profile {
        let writes = (self.writes * share.min(1.0)).max(1.0);
        let (popularity, loaded) = match Popularity::unshared(self.loaded as u64) {
            Ok(unshared) if writes <= self.loaded => (unshared.with_live(writes), 0.0),
            // Keys that are only loaded are live too.
            Ok(_) => (self.popularity.clone(), self.loaded),
            Err(_) => {
                let live = self.popularity.unique(writes);
                (self.popularity.clone().with_live(live), 0.0)
            }
        };
        Profile { popularity, writes, loaded, ..self.clone() }
    }

    /// Returns the setting after `flushes` memtables, or at the end of the writes if sooner.
    pub(crate) fn up_to_flushes(self, flushes: Option<u64>, memtable_bytes: u64) -> Profile {
        let Some(flushes) = flushes else { return self };
        let requests = self.in_phases().setting(memtable_bytes).requests_of_flushes(flushes as f64);
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
            loaded: self.loaded,
            order: self.order,
        }
    }
}

/// Counted operations.
#[derive(Default)]
struct Counts {
    ops: f64,
    writes: f64,
    /// The writes of each item.
    items: Vec<u32>,
    /// True for each item that is live.
    live: Vec<bool>,
    /// The live items, and the items written so far.
    live_count: f64,
    written_count: f64,
    /// The sum of the shares of live items, over the writes.
    live_shares: f64,
}

impl Counts {
    fn add(&mut self, op: &Op) -> Result<()> {
        self.ops += 1.0;
        if is_write(op.kind) {
            self.writes += 1.0;
            let item = usize::try_from(op.item)?;
            if item >= self.items.len() {
                self.items.resize(item + 1, 0);
                self.live.resize(item + 1, false);
            }
            let is_live = !matches!(op.kind, OpKind::Delete | OpKind::Remove);
            self.written_count += f64::from(u8::from(self.items[item] == 0));
            self.live_count += f64::from(u8::from(is_live)) - f64::from(u8::from(self.live[item]));
            self.live_shares += self.live_count / self.written_count;
            self.live[item] = is_live;
            self.items[item] += 1;
        }
        Ok(())
    }

    /// Returns the live keys over the written ones, mean over the writes.
    fn live_share(&self) -> f64 {
        self.live_shares / self.writes.max(1.0)
    }

    /// # Errors
    /// Fails if nothing was written.
    fn popularity(mut self) -> Result<Popularity> {
        if self.writes == 0.0 {
            bail!("the workload writes nothing");
        }
        self.items.sort_unstable();
        let runs = self.items.chunk_by(|left, right| left == right);
        let histogram: Vec<(u64, u64)> =
            runs.map(|run| (run.len() as u64, u64::from(run[0]))).collect();
        Ok(Popularity::from_histogram(&histogram)?)
    }
}

fn is_write(kind: OpKind) -> bool {
    !matches!(kind, OpKind::Read | OpKind::Scan)
}

/// Returns the mean logical bytes of an entry over the first writes.
pub(crate) fn entry_bytes(workload: &Workload) -> Result<f64> {
    let mut bytes = 0_u64;
    let mut count = 0_u64;
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
