//! Specs of policies and workloads on the command line.

use crate::failure::{bad_argument, print_line};
use crate::table::cost;
use anyhow::Error;
use lsmith_lab::{FileInputs, asks_for_sizes, machine_of, with_sizes};
use lsmith_policy::{MergePolicy, Registry, translated};
use lsmith_sim::Machine;
use lsmith_spec::{Spec, SpecError, format_bytes};
use lsmith_workload::{FlushSizes, Lives, Recorded, Workload, WorkloadError};
use std::fmt::Display;
use std::sync::{Arc, OnceLock};

/// The policies that specs can name.
static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Sets the policies that specs can name. Only the first call has an effect.
pub(crate) fn set_registry(registry: Registry) {
    REGISTRY.get_or_init(|| registry);
}

/// Returns the policies that specs can name.
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get_or_init(Registry::builtin)
}

/// Builds the policy that `spec` names. Fails if the spec is invalid.
pub(crate) fn policy(spec: &str) -> anyhow::Result<Arc<dyn MergePolicy>> {
    registry().build(spec).map_err(|error| bad_spec("policy", spec, &error))
}

/// Builds the policy that `spec` names, for a workload and memtables of so many bytes: with the
/// level sizes that cost least, if the spec asks for them.
pub(crate) fn policy_for(
    spec: &str,
    workload: &Workload,
    memtable_bytes: u64,
) -> anyhow::Result<Arc<dyn MergePolicy>> {
    match spec.parse::<Spec>() {
        Ok(parsed) if asks_for_sizes(&parsed) => sized(&parsed, workload, memtable_bytes),
        _ => policy(spec),
    }
}

fn sized(
    spec: &Spec,
    workload: &Workload,
    memtable_bytes: u64,
) -> anyhow::Result<Arc<dyn MergePolicy>> {
    let sized = with_sizes(spec, workload, memtable_bytes).map_err(|error| {
        match error.downcast_ref::<SpecError>() {
            Some(bad) => bad_spec("policy", spec, bad),
            None => error,
        }
    })?;
    registry().build_spec(&sized).map_err(|error| bad_spec("policy", spec, &error))
}

/// Returns true if `specs` is a word for several policies, which names none of them.
pub(crate) fn is_word(specs: &str) -> bool {
    matches!(specs.trim(), "all" | "classic")
}

/// Builds the policies that `specs` names, separated by `;`, for a workload and memtables of
/// `memtable_bytes`. `all` means every policy with its defaults; `classic` leaves out policies that
/// count in blocks.
pub(crate) fn policies(
    specs: &str,
    workload: &Workload,
    memtable_bytes: u64,
) -> anyhow::Result<Vec<Arc<dyn MergePolicy>>> {
    let registry = registry();
    let specs = match specs.trim() {
        word @ ("all" | "classic") => {
            let names = registry.infos().iter().map(|info| Spec::bare(info.name));
            let built = names.map(|spec| registry.build_spec(&spec));
            let mut all = built.collect::<Result<Vec<_>, _>>()?;
            all.retain(|policy| word == "all" || !policy.needs().blocks);
            return Ok(all);
        }
        specs => Spec::parse_list(specs)
            .map_err(|error| bad_spec("policies", specs, &translated(specs, error)))?,
    };
    let build = |spec: &Spec| match asks_for_sizes(spec) {
        true => sized(spec, workload, memtable_bytes),
        false => registry.build_spec(spec).map_err(|error| bad_spec("policy", spec, &error)),
    };
    specs.iter().map(build).collect()
}

/// Builds the workload that `spec` names. Fails if the spec or its file is invalid. A damaged line
/// is an error of the file; any other error is a bad argument.
pub(crate) fn workload(spec: &str) -> anyhow::Result<Workload> {
    let spec: Spec = spec.parse().map_err(|error| bad_spec("workload", spec, &error))?;
    let workload = Workload::from_spec(&spec, &FileInputs);
    let workload = workload.map_err(|error| bad_input("workload", &spec, error))?;
    if let Some(recorded) = workload.recorded() {
        print_line(&of_recording(recorded, workload.lives()));
    }
    Ok(workload)
}

/// Returns what a recording says of the store, in one line.
fn of_recording(recorded: &Recorded, lives: &Lives) -> String {
    let Recorded { keyspace, one_in, policy, counts, .. } = recorded;
    let [share, whole] =
        [recorded.memtable_share_bytes(), recorded.memtable_bytes].map(format_bytes);
    let mut text = format!(
        "recorded: 1 key in {one_in} of keyspace {keyspace} under {policy}; \
         a memtable of {share} stands for one of {whole}"
    );
    if counts.flush_bytes > 0 {
        let written = counts.flush_bytes + counts.merge_bytes;
        let cost = cost(written as f64 / counts.flush_bytes as f64);
        text += &format!("; meanwhile the store wrote {cost} bytes per byte flushed");
    }
    if !recorded.has_base {
        text += "; keys that were there before are missing";
    }
    if recorded.has_lives && !lives.expire() {
        text += "; values stay that expired in the store, unless you say expire=recorded";
    }
    text
}

/// Builds the sizes of flushes that `spec` names, constant if it names none.
pub(crate) fn flush_sizes(spec: Option<&str>) -> anyhow::Result<Arc<FlushSizes>> {
    let Some(text) = spec else { return Ok(Arc::default()) };
    let spec: Spec = text.parse().map_err(|error| bad_spec("flush sizes", text, &error))?;
    let sizes = FlushSizes::from_spec(&spec, &FileInputs)
        .map_err(|error| bad_input("flush sizes", &spec, error))?;
    Ok(Arc::new(sizes))
}

/// Builds the machine that `text` is, or that the file with this name has.
pub(crate) fn machine(text: Option<&str>) -> anyhow::Result<Option<Machine>> {
    let Some(text) = text else { return Ok(None) };
    let found = match text.contains('(') {
        true => text.to_owned(),
        false => std::fs::read_to_string(text)
            .map_err(|error| bad_argument(format!("cannot read the machine in {text}: {error}")))?,
    };
    let found = found.trim();
    let spec: Spec = found.parse().map_err(|error| bad_spec("machine", found, &error))?;
    let machine = machine_of(&spec).map_err(|error| bad_spec("machine", found, &error))?;
    Ok(Some(machine))
}

/// Fails if one of `policies` seals memory by itself, so that `sizes` cannot hold for it.
pub(crate) fn check_sealing(
    sizes: &FlushSizes,
    policies: &[Arc<dyn MergePolicy>],
) -> anyhow::Result<()> {
    let by_block = policies.iter().find(|policy| policy.needs().blocks);
    match by_block.filter(|_| !sizes.is_constant()) {
        Some(policy) => Err(bad_argument(format!(
            "{} counts in blocks and seals memory by itself: it takes no `--flush-sizes`",
            policy.spec()
        ))),
        None => Ok(()),
    }
}

fn bad_input(what: &str, spec: &Spec, error: WorkloadError) -> Error {
    match error {
        WorkloadError::Line { .. } | WorkloadError::Entry { .. } => Error::new(error),
        WorkloadError::Spec(error) => bad_spec(what, spec, &error),
        error => bad_argument(error),
    }
}

/// Returns the error for a bad spec. Errors for unknown names already say `what` they name.
fn bad_spec(what: &str, spec: impl Display, error: &SpecError) -> Error {
    match error {
        SpecError::Unknown { .. } | SpecError::Elsewhere { .. } => bad_argument(error),
        error => bad_argument(format!("{what} `{spec}`: {error}")),
    }
}
