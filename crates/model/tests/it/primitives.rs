//! The arithmetic of sizes: what must hold of any popularity.

use lsmith_model::{EntryShape, ModelError, Popularity};
use proptest::prelude::*;

fn near(found: f64, expected: f64, tolerance: f64) {
    let error = (found - expected).abs();
    assert!(error <= tolerance * expected.abs(), "{found} instead of {expected}");
}

fn popularity() -> impl Strategy<Value = Popularity> {
    let zipf = (1_u64..2_000_000_000, 0.0..=1.6)
        .prop_map(|(keys, skew)| Popularity::zipf(keys, skew).unwrap());
    let uniform = (1_u64..2_000_000_000).prop_map(|keys| Popularity::uniform(keys).unwrap());
    let measured = prop::collection::vec((1_u64..100_000, 1_u64..1_000_000), 1..30)
        .prop_map(|histogram| Popularity::from_histogram(&histogram).unwrap());
    prop_oneof![zipf, uniform, measured]
}

/// Requests from a part of one to many per key.
fn requests() -> impl Strategy<Value = f64> {
    (-2.0..24.0_f64).prop_map(f64::exp)
}

proptest! {
    #[test]
    fn unique_rises_and_never_exceeds_requests(
        popularity in popularity(),
        requests in requests(),
        more in 1e-6..10.0_f64,
    ) {
        let found = popularity.unique(requests);
        prop_assert!((0.0..=requests).contains(&found));
        prop_assert!(found <= popularity.size_max());
        let greater = popularity.unique(requests * (1.0 + more));
        // Where all keys are there already, nothing is left to rise.
        prop_assert!(greater > found || popularity.size_max() - found < found * 1e-9);
        prop_assert!(greater >= found);
        // Later requests find fewer new keys.
        prop_assert!(greater - found <= requests * more * (1.0 + 1e-9));
    }

    #[test]
    fn the_inverse_inverts(popularity in popularity(), share in 1e-9..0.999_999_f64) {
        let size = share * popularity.size_max();
        let requests = popularity.inverse(size);
        prop_assert!(requests >= size * (1.0 - 1e-12));
        near(popularity.unique(requests), size, 1e-9);
        let again = popularity.inverse(popularity.unique(requests));
        near(again, requests, 1e-6);
    }

    #[test]
    fn an_interval_gives_its_size_back(popularity in popularity(), share in 1e-9..0.999_f64) {
        let size = share * popularity.size_max();
        let requests = popularity.interval(size);
        near(popularity.mean_unique(requests), size, 1e-9);
        prop_assert!(requests >= popularity.inverse(size));
        // By definition: the mean over places of what they have gathered since the sweep.
        let places = 2000;
        let place = |index: i32| (f64::from(index) + 0.5) / f64::from(places);
        let sum: f64 = (0..places).map(|index| popularity.unique(place(index) * requests)).sum();
        near(sum / f64::from(places), size, 2e-3);
    }

    #[test]
    fn merge_knows_no_order_and_no_grouping(
        popularity in popularity(),
        shares in prop::array::uniform3(1e-6..0.95_f64),
    ) {
        let [a, b, c] = shares.map(|share| share * popularity.size_max());
        let all = popularity.merge(&[a, b, c]);
        near(popularity.merge(&[c, a, b]), all, 1e-9);
        near(popularity.merge(&[popularity.merge(&[a, b]), c]), all, 1e-6);
        near(popularity.merge(&[a, popularity.merge(&[b, c])]), all, 1e-6);
        prop_assert!(all <= a + b + c + 1e-6);
        prop_assert!(all >= a.max(b).max(c) * (1.0 - 1e-9));
        near(popularity.merge(&[a]), a, 1e-9);
    }

    #[test]
    fn more_skew_means_fewer_unique_keys(
        keys in 2_u64..1_000_000_000,
        skew in 0.0..1.5_f64,
        more in 0.05..0.1_f64,
        requests in requests(),
    ) {
        let flat = Popularity::zipf(keys, skew).unwrap();
        let steep = Popularity::zipf(keys, skew + more).unwrap();
        let flat = flat.unique(requests);
        let steep = steep.unique(requests);
        prop_assert!(steep <= flat * (1.0 + 1e-3), "{flat} {steep}");
    }
}

