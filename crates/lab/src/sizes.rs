//! Optimal level sizes for a workload.

use crate::profile::Profile;
use anyhow::Result;
use lsmith_model::formulas::sizes_of;
use lsmith_spec::{Spec, format_bytes};
use lsmith_workload::Workload;

/// The policies whose spec can ask for optimal sizes.
const WITH_SIZES: [&str; 2] = ["leveldb", "rocksdb"];

/// The parameters that optimal sizes are computed from.
const ASKED: [&str; 5] = ["sizes", "level1", "ratio", "levels", "read_cost_max"];

/// Returns true if `spec` asks for the level sizes of least cost, `sizes=optimal`. A policy does
/// not know the workload, so that it cannot be built from such a spec.
#[must_use]
pub fn asks_for_sizes(spec: &Spec) -> bool {
    WITH_SIZES.contains(&spec.name.as_str()) && spec.param("sizes") == Some("optimal")
}

/// Returns `spec` with the level sizes of least cost by formula in the place of `sizes=optimal`,
/// once `workload` has written all its keys. Returns other specs as they are.
///
/// # Errors
/// Fails if the workload cannot be read, or a parameter is out of range.
pub fn with_sizes(spec: &Spec, workload: &Workload, memtable_bytes: u64) -> Result<Spec> {
    if !asks_for_sizes(spec) {
        return Ok(spec.clone());
    }
    let profile = Profile::of(workload)?.up_to_flushes(workload.limit_flushes(), memtable_bytes);
    let all = profile.in_phases().at(1.0);
    let sizes = sizes_of(spec, &all.setting(memtable_bytes))?;
    let bytes = |entries: &f64| format_bytes((entries * all.entry_bytes).round().max(1.0) as u64);
    let texts: Vec<String> = sizes.iter().map(bytes).collect();
    let mut found = spec.clone();
    found.params.retain(|(name, _)| !ASKED.contains(&name.as_str()));
    let spelled = if texts.is_empty() { "none".to_owned() } else { texts.join(":") };
    Ok(found.with("sizes", spelled))
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_policy::Registry;
    use lsmith_sim::{KeyedWorkload, simulate_keyed};
    use lsmith_workload::NoInputs;

    const MEMTABLE_BYTES: u64 = 100_000;

    fn workload(spec: &str) -> Workload {
        Workload::from_spec(&spec.parse().unwrap(), &NoInputs).unwrap()
    }

    fn sized(spec: &str, workload: &Workload) -> Spec {
        with_sizes(&spec.parse().unwrap(), workload, MEMTABLE_BYTES).unwrap()
    }

    /// Sizes were only printed by the formula, and no store could use them.
    #[test]
    fn a_tree_of_optimal_sizes_writes_less_than_one_of_geometric_sizes() {
        let workload = workload("churn(keys=60k, ops=600k, value=100B)");
        let keyed = KeyedWorkload::new(workload.clone());
        let cost = |spec: &Spec| {
            let policy = Registry::builtin().build_spec(spec).unwrap();
            let found = simulate_keyed(&policy, &keyed, MEMTABLE_BYTES, &mut |_| {});
            found.unwrap().figures.write_cost_system
        };
        let fixed = "leveldb(level1=250kB, table=50kB)".parse().unwrap();
        for levels in ["any", "geometric"] {
            let asked = "leveldb(level1=250kB, table=50kB, sizes=optimal";
            let optimal = sized(&format!("{asked}, levels={levels})"), &workload);
            let gain = 1.0 - cost(&optimal) / cost(&fixed);
            assert!(gain > 0.05, "{optimal}: {gain}");
        }
    }

    #[test]
    fn a_limit_on_reads_bounds_the_levels() {
        let workload = workload("churn(keys=300k, ops=900k, value=100B)");
        let count = |spec: &str| match sized(spec, &workload).param("sizes") {
            Some("none") => 0,
            sizes => sizes.unwrap().split(':').count(),
        };
        assert!(count("rocksdb(sizes=optimal)") > 2);
        assert_eq!(count("rocksdb(sizes=optimal, read_cost_max=4.9)"), 2);
        assert_eq!(count("rocksdb(sizes=optimal, read_cost_max=4.5, levels=any)"), 2);
        assert_eq!(count("leveldb(sizes=optimal, levels=1)"), 1);
        assert_eq!(count("leveldb(sizes=optimal, read_cost_max=2.5)"), 0);
        for bad in
            ["leveldb(sizes=optimal, read_cost_max=2.4)", "leveldb(sizes=optimal, levels=17)"]
        {
            assert!(with_sizes(&bad.parse().unwrap(), &workload, MEMTABLE_BYTES).is_err(), "{bad}");
        }
    }

    #[test]
    fn other_specs_stay() {
        let workload = workload("load(keys=1k)");
        for spec in ["tiered", "leveldb(sizes=10MiB:80MiB)", "leveldb(level1=2MiB)"] {
            assert_eq!(sized(spec, &workload).to_string(), spec);
        }
    }
}
