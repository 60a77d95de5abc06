//! Each rule, broken by one case and kept by its neighbour.

use crate::check::{PlanError, SLICES_MAX, TreeError, check_plan, check_tree};
use crate::{
    Key, KeyRange, Level, MergePlan, ProfilePoint, Run, RunId, Size, Slice, Table, TableId, Tree,
    TreeView,
};

fn tree_error(text: &str) -> Option<TreeError> {
    let tree: Tree = text.parse().expect(text);
    check_tree(&tree).err()
}

/// What is wrong with a plan over a tree, both as text.
fn plan_error(tree: &str, plan: &str) -> Option<PlanError> {
    let view: TreeView = tree.parse().expect(tree);
    assert_eq!(check_tree(&view.tree), Ok(()), "{tree}");
    check_plan(&view, &plan.parse().expect(plan)).err()
}

fn r(id: u64) -> RunId {
    RunId(id)
}

#[test]
fn slices_of_a_run_are_sorted_and_disjoint() {
    let found = tree_error("tree\nL0 r1[t1:a..m 1MB, t2:l..z 1MB]");
    assert_eq!(found, Some(TreeError::Disorder { run: r(1), slice: 1 }));
    let found = tree_error("tree\nL0 r1[t1:m..z 1MB, t2:a..m 1MB]");
    assert_eq!(found, Some(TreeError::Disorder { run: r(1), slice: 1 }));
    let found = tree_error("tree\nL0 r1[t1:a.. 1MB, t2:m..z 1MB]");
    assert_eq!(found, Some(TreeError::Disorder { run: r(1), slice: 1 }));
    assert_eq!(tree_error("tree\nL0 r1[t1:a..m 1MB, t2:m..z 1MB, t3:z.. 1MB]"), None);
}

#[test]
fn a_slice_holds_some_key_and_lies_in_its_table() {
    let found = tree_error("tree\nL0 r1[t1:a..c 1MB, t2:m..m 1MB]");
    assert_eq!(found, Some(TreeError::BadSlice { run: r(1), slice: 1 }));
    assert_eq!(tree_error("tree\nL0 r1[t1:a..c 1MB, t2:m..n of a..z 1MB]"), None);
}

#[test]
fn a_profile_ascends_within_its_table() {
    let bad = Some(TreeError::BadProfile { table: TableId(1) });
    assert_eq!(tree_error("tree\nL0 r1[t1:a..z 9MB {g 2MB, g 3MB}]"), bad);
    assert_eq!(tree_error("tree\nL0 r1[t1:a..z 9MB {g 3MB, h 2MB}]"), bad);
    assert_eq!(tree_error("tree\nL0 r1[t1:b..z 9MB {a 3MB}]"), bad);
    assert_eq!(tree_error("tree\nL0 r1[t1:b..z 9MB {z 3MB}]"), bad);
    assert_eq!(tree_error("tree\nL0 r1[t1:b..z 9MB {g 10MB}]"), bad);
    assert_eq!(tree_error("tree\nL0 r1[t1:a..z 9MB {a 0B, g 2MB, h 2MB, p 9MB}]"), None);
}

