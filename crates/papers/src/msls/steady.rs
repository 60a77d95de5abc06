//! The costs of a design in the steady state, with all keys present.

use super::design::{Design, ITEM_BYTES};
use super::requests::Requests;
use crate::form::*;
use crate::store::{builder, check_plans};
use crate::unsynced::Unsynced;
use anyhow::Context;
use lsmith::{DEFAULT_KEYSPACE, Store};
use lsmith_lab::Scratch;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{Event, KeyedSim};
use lsmith_tree::{EntryKind, Tree, logical_bytes};
use lsmith_workload::fill_value;
use std::sync::Arc;

/// A measurement by the paper's protocol: load all keys in order, reset the counters, make the
/// requests.
#[derive(Clone, Debug)]
pub(super) struct Steady {
    /// The keys, the requests and the memtables; also the policy, if `policy` is `None`.
    pub(super) design: Design,
    /// The spec of a policy that replaces the policy of the design.
    pub(super) policy: Option<&'static str>,
    /// Requests per key.
    pub(super) rounds: u64,
    /// Logical bytes of an entry. The number of entries in memtables, tables and levels does not
    /// depend on it.
    pub(super) item_bytes: u32,
}

/// The write costs of a design, by stage.
#[derive(Clone, Debug, Default)]
pub(super) struct StageCosts {
    /// Bytes written per byte of requests: the log, the flushes, merges into level 1, 2 and so on.
    pub(super) stages: Vec<f64>,
}

impl StageCosts {
    pub(super) fn write_cost(&self) -> f64 {
        self.stages.iter().sum()
    }
}

/// Bytes of the log per byte of requests, as in the paper.
const LOG: f64 = 1.0;

impl Steady {
    /// Returns a measurement with the paper's items and ten requests per key, as in the paper.
    pub(super) fn new(design: Design) -> Steady {
        Steady { design, policy: None, rounds: 10, item_bytes: ITEM_BYTES as u32 }
    }

    fn keys(&self) -> u32 {
        self.design.keys as u32
    }

    fn policy(&self) -> anyhow::Result<Arc<dyn MergePolicy>> {
        match self.policy {
            Some(spec) => Ok(Registry::builtin().build(spec)?),
            None => self.design.policy(self.item_bytes),
        }
    }

    /// Returns the entries of a memtable.
    fn per_memtable(&self) -> u64 {
        (self.design.memtable.round() as u64).max(1)
    }

    /// Returns the capacity of memtables. They are sealed by the protocol, never by their size, so
    /// it is a byte more than the entries take.
    fn memtable_bytes(&self) -> u64 {
        self.per_memtable() * u64::from(self.item_bytes) + 1
    }

    fn requests(&self) -> u64 {
        self.design.keys * self.rounds
    }

    pub(super) fn work(&self) -> u64 {
        self.design.keys + self.requests()
    }

    /// Calls `make(step, place, ends)` for every key in key order, then for every request. `place`
    /// is the key's position in key order; `ends` is true if the memtable ends with it.
    fn play(
        &self,
        mut make: impl FnMut(Step, u32, bool) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let per_memtable = self.per_memtable();
        let mut requests = Requests::new(self.keys(), self.design.skew);
        let ends = |index: u64| (index + 1).is_multiple_of(per_memtable);
        for place in 0..self.keys() {
            let index = u64::from(place);
            make(Step::Load, place, ends(index) || index + 1 == self.design.keys)?;
        }
        for index in 0..self.requests() {
            make(Step::Request, requests.next_place(), ends(index))?;
        }
        Ok(())
    }

