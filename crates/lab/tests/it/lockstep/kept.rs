//! Merges keep the same tables in the store and in the simulation.

use super::{Names, POLICIES, Trace, check_policy, check_workload};
use lsmith_lab::FileInputs;
use lsmith_policy::{Registry, check_group_policy};
use lsmith_sim::KeyedWorkload;
use lsmith_workload::Workload;
use std::fmt::Write;

/// Returns a trace of these operations on numbered keys.
fn trace(ops: impl IntoIterator<Item = (&'static str, u64)>) -> Workload {
    let mut text = String::from("timestamp,op,key,value_size\n");
    for (at, (op, key)) in ops.into_iter().enumerate() {
        writeln!(text, "{at},{op},key{key:08},100").unwrap();
    }
    Workload::from_spec(&"trace(ops)".parse().unwrap(), &Trace(text)).unwrap()
}

/// Runs `workload` under every policy on both sides. Returns true if one has kept tables.
fn keeps(workload: Workload) -> bool {
    let keyed = KeyedWorkload::new(workload);
    let names = Names::of(&keyed);
    let mut keeps = false;
    for spec in POLICIES.iter().filter(|spec| !spec.starts_with("jungle")) {
        let steps = check_policy(spec, &keyed, &names, 32 << 10);
        let is_kept = |effects: &String| !effects.contains("bytes_reused: 0,");
        keeps |= steps.iter().any(|(_, effects)| is_kept(effects));
    }
    keeps
}

#[test]
fn several_writers_of_ascending_keys() {
    // Turns of 1,000 writes, so that some memtables have the keys of one writer, some of two.
    let writers = (0..12_000).map(|at| ("put", at / 1000 % 3 * 1_000_000 + at));
    assert!(keeps(trace(writers)));
}

#[test]
fn keys_that_are_written_in_order_again_and_again() {
    assert!(keeps(trace((0..12_000).map(|at| ("put", at % 5_000)))));
}

#[test]
fn keys_nearly_in_order_of_time() {
    let late = |at: u64| if at.is_multiple_of(7) { at.saturating_sub(at * 31 % 900) } else { at };
    keeps(trace((0..12_000).map(|at| ("put", late(at)))));
}

#[test]
fn keys_in_order_with_deletes() {
    let op = |at: u64| if at % 1500 > 1400 { ("delete", at - 700) } else { ("put", at) };
    assert!(keeps(trace((0..14_000).map(op))));
}

#[test]
fn keys_in_falling_order() {
    assert!(keeps(trace((0..10_000).map(|at| ("put", 50_000 - at)))));
}

/// Tables are cut between keyspaces, so each keyspace keeps its own.
#[test]
fn keyspaces_of_a_group_in_order() {
    let is_for_groups =
        |spec: &&str| check_group_policy(&*Registry::builtin().build(spec).unwrap()).is_ok();
    let policies: Vec<&str> = POLICIES.iter().copied().filter(is_for_groups).collect();
    let spec = "load(keys=20k, value=100B, order=sequential)".parse().unwrap();
    let workload = Workload::from_spec(&spec, &FileInputs).unwrap();
    check_workload(&policies, workload.in_group(&[1.0, 0.5]).unwrap(), 50 << 10);
}
