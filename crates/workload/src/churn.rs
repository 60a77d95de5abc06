//! `churn`: random keys of a fixed set.

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use crate::info::{ParamUnit, VALUE, WorkloadInfo, param};
use crate::keys::{DecimalKeys, KeySpace};
use crate::parts::{KEYS_MAX, Parts, value_bytes};
use crate::{Op, Rng};

/// Every operation picks one of `keys` keys with equal chance. It deletes the key with chance
/// `deletes` and puts it otherwise, whether it is present or not. With chance `ranges` it deletes
/// instead the range of 1 to `span` keys that begins there. Keys are zero-padded numbers of at
/// least 8 digits.
#[derive(Clone, Debug)]
pub(crate) struct Churn {
    keys: u64,
    ops: u64,
    deletes: f64,
    ranges: f64,
    span: u64,
    value_bytes: u32,
}

impl Churn {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "churn",
        summary: "puts and deletes random keys of a fixed set",
        source: "",
        argument: None,
        params: &[
            param("keys", ParamUnit::Count, "the number of keys, 1 to 2^32 - 1").or("1M"),
            param("ops", ParamUnit::Count, "the number of operations; as many as keys if left out"),
            param("deletes", ParamUnit::Number, "the share of operations that delete, 0 to 1")
                .or("0"),
            param(
                "ranges",
                ParamUnit::Number,
                "the share of operations that delete a range of keys, 0 to 1; 0 if left out",
            ),
            param(
                "span",
                ParamUnit::Count,
                "the most keys of such a range; a hundredth of all if left out",
            ),
            VALUE,
        ],
        example: "churn(keys=5k, ops=20k, deletes=0.1, value=100B)",
    };

    pub(crate) fn build(params: &Params) -> Result<Parts<Self>, SpecError> {
        let keys = params.count("keys", 1_000_000, 1..=KEYS_MAX)?;
        let ops = params.count("ops", keys, ..)?;
        let deletes = params.real("deletes", 0.0, 0.0..=1.0)?;
        let ranges = params.real("ranges", 0.0, 0.0..=1.0)?;
        let span = params.count("span", (keys / 100).max(1), 1..=keys)?;
        let value_bytes = value_bytes(params, 1000)?;
        let mut spec = Spec::bare("churn")
            .with("keys", format_count(keys))
            .with("ops", format_count(ops))
            .with("deletes", deletes);
        if ranges > 0.0 {
            spec = spec.with("ranges", ranges).with("span", format_count(span));
        }
        let digits_min = (keys - 1).checked_ilog10().map_or(8, |log| (log + 1).max(8));
        Ok(Parts {
            generator: Self { keys, ops, deletes, ranges, span, value_bytes },
            keys: KeySpace::Decimal(DecimalKeys { prefix: "", hashed: false, digits_min }),
            items: keys,
            spec: spec.with("value", format_bytes(value_bytes.into())),
        })
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.ops
    }

    pub(crate) fn ops(&self, seed: u64) -> ChurnOps {
        ChurnOps {
            churn: self.clone(),
            made: 0,
            kinds: Rng::new(seed, 0),
            items: Rng::new(seed, 1),
            ranges: Rng::new(seed, 2),
        }
    }

    pub(crate) fn deletes_ranges(&self) -> bool {
        self.ranges > 0.0
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ChurnOps {
    churn: Churn,
    made: u64,
    /// Separate from `items`, so that the keys do not depend on the share of deletes.
    kinds: Rng,
    items: Rng,
    ranges: Rng,
}

impl ChurnOps {
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        if self.made == self.churn.ops {
            return None;
        }
        self.made += 1;
        let item = self.items.below(self.churn.keys);
        let deleted = self.kinds.unit() < self.churn.deletes;
        if self.churn.deletes_ranges() && self.ranges.unit() < self.churn.ranges {
            let end = item + 1 + self.ranges.below(self.churn.span);
            return Some(Op::delete_range(item..end.min(self.churn.keys)));
        }
        Some(if deleted { Op::delete(item) } else { Op::put(item, self.churn.value_bytes) })
    }
}