    /// Runs the keyed simulation. Passes all events of the second phase to `look`.
    pub(super) fn simulate(
        &self,
        ticker: &Ticker<'_>,
        look: &mut dyn FnMut(Event<'_>),
    ) -> anyhow::Result<StageCosts> {
        let item_bytes = self.item_bytes;
        let policy = self.policy()?;
        let mut sim = KeyedSim::new(&policy, self.memtable_bytes());
        let live_bytes = self.design.keys * u64::from(item_bytes);
        let mut before = None;
        self.play(|step, place, ends| {
            if step == Step::Request && before.is_none() {
                before = Some(written(sim.tree()));
            }
            sim.write(EntryKind::Put, place, item_bytes);
            if ends {
                ticker.tick(self.design.memtable as u64);
                sim.flush(live_bytes, &mut |event| {
                    if step == Step::Request {
                        look(event);
                    }
                })?;
            }
            Ok(())
        })?;
        let requested = self.requests() * u64::from(item_bytes);
        let before_requests = before.context("no request was made")?;
        Ok(since(sim.tree(), &before_requests, requested))
    }

    /// Runs the real store. Also returns the physical bytes of tables and of the log that it wrote
    /// per byte of requests.
    pub(super) fn run(&self, ticker: &Ticker<'_>) -> anyhow::Result<(StageCosts, f64)> {
        let item_bytes = self.item_bytes;
        let dir = Scratch::new("lsmith-reproduce-")?;
        let store = builder(dir.path(), Unsynced::default())
            .policy(self.policy()?)
            .memtable_bytes(self.memtable_bytes())
            .open()?;
        let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
        let value_bytes =
            u64::from(item_bytes).saturating_sub(logical_bytes(KEY_BYTES, 0)) as usize;
        let mut value = vec![0; value_bytes];
        let mut seed = 0;
        let mut before = None;
        let in_files = |store: &Store| {
            let stats = store.stats();
            stats.flush_bytes + stats.merge_bytes_written
        };
        self.play(|step, place, ends| {
            if step == Step::Request && before.is_none() {
                before = Some((written(&keyspace.tree()), in_files(&store)));
            }
            seed += 1;
            fill_value(seed, &mut value);
            keyspace.put(place.to_be_bytes(), &value)?;
            if ends {
                ticker.tick(self.design.memtable as u64);
                keyspace.flush()?;
                store.settle()?;
            }
            Ok(())
        })?;
        check_plans(&keyspace)?;
        let (before, files_before) = before.context("no request was made")?;
        let requested = self.requests() * u64::from(item_bytes);
        let found = since(&keyspace.tree(), &before, requested);
        let physical = (in_files(&store) - files_before) as f64 / requested as f64;
        Ok((found, LOG + physical))
    }
}

/// Measures all spots by keyed simulation.
pub(super) fn simulated(
    task: &Task<'_>,
    spots: Vec<Spot<Steady>>,
) -> anyhow::Result<Sweep<Steady, StageCosts>> {
    let measure = |steady: &Steady, ticker: &Ticker<'_>| steady.simulate(ticker, &mut |_| {});
    Sweep::measure(task, "keyed simulation", spots, Steady::work, measure)
}

/// Bytes of a key on the store. The key is its position.
const KEY_BYTES: usize = size_of::<u32>();

/// The phase of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Load,
    Request,
}

/// Returns the bytes written so far to each level on storage, level 0 first.
fn written(tree: &Tree) -> Vec<u64> {
    tree.levels().iter().map(|level| level.counters().bytes_written).collect()
}

/// Returns the bytes written since `before`, per byte of requests.
fn since(tree: &Tree, before: &[u64], requested: u64) -> StageCosts {
    let before = before.iter().copied().chain(std::iter::repeat(0));
    let levels = written(tree).into_iter().zip(before);
    let grown = levels.map(|(now, then)| (now - then) as f64 / requested as f64);
    StageCosts { stages: std::iter::once(LOG).chain(grown).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::with_task;

    #[test]
    fn store_and_simulation_write_the_same() {
        for skew in [0.0, 0.99] {
            let design =
                Design { memtable: 500.0, sizes: vec![1500.0], ..Design::leveldb(4000, skew) };
            let steady = Steady { rounds: 2, item_bytes: 200, ..Steady::new(design) };
            let found = with_task(|task| {
                task.each_in_turn(
                    "test",
                    std::slice::from_ref(&steady),
                    Steady::work,
                    |steady, ticker| {
                        Ok((steady.simulate(ticker, &mut |_| {})?, steady.run(ticker)?))
                    },
                )
            });
            let (simulated, (stored, physical)) = &found.unwrap()[0];
            assert!((physical / stored.write_cost() - 1.0).abs() < 0.05, "{physical}");
            assert_eq!(simulated.stages.len(), 4, "log, and three levels");
            for (simulated, stored) in simulated.stages.iter().zip(&stored.stages) {
                assert!((simulated / stored - 1.0).abs() < 1e-9, "{simulated} and {stored}");
            }
        }
    }
}
