//! The figures of Mao et al. at a small scale.

use super::frame::{claim, hold, measure, ys};
use lsmith_papers::{Effort, Test, Verdict};

/// Simulations of some hundred flushes.
const TINY: Effort = Effort { is_quick: true, shrink: 1600 };

/// Stores with some tens of flushes.
const TINY_STORE: Effort = Effort { is_quick: true, shrink: 128 };

#[test]
fn figures_by_size() {
    for (name, panels) in [("mao-fig4", 4), ("mao-fig5", 1)] {
        let figure = measure(name, TINY);
        assert_eq!(figure.panels.len(), panels, "{name}");
        assert!(!figure.claims.is_empty(), "{name}");
    }
}

#[test]
fn figures_by_key() {
    let figure = measure("mao-fig7", TINY);
    assert_eq!(figure.policies("a").len(), 4);
    assert_eq!(figure.policies("b-leveled").len(), 4);
    let figure = measure("mao-fig8", TINY);
    let (cost, verdict) = claim(&figure, &["only new keys, in order"]);
    assert_eq!((cost, verdict), (1.0, Verdict::Holds), "nothing but moves");
}

/// Growth after 4^k flushes starts at 1024 for k = 5, so a run of a thousand does not show it.
#[test]
fn claims_need_measurements() {
    let figure = measure("mao-fig3", TINY);
    assert_eq!(figure.panels.len(), 6);
    assert!(!figure.claims.iter().any(|claim| claim.claim.contains("past 4^k")));
    hold(&figure, &["k = 5", "minlatency over the least"]);

    // Shorter runs cannot judge the paper's claims on long runs.
    let figure = measure("mao-fig12", TINY);
    assert_eq!((figure.panels.len(), figure.claims.len()), (3, 0));
}

/// Among flushes 121 to 240, minlatency with four runs merges everything once, at
/// C(5 + 4, 4) - 1 = 125. Tiered with ratio 4 merges everything only at 64 and 256; at 128 and 192
/// it rewrites a half and a third.
#[test]
fn verdicts_follow_the_data() {
    let figure = measure("mao-fig6", TINY);
    let (space, verdict) = claim(&figure, &["minlatency(k=4): the most"]);
    assert_eq!((space, verdict), (2.0, Verdict::Holds));
    let (space, verdict) = claim(&figure, &["tiered(ratio=4): the most"]);
    assert_eq!((space, verdict), (1.5, Verdict::Differs));
    for claim in &figure.claims {
        let holds = match claim.test {
            Test::Near => (claim.measured - claim.paper.unwrap()).abs() <= claim.tolerance,
            Test::AtMost => claim.measured <= claim.tolerance,
            Test::AtLeast => claim.measured >= claim.tolerance,
        };
        assert_eq!(holds, claim.verdict == Verdict::Holds, "{}", claim.claim);
    }
}

#[test]
fn merges_of_the_store_take_time() {
    let figure = measure("mao-fig9", TINY_STORE);
    let policies = ["minlatency", "binomial", "bigtable", "exploring", "tiered", "leveled"];
    for panel in ["elapsed", "cpu"] {
        assert_eq!(figure.policies(panel), policies);
    }
    // A merge writes at least two memtables, rounded to blocks, and takes some time.
    assert!(figure.points.iter().all(|point| point.x > 64e3 && point.y > 0.0));
    let merges = |panel| figure.points.iter().filter(|point| point.panel == panel).count();
    assert_eq!(merges("elapsed"), merges("cpu"));
}

/// After each flush the store has written as much as simulated, and both curves end together.
#[test]
fn store_writes_as_much_as_simulated_at_all_times() {
    let figure = measure("mao-fig10", TINY_STORE);
    for policy in ["minlatency", "binomial", "bigtable", "exploring"] {
        let observed: Vec<_> = figure.curve("a", policy).collect();
        let simulated: Vec<_> = figure.curve("b", policy).collect();
        assert_eq!(observed.len(), simulated.len(), "{policy}");
        assert_eq!(observed.last().unwrap().0, 250.0, "{policy}");
        assert_eq!(observed[0], (1.0, 1.0), "{policy}: the first flush is written once");
    }
    for policy in ["minlatency", "binomial", "constant"] {
        hold(&figure, &[policy, "differs from the store"]);
    }
}

