//! What one policy did, as a report.

use super::space::SpaceSampler;
use super::tally::{Route, RouteCounts, Tally};
use crate::report::PhysicalCosts;
use lsmith_sim::Figures;
use lsmith_spec::Spec;
use lsmith_tree::{Cause, Causes, LevelId};
use serde::{Serialize, Serializer, ser::SerializeMap};
use std::collections::BTreeMap;

/// What one policy wrote, why, and where its reads and its space come from. Bytes are logical, but
/// for [`physical`](Side::physical).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The full spec of the policy.
    pub policy: String,
    /// A short name in sentences and tables: the policy's name, with the parameters that differ if
    /// both policies have the same name.
    pub name: String,
    /// Bytes that flushes and merges wrote to tables: the sum of all causes.
    pub bytes_written: u64,
    /// Bytes of the memtables that left memory.
    pub flush_bytes: u64,
    /// [`Figures::write_cost_system`]. A memtable that goes straight into a merge counts there as
    /// flushed first, so it can be more than `bytes_written` over `flush_bytes`.
    pub write_cost_system: f64,
    /// [`Figures::read_cost_mean`].
    pub read_cost_mean: f64,
    /// [`Figures::space_cost_mean`].
    pub space_cost_mean: f64,
    /// The bytes of files. `None` if the workload does not fill a memtable.
    pub physical: Option<PhysicalCosts>,
    /// The bytes written, by cause. Bytes that were not written are negative.
    #[serde(serialize_with = "by_name")]
    pub causes: Causes,
    /// Entries written to tables.
    pub entries_written: u64,
    /// Tombstones among them.
    pub tombstones_written: u64,
    /// Merges by where their output went.
    pub merges: Vec<RouteReport>,
    /// Merges by the bytes that they wrote, small ones first.
    pub sizes: Vec<SizeReport>,
    /// Merges by the rule that proposed them, the one that wrote most first.
    pub rules: Vec<RuleReport>,
    /// The runs that a lookup considers, by level.
    pub reads: Vec<LevelRuns>,
    /// The bytes of each level, and the obsolete ones among them.
    pub space: Vec<LevelSpace>,
}

/// The merges whose output went to one place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RouteReport {
    /// The level of the newest input: `memory`, `level 0` and so on. `newer runs` for policies that
    /// read their tree as one stack.
    pub from: String,
    /// The place of the output: `level 1`, or for a stack `a new run` or `run 1`, where run 1 is
    /// the oldest.
    pub to: String,
    /// Flushes and merges.
    pub merges: u64,
    /// Moves.
    pub moves: u64,
    /// The bytes that they wrote, by cause.
    #[serde(serialize_with = "by_name")]
    pub causes: Causes,
    /// The sum of all causes.
    pub bytes_written: u64,
}

/// Merges that wrote up to `bytes_max` bytes, and more than the class before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SizeReport {
    /// The most bytes that one of them wrote: a power of 2.
    pub bytes_max: u64,
    /// Flushes and merges.
    pub merges: u64,
    /// The bytes that they wrote together.
    pub bytes_written: u64,
}

/// Plans that one rule of a policy proposed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RuleReport {
    /// The reason of the plans, with `N` in the place of each number.
    pub reason: String,
    /// Flushes, merges and moves.
    pub merges: u64,
    /// The bytes that they wrote.
    pub bytes_written: u64,
}

/// The runs of a level at rest.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelRuns {
    /// The level: `level 0` and so on.
    pub level: String,
    /// Runs at rest after a flush, averaged over flushes. The levels sum to `read_cost_mean`.
    pub runs_mean: f64,
}

/// The bytes of a level at rest, averaged over flushes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelSpace {
    /// The level: `level 0` and so on.
    pub level: String,
    /// All bytes.
    pub bytes_mean: f64,
    /// Bytes of obsolete entries: tombstones, and entries that a newer run hides.
    pub obsolete_bytes_mean: f64,
}

impl Side {
    /// Returns true if some output went below level 0.
    pub(super) fn has_levels(&self) -> bool {
        self.reads.len() > 1
    }

