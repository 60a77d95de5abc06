//! The workloads of Thonangi & Yang.

use std::collections::BTreeSet;

use lsmith_workload::{LiveBytes, Op, OpKind, Ranks, Workload};

use crate::{build, ops, refused, share};

/// Each workload, with its records in a small part of the key space, in most of it, and in all.
const ALL: [&str; 9] = [
    "uniform(keys=2k, ops=6k)",
    "uniform(keys=900, ops=6k, domain=1k)",
    "uniform(keys=0, ops=500, deletes=0, domain=500)",
    "normal(keys=2k, ops=6k)",
    "normal(keys=2k, ops=6k, sigma=0.0000001, omega=500)",
    "normal(keys=900, ops=6k, sigma=0, omega=100, domain=1k, deletes=0.3)",
    "tpc(keys=2k, ops=6k, warehouses=5)",
    "tpc(keys=100, ops=6k, deletes=0.9)",
    "tpc(keys=20, ops=200, deletes=0, warehouses=10000, districts=100)",
];

fn run(workload: &Workload) -> Vec<Op> {
    ops(workload).split_off(workload.load_ops() as usize)
}

fn items(ops: &[Op], kind: OpKind) -> Vec<u64> {
    ops.iter().filter(|op| op.kind == kind).map(|op| op.item).collect()
}

/// Chi squared of counts that should be equal.
fn unevenness(counts: &[u32]) -> f64 {
    let mean = f64::from(counts.iter().sum::<u32>()) / counts.len() as f64;
    counts.iter().map(|&n| (f64::from(n) - mean).powi(2) / mean).sum()
}

#[test]
fn absent_keys_are_inserted_and_present_ones_removed() {
    for text in ALL {
        let workload = build(text);
        let mut present = BTreeSet::new();
        for (made, op) in ops(&workload).iter().enumerate() {
            assert!(op.item < workload.items(), "{text}: {op:?}");
            match op.kind {
                OpKind::Insert => assert!(present.insert(op.item), "{text}: {op:?} is present"),
                OpKind::Remove => assert!(present.remove(&op.item), "{text}: {op:?} is absent"),
                other => panic!("{text}: {other:?}"),
            }
            let grows = (made as u64) < workload.load_ops();
            assert!(!grows || op.kind == OpKind::Insert, "{text}: growth removes");
            assert_eq!(op.value_bytes, if op.deletes() { 0 } else { 100 });
        }
    }
}

#[test]
fn streams_start_again_the_same_and_end_where_they_say() {
    for text in ALL {
        let workload = build(text);
        let first = ops(&workload);
        assert_eq!(first, ops(&workload), "{text}");
        assert_eq!(first.len() as u64, workload.ops_max(), "{text}");
        let again = build(&workload.spec().to_string());
        assert_eq!((again.spec(), &ops(&again)), (workload.spec(), &first), "{text}");
        let other = build(&text.replace(')', ", seed=2)"));
        assert_ne!(ops(&other), first, "{text}");
    }
    // Each insert writes 4 + 100 bytes, each remove 4.
    assert_eq!(ops(&build("uniform(keys=100, ops=100, bytes=1040B)")).len(), 10);
    assert_eq!(build("tpc(flushes=7)").limit_flushes(), Some(7));
}

#[test]
fn keys_are_numbers_in_order() {
    for text in ["uniform", "normal", "tpc"] {
        let workload = build(text);
        assert_eq!(workload.ranks(), Ranks::Identity);
        let mut key = b"left over".to_vec();
        workload.key(0x0102_0304, &mut key);
        assert_eq!(key, [1, 2, 3, 4]);
        assert_eq!(workload.key_bytes(9), 4);
    }
    assert_eq!(build("uniform").items(), 1_000_000_000);
    assert_eq!(build("tpc").items(), u64::from(u32::MAX) / 1000 * 1000);
}

#[test]
fn growth_is_the_load_phase() {
    for text in ["uniform(keys=3k, ops=5k)", "normal(keys=3k, ops=5k)", "tpc(keys=3k, ops=5k)"] {
        let workload = build(text);
        assert_eq!((workload.load_ops(), workload.ops_max()), (3000, 8000));
        assert_eq!(items(&ops(&workload)[..3000], OpKind::Insert).len(), 3000);
    }
}

#[test]
fn the_number_of_records_stays_at_one_half() {
    for text in [
        "uniform(keys=50k, ops=400k)",
        "normal(keys=50k, ops=400k)",
        "tpc(keys=50k, ops=400k)",
        "tpc(keys=50k, ops=400k, warehouses=3, districts=1)",
    ] {
        let mut records = 0_i64;
        // A random walk of 400 k steps, or of 220 k, one in eleven of them ten long: its standard
        // deviation is 632, or 1483.
        for op in ops(&build(text)) {
            records += if op.deletes() { -1 } else { 1 };
        }
        assert!((45_000..55_000).contains(&records), "{text}: {records}");
    }
}

