//! Keyed simulations of the runs with updates.

use super::course::{Course, Courses, Input, Plan};
use crate::form::*;
use lsmith_sim::KeyedWorkload;
use lsmith_tree::logical_bytes;
use lsmith_workload::{NoInputs, Workload};
use std::collections::HashSet;

/// The approximate flushes of the run without updates.
const FLUSHES: u64 = 24_000;

/// Entries of a memtable: in the paper, and in simulation.
const RECORDS_PAPER: u64 = 3_300;
const RECORDS: u64 = 100;

/// Bytes of a value.
const VALUE_BYTES: u64 = 1000;

/// The approximate bytes of a key: `user` and 19 digits.
const KEY_BYTES: usize = 23;

/// Flushes between two points of a curve.
pub(super) const EVERY: u64 = 100;

pub(super) const BOUNDED: [&str; 4] =
    ["minlatency(k=6)", "binomial(k=6)", "bigtable(k=6)", "exploring(k=6)"];
pub(super) const TIERED: [&str; 4] =
    ["tiered(ratio=4)", "tiered(ratio=8)", "tiered(ratio=16)", "tiered(ratio=32)"];
pub(super) const LEVELED: [&str; 4] =
    ["leveled(ratio=4)", "leveled(ratio=8)", "leveled(ratio=16)", "leveled(ratio=32)"];

/// The scale of the simulations.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    /// The keys of the run without updates.
    pub(super) keys: u64,
    /// Logical bytes of a memtable.
    pub(super) memtable_bytes: u64,
}

/// The kinds of runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Run {
    /// New keys only.
    Load,
    /// A share of the writes goes to existing keys, chosen by the workload's parameter `dist`.
    /// A share `deletes` of these deletes its key.
    Update { share: f64, deletes: f64, dist: &'static str },
}

impl Scale {
    pub(super) fn of(effort: Effort) -> Scale {
        let keys = (FLUSHES * RECORDS / effort.shrink).max(10 * RECORDS);
        let record = logical_bytes(KEY_BYTES, VALUE_BYTES as usize);
        Scale { keys, memtable_bytes: RECORDS * record }
    }

    /// Returns the note on this scale.
    pub(super) fn note(&self) -> String {
        format!(
            "Simulated key by key with memtables of {RECORDS} records of 1 kB, about {} flushes \
             without updates; the paper's memtables held {RECORDS_PAPER} and it had {FLUSHES}.",
            self.keys / RECORDS
        )
    }

    fn workload(&self, run: Run, order: &str) -> anyhow::Result<KeyedWorkload> {
        let keys = self.keys;
        let spec = match run {
            Run::Load => format!("load(keys={keys}, value={VALUE_BYTES}B, order={order})"),
            Run::Update { share, deletes, dist } => {
                format!(
                    "update(keys={keys}, share={share}, deletes={deletes}, dist={dist}, \
                     value={VALUE_BYTES}B, order={order})"
                )
            }
        };
        // The paper's store rewrites all that it merges.
        Ok(KeyedWorkload::new(Workload::from_spec(&spec.parse()?, &NoInputs)?).with_rewrites())
    }

    /// Simulates `run`, with new keys in `order`, under each of `specs`.
    ///
    /// # Errors
    /// Fails if a policy breaks a rule.
    pub(super) fn simulate<'a>(
        &self,
        task: &Task<'_>,
        run: Run,
        order: &str,
        specs: impl IntoIterator<Item = &'a str>,
    ) -> anyhow::Result<Courses> {
        let workload = self.workload(run, order)?;
        let input = Input::Keyed(&workload, self.memtable_bytes);
        let plan = |spec: &str| Plan { spec: spec.to_owned(), input, every: EVERY };
        Courses::simulate(task, &specs.into_iter().map(plan).collect::<Vec<_>>())
    }
}

