//! Recordings of stores, played again.

use lsmith::{Clock, Expiry, KeyspaceOptions, RecordOptions, Store};
use lsmith_lab::FileInputs;
use lsmith_policy::Registry;
use lsmith_sim::{Figures, KeyedWorkload, simulate_keyed};
use lsmith_spec::Spec;
use lsmith_tree::Counters;
use lsmith_workload::{NoInputs, OpKind, Rng, Workload};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const MEMTABLE_BYTES: u64 = 256 << 10;

fn workload(spec: &str) -> Workload {
    Workload::from_spec(&spec.parse::<Spec>().unwrap(), &NoInputs).unwrap()
}

/// Returns the workload that was recorded at `path`.
fn recorded(path: &Path) -> Workload {
    let spec = format!("trace({})", path.display());
    Workload::from_spec(&spec.parse::<Spec>().unwrap(), &FileInputs).unwrap()
}

/// Plays `workload` on a store in `dir`, recorded from operation `from` on. Returns the file.
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
    file.unwrap()
}

fn figures(policy: &str, workload: &Workload, memtable_bytes: u64) -> Figures {
    let policy = Registry::builtin().build(policy).unwrap();
    let input = KeyedWorkload::new(workload.clone());
    simulate_keyed(&policy, &input, memtable_bytes, &mut |_| {}).unwrap().figures
}

/// With all keys, a recording is the workload: all figures are equal.
#[test]
fn a_recording_of_all_keys_plays_the_workload() {
    for spec in [
        "mix(get=0.2, get_absent=0.1, scan=0.05, put=0.45, insert=0.1, delete=0.1, keys=8k, \
         ops=40k, value=100B)",
        "churn(keys=8k, ops=40k, ranges=0.01, value=100B)",
        "queue(keys=40k, keep=4k, value=100B)",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let original = workload(spec);
        let file = record(dir.path(), &original, 0, 1);
        let played = recorded(&file);
        assert_eq!(played.recorded().unwrap().memtable_share_bytes(), MEMTABLE_BYTES);
        for policy in ["minlatency(k=6)", "leveled(ratio=4)", "rr(ratio=4)", "jungle(c=3)"] {
            let [truth, found] =
                [&original, &played].map(|workload| figures(policy, workload, MEMTABLE_BYTES));
            // The recording has no load phase.
            let truth = [truth.write_cost_system, truth.read_cost_mean, truth.space_cost_mean];
            let found = [found.write_cost_system, found.read_cost_mean, found.space_cost_mean];
            assert_eq!(found, truth, "{policy} under {spec}");
        }
    }
}

/// With some keys, writes are within 3 % of what the policy would have written of all keys.
#[test]
fn a_recording_of_some_keys_says_what_policies_cost() {
    for (spec, one_in) in [
        ("ycsb(a, records=60k, ops=600k, value=100B)", 4),
        ("churn(keys=60k, ops=600k, deletes=0.1, value=100B)", 4),
        ("churn(keys=60k, ops=600k, value=100B)", 8),
        ("load(keys=400k, value=100B)", 4),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let original = workload(spec);
        let file = record(dir.path(), &original, original.load_ops(), one_in);
        let played = recorded(&file);
        let memtable_bytes = played.recorded().unwrap().memtable_share_bytes();
        for policy in ["minlatency(k=6)", "tiered(ratio=4)", "leveled(ratio=10)", "jungle(c=3)"] {
            let truth = figures(policy, &original, MEMTABLE_BYTES);
            let found = figures(policy, &played, memtable_bytes);
            let off = |figure: fn(&Figures) -> f64| figure(&found) / figure(&truth) - 1.0;
            let [writes, runs] = [off(|all| all.write_cost_system), off(|all| all.read_cost_mean)];
            // Append tables hold few of the recorded entries.
            let bound = if policy.starts_with("jungle") { 0.05 } else { 0.03 };
            assert!(writes.abs() < bound, "{policy} under {spec}: writes {writes:+.4}");
            assert!(runs.abs() < 0.015, "{policy} under {spec}: runs {runs:+.4}");
        }
    }
}

/// What a store wrote whose values live for times that differ is what a replay of its recording
/// says. Played as if they stayed, it is far off.
#[test]
fn a_recording_of_values_that_expire_plays_their_lives() {
    let dir = tempfile::tempdir().unwrap();
    let start = Instant::now();
    let clock = Clock::new("micros", move || start.elapsed().as_micros() as u64 + 1);
    let builder = Store::builder(dir.path().join("store")).memtable_bytes(MEMTABLE_BYTES / 4);
    let builder = builder.clock(clock.with_tick(Duration::from_micros(1))).lockstep(true);
    let store = builder.policy("leveled(ratio=4)").open().unwrap();
    let options = KeyspaceOptions { expiry: Some(Expiry::default()), ..Default::default() };
    let keyspace = store.keyspace_with("cache", &options).unwrap();
    let record = RecordOptions { one_in: 1, ..RecordOptions::default() };
    let file = store.record(dir.path().join("recordings"), &record).unwrap();
    let mut rng = Rng::new(1, 2);
    for _ in 0..120_000 {
        let key = format!("key{:09}", rng.below(200_000));
        match [0, 2_000, 30_000, 200_000][rng.below(4) as usize] {
            0 => keyspace.put(key, [1; 100]).unwrap(),
            life => keyspace.put_with_ttl(key, [1; 100], Duration::from_micros(life)).unwrap(),
        }
    }
    drop(store.stop_recording().unwrap());
    // Logical bytes, as the simulation counts.
    let tree = keyspace.tree();
    let sum = |count: fn(&Counters) -> u64| -> f64 {
        tree.levels().iter().map(|level| count(level.counters())).sum::<u64>() as f64
    };
    let truth = sum(|level| level.bytes_written) / sum(|level| level.bytes_from_memory);
    let off = |more: &str| {
        let spec = format!("trace({}{more})", file.display());
        let played = Workload::from_spec(&spec.parse::<Spec>().unwrap(), &FileInputs).unwrap();
        let figures = figures("leveled(ratio=4)", &played, MEMTABLE_BYTES / 4);
        let parts = figures.parts;
        let written = parts.flush_written_bytes + parts.merge_written_bytes;
        written as f64 / parts.flush_bytes as f64 / truth - 1.0
    };
    let [lives, stays] = [", expire=recorded", ""].map(off);
    assert!(lives.abs() < 0.03, "{lives:+.4}");
    assert!(stays > 0.1, "{stays:+.4}");
}
