//! Simulates a policy, with or without a workload.

use crate::clock::Clock;
use crate::history::KeyScale;
use crate::physical::{FileSizes, PhysicalMeter};
use crate::report::{Costs, LogicalBytes, Optimum, SimulationReport};
use lsmith_policy::{MergePolicy, Shape};
use lsmith_sim::{
    Event, FLUID_PLACES, FluidWorkload, KeyedWorkload, KeyspaceBytes, Observer, SimError,
    Simulation, simulate_fluid, simulate_keyed, simulate_unit,
};
use lsmith_tree::Tree;
use lsmith_workload::FlushSizes;
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// The content of simulated tables.
#[derive(Clone, Copy, Debug)]
pub enum Content<'a> {
    /// Only sizes.
    Unit {
        /// The number of flushes.
        flushes: u64,
        /// Their sizes.
        sizes: &'a FlushSizes,
    },
    /// The keys of a workload, up to its limit on flushes.
    Keyed(&'a KeyedWorkload),
    /// Expected sizes, up to the workload's limit on flushes.
    Fluid(&'a FluidWorkload),
}

impl Content<'_> {
    /// Returns the scale of the keys in simulated trees; `None` if tables have only sizes.
    #[must_use]
    pub fn key_scale(&self) -> Option<KeyScale> {
        match self {
            Content::Unit { .. } => None,
            Content::Keyed(workload) => Some(KeyScale::Numbers(workload.workload().items())),
            Content::Fluid(_) => Some(KeyScale::Numbers(FLUID_PLACES)),
        }
    }

    /// Returns the name of the content in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Content::Unit { .. } => "unit",
            Content::Keyed(_) => "keyed",
            Content::Fluid(_) => "fluid",
        }
    }
}

/// A size: in flushes with unit content, else in bytes. Whole numbers are serialized as integers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Amount(pub f64);

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.fract() == 0.0 {
            serializer.serialize_u64(self.0 as u64)
        } else {
            serializer.serialize_f64(self.0)
        }
    }
}

/// What merges wrote of one keyspace of a group.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct KeyspaceCosts {
    /// Logical bytes in sealed memtables.
    pub flushed_bytes: u64,
    /// Logical bytes of flushes and merge outputs.
    pub written_bytes: u64,
    /// The bytes written per byte flushed, counted as in `write_cost_system`.
    pub write_cost_system: f64,
}

/// The result of a simulation, with the sizes of its last tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Simulated {
    /// The full spec of the policy.
    pub policy: String,
    /// `unit`, `keyed` or `fluid`.
    pub content: &'static str,
    /// The full spec of the workload, if there is one.
    pub workload: Option<String>,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// The figures.
    #[serde(flatten)]
    pub report: SimulationReport,
    /// The keyspaces of a group, in their order. Empty without a group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keyspaces: Vec<KeyspaceCosts>,
    /// The optimum with as many runs, if the caller [asked for it](crate::Least::optimum).
    pub optimum: Option<Optimum>,
    /// The logical bytes of each flush, in order.
    #[serde(skip)]
    pub flush_bytes: Vec<u64>,
    /// True for policies that leave a part of memory in place.
    #[serde(skip)]
    pub leaves_memory: bool,
    /// The sizes of the last runs on storage, oldest first: in flushes with unit content, else in
    /// logical bytes. `None` for policies that build levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sizes_oldest_first: Option<Vec<Amount>>,
    /// The sizes of the last levels, newest (level 0) first. `None` unless the policy builds levels
    /// of one run each.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub levels: Option<Vec<Amount>>,
}

/// Simulates `policy` with memtables of `memtable_bytes`; [`sealing`](crate::sealing) gives it
/// others. Calls `on_flush` with the tree at rest after each flush.
///
/// # Errors
/// Fails if the policy breaks a rule, or the workload has a damaged line.
pub fn simulate(
    policy: &Arc<dyn MergePolicy>,
    content: &Content<'_>,
    memtable_bytes: u64,
    on_flush: &mut dyn FnMut(&Tree),
) -> Result<Simulated, SimError> {
    simulate_observed(policy, content, memtable_bytes, None, &mut |event| {
        if let Event::Flushed { tree } = event {
            on_flush(tree);
        }
    })
}