#[test]
fn a_key_of_a_table_is_seen_once() {
    let twice = Some(TreeError::SeenTwice { table: TableId(1) });
    let text = "tree\nL0 r2[t1:a..h of a..z 1MB]\nL1 r1[t1:g..z of a..z 1MB]";
    assert_eq!(tree_error(text), twice);
    let text = "tree\nmem r3[t2:a..z 1MB] r2[t1:a..z 1MB]\nL3 r1[t1:a..z 1MB]";
    assert_eq!(tree_error(text), twice);
    let text = "tree\nL0 r2[t1:a..g of a..z 1MB]\nL1 r1[t1:g..z of a..z 1MB]";
    assert_eq!(tree_error(text), None);
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

#[test]
fn a_plan_has_inputs_that_exist_and_hold_keys() {
    assert_eq!(plan_error(TREE, "merge over .. into new run at L1"), Some(PlanError::NoInputs));
    let unknown = |run| Some(PlanError::UnknownRun { run: r(run) });
    assert_eq!(plan_error(TREE, "merge r7 r6 over .. in place"), unknown(7));
    assert_eq!(plan_error(TREE, "merge r6 over .. into r3"), unknown(3));
    let empty = Some(PlanError::EmptyInput { run: r(8) });
    assert_eq!(plan_error(TREE, "merge r8:g..p r6:a..z in place"), empty);
    assert_eq!(plan_error(TREE, "merge r8:f..a r6:a..z in place"), empty);
    assert_eq!(plan_error(TREE, "merge r8:f..p r6:a..z in place"), None);
}

#[test]
fn inputs_come_newest_first_and_once() {
    let order = |run| Some(PlanError::InputOrder { run: r(run) });
    assert_eq!(plan_error(TREE, "merge r6 r8 over .. in place"), order(8));
    assert_eq!(plan_error(TREE, "merge r8:a..g r8:p..z r6:a..z in place"), order(8));
    assert_eq!(plan_error(TREE, "merge r8 r6 over .. in place"), None);
}

#[test]
fn age_a_run_between_two_inputs_gives_up_the_same_keys() {
    let skips = |run| Some(PlanError::SkipsRun { run: r(run) });
    assert_eq!(plan_error(TREE, "merge r8 r5 over .. in place"), skips(6));
    assert_eq!(plan_error(TREE, "merge r9:h..k r8:a..b r6:a..z in place"), None);
    // r8 has nothing from g to p, and r5 nothing outside.
    assert_eq!(plan_error(TREE, "merge r9 r6 over h..k in place"), None);
    assert_eq!(plan_error(TREE, "merge r9 r6 over f..k in place"), skips(8));
    assert_eq!(plan_error(TREE, "merge r6 r4 over a..g into r4"), None);
    assert_eq!(plan_error(TREE, "merge r6 r4 over a..h into r4"), skips(5));
    // A part taken of the run between must cover what is taken above it.
    assert_eq!(plan_error(TREE, "merge r9:a..d r8:b..d r6:a..d in place"), skips(8));
    assert_eq!(plan_error(TREE, "merge r9:b..d r8:a..d r6:a..d in place"), None);
}

#[test]
fn age_the_output_lands_above_all_that_is_older_and_below_all_that_is_newer() {
    let skips = |run| Some(PlanError::SkipsRun { run: r(run) });
    assert_eq!(plan_error(TREE, "merge r8 r6 over .. into new run at L2"), skips(5));
    assert_eq!(plan_error(TREE, "merge r8 r6 over a..g into new run at L2"), None);
    // On top of level 0 means below all of memory only.
    assert_eq!(plan_error(TREE, "merge r6 over .. into new run at L0"), skips(8));
    assert_eq!(plan_error(TREE, "merge r6 over g..p into new run at L0"), None);
    assert_eq!(plan_error(TREE, "merge r9 over .. into new run at L0"), None);
    assert_eq!(plan_error(TREE, "merge r9 over .. into new run at L1"), skips(8));
    // Upwards: nothing newer than the inputs may hold their keys up to the new place.
    assert_eq!(plan_error(TREE, "merge r4 over a..g into new run at L1"), None);
    assert_eq!(plan_error(TREE, "merge r4 over .. into new run at L1"), skips(5));
    assert_eq!(plan_error(TREE, "merge r4 over a..g into new run at L0"), skips(8));
    assert_eq!(plan_error(TREE, "merge r5 r4 over .. into new run at L1"), None);
}

#[test]
fn age_memtables_leave_oldest_first() {
    let two = "tree\nmem r3[t3:a..z 1MB] r2[t2:a..z 1MB]\nL0 r1[t1:a..z 1MB]";
    let skips = Some(PlanError::SkipsRun { run: r(2) });
    assert_eq!(plan_error(two, "merge r3 over .. into new run at L0"), skips);
    assert_eq!(plan_error(two, "merge r3 r1 over .. in place"), skips);
    assert_eq!(plan_error(two, "merge r2 over .. into new run at L0"), None);
    assert_eq!(plan_error(two, "merge r3 r2 r1 over .. in place"), None);
}

/// A triangle widens from level to level, so that each piece below covers the pieces above.
#[test]
fn a_triangle_may_widen_downwards_only() {
    let tree = "tree
L0 r3[t3:a..z 1MB]
L1 r2[t4:a..g 2MB, t5:g..p 2MB, t6:p..z 2MB]
L2 r1[t7:a..c 2MB, t8:c..h 2MB, t9:h..t 2MB, ta:t..z 2MB]"
        .replace("ta:", "t10:");
    assert_eq!(plan_error(&tree, "merge r3:h..k r2:g..p r1:c..t into r1"), None);
    let skips = Some(PlanError::SkipsRun { run: r(1) });
    assert_eq!(plan_error(&tree, "merge r3:h..k r2:g..p r1:h..t into r1"), skips);
    let skips = Some(PlanError::SkipsRun { run: r(2) });
    assert_eq!(plan_error(&tree, "merge r3:d..k r2:g..p r1:c..t into r1"), skips);
}

#[test]
fn a_target_keeps_nothing_within_the_hull_of_the_output() {
    let straddles = Some(PlanError::Straddles { run: r(4) });
    let tree = "tree\nL0 r5[t5:a..c 1MB, t6:x..z 1MB]\nL1 r4[t4:g..k 1MB, t3:p..q 1MB]";
    assert_eq!(
        plan_error(tree, "merge r5 over .. into r4"),
        Some(PlanError::SkipsRun { run: r(4) })
    );
    assert_eq!(plan_error(tree, "merge r5 over a..c into r4"), None);
    let apart = "tree\nL0 r6[t6:x..z 1MB] r5[t5:a..c 1MB]\nL1 r4[t4:g..k 1MB]";
    assert_eq!(plan_error(apart, "merge r6:x..z r5:a..c into r4"), straddles);
    assert_eq!(plan_error(apart, "merge r6:x..z r5:a..c r4:g..h into r4"), straddles);
    assert_eq!(plan_error(apart, "merge r6:x..z r5:a..c r4:g..k into r4"), None);
    assert_eq!(plan_error(apart, "merge r6:x..z r5:a..c appended to r4"), straddles);
    assert_eq!(plan_error(apart, "merge r6:x..z r5:a..c in place"), None);
}

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
fn cuts_and_reused_pieces_have_a_size() {
    assert_eq!(plan_error(TREE, "merge r8 r6 over .. in place cut 0"), Some(PlanError::ZeroBytes));
    assert_eq!(
        plan_error(TREE, "merge r8 r6 over .. in place reuse 0 full 4KiB"),
        Some(PlanError::ZeroBytes)
    );
    assert_eq!(plan_error(TREE, "merge r8 r6 over .. in place cut 1 reuse 1 full 1"), None);
}

#[test]
fn a_move_relabels_slices_on_storage_that_share_no_key() {
    let cannot = |run| Some(PlanError::CannotMove { run: r(run) });
    assert_eq!(plan_error(TREE, "move r9 over .. into new run at L0"), cannot(9));
    assert_eq!(plan_error(TREE, "move r8 r6 over .. in place"), cannot(6));
    assert_eq!(plan_error(TREE, "move r8:a..b r6:a..b r4:a..g into r4"), cannot(6));
    assert_eq!(plan_error(TREE, "move r5 over .. into new run at L2"), None);
    // Many slices over many levels at once, disjoint by their ranges.
    let many = "tree\nL0 r3[t3:a..c 1MB]\nL1 r2[t2:c..e 1MB]\nL2 r1[t1:x..z 1MB]";
    assert_eq!(plan_error(many, "move r3 r2 over .. into new run at L2"), None);
    assert_eq!(plan_error(many, "move r3 r2 over ..e into r1"), None);
    assert_eq!(plan_error(many, "move r3 over ..c appended to r1"), cannot(3));
}

#[test]
fn only_whole_tables_are_appended_to() {
    let cannot = Some(PlanError::CannotAppend { run: r(1) });
    let part = "tree\nL0 r2[t2:a..n 1MB]\nL1 r1[t1:m..p of g..p 1MB, t0:p..z 1MB]";
    assert_eq!(plan_error(part, "merge r2 r1 over ..p appended to r1"), cannot);
    assert_eq!(plan_error(part, "merge r2 r1 over .. appended to r1"), cannot);
    assert_eq!(plan_error(part, "merge r2 over ..m appended to r1"), None);
    let whole = "tree\nL0 r2[t2:a..n 1MB]\nL1 r1[t1:m..p 1MB root 3, t0:p..z 1MB]";
    assert_eq!(plan_error(whole, "merge r2 r1 over ..p appended to r1"), None);
    assert_eq!(plan_error(whole, "merge r2 r1 over ..n appended to r1"), cannot);
    // Where the run holds keys of the plan, they are an input: its roots are replaced.
    let shared = "tree\nL0 r2[t2:a..n 1MB]\nL1 r1[t1:m..p 1MB, t0:p..q 1MB]";
    let skips = Some(PlanError::SkipsRun { run: r(1) });
    assert_eq!(plan_error(shared, "merge r2 over .. appended to r1"), skips);
    assert_eq!(plan_error(shared, "merge r2:a..n r1:a..p appended to r1"), None);
}

#[test]
fn a_knot_is_taken_whole_or_not_at_all() {
    let tears = |run| Some(PlanError::TearsKnot { run: r(run) });
    let tree = "tree\nL0 r4[t4:a..z 1MB] r3~k1[t3:a..m 1MB] r2~k1[t2:g..z 1MB]\nL1 r1[t1:a..z 1MB]";
    assert_eq!(plan_error(tree, "merge r4 r3 over .. in place"), tears(2));
    assert_eq!(plan_error(tree, "merge r2 r1 over .. in place"), tears(3));
    assert_eq!(plan_error(tree, "merge r4 r3 r2 over .. in place"), None);
    assert_eq!(plan_error(tree, "merge r4 r3 over a..g in place"), None);
    assert_eq!(plan_error(tree, "merge r4 r3 over a..h in place"), tears(2));
    assert_eq!(plan_error(tree, "merge r3:g..m r2:g..p r1:g..p in place"), None);
    let skips = Some(PlanError::SkipsRun { run: r(2) });
    assert_eq!(plan_error(tree, "merge r3 r1 over .. in place"), skips);
    // Who has one member reserved has them all.
    let apart = "tree\nL0 r4[t4:a..c 1MB]\nL1 r3~k1[t3:x..z 1MB] r2~k1[t2:a..m 1MB]";
    let joins = format!("{apart}\nunder_way move r4 over ..d into r3");
    assert_eq!(plan_error(apart, "merge r2 over ..m in place"), None);
    let meets = Some(PlanError::Reserved { reservation: 0 });
    assert_eq!(plan_error(&joins, "merge r2 over ..m in place"), meets);
    // Two knots are two.
    let two = "tree\nL0 r2~k1[t2:a..z 1MB] r1~k2[t1:a..z 1MB] r0[t0:a..z 1MB]";
    assert_eq!(plan_error(two, "merge r1 r0 over .. in place"), None);
}

/// Judges `plan` beside the reservations, one on a line.
fn reserved(reservations: &str, plan: &str) -> Option<PlanError> {
    let tree = "tree
mem r9[t9:a..z 1MB]
L0 r8[t8:a..z 1MB] r7[t7:a..z 1MB] r6[t6:a..z 1MB] r5[t5:a..z 1MB]
L1 r4[t4:a..g 2MB, t3:p..z 2MB]
L2 r2[t2:a..z 9MB]";
    plan_error(&format!("{tree}\n{reservations}"), plan)
}

#[test]
fn a_reservation_is_a_rectangle_of_age_and_keys() {
    let meets = Some(PlanError::Reserved { reservation: 0 });
    let one = "under_way merge r7 r6 over c..k in place";
    assert_eq!(reserved(one, "merge r7 r6 over d..e in place"), meets);
    assert_eq!(reserved(one, "merge r8 r7 over j..p in place"), meets);
    assert_eq!(reserved(one, "merge r8 r7 r6 r5 over .. in place"), meets);
    // Other keys, even of the same runs.
    assert_eq!(reserved(one, "merge r8 r7 over k..p in place"), None);
    assert_eq!(reserved(one, "merge r7 r6 over a..c in place"), None);
    // Other ages, even over the same keys.
    assert_eq!(reserved(one, "merge r9 r8 over .. in place"), None);
    assert_eq!(reserved(one, "merge r5 over c..k into new run at L1"), None);
    // The hull counts, not only what is taken.
    let wide = "under_way merge r7:a..c r6:a..z in place";
    assert_eq!(reserved(wide, "merge r8 r7 over x..z in place"), meets);
    let blocked = "blocked merge r7 r6 over c..k in place";
    assert_eq!(reserved(blocked, "merge r7 over d..e in place"), meets);
}

#[test]
fn places_that_touch_meet() {
    let meets = Some(PlanError::Reserved { reservation: 0 });
    // The flush of a memtable lands above the newest run of level 0, which may be under way.
    let first = "under_way merge r8 r7 over .. in place";
    assert_eq!(reserved(first, "merge r9 over .. into new run at L0"), None);
    let top = "under_way merge r8 over .. into new run at L0";
    assert_eq!(reserved(top, "merge r9 over .. into new run at L0"), meets);
    // The newest run of level 1 comes up while level 0 goes down on top of it.
    let down = "under_way merge r5 over .. into new run at L1";
    assert_eq!(reserved(down, "merge r4 r2 over .. into new run at L1"), meets);
    assert_eq!(reserved(down, "merge r4 r2 over .. in place"), None);
}

#[test]
fn the_neighbour_that_a_place_names_stays() {
    let second = Some(PlanError::Reserved { reservation: 0 });
    let into = "under_way move r5 over j..k into r4";
    assert_eq!(reserved(into, "merge r4 r2 over p..z in place"), second);
    let takes = "under_way merge r4 r2 over p..z in place";
    assert_eq!(reserved(takes, "move r5 over j..k into r4"), second);
    // A run that both take a part of stays until both are done.
    let both = "under_way merge r5 r4 over a..c into r4";
    assert_eq!(reserved(both, "merge r4 r2 over p..z in place"), None);
}

#[test]
fn a_reservation_whose_runs_are_gone_reserves_nothing() {
    assert_eq!(
        reserved("blocked merge r3 r1 over .. in place", "merge r8 r7 over .. in place"),
        None
    );
    let second = "blocked merge r3 r1 over .. in place\nunder_way merge r7 r6 over .. in place";
    let found = reserved(second, "merge r8 r7 over .. in place");
    assert_eq!(found, Some(PlanError::Reserved { reservation: 1 }));
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