#[test]
fn flushes_of_any_size_are_never_merged_for_less_than_the_least() {
    // A hundred flushes.
    let figure = measure("mao-sizes", Effort { is_quick: true, shrink: 80 });
    for panel in ["a", "b", "d"] {
        assert_eq!(
            figure.policies(panel),
            ["minlatency", "binomial", "bigtable", "exploring", "least"]
        );
        let least: Vec<_> = figure.curve(panel, "least").collect();
        for policy in figure.policies(panel) {
            for ((x, cost), (at, least)) in figure.curve(panel, policy).zip(&least) {
                assert_eq!(x, *at);
                assert!(cost >= *least, "{panel} {policy} at {x}: {cost}, {least}");
            }
        }
    }
    let (giant, verdict) = claim(&figure, &["one flush of", "minlatency"]);
    assert_eq!(verdict, Verdict::Holds, "{giant}");
    assert!(giant > 0.9, "the worst case is met: {giant}");
    let holds = figure.claims.iter().filter(|claim| claim.claim.contains("whatever the sizes"));
    assert_eq!(holds.filter(|claim| claim.verdict == Verdict::Holds).count(), 8);
}

#[test]
fn all_policies_have_a_row_per_bound() {
    let figure = measure("mao-table1", TINY);
    assert_eq!(figure.panels.len(), 14);
    for policy in ["minlatency", "binomial", "bigtable", "exploring", "constant"] {
        assert_eq!(figure.policies(&format!("writes-{policy}")).len(), 8);
        hold(&figure, &[policy, "at most k"]);
    }
    assert_eq!(figure.policies("reads-leveled").len(), 4);
}

#[test]
fn counts_by_size_are_held_against_plain_ones() {
    let figure = measure("mao-count", Effort { is_quick: true, shrink: 80 });
    assert_eq!(figure.points.len(), 42);
    assert_eq!(figure.policies("").len(), 7);
    assert_eq!(figure.claims.len(), 7);
}

#[test]
fn deletes_leave_fewer_flushes() {
    let figure = measure("mao-deletes", Effort { is_quick: true, shrink: 400 });
    for words in ["flushes with 25 %", "flushes with 50 %", "flushes with 100 %"] {
        hold(&figure, &[words]);
    }
    assert_eq!(figure.policies("by-share").len(), 10);
    assert_eq!(figure.curve("by-share", "bigtable(k=6)").count(), 4);
}

#[test]
fn compression_changes_bytes_but_no_merge() {
    let figure = measure("mao-compression", TINY_STORE);
    let (apart, verdict) = claim(&figure, &["write cost in logical bytes"]);
    assert_eq!((apart, verdict), (0.0, Verdict::Holds));
    for codec in ["lz4", "zstd"] {
        for policy in figure.policies(codec) {
            let written = ys(&figure, codec, policy);
            assert_eq!(written.len(), 4);
            assert!(written.is_sorted_by(|less, more| less > more), "{codec} {policy} {written:?}");
            assert!(written[3] < 0.5 * written[0], "{codec} {policy} {written:?}");
        }
    }
}

#[test]
fn store_writes_as_much_as_simulated() {
    let figure = measure("mao-fig11", TINY_STORE);
    hold(&figure, &["simulated key by key"]);
    for point in figure.points.iter().filter(|point| point.panel == "by-key") {
        let error = (point.y - point.x).abs() / point.x;
        // In the small tables of this test, everything besides entries has weight.
        assert!(error < 0.04, "{}: {} instead of {}", point.policy, point.y, point.x);
    }
}
