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

/// Prices from reads are as good as the best fixed policy that somebody chooses afterwards.
#[test]
fn runs_priced_by_reads_cost_no_more_than_the_best_fixed_policy() {
    let figure = measure("auto-reads", Effort::QUICK);
    hold(&figure, &["steady: cost over the best fixed policy, mean"]);
    hold(&figure, &["shifting: cost over the best fixed policy, mean"]);
    hold(&figure, &["production: cost over the best fixed policy, mean"]);
}
