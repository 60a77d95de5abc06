//! Entries that live as a trace says expire in the same merges on both sides.

use super::{BLOCK_POLICIES, Names, POLICIES, Workload, check_policy, check_workload};
use lsmith_lab::FileInputs;
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Rng;
use std::fmt::Write;

const MEMTABLE: u64 = 50 << 10;

/// Returns a trace in the layout of Twitter's, in which some values stay, others live for one of
/// these times, in writes, and some are deleted.
fn trace(keys: u64, writes: u64, lives: &[u64]) -> Workload {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("cluster.csv");
    let mut rng = Rng::new(keys, writes);
    let mut text = String::new();
    for write in 0..writes {
        // Four writes a second.
        let (second, key) = (write / 4, rng.below(keys));
        let op = if rng.below(10) == 0 { "delete" } else { "set" };
        let life = lives[rng.below(lives.len() as u64) as usize] / 4;
        let bytes = 60 + rng.below(80);
        writeln!(text, "{second},key{key:09},12,{bytes},7,{op},{life}").unwrap();
    }
    std::fs::write(&path, text).unwrap();
    let spec = format!("trace({}, expire=recorded)", path.display());
    Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap()
}

#[test]
fn entries_live_in_the_store_as_in_the_simulation() {
    for (keys, lives) in [(6000, &[0, 400, 4000, 40_000][..]), (3000, &[800, 6000])] {
        let workload = trace(keys, 16_000, lives);
        check_workload(POLICIES, workload.clone(), MEMTABLE);
        check_workload(BLOCK_POLICIES, workload, MEMTABLE);
    }
}

/// Tables go unread when the last of their entries has expired.
#[test]
fn tables_expire_with_the_last_of_lives_that_differ() {
    let workload = trace(50_000, 16_000, &[1200, 2400]);
    for policy in ["none", "fifo", "minlatency(k=4)", "jungle"] {
        let keyed = KeyedWorkload::new(workload.clone());
        let steps = check_policy(policy, &keyed, &Names::of(&keyed), MEMTABLE);
        let drops = steps.iter().filter(|(plan, _)| plan.contains("has expired")).count();
        assert!(drops >= 5, "{policy}: {drops} drops");
    }
}
