//! Tests of histories. `decode.rs` reads histories as the script of a page does.

mod decode;

use super::outline::{Outline, Piece};
use super::{History, KeyScale, Recorder};
use crate::inputs::FileInputs;
use crate::simulate::{Content, simulate_observed};
use decode::{Decoder, Runs};
use lsmith_policy::Registry;
use lsmith_sim::{Event, FluidWorkload, KeyedWorkload};
use lsmith_tree::Tree;
use lsmith_workload::{FlushSizes, Workload};

/// Returns what a page shows of a tree, from the tree itself.
fn runs_of(tree: &Tree, scale: Option<&KeyScale>) -> Runs {
    let whole = KeyScale::Numbers(1);
    let levels = std::iter::once(tree.memory()).chain(tree.levels());
    let drawn = levels.map(|level| {
        let outline = |run: &lsmith_tree::Run| {
            let outline = Outline::of(run, scale.unwrap_or(&whole));
            let bytes: u64 = outline.pieces.iter().map(|piece| piece.bytes).sum();
            assert_eq!(bytes, run.bytes(), "pieces have all bytes of {}", run.id());
            (run.id().0, outline)
        };
        level.runs().iter().map(|run| outline(run)).collect::<Vec<_>>()
    });
    let mut runs: Runs = drawn.collect();
    // The decoder does not know levels that never had a run.
    while runs.last().is_some_and(Vec::is_empty) {
        runs.pop();
    }
    runs
}

/// Records a simulation, and returns the history with the tree after each step.
fn recorded(policy: &str, content: &Content<'_>, memtable_bytes: u64) -> (History, Vec<Runs>) {
    let policy = Registry::builtin().build(policy).unwrap();
    let scale = content.key_scale();
    let mut recorder = Recorder::new(scale.clone());
    let mut trees = Vec::new();
    let mut is_pending = false;
    let mut observe = |event: Event<'_>| {
        recorder.observe(event);
        let (Event::Sealed { tree, .. }
        | Event::Merge { tree, .. }
        | Event::Rest { tree }
        | Event::Flushed { tree }) = event;
        if std::mem::take(&mut is_pending) {
            trees.push(runs_of(tree, scale.as_ref()));
        }
        match event {
            Event::Sealed { tree, .. } => trees.push(runs_of(tree, scale.as_ref())),
            Event::Merge { .. } => is_pending = true,
            Event::Rest { .. } | Event::Flushed { .. } => {}
        }
    };
    simulate_observed(&policy, content, memtable_bytes, None, &mut observe).unwrap();
    (recorder.finish(&policy.spec().to_string(), content.name()), trees)
}

fn workload(spec: &str) -> Workload {
    Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap()
}

fn assert_decodes(history: &History, trees: &[Runs]) {
    assert_eq!(history.step_count, trees.len() as u64);
    let mut decoder = Decoder::new(history);
    let mut written = 0;
    for (step, tree) in trees.iter().enumerate() {
        written += decoder.step();
        assert_eq!(&decoder.runs(), tree, "{} after step {step}", history.name);
    }
    assert!(decoder.is_at_end());
    assert_eq!(written, history.levels.iter().map(|level| level.written).sum::<u64>());
    let by_cause = history.routes.iter().map(|route| route.causes.written());
    assert_eq!(written, by_cause.sum::<i64>() as u64, "{}", history.name);
}

#[test]
fn histories_decode_to_the_trees_of_keyed_simulations() {
    let loaded = KeyedWorkload::new(workload("load(keys=3k, value=100B)"));
    let churned = KeyedWorkload::new(workload("churn(keys=500, ops=5k, value=50B)"));
    let policies = [
        "none",
        "binomial(k=3)",
        "tiered(ratio=3)",
        "leveled(ratio=3, table=8KiB)",
        "leveled(ratio=2, l0=1, pick=whole_level)",
        "sweep",
        "choose_best(ratio=4)",
        "mixed(ratio=4)",
        "full(ratio=4)",
    ];
    for policy in policies {
        for workload in [&loaded, &churned] {
            let (history, trees) = recorded(policy, &Content::Keyed(workload), 8 << 10);
            assert!(trees.len() > 20, "{policy}");
            assert_decodes(&history, &trees);
        }
    }
}

#[test]
fn histories_decode_to_the_trees_of_other_simulations() {
    let fluid = FluidWorkload::new(&workload("churn(keys=2k, ops=20k, value=100B)")).unwrap();
    for policy in ["leveled(ratio=3)", "minlatency(k=3)", "choose_best(ratio=4)"] {
        let (history, trees) = recorded(policy, &Content::Fluid(&fluid), 16 << 10);
        assert_decodes(&history, &trees);
    }
    for policy in ["leveled(ratio=3)", "minlatency(k=3)"] {
        let (history, trees) = recorded(
            policy,
            &Content::Unit { flushes: 200, sizes: &FlushSizes::default() },
            1 << 20,
        );
        assert!(!history.has_keys);
        assert_decodes(&history, &trees);
    }
}

#[test]
fn a_tree_at_one_moment_is_a_history_of_one_step() {
    let text = "tree\nL0 r4[t4:b..x 1M] r3[t3:a..z 1M]\nL2 r2[t1:a..g 2M, t2:g..z 3M]";
    let tree: Tree = text.parse().unwrap();
    let history = History::of_tree("main", "a store", &tree);
    let mut decoder = Decoder::new(&history);
    decoder.step();
    assert!(decoder.is_at_end());
    assert_eq!(decoder.runs(), runs_of(&tree, Some(&KeyScale::of_tree(&tree))));
    let [start, end] = [0, 4096];
    let whole = &decoder.runs()[1][1].1.pieces;
    assert_eq!((whole[0].start, whole[0].end), (start, end), "a..z covers all keys");
}

#[test]
fn places_ascend_with_keys() {
    let scales = [
        KeyScale::Numbers(1000),
        KeyScale::Numbers(0),
        KeyScale::Borders(Vec::new()),
        KeyScale::Borders((0..1000).map(lsmith_tree::Key::of_number).collect()),
    ];
    for scale in scales {
        let run = |number: u64| {
            let range = lsmith_tree::KeyRange {
                start: lsmith_tree::Key::of_number(number),
                end: Some(lsmith_tree::Key::after_number(number + 3)),
            };
            let table = lsmith_tree::Table { range, ..lsmith_tree::Table::default() };
            lsmith_tree::Slice::whole(table)
        };
        let slices = (0..300).map(|n| run(n * 5)).collect();
        let outline = Outline::of(&lsmith_tree::Run::new(lsmith_tree::RunId(1), slices), &scale);
        let mut last = 0;
        for Piece { start, end, .. } in outline.pieces {
            assert!(
                last <= start && start <= end && end <= 4096,
                "{scale:?}: {last} {start} {end}"
            );
            last = end;
        }
    }
}
