//! Each rule, broken by one case and kept by its neighbour.

use crate::broken::{PlanError, SLICES_MAX, TreeError};
use crate::check::{check_plan, check_tree};
use crate::{
    Key, KeyRange, Level, MergePlan, ProfilePoint, Run, RunId, Size, Slice, Table, TableId, Tree,
    TreeView,
};

fn tree_error(text: &str) -> Option<TreeError> {
    let tree: Tree = text.parse().expect(text);
    check_tree(&tree).err()
}

/// Returns what is wrong with a plan over a tree, both as text.
fn plan_error(tree: &str, plan: &str) -> Option<PlanError> {
    let view: TreeView = tree.parse().expect(tree);
    assert_eq!(check_tree(&view.tree), Ok(()), "{tree}");
    check_plan(&view, &plan.parse().expect(plan)).err()
}

fn r(id: u64) -> RunId {
    RunId(id)
}

#[test]
fn names_are_given_once_and_runs_are_not_empty() {
    let found = tree_error("tree\nL0 r1[t1:a..z 1MB]\nL1 r1[t2:a..z 1MB]");
    assert_eq!(found, Some(TreeError::SameName { run: r(1) }));
    let found = tree_error("tree\nL0 r1[]");
    assert_eq!(found, Some(TreeError::EmptyRun { run: r(1) }));

    let mut tree: Tree = "tree\nL0 r1[t1:a..z 1MB]".parse().unwrap();
    assert_eq!(check_tree(&tree), Ok(()));
    tree.next_run = 1;
    assert_eq!(check_tree(&tree), Err(TreeError::NameAhead { run: r(1) }));
    tree.next_run = 2;
    tree.next_table = 1;
    assert_eq!(check_tree(&tree), Err(TreeError::NameAhead { run: r(1) }));
}

/// Five runs: three over all keys, and between them two with gaps.
const TREE: &str = "tree
mem r9[t9:a..z 1MB]
L0 r8[t8:a..g 1MB, t7:p..z 1MB] r6[t6:a..z 1MB]
L1 r5[t5:g..p 4MB]
L2 r4[t4:a..g 9MB, t3:g..p 9MB, t2:p..z 9MB]";

/// A triangle widens from level to level, so that each piece below covers the pieces above.
#[test]
fn a_target_has_room_for_slices() {
    let table = Table { range: KeyRange::new("x", "z"), ..Table::default() };
    let crowd = |count| vec![Slice::whole(table.clone()); count];
    let plan: MergePlan = "merge r1 over a..c into r0".parse().unwrap();
    let small = Table { id: TableId(1), range: KeyRange::new("a", "c"), ..Table::default() };
    for (count, expected) in
        [(SLICES_MAX - 1, Ok(())), (SLICES_MAX, Err(PlanError::TooManySlices { run: r(0) }))]
    {
        let upper = Level::new(vec![Run::new(r(1), vec![Slice::whole(small.clone())])]);
        let lower = Level::new(vec![Run::new(r(0), crowd(count))]);
        let view = TreeView::new(Tree::from_levels(vec![upper, lower]), 1);
        assert_eq!(check_plan(&view, &plan).map(drop), expected);
    }
}

#[test]
fn outputs_go_to_storage_and_not_too_deep() {
    let memory = |run| Some(PlanError::OutputInMemory { run: r(run) });
    assert_eq!(plan_error(TREE, "merge r9 over .. in place"), memory(9));
    assert_eq!(plan_error(TREE, "merge r9 over .. into r9"), memory(9));
    assert_eq!(plan_error(TREE, "merge r9 r8 over .. into r8"), None);

    let view: TreeView = TREE.parse().unwrap();
    let mut plan: MergePlan = "merge r4 over .. into new run at L63".parse().unwrap();
    assert_eq!(check_plan(&view, &plan), Ok(63));
    plan.place = crate::Place::NewRun(64);
    assert_eq!(check_plan(&view, &plan), Err(PlanError::TooDeep { level: 64 }));
}

#[test]
fn a_plan_is_at_the_bottom_where_nothing_older_holds_its_keys() {
    let tree: Tree = TREE.parse().unwrap();
    let bottom = |plan: &str| tree.is_bottom_for(&plan.parse().expect(plan)).expect(plan);
    assert!(bottom("merge r6 r5 r4 over .. in place"));
    assert!(!bottom("merge r6 r5 over .. in place"));
    assert!(bottom("merge r8 r6 r5 r4 over g..p into r4"));
    // The part of the oldest input that stays counts, as far as the hull of the plan reaches.
    assert!(!bottom("merge r5:g..p r4:h..p in place"));
    assert!(!bottom("merge r6:a..g r5:g..p r4:g..p into r4"));
    // An output below what it takes from, and an input moved up above runs that it leaves.
    assert!(!bottom("merge r5 over .. into new run at L1"));
    assert!(bottom("merge r4 over a..g into new run at L1"));
    let plan: MergePlan = "merge r1 over .. in place".parse().unwrap();
    assert_eq!(tree.is_bottom_for(&plan), Err(PlanError::UnknownRun { run: r(1) }));
}

#[test]
fn errors_say_what_is_wrong() {
    let errors = [
        PlanError::SkipsRun { run: r(3) }.to_string(),
        PlanError::Reserved { reservation: 2 }.to_string(),
        TreeError::SeenTwice { table: TableId(4) }.to_string(),
        TreeError::SameName { run: r(5) }.to_string(),
    ];
    for (error, subject) in errors.iter().zip(["r3", "2", "t4", "r5"]) {
        assert!(error.contains(subject) && !error.ends_with('.'), "{error}");
    }
}

