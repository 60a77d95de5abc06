//! Simulations predict the bytes of files.

use lsmith::env::MemEnv;
use lsmith_lab::{Comparison, FileInputs, NoProgress, Options, Row};
use lsmith_policy::{MergePolicy, Registry};
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Workload;
use std::sync::Arc;

/// How far bytes written and bytes held may be off.
const WRITTEN: f64 = 0.02;
const HELD: f64 = 0.03;

/// The same for bytes written under policies that take windows of keys from memory. Here their
/// manifest is a tenth of all bytes, and the records of its edits are only known in the mean.
const WRITTEN_BY_WINDOWS: f64 = 0.04;

fn rows(workload: &str) -> Vec<(Row, f64, f64)> {
    let registry = Registry::builtin();
    let named = |name: &str| registry.build(name).unwrap();
    let policies: Vec<Arc<dyn MergePolicy>> =
        registry.infos().iter().map(|info| named(info.name)).collect();
    let bounds: Vec<(f64, f64)> = policies
        .iter()
        .map(|policy| match policy.needs().windows {
            true => (WRITTEN_BY_WINDOWS, HELD),
            false => (WRITTEN, HELD),
        })
        .collect();
    let workload = Workload::from_spec(&workload.parse().unwrap(), &FileInputs).unwrap();
    let workload = KeyedWorkload::new(workload);
    let options =
        Options { memtable_bytes: 32 << 10, env: Arc::new(MemEnv::new()), ..Options::default() };
    let dir = tempfile::tempdir().unwrap();
    let comparison = Comparison {
        policies: &policies,
        workload: &workload,
        dir: dir.path(),
        options: &options,
        free: false,
        runs: 1,
    };
    let mut rows = Vec::new();
    comparison.run(&NoProgress, &mut |row| rows.push(row)).unwrap();
    assert_eq!(rows.len(), policies.len());
    rows.into_iter().zip(bounds).map(|(row, (written, held))| (row, written, held)).collect()
}

#[test]
fn bytes_of_files_are_predicted() {
    for workload in ["load(keys=15k, value=100B)", "ycsb(a, records=4k, ops=25k, value=100B)"] {
        let mut off = Vec::new();
        for (row, written, held) in rows(workload) {
            let errors = row.errors.keyed;
            let found = [errors.write_cost_user, errors.space_cost_physical_mean];
            let found = found.map(|error| error.expect("the workload fills memtables"));
            if found[0].abs() > written || found[1].abs() > held {
                off.push(format!("{}: {found:.3?}", row.policy));
            }
        }
        assert!(off.is_empty(), "{workload}: {off:#?}");
    }
}
