//! The figures of Lim et al., of Jungle's costs and of the optimum, at a small scale.

use super::frame::{claims, hold, measure, ys};
use lsmith_papers::{Effort, Verdict};

/// Simulations of some ten thousand keys, stores of a thousand.
const TINY: Effort = Effort { is_quick: true, shrink: 480 };

/// A hundred thousand keys, so that a level has enough tables for a sweep.
const SMALL: Effort = Effort { is_quick: true, shrink: 48 };

#[test]
fn write_cost_over_keys() {
    let figure = measure("msls-wa", TINY);
    hold(&figure, &["by the paper's definitions"]);
    for panel in ["a", "b"] {
        let model = ys(&figure, panel, "model");
        assert!(model.is_sorted(), "{model:?}");
        let store: Vec<(f64, f64)> = figure.curve(panel, "store").collect();
        let simulated = figure.y(panel, "keyed simulation", store[0].0).unwrap();
        assert!((store[0].1 / simulated - 1.0).abs() < 0.05, "{store:?} {simulated}");
    }
}

#[test]
fn write_cost_over_skew() {
    let figure = measure("msls-skew", TINY);
    hold(&figure, &["by the paper's definitions"]);
    hold(&figure, &["it falls"]);
    let simulated = ys(&figure, "b", "keyed simulation");
    assert!(simulated.is_sorted_by(|one, other| one > other), "{simulated:?}");
}

#[test]
fn write_cost_over_the_buffer() {
    let figure = measure("msls-buffer", TINY);
    hold(&figure, &["gain by the paper's definitions"]);
    for panel in ["a", "b"] {
        for x in figure.xs(panel) {
            let y = |curve: &str| figure.y(panel, curve, x).unwrap();
            let as_many = y("optimized, as many levels");
            assert!(as_many < y("fixed sizes"), "{panel} {x}");
            assert!(y("optimized, any number of levels") < 1.001 * as_many, "{panel} {x}");
        }
    }
    assert!(figure.claims.iter().any(|claim| claim.claim.contains("in keyed simulation")));
}

#[test]
fn a_swept_level_is_thin_where_it_was_swept_last() {
    let figure = measure("msls-density", Effort::QUICK);
    hold(&figure, &["not uniform"]);
    hold(&figure, &["below 10"]);
    for panel in ["a", "b"] {
        let model = ys(&figure, panel, "model");
        assert!(model.is_sorted() && model.len() == 50, "{model:?}");
    }
}

#[test]
fn a_choice_in_turn_costs_less_than_a_random_one() {
    let figure = measure("msls-rocksdb", SMALL);
    hold(&figure, &["choice in turn costs less"]);
    hold(&figure, &["by the paper's definitions"]);
    assert!(claims(&figure, &["saved in keyed simulation"]).iter().all(|(saved, _)| *saved > 0.0));
}

#[test]
fn costs_of_jungle() {
    let figure = measure("jungle-costs", TINY);
    hold(&figure, &["as expected"]);
    hold(&figure, &["C = T"]);
    hold(&figure, &["in fluid simulation", "mean space of tiering"]);
    // Every differing claim has a reason.
    let differs = figure.claims.iter().filter(|claim| claim.verdict == Verdict::Differs);
    assert!(differs.into_iter().all(|claim| claim.why.is_some()));
}

#[test]
fn jungle_lies_between_tiering_and_leveling() {
    let figure = measure("jungle-fig6", TINY);
    hold(&figure, &["leveling over jungle(c=2)"]);
    hold(&figure, &["over that of tiering (tighter)"]);
    hold(&figure, &["space of leveling"]);
    let writes = ys(&figure, "write", "jungle");
    assert!(writes.is_sorted_by(|left, right| left > right), "{writes:?}");
    let space = ys(&figure, "space range", "jungle, most");
    for (most, c) in space.iter().zip([2.0, 3.0, 5.0, 10.0]) {
        assert!(*most > 1.0 && *most < 1.1 * c, "{most} with c = {c}");
    }
    // Lookups take time, which depends on the machine.
    let simulated = figure.claims.iter().filter(|claim| !claim.claim.contains("lookups"));
    let differs = simulated.filter(|claim| claim.verdict == Verdict::Differs);
    assert!(differs.into_iter().all(|claim| claim.why.is_some()), "{:?}", figure.claims);
}

