//! Fluid simulations of workloads that are counted, against keyed ones.

use crate::fluid::{MEMTABLE_BYTES, STACKS, agree, policy, workload};
use lsmith_sim::{FluidWorkload, SimError, simulate_fluid};
use lsmith_tree::check_tree;
use lsmith_workload::{Inputs, Workload};
use std::io::BufRead;

/// Keys that are written together lie anywhere in the key space.
const SCATTERED: [&str; 7] = [
    "ycsb(a, records=100k, ops=200k, value=100B)",
    "ycsb(d, records=100k, ops=400k, value=100B)",
    "ycsb(f, records=100k, ops=200k, value=100B)",
    "update(keys=150k, value=100B)",
    "update(keys=150k, dist=zipf, value=100B)",
    "update(keys=150k, dist=uniform, value=100B)",
    "uniform(keys=100k, ops=100k)",
];

/// Keys that are written together lie together.
const GATHERED: [&str; 4] = [
    "load(keys=200k, value=100B, order=sequential)",
    "update(keys=150k, value=100B, order=sequential)",
    "normal(keys=100k, ops=100k)",
    "tpc(warehouses=10, keys=100k, ops=100k)",
];

#[test]
fn stacks_are_as_if_every_key_were_there() {
    for workload in SCATTERED.into_iter().chain(GATHERED) {
        // Entries and tombstones differ in size. Blocks are taken to hold the mean of both.
        let has_tombstones = ["uniform", "normal", "tpc"].iter().any(|it| workload.starts_with(it));
        agree(workload, &STACKS, if has_tombstones { 0.015 } else { 0.001 });
    }
}

#[test]
fn swept_levels_are_within_two_percent() {
    let leveled = ["leveled(pick=round_robin)", "leveled(ratio=4, pick=round_robin)"];
    for workload in SCATTERED.into_iter().chain(GATHERED) {
        agree(workload, &leveled, 0.02);
    }
}

#[test]
fn picks_and_partial_merges_are_within_their_limits() {
    for workload in SCATTERED {
        agree(workload, &["full(ratio=4, reuse=false)", "rr(ratio=4)"], 0.035);
        // Blocks of hashed keys meet less than by chance.
        agree(workload, &["full(ratio=4)"], 0.07);
        agree(workload, &["leveled(ratio=4)", "choose_best(ratio=4)"], 0.10);
    }
    // With 150 thousand keys the last merge of a whole level hangs on a few blocks.
    let gathered = "update(keys=200k, value=100B, order=sequential)";
    agree(gathered, &["full(ratio=4, reuse=false)", "rr(ratio=4)"], 0.03);
    agree(gathered, &["full(ratio=4)"], 0.09);
}

/// Blocks have three entries, and many blocks meet no key of the other input. No key comes twice,
/// and keys come in random order. The hashed keys of `load` would lie more evenly than random ones.
#[test]
fn blocks_of_new_keys_are_within_their_limits() {
    let workload = "uniform(keys=50k, ops=0, value=1000B)";
    agree(workload, &["full", "full(ratio=4)", "rr", "rr(ratio=4)"], 0.03);
    agree(workload, &["choose_best", "choose_best(ratio=4)", "test_mixed(ratio=4)"], 0.06);
}

/// No two tables overlap.
#[test]
fn keys_in_order_are_only_moved() {
    let input = FluidWorkload::new(&workload(GATHERED[0])).unwrap();
    let leveled = policy("leveled");
    let found = simulate_fluid(&leveled, &input, MEMTABLE_BYTES, &mut |_| {}).unwrap();
    check_tree(&found.tree).unwrap();
    assert_eq!(found.figures.write_cost_system, 1.0);
}

/// A file in memory.
struct Text(String);

impl Inputs for Text {
    fn open<'a>(&'a self, _: &str) -> Result<Box<dyn BufRead + 'a>, String> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

fn trace(lines: impl Iterator<Item = String>) -> Workload {
    let text = "timestamp,op,key,value_size\n".to_owned();
    let text = text + &lines.collect::<Vec<_>>().join("\n");
    let spec = "trace(t.csv)".parse().expect("a spec");
    Workload::from_spec(&spec, &Text(text)).expect("a trace, damaged or not")
}

/// What broke: deletes make a memtable smaller, so one that was full for a moment was passed over.
/// It was sealed thousands of writes later, with other bytes.
#[test]
fn memtables_that_deletes_make_smaller_are_sealed_when_full() {
    let line = |at: u64| match at {
        0..2500 => format!("{at},put,key{at:06},300"),
        2500..5000 => format!("{at},delete,key{:06},0", 4999 - at),
        _ => format!("{at},put,key{at:06},300"),
    };
    let trace = trace((0..15_000).map(line));
    let input = lsmith_sim::KeyedWorkload::new(trace.clone());
    let counted = FluidWorkload::new(&trace).unwrap();
    let policy = policy("none");
    for memtable_bytes in [650_000, 670_000, 700_000] {
        let keyed = lsmith_sim::simulate_keyed(&policy, &input, memtable_bytes, &mut |_| {});
        let fluid = simulate_fluid(&policy, &counted, memtable_bytes, &mut |_| {});
        let keyed = keyed.unwrap().figures.parts;
        let fluid = fluid.unwrap().figures.parts;
        assert_eq!(fluid.flush_bytes, keyed.flush_bytes, "memtables of {memtable_bytes}");
    }
}

