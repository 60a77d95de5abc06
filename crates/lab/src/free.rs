//! A free run beside the run in lockstep, and why they differ.

use crate::errors::PredictionErrors;
use crate::report::{EngineReport, SimulationReport};
use crate::spread::Spread;
use crate::time::SimulatedTime;
use serde::Serialize;

/// Figures that differ by less than this part are called equal.
const ALIKE: f64 = 0.02;

/// A run in which writers and merging threads go at their own speed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeRun {
    /// The run. Of several runs, the one with the median seconds.
    pub engine: EngineReport,
    /// How far repeated runs differ; `None` for a single run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// The errors of the keyed simulation, which runs in lockstep, against this run.
    pub errors: PredictionErrors,
    /// The same run in simulated time, if a machine is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simulated: Option<SimulatedTime>,
    /// What differs from the run in lockstep and why, one sentence or two per entry.
    pub why: Vec<String>,
}

impl FreeRun {
    pub(crate) fn new(
        (engine, spread): (EngineReport, Option<Spread>),
        lockstep: &EngineReport,
        predicted: &SimulationReport,
        simulated: Option<SimulatedTime>,
    ) -> FreeRun {
        let errors = PredictionErrors::of(predicted, &engine);
        let why = why(lockstep, &engine);
        FreeRun { engine, spread, errors, simulated, why }
    }
}

/// Returns what differs between the two runs, and why.
fn why(lockstep: &EngineReport, free: &EngineReport) -> Vec<String> {
    let mut why = Vec::new();
    if let Some(debt) = free.debt {
        let share = 100.0 * debt.seconds / free.seconds.max(f64::MIN_POSITIVE);
        why.push(format!(
            "Merges were owed for {share:.0} % of {:.1} s, at most for {:.1} s at a stretch. When \
             a memtable was sealed, {:.2} others were still in memory, and at most {}.",
            free.seconds,
            debt.seconds_longest,
            debt.memtables_waiting_mean,
            debt.memtables_waiting_max,
        ));
    }
    why.push(held_back(free));
    let locked = &lockstep.costs;
    let costs = &free.costs;
    let waited = costs.read_cost_mean - locked.read_cost_mean;
    let runs = costs.read_cost_mean;
    why.push(match change(locked.read_cost_mean, runs) {
        None => format!("Lookups considered {runs:.2} runs, as in lockstep."),
        Some(part) if part > 0.0 => format!(
            "Lookups considered {runs:.2} runs, {waited:.2} more than in lockstep: so many runs \
             waited to be merged. The most were {} (in lockstep {}).",
            costs.runs_max, locked.runs_max
        ),
        Some(_) => format!(
            "Lookups considered {runs:.2} runs, {:.2} fewer than in lockstep: memtables that \
             waited in memory were merged together, or were not yet runs.",
            -waited
        ),
    });
    why.push(match change(locked.write_cost_system, costs.write_cost_system) {
        None => "Flushes and merges wrote as much per byte as in lockstep.".to_owned(),
        Some(part) => format!(
            "Flushes and merges wrote {} per byte than in lockstep: the policy found other runs \
             when it was asked ({} merges of {} flushes, in lockstep {} of {}).",
            more_or_less(part),
            costs.merges,
            costs.flushes,
            locked.merges,
            locked.flushes
        ),
    });
    if let (Some(locked), Some(costs)) = (locked.space_cost_mean, costs.space_cost_mean) {
        why.push(match change(locked, costs) {
            None => "The store took as much space as in lockstep.".to_owned(),
            Some(part) if part > 0.0 => format!(
                "The store took {} space than in lockstep: what waits to be merged still holds \
                 overwritten entries.",
                more_or_less(part)
            ),
            Some(part) => format!(
                "The store took {} space per live byte than in lockstep: what writers have put \
                 into memory is live, and is in no table yet.",
                more_or_less(part)
            ),
        });
    }
    why
}

fn held_back(free: &EngineReport) -> String {
    let writes = free.histograms.as_ref().and_then(|histograms| histograms.get("write_nanos"));
    let longest = writes.map_or(String::new(), |writes| {
        let millis = |nanos: u64| nanos as f64 * 1e-6;
        let p999 = millis(writes.p999);
        let max = millis(writes.max);
        format!(" The longest write took {max:.1} ms, and 1 in 1000 more than {p999:.1} ms.")
    });
    let seconds = free.held_back_seconds;
    format!("Writers were held back for {seconds:.1} s of {:.1} s.{longest}", free.seconds)
}

/// Returns the part by which `free` exceeds `lockstep`, if it is worth telling.
fn change(lockstep: f64, free: f64) -> Option<f64> {
    let part = if lockstep > 0.0 { free / lockstep - 1.0 } else { 0.0 };
    (part.abs() >= ALIKE).then_some(part)
}

fn more_or_less(part: f64) -> String {
    let word = if part > 0.0 { "more" } else { "less" };
    format!("{:.0} % {word}", 100.0 * part.abs())
}
