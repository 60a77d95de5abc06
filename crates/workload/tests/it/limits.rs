use lsmith_workload::LiveBytes;

use crate::{build, build_with, ops};

#[test]
fn bytes_end_the_stream_once_written() {
    // Keys of 24 bytes: each put writes 124 bytes, so the ninth reaches 1000.
    let load = build("load(keys=1k, value=100B, order=sequential, bytes=1000B)");
    assert_eq!(ops(&load).len(), 9);
    let load = build("load(keys=1k, value=100B, order=sequential, bytes=992B)");
    assert_eq!(ops(&load).len(), 8);
    let load = build("load(keys=5, value=100B, order=sequential, bytes=1GB)");
    assert_eq!(ops(&load).len(), 5);
}

#[test]
fn reads_write_nothing_and_deletes_their_key() {
    let read_only = build("ycsb(c, records=1, ops=50, bytes=1500B)");
    assert_eq!(ops(&read_only).len(), 51);
    let deletes = build("churn(keys=10, ops=100, deletes=1, bytes=40B)");
    assert_eq!(ops(&deletes).len(), 5);
}

#[test]
fn flushes_are_left_to_the_driver() {
    let load = build("load(keys=5, flushes=3)");
    assert_eq!(load.limit_flushes(), Some(3));
    assert_eq!(ops(&load).len(), 5);
    assert_eq!(build("load(keys=5)").limit_flushes(), None);
}

#[test]
fn a_limit_is_set_as_if_it_were_spelled() {
    for (spec, limited) in [
        ("load(keys=5)", "load(keys=5, flushes=2k)"),
        ("load(keys=5, flushes=3)", "load(keys=5, flushes=2k)"),
        (
            "churn(keys=5, ops=9, bytes=1GB, key_bytes=64B, compressible=0.5, expire=7, seed=2)",
            "churn(keys=5, ops=9, bytes=1GB, key_bytes=64B, compressible=0.5, expire=7, seed=2, \
             flushes=2k)",
        ),
    ] {
        let (found, expected) = (build(spec).limited_to(2000), build(limited));
        assert_eq!(found.spec(), expected.spec());
        assert_eq!(found.limit_flushes(), Some(2000));
        assert_eq!(ops(&found), ops(&expected));
    }
    let shares = [1.0, 0.5];
    let group = build("load(keys=100)").in_group(&shares).unwrap().limited_to(4);
    assert_eq!(group.group_shares(), shares);
}

#[test]
fn live_bytes_follow_a_workload() {
    let trace = b"timestamp,op,key,value_size\n1,put,bb,5\n2,put,a,6\n3,put,bb,7\n4,delete,a,0\n";
    let workload = build_with("trace(t)", trace).unwrap();
    let mut live = LiveBytes::new();
    let series: Vec<_> = ops(&workload)
        .iter()
        .map(|op| {
            live.observe(op, workload.key_bytes(op.item));
            (live.bytes(), live.entries())
        })
        .collect();
    assert_eq!(series, [(15, 1), (30, 2), (32, 2), (17, 1)]);
}
