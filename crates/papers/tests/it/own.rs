//! Policies of a caller beside the policies of the papers.

use lsmith_lab::NoProgress;
use lsmith_papers::{Effort, FIGURES, Figure, Point, Takes, figure_named};
use lsmith_policy::{Load, MergePolicy, Needs, Registry, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, TreeView};
use std::sync::Arc;

/// A policy of a program: no registry knows it. It makes the plans of another policy.
#[derive(Debug)]
struct Twin(Arc<dyn MergePolicy>);

impl MergePolicy for Twin {
    fn spec(&self) -> Spec {
        Spec::bare("twin")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.0.next_merge(view)
    }

    fn seal_bytes(&self, view: &TreeView) -> u64 {
        self.0.seal_bytes(view)
    }

    fn needs(&self) -> Needs {
        self.0.needs()
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        self.0.pressure(view, load)
    }

    fn shape(&self) -> Shape {
        self.0.shape()
    }
}

fn twin(spec: &str) -> Arc<dyn MergePolicy> {
    Arc::new(Twin(Registry::builtin().build(spec).unwrap()))
}

/// A figure, its effort, and a policy of the paper: its spec, panel and curve. The twin of the
/// policy is in the panel that comes last.
type Beside = (&'static str, u64, &'static str, [&'static str; 3]);

const FIGURES_BESIDE: [Beside; 20] = [
    ("mao-fig3", 1600, "minlatency(k=6)", ["b", "minlatency(k=6)", "b"]),
    ("mao-fig4", 1600, "tiered(ratio=4)", ["a-tiered", "tiered(ratio=4)", "b-leveled"]),
    ("mao-fig5", 1600, "bigtable(k=6)", ["", "bigtable", ""]),
    ("mao-fig6", 1600, "tiered(ratio=4)", ["", "tiered(ratio=4)", ""]),
    ("mao-fig7", 1600, "tiered(ratio=4)", ["b-tiered", "tiered(ratio=4)", "a"]),
    ("mao-fig8", 1600, "leveled(ratio=4)", ["", "leveled(ratio=4)", ""]),
    ("mao-fig10", 1600, "binomial(k=7)", ["b", "binomial", "b"]),
    ("mao-fig11", 400, "tiered(ratio=4, eager=never)", ["by-size", "tiered", "by-size"]),
    ("mao-fig12", 1600, "tiered(ratio=2)", ["a", "tiered(ratio=2)", "a"]),
    ("mao-sizes", 400, "minlatency(k=6)", ["b", "minlatency", "b"]),
    ("mao-table1", 1600, "tiered(ratio=4)", ["reads-tiered", "tiered(ratio=4)", "reads-yours"]),
    ("mao-compression", 400, "tiered(ratio=4)", ["lz4", "tiered(ratio=4)", "lz4"]),
    ("mao-deletes", 1600, "tiered(ratio=4)", ["by-share", "tiered(ratio=4)", "by-share"]),
    ("lsmtk-wa", 64, "tiered", ["skewed", "tiered", "skewed"]),
    ("auto", 480, "minlatency(k=5, eager=never)", ["a", "minlatency", "a"]),
    ("auto-updates", 4, "minlatency(k=5)", ["even", "minlatency", "even"]),
    ("frontier", 1, "none", ["new", "none", "new"]),
    ("optimum", 480, "tiered(ratio=4)", ["a", "tiered", "a"]),
    ("thonangi-fig2", 256, SMALL, ["a", "choose_best", "a"]),
    ("thonangi-fig3", 256, SMALL, ["L2", "choose_best", "L2"]),
];

/// The paper's `choose_best` on small indexes.
const SMALL: &str = "choose_best(rate=0.05, slices_max=1048576)";

/// A policy of a caller has the curve of the policy whose plans it makes. All other points and the
/// claims are as without it.
#[test]
fn policy_of_a_caller_costs_what_its_twin_in_the_paper_costs() {
    for (name, shrink, spec, [panel, curve, place]) in FIGURES_BESIDE {
        let info = figure_named(name).unwrap();
        let effort = Effort { is_quick: true, shrink };
        let own = twin(spec);
        let beside = info.measure_beside(&[own], effort, &NoProgress).unwrap();
        let paper: Vec<(f64, f64)> = beside.curve(panel, curve).collect();
        let found: Vec<(f64, f64)> = beside.curve(place, "twin").collect();
        // Panels of one figure can show more or fewer flushes.
        let shared = found.iter().filter(|point| paper.contains(point)).count();
        assert!(shared > 0 && shared * 2 >= found.len().min(paper.len()), "{name}: {found:?}");
        let differs =
            |point: &&(f64, f64)| paper.iter().any(|(x, y)| *x == point.0 && *y != point.1);
        assert_eq!(found.iter().find(differs), None, "{name}");

        let alone = info.measure(effort, &NoProgress).unwrap();
        let without_twin = |figure: &Figure| -> Vec<Point> {
            figure.points.iter().filter(|point| point.policy != "twin").cloned().collect()
        };
        assert_eq!(without_twin(&beside), alone.points, "{name}");
        // Claims on CPU time differ from run to run.
        let claims = |figure: Figure| -> Vec<_> {
            figure.claims.into_iter().filter(|claim| !claim.claim.contains("CPU")).collect()
        };
        let notes = beside.notes.clone();
        assert_eq!(claims(beside), claims(alone), "{name}");
        let is_named =
            |note: &&String| note.starts_with("Not in the paper") && note.contains("twin");
        assert_eq!(notes.iter().filter(is_named).count(), 1, "{name}: {notes:?}");
    }
}

#[test]
fn every_figure_takes_policies_or_says_in_one_line_why_not() {
    let [bytes, blocks] = [twin("tiered"), twin("rr")];
    for info in FIGURES {
        let [of_bytes, of_blocks] = [&bytes, &blocks].map(|own| info.check_takes(&**own));
        match info.takes {
            Takes::Any => assert_eq!((of_bytes, of_blocks), (Ok(()), Ok(()))),
            Takes::InBlocks => {
                assert!(of_bytes.unwrap_err().contains("count in blocks"), "{}", info.name);
                assert_eq!(of_blocks, Ok(()));
            }
            Takes::Nothing(why) => {
                let message = of_bytes.unwrap_err();
                assert!(message.starts_with(info.name) && message.contains(why), "{message}");
                assert_eq!(message.lines().count(), 1);
                let error = info.measure_beside(&[twin("tiered")], Effort::QUICK, &NoProgress);
                assert_eq!(error.unwrap_err().to_string(), message);
            }
        }
    }
    let count = |paper: &str, takes| {
        let all = FIGURES.iter().filter(|info| info.name.starts_with(paper));
        all.filter(|info| info.takes == takes).count()
    };
    assert_eq!((count("mao-", Takes::Any), count("thonangi-", Takes::InBlocks)), (14, 15));
}

/// The figures on blocks that only show that a caller's policy is there: its costs are random, or
/// take long to compare.
#[test]
fn policy_of_a_caller_is_in_figures_on_blocks_and_on_time() {
    let rr = "rr(rate=0.05, slices_max=1048576)";
    for (name, shrink, spec, panels) in [
        ("thonangi-fig6a", 512, rr, &[""][..]),
        ("thonangi-fig7", 512, rr, &["time", "merging", "writes", "choosing"]),
        ("thonangi-fig8", 512, rr, &[""]),
        ("thonangi-fig9", 512, rr, &[""]),
        ("thonangi-growth-uniform", 512, rr, &[""]),
        ("thonangi-levels", 64, rr, &[""]),
        ("thonangi-caches", 512, rr, &["uniform-200", "normal-writes"]),
        ("thonangi-queries", 512, rr, &["uniform", "normal"]),
        ("mao-fig9", 800, "tiered(ratio=6)", &["elapsed", "cpu"]),
    ] {
        let effort = Effort { is_quick: true, shrink };
        let info = figure_named(name).unwrap();
        let figure = info.measure_beside(&[twin(spec)], effort, &NoProgress).unwrap();
        for panel in panels {
            let found: Vec<(f64, f64)> = figure.curve(panel, "twin").collect();
            let is_number = |(_, y): &(f64, f64)| y.is_finite() && *y >= 0.0;
            assert!(!found.is_empty() && found.iter().all(is_number), "{name} {panel}: {found:?}");
        }
    }
}

/// A figure has one curve per policy.
#[test]
fn policy_that_the_paper_has_gets_no_second_curve() {
    let info = figure_named("mao-fig6").unwrap();
    let effort = Effort { is_quick: true, shrink: 1600 };
    let own = Registry::builtin().build("tiered(ratio=4)").unwrap();
    let figure = info.measure_beside(&[Arc::clone(&own), own], effort, &NoProgress).unwrap();
    assert_eq!(figure.points, info.measure(effort, &NoProgress).unwrap().points);
}
