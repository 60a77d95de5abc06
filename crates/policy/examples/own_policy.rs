//! A merge policy of one's own: written outside the crate, registered beside the built-in ones,
//! put through the law suite, and run over some flushes.
//!
//! `cargo run -p lsmith-policy --example own_policy`
#![allow(clippy::print_stdout, reason = "the example prints what the policy does")]

use lsmith_policy::{
    Eager, Load, MergePolicy, ParamInfo, PolicyInfo, Registry, Shape, Stack, laws,
};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Reason, TreeEdit, TreeView, apply};
use std::error::Error;
use std::sync::Arc;

/// Merges two neighbouring runs as soon as the newer is at least `1/ratio` of the older, so that
/// sizes fall geometrically from the oldest run to the newest.
#[derive(Debug)]
struct Geometric {
    ratio: u64,
    eager: Eager,
}

impl Geometric {
    const INFO: PolicyInfo = PolicyInfo {
        name: "geometric",
        source: "an example",
        summary: "merges neighbours until each run is more than ratio times the next newer one",
        params: &[
            ParamInfo { name: "ratio", default: "2", meaning: "older over newer, 2 to 100" },
            Eager::PARAM,
        ],
        build: |params| {
            let ratio = params.count("ratio", 2, 2..=100)?;
            Ok(Arc::new(Geometric { ratio, eager: Eager::read(params)? }))
        },
    };
}

impl MergePolicy for Geometric {
    fn spec(&self) -> Spec {
        self.eager.write(Spec::bare("geometric").with("ratio", self.ratio))
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let stack = Stack::of(view);
        let pairs = stack.runs().windows(2);
        let close = |pair: &[lsmith_policy::StackRun]| {
            pair[0].bytes.saturating_mul(self.ratio) >= pair[1].bytes
        };
        let newer = pairs.into_iter().position(close)?;
        let reason =
            Reason::new("run {} from the top is no match for the next", [newer as u64, 0, 0]);
        stack.merge(newer, newer + 2, self.eager, reason)
    }

    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let crowded = view.tree.disk_run_count() > 65 || load.waiting_memtables > 4;
        if crowded { 1.0 } else { 0.0 }
    }

    fn shape(&self) -> Shape {
        // Sizes at least double from run to run, and bytes are 64-bit numbers.
        Shape::Stack { runs_max: 65 }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut registry = Registry::builtin();
    registry.register(Geometric::INFO);
    let policy = registry.build("geometric(ratio=3)")?;
    laws::check(policy.as_ref())?;
    println!("{} keeps all laws; sizes of its runs, newest first:", policy.spec());

    let mut view: TreeView = "view memtable 1MB\ntree".parse()?;
    for flush in 1..=24 {
        let tree = &mut view.tree;
        let (run, table) = (tree.next_run(), tree.next_table());
        let memtable = format!("edit\nadd {run} at mem [{table}:a..z 1MB]");
        apply(tree, &memtable.parse()?)?;
        while let Some(plan) = policy.next_merge(&view).or_else(|| MergePlan::flush(&view.tree)) {
            let outcome = laws::outcome(&view.tree, &plan);
            let edit = TreeEdit::of_plan(&view.tree, &plan, outcome)?;
            apply(&mut view.tree, &edit)?;
        }
        let sizes = view.tree.disk_runs().map(|run| (run.bytes() / 1_000_000).to_string());
        println!("flush {flush:2}: {}", sizes.collect::<Vec<_>>().join(" "));
    }
    Ok(())
}
