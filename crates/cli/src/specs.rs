//! Policies and workloads as they are spelled on the command line.

use crate::failure::bad_argument;
use lsmith_lab::FileInputs;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_spec::{Spec, format_count};
use lsmith_workload::{Workload, WorkloadError};
use std::sync::Arc;

/// The policy that `spec` spells.
pub(crate) fn policy(spec: &str) -> anyhow::Result<Arc<dyn MergePolicy>> {
    let told = |error| bad_argument(format!("policy `{spec}`: {error}"));
    Registry::builtin().build(spec).map_err(told)
}

/// The policies that `specs` spells, separated by `;`, or all with their defaults.
pub(crate) fn policies(specs: &str) -> anyhow::Result<Vec<Arc<dyn MergePolicy>>> {
    let registry = Registry::builtin();
    let specs = match specs.trim() {
        "all" => registry.infos().iter().map(|info| Spec::bare(info.name)).collect(),
        specs => Spec::parse_list(specs)
            .map_err(|error| bad_argument(format!("policies `{specs}`: {error}")))?,
    };
    let build = |spec: &Spec| {
        let told = |error| bad_argument(format!("policy `{spec}`: {error}"));
        registry.build_spec(spec).map_err(told)
    };
    specs.iter().map(build).collect()
}

/// The workload that `spec` spells.
pub(crate) fn workload(spec: &str) -> anyhow::Result<Workload> {
    let parsed = spec.parse();
    build(&parsed.map_err(|error| bad_argument(format!("workload `{spec}`: {error}")))?)
}

/// The workload that `spec` spells, to be stopped after `flushes` flushes whatever it says itself.
pub(crate) fn workload_of_flushes(spec: &str, flushes: u64) -> anyhow::Result<Workload> {
    let parsed: Result<Spec, _> = spec.parse();
    let mut spec = parsed.map_err(|error| bad_argument(format!("workload `{spec}`: {error}")))?;
    spec.params.retain(|(name, _)| name != "flushes");
    build(&spec.with("flushes", format_count(flushes)))
}

/// A damaged line is the fault of the file, everything else that of the command line.
fn build(spec: &Spec) -> anyhow::Result<Workload> {
    Workload::from_spec(spec, &FileInputs).map_err(|error| match error {
        WorkloadError::Line { .. } => anyhow::Error::new(error),
        error => bad_argument(format!("workload `{spec}`: {error}")),
    })
}