#[test]
fn deletes_are_a_share_of_the_requests() {
    for deletes in [0.0, 0.1, 0.4, 0.7] {
        for name in ["uniform", "normal", "tpc"] {
            let run = run(&build(&format!("{name}(keys=100k, ops=100k, deletes={deletes})")));
            let found = share(&run, Op::deletes);
            // Ten at a time are four standard deviations of 0.02 at most.
            assert!((found - deletes).abs() < 0.02, "{name}, {deletes}: {found}");
        }
    }
}

#[test]
fn nothing_to_remove_and_no_room_to_insert() {
    let run_of = |text| run(&build(text));
    let emptied = run_of("uniform(keys=3, ops=7, deletes=1)");
    let removes: Vec<bool> = emptied.iter().map(Op::deletes).collect();
    assert_eq!(removes, [true, true, true, false, true, false, true]);
    let full = run_of("normal(keys=3, ops=100, deletes=0.000001, domain=3)");
    assert!(full.iter().zip([true, false].iter().cycle()).all(|(op, &out)| op.deletes() == out));
    let few = run_of("tpc(keys=3, ops=18, deletes=1, warehouses=1, districts=1)");
    assert_eq!(items(&few, OpKind::Insert), [3, 4, 5, 6, 7, 8, 9, 10]);
    assert_eq!(items(&few[7..17], OpKind::Remove), (0..10).collect::<Vec<_>>());
    let one_each = run_of("tpc(keys=65535, ops=5, deletes=0, warehouses=1, districts=1)");
    assert_eq!(items(&one_each, OpKind::Insert), [65535, 65536, 65537, 65538, 65539]);
}

#[test]
fn uniform_inserts_and_removes_evenly() {
    let run = run(&build("uniform(keys=50k, ops=200k)"));
    let mut sum = 0;
    for kind in [OpKind::Insert, OpKind::Remove] {
        let mut counts = [0; 100];
        let drawn = items(&run, kind);
        drawn.iter().for_each(|item| counts[(item / 10_000_000) as usize] += 1);
        // 99 degrees of freedom: chi squared is over 149 once in a thousand.
        assert!(unevenness(&counts) < 149.0, "{kind:?}: {}", unevenness(&counts));
        sum += drawn.len();
    }
    assert_eq!(sum, 200_000);
}

#[test]
fn uniform_stays_even_in_a_crowded_domain() {
    // Nine tenths are present, so removed keys are inserted again and again.
    let run = run(&build("uniform(keys=900, ops=200k, domain=1k)"));
    let mut counts = [0; 1000];
    items(&run, OpKind::Insert).iter().for_each(|&item| counts[item as usize] += 1);
    // 999 degrees of freedom: chi squared is over 1143 once in a thousand. A key must leave
    // before it comes again, which evens the counts out.
    assert!((400.0..1143.0).contains(&unevenness(&counts)), "{}", unevenness(&counts));
}

#[test]
fn removes_don_t_look_at_age() {
    // Counts the places of removed records among 1000 records in order of insertion.
    let mut order = Vec::new();
    let mut counts = [0; 20];
    for op in ops(&build("normal(keys=1k, ops=60k, domain=1M)")) {
        if op.deletes() {
            let place = order.iter().position(|&item| item == op.item).expect("it is present");
            counts[place * 20 / order.len()] += 1;
            order.remove(place);
        } else {
            order.push(op.item);
        }
    }
    // 19 degrees of freedom: chi squared is over 43.8 once in a thousand.
    assert!(unevenness(&counts) < 43.8, "{counts:?}");
}

#[test]
fn normal_follows_a_mean_that_moves() {
    let workload = build("normal(keys=400k, ops=0, sigma=0.001, omega=10k)");
    let mut places = Vec::new();
    for part in items(&ops(&workload), OpKind::Insert).chunks(10_000) {
        let mean = part.iter().sum::<u64>() as f64 / 1e4;
        let square = part.iter().map(|&item| (item as f64 - mean).powi(2)).sum::<f64>();
        let deviation = (square / 1e4).sqrt();
        // One standard deviation is 0.1 % of 10^9, unless an end of the domain cuts some off.
        let inside = (4e6..996e6).contains(&mean);
        assert!(!inside || (deviation - 1e6).abs() < 3e4, "around {mean}: {deviation}");
        places.push(mean);
    }
    let far = places.windows(2).filter(|pair| (pair[0] - pair[1]).abs() > 1e7).count();
    assert!(far >= 35, "{far} of 39 moves");
    let mut counts = [0; 4];
    places.iter().for_each(|place| counts[(place / 2.5e8) as usize] += 1);
    // Three degrees of freedom: chi squared is over 16.3 once in a thousand.
    assert!(unevenness(&counts) < 16.3, "{counts:?}");
}

