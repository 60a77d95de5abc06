//! `compare`: the main job.

use crate::args::CompareArgs;
use crate::bars::Bars;
use crate::output::{Output, print_json};
use crate::specs;
use crate::table::{cost, cost_if_known, percent, table};
use lsmith_lab::{Comparison, Options, Row};
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Workload;
use serde_json::json;

/// The workload where none is named: records of 1 kB in random order, as many as all policies
/// together can take in two minutes on two cores.
const DEFAULT_WORKLOAD: &str = "load(keys=400k, value=1000B, order=hashed)";

pub(crate) fn compare(args: &CompareArgs, json: bool) -> anyhow::Result<()> {
    let policies = specs::policies(&args.policies)?;
    let workloads: Vec<Workload> = match args.workload.as_slice() {
        [] => vec![specs::workload(DEFAULT_WORKLOAD)?],
        specs => specs.iter().map(|spec| specs::workload(spec)).collect::<Result<_, _>>()?,
    };
    let options = Options { memtable_bytes: args.memtable.bytes, ..Options::default() };
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let bars = Bars::new();
    let mut tables: Vec<Vec<Row>> = Vec::new();
    for workload in workloads {
        let workload = &KeyedWorkload::new(workload);
        let comparison = Comparison { policies: &policies, workload, dir: &dir, options: &options };
        let mut rows = Vec::new();
        comparison.run(&bars, &mut |row| rows.push(row))?;
        tables.push(rows);
    }
    drop(bars);
    if json {
        return print_json(&json!({ "rows": tables.concat() }));
    }
    let mut output = Output::new();
    for rows in &tables {
        output.line(shown(rows))?;
    }
    output.line(LEGEND)?;
    Ok(output.finish()?)
}

const HEADER: [&str; 14] = [
    "policy",
    "write cost\neager",
    "\nsystem",
    "unit\npredicts",
    "\nerror %",
    "keyed\npredicts",
    "\nerror %",
    "write cost\nuser",
    "read cost\nmean",
    "\nerror %",
    "space cost\npeak",
    "\nflushes",
    "thousand\nops/s",
    "\ncpu s",
];

const LEGEND: &str = "\
write cost: bytes written over bytes flushed; eager: only runs that are there after a flush and \
were not before; system: every flush and every merge output; user: all bytes really written, log \
and metadata included, over bytes of the user. unit, keyed: what these simulations predict for \
system, and how far they are off. read cost: runs that a lookup must consider, averaged over \
flushes, and how far keyed is off. space cost: bytes of all tables over live bytes at the worst \
moment. Store and simulations ran in lockstep: each write waited until the tree had come to rest.";

fn shown(rows: &[Row]) -> String {
    let cells = rows.iter().map(|row| {
        let (engine, errors) = (&row.engine, &row.errors);
        vec![
            row.policy.clone(),
            cost(engine.costs.write_cost_eager),
            cost(engine.costs.write_cost_system),
            cost(row.unit.costs.write_cost_system),
            percent(errors.unit.write_cost_system),
            cost(row.keyed.costs.write_cost_system),
            percent(errors.keyed.write_cost_system),
            cost_if_known(engine.write_cost_user),
            cost(engine.costs.read_cost_mean),
            percent(errors.keyed.read_cost_mean),
            cost_if_known(engine.costs.space_cost_peak),
            engine.costs.flushes.to_string(),
            format!("{:.1}", engine.ops_per_second / 1000.0),
            format!("{:.1}", engine.cpu_seconds),
        ]
    });
    let workload = rows.first().map_or("", |row| row.workload.as_str());
    format!("{workload}\n{}", table(&HEADER, 1, cells.collect()))
}
