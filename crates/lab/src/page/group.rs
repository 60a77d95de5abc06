//! Groups: what a page shows of one workload.

use super::Table;
use crate::compare::Row;
use crate::free::FreeRun;
use crate::history::{History, Recorder};
use crate::report::{Costs, EngineReport, Moment, Optimum, Percentiles};
use crate::simulate::Simulated;
use anyhow::{Context, bail};
use lsmith_model::optimum::{Hull, HullPoint};
use lsmith_spec::format_bytes;
use serde::Serialize;
use serde_json::Value;

/// The number of points of the curve of least costs, and the most runs that it shows.
const LEAST_POINTS: usize = 80;
const LEAST_RUNS_MAX: f64 = 100.0;

/// Costs of a comparison that differ by less than this share count as equal.
pub const ALIKE: f64 = 0.01;

/// The columns that a comparison shows at first.
const COMPARED: [&str; 16] = [
    "policy",
    "engine.write_cost_eager",
    "engine.write_cost_system",
    "engine.write_cost_user",
    "engine.read_cost_mean",
    "engine.scan_cost_mean.blocks",
    "engine.space_cost_mean",
    "engine.space_cost_peak",
    "engine.runs_max",
    "engine.merge_bytes_max",
    "engine.merges",
    "engine.moves",
    "engine.ops_per_second",
    "engine.cpu_seconds",
    "optimum.above",
    "optimum.at_mean_runs.above",
];

/// The columns that a simulation shows at first.
const SIMULATED: [&str; 13] = [
    "policy",
    "write_cost_eager",
    "write_cost_system",
    "read_cost_mean",
    "scan_cost_mean.blocks",
    "space_cost_mean",
    "space_cost_peak",
    "runs_max",
    "merge_bytes_max",
    "merges",
    "moves",
    "optimum.above",
    "optimum.at_mean_runs.above",
];

/// The columns that tuning shows at first.
const TUNED: [&str; 9] = [
    "policy",
    "runs_on_store",
    "write_cost_user",
    "write_cost_system",
    "read_cost_mean",
    "scan_cost_mean.blocks",
    "space_cost_mean",
    "memory_bytes",
    "filter_bits",
];

/// One workload with its policies.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Group {
    /// The workload, or the keyspace.
    pub name: String,
    /// What a reader needs to know, a sentence each.
    pub notes: Vec<String>,
    /// The sources of costs, the one to rely on first.
    pub sources: Vec<CostSource>,
    /// The name of the write cost that is shown.
    pub write_figure: String,
    /// The share up to which costs that differ count as equal, for the frontier.
    pub alike: f64,
    /// The costs of each policy.
    pub costs: Vec<PolicyCosts>,
    /// The least write cost of any schedule of merges against mean runs, from few runs to many.
    pub least: Vec<LeastPoint>,
    /// All figures.
    pub table: Table,
    /// The trees of the policies. Those in `costs` come in the same order.
    pub trees: Vec<History>,
}

/// A source of costs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CostSource {
    /// The name, such as `store` or `keyed simulation`.
    pub name: String,
}

/// The costs of one policy, by source.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyCosts {
    /// The spec of the policy.
    pub name: String,
    /// True for the policy that was chosen among all.
    pub is_best: bool,
    /// The costs, in the order of the sources; `None` if a source has none.
    pub by_source: Vec<Option<CostPoint>>,
    /// The optimum with as many runs.
    pub optimum: Option<Optimum>,
    /// The times of puts of the free run, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub put: Option<PutTimes>,
    /// The course of the free run, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub course: Option<Courses>,
}

/// The course of a free run, measured and simulated in time.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Courses {
    /// On the store.
    pub measured: Vec<Moment>,
    /// On the machine; empty if none was given.
    pub simulated: Vec<Moment>,
}

/// The times of puts of a free run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PutTimes {
    /// The percentiles and the longest pause, in nanoseconds.
    #[serde(flatten)]
    pub nanos: Percentiles,
    /// Operations per second of the whole run.
    pub ops_per_second: f64,
    /// Seconds for which writers were held back.
    pub held_back_seconds: f64,
}

/// The three costs of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CostPoint {
    /// The write cost, as the group's `write_figure` defines it.
    pub write: f64,
    /// `read_cost_mean`.
    pub read: f64,
    /// `space_cost_mean`, if it is known.
    pub space: Option<f64>,
}

