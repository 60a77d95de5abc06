use std::collections::BTreeSet;

use lsmith_workload::{Op, OpKind, Ranks, Workload};

use crate::{build, build_with, key, ops, refused, share};

const TRACE: &[u8] =
    b"timestamp,op,key,value_size\n1,put,b,5\n2,put,a,6\n3,get,b,0\n4,delete,b,0\n";

/// One of each kind, with all its keys in use.
const ALL: [&str; 17] = [
    "load(keys=3000)",
    "load(keys=300, order=sequential, value=0B)",
    "load(keys=3000, order=zipf)",
    "update(keys=2000)",
    "update(keys=2000, dist=zipf, order=sequential, skew=1)",
    "update(keys=2000, dist=uniform, share=0.1)",
    "churn(keys=100, ops=2k, deletes=0.25)",
    "churn(keys=100, ops=2k, ranges=0.1, span=7, expire=300)",
    "queue(keys=900, keep=100, purge=30)",
    "queue(keys=900, keep=0, purge=1)",
    "ycsb(a, value=10B)",
    "ycsb(d, records=500, ops=4k)",
    "ycsb(e, ops=500)",
    "mix(get=0.4, get_absent=0.3, scan=0.1, put=0.1, delete=0.1, keys=99, ops=4k)",
    "mix(get_absent=0.5, insert=0.5, keys=20, ops=900, dist=latest)",
    "trace(a.csv)",
    "trace(a.csv, ops=3)",
];

fn all() -> impl Iterator<Item = Workload> {
    ALL.iter().map(|text| build_with(text, TRACE).expect(text))
}

#[test]
fn the_same_seed_gives_the_same_stream() {
    for workload in all() {
        let first = ops(&workload);
        assert_eq!(first, ops(&workload), "{}", workload.spec());
        assert_eq!(first.len() as u64, workload.ops_max(), "{}", workload.spec());
        let again = build_with(&workload.spec().to_string(), TRACE).unwrap();
        assert_eq!(first, ops(&again), "{}", workload.spec());
    }
}

#[test]
fn another_seed_gives_another_stream() {
    for text in
        ["load(keys=99, order=zipf", "update(keys=99", "churn(keys=99", "ycsb(a", "mix(keys=99"]
    {
        let with_seed = |seed: u64| ops(&build(&format!("{text}, seed={seed})")));
        assert_ne!(with_seed(1), with_seed(2), "{text}");
    }
}

#[test]
fn canonical_spellings_are_canonical() {
    for workload in all() {
        let again = build_with(&workload.spec().to_string(), TRACE).unwrap();
        assert_eq!(again.spec(), workload.spec());
    }
    let spelled = |text: &str| build_with(text, TRACE).unwrap().spec().to_string();
    assert_eq!(spelled("load"), "load(keys=1M, value=1kB, order=hashed, seed=1)");
    assert_eq!(
        spelled("load(seed=7,bytes=4MiB,flushes=9,ops=5)"),
        "load(keys=1M, value=1kB, order=hashed, ops=5, bytes=4MiB, flushes=9, seed=7)"
    );
    assert_eq!(spelled("ycsb(A)"), "ycsb(a, records=1k, ops=1k, value=1kB, seed=1)");
    assert_eq!(spelled("trace(x/a.csv.gz)"), "trace(x/a.csv.gz, seed=1)");
    assert_eq!(
        spelled("update"),
        "update(keys=1M, ops=1500k, share=0.7, deletes=0, dist=latest, skew=0.99, value=1kB, \
         order=hashed, seed=1)"
    );
    assert_eq!(spelled("churn(keys=10)"), "churn(keys=10, ops=10, deletes=0, value=1kB, seed=1)");
    assert_eq!(
        spelled("uniform(keys=10, domain=99)"),
        "uniform(domain=99, keys=10, ops=10, deletes=0.5, value=100B, weigh=entries, seed=1)"
    );
    assert_eq!(
        spelled("normal(ops=5, weigh=records)"),
        "normal(sigma=0.005, omega=10k, domain=1G, keys=1M, ops=5, deletes=0.5, value=100B, \
         weigh=records, seed=1)"
    );
    assert_eq!(
        spelled("tpc(districts=5, deletes=0)"),
        "tpc(warehouses=100, districts=5, keys=1M, ops=1M, deletes=0, value=100B, \
         weigh=entries, seed=1)"
    );
}

#[test]
fn ranks_agree_with_sorting_the_keys() {
    for workload in all() {
        let keys: Vec<String> = (0..workload.items()).map(|item| key(&workload, item)).collect();
        let sorted: Vec<&String> = keys.iter().collect::<BTreeSet<_>>().into_iter().collect();
        let ranks = workload.ranks();
        for (item, key) in keys.iter().enumerate() {
            let place = sorted.binary_search(&key).unwrap();
            assert_eq!(ranks.rank(item as u64), place as u64, "{} {key}", workload.spec());
        }
    }
}

