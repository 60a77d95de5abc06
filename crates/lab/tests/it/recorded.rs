//! Recordings of stores, played again.

use lsmith::{RecordOptions, Store};
use lsmith_lab::FileInputs;
use lsmith_policy::Registry;
use lsmith_sim::{Figures, KeyedWorkload, simulate_keyed};
use lsmith_spec::Spec;
use lsmith_workload::{NoInputs, OpKind, Workload};
use std::path::{Path, PathBuf};

const MEMTABLE_BYTES: u64 = 1 << 20;

fn workload(spec: &str) -> Workload {
    Workload::from_spec(&spec.parse::<Spec>().unwrap(), &NoInputs).unwrap()
}

/// Returns the workload that was recorded at `path`.
fn recorded(path: &Path, more: &str) -> Workload {
    let spec = format!("trace({}{more})", path.display());
    Workload::from_spec(&spec.parse::<Spec>().unwrap(), &FileInputs).unwrap()
}

/// Plays `workload` on a store in `dir` that is recorded from operation `from` on. Returns the file.
fn record(dir: &Path, workload: &Workload, from: u64, one_in: u32) -> PathBuf {
    let builder = Store::builder(dir.join("store")).memtable_bytes(MEMTABLE_BYTES).lockstep(true);
    let store = builder.open().unwrap();
    let keyspace = store.keyspace("default").unwrap();
    let options = RecordOptions { one_in, ..RecordOptions::default() };
    let (mut key, mut end) = (Vec::new(), Vec::new());
    let mut file = None;
    for (count, op) in workload.ops().enumerate() {
        if count as u64 == from {
            file = Some(store.record(dir.join("recordings"), &options).unwrap());
        }
        let op = op.unwrap();
        workload.key(op.item, &mut key);
        let value = vec![1; op.value_bytes as usize];
        match op.kind {
            OpKind::Put | OpKind::Insert => keyspace.put(&key, &value).unwrap(),
            OpKind::Read => drop(keyspace.get(&key).unwrap()),
            OpKind::Delete | OpKind::Remove => keyspace.delete(&key).unwrap(),
            OpKind::ReadModifyWrite => {
                keyspace.get(&key).unwrap();
                keyspace.put(&key, &value).unwrap();
            }
            OpKind::Scan => {
                let entries = keyspace.range(&key[..]..).take(op.items as usize);
                entries.for_each(|entry| drop(entry.unwrap()));
            }
            OpKind::DeleteRange => {
                workload.key(op.end(), &mut end);
                keyspace.delete_range(&key[..]..&end[..]).unwrap();
            }
            OpKind::Combine => unreachable!("no workload here combines"),
        }
    }
    let told = store.stop_recording().unwrap().unwrap();
    assert_eq!((told.has_base, told.ended.clone()), (true, None));
    eprintln!("{told:?}");
    file.unwrap()
}

fn figures(policy: &str, workload: &Workload, memtable_bytes: u64) -> Figures {
    let policy = Registry::builtin().build(policy).unwrap();
    let input = KeyedWorkload::new(workload.clone());
    simulate_keyed(&policy, &input, memtable_bytes, &mut |_| {}).unwrap().figures
}

#[test]
fn show() {
    for (spec, one_in) in [
        ("ycsb(a, records=200k, ops=800k, value=100B)", 8),
        ("churn(keys=200k, ops=600k, value=100B)", 8),
        ("churn(keys=200k, ops=600k, value=100B)", 32),
        ("load(keys=400k, value=100B)", 8),
        ("mix(get=0.2, scan=0.05, put=0.75, keys=200k, ops=600k, value=100B)", 8),
        ("queue(keys=600k, value=100B)", 8),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let original = workload(spec);
        let from = original.load_ops();
        let file = record(dir.path(), &original, from, one_in);
        let played = recorded(&file, "");
        let share = played.recorded().unwrap().memtable_share_bytes();
        eprintln!("{spec} 1 in {one_in}: {} ops, {} loads", played.ops_max(), played.load_ops());
        for policy in [
            "minlatency(k=6)",
            "tiered(ratio=4)",
            "leveled(ratio=4)",
            "leveled(ratio=10)",
            "rr(ratio=4)",
            "triangular",
            "jungle(c=3)",
        ] {
            let truth = figures(policy, &original, MEMTABLE_BYTES);
            let found = figures(policy, &played, share);
            let off = |f: fn(&Figures) -> f64| 100.0 * (f(&found) / f(&truth) - 1.0);
            eprintln!(
                "  {policy:20} write {:.3} {:+.1} % read {:.3} {:+.1} % space {:.3} {:+.1}",
                truth.write_cost_system,
                off(|f| f.write_cost_system),
                truth.read_cost_mean,
                off(|f| f.read_cost_mean),
                truth.space_cost_mean,
                off(|f| f.space_cost_mean)
            );
        }
    }
}