/// A point of the curve of least costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct LeastPoint {
    /// Runs after a flush, mean over flushes.
    pub read: f64,
    /// The least write cost with as many.
    pub write: f64,
}

impl Courses {
    fn of(free: &FreeRun) -> Courses {
        let simulated = free.simulated.as_ref();
        Courses {
            measured: free.engine.course.clone(),
            simulated: simulated.map_or_else(Vec::new, |time| time.course.clone()),
        }
    }
}

impl PutTimes {
    /// Returns the times of puts of `free`, if its histograms have them.
    #[must_use]
    pub fn of(free: &EngineReport) -> Option<PutTimes> {
        let nanos = *free.histograms.as_ref()?.get("write_nanos")?;
        let EngineReport { ops_per_second, held_back_seconds, .. } = *free;
        Some(PutTimes { nanos, ops_per_second, held_back_seconds })
    }
}

impl CostPoint {
    fn of(costs: &Costs) -> CostPoint {
        CostPoint {
            write: costs.write_cost_system,
            read: costs.read_cost_mean,
            space: costs.space_cost_mean,
        }
    }
}

const LEAST_NOTE: &str = "The least is over all schedules of merges of whole runs that know all \
     flushes and their keys, with as many runs in the mean. A policy may be below it if it moves \
     tables, or merges parts of runs. For more than 300 flushes it is a lower bound.";

impl Group {
    /// Returns the group of the rows of one comparison. Their histories are moved to the group.
    ///
    /// # Errors
    /// Fails if a row cannot be serialized.
    pub fn of_rows(rows: &mut [Row]) -> anyhow::Result<Group> {
        let converted = rows.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>();
        let objects = converted.context("a row has no JSON form")?;
        let trees = rows.iter_mut().filter_map(|row| row.history.take()).collect();
        let first = rows.first();
        let flushes = first.map_or(0, |row| row.engine.costs.flushes);
        let memtable = first.map_or(0, |row| row.engine.settings.memtable_bytes);
        let mode = first.map_or("lockstep", |row| row.engine.mode);
        let costs = rows.iter().map(|row| {
            let formula = row.model.map(|model| CostPoint {
                write: model.write_cost_system,
                read: model.read_cost_mean,
                space: Some(model.space_cost_mean),
            });
            PolicyCosts {
                name: row.policy.clone(),
                is_best: false,
                by_source: vec![
                    Some(CostPoint::of(&row.engine.costs)),
                    Some(CostPoint::of(&row.keyed.costs)),
                    row.unit.map(|unit| CostPoint::of(&unit.costs)),
                    row.fluid.map(|fluid| CostPoint::of(&fluid.costs)),
                    formula,
                ],
                optimum: row.optimum,
                put: row.free.as_ref().and_then(|free| PutTimes::of(&free.engine)),
                course: row.free.as_ref().map(Courses::of),
            }
        });
        Ok(Group {
            name: first.map_or_else(String::new, |row| row.workload.clone()),
            notes: vec![
                format!(
                    "{flushes} flushes of memtables of {}, in {mode} mode.",
                    format_bytes(memtable)
                ),
                LEAST_NOTE.to_owned(),
                "The trees are those of the keyed simulation, which in lockstep makes the merges \
                 of the store."
                    .to_owned(),
            ],
            sources: sources(&[
                "store",
                "keyed simulation",
                "unit simulation",
                "fluid simulation",
                "formula",
            ]),
            write_figure: "write_cost_system".to_owned(),
            alike: ALIKE,
            costs: costs.collect(),
            least: first.map_or_else(Vec::new, |row| drawn(&row.least)),
            table: Table::of_objects(&objects, &COMPARED),
            trees,
        })
    }

