//! The figure of the text on lsmtk, at a small scale.

use super::frame::{hold, measure};
use lsmith_papers::Effort;

/// 256 tables.
const TINY: Effort = Effort { is_quick: true, shrink: 64 };

#[test]
fn triangles_cost_what_the_theory_says_and_move_what_is_in_order() {
    let figure = measure("lsmtk-wa", TINY);
    let names: Vec<&str> = figure.panels.iter().map(|panel| &panel.name[..]).collect();
    assert_eq!(names, ["theory", "uniform", "skewed", "sequential", "triangles"]);
    let theory = figure.curve("theory", "triangular(score=ratio)");
    let expected = [(3.0, 2.5), (4.0, 3.0), (5.0, 3.5)];
    assert_eq!(theory.collect::<Vec<_>>(), expected);
    for words in ["theory:", "keys in order", "with skewed keys", "leveled over it"] {
        hold(&figure, &[words]);
    }
    assert_eq!(figure.policies("uniform").len(), 6);
}
