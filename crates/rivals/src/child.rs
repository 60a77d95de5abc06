//! One store's turn: a chain of phases in a process of its own, a row for each.

use crate::args::Args;
use crate::data::{KEY_BYTES, Values};
use crate::limit;
use crate::meter::{Reading, disk_bytes, rss_bytes, wait_until_quiet};
use crate::phases::{self, Dataset, Phase, Worked};
use crate::report::Row;
use crate::stores::{self, Lacks, Settings};
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::sync::atomic::AtomicU64;

/// Runs the chain of phases that `args` names on `store`, and prints a row for each.
pub(crate) fn run(args: &Args, store: &str) -> Result<()> {
    if let Some(door) = &args.door {
        limit::join(door)?;
    }
    let contender = stores::find(store)?;
    let dir = args.dir.clone().context("a child is told its folder")?;
    let mut chains = phases::chains(&args.phases()?);
    ensure!(chains.len() == 1, "a child runs one chain of phases");
    let chain = chains.remove(0).phases;
    let first = &chain[0];
    let keys = first.keys(args.ops);
    let value_bytes = first.value_bytes.unwrap_or(args.value);
    // What a store makes when it opens, such as a log allocated ahead, belongs to its first writes.
    let mut before = Reading::now()?;
    let settings = Settings { value_bytes, ..Settings::default() }.within(args.memory, keys);
    let data = Dataset {
        store: contender.open(&dir, settings)?,
        dir,
        order: first.order(),
        values: Values::new(value_bytes),
        keys: AtomicU64::new(0),
    };
    if !first.fills() {
        phases::fill(&data, keys)?;
        empty_buffers(&data)?;
        before = Reading::now()?;
    }
    for (place, phase) in chain.iter().enumerate() {
        let worked = match phases::run(phase, &data, phase.ops(keys)) {
            Err(error) if error.is::<Lacks>() => {
                eprintln!("{store}: {} is left out: {}", phase.name, error.root_cause());
                continue;
            }
            worked => worked?,
        };
        settle(&data)?;
        let row = row(store, phase, &data, &worked, Reading::now()?.since(before))?;
        let mut out = std::io::stdout().lock();
        serde_json::to_writer(&mut out, &row)?;
        writeln!(out)?;
        if phase.writes() && chain.get(place + 1).is_some_and(|next| !next.writes()) {
            empty_buffers(&data)?;
        }
        before = Reading::now()?;
    }
    Ok(())
}

/// What `phase` has cost, work in the background included.
fn row(store: &str, phase: &Phase, data: &Dataset, worked: &Worked, cost: Reading) -> Result<Row> {
    let Worked { ops, elapsed, tally } = worked;
    let per_op = |amount: f64| amount / *ops as f64;
    let user_bytes = (tally.user_bytes > 0).then_some(tally.user_bytes as f64);
    let live_bytes = (data.keys() * (KEY_BYTES + data.values.bytes()) as u64) as f64;
    let samples = tally.disk_samples.len() as f64;
    let sampled: u64 = tally.disk_samples.iter().sum();
    Ok(Row {
        store: store.to_string(),
        phase: phase.name.clone(),
        threads: phase.threads,
        ops: *ops,
        ops_per_s: *ops as f64 / elapsed.as_secs_f64(),
        cpu_us_per_op: per_op(cost.cpu.as_secs_f64() * 1e6),
        device_bytes_per_user_byte: user_bytes.map(|user| cost.device_bytes() as f64 / user),
        written_bytes_per_op: per_op(cost.written_bytes as f64),
        read_bytes_per_op: per_op(tally.get_read_bytes.unwrap_or(cost.read_bytes) as f64),
        p50_ns: tally.latencies.value_at_quantile(0.5),
        p99_ns: tally.latencies.value_at_quantile(0.99),
        p999_ns: tally.latencies.value_at_quantile(0.999),
        max_ns: tally.latencies.max(),
        disk_bytes: disk_bytes(&data.dir),
        rss_bytes: rss_bytes()?,
        space_over_live: (samples > 0.0).then(|| sampled as f64 / samples / live_bytes),
    })
}

/// Makes the store ready for reads: how much a fill has left in its buffers is mere chance.
fn empty_buffers(data: &Dataset) -> Result<()> {
    data.store.flush()?;
    settle(data)
}

/// Waits until the store's work in the background is done.
fn settle(data: &Dataset) -> Result<()> {
    if !data.store.settle()? {
        wait_until_quiet();
    }
    Ok(())
}
