//! The least that merges of whole runs can write, for the flushes of one simulation or workload.

use crate::report::{AtMean, OfParts, Optimum};
use crate::sealing::sealing;
use crate::simulate::{Content, Simulated};
use lsmith_model::optimum::{
    FLUSHES_MAX, Hull, HullPoint, KeyRanges, Priced, Unions, least_of_sizes, least_of_unions,
};
use lsmith_policy::Registry;
use lsmith_sim::{KeyedWorkload, SimError, keyed_unions};
use lsmith_workload::FlushSizes;
use std::sync::Arc;

/// The number of points of the curve of least costs, and the most runs that it shows.
const POINTS: usize = 40;
const RUNS_MAX: f64 = 64.0;

/// Returns what merges of flushes write in each key range. A simulation without merges finds the
/// flushes. `counts` are the key ranges and the most flushes.
fn unions(
    workload: &KeyedWorkload,
    flush_sizes: &Arc<FlushSizes>,
    memtable_bytes: u64,
    counts: [usize; 2],
) -> Result<Option<Vec<Unions>>, SimError> {
    let unmerged = Registry::builtin().build("none").expect("a policy of this name");
    keyed_unions(&sealing(unmerged, flush_sizes), workload, memtable_bytes, counts)
}

/// The flushes of a workload, or of a simulation without keys.
#[derive(Clone, Debug)]
pub struct Least {
    /// Key ranges that merge by themselves.
    parts: Option<KeyRanges>,
    /// The sizes of merges, if keys may repeat and there are not too many flushes.
    unions: Option<Unions>,
    /// True if keys repeat, or may do so.
    may_repeat: bool,
}

impl Least {
    /// The most flushes for which the optimum of merges of parts of runs is found.
    pub const FLUSHES_OF_PARTS_MAX: usize = KeyRanges::FLUSHES_MAX;

    /// Returns the flushes of `content`, with memtables of `memtable_bytes` or of `flush_sizes`. A
    /// simulation without merges finds the flushes of keyed content.
    ///
    /// # Errors
    /// Fails if the workload has a damaged line.
    pub fn of(
        content: &Content<'_>,
        flush_sizes: &Arc<FlushSizes>,
        memtable_bytes: u64,
    ) -> Result<Least, SimError> {
        let unions = match content {
            Content::Keyed(workload) => {
                unions(workload, flush_sizes, memtable_bytes, [1, FLUSHES_MAX])?
                    .and_then(|unions| unions.into_iter().next())
            }
            Content::Unit { .. } | Content::Fluid(_) => None,
        };
        Ok(Least { parts: None, unions, may_repeat: !matches!(content, Content::Unit { .. }) })
    }

    /// Returns the same flushes of `workload`, with the optimum of merges of parts of runs: each of
    /// `key_ranges` ranges with equally many keys merges by itself. It stays unknown for more than
    /// [`FLUSHES_OF_PARTS_MAX`](Least::FLUSHES_OF_PARTS_MAX) flushes, and where
    /// [`Optimum::knows_keys`] is false. The time grows with the number of ranges.
    ///
    /// # Errors
    /// Fails if the workload has a damaged line.
    ///
    /// # Panics
    /// Panics if `key_ranges` is 0.
    pub fn with_key_ranges(
        self,
        workload: &KeyedWorkload,
        flush_sizes: &Arc<FlushSizes>,
        memtable_bytes: u64,
        key_ranges: usize,
    ) -> Result<Least, SimError> {
        let counts = [key_ranges, KeyRanges::FLUSHES_MAX];
        let unions = unions(workload, flush_sizes, memtable_bytes, counts)?;
        Ok(Least { parts: unions.and_then(|unions| KeyRanges::of_unions(&unions)), ..self })
    }

    /// Returns the costs of merges of parts of runs, if they were asked for and are known.
    #[must_use]
    pub fn parts(&self) -> Option<&KeyRanges> {
        self.parts.as_ref()
    }

    /// Compares the costs of `simulated` with the optimum with as many runs. Its content must be
    /// the same. `None` for policies that leave a part of memory in place.
    #[must_use]
    pub fn optimum(&self, simulated: &Simulated) -> Option<Optimum> {
        if simulated.leaves_memory {
            return None;
        }
        let (costs, sizes) = (&simulated.report.costs, &*simulated.flush_bytes);
        let flushed = sizes.iter().sum::<u64>().max(1) as f64;
        let runs_max = costs.runs_max;
        let least = match &self.unions {
            Some(unions) => least_of_unions(unions, runs_max),
            None => least_of_sizes(sizes, runs_max),
        };
        let runs_mean = costs.read_cost_mean;
        let at_mean = match self.hull(sizes) {
            Some(hull) => Some(hull.write_cost(runs_mean)),
            None => self.priced(sizes).map(|priced| priced.write_cost(runs_mean)),
        };
        // Fewer than one run in the mean is possible only if deletes leave nothing at times. Then
        // flushes write less than they hold, and nothing is known of the least.
        let is_known = |least: &f64| least.is_finite() && runs_mean >= 1.0;
        let at_mean = at_mean.filter(is_known);
        let of_parts = self.parts.as_ref().and_then(|parts| {
            let least = parts.least(runs_mean).filter(|least| is_known(&least.bound))?;
            let (write_cost_system, found) = (least.bound, least.found);
            Some(OfParts { key_ranges: parts.count(), write_cost_system, found, above: 0.0 })
        });
        let optimum = Optimum {
            runs_max,
            write_cost_system: 1.0 + least.merged / flushed,
            is_exact: least.is_exact,
            above: 0.0,
            at_mean_runs: at_mean.map(|least| AtMean { write_cost_system: least, above: 0.0 }),
            of_parts,
            knows_keys: self.unions.is_some(),
        };
        Some(optimum.against(costs.write_cost_system))
    }

    /// Returns the curve of least costs, from few runs to many. Empty if it is unknown.
    #[must_use]
    pub fn points(&self, simulated: &Simulated) -> Vec<HullPoint> {
        let sizes = &simulated.flush_bytes;
        let points = match self.hull(sizes) {
            Some(hull) => hull.points(POINTS),
            None => self.priced(sizes).map_or(Vec::new(), |priced| priced.points(POINTS)),
        };
        points.into_iter().filter(|point| point.runs_mean <= RUNS_MAX).collect()
    }

    /// Returns the costs at a price, unless keys are unknown or flushes too many.
    fn priced(&self, sizes: &[u64]) -> Option<Priced> {
        match &self.unions {
            Some(unions) => Some(Priced::of_unions(unions, None)),
            None if self.may_repeat || sizes.len() > FLUSHES_MAX => None,
            None => Some(Priced::of_unions(&Unions::of_sizes(sizes), None)),
        }
    }

    /// Returns the hull of flushes of one size that share no key.
    fn hull(&self, sizes: &[u64]) -> Option<Hull> {
        let is_equal = sizes.windows(2).all(|pair| pair[0] == pair[1]);
        (is_equal && !self.may_repeat).then(|| Hull::new(sizes.len() as u64))
    }
}