#[test]
fn items_are_bounded_tightly() {
    for workload in all() {
        let items: BTreeSet<u64> = ops(&workload).iter().map(|op| op.item).collect();
        let bound = workload.items();
        assert!(items.iter().all(|&item| item < bound), "{}", workload.spec());
        if !workload.spec().to_string().contains("zipf") {
            assert_eq!(items.len() as u64, bound, "{}", workload.spec());
        }
    }
}

#[test]
fn only_sequential_keys_need_no_table() {
    assert_eq!(build("load(keys=1k, order=sequential)").ranks(), Ranks::Identity);
    assert_eq!(build("churn(keys=1k)").ranks(), Ranks::Identity);
    assert_ne!(build("load(keys=1k)").ranks(), Ranks::Identity);
    assert_eq!(key(&build("load(keys=9, order=sequential)"), 8), "user00000000000000000008");
    assert_eq!(key(&build("churn(keys=100M)"), 1234), "00001234");
    assert_eq!(key(&build("churn(keys=100000001)"), 1234), "000001234");
}

#[test]
fn a_load_puts_each_key_once() {
    let load = build("load(keys=1k, value=64B)");
    let expected: Vec<Op> = (0..1000).map(|item| Op::put(item, 64)).collect();
    assert_eq!(ops(&load), expected);
    assert_eq!(load.load_ops(), 0);
    assert_eq!(ops(&build("load(keys=1k, ops=10)")).len(), 10);
    assert_eq!(ops(&build("load(keys=10, ops=1k)")).len(), 10);
}

#[test]
fn a_zipf_load_repeats_the_hot_keys() {
    let drawn = ops(&build("load(keys=100k, order=zipf)"));
    let total: f64 = (1..=100_000).map(|rank| f64::from(rank).powf(-0.99)).sum();
    let hottest = share(&drawn, |op| op.item == 0);
    assert!((hottest - 1.0 / total).abs() < 0.003, "{hottest}");
    let distinct: BTreeSet<u64> = drawn.iter().map(|op| op.item).collect();
    assert!((20_000..60_000).contains(&distinct.len()), "{}", distinct.len());
}

/// Returns the updates in the order of the stream, and the number of keys at the end. An update is
/// the age of its key, 0 for the newest, and the number of keys at that time.
fn updates(text: &str) -> (Vec<(u64, u64)>, u64) {
    let workload = build(text);
    let mut keys = 0;
    let mut updates = Vec::new();
    for op in ops(&workload) {
        assert_eq!(op.kind, OpKind::Put);
        if op.item == keys {
            keys += 1;
        } else {
            assert!(op.item < keys, "keys are inserted in order");
            updates.push((keys - 1 - op.item, keys));
        }
    }
    assert_eq!(workload.items(), keys);
    (updates, keys)
}

#[test]
fn a_share_of_the_operations_updates() {
    let (updated, keys) = updates("update(keys=100k, share=0.7)");
    assert_eq!(updated.len() as u64 + keys, 150_000);
    assert!(keys.abs_diff(45_000) < 600, "{keys}");
    assert_eq!(updates("update(keys=10, share=0)"), (vec![], 15));
    assert_eq!(updates("update(keys=10, share=1)").1, 1);
    assert_eq!(updates("update(keys=10, ops=0)").1, 0);
}

#[test]
fn updates_meet_the_keys_they_should() {
    // By the weights of 15 k keys on average, a fourteenth of all draws takes the hottest key.
    let hot = |text: &str, is: fn(&(u64, u64)) -> bool| {
        let (updated, _) = updates(text);
        updated.iter().filter(|update| is(update)).count() as f64 / updated.len() as f64
    };
    let newest = hot("update(keys=100k)", |&(age, _)| age == 0);
    let oldest = hot("update(keys=100k, dist=zipf)", |&(age, keys)| age == keys - 1);
    for hottest in [newest, oldest] {
        assert!((0.08..0.11).contains(&hottest), "{hottest}");
    }
    let newer_half = hot("update(keys=100k, dist=uniform)", |&(age, keys)| age < keys / 2);
    assert!((newer_half - 0.5).abs() < 0.01, "{newer_half}");
}

#[test]
fn a_share_of_the_updates_deletes() {
    let plain = ops(&build("update(keys=100k, share=0.7)"));
    let deleting = ops(&build("update(keys=100k, share=0.7, deletes=0.3)"));
    // The same keys in the same order; some are deleted.
    assert_eq!(plain.len(), deleting.len());
    assert!(plain.iter().zip(&deleting).all(|(put, op)| put.item == op.item));
    let deletes = share(&deleting, |op| *op == Op::delete(op.item));
    assert!((deletes - 0.7 * 0.3).abs() < 0.005, "{deletes}");
    let all = ops(&build("update(keys=10k, share=0.7, deletes=1)"));
    let puts: Vec<u64> = all.iter().filter(|op| op.writes_value()).map(|op| op.item).collect();
    assert!(puts.iter().enumerate().all(|(index, item)| *item == index as u64), "only new keys");
}