    pub(super) fn of(
        (policy, name): (String, String),
        figures: &Figures,
        tally: &Tally,
        space: &SpaceSampler,
    ) -> Side {
        let causes = tally.causes();
        let rests = tally.rests.max(1) as f64;
        let runs = tally.runs.iter().enumerate();
        let space = space.means().map(|(level, mean)| LevelSpace {
            level: level_name(level),
            bytes_mean: mean.held,
            obsolete_bytes_mean: mean.obsolete,
        });
        Side {
            policy,
            name,
            bytes_written: unsigned(causes.written()),
            flush_bytes: figures.parts.flush_bytes,
            write_cost_system: figures.write_cost_system,
            read_cost_mean: figures.read_cost_mean,
            space_cost_mean: figures.space_cost_mean,
            physical: None,
            causes,
            entries_written: tally.entries_written,
            tombstones_written: tally.tombstones_written,
            merges: routes(tally),
            sizes: sizes(tally),
            rules: rules(tally),
            reads: runs
                .map(|(level, sum)| LevelRuns {
                    level: level_name(level),
                    runs_mean: *sum as f64 / rests,
                })
                .collect(),
            space: space.collect(),
        }
    }
}

/// Returns short names of two policies, as [`Side::name`] says.
pub(super) fn short_names(a: &Spec, b: &Spec) -> [String; 2] {
    let short = |spec: &Spec, other: &Spec| {
        let mut short = Spec::bare(&spec.name);
        if spec.name == other.name {
            let differs = |(name, value): &&(String, String)| other.param(name) != Some(value);
            short.params.extend(spec.params.iter().filter(differs).cloned());
        }
        short.to_string()
    };
    [short(a, b), short(b, a)]
}

fn level_name(level: usize) -> String {
    format!("level {level}")
}

fn unsigned(bytes: i64) -> u64 {
    u64::try_from(bytes).unwrap_or(0)
}

/// Returns the routes of a tally: by level, or by the age of the output if all runs are one stack.
pub(crate) fn routes(tally: &Tally) -> Vec<RouteReport> {
    let has_levels = tally.has_levels();
    // The first part of the key is the order of rows.
    let mut rows: BTreeMap<(usize, usize, String, String), RouteCounts> = BTreeMap::new();
    for (route, counts) in &tally.routes {
        let key = if has_levels { by_level(*route) } else { by_age(*route) };
        rows.entry(key).or_default().add(counts);
    }
    let report = |((_, _, from, to), counts): (_, RouteCounts)| RouteReport {
        from,
        to,
        merges: counts.merges,
        moves: counts.moves,
        causes: counts.causes,
        bytes_written: unsigned(counts.causes.written()),
    };
    rows.into_iter().map(report).collect()
}

fn by_level(route: Route) -> (usize, usize, String, String) {
    match route.from {
        LevelId::Memory => (0, route.to, "memory".to_owned(), level_name(route.to)),
        LevelId::Disk(from) => (from + 1, route.to, level_name(from), level_name(route.to)),
    }
}

fn by_age(route: Route) -> (usize, usize, String, String) {
    if route.is_flush {
        return (0, 0, "memory".to_owned(), "a new run".to_owned());
    }
    let run = route.older_runs + 1;
    // The youngest place first, as levels are.
    (1, usize::MAX - run, "newer runs".to_owned(), format!("run {run}"))
}

fn sizes(tally: &Tally) -> Vec<SizeReport> {
    let sizes = tally.sizes.iter().map(|(power, count)| SizeReport {
        bytes_max: 2_u64.saturating_pow(*power),
        merges: count.merges,
        bytes_written: count.bytes,
    });
    sizes.collect()
}

fn rules(tally: &Tally) -> Vec<RuleReport> {
    let counted = tally.rules.iter().map(|(rule, count)| RuleReport {
        reason: rule.replace("{}", "N"),
        merges: count.merges,
        bytes_written: count.bytes,
    });
    let mut rules: Vec<_> = counted.collect();
    rules.sort_by_key(|rule| std::cmp::Reverse(rule.bytes_written));
    rules
}

/// Serializes causes as a map from names to bytes.
fn by_name<S: Serializer>(causes: &Causes, serializer: S) -> Result<S::Ok, S::Error> {
    let mut map = serializer.serialize_map(Some(Cause::ALL.len()))?;
    for (cause, bytes) in causes.each() {
        map.serialize_entry(cause.name(), &bytes)?;
    }
    map.end()
}
