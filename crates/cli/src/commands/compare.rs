//! `compare`: runs policies on the real store and compares the results with predictions.

mod free;
mod spread;
mod verdict;

use super::notes::unfilled;
use super::run::l0_one;
use crate::args::CompareArgs;
use crate::bars::Bars;
use crate::failure::bad_argument;
use crate::layout::{Layout, layout, prose_width, wrapped};
use crate::output::{Output, print_json};
use crate::page;
use crate::specs;
use crate::table::Importance::{Detail, Least, OfTheOneBefore, Rank};
use crate::table::{Column, Head, binary, column, cost, cost_if_known, percent, ranked, table_of};
use anyhow::anyhow;
use lsmith_lab::page::Group;
use lsmith_lab::{Comparison, Options, Prediction, Row, keyed_fits};
use lsmith_policy::MergePolicy;
use lsmith_sim::{KeyedWorkload, Machine};
use lsmith_spec::format_bytes;
use lsmith_workload::{FlushSizes, Workload};
use serde::Serialize;
use std::sync::Arc;

/// The default workload: a hundred memtables in random order. Write costs depend on how many
/// memtables there are, and hardly on their size. So memtables of 256 KiB rank policies like
/// memtables of 4 MiB, with a sixteenth of the bytes (docs/notes/2026-11-26-main-job.md).
const DEFAULT_WORKLOAD: &str = "load(keys=200k, value=100B)";

/// The memtables of the default workload.
const DEFAULT_MEMTABLE_BYTES: u64 = 256 << 10;

fn memtable_bytes(args: &CompareArgs, workload: &Workload) -> u64 {
    match (args.memtable.given(), args.workload.is_empty()) {
        (None, true) => DEFAULT_MEMTABLE_BYTES,
        _ => args.memtable.of(workload),
    }
}

#[derive(Serialize)]
struct Rows {
    rows: Vec<Row>,
}

pub(crate) fn compare(args: &CompareArgs, json: bool) -> anyhow::Result<()> {
    let workload = |spec: &str| args.group.applied_to(specs::workload(spec)?);
    let workloads: Vec<Workload> = match args.workload.as_slice() {
        [] => vec![workload(DEFAULT_WORKLOAD)?],
        specs => specs.iter().map(|spec| workload(spec)).collect::<Result<_, _>>()?,
    };
    let built = |workload: &Workload| policies(args, workload);
    let policies_of = workloads.iter().map(built).collect::<Result<Vec<_>, _>>()?;
    let flush_sizes = specs::flush_sizes(args.flush_sizes.sizes.as_deref())?;
    policies_of.iter().try_for_each(|policies| specs::check_sealing(&flush_sizes, policies))?;
    let shared = options(args, flush_sizes)?;
    let dir = args.dir.clone().unwrap_or_else(std::env::temp_dir);
    let work_of = |(workload, policies): (&Workload, &Vec<_>)| {
        std::iter::repeat_n(workload.ops_max(), policies.len())
    };
    let bars = Bars::of_parts(workloads.iter().zip(&policies_of).flat_map(work_of).collect());
    let mut tables: Vec<Vec<Row>> = Vec::new();
    let mut failed: Vec<anyhow::Error> = Vec::new();
    for (workload, policies) in workloads.into_iter().zip(&policies_of) {
        let memtable_bytes = memtable_bytes(args, &workload);
        let options = Options { memtable_bytes, ..shared.clone() };
        keyed_fits(&workload, memtable_bytes)?;
        let workload = &KeyedWorkload::new(workload).with_cache(args.cache.size);
        let comparison = Comparison {
            policies,
            workload,
            dir: &dir,
            options: &options,
            free: args.free,
            runs: usize::try_from(args.repeat)?,
        };
        let mut rows = Vec::new();
        let mut on_row = |row: Row| {
            bars.finish_part(&finished(&row));
            rows.push(row);
        };
        if let Err(error) = comparison.run(&bars, &mut on_row) {
            failed.push(error);
        }
        let is_filled = |row: &Row| row.engine.costs.flushes > 0;
        failed.extend(rows.iter().find(|row| !is_filled(row)).map(|row| {
            let what = format!("{} under {}", row.policy, row.workload);
            unfilled(&what, row.engine.bytes.physical.user, memtable_bytes)
        }));
        rows.retain(is_filled);
        tables.push(rows);
    }
    drop(bars);
    // A policy that fails costs its own row, and so does one whose merge costs would all be 0.
    let join = |before: anyhow::Error, error| anyhow!("{before:#}; {error:#}");
    let end = failed.into_iter().reduce(join).map_or(Ok(()), Err);
    tables.retain(|rows| !rows.is_empty());
    if tables.is_empty() {
        return end;
    }
    let made = tables.iter_mut().map(|rows| Group::of_rows(rows));
    let groups = made.collect::<anyhow::Result<_>>()?;
    page::write("lsmith compare", groups, args.html.as_deref(), args.svg.as_deref())?;
    print(args, json, &tables)?;
    end
}

