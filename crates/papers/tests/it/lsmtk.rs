//! The figure of the text on lsmtk, at a small scale.

use lsmith_lab::NoProgress;
use lsmith_papers::{Effort, Verdict, figure_named};

/// 256 tables.
const TINY: Effort = Effort { is_quick: true, shrink: 64 };

#[test]
fn triangles_cost_what_the_theory_says_and_move_what_is_in_order() {
    let info = figure_named("lsmtk-wa").unwrap();
    let figure = info.measure(TINY, &NoProgress).unwrap();
    let names: Vec<&str> = figure.panels.iter().map(|panel| &panel.name[..]).collect();
    assert_eq!(names, ["theory", "uniform", "skewed", "sequential", "triangles"]);
    for panel in &figure.panels {
        for policy in figure.policies(&panel.name) {
            let curve: Vec<(f64, f64)> = figure.curve(&panel.name, policy).collect();
            assert!(curve.is_sorted_by(|one, other| one.0 <= other.0), "{} {policy}", panel.name);
            assert!(curve.iter().all(|(x, y)| x.is_finite() && y.is_finite()), "{policy}");
        }
    }
    let theory = figure.curve("theory", "triangular(score=ratio)");
    let expected = [(3.0, 2.5), (4.0, 3.0), (5.0, 3.5)];
    assert_eq!(theory.collect::<Vec<_>>(), expected);
    for words in ["theory:", "keys in order", "with skewed keys", "leveled over it"] {
        let claims = figure.claims.iter().filter(|claim| claim.claim.contains(words));
        let verdicts: Vec<Verdict> = claims.map(|claim| claim.verdict).collect();
        assert!(!verdicts.is_empty(), "{words}");
        assert!(verdicts.iter().all(|verdict| *verdict == Verdict::Holds), "{words}");
    }
    assert_eq!(figure.policies("uniform").len(), 6);
}
