//! `update`: a load in which updates replace a share of the inserts.

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use crate::info::{ParamUnit, VALUE, WorkloadInfo, param};
use crate::keys::{DecimalKeys, KeySpace};
use crate::parts::{KEYS_MAX, Parts, value_bytes};
use crate::{Op, Rng, Zipf};

/// The update-heavy runs of Mao et al., "Experimental evaluation of bounded-depth LSM merge
/// policies", section "Updates and deletions": with chance `share` an operation updates an
/// existing key, else it inserts a new one.
///
/// `keys` is the size of the append-only load that the run is derived from. `ops` defaults to
/// half as many again, as in the paper, to make up for updates that meet their key in the
/// memtable. About (1 - `share`) x `ops` different keys come to exist: with the defaults, 450 k
/// of 1.5 M operations insert.
#[derive(Clone, Debug)]
pub(crate) struct Update {
    ops: u64,
    share: f64,
    /// The share of updates that delete.
    deletes: f64,
    target: Target,
    value_bytes: u32,
}

/// Which existing key is updated.
#[derive(Clone, Copy, Debug)]
enum Target {
    /// By age, Zipf with this exponent concentrated on the newest.
    Latest(f64),
    /// By age, Zipf with this exponent concentrated on the oldest.
    Oldest(f64),
    /// Any with equal chance.
    Uniform,
}

impl Update {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "update",
        summary: "puts new keys, and updates existing keys with a given chance",
        source: "Mao et al., VLDB Journal 2021, section \"Updates and deletions\"",
        argument: None,
        params: &[
            param("keys", ParamUnit::Count, "the puts of a load without updates, 1 to 2^32 - 1")
                .or("1M"),
            param("ops", ParamUnit::Count, "the number of operations; 1.5 per key if left out"),
            param("share", ParamUnit::Number, "the share of operations that update, 0 to 1")
                .or("0.7"),
            param(
                "deletes",
                ParamUnit::Number,
                "the share of updates that delete their key, 0 to 1; a deleted key can be updated \
                 again",
            )
            .or("0"),
            param(
                "dist",
                ParamUnit::Word,
                "which keys are updated: mostly the `latest`, mostly the oldest (`zipf`), or any \
                 (`uniform`)",
            )
            .or("latest"),
            param("skew", ParamUnit::Number, "the Zipf skew of `latest` and `zipf`, 0 to 10")
                .or("0.99"),
            VALUE,
            param(
                "order",
                ParamUnit::Word,
                "`hashed`: new keys come in random key order; `sequential`: in key order",
            )
            .or("hashed"),
        ],
        example: "update(keys=10k, share=0.9, dist=zipf, value=100B)",
    };

    pub(crate) fn build(params: &Params, seed: u64) -> Result<Parts<Self>, SpecError> {
        let keys = params.count("keys", 1_000_000, 1..=KEYS_MAX)?;
        let ops = params.count("ops", (keys + keys / 2).min(KEYS_MAX), ..=KEYS_MAX)?;
        let share = params.real("share", 0.7, 0.0..=1.0)?;
        let deletes = params.real("deletes", 0.0, 0.0..=1.0)?;
        let dist = params.choice("dist", "latest", &["latest", "zipf", "uniform"])?;
        let skew = params.real("skew", 0.99, 0.0..=10.0)?;
        let value_bytes = value_bytes(params, 1000)?;
        let order = params.choice("order", "hashed", &["hashed", "sequential"])?;

        let target = match dist {
            "latest" => Target::Latest(skew),
            "zipf" => Target::Oldest(skew),
            _ => Target::Uniform,
        };
        let update = Self { ops, share, deletes, target, value_bytes };
        Ok(Parts {
            items: update.count_inserts(seed),
            keys: KeySpace::Decimal(match order {
                "sequential" => DecimalKeys::sequential(),
                _ => DecimalKeys::hashed(),
            }),
            generator: update,
            spec: Spec::bare("update")
                .with("keys", format_count(keys))
                .with("ops", format_count(ops))
                .with("share", share)
                .with("deletes", deletes)
                .with("dist", dist)
                .with("skew", skew)
                .with("value", format_bytes(value_bytes.into()))
                .with("order", order),
        })
    }

    /// Returns how many keys the stream inserts, found by drawing its choices ahead.
    fn count_inserts(&self, seed: u64) -> u64 {
        let mut choices = InsertDraws::new(seed);
        let inserts = (0..self.ops).filter(|_| choices.inserts(self.share));
        inserts.count() as u64
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.ops
    }

    pub(crate) fn ops(&self, seed: u64) -> UpdateOps {
        let skew = match self.target {
            Target::Latest(skew) | Target::Oldest(skew) => skew,
            Target::Uniform => 0.0,
        };
        UpdateOps {
            update: self.clone(),
            made: 0,
            keys: 0,
            choices: InsertDraws::new(seed),
            items: Rng::new(seed, 1),
            deletes: Rng::new(seed, 2),
            zipf: Zipf::new(1, skew),
        }
    }
}

/// Draws whether the next operation inserts or updates.
#[derive(Clone, Debug)]
struct InsertDraws {
    rng: Rng,
    started: bool,
}

impl InsertDraws {
    fn new(seed: u64) -> Self {
        Self { rng: Rng::new(seed, 0), started: false }
    }

    /// Returns true if the next operation inserts. The first one does, having nothing to update.
    #[inline]
    fn inserts(&mut self, share: f64) -> bool {
        let inserts = self.rng.unit() >= share || !self.started;
        self.started = true;
        inserts
    }
}

#[derive(Clone, Debug)]
pub(crate) struct UpdateOps {
    update: Update,
    made: u64,
    /// Keys inserted so far.
    keys: u64,
    choices: InsertDraws,
    items: Rng,
    deletes: Rng,
    zipf: Zipf,
}

impl UpdateOps {
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        if self.made == self.update.ops {
            return None;
        }
        self.made += 1;
        let item = if self.choices.inserts(self.update.share) {
            self.keys += 1;
            self.keys - 1
        } else {
            let item = self.existing();
            if self.deletes.unit() < self.update.deletes {
                return Some(Op::delete(item));
            }
            item
        };
        Some(Op::put(item, self.update.value_bytes))
    }

    fn existing(&mut self) -> u64 {
        match self.update.target {
            Target::Latest(_) => self.keys - 1 - self.rank(),
            Target::Oldest(_) => self.rank(),
            Target::Uniform => self.items.below(self.keys),
        }
    }

    fn rank(&mut self) -> u64 {
        self.zipf.resize(self.keys);
        self.zipf.draw(&mut self.items)
    }
}
