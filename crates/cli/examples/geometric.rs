//! The policy of `docs/policies.md`, as the page shows it: a test compares the two.

use lsmith_cli::policy::{Eager, MergePolicy, ParamInfo, PolicyInfo, Registry, Shape, Stack};
use lsmith_cli::spec::Spec;
use lsmith_cli::tree::{MergePlan, Reason, TreeView};
use std::{process::ExitCode, sync::Arc};

/// Merges two neighbouring runs as soon as the newer has at least `1/ratio` of the older's bytes.
#[derive(Debug)]
struct Geometric {
    ratio: u64,
}

const INFO: PolicyInfo = PolicyInfo {
    name: "geometric",
    source: "docs/policies.md",
    summary: "merges neighbours until each run is more than ratio times the next newer one",
    params: &[ParamInfo { name: "ratio", default: "2", meaning: "older over newer, 2 to 100" }],
    build: |params| Ok(Arc::new(Geometric { ratio: params.count("ratio", 2, 2..=100)? })),
};

impl MergePolicy for Geometric {
    fn spec(&self) -> Spec {
        Spec::bare("geometric").with("ratio", self.ratio)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let stack = Stack::of(view); // newest run first
        let mut pairs = stack.runs().windows(2);
        let newer = pairs.position(|pair| pair[0].bytes * self.ratio >= pair[1].bytes)?;
        let reason = Reason::new("run {} is too large for the next", [newer as u64, 0, 0]);
        stack.merge(newer, newer + 2, Eager::Auto, reason)
    }

    fn shape(&self) -> Shape {
        Shape::Stack { runs_max: 65 } // sizes at least double, and are 64-bit numbers
    }
}

fn main() -> ExitCode {
    let mut registry = Registry::builtin();
    registry.register(INFO);
    lsmith_cli::main(registry)
}
