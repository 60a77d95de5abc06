//! Says why one policy writes less than another.
//!
//! Both policies run the same workload in a keyed simulation, which makes the merges of the store.
//! A [`Tally`] counts every merge by its [causes](lsmith_tree::Cause). The causes of a policy sum
//! exactly to the bytes that it writes. Sentences say which causes make the difference.

mod kept;
mod sentences;
mod side;
mod space;
mod tally;

pub use kept::{Kept, KeptLevel};
pub(crate) use side::routes;
pub use side::{LevelRuns, LevelSpace, RouteReport, RuleReport, Side, SizeReport};
pub use tally::Tally;

use crate::physical::{FileSizes, PhysicalMeter};
use crate::progress::Progress;
use crate::run::Options;
use lsmith_policy::MergePolicy;
use lsmith_sim::{Event, KeyedWorkload, SimError, watch_keyed};
use lsmith_tree::Cause;
use serde::Serialize;
use space::SpaceSampler;
use std::sync::Arc;

/// Why one policy writes less than another under a workload.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explained {
    /// The full spec of the workload.
    pub workload: String,
    /// Logical bytes at which a memtable is sealed.
    pub memtable_bytes: u64,
    /// The first policy.
    pub a: Side,
    /// The second policy.
    pub b: Side,
    /// The bytes written by each policy, by cause.
    pub causes: Vec<CauseBytes>,
    /// The explanation in words, the most important sentence first.
    pub sentences: Vec<String>,
}

/// The bytes of one cause. Bytes that were not written are negative. All causes of a policy sum to
/// [`Side::bytes_written`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct CauseBytes {
    /// The name of the [`Cause`].
    pub cause: &'static str,
    /// Logical bytes of the first policy.
    pub a_bytes: i64,
    /// Logical bytes of the second policy.
    pub b_bytes: i64,
}

/// Runs `workload` under two policies in keyed simulations, and says why one writes less than the
/// other.
///
/// # Errors
/// Fails if a policy breaks a rule, the workload has a damaged line, or the store that tells what
/// files take fails.
pub fn explain(
    [a, b]: [&Arc<dyn MergePolicy>; 2],
    workload: &KeyedWorkload,
    memtable_bytes: u64,
    progress: &dyn Progress,
) -> anyhow::Result<Explained> {
    let [a_name, b_name] = side::short_names(&a.spec(), &b.spec());
    let options = Options { memtable_bytes, ..Options::default() };
    let files = FileSizes::measured(workload.workload(), &options)?;
    let side = |policy, name| side(policy, name, workload, memtable_bytes, files, progress);
    let a = side(a, a_name)?;
    let b = side(b, b_name)?;
    let causes = Cause::ALL.into_iter().map(|cause| CauseBytes {
        cause: cause.name(),
        a_bytes: a.causes.bytes(cause),
        b_bytes: b.causes.bytes(cause),
    });
    Ok(Explained {
        workload: workload.workload().spec().to_string(),
        memtable_bytes,
        causes: causes.collect(),
        sentences: sentences::of(&a, &b),
        a,
        b,
    })
}

fn side(
    policy: &Arc<dyn MergePolicy>,
    name: String,
    workload: &KeyedWorkload,
    memtable_bytes: u64,
    files: Option<FileSizes>,
    progress: &dyn Progress,
) -> Result<Side, SimError> {
    progress.begin(&format!("{}: keyed simulation", policy.spec()), 0);
    let mut tally = Tally::new();
    let mut space = SpaceSampler::default();
    let mut files = files.map(PhysicalMeter::new);
    let mut observe = |event: Event<'_>| {
        match event {
            Event::Merge { tree, plan, edit } => tally.merge(tree, plan, edit),
            Event::Rest { tree } => tally.rest(tree),
            Event::Sealed { .. } | Event::Flushed { .. } => {}
        }
        if let Some(files) = &mut files {
            files.observe(event);
        }
    };
    let simulation =
        watch_keyed(policy, workload, memtable_bytes, &mut observe, &mut |sim| space.look(sim))?;
    let figures = &simulation.figures;
    let side = Side::of((policy.spec().to_string(), name), figures, &tally, &space);
    Ok(Side { physical: files.map(|files| files.costs(figures)), ..side })
}