/// The stores hold what the simulations hold, and nodes and filters; all their keys are found.
#[test]
fn lookups_of_jungle_in_the_store() {
    let figure = measure("jungle-fig6", TINY);
    let at = |panel: &str, curve: &str| -> Vec<f64> {
        let found = ys(&figure, panel, curve);
        assert_eq!(found.len(), 4, "{panel} {curve}");
        found
    };
    for curve in ["leveling", "tiering", "jungle"] {
        let [p50, p99] = ["p50", "p99"].map(|part| at("latency", &format!("{curve}, {part}")));
        assert!(p50.iter().zip(&p99).all(|(p50, p99)| p50 <= p99), "{p50:?} {p99:?}");
        let reads = at("device reads", curve);
        assert!(reads.iter().all(|reads| (0.2..10.0).contains(reads)), "{curve}: {reads:?}");
        assert!(at("store write", curve).iter().all(|writes| *writes > 1.0));
    }
}

#[test]
fn thresholds_by_key_range_beat_one_for_all() {
    let figure = measure("jungle-tuned", SMALL);
    hold(&figure, &["space=1.5", "hot"]);
    hold(&figure, &["space=2)", "hot"]);
    hold(&figure, &["space=2)", "even"]);
}

#[test]
fn nodes_of_jungle() {
    let figure = measure("jungle-nodes", TINY);
    // Tables of a few entries: the formula is for many.
    for (panel, least, most) in [("written", 0.6, 1.5), ("held", 0.5, 2.0)] {
        for size in [100, 1000, 10_000] {
            let curve = |kind: &str| {
                let name = format!("values of {size} bytes, {kind}");
                ys(&figure, panel, &name)
            };
            for (store, formula) in curve("store").iter().zip(curve("formula")) {
                let off = store / formula;
                assert!((least..most).contains(&off), "{panel}, {size} bytes: {off}");
            }
        }
    }
    assert_eq!(figure.claims.len(), 18);
}

#[test]
fn no_policy_is_below_the_hull() {
    let figure = measure("optimum", TINY);
    hold(&figure, &["none is below"]);
    hold(&figure, &["by the recursion"]);
    hold(&figure, &["over the optimum with k runs"]);
    let least = ys(&figure, "a", "least");
    assert!(least[0] > 10.0 * least[least.len() - 1], "{least:?}");
}

/// No policy had the paper's designs but LevelDB's and RocksDB's, and these were in this figure
/// only.
#[test]
fn designs_run_on_the_store_as_simulated() {
    let figure = measure("msls-designs", SMALL);
    hold(&figure, &["simulation off from the store"]);
    for panel in ["a", "b"] {
        for design in ["cola", "samt", "universal", "silt"] {
            let keyed: Vec<_> = figure.curve(panel, &format!("keyed, {design}")).collect();
            let (keys, cost) = keyed[keyed.len() - 1];
            let model = figure.y(panel, &format!("model, {design}"), keys).unwrap();
            assert!((model / cost - 1.0).abs() < 0.1, "{design}: {model} {cost}");
        }
    }
}

#[test]
fn write_cost_over_levels() {
    let figure = measure("msls-levels", TINY);
    hold(&figure, &["by the paper's definitions"]);
    hold(&figure, &["optimized sizes of as many levels gain"]);
    // Few levels and many write more than those between.
    for panel in ["c", "d"] {
        let costs = ys(&figure, panel, "model, geometric sizes");
        let least = costs.iter().copied().reduce(f64::min).unwrap();
        assert!(costs[costs.len() - 1] > 1.2 * least, "{costs:?}");
    }
    assert!(figure.claims.iter().any(|claim| claim.claim.contains("model off from simulation")));
}

#[test]
fn throughput_over_write_cost() {
    let figure = measure("msls-throughput", TINY);
    // A device takes no more than its bandwidth, but for what it was given just before the end.
    for panel in ["a", "b"] {
        for (cost, throughput) in figure.curve(panel, "store") {
            let most = figure.y(panel, "bandwidth over write cost", cost).unwrap();
            assert!(throughput < 1.05 * most, "{throughput} {most}");
        }
    }
}