/// Sizes of parts are estimates, but never more than the table and never less than nothing.
#[test]
fn parts_of_a_table_add_up() {
    let point = |key: &'static str, bytes| ProfilePoint {
        key: Key::from(key),
        below: Size { bytes, entries: bytes / 7, tombstones: bytes / 21 },
        after: None,
    };
    let size = Size { bytes: 900, entries: 128, tombstones: 42 };
    let profile = vec![point("g", 300), point("p", 301)];
    let range = KeyRange::new("a", "z");
    let whole = Slice::whole(Table { range, size, profile: profile.into(), ..Table::default() });
    for cut in ["a", "b", "g", "h", "p", "q", "y"] {
        let parts = whole.range().without(&KeyRange::new(cut, cut));
        let sizes = parts.iter().filter_map(|part| whole.clip(part)).map(|part| part.size());
        assert_eq!(sizes.sum::<Size>(), size, "cut at {cut}");
    }
}

#[test]
fn cuts_ascend_and_spare_blocks() {
    let error = |cuts: &str| plan_error(TREE, &format!("merge r6 over .. in place {cuts}"));
    assert_eq!(error("at c at d within 1MB of r4"), None);
    assert_eq!(error("within 1MB of r77"), None);
    assert_eq!(error("at d at c"), Some(PlanError::CutOrder));
    assert_eq!(error("at c at c"), Some(PlanError::CutOrder));
    assert_eq!(error("within 0B of r4"), Some(PlanError::ZeroBytes));
    assert_eq!(error("at c reuse 1B full 1B"), Some(PlanError::CutsBlocks));
    assert_eq!(error("reuse 1B full 1B"), None);
}

/// A level of trees below one of sorted tables and parts of trees.
const TREES: &str = "tree
mem r9[t9:a..z 1MB]
L0 r8[t8:a..g 1MB root 3, t7:p..z 1MB root 1 dead 2MB] r7[t5:a..g 1MB, t4:h..m of h..n 1MB root 2]
L1 r6[t6:a..z 9MB root 8]";

#[test]
fn only_whole_trees_are_appended_to() {
    let refused = |run| Some(PlanError::CannotAppend { run: r(run) });
    assert_eq!(plan_error(TREES, "merge r9 r8 over .. appended to r8 cut 1MB"), None);
    assert_eq!(plan_error(TREES, "merge r9:b..c r8:a..g appended to r8"), None);
    assert_eq!(plan_error(TREES, "merge r9:h..i appended to r8"), None);
    // A sorted table, and a part of a tree.
    assert_eq!(plan_error(TREES, "merge r8:b..c r7:a..g appended to r7"), refused(7));
    assert_eq!(plan_error(TREES, "merge r8:p..q r7:h..m appended to r7"), refused(7));
    // The plan takes only a part of a tree.
    assert_eq!(plan_error(TREES, "merge r9 r8 over b..c appended to r8"), refused(8));
    // What is older would hide what the tree has.
    assert_eq!(plan_error(TREES, "merge r8:a..g r7:a..g appended to r8"), refused(8));
    assert_eq!(plan_error(TREES, "merge r7:h..m appended to r8"), refused(8));
    // Keys that the plan leaves in the target.
    let left = Some(PlanError::SkipsRun { run: r(8) });
    assert_eq!(plan_error(TREES, "merge r9:b..c appended to r8"), left);
    assert_eq!(plan_error(TREES, "merge r9:a..q r8:a..g appended to r8"), left);
    // Past a run between.
    let skips = Some(PlanError::SkipsRun { run: r(7) });
    assert_eq!(plan_error(TREES, "merge r8 r6 over .. appended to r6"), skips);
}

#[test]
fn anything_may_become_a_tree_but_without_blocks_and_not_by_a_move() {
    for plan in [
        "merge r7:a..g appended to r7",
        "merge r7:h..m appended to r7",
        "merge r6:b..c appended to r6",
        "merge r7 over .. appended to r7 cut 1MB at c",
        "merge r9 over .. into new trees at L0",
        "move r8 over .. into new trees at L0",
    ] {
        assert_eq!(plan_error(TREES, plan), None, "{plan}");
    }
    let keeps = Some(PlanError::KeepsBlocksOfAppend);
    assert_eq!(plan_error(TREES, "merge r6 over .. appended to r6 reuse 1B full 1B"), keeps);
    assert_eq!(plan_error(TREES, "merge r6 over .. into new trees at L1 reuse 1B full 1B"), keeps);
    let moved = Some(PlanError::CannotMove { run: r(8) });
    assert_eq!(plan_error(TREES, "move r8 over a..g appended to r8"), moved);
}

#[test]
fn dead_bytes_of_a_run_are_those_of_its_whole_trees() {
    let mut tree: Tree = TREES.parse().unwrap();
    let dead = |tree: &Tree| tree.run(r(8)).map(|(_, run)| run.dead_bytes());
    assert_eq!(dead(&tree), Some(2_000_000));
    let edit = "edit\ntake r8 a..g\nadd r8 [t8:a..g 1MB root 4 dead 5kB]";
    crate::apply(&mut tree, &edit.parse().unwrap()).unwrap();
    assert_eq!(dead(&tree), Some(2_005_000));
    crate::apply(&mut tree, &"edit\ntake r8 p..q".parse().unwrap()).unwrap();
    assert_eq!(dead(&tree), Some(5000));
}