#[test]
fn normal_moves_after_inserts_not_removes() {
    let workload = build("normal(keys=0, ops=40k, sigma=0.00001, omega=1k, deletes=0.4)");
    let inserted = items(&run(&workload), OpKind::Insert);
    for part in inserted.chunks(1000) {
        let width = part.iter().max().unwrap() - part.iter().min().unwrap();
        // One standard deviation is 10^4.
        assert!(width < 120_000, "{width}");
    }
}

#[test]
fn normal_fills_crowded_places_outwards() {
    // 20 k keys around a single one: most of them are as near as can be.
    let workload = build("normal(keys=20k, ops=0, sigma=0, omega=1M)");
    let inserted = items(&ops(&workload), OpKind::Insert);
    let mut distances: Vec<u64> = inserted.iter().map(|item| item.abs_diff(inserted[0])).collect();
    distances.sort_unstable();
    assert!(distances[10_000] < 10_000, "{}", distances[10_000]);
    assert!(distances[19_999] < 1_000_000, "{}", distances[19_999]);
}

#[test]
fn tpc_takes_the_ten_oldest_orders_of_a_district() {
    let workload = build("tpc(keys=20k, ops=300k, warehouses=5, districts=4)");
    let orders = u64::from(u32::MAX) / 20;
    let mut present = vec![0..0; 20];
    let mut inserts = [0; 20];
    let mut deliveries = [0; 20];
    let mut stream = ops(&workload).into_iter().peekable();
    while let Some(op) = stream.next() {
        let district = (op.item / orders) as usize;
        if op.kind == OpKind::Insert {
            inserts[district] += 1;
            assert_eq!(op.item % orders, present[district].end, "the next order id");
            present[district].end += 1;
            continue;
        }
        deliveries[district] += 1;
        let first = present[district].start;
        assert_eq!(op.item % orders, first, "the oldest order");
        let rest = stream.by_ref().take(9).map(|op| (op.kind, op.item));
        let oldest =
            (1..10).map(|order| (OpKind::Remove, district as u64 * orders + first + order));
        let (rest, oldest): (Vec<_>, Vec<_>) = (rest.collect(), oldest.collect());
        assert!(rest == oldest || stream.peek().is_none(), "ten go together: {rest:?}");
        present[district].start += 10;
    }
    // 19 degrees of freedom: chi squared is over 43.8 once in a thousand.
    assert!(unevenness(&inserts) < 43.8, "{inserts:?}");
    assert!(unevenness(&deliveries) < 43.8, "{deliveries:?}");
    let share = f64::from(deliveries.iter().sum::<u32>())
        / f64::from(inserts.iter().sum::<u32>() - 20_000 + deliveries.iter().sum::<u32>());
    assert!((share - 1.0 / 11.0).abs() < 0.006, "{share} of the transactions");
}

#[test]
fn districts_lie_side_by_side() {
    let workload = build("tpc(keys=5k, ops=0, warehouses=10000, districts=100)");
    let orders = u64::from(u32::MAX) / 1_000_000;
    assert_eq!(workload.items(), orders * 1_000_000);
    assert!(items(&ops(&workload), OpKind::Insert).iter().all(|item| item % orders < 10));
}

#[test]
fn removes_weigh_as_much_as_they_should() {
    for name in ["uniform", "normal", "tpc"] {
        let of = |weigh: &str| {
            let text = format!("{name}(keys=500, ops=2k, value=60B, weigh={weigh})");
            let mut live = LiveBytes::new();
            let mut user_bytes = 0;
            let ops = ops(&build(&text));
            for op in &ops {
                live.observe(op, 4);
                user_bytes += op.user_bytes(4);
            }
            let removes = ops.iter().filter(|op| op.deletes()).count() as u64;
            assert_eq!(live.entries(), 2500 - 2 * removes);
            assert_eq!(live.bytes(), live.entries() * 72);
            (user_bytes, removes)
        };
        let (entries, removes) = of("entries");
        assert_eq!(entries, 2500 * 64 - removes * 60);
        assert_eq!(of("records"), (2500 * 64, removes));
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    assert_eq!(
        refused("uniform(domain=1k, keys=2k)"),
        "2000 records don't fit into a domain of 1000 keys"
    );
    assert_eq!(
        refused("normal(domain=1k, keys=600, ops=600, deletes=0)"),
        "1200 records don't fit into a domain of 1000 keys"
    );
    assert_eq!(
        refused("tpc(keys=4G, ops=1G)"),
        "5000000000 operations may need more than the 4294967000 order ids"
    );
    assert_eq!(refused("normal(sigma=1.5)"), "sigma = 1.5 is out of range: expected 0 to 1");
    assert_eq!(
        refused("uniform(weigh=record)"),
        "unknown value `record` of `weigh`; did you mean `records`?"
    );
    assert_eq!(
        refused("uniform(sigma=0.1)"),
        "unknown parameter `sigma` of `uniform`; expected one of: domain, keys, ops, deletes, \
         value, weigh, bytes, flushes, key_bytes, compressible, expire, seed"
    );
}