/// Returns the options of stores and simulations, whatever the workload.
fn options(args: &CompareArgs, flush_sizes: Arc<FlushSizes>) -> anyhow::Result<Options> {
    let usual = Options::default();
    Ok(args.cache.added_to(Options {
        registry: specs::registry().clone(),
        compression: args.compression.checked()?,
        flush_sizes,
        record_trees: args.html.is_some(),
        duration: args.duration,
        threads: args.threads.unwrap_or(usual.threads),
        machine: machine(args)?,
        ..usual
    }))
}

/// Returns the machine on which free runs are simulated.
fn machine(args: &CompareArgs) -> anyhow::Result<Option<Machine>> {
    if args.machine.machine.is_some() && !args.free {
        let message = "`--machine` predicts free runs: expected `--free` with it, or `simulate`";
        return Err(bad_argument(message));
    }
    specs::machine(args.machine.machine.as_deref())
}

/// Prints the rows of each workload, and what they mean.
fn print(args: &CompareArgs, json: bool, tables: &[Vec<Row>]) -> anyhow::Result<()> {
    if json {
        return print_json(&Rows { rows: tables.concat() });
    }
    let mut output = Output::new();
    for rows in tables {
        output.line(shown(rows))?;
        let notes = rows.iter().flat_map(|row| row.notes.iter().map(|note| (&row.policy, note)));
        for (policy, note) in notes {
            output.line(wrapped(&format!("{policy}: {note}"), prose_width()))?;
        }
        if args.parts {
            output.line(format_args!("{}\n", table_of(&PARTS, 1, rows)))?;
        }
        if args.free {
            output.line(free::shown(rows))?;
            if let Some(time) = free::time(rows) {
                output.line(time)?;
            }
        }
        if args.repeat > 1 {
            output.line(spread::shown(rows))?;
        }
        if args.explain_columns {
            output.line(format_args!("{LEGEND}\n"))?;
            if args.free {
                output.line(format_args!("{}\n", free::LEGEND))?;
            }
        }
        match verdict::of(rows) {
            Some(verdict) => output.line(verdict)?,
            None => output.line("`--explain-columns` explains all columns.")?,
        }
    }
    Ok(output.finish()?)
}

/// Returns the policies to compare under `workload`. In a group, `classic` and `all` leave out
/// policies that do not fit a group.
fn policies(args: &CompareArgs, workload: &Workload) -> anyhow::Result<Vec<Arc<dyn MergePolicy>>> {
    let mut policies = specs::policies(&args.policies, workload, memtable_bytes(args, workload))?;
    if specs::is_word(&args.policies) {
        policies.retain(|policy| args.group.check(&**policy).is_ok());
    }
    policies.iter().try_for_each(|policy| args.group.check(&**policy))?;
    Ok(policies)
}

