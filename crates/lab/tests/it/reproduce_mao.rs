//! The figures of Mao et al. at a small scale.

use lsmith_lab::NoProgress;
use lsmith_lab::reproduce::{Effort, Figure, Test, Verdict, figure_named};

/// Simulations of some hundred flushes.
const TINY: Effort = Effort { is_quick: true, shrink: 1600 };

/// Stores with some tens of flushes.
const TINY_STORE: Effort = Effort { is_quick: true, shrink: 128 };

fn measure(name: &str, effort: Effort) -> Figure {
    let info = figure_named(name).unwrap();
    let figure = (info.measure)(info, effort, &NoProgress).unwrap();
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

/// Returns the measured number and the verdict of the only claim that contains all of `words`.
fn claim(figure: &Figure, words: &[&str]) -> (f64, Verdict) {
    let fits = |claim: &str| words.iter().all(|word| claim.contains(word));
    let claims: Vec<_> = figure.claims.iter().filter(|claim| fits(&claim.claim)).collect();
    let [claim] = claims[..] else {
        panic!("{} claims of {} have {words:?}", claims.len(), figure.name)
    };
    (claim.measured, claim.verdict)
}

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
    let (apart, verdict) = claim(&figure, &["k = 5", "minlatency over the least"]);
    assert_eq!(verdict, Verdict::Holds, "{apart}");

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
    assert_eq!(figure.policies(""), policies);
    // A merge writes at least two memtables, rounded to blocks, and takes some CPU time.
    assert!(figure.points.iter().all(|point| point.x > 64e3 && point.y > 0.0));
}

#[test]
fn store_writes_as_much_as_simulated() {
    let figure = measure("mao-fig11", TINY_STORE);
    let (r_squared, verdict) = claim(&figure, &["simulated key by key"]);
    assert_eq!(verdict, Verdict::Holds, "{r_squared}");
    for point in figure.points.iter().filter(|point| point.panel == "by-key") {
        let error = (point.y - point.x).abs() / point.x;
        // In the small tables of this test, everything besides entries has weight.
        assert!(error < 0.04, "{}: {} instead of {}", point.policy, point.y, point.x);
    }
}
