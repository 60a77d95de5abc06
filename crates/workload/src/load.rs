//! `load`: fills an empty store.

use lsmith_spec::{Params, Spec, SpecError, format_bytes, format_count};

use crate::info::{ParamUnit, VALUE, WorkloadInfo, param};
use crate::keys::{DecimalKeys, KeySpace};
use crate::parts::{KEYS_MAX, Parts, value_bytes};
use crate::{Op, Rng, Zipf};

/// Exponent of YCSB's zipfian distribution.
const SKEW: f64 = 0.99;

/// Puts each of its keys once, or draws keys from a Zipf distribution.
///
/// `hashed` inserts items 0, 1, 2... under YCSB's hashed keys, so key order is random;
/// `sequential` under zero-padded numbers, so key order is time order; `zipf` makes as many draws
/// as there are keys, with exponent 0.99, hot keys scattered by the same hash.
#[derive(Clone, Debug)]
pub(crate) struct Load {
    ops: u64,
    value_bytes: u32,
    zipf: Option<Zipf>,
}

impl Load {
    pub(crate) const INFO: WorkloadInfo = WorkloadInfo {
        name: "load",
        summary: "puts every key once, into an empty store",
        source: "",
        argument: None,
        params: &[
            param("keys", ParamUnit::Count, "the number of keys, 1 to 2^32 - 1").or("1M"),
            VALUE,
            param(
                "order",
                ParamUnit::Word,
                "`hashed`: in random key order; `sequential`: in key order; `zipf`: as many draws \
                 as keys, of which some repeat, with skew 0.99",
            )
            .or("hashed"),
            param("ops", ParamUnit::Count, "stops after that many puts"),
        ],
        example: "load(keys=20k, value=100B, order=sequential)",
    };

    pub(crate) fn build(params: &Params) -> Result<Parts<Self>, SpecError> {
        let keys = params.count("keys", 1_000_000, 1..=KEYS_MAX)?;
        let value_bytes = value_bytes(params, 1000)?;
        let order = params.choice("order", "hashed", &["hashed", "sequential", "zipf"])?;
        let limit = params.count_if_given("ops", ..)?;

        let mut spec = Spec::bare("load")
            .with("keys", format_count(keys))
            .with("value", format_bytes(value_bytes.into()))
            .with("order", order);
        if let Some(ops) = limit {
            spec = spec.with("ops", format_count(ops));
        }
        let ops = limit.map_or(keys, |limit| limit.min(keys));
        let zipf = (order == "zipf").then(|| Zipf::new(keys, SKEW));
        Ok(Parts {
            items: if zipf.is_some() { keys } else { ops },
            keys: KeySpace::Decimal(match order {
                "sequential" => DecimalKeys::sequential(),
                _ => DecimalKeys::hashed(),
            }),
            generator: Self { ops, value_bytes, zipf },
            spec,
        })
    }

    pub(crate) fn ops_max(&self) -> u64 {
        self.ops
    }

    pub(crate) fn ops(&self, seed: u64) -> LoadOps {
        LoadOps { load: self.clone(), made: 0, rng: Rng::new(seed, 0) }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LoadOps {
    load: Load,
    made: u64,
    rng: Rng,
}

impl LoadOps {
    #[inline]
    pub(crate) fn next(&mut self) -> Option<Op> {
        if self.made == self.load.ops {
            return None;
        }
        let item = match &self.load.zipf {
            None => self.made,
            Some(zipf) => zipf.draw(&mut self.rng),
        };
        self.made += 1;
        Some(Op::put(item, self.load.value_bytes))
    }
}