    /// Returns the group of simulations of one workload with one kind of content, each with its
    /// trees.
    ///
    /// # Errors
    /// Fails if a result cannot be serialized, and if there is none.
    pub fn of_simulations(
        simulations: Vec<(Simulated, Recorder)>,
        least: &[HullPoint],
    ) -> anyhow::Result<Group> {
        let Some((first, _)) = simulations.first() else { bail!("no policy was simulated") };
        let source = format!("{} simulation", first.content);
        let mut group = Group {
            name: first.workload.clone().unwrap_or_else(|| "flushes of one size".to_owned()),
            notes: vec![format!(
                "{} flushes of memtables of {}, in lockstep.",
                first.report.costs.flushes,
                format_bytes(first.memtable_bytes)
            )],
            sources: sources(&[source.as_str()]),
            write_figure: "write_cost_system".to_owned(),
            alike: 0.0,
            least: drawn(least),
            ..Group::default()
        };
        group.notes.extend((!least.is_empty()).then(|| LEAST_NOTE.to_owned()));
        let mut objects = Vec::new();
        for (simulated, recorder) in simulations {
            let object = serde_json::to_value(&simulated);
            objects.push(object.context("a simulation has no JSON form")?);
            group.trees.push(recorder.finish(&simulated.policy, &source));
            group.costs.push(PolicyCosts {
                by_source: vec![Some(CostPoint::of(&simulated.report.costs))],
                optimum: simulated.optimum,
                name: simulated.policy,
                is_best: false,
                put: None,
                course: None,
            });
        }
        group.table = Table::of_objects(&objects, &SIMULATED);
        Ok(group)
    }

    /// Returns the group of a keyspace of a store. `stats` is the object of its statistics.
    #[must_use]
    pub fn of_keyspace(name: &str, policy: &str, stats: &Value, history: History) -> Group {
        let fields = stats.as_object().into_iter().flatten();
        let main: Vec<&str> = fields.map(|(name, _)| name.as_str()).collect();
        Group {
            name: name.to_owned(),
            notes: vec![
                format!("Merge policy {policy}."),
                "The counts of merges go back to the creation of the keyspace. Places in the key \
                 space are ranks among the first keys of tables."
                    .to_owned(),
            ],
            table: Table::of_objects(std::slice::from_ref(stats), &main),
            trees: vec![history],
            ..Group::default()
        }
    }

    /// Returns the group of tuning, from its JSON: `{"best", "frontier"}`, with the costs of each
    /// policy.
    ///
    /// # Errors
    /// Fails if the JSON has no frontier, or a choice in it has no costs.
    pub fn of_tuned(tuned: &Value) -> anyhow::Result<Group> {
        let frontier = tuned["frontier"].as_array().context("the result has no frontier")?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let best = text(&tuned["best"]["policy"]);
        // The best within the limits may be off the frontier.
        let is_best = |choice: &&Value| text(&choice["policy"]) == best;
        let more = Some(&tuned["best"]).filter(|_| !frontier.iter().any(|choice| is_best(&choice)));
        let choices: Vec<Value> = frontier.iter().chain(more).cloned().collect();
        let has_user = |choice: &Value| choice["write_cost_user"].is_number();
        let write_figure =
            if choices.iter().all(has_user) { "write_cost_user" } else { "write_cost_system" };
        let costs = choices.iter().map(|choice| {
            let policy = text(&choice["policy"]);
            let cost = |name: &str| {
                let message = || format!("the choice {policy} has no {name}");
                choice[name].as_f64().with_context(message)
            };
            let point = CostPoint {
                write: cost(write_figure)?,
                read: cost("read_cost_mean")?,
                space: choice["space_cost_mean"].as_f64(),
            };
            anyhow::Ok(PolicyCosts {
                is_best: policy == best,
                by_source: vec![Some(point)],
                optimum: None,
                put: None,
                course: None,
                name: policy,
            })
        });
        Ok(Group {
            name: text(&tuned["workload"]),
            notes: vec![format!("The best choice within the limits is {best}.")],
            sources: sources(&["simulation"]),
            write_figure: write_figure.to_owned(),
            alike: 0.0,
            costs: costs.collect::<anyhow::Result<_>>()?,
            least: Vec::new(),
            table: Table::of_objects(&choices, &TUNED),
            trees: Vec::new(),
        })
    }
}

fn sources(names: &[&str]) -> Vec<CostSource> {
    names.iter().map(|name| CostSource { name: (*name).to_owned() }).collect()
}

/// Returns the curve of least costs for as many flushes: of any schedule of merges of whole runs,
/// for flushes of equal size that share no key.
#[must_use]
pub fn least(flushes: u64) -> Vec<LeastPoint> {
    let points = Hull::new(flushes).points(LEAST_POINTS);
    let shown = points.into_iter().filter(|point| point.runs_mean <= LEAST_RUNS_MAX);
    drawn(&shown.collect::<Vec<_>>())
}

fn drawn(points: &[HullPoint]) -> Vec<LeastPoint> {
    let point = |it: &HullPoint| LeastPoint { read: it.runs_mean, write: it.write_cost };
    points.iter().map(point).collect()
}