#[test]
fn classes_stand_for_every_key() {
    // Against the sum over all keys, one by one: the classes are off by less than a thousandth.
    for skew in [0.3, 0.8, 0.99, 1.2, 1.6] {
        let keys = 20_000_u32;
        let weights: Vec<f64> = (1..=keys).map(|rank| f64::from(rank).powf(-skew)).collect();
        let total: f64 = weights.iter().sum();
        let popularity = Popularity::zipf(u64::from(keys), skew).unwrap();
        for requests in [10.0, 1e3, 1e4, 1e5, 1e6] {
            let missed = |weight: &f64| (1.0 - weight / total).powf(requests);
            let exact: f64 = weights.iter().map(|weight| 1.0 - missed(weight)).sum();
            near(popularity.unique(requests), exact, 1e-3);
        }
    }
}

#[test]
fn all_keys_take_for_ever() {
    let popularity = Popularity::zipf(1_000_000, 0.99).unwrap();
    for search in [Popularity::inverse, Popularity::interval] {
        assert_eq!(search(&popularity, 1e6), f64::INFINITY);
        assert_eq!(search(&popularity, 2e6), f64::INFINITY);
        assert!(search(&popularity, 999_999.0).is_finite());
        assert_eq!(search(&popularity, 0.0), 0.0);
        assert_eq!(search(&popularity, -1.0), 0.0);
    }
    assert_eq!(popularity.unique(f64::INFINITY), 1e6);
    assert_eq!(popularity.mean_unique(f64::INFINITY), 1e6);
    assert_eq!(popularity.merge(&[1e6, 5.0]), 1e6);
    assert_eq!(popularity.merge(&[]), 0.0);
}

#[test]
fn a_single_key_is_there_after_one_request() {
    for popularity in [Popularity::uniform(1).unwrap(), Popularity::zipf(1, 1.0).unwrap()] {
        assert_eq!(popularity.unique(0.5), 0.5);
        assert_eq!(popularity.unique(1.0), 1.0);
        assert_eq!(popularity.unique(7.0), 1.0);
        assert_eq!(popularity.inverse(1.0), 1.0);
        assert_eq!(popularity.inverse(0.25), 0.25);
    }
}

#[test]
fn a_small_level_is_swept_in_twice_its_requests() {
    let popularity = Popularity::uniform(100_000_000).unwrap();
    near(popularity.interval(10_000.0), 2.0 * popularity.inverse(10_000.0), 1e-3);
}

#[test]
fn requests_that_share_no_key() {
    let popularity = Popularity::unshared(1_000_000).unwrap();
    near(popularity.unique(1e6), 1e6, 1e-12);
    near(popularity.merge(&[1e5, 2e5]), 3e5, 1e-9);
    near(popularity.interval(1e5), 2e5, 1e-9);
    assert_eq!(popularity.live(), 1e6);
    let part = Popularity::uniform(1000).unwrap().with_live(10.0);
    assert_eq!((part.live(), part.unique(f64::INFINITY)), (10.0, 1000.0));
    assert_eq!(Popularity::unshared(0), Err(ModelError::NoKeys));
}

#[test]
fn a_measured_histogram_is_what_it_counts() {
    let popularity =
        Popularity::from_histogram(&[(3, 1), (2, 5), (1, 17), (0, 9), (4, 0)]).unwrap();
    assert_eq!(popularity.keys(), 6.0);
    let total: f64 = popularity.classes().iter().map(|class| class.keys * class.probability).sum();
    near(total, 1.0, 1e-12);
    let by_hand = |requests: f64| {
        let one = |keys: f64, share: f64| keys * (1.0 - (1.0 - share / 30.0).powf(requests));
        one(3.0, 1.0) + one(2.0, 5.0) + one(1.0, 17.0)
    };
    near(popularity.unique(10.0), by_hand(10.0), 1e-12);
}

#[test]
fn tombstones_and_sizes_are_weights() {
    let plain = Popularity::zipf(1_000_000, 0.99).unwrap();
    let same = vec![EntryShape::plain(1000.0); plain.classes().len()];
    let weighted = plain.with_entries(&same).unwrap();
    for requests in [0.5, 100.0, 1e6, 1e8] {
        near(weighted.unique(requests), plain.unique(requests), 1e-12);
    }
    near(weighted.live(), 1e6, 1e-12);

    // A tenth deletes, tombstones as large as entries: runs as before, the bottom a tenth smaller.
    let deletes = EntryShape { entry_bytes: 100.0, tombstone_bytes: 100.0, delete_share: 0.1 };
    let deleted = plain.with_entries(&vec![deletes; plain.classes().len()]).unwrap();
    near(deleted.unique(1e6), plain.unique(1e6), 1e-12);
    near(deleted.live(), 0.9e6, 1e-12);

    // Popular keys with large entries: a request is larger in the mean, a run of all keys smaller.
    let mut shapes = same;
    let half = shapes.len() / 2;
    shapes[half..].fill(EntryShape::plain(5000.0));
    let large = plain.with_entries(&shapes).unwrap();
    assert!(large.size_max() < 0.5e6, "{}", large.size_max());
    near(large.unique(1.0), 1.0, 1e-12);
    near(large.unique(large.inverse(1e5)), 1e5, 1e-9);
}