/// What broke: key order within a part of the key space was not seen if the part was written in a
/// short time, and deletes were not looked at. Answers were up to twelve times off.
#[test]
fn blocks_of_keys_in_order_and_of_mostly_deleted_keys_are_refused() {
    let refusal = |policy_spec: &str, workload: &Workload, memtable_bytes: u64| {
        let input = FluidWorkload::new(workload).expect("a fluid workload");
        let found =
            simulate_fluid(&policy(policy_spec), &input, memtable_bytes, &mut |_| {}).err()?;
        Some(found.to_string())
    };
    let order = "update(keys=30k, share=0.2, dist=zipf, value=500B, order=sequential)";
    let order = workload(order);
    let message = refusal("choose_best", &order, 300_000).expect("few parts to a memtable");
    assert!(message.contains("lie next to each other"), "{message}");
    assert_eq!(refusal("choose_best", &order, 4_000_000), None);
    assert_eq!(refusal("leveled", &order, 300_000), None);
    let history = |deleted: u64| {
        let key = |at: u64| at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20;
        let line = move |at: u64| match at {
            0..20_000 => format!("{at},put,key{:016},300", key(at)),
            _ => format!("{at},delete,key{:016},0", key(at - 20_000)),
        };
        trace((0..20_000 + deleted).map(line))
    };
    let message = refusal("rr", &history(12_000), 300_000).expect("8000 of 20,000 keys stay");
    assert!(message.contains("less than half"), "{message}");
    assert_eq!(refusal("rr", &history(8000), 300_000), None);
}

/// Hot keys with short values and cold ones with long values.
#[test]
fn a_trace_is_counted_with_its_sizes() {
    let line = |at: u64| {
        let draw = at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
        match draw % 8 {
            0..5 => format!("{at},put,hot{},40", draw % 3000),
            5 => format!("{at},delete,cold{:06},0", draw % 20_011),
            6 => format!("{at},get,cold{:06},0", draw % 20_011),
            _ => format!("{at},put,cold{:06},{}", draw % 20_011, 300 + draw % 700),
        }
    };
    let trace = trace((0..150_000).map(line));
    let input = lsmith_sim::KeyedWorkload::new(trace.clone());
    let counted = FluidWorkload::new(&trace).unwrap();
    for spec in STACKS.into_iter().chain(["leveled(pick=round_robin)", "leveled(ratio=4)"]) {
        let policy = policy(spec);
        let keyed = lsmith_sim::simulate_keyed(&policy, &input, 200_000, &mut |_| {}).unwrap();
        let fluid = simulate_fluid(&policy, &counted, 200_000, &mut |_| {}).unwrap();
        let keyed = keyed.figures;
        let fluid = fluid.figures;
        assert_eq!(fluid.parts.sealed, keyed.parts.sealed, "{spec}");
        let error = fluid.write_cost_system / keyed.write_cost_system - 1.0;
        assert!(error.abs() < 0.02, "{spec}: {:+.2} %", 100.0 * error);
        let requested = fluid.parts.requested_bytes as f64 / keyed.parts.requested_bytes as f64;
        assert!((requested - 1.0).abs() < 0.001, "{spec}: {requested}");
    }
}

#[test]
fn what_cannot_be_counted_is_refused() {
    let not_fluid = |error: SimError, message: &str| {
        assert!(matches!(error, SimError::NotFluid { .. }), "{error}");
        assert!(error.to_string().contains(message), "{error}");
    };
    let error = FluidWorkload::new(&workload("ycsb(c, records=1, ops=0)"));
    assert!(error.is_ok(), "a load phase writes");
    let error = FluidWorkload::new(&trace(["1,get,a,0".to_owned()].into_iter())).unwrap_err();
    not_fluid(error, "writes nothing");
    let error = FluidWorkload::new(&trace(["1,put,a,x".to_owned()].into_iter())).unwrap_err();
    assert!(matches!(error, SimError::Workload(_)), "{error}");
    // Orders are entered in many districts, each in order.
    let input = FluidWorkload::new(&workload(GATHERED[3])).unwrap();
    let error = simulate_fluid(&policy("full"), &input, MEMTABLE_BYTES, &mut |_| {}).unwrap_err();
    not_fluid(error, "blocks");
}
