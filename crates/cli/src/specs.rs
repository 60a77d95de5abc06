//! Policies and workloads as they are spelled on the command line.

use crate::failure::bad_argument;
use anyhow::Error;
use lsmith_lab::FileInputs;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_spec::{Spec, SpecError, format_count};
use lsmith_workload::{Workload, WorkloadError};
use std::fmt::Display;
use std::sync::Arc;

/// The policy that `spec` spells.
pub(crate) fn policy(spec: &str) -> anyhow::Result<Arc<dyn MergePolicy>> {
    Registry::builtin().build(spec).map_err(|error| bad_spec("policy", spec, &error))
}

/// The policies that `specs` spells, separated by `;`, or all with their defaults, or of these the
/// classic ones, which do not count in blocks.
pub(crate) fn policies(specs: &str) -> anyhow::Result<Vec<Arc<dyn MergePolicy>>> {
    let registry = Registry::builtin();
    let specs = match specs.trim() {
        word @ ("all" | "classic") => {
            let names = registry.infos().iter().map(|info| Spec::bare(info.name));
            let all = names.map(|spec| registry.build_spec(&spec));
            let mut all = all.collect::<Result<Vec<_>, _>>()?;
            all.retain(|policy| word == "all" || !policy.needs().blocks);
            return Ok(all);
        }
        specs => Spec::parse_list(specs).map_err(|error| bad_spec("policies", specs, &error))?,
    };
    let build =
        |spec: &Spec| registry.build_spec(spec).map_err(|error| bad_spec("policy", spec, &error));
    specs.iter().map(build).collect()
}

/// The workload that `spec` spells.
pub(crate) fn workload(spec: &str) -> anyhow::Result<Workload> {
    build(&parse(spec)?)
}

/// The workload that `spec` spells, to be stopped after `flushes` flushes whatever it says itself.
pub(crate) fn workload_of_flushes(spec: &str, flushes: u64) -> anyhow::Result<Workload> {
    let mut spec = parse(spec)?;
    spec.params.retain(|(name, _)| name != "flushes");
    build(&spec.with("flushes", format_count(flushes)))
}

fn parse(workload: &str) -> anyhow::Result<Spec> {
    workload.parse().map_err(|error| bad_spec("workload", workload, &error))
}

/// A damaged line is the fault of the file, everything else that of the command line.
fn build(spec: &Spec) -> anyhow::Result<Workload> {
    Workload::from_spec(spec, &FileInputs).map_err(|error| match error {
        WorkloadError::Line { .. } => Error::new(error),
        WorkloadError::Spec(error) => bad_spec("workload", spec, &error),
        error => bad_argument(error),
    })
}

/// What is wrong with a spec. An unknown name says by itself where it belongs.
fn bad_spec(what: &str, spec: impl Display, error: &SpecError) -> Error {
    match error {
        SpecError::Unknown { .. } => bad_argument(error),
        error => bad_argument(format!("{what} `{spec}`: {error}")),
    }
}