#[test]
fn deletes_are_what_a_walk_over_requests_finds() {
    // Requests drawn by a fixed generator; the newest of each key counts.
    let keys = 500_usize;
    let requests = 1500;
    let mut newest = vec![None; keys];
    let mut state = 1_u64;
    let mut draw = |below: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let mut bytes = 0_u64;
    let rounds = 200;
    for _ in 0..rounds {
        newest.fill(None);
        for _ in 0..requests {
            let key = draw(keys as u64) as usize;
            newest[key] = Some(if draw(4) == 0 { 20 } else { 50 + draw(101) });
        }
        bytes += newest.iter().flatten().sum::<u64>();
    }
    let shape = EntryShape { entry_bytes: 100.0, tombstone_bytes: 20.0, delete_share: 0.25 };
    let popularity = Popularity::uniform(keys as u64).unwrap().with_entries(&[shape]).unwrap();
    let request_bytes = 0.75 * 100.0 + 0.25 * 20.0;
    let found = popularity.unique(f64::from(requests)) * request_bytes;
    near(bytes as f64 / f64::from(rounds), found, 0.01);
}

#[test]
fn what_makes_no_sense_is_refused() {
    assert_eq!(Popularity::uniform(0), Err(ModelError::NoKeys));
    assert_eq!(Popularity::zipf(0, 0.5), Err(ModelError::NoKeys));
    assert_eq!(Popularity::from_histogram(&[(0, 5), (5, 0)]), Err(ModelError::NoKeys));
    for skew in [-0.1, 1.7, f64::NAN, f64::INFINITY] {
        let error = Popularity::zipf(10, skew).unwrap_err().to_string();
        assert!(error.contains("skew") && error.contains("0 to 1.6"), "{error}");
    }
    let popularity = Popularity::uniform(10).unwrap();
    assert_eq!(
        popularity.with_entries(&[]),
        Err(ModelError::ShapesDiffer { classes: 1, shapes: 0 })
    );
    for (entry_bytes, tombstone_bytes, delete_share) in
        [(0.0, 1.0, 0.0), (1.0, -1.0, 0.0), (1.0, 1.0, 1.5), (1.0, 0.0, 1.0), (f64::NAN, 1.0, 0.5)]
    {
        let shape = EntryShape { entry_bytes, tombstone_bytes, delete_share };
        assert!(popularity.with_entries(&[shape]).is_err(), "{shape:?}");
    }
}

/// Requests over which a popularity was counted were taken to be drawn again, and so to miss a
/// quarter of their own keys.
#[test]
fn counted_requests_have_all_counted_keys() {
    // Keys that are requested 1, 2, 4 .. times; each request has a place in a shuffled row.
    let mut row: Vec<u32> = Vec::new();
    let mut histogram = Vec::new();
    let mut key = 0;
    for exponent in 0..8 {
        let (keys, times) = (4000 >> exponent, 1 << exponent);
        histogram.push((keys, times));
        for _ in 0..keys {
            row.extend(std::iter::repeat_n(key, times as usize));
            key += 1;
        }
    }
    let mut state = 1_u64;
    for index in (1..row.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        row.swap(index, (state >> 33) as usize % (index + 1));
    }
    let popularity = Popularity::from_histogram(&histogram).unwrap();
    for share in [0.01, 0.1, 0.5, 0.9, 1.0] {
        let requests = (row.len() as f64 * share) as usize;
        let mut seen: Vec<u32> = row[..requests].to_vec();
        seen.sort_unstable();
        seen.dedup();
        let found = popularity.unique_counted(requests as f64);
        let off = found / seen.len() as f64 - 1.0;
        assert!(off.abs() < 0.02, "{requests}: {off}");
    }
    let again = popularity.unique(row.len() as f64) / f64::from(key);
    assert!(again < 0.8, "{again}");
    let known = Popularity::uniform(1000).unwrap();
    assert_eq!(known.unique_counted(500.0), known.unique(500.0));
}
