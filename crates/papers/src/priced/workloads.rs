//! The same policies under workloads of benchmarks, with their own mix of reads.

use super::{Costs, GET, MEMTABLE_BYTES, SCAN, judge_best};
use crate::form::*;
use anyhow::Context;
use lsmith_lab::FileInputs;
use lsmith_sim::{KeyedSim, KeyedWorkload, written_entry};
use lsmith_workload::{LiveBytes, OpKind, Workload};

/// YCSB's six, other mixes, and workloads of papers.
const WORKLOADS: [&str; 16] = [
    "ycsb(a, records=40k, ops=300k, value=100B)",
    "ycsb(b, records=40k, ops=1M, value=100B)",
    "ycsb(c, records=100k, ops=300k, value=100B)",
    "ycsb(d, records=40k, ops=1M, value=100B)",
    "ycsb(e, records=40k, ops=1M, value=100B)",
    "ycsb(f, records=40k, ops=300k, value=100B)",
    "mix(get=0.5, put=0.5, keys=40k, ops=300k, value=100B)",
    "mix(get=0.7, get_absent=0.2, put=0.1, keys=40k, ops=1M, value=100B)",
    "mix(get=0.2, scan=0.1, put=0.7, keys=40k, ops=300k, value=100B)",
    "mix(get=0.6, get_absent=0.2, scan=0.05, put=0.15, keys=40k, ops=1M, dist=latest, value=100B)",
    "update(keys=40k, ops=200k, value=100B)",
    "churn(keys=40k, ops=200k, value=100B)",
    "uniform(keys=40k, ops=200k, value=100B)",
    "normal(keys=40k, ops=200k, value=100B)",
    "tpc(keys=40k, ops=200k, value=100B)",
    "load(keys=200k, value=100B)",
];

/// Judges the policy under [`WORKLOADS`], without deletes of ranges and without expiry.
pub(super) fn judge(figure: &mut Figure, task: &Task<'_>) -> anyhow::Result<()> {
    let inputs = |spec: &&str| -> anyhow::Result<KeyedWorkload> {
        Ok(KeyedWorkload::new(Workload::from_spec(&spec.parse()?, &FileInputs)?))
    };
    let count = task.pick(3, WORKLOADS.len());
    let inputs: Vec<KeyedWorkload> =
        WORKLOADS[..count].iter().map(inputs).collect::<anyhow::Result<_>>()?;
    let work = |input: &KeyedWorkload| input.workload().ops_max();
    let found = task.each("workloads of benchmarks", &inputs, work, |input, ticker| {
        let costs = Costs::of(|spec| cost(spec, input, task));
        ticker.tick(input.workload().ops_max());
        costs
    })?;
    judge_best(figure, "workloads", found);
    figure.explain(
        "workloads: cost over the best fixed policy, most",
        "ycsb(c) only reads after its load. Policies see reads with the next flush, and none \
         comes: the tree keeps the runs of a load that nobody read. The next highest is ycsb(e), \
         with 1.04.",
    );
    Ok(())
}

/// Returns what `spec` costs per byte that is put, counted as with other settings.
fn cost(spec: &str, input: &KeyedWorkload, task: &Task<'_>) -> anyhow::Result<f64> {
    let workload = input.workload();
    let mut sim = KeyedSim::new(&task.policy(spec)?, MEMTABLE_BYTES);
    let mut live = LiveBytes::of(workload);
    let (mut put_bytes, mut reads_cost) = (0.0, 0.0);
    for op in workload.ops() {
        let op = op?;
        let rank = u32::try_from(input.ranks().rank(op.item)).context("too many keys")?;
        let runs = sim.tree().disk_run_count() as f64;
        match op.kind {
            OpKind::Read | OpKind::ReadModifyWrite => {
                let found = u64::from(live.holds(op.item));
                sim.note_reads([found, 1 - found, 0]);
                reads_cost += GET * runs;
            }
            OpKind::Scan => {
                sim.note_reads([0, 0, 1]);
                reads_cost += SCAN * runs;
            }
            _ => {}
        }
        let key_bytes = workload.key_bytes(op.item);
        let Some((kind, bytes)) = written_entry(&op, key_bytes) else { continue };
        live.observe(&op, key_bytes);
        put_bytes += f64::from(bytes);
        sim.write(kind, rank, bytes);
        if sim.is_full() {
            sim.flush(live.bytes(), &mut |_| {}).with_context(|| format!("policy {spec}"))?;
        }
    }
    let parts = sim.figures().parts;
    let written = parts.flush_written_bytes + parts.merge_memory_bytes + parts.merge_written_bytes;
    Ok((written as f64 + reads_cost) / put_bytes)
}
