use std::collections::BTreeSet;

use lsmith_workload::{Op, OpKind};

use crate::{build, key, ops, refused, share};

/// The operations of the run phase of a `mix` of 1000 keys.
fn run(params: &str) -> Vec<Op> {
    let workload = build(&format!("mix({params}, keys=1k, ops=50k, value=50B)"));
    assert_eq!(workload.load_ops(), 1000);
    let mut ops = ops(&workload);
    let run = ops.split_off(1000);
    let load: Vec<Op> = (0..1000).map(|item| Op::put(item, 50)).collect();
    assert_eq!(ops, load);
    assert_eq!(run.len(), 50_000);
    run
}

#[test]
fn operations_have_their_shares() {
    let run = run("get=0.4, get_absent=0.2, scan=0.05, put=0.15, insert=0.12, delete=0.08");
    let written = 1000 + run.iter().filter(|op| op.writes_value() && op.item >= 1000).count();
    let written = written as u64;
    let is_read = |op: &Op| op.kind == OpKind::Read;
    for (name, expected, found) in [
        ("get", 0.4, share(&run, |op| is_read(op) && op.item < written)),
        ("get_absent", 0.2, share(&run, |op| is_read(op) && op.item >= written)),
        ("scan", 0.05, share(&run, |op| op.kind == OpKind::Scan)),
        ("put", 0.15, share(&run, |op| op.kind == OpKind::Put && op.item < 1000)),
        ("insert", 0.12, share(&run, |op| op.kind == OpKind::Put && op.item >= 1000)),
        ("delete", 0.08, share(&run, |op| op.kind == OpKind::Delete)),
    ] {
        // Four standard deviations of a share of 50 k draws are below 0.009.
        assert!((found - expected).abs() < 0.009, "{name}: {found}");
    }
    let default = self::run("seed=1");
    assert!((share(&default, is_read) - 0.5).abs() < 0.009);
    assert!((share(&default, Op::writes_value) - 0.5).abs() < 0.009);
}

#[test]
fn absent_keys_are_never_written_and_lie_among_the_others() {
    let workload = build("mix(get=0.3, get_absent=0.3, put=0.2, insert=0.2, keys=1k, ops=20k)");
    let ops = ops(&workload);
    let written: BTreeSet<u64> =
        ops.iter().filter(|op| op.writes_value()).map(|op| op.item).collect();
    let reads = || ops.iter().filter(|op| op.kind == OpKind::Read).map(|op| op.item);
    let absent: BTreeSet<u64> = reads().filter(|item| !written.contains(item)).collect();
    let misses = reads().filter(|item| absent.contains(item)).count();
    assert!((misses as f64 / 20_000.0 - 0.3).abs() < 0.02, "{misses}");
    assert!((950..=1000).contains(&absent.len()), "any of 1000 keys: {}", absent.len());
    assert_eq!(workload.items(), written.len() as u64 + 1000);
    // Half as many absent keys as written ones on either side of the middle.
    let keys: BTreeSet<String> = written.iter().map(|item| key(&workload, *item)).collect();
    let middle = keys.iter().nth(keys.len() / 2).unwrap();
    let below = absent.iter().filter(|item| key(&workload, **item) < *middle).count();
    assert!((400..600).contains(&below), "{below}");
    assert!(absent.iter().all(|item| !keys.contains(&key(&workload, *item))));
}

#[test]
fn keys_are_those_of_the_distribution() {
    let gets = |dist: &str| run(&format!("get=1, dist={dist}"));
    let hottest = |run: &[Op]| {
        let mut counts = [0; 1000];
        run.iter().for_each(|op| counts[op.item as usize] += 1);
        let most = counts.iter().max().unwrap();
        (counts.iter().position(|count| count == most).unwrap(), f64::from(*most) / 50_000.0)
    };
    assert!(hottest(&gets("uniform")).1 < 0.002);
    // YCSB scatters rank 0 of ten billion, whose weight is 1 / 26.47.
    let (item, part) = hottest(&gets("zipf"));
    assert!(item != 999 && (part - 1.0 / 26.47).abs() < 0.005, "{item} {part}");
    let (item, part) = hottest(&gets("latest"));
    assert!(item == 999 && (0.10..0.16).contains(&part), "{item} {part}");
    let (_, flat) = hottest(&gets("latest, skew=0.5"));
    assert!(flat < part / 2.0, "{flat}");
}

#[test]
fn scans_have_the_length_that_is_asked_for() {
    let lengths = |params: &str| -> BTreeSet<u32> {
        run(&format!("scan=1{params}")).iter().map(|op| op.items).collect()
    };
    assert_eq!(lengths(""), BTreeSet::from([50]));
    assert_eq!(lengths(", scan_length=7"), BTreeSet::from([7]));
    let workload = build("mix(scan=0.25, get=0.5, get_absent=0.25, scan_length=7)");
    assert_eq!((workload.scan_items(), workload.scan_share()), (Some(7.0), 0.25));
    assert_eq!(build("mix").scan_items(), None);
}

#[test]
fn spelling_has_what_was_chosen() {
    let spelled = |text: &str| build(text).spec().to_string();
    assert_eq!(
        spelled("mix"),
        "mix(get=0.5, put=0.5, keys=1M, ops=1M, dist=uniform, value=1kB, seed=1)"
    );
    assert_eq!(
        spelled("mix(put=0.9, scan=0.1, keys=10, dist=zipf)"),
        "mix(scan=0.1, put=0.9, keys=10, ops=10, dist=zipf, skew=0.99, scan_length=50, \
         value=1kB, seed=1)"
    );
}

#[test]
fn shares_that_do_not_add_up_are_refused() {
    assert_eq!(
        refused("mix(get=0.6, get_absent=0.2, put=0.1)"),
        "the shares of `mix` add up to 0.9, not to 1 (get=0.6, get_absent=0.2, put=0.1): add 0.1"
    );
    assert_eq!(
        refused("mix(get=0.7, put=0.7)"),
        "the shares of `mix` add up to 1.4, not to 1 (get=0.7, put=0.7): take off 0.4"
    );
    assert_eq!(
        refused("mix(get=0)"),
        "the shares of `mix` add up to 0, not to 1 (none is above 0): add 1"
    );
    // Sums that only rounding keeps from 1.
    build("mix(get=0.7, get_absent=0.1, scan=0.1, put=0.1)");
    assert_eq!(refused("mix(get=1.5)"), "get = 1.5 is out of range: expected 0 to 1");
    assert!(refused("mix(get=60%)").starts_with("get = 60%"), "{}", refused("mix(get=60%)"));
    assert!(refused("mix(gets=1)").contains("did you mean `get`?"));
    assert!(refused("mix(keys=4G, get_absent=1)").contains("are more than 4294967295"));
}
