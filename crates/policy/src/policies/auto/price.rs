//! The price of a run.

use super::future::Future;
use crate::read_price::{FROM_READS, ReadPrice};
use crate::{Eager, ParamInfo, Stack};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::TreeView;
use std::sync::{Arc, OnceLock};

/// What a run costs while a memtable is written, in written memtables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Price {
    /// The price at which about as many runs as are allowed are the most that an unbounded stack
    /// has.
    ByRuns,
    /// This price.
    Fixed(f64),
    /// The price of the reads that the tree has counted.
    Reads(ReadPrice),
    /// The price at which there are as many runs in the mean as `leveled` has.
    AsLeveled,
}

/// The value of `reads`.
const AS_LEVELED: &str = "as_leveled";

/// The prices for which there are tables: powers of [`STEP`] from [`LEAST`] up to [`MOST`]. Costs
/// near a best plan are flat, so that a price in between does not need its own tables.
const LEAST: f64 = 0.001;
const MOST: f64 = 1000.0;
const STEP: f64 = 1.5;

impl Price {
    pub(super) const PRICE: ParamInfo = ParamInfo {
        name: "price",
        default: "by runs",
        meaning: "what a run costs while a memtable is written, in written memtables, 0.001 to \
                  1000, or `reads`: as much as it costs the reads that are counted",
    };
    pub(super) const READS: ParamInfo = ParamInfo {
        name: "reads",
        default: "none",
        meaning: "`as_leveled` for as many runs in the mean as leveled has, whatever the size",
    };

    /// Reads the four parameters.
    ///
    /// # Errors
    /// Fails if a value is out of range, if `get` or `scan` is given without `price=reads`, or if
    /// `reads` and `price` are given both.
    pub(super) fn read(params: &Params<'_>) -> Result<Price, SpecError> {
        if let Some(reads) = params.text("reads") {
            params.choice("reads", AS_LEVELED, &[AS_LEVELED])?;
            if params.has("price") || params.has("get") || params.has("scan") {
                let message =
                    format!("reads={reads} sets the price: leave price, get and scan out");
                return Err(SpecError::conflict(message));
            }
            return Ok(Price::AsLeveled);
        }
        if let Some(reads) = ReadPrice::read(params, FROM_READS, ReadPrice::IN_MEMORY)? {
            return Ok(Price::Reads(reads));
        }
        let price = params.real_if_given("price", LEAST..=MOST)?;
        Ok(price.map_or(Price::ByRuns, Price::Fixed))
    }

    /// Returns `spec` with the parameters that are not at their defaults.
    pub(super) fn write(self, spec: Spec) -> Spec {
        match self {
            Price::ByRuns => spec,
            Price::AsLeveled => spec.with("reads", AS_LEVELED),
            Price::Fixed(price) => spec.with("price", price),
            Price::Reads(reads) => reads.write(spec.with("price", "reads"), ReadPrice::IN_MEMORY),
        }
    }

    /// Returns the price for the tree of `view`. Until reads were counted for one memtable, it is
    /// the one by the runs that are allowed.
    pub(super) fn at(self, view: &TreeView, stack: &Stack, runs: u64) -> f64 {
        let unit = stack.mean_flush_bytes().unwrap_or(view.memtable_bytes as f64).max(1.0);
        match self {
            Price::Fixed(price) => price,
            Price::Reads(reads) => reads.at(view, unit).unwrap_or_else(|| price_of(runs)),
            Price::ByRuns => price_of(runs),
            Price::AsLeveled => {
                let bytes: f64 = stack.runs().iter().map(|run| run.bytes as f64).sum();
                price_as_leveled(bytes / unit)
            }
        }
    }

    /// Returns the most runs if none are given. A mean needs about twice as many.
    pub(super) fn runs_usual(self) -> u64 {
        if self == Price::AsLeveled { 24 } else { 8 }
    }
}

/// The tables of what flushes cost. What they say follows from the parameters of the policy alone.
#[derive(Debug)]
pub(super) enum Futures {
    /// At the only price.
    One(Future),
    /// At each price that was needed so far.
    ByPrice {
        /// The most runs.
        runs_max: usize,
        /// As the policy says.
        eager: Eager,
        /// The tables at each power of [`STEP`].
        tables: Vec<OnceLock<Future>>,
    },
}

impl Futures {
    /// Returns the tables with at most `runs` runs.
    pub(super) fn new(price: Price, runs: u64, eager: Eager) -> Arc<Futures> {
        let runs_max = runs as usize;
        Arc::new(match price {
            Price::Fixed(price) => Futures::One(Future::new(price, runs_max, eager)),
            Price::ByRuns => Futures::One(Future::new(price_of(runs), runs_max, eager)),
            Price::Reads(_) | Price::AsLeveled => {
                let tables = vec![OnceLock::new(); step_of(MOST) + 1];
                Futures::ByPrice { runs_max, eager, tables }
            }
        })
    }

    /// Returns the tables at the known price that is nearest to `price`.
    pub(super) fn at(&self, price: f64) -> &Future {
        match self {
            Futures::One(future) => future,
            Futures::ByPrice { runs_max, eager, tables } => {
                let step = step_of(price);
                let price = LEAST * STEP.powi(step as i32);
                tables[step].get_or_init(|| Future::new(price, *runs_max, *eager))
            }
        }
    }
}

/// Returns the power of [`STEP`] that is nearest to `price`.
fn step_of(price: f64) -> usize {
    ((price.clamp(LEAST, MOST) / LEAST).ln() / STEP.ln()).round() as usize
}

/// Returns the price at which a growing stack has as many runs in the mean as `leveled` with its
/// defaults: about 2 + log10(flushes). Fitted to simulations of 50 to 20,000 flushes.
fn price_as_leveled(flushes: f64) -> f64 {
    0.375 * flushes.max(1.0).powf(0.18)
}

/// Returns the price at which a stack without a bound has about `runs` runs at most.
fn price_of(runs: u64) -> f64 {
    250.0 / (runs as f64).powf(2.2)
}
