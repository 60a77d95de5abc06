//! What tests of figures share.

use lsmith_lab::NoProgress;
use lsmith_papers::{Effort, Figure, Verdict, figure_named};

/// Measures the figure `name`, and checks that it is sound.
pub(crate) fn measure(name: &str, effort: Effort) -> Figure {
    let info = figure_named(name).unwrap();
    let figure = info.measure(effort, &NoProgress).unwrap();
    assert_eq!((figure.name.as_str(), figure.title.as_str()), (info.name, info.title));
    assert_sound(&figure);
    figure
}

/// Checks that every panel has curves, x ascends, and values on logarithmic axes are positive.
fn assert_sound(figure: &Figure) {
    assert!(!figure.notes.is_empty(), "{}", figure.name);
    for panel in &figure.panels {
        let name = format!("{} {}", figure.name, panel.name);
        let policies = figure.policies(&panel.name);
        assert!(!policies.is_empty(), "{name}");
        for policy in policies {
            let curve: Vec<(f64, f64)> = figure.curve(&panel.name, policy).collect();
            assert!(curve.is_sorted_by(|one, other| one.0 <= other.0), "{name} {policy}");
            for (x, y) in curve {
                assert!(x.is_finite() && y.is_finite(), "{name} {policy}");
                assert!(x > 0.0 || !panel.x.is_log, "{name} {policy}");
                assert!(y > 0.0 || !panel.y.is_log, "{name} {policy}");
            }
        }
    }
    let panels: Vec<&str> = figure.panels.iter().map(|panel| panel.name.as_str()).collect();
    assert!(figure.points.iter().all(|point| panels.contains(&point.panel.as_str())));
}

/// Returns the y values of a curve.
pub(crate) fn ys(figure: &Figure, panel: &str, curve: &str) -> Vec<f64> {
    figure.curve(panel, curve).map(|(_, y)| y).collect()
}

/// Returns the measured numbers and verdicts of the claims that contain all of `words`, at least
/// one.
pub(crate) fn claims(figure: &Figure, words: &[&str]) -> Vec<(f64, Verdict)> {
    let fits = |claim: &str| words.iter().all(|word| claim.contains(word));
    let claims = figure.claims.iter().filter(|claim| fits(&claim.claim));
    let claims: Vec<_> = claims.map(|claim| (claim.measured, claim.verdict)).collect();
    assert!(!claims.is_empty(), "no claim of {} has {words:?}", figure.name);
    claims
}

/// Returns the measured number and the verdict of the only claim that contains all of `words`.
pub(crate) fn claim(figure: &Figure, words: &[&str]) -> (f64, Verdict) {
    let [claim] = claims(figure, words)[..] else {
        panic!("several claims of {} have {words:?}", figure.name)
    };
    claim
}

/// Checks that all claims that contain all of `words` hold, at least one.
pub(crate) fn hold(figure: &Figure, words: &[&str]) {
    let found = claims(figure, words);
    assert!(found.iter().all(|(_, verdict)| *verdict == Verdict::Holds), "{words:?}: {found:?}");
}
