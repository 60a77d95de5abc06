//! Measures the steady states of one index at several sizes.

use super::steady::{Bench, Course, REQUESTS_MAX, Steady};
use crate::form::*;
use anyhow::Context;
use lsmith_sim::BlockSim;

/// Benches that differ only in the size of their data, smallest first. One simulation grows through
/// all sizes. At each size a copy of it is brought to its steady state. Each bench alone would give
/// the same result, because the load of a smaller workload is a prefix of the load of a larger one.
type Chain = Vec<Bench>;

/// Measures the steady state of each of `benches`.
pub(super) fn measure<'a>(
    task: &Task<'_>,
    step: &str,
    benches: impl Iterator<Item = &'a Bench>,
) -> anyhow::Result<Vec<Steady>> {
    let (chains, places) = chains(benches);
    let work = |chain: &Chain| chain.iter().map(Bench::work).sum();
    let found = task.each(step, &chains, work, |chain, ticker| steady_states(chain, ticker))?;
    Ok(places.into_iter().map(|(chain, place)| found[chain][place].clone()).collect())
}

/// Groups `benches` into chains. Also returns the chain and the position in it of each bench.
fn chains<'a>(benches: impl Iterator<Item = &'a Bench>) -> (Vec<Chain>, Vec<(usize, usize)>) {
    let benches: Vec<&Bench> = benches.collect();
    let mut order: Vec<usize> = (0..benches.len()).collect();
    order.sort_by_key(|&bench| benches[bench].dataset_mb);
    let mut chains: Vec<Chain> = Vec::new();
    let mut places = vec![(0, 0); benches.len()];
    for index in order {
        let bench = benches[index];
        let known = chains.iter().position(|chain| chain[0].grows_as(bench));
        let chain = known.unwrap_or(chains.len());
        match chains.get_mut(chain) {
            Some(chain) => chain.push(bench.clone()),
            None => chains.push(vec![bench.clone()]),
        }
        places[index] = (chain, chains[chain].len() - 1);
    }
    (chains, places)
}

fn steady_states(chain: &[Bench], ticker: &Ticker<'_>) -> anyhow::Result<Vec<Steady>> {
    let mut found = Vec::new();
    let mut grown: Option<(BlockSim, u64)> = None;
    for bench in chain {
        let (index, records) = match grown.take() {
            Some(grown) => grown,
            None => (bench.sim()?, 0),
        };
        let workload = bench.workload(0.5, REQUESTS_MAX)?;
        let mut ops = workload.ops();
        if let Some(last) = records.checked_sub(1) {
            ops.nth(last as usize).context("the workload is shorter")??;
        }
        let mut course = Course { index, ops, ticker };
        course.run(bench.records() - records)?;
        if found.len() + 1 < chain.len() {
            grown = Some((course.index.clone(), bench.records()));
        }
        found.push(bench.settled(course)?.measure()?);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::steady::Keys;
    use super::*;
    use crate::task::with_task;

    #[test]
    fn a_chain_finds_what_each_bench_finds_alone() {
        let bench = |policy: &str, keys, size| Bench::standard(policy, keys, size, 128);
        let benches = [
            bench("mixed", Keys::Uniform, 600),
            bench("rr", Keys::Uniform, 300),
            bench("mixed", Keys::Uniform, 200),
            bench("mixed", Keys::TPC, 200),
        ];
        let measured =
            |benches: &[Bench]| with_task(|task| measure(task, "", benches.iter()).unwrap());
        let alone: Vec<Steady> =
            benches.iter().flat_map(|bench| measured(std::slice::from_ref(bench))).collect();
        assert_eq!(chains(benches.iter()).0.len(), 3);
        assert_eq!(measured(&benches), alone);
        assert!(alone[0].write_cost_blocks > alone[2].write_cost_blocks);
    }
}