/// The columns.
const COLUMNS: [Column<Row>; 25] = [
    column("\npolicy", Rank(0), |row| row.policy.clone()),
    column("write\neager", Least, |row| cost(row.engine.costs.write_cost_eager)),
    column("write\nsystem", Rank(1), |row| cost(row.engine.costs.write_cost_system)),
    column("unit\nsim", Least, |row| {
        cost_if_known(row.unit.map(|unit| unit.costs.write_cost_system))
    }),
    column("error\n%", OfTheOneBefore, |row| {
        percent(row.errors.unit.and_then(|unit| unit.write_cost_system))
    }),
    column("keyed\nsim", Rank(4), |row| cost(row.keyed.costs.write_cost_system)),
    column("error\n%", OfTheOneBefore, |row| percent(row.errors.keyed.write_cost_system)),
    column("fluid\nsim", Rank(12), |row| {
        cost_if_known(row.fluid.map(|fluid| fluid.costs.write_cost_system))
    }),
    column("error\n%", OfTheOneBefore, |row| {
        percent(row.errors.fluid.and_then(|fluid| fluid.write_cost_system))
    }),
    column("by\nmodel", Rank(11), |row| row.model.map_or("-".to_owned(), modelled)),
    column("error\n%", OfTheOneBefore, |row| percent(row.errors.model)),
    column("above\nleast %", Rank(5), |row| percent(row.optimum.map(|optimum| optimum.above))),
    column("same\nmean %", Rank(13), |row| {
        let at_mean = row.optimum.and_then(|optimum| optimum.at_mean_runs);
        percent(at_mean.map(|at_mean| at_mean.above))
    }),
    column("write\nuser", Rank(10), |row| cost_if_known(row.engine.write_cost_user)),
    column("error\n%", OfTheOneBefore, |row| percent(row.errors.keyed.write_cost_user)),
    column("read\nmean", Rank(2), |row| cost(row.engine.costs.read_cost_mean)),
    column("error\n%", Detail(9), |row| percent(row.errors.keyed.read_cost_mean)),
    column("runs\nmost", Rank(14), |row| row.engine.costs.runs_max.to_string()),
    column("longest\nmerge", Rank(15), |row| binary(row.engine.costs.merge_bytes_max)),
    column("flushes\nunmerged", Least, |row| row.engine.costs.flushes_unmerged_max.to_string()),
    column("scan\nmean", Least, |row| cost_if_known(row.engine.costs.scan_cost_mean.blocks)),
    column("space\nmean", Rank(3), |row| cost_if_known(row.engine.costs.space_cost_mean)),
    column("space\npeak", Rank(6), |row| cost_if_known(row.engine.costs.space_cost_peak)),
    column("1000\nops/s", Rank(7), |row| format!("{:.1}", row.engine.ops_per_second / 1000.0)),
    column("cpu\ns", Rank(8), |row| format!("{:.1}", row.engine.cpu_seconds)),
];

/// Returns the main figures of a row that is finished, before the table is there.
fn finished(row: &Row) -> String {
    let costs = &row.engine.costs;
    format!(
        "{}: write system {}, read mean {}, space mean {}, {:.1} s",
        row.policy,
        cost(costs.write_cost_system),
        cost(costs.read_cost_mean),
        cost_if_known(costs.space_cost_mean),
        row.engine.seconds
    )
}

const LEGEND: &str = "\
write eager: bytes of runs that are new after a flush, per byte flushed. system: bytes of every
  flush and every merge output, per byte flushed. user: all bytes written to storage, including
  log and metadata, per byte of keys and values, with the keyed simulation's error.
unit sim, keyed sim, fluid sim, by model: write system as predicted by simulation or formula, with
  the prediction error. For stacks the formula gets the policy's merges on expected sizes.
  < and >: the formula is a bound. ~: it takes requests to be independent puts of random keys.
above least: write system above the optimum of whole-run merges of the same flushes, with as many
  runs at most; same mean: with as many runs in the mean. A policy may be below it if it moves
  tables instead of merging them, or merges parts of runs.
read mean: runs that a lookup considers, averaged over flushes, with the keyed simulation's error.
runs most: the most runs after a flush. longest merge: logical bytes of the largest output of a
  merge. flushes unmerged: the most flushes in a row without a merge.
scan mean: data blocks that a range read looks at, averaged over flushes. It has as many entries as
  those of the workload have on average, or 50.
space mean: logical bytes of tables and sealed memtables per live byte, averaged over flushes.
space peak: the same with the output under way, at the worst moment.
Store and simulations ran in lockstep: each write waited until the tree was at rest. Only completed
flushes count; the last active memtable stays in memory and in the log.";

