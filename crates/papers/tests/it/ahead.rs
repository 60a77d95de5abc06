//! The policy that plans ahead.

use super::frame::{hold, measure, ys};
use lsmith_papers::Effort;

#[test]
fn planning_ahead_writes_less_than_counting_and_than_lucene() {
    let figure = measure("auto", Effort::QUICK);
    hold(&figure, &["points above minlatency"]);
    hold(&figure, &["1000 flushes: write cost over"]);
    for panel in ["c", "d"] {
        let least = ys(&figure, panel, "least").into_iter().fold(f64::INFINITY, f64::min);
        let auto = ys(&figure, panel, "auto").into_iter().fold(f64::INFINITY, f64::min);
        assert!(least < auto && auto < 1.2 * least, "{panel}: {auto}, {least}");
    }
}

/// Merges of parts of runs pay where keys are not spread evenly, and only there.
#[test]
fn parts_of_runs_gain_only_where_keys_are_not_spread_evenly() {
    let figure = measure("auto-parts", Effort::QUICK);
    for claim in ["new: parts write less", "even: parts write less", "local: the same"] {
        hold(&figure, &[claim]);
    }
    for (panel, least) in [("tpc", 0.95), ("order", 0.0)] {
        let parts = ys(&figure, panel, "3 runs");
        assert!(parts.iter().all(|it| (least..=1.01).contains(it)), "{panel}: {parts:?}");
    }
    assert!(ys(&figure, "order", "3 runs").last().is_some_and(|parts| *parts < 0.7));
}

/// Prices from reads are as good as the best fixed policy that somebody chooses afterwards.
#[test]
fn runs_priced_by_reads_cost_no_more_than_the_best_fixed_policy() {
    let figure = measure("auto-reads", Effort::QUICK);
    hold(&figure, &["steady: cost over the best fixed policy, mean"]);
    hold(&figure, &["shifting: cost over the best fixed policy, mean"]);
    hold(&figure, &["production: cost over the best fixed policy, mean"]);
}