/// Simulates `policy` as [`simulate`] does, and passes every event on. With `files` the report has
/// the bytes of files.
///
/// # Errors
/// As [`simulate`].
pub fn simulate_observed(
    policy: &Arc<dyn MergePolicy>,
    content: &Content<'_>,
    memtable_bytes: u64,
    files: Option<&FileSizes>,
    on_event: &mut Observer<'_>,
) -> Result<Simulated, SimError> {
    let clock = Clock::start();
    let mut flush_bytes = Vec::new();
    let has_entries = !matches!(content, Content::Unit { .. });
    let mut files = files.filter(|_| has_entries).map(|sizes| PhysicalMeter::new(*sizes));
    let mut observe = |event: Event<'_>| {
        if let Some(files) = &mut files {
            files.observe(event);
        }
        if let Event::Sealed { tree, .. } = event {
            flush_bytes.extend(tree.memory().runs().first().map(|run| run.bytes()));
        }
        on_event(event);
    };
    let simulation = simulation(policy, content, memtable_bytes, &mut observe)?;
    let seconds = clock.seconds();
    let unit_bytes = match content {
        Content::Unit { .. } => memtable_bytes,
        Content::Keyed(_) | Content::Fluid(_) => 1,
    };
    let amounts = |bytes: Vec<u64>| {
        let amount = |bytes| Amount(bytes as f64 / unit_bytes as f64);
        Some(bytes.into_iter().map(amount).collect())
    };
    let leveled = matches!(policy.shape(), Shape::Leveled { .. });
    Ok(Simulated {
        policy: policy.spec().to_string(),
        content: content.name(),
        workload: match content {
            Content::Unit { .. } => None,
            Content::Keyed(workload) => Some(workload.workload().spec().to_string()),
            Content::Fluid(workload) => workload.spec().map(ToString::to_string),
        },
        memtable_bytes,
        keyspaces: {
            let costs = |bytes: &KeyspaceBytes| KeyspaceCosts {
                flushed_bytes: bytes.flushed,
                written_bytes: bytes.written,
                write_cost_system: bytes.write_cost(),
            };
            simulation.keyspaces.iter().map(costs).collect()
        },
        optimum: None,
        flush_bytes,
        leaves_memory: policy.needs().blocks,
        report: SimulationReport {
            uncertainty: match content {
                Content::Fluid(workload) => {
                    Some(workload.uncertainty(policy, memtable_bytes, &simulation)?)
                }
                Content::Unit { .. } | Content::Keyed(_) => None,
            },
            physical: files.map(|files| files.costs(&simulation.figures)),
            ..report(&simulation, seconds)
        },
        sizes_oldest_first: amounts(simulation.run_bytes_oldest_first()).filter(|_| !leveled),
        levels: amounts(simulation.level_bytes()).filter(|_| leveled),
    })
}

fn simulation(
    policy: &Arc<dyn MergePolicy>,
    content: &Content<'_>,
    memtable_bytes: u64,
    observe: &mut Observer<'_>,
) -> Result<Simulation, SimError> {
    match content {
        Content::Unit { flushes, sizes } => {
            let unit_flushes = (0..*flushes).map(|flush| sizes.bytes(flush, memtable_bytes));
            simulate_unit(policy, unit_flushes, memtable_bytes, observe)
        }
        Content::Keyed(workload) => simulate_keyed(policy, workload, memtable_bytes, observe),
        Content::Fluid(workload) => {
            workload.check_entries(&**policy, memtable_bytes)?;
            simulate_fluid(policy, workload, memtable_bytes, observe)
        }
    }
}

fn report(simulation: &Simulation, seconds: f64) -> SimulationReport {
    SimulationReport {
        costs: Costs::of_simulation(&simulation.figures),
        bytes: LogicalBytes::of(&simulation.figures.parts),
        uncertainty: None,
        physical: None,
        seconds,
    }
}