fn shown(rows: &[Row]) -> String {
    let title = rows.first().map_or(String::new(), |row| {
        let memtable = format_bytes(row.engine.settings.memtable_bytes);
        let sizes = row.engine.settings.flush_sizes.as_ref();
        let sizes = sizes.map_or(String::new(), |sizes| format!(", sealed at {sizes}"));
        let workload = &row.workload;
        let group = row.engine.settings.group.as_ref();
        let group = group.map_or(String::new(), |shares| format!(" in a group of {shares}"));
        let flushes = row.engine.costs.flushes;
        format!("{workload}{group}: {flushes} flushes of memtables of {memtable}{sizes}")
    });
    let marks = verdict::marks(rows);
    let mut header: Vec<Head<'_>> =
        COLUMNS.iter().map(|column| (column.name, column.importance)).collect();
    header.insert(1, ("\nbest", Rank(0)));
    let row = |(row, mark): (&Row, String)| {
        let mut cells: Vec<String> = COLUMNS.iter().map(|column| (column.cell)(row)).collect();
        cells[0] = in_two(&cells[0]);
        cells.insert(1, mark);
        cells
    };
    let cells = rows.iter().zip(marks).map(row).collect();
    format!("{title}\n\n{}\n", ranked(&header, 2, cells))
}

/// The greatest length of a spec in a narrow table. A longer one takes two lines.
const SPEC_CHARS_MAX: usize = 42;

/// The width from which on a table is not narrow.
const NARROW: usize = 100;

/// Returns a long spec in two lines if the table is narrow.
fn in_two(spec: &str) -> String {
    let is_narrow = matches!(layout(), Layout::Fitting(width) if width < NARROW);
    match spec.split_once('(').filter(|_| is_narrow && spec.len() > SPEC_CHARS_MAX) {
        Some((name, params)) => format!("{name}\n  ({params}"),
        None => spec.to_owned(),
    }
}

/// Returns the formula's write cost, marked if it is a bound, or if the formula does not know the
/// requests well.
fn modelled(model: Prediction) -> String {
    let bound = match model.bound {
        Some("upper") => "<",
        Some(_) => ">",
        None => "",
    };
    let doubt = if model.ignores.is_empty() { "" } else { "~" };
    format!("{bound}{doubt}{}", cost(model.write_cost_system))
}

/// The parts of the costs. Bytes are physical, except moved bytes, which are logical.
const PARTS: [Column<Row>; 15] = [
    column("\npolicy", Rank(0), |row| row.policy.clone()),
    column("bytes\nuser", Least, |row| binary(row.engine.bytes.physical.user)),
    column("\nlog", Least, |row| binary(row.engine.bytes.physical.log)),
    column("\nflush", Least, |row| binary(row.engine.bytes.physical.flush)),
    column("merge\nread", Least, |row| binary(row.engine.bytes.physical.merge_read)),
    column("merge\nwritten", Least, |row| binary(row.engine.bytes.physical.merge_written)),
    column("\nmoved", Least, |row| binary(row.engine.bytes.logical.moved)),
    column("meta-\ndata", Least, |row| binary(row.engine.bytes.physical.metadata)),
    column("\nmerges", Least, |row| row.engine.costs.merges.to_string()),
    column("read,\nL0 as 1", Least, |row| cost_if_known(l0_one(row.has_levels, &row.engine.costs))),
    column("blocks\nper hit", Least, |row| cost_if_known(row.engine.read_cost_measured.hit)),
    column("blocks\nper miss", Least, |row| cost_if_known(row.engine.read_cost_measured.miss)),
    column("blocks\nper scan", Least, |row| {
        cost_if_known(row.engine.costs.scan_cost_measured.and_then(|scan| scan.blocks))
    }),
    column("space\nmean", Least, |row| cost_if_known(row.engine.costs.space_cost_mean)),
    column("space,\nphysical", Least, |row| cost_if_known(row.engine.space_cost_physical_mean)),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The job that the README shows first once wrote 41 GB.
    #[test]
    fn default_job_fills_a_hundred_small_memtables() {
        let workload = specs::workload(DEFAULT_WORKLOAD).unwrap();
        let bytes = workload.ops().map(|op| {
            let op = op.unwrap();
            op.user_bytes(workload.key_bytes(op.item)) + 8
        });
        let bytes: u64 = bytes.sum();
        assert!((95..=105).contains(&(bytes / DEFAULT_MEMTABLE_BYTES)), "{bytes}");
        assert!(bytes < 32 << 20, "{bytes}");
    }
}