/// Returns the flushes of the update run per flush of as many new keys, with memtables as large as
/// in the paper. Only different keys fill a memtable, so this needs no simulation.
///
/// # Errors
/// Fails if there is no such workload.
pub(super) fn flushes_left(effort: Effort) -> anyhow::Result<f64> {
    let keys = (FLUSHES * RECORDS_PAPER / effort.shrink).max(10 * RECORDS_PAPER);
    let workload = Workload::from_spec(&format!("update(keys={keys})").parse()?, &NoInputs)?;
    let mut memtable = HashSet::new();
    let mut ops = 0u64;
    let mut flushes = 0u64;
    for op in workload.ops() {
        ops += 1;
        memtable.insert(op?.item);
        if memtable.len() as u64 == RECORDS_PAPER {
            memtable.clear();
            flushes += 1;
        }
    }
    Ok((flushes * RECORDS_PAPER) as f64 / ops as f64)
}

impl Courses {
    /// Returns the mean ratio of the write costs of `spec` here and in `others`, over the flushes
    /// that both have.
    pub(super) fn cost_ratio(&self, others: &Courses, spec: &str) -> Option<f64> {
        let [one, other] = [self, others].map(|courses| courses.of(spec).write_costs());
        let pairs = one.iter().zip(&other).take_while(|(one, other)| one.0 == other.0);
        mean(pairs.map(|(one, other)| one.1 / other.1))
    }

    /// Returns how many [pairs](pairs_turned) of `specs` have another order by write cost at the
    /// end here than in `others`.
    pub(super) fn pairs_turned(&self, others: &Courses, specs: &[&str]) -> f64 {
        self.turned_by(others, specs, Course::write_cost)
    }

    /// Does as [`pairs_turned`](Courses::pairs_turned) for the order by `cost`.
    pub(super) fn turned_by(
        &self,
        others: &Courses,
        specs: &[&str],
        cost: impl Fn(&Course) -> f64,
    ) -> f64 {
        pairs_turned(specs, |spec| cost(self.of(spec)), |spec| cost(others.of(spec)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_sim::Figures;

    fn courses(costs: [f64; 3]) -> Courses {
        let looks = |cost: f64| {
            let of = |write_cost_system| Figures { write_cost_system, ..Figures::default() };
            vec![(100, of(cost / 2.0)), (200, of(cost))]
        };
        let course = |(spec, cost): (&str, f64)| Course { spec: spec.into(), looks: looks(cost) };
        Courses(["a", "b", "c"].into_iter().zip(costs).map(course).collect())
    }

    #[test]
    fn pairs_turn() {
        let specs = ["a", "b", "c"];
        let before = courses([1.0, 2.0, 3.0]);
        for (after, turned) in
            [([1.0, 2.0, 3.0], 0.0), ([1.0, 3.0, 2.0], 1.0), ([3.0, 2.0, 1.0], 3.0)]
        {
            assert_eq!(courses(after).pairs_turned(&before, &specs), turned, "{after:?}");
        }
    }

    #[test]
    fn ties_do_not_turn() {
        let specs = ["a", "b", "c"];
        let before = courses([1.0, 2.0, 3.0]);
        assert_eq!(courses([1.0, 3.05, 3.0]).pairs_turned(&before, &specs), 0.0);
        let near = courses([1.0, 2.95, 3.0]);
        assert_eq!(courses([1.0, 3.0, 2.0]).pairs_turned(&near, &specs), 0.0);
    }

    #[test]
    fn costs_are_compared_as_far_as_both_go() {
        let short = courses([4.0, 1.0, 1.0]);
        let mut long = courses([2.0, 1.0, 1.0]);
        long.0[0].looks.push((300, Figures::default()));
        assert_eq!(short.cost_ratio(&long, "a"), Some(2.0));
        assert_eq!(long.cost_ratio(&short, "a"), Some(0.5));
    }

    /// Without updates no key repeats in a memtable; with updates there are fewer flushes.
    #[test]
    fn updates_leave_fewer_flushes() {
        let left = flushes_left(Effort { is_quick: true, shrink: 1600 }).unwrap();
        assert!(left > 0.3 && left < 0.9, "{left}");
    }
}
