//! Short forms.

use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::{Simulation, UNIT_BYTES, simulate_unit};
use std::sync::Arc;

/// The policy that `spec` spells.
pub(crate) fn policy(spec: &str) -> Arc<dyn MergePolicy> {
    Registry::builtin().build(spec).expect("a spec from a test")
}

/// `flushes` flushes of size one under the policy that `spec` spells.
pub(crate) fn unit(spec: &str, flushes: usize) -> Simulation {
    let sizes = std::iter::repeat_n(UNIT_BYTES, flushes);
    simulate_unit(&policy(spec), sizes, UNIT_BYTES, &mut |_| {}).expect("a policy of this project")
}

/// Bytes as flushes of size one.
pub(crate) fn units(bytes: Vec<u64>) -> Vec<u64> {
    bytes.into_iter().map(|bytes| bytes / UNIT_BYTES).collect()
}

/// Whether `measured` is what was printed with two digits behind the point.
pub(crate) fn is_printed(measured: f64, printed: f64) -> bool {
    (measured - printed).abs() <= 0.005 + 1e-9
}

/// Every policy, at sizes that merge often.
pub(crate) const ALL: &[&str] = &[
    "none",
    "bigtable(k=3)",
    "constant(k=3)",
    "exploring(k=3)",
    "minlatency(k=3)",
    "minlatency(k=3, count=size)",
    "binomial(k=3)",
    "tiered(ratio=3)",
    "tiered(ratio=2, eager=always)",
    "leveled(ratio=3)",
    "leveled(ratio=3, l0=1, pick=round_robin)",
    "leveled(ratio=3, pick=narrowest)",
    "leveled(ratio=3, pick=best_ratio)",
    "leveled(ratio=3, pick=oldest)",
    "leveled(ratio=3, pick=whole_level)",
    "triangular",
    "triangular(score=bytes)",
    "triangular(max_bytes=20kB, max_files=5)",
    "triangular(max_bytes=20kB, max_files=5, score=bytes)",
    "jungle(c=1, ratio=2)",
    "jungle(c=3, ratio=3)",
    "jungle(c=100, ratio=4)",
];
