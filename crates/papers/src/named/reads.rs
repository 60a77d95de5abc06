//! Policies that weigh reads, under shares of reads that stay and that shift.

use crate::form::*;
use anyhow::Context;
use lsmith_sim::KeyedSim;
use lsmith_tree::EntryKind;
use lsmith_workload::Rng;

/// The panel of reads.
pub(super) const PANEL: &str = "f";

const ARCE: &str = "arce(runs=40, price=reads)";

/// The policies that the paper holds it against, at its ratio.
const OTHERS: [(&str, &str); 3] = [
    ("leveling", "fluid(ratio=10, inner=1, last=1)"),
    ("tiering", "tiered(ratio=10)"),
    ("lazy leveling", "lazy_leveling(ratio=10)"),
];

/// The policy that changes its scaling parameter, and the same with fixed ones.
const ADAPTIVE: &str = "ucs(w=adaptive, scan=1820B)";
const STATIC: [&str; 7] =
    ["ucs(w=L10)", "ucs(w=L6)", "ucs(w=L4)", "ucs(w=N)", "ucs(w=T4)", "ucs(w=T8)", "ucs(w=T16)"];

/// What one run costs a range read, in written bytes: the default of the policy.
const SCAN: f64 = 1820.0;

const ENTRY_BYTES: u32 = 1024;
const MEMTABLE_BYTES: u64 = 500 * ENTRY_BYTES as u64;

const KEYS: u64 = 40_000;
const KEYS_QUICK: u64 = 10_000;
const PUTS_PER_KEY: u64 = 4;

/// The shares of range reads among all operations: steady ones, and some that shift at once and
/// little by little.
const STEADY: [f64; 9] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9];
const AT_ONCE: &[f64] = &[0.1, 0.9, 0.1, 0.9];
const BY_AND_BY: &[f64] = &[0.1, 0.3, 0.5, 0.7, 0.9, 0.7, 0.5, 0.3, 0.1];

pub(super) fn panel() -> Panel {
    let title = "updates and range reads, a run priced by reads";
    let cost = Axis::log("written and read", "bytes per byte put");
    Panel::new(PANEL, title, Axis::linear("share of range reads", ""), cost)
}

/// Returns what `spec` costs per byte that is put: written bytes, and for each run of each read the
/// bytes that it is worth.
fn cost(task: &Task<'_>, spec: &str, shares: &[f64], keys: u64) -> anyhow::Result<f64> {
    let puts = keys * PUTS_PER_KEY;
    let mut sim = KeyedSim::new(&task.policy(spec)?, MEMTABLE_BYTES);
    let mut random = Rng::new(1, 0);
    let (mut seen, mut live) = (vec![false; keys as usize], 0);
    let (mut due, mut reads_cost) = (0.0, 0.0);
    for put in 0..puts {
        let phase = put as usize * shares.len() / puts as usize;
        due += shares[phase] / (1.0 - shares[phase]);
        let reads = due as u64;
        due -= reads as f64;
        reads_cost += SCAN * (reads * sim.tree().disk_run_count() as u64) as f64;
        sim.note_reads([0, 0, reads]);
        let key = random.below(keys);
        if !std::mem::replace(&mut seen[key as usize], true) {
            live += u64::from(ENTRY_BYTES);
        }
        sim.write(EntryKind::Put, key as u32, ENTRY_BYTES);
        if sim.is_full() {
            sim.flush(live, &mut |_| {}).with_context(|| format!("policy {spec}"))?;
        }
    }
    let parts = sim.figures().parts;
    let written = parts.flush_written_bytes + parts.merge_memory_bytes + parts.merge_written_bytes;
    Ok((written as f64 + reads_cost) / (puts * u64::from(ENTRY_BYTES)) as f64)
}

pub(super) fn measure(task: &Task<'_>, figure: &mut Figure) -> anyhow::Result<()> {
    let keys = task.pick(KEYS_QUICK, KEYS);
    let mut settings: Vec<&[f64]> = STEADY.iter().map(std::slice::from_ref).collect();
    settings.extend([AT_ONCE, BY_AND_BY]);
    let work = |_: &&[f64]| keys * PUTS_PER_KEY;
    let found = task.each("reads that shift", &settings, work, |shares, _| {
        let costs = OTHERS.map(|(_, spec)| cost(task, spec, shares, keys));
        let costs = costs.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
        Ok((cost(task, ARCE, shares, keys)?, costs))
    })?;
    adaptive(task, figure, &settings, keys)?;
    let (steady, shifting) = found.split_at(STEADY.len());
    for (share, (arce, costs)) in STEADY.iter().zip(steady) {
        figure.point(PANEL, ARCE, *share, *arce);
        for ((_, spec), cost) in OTHERS.iter().zip(costs) {
            figure.point(PANEL, spec, *share, *cost);
        }
    }
    for (index, (name, _)) in OTHERS.iter().enumerate() {
        let over = steady.iter().map(|(arce, costs)| arce / costs[index]);
        let claim = format!("arce, reads of 10 to 90 %: cost over {name}, mean");
        figure.at_most(claim, mean(over).unwrap_or(f64::NAN), 1.0);
        for (how, (arce, costs)) in ["at once", "little by little"].iter().zip(shifting) {
            let claim = format!("arce, reads that shift {how}: cost over {name}");
            figure.at_most(claim, arce / costs[index], 1.0);
        }
    }
    figure.explain(
        "arce, reads that shift",
        "The paper has 2.00 times the throughput of leveling with shifts at once and 1.41 times \
         with others, where merges run beside reads and cost time alone. Here they cost what they \
         write. Most of the cost is that of the phases with many reads, for which leveling is \
         cheapest of the three.",
    );
    figure.note(format!(
        "Panel {PANEL}: keyed simulation of {PUTS_PER_KEY} puts per key to {keys} keys, evenly, \
         with memtables of 500 entries of {ENTRY_BYTES} bytes. The cost is the bytes of all \
         flushes and merges, plus {SCAN} bytes for each run at each range read."
    ));
    Ok(())
}

/// Judges the adaptive `ucs` by the best fixed one of each setting, known afterwards.
fn adaptive(
    task: &Task<'_>,
    figure: &mut Figure,
    settings: &[&[f64]],
    keys: u64,
) -> anyhow::Result<()> {
    let work = |_: &&[f64]| keys * PUTS_PER_KEY;
    let found = task.each("ucs, adaptive and fixed", settings, work, |shares, _| {
        let fixed = STATIC.map(|spec| cost(task, spec, shares, keys));
        let fixed = fixed.into_iter().collect::<anyhow::Result<Vec<f64>>>()?;
        Ok((cost(task, ADAPTIVE, shares, keys)?, least(fixed).unwrap_or(f64::NAN)))
    })?;
    let (steady, shifting) = found.split_at(STEADY.len());
    for (share, (adaptive, _)) in STEADY.iter().zip(steady) {
        figure.point(PANEL, ADAPTIVE, *share, *adaptive);
    }
    let claim = "ucs(w=adaptive), reads of 10 to 90 %: cost over the best fixed w";
    figure.at_most(format!("{claim}, mean"), mean(steady.iter().map(|it| it.0 / it.1)), 1.15);
    for (how, (adaptive, best)) in ["at once", "little by little"].iter().zip(shifting) {
        let claim = format!("ucs(w=adaptive), reads that shift {how}: cost over the best fixed w");
        figure.at_most(claim, adaptive / best, 1.0);
    }
    Ok(())
}
