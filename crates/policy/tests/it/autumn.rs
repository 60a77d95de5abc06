//! Autumn, beside leveling.

use lsmith_policy::{MergePolicy, Registry, laws};
use lsmith_tree::{MergePlan, TreeEdit, TreeView, apply};
use std::sync::Arc;

/// The plans of so many flushes of memtables of one size, with no flush while there is a plan.
fn plans(policy: &Arc<dyn MergePolicy>, flushes: u64) -> (Vec<String>, TreeView) {
    let mut view: TreeView = "view memtable 1MB\ntree".parse().expect("a view");
    let mut plans = Vec::new();
    for flush in 0..flushes {
        let (run, table) = (view.tree.next_run(), view.tree.next_table());
        let bytes = 1_000_000 + flush % 7;
        let edit = format!("edit\nadd {run} at mem [{table}:a..z {bytes}B]");
        apply(&mut view.tree, &edit.parse().expect(&edit)).expect("a new name");
        while let Some(plan) = policy.next_merge(&view).or_else(|| MergePlan::flush(&view.tree)) {
            let outcome = laws::outcome(&view.tree, &plan);
            let edit = TreeEdit::of_plan(&view.tree, &plan, outcome).expect("conserved");
            apply(&mut view.tree, &edit).expect("a legal plan");
            plans.push(plan.to_string());
        }
    }
    (plans, view)
}

fn of(spec: &str, flushes: u64) -> (Vec<String>, TreeView) {
    plans(&Registry::builtin().build(spec).expect(spec), flushes)
}

#[test]
fn autumn_that_does_not_shrink_is_leveling() {
    for ratio in [2, 3, 7] {
        let (autumn, _) = of(&format!("autumn(ratio={ratio}, c=1)"), 400);
        let (leveling, _) = of(&format!("fluid(ratio={ratio}, inner=1, last=1)"), 400);
        assert!(autumn.len() > 400);
        assert_eq!(autumn, leveling, "{ratio}");
    }
}

/// Leveling has a level for each power of the ratio. The last of `n` levels of Autumn has up to
/// 2^(n (n + 3) / 2) memtables here.
#[test]
fn the_levels_of_autumn_grow_like_a_square_root() {
    let levels = |spec: &str, flushes| of(spec, flushes).1.tree.levels().len();
    for (flushes, leveling, autumn) in [(16, 5, 2), (256, 9, 3), (2048, 12, 4)] {
        assert_eq!(levels("fluid(ratio=2, inner=1, last=1)", flushes), leveling, "{flushes}");
        assert_eq!(levels("autumn(ratio=2, c=0.5)", flushes), autumn, "{flushes}");
    }
}

/// A level holds what comes from above as often as its ratio says. The last one stays until a tree
/// of one level more is too small for it, too.
#[test]
fn all_levels_of_autumn_hold_more_when_there_is_a_level_more() {
    let policy = Registry::builtin().build("autumn(ratio=4, c=0.5)").expect("a spec");
    let to = |levels: &str| {
        let view: TreeView = format!("view memtable 1MB\ntree\n{levels}").parse().expect(levels);
        let plan = policy.next_merge(&view).expect(levels).to_string();
        plan.split(" # ").next().unwrap_or_default().to_owned()
    };
    let level0 = |megabytes: u64| format!("L0 r9[t9:a..z 1MB] r8[t8:a..z {megabytes}MB]");
    // One level holds 4 memtables, or 8 before there is another.
    assert!(to(&level0(6)).ends_with("new run at L0"));
    assert!(to(&level0(7)).ends_with("new run at L1"));
    // The first of two levels holds 8, and the first of three 16.
    let (small, large) = ("L1 r1[t1:a..z 20MB]", "L1 r1[t1:a..z 31MB]");
    assert!(to(&format!("{}\n{small}", level0(6))).ends_with("r9 r8 over .. into new run at L0"));
    assert!(
        to(&format!("{}\n{small}", level0(7))).ends_with("r9 r8 r1 over .. into new run at L1")
    );
    assert!(to(&format!("{}\n{large}", level0(7))).ends_with("r9 r8 over .. into new run at L0"));
    assert!(
        to(&format!("{}\n{large}", level0(15))).ends_with("r9 r8 r1 over .. into new run at L1")
    );
}
