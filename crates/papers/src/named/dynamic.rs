//! Levels whose sizes follow from the last level, beside levels of fixed sizes.

use crate::form::*;
use anyhow::Context;
use lsmith_sim::{Figures, KeyedWorkload, simulate_keyed};
use lsmith_workload::{NoInputs, Workload};

/// The panel of spaces.
const PANEL: &str = "i";

/// Thousands of keys. Each is written five times, so that the tree has stopped growing.
const KEYS: [u64; 5] = [40, 60, 80, 120, 160];
const KEYS_QUICK: [u64; 2] = [40, 80];
const WRITES_PER_KEY: u64 = 5;

const MEMTABLE_BYTES: u64 = 64 << 10;

const FIXED: &str = "leveled";
const DYNAMIC: &str = "leveled(sizes=dynamic)";

/// What all levels above the last one hold, at most, over the last one: with a ratio of 10, a tenth
/// and a hundredth and so on.
///
/// Source: RocksDB's documents on `level_compaction_dynamic_level_bytes`.
const SPACE: f64 = 1.0 + 1.0 / 9.0;

pub(super) fn panel() -> Panel {
    let x = Axis::log("keys", "thousands");
    let title = "updates, levels of ratio 10";
    Panel::new(PANEL, title, x, Axis::linear("bytes held per live byte", ""))
}

pub(super) fn measure(task: &Task<'_>, figure: &mut Figure) -> anyhow::Result<()> {
    let keys = task.pick(KEYS_QUICK.to_vec(), KEYS.to_vec());
    let work = |keys: &u64| *keys;
    let found = task.each("levels of dynamic sizes", &keys, work, |keys, _| {
        let ops = keys * WRITES_PER_KEY;
        let workload = format!("mix(put=1, keys={keys}k, ops={ops}k, value=100B)");
        let workload = KeyedWorkload::new(Workload::from_spec(&workload.parse()?, &NoInputs)?);
        let figures = |spec| -> anyhow::Result<Figures> {
            let policy = task.policy(spec)?;
            let simulated = simulate_keyed(&policy, &workload, MEMTABLE_BYTES, &mut |_| {});
            Ok(simulated.with_context(|| format!("policy {spec}"))?.figures)
        };
        Ok((figures(FIXED)?, figures(DYNAMIC)?))
    })?;
    for (keys, (fixed, dynamic)) in keys.iter().zip(&found) {
        figure.point(PANEL, FIXED, *keys as f64, fixed.space_cost_mean);
        figure.point(PANEL, DYNAMIC, *keys as f64, dynamic.space_cost_mean);
    }
    let space = found.iter().map(|(_, dynamic)| dynamic.space_cost_mean);
    figure.at_most(format!("{DYNAMIC}: space, most over data sizes"), most(space), SPACE);
    let writes =
        found.iter().map(|(fixed, other)| other.write_cost_system / fixed.write_cost_system);
    figure.at_most(format!("{DYNAMIC}: write cost over fixed sizes, most"), most(writes), 1.0);
    let space = found.iter().map(|(fixed, _)| fixed.space_cost_mean);
    figure.at_least("leveled, fixed sizes: space, most over data sizes", most(space), 1.3);
    Ok(())
}