#[test]
fn a_share_of_each_value_is_zeros() {
    let zeros = |spec: &str, bytes: usize| {
        let mut value = vec![1; bytes];
        build(spec).value(7, 3, &mut value);
        value.iter().rev().take_while(|byte| **byte == 0).count()
    };
    assert_eq!(zeros("load(compressible=0.25)", 1000), 250);
    assert_eq!(zeros("load(compressible=1)", 10), 10);
    assert!(zeros("load", 1000) < 3);
    assert_eq!(zeros("load(compressible=0.5)", 0), 0);
    // What is not zeros is as without.
    let value = |spec: &str| {
        let mut value = [0; 64];
        build(spec).value(7, 3, &mut value);
        value
    };
    assert_eq!(value("load")[..32], value("load(compressible=0.5)")[..32]);
    let spelled = "churn(keys=10, ops=10, deletes=0, value=1kB, compressible=0.5, seed=1)";
    assert_eq!(build("churn(keys=10, compressible=0.5)").spec().to_string(), spelled);
    assert!(refused("load(compressible=2)").contains("compressible = 2 is out of range"));
}

/// Keys of one length, in the order that they have without filling.
#[test]
fn short_keys_are_filled_up() {
    for spec in ["load(keys=300)", "churn(keys=300)", "uniform(keys=300, domain=600)"] {
        let bare = build(spec);
        let filled = build(&spec.replace(")", ", key_bytes=40B)"));
        let mut key = Vec::new();
        let mut found: Vec<Vec<u8>> = vec![Vec::new(); bare.items() as usize];
        for item in 0..bare.items() {
            filled.key(item, &mut key);
            assert_eq!((key.len(), filled.key_bytes(item)), (40, 40), "{spec}");
            found[filled.ranks().rank(item) as usize].clone_from(&key);
            let filled_up = key.clone();
            bare.key(item, &mut key);
            assert!(filled_up.starts_with(&key) && filled_up[key.len()..].iter().all(|b| *b == 0));
        }
        assert!(found.windows(2).all(|pair| pair[0] < pair[1]), "{spec}: ranks are the order");
    }
    assert_eq!(build("load(key_bytes=3B)").key_bytes(0), build("load").key_bytes(0));
    let spelled = "churn(keys=10, ops=10, deletes=0, value=1kB, key_bytes=40B, seed=1)";
    assert_eq!(build("churn(keys=10, key_bytes=40B)").spec().to_string(), spelled);
    assert!(refused("load(key_bytes=64KiB)").contains("key_bytes = 64KiB is out of range"));
}

#[test]
fn churn_covers_its_keys_evenly() {
    let drawn = ops(&build("churn(keys=100, ops=100k, deletes=0.25, value=5B)"));
    let deletes = share(&drawn, |op| *op == Op::delete(op.item));
    assert!((deletes - 0.25).abs() < 0.006, "{deletes}");
    assert!(drawn.iter().all(|op| *op == Op::delete(op.item) || *op == Op::put(op.item, 5)));
    let mut counts = [0u32; 100];
    drawn.iter().for_each(|op| counts[op.item as usize] += 1);
    // 99 degrees of freedom: chi squared is over 149 once in a thousand.
    let chi: f64 = counts.iter().map(|&n| (f64::from(n) - 1e3).powi(2) / 1e3).sum();
    assert!(chi < 149.0, "{chi}");
}

#[test]
fn wrong_spellings_are_named() {
    assert_eq!(refused("laod"), "unknown workload `laod`; did you mean `load`?");
    assert_eq!(
        refused("sleep"),
        "unknown workload `sleep`; expected one of: load, ycsb, mix, update, churn, queue, \
         uniform, normal, tpc, trace"
    );
    assert_eq!(refused("load(key=5)"), "unknown parameter `key` of `load`; did you mean `keys`?");
    assert_eq!(refused("load(sead=5)"), "unknown parameter `sead` of `load`; did you mean `seed`?");
    assert_eq!(refused("load(keys=0)"), "keys = 0 is out of range: expected 1 to 4294967295");
    assert_eq!(refused("load(value=2GiB)"), "value = 2GiB is out of range: expected 0B to 256MiB");
    assert_eq!(
        refused("update(dist=newest)"),
        "unknown value `newest` of `dist`; expected one of: latest, zipf, uniform"
    );
    assert_eq!(refused("update(share=2)"), "share = 2 is out of range: expected 0 to 1");
    assert_eq!(
        refused("uniform(5)"),
        "`uniform` takes only parameters of the form name=value, found `5`"
    );
    assert_eq!(refused("trace"), "`trace` needs a file name, as in trace(FILE)");
    assert_eq!(refused("ycsb"), "`ycsb` needs a property file or one of a to f, as in ycsb(a)");
    assert_eq!(refused("trace(missing)"), "missing: no such file");
    assert_eq!(refused("ycsb(missing)"), "missing: no such file");
}
