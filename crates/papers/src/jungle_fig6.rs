//! Ahn et al., "Jungle: towards dynamically adjustable key-value store by combining LSM-tree and
//! copy-on-write B+-tree", HotStorage 2019: figure 6, bytes written and held by leveling, tiering
//! and Jungle, and lookups in what they leave.

mod aging;
mod claims;
mod nodes;
mod store;

pub(super) use aging::{
    Aged, Aging, JUNGLE, KEY_BYTES, LEVELING, ROUNDS, THRESHOLDS, TIERING, VALUE_BYTES,
};
pub(super) use store::{Lookups, READ_SECONDS, builder, look_up, warm, write};

use crate::form::*;
use aging::JUNGLE_ENTRIES;
use lsmith_tree::logical_bytes;
use store::{Read, Reading};

/// The factor by which the full measurement is smaller than the paper's.
const SHRINK: u64 = 8;

/// The same for the real store, and the most in quick measurements: memtables still have records.
const SHRINK_STORE: u64 = 256;
pub(super) const SHRINK_STORE_MAX: u64 = 4096;

/// Updates per record in quick measurements of the store: at any scale it makes as many merges.
const ROUNDS_QUICK: u64 = 4;

pub(crate) fn measure(task: &Task<'_>) -> anyhow::Result<Figure> {
    let smaller = task.pick(task.effort.shrink, 1);
    let mut figure = task.figure(panels());
    let shrink = SHRINK * smaller;
    simulated(&mut figure, &Aging::all(shrink, ROUNDS), task)?;
    let smaller = smaller.div_ceil(4);
    let shrink = (SHRINK_STORE * smaller).min(SHRINK_STORE_MAX);
    let rounds = task.pick(ROUNDS_QUICK, ROUNDS);
    let jobs: Vec<Reading> = Aging::all(shrink, rounds).into_iter().map(Reading).collect();
    stored(&mut figure, &jobs, task)?;
    claims::judge(&mut figure);
    Ok(figure)
}

fn panels() -> Vec<Panel> {
    let panel = |name: &str, title: &str, y: &str, unit: &str| {
        Panel::new(name, title, Axis::linear("compaction threshold c", ""), Axis::linear(y, unit))
    };
    const WRITTEN: &str = "bytes written per byte of updates";
    vec![
        panel("write", "writes", WRITTEN, ""),
        panel("space", "space", "bytes held per live byte, mean", ""),
        panel("space range", "space, least and most", "bytes held per live byte", ""),
        panel("store write", "writes of the store, with nodes", WRITTEN, ""),
        panel("store space", "space of the store", "bytes held per live byte, mean", ""),
        panel("lookups", "lookups of the aged store", "lookups per second", ""),
        panel("latency", "lookups, p50 and p99", "microseconds", ""),
        panel("device reads", "reads of the device", "reads per lookup", ""),
    ]
}

/// Returns where a job has points: leveling and tiering do not depend on the threshold.
fn places(job: &Aging) -> Vec<f64> {
    job.threshold.map_or(THRESHOLDS.to_vec(), |c| vec![c])
}

/// Adds what keyed simulations find.
fn simulated(figure: &mut Figure, jobs: &[Aging], task: &Task<'_>) -> anyhow::Result<()> {
    let found = task.each("keyed simulation", jobs, Aging::work, Aging::measure)?;
    for (job, aged) in jobs.iter().zip(&found) {
        for x in places(job) {
            figure.point("write", job.curve, x, aged.write + aged.nodes);
            if job.curve == JUNGLE {
                figure.point("write", JUNGLE_ENTRIES, x, aged.write);
            }
            figure.point("space", job.curve, x, aged.space_mean);
            for (edge, space) in [("least", aged.space_least), ("most", aged.space_most)] {
                figure.point("space range", &format!("{}, {edge}", job.curve), x, space);
            }
        }
    }
    let Some(job) = jobs.first() else { return Ok(()) };
    figure.note(format!(
        "`write` and `space`: a keyed simulation at 1/{} of the paper's scale: {} records of {} \
         bytes, loaded in random order, then updated {ROUNDS} times each on average, at random. \
         Memory, tables and level 0 are smaller by the same factor. The paper does not give the \
         size of memory, which decides what tiering writes; here it holds one table. Nodes of \
         append tables are counted as the policy counts them, and filters are not.",
        job.shrink,
        job.keys(),
        logical_bytes(KEY_BYTES, VALUE_BYTES),
    ));
    Ok(())
}

/// Adds what the store does.
fn stored(figure: &mut Figure, jobs: &[Reading], task: &Task<'_>) -> anyhow::Result<()> {
    let found = task.each("stores", jobs, Reading::work, Reading::measure)?;
    for (Reading(job), read) in jobs.iter().zip(&found) {
        for x in places(job) {
            let Read { write, space, lookups } = read;
            figure.point("store write", job.curve, x, *write);
            figure.point("store space", job.curve, x, *space);
            figure.point("lookups", job.curve, x, lookups.rate);
            figure.point("device reads", job.curve, x, lookups.device);
            let parts = [("p50", lookups.p50), ("p99", lookups.p99), ("CPU", lookups.cpu)];
            for (part, seconds) in parts {
                figure.point("latency", &format!("{}, {part}", job.curve), x, seconds * 1e6);
            }
        }
    }
    let Some(Reading(job)) = jobs.first() else { return Ok(()) };
    figure.note(format!(
        "The other panels: the store in lockstep at 1/{} of the paper's scale, {} records, each \
         updated {} times on average, files with nodes and filters. Then each record is looked up \
         once on average, at random, by one reader, after as many lookups that fill the cache. \
         Files are not mapped, and the cache holds a tenth of the data. A lookup takes its CPU \
         time, and {} microseconds for each read of the device.",
        job.shrink,
        job.keys(),
        job.rounds,
        READ_SECONDS * 1e6,
    ));
    Ok(())
}
