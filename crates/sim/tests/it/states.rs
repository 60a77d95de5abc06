//! Sizes of runs and levels after a number of flushes, as published.

use crate::common::{unit, units};

fn runs(spec: &str, flushes: usize) -> Vec<u64> {
    units(unit(spec, flushes).run_bytes_oldest_first())
}

fn levels(spec: &str, flushes: usize) -> Vec<u64> {
    units(unit(spec, flushes).level_bytes())
}

/// Mao et al., Fig. 1.
#[test]
fn after_sixteen_flushes() {
    for (spec, expected) in [
        ("bigtable(k=4)", &[12, 4][..]),
        ("binomial(k=4)", &[15, 1]),
        ("constant(k=4)", &[13, 1, 1, 1]),
        ("exploring(k=4)", &[11, 3, 1, 1]),
        // The published simulator let windows have less than k runs.
        ("exploring(k=4, min=2, max=3)", &[9, 4, 2, 1]),
        ("minlatency(k=4)", &[15, 1]),
        ("tiered(ratio=2)", &[16]),
        ("leveled(ratio=4)", &[10, 4, 1, 1]),
    ] {
        assert_eq!(runs(spec, 16), expected, "{spec}");
    }
    assert_eq!(levels("leveled(ratio=4)", 16), [2, 4, 10]);
}

/// The caption of Fig. 1 lists other sizes for Bigtable before the flush, which do not sum to 11.
#[test]
fn the_twelfth_flush() {
    assert_eq!(runs("bigtable(k=4)", 11), [5, 4, 1, 1]);
    assert_eq!(runs("bigtable(k=4)", 12), [12]);
    assert_eq!(levels("leveled(ratio=4)", 11), [2, 4, 5]);
    assert_eq!(levels("leveled(ratio=4)", 12), [2, 4, 6]);
    assert_eq!(levels("leveled(ratio=2)", 11), [2, 2, 4, 3]);
}

#[test]
fn leveled_merges_from_the_third_flush_on_and_cascades_at_the_seventh() {
    assert_eq!(levels("leveled(ratio=4)", 2), [2]);
    assert_eq!(levels("leveled(ratio=4)", 3), [2, 1]);
    assert_eq!(levels("leveled(ratio=4)", 6), [2, 4]);
    assert_eq!(levels("leveled(ratio=4)", 7), [2, 4, 1]);
}

/// The paper's text says that binomial and minlatency differ from the ninth flush on. That is true
/// only for a lazy binomial.
#[test]
fn binomial_differs_from_minlatency_at_the_second_flush() {
    assert_eq!(runs("binomial(k=4)", 1), runs("minlatency(k=4)", 1));
    assert_eq!(runs("binomial(k=4)", 2), [2]);
    assert_eq!(runs("minlatency(k=4)", 2), [1, 1]);
    assert_eq!(runs("binomial(k=4)", 9), [5, 3, 1]);
    assert_eq!(runs("minlatency(k=4)", 9), [5, 4]);
}

/// Mao et al., Journal of Big Data 2023, Table 1: newest first after 20, 40, ... 120 flushes.
#[test]
fn sizes_while_the_tree_grows() {
    let rows: [(&str, [&[u64]; 6]); 3] = [
        (
            "binomial(k=4)",
            [
                &[1, 4, 15],
                &[2, 3, 20, 15],
                &[10, 50],
                &[10, 20, 50],
                &[15, 35, 50],
                &[1, 3, 10, 106],
            ],
        ),
        (
            "tiered(ratio=4)",
            [
                &[4, 16],
                &[4, 4, 16, 16],
                &[4, 4, 4, 16, 16, 16],
                &[16, 64],
                &[4, 16, 16, 64],
                &[4, 4, 16, 16, 16, 64],
            ],
        ),
        (
            "leveled(ratio=4)",
            [
                &[1, 1, 4, 14],
                &[1, 1, 4, 16, 18],
                &[1, 1, 4, 16, 38],
                &[1, 1, 4, 16, 58],
                &[1, 1, 4, 16, 64, 14],
                &[1, 1, 4, 16, 64, 34],
            ],
        ),
    ];
    for (spec, states) in rows {
        for (flushes, newest_first) in (20..).step_by(20).zip(states) {
            let mut expected = newest_first.to_vec();
            expected.reverse();
            assert_eq!(runs(spec, flushes), expected, "{spec} after {flushes} flushes");
        }
    }
}
