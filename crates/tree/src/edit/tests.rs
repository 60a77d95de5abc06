//! What edits do to trees, and which do not fit.

use crate::Input;
use crate::broken::PlanError;
use crate::{
    BlockCounts, EditError, Key, KeyRange, MergePlan, Outcome, RunId, SeqNo, Size, Slice, Table,
    TableId, Tree, TreeEdit, apply,
};

fn tree(text: &str) -> Tree {
    text.parse().expect(text)
}

fn table(id: u64, start: &'static str, end: &'static str, bytes: u64) -> Slice {
    let range = KeyRange::new(start, end);
    Slice::whole(Table { id: TableId(id), range, size: Size::of_bytes(bytes), ..Table::default() })
}

fn runs_of(tree: &Tree) -> String {
    let text = tree.to_string();
    text.lines().filter(|line| line.starts_with(['L', 'm'])).collect::<Vec<_>>().join("\n")
}

/// Carries out `plan` with `slices` as what came out of it.
fn carried_out(before: &str, plan: &str, slices: Vec<Slice>) -> Tree {
    let mut tree = tree(before);
    let plan: MergePlan = plan.parse().expect(plan);
    let view = crate::TreeView::new(tree.clone(), 1);
    assert_eq!(crate::check_plan(&view, &plan).err(), None);
    let outcome = Outcome { slices, ..Outcome::default() };
    let edit = TreeEdit::of_plan(&tree, &plan, outcome).expect("conserved");
    apply(&mut tree, &edit).expect("fits");
    tree
}

const TREE: &str = "tree
mem r4[t4:a..z 1MB]
L0 r3[t3:a..z 1MB] r2[t2:a..z 1MB]
L1 r1[t0:a..g 1MB, t1:p..z 1MB]";

/// What a partial merge leaves behind are the same tables, seen through smaller slices.
#[test]
fn remainders_cost_metadata_only() {
    let before = "tree\nL0 r2[t2:a..z 9kB {g 3kB, p 6kB}]\nL1 r1[t1:a..z 9kB {g 3kB, p 6kB}]";
    let tree = carried_out(before, "merge r2 r1 over g..p into r1", vec![table(3, "g", "p", 5)]);
    assert_eq!(
        runs_of(&tree),
        "L0 r2[t2:a..g of a..z 9kB {g 3kB, p 6kB}, t2:p..z of a..z 9kB {g 3kB, p 6kB}]
L1 r1[t1:a..g of a..z 9kB {g 3kB, p 6kB}, t3:g..p 5B, t1:p..z of a..z 9kB {g 3kB, p 6kB}]"
    );
    assert_eq!((tree.levels()[0].bytes(), tree.levels()[1].bytes()), (6000, 6005));
    let pieces = tree.disk_runs().flat_map(|run| run.slices());
    assert!(pieces.filter(|s| s.table().id == TableId(2)).all(|s| s.table().size.bytes == 9000));
}

#[test]
fn several_slices_can_move_over_several_levels_at_once() {
    let before = "tree\nL0 r3[t3:a..c 1MB]\nL1 r2[t2:c..e 1MB, t1:m..n 1MB]\nL2 r1[t0:x..z 1MB]";
    let view = tree(before);
    let slices: Vec<Slice> =
        [3, 2].iter().flat_map(|id| view.run(RunId(*id)).unwrap().1.slices().to_vec()).collect();
    let moved = carried_out(before, "move r3 r2 over ..p into r1", slices);
    let expected = "L0\nL1\nL2 r1[t3:a..c 1MB, t2:c..e 1MB, t1:m..n 1MB, t0:x..z 1MB]";
    let text = moved.to_string();
    assert_eq!(runs_of(&moved), expected.rsplit('\n').next().unwrap(), "{text}");
    let counters = moved.levels()[2].counters();
    assert_eq!((counters.moves, counters.bytes_moved, counters.merges), (1, 3_000_000, 0));
}

/// An interpreter that cannot cut a run where the plan says rewrites what is left of it.
#[test]
fn an_input_can_be_rewritten_beyond_what_is_taken() {
    let mut tree = tree(TREE);
    let plan: MergePlan = "merge r2:h..k r1:h..k into r1".parse().unwrap();
    let outcome = Outcome {
        slices: vec![table(5, "h", "k", 1)],
        rewritten: vec![(Input::all(RunId(2)), vec![table(6, "a", "h", 2), table(7, "k", "z", 3)])],
        ..Outcome::default()
    };
    let edit = TreeEdit::of_plan(&tree, &plan, outcome.clone()).unwrap();
    apply(&mut tree, &edit).unwrap();
    let text = runs_of(&tree);
    assert!(text.contains(" r2[t6:a..h 2B, t7:k..z 3B]\n"), "{text}");
    // Only what the plan takes from can be rewritten.
    let outcome = Outcome { rewritten: vec![(Input::all(RunId(3)), vec![])], ..outcome };
    let unknown = Err(PlanError::UnknownRun { run: RunId(3) });
    assert_eq!(TreeEdit::of_plan(&tree, &plan, outcome), unknown);
}

/// A block that joins an output leaves no cell without entries in front of the next block.
#[test]
fn a_rewritten_part_reaches_up_to_the_next_cell() {
    let before =
        tree("tree\nL1 r2[t2:a..f 1MB 9e]\nL2 r1[t1:a..z 900kB 9e {d..e 300kB 3e, k..m 600kB 6e}]");
    let plan: MergePlan = "merge r2:a..f r1:a..e into r1".parse().unwrap();
    for (end, left, cells) in [("k", Some("m"), 1), ("h", Some("h"), 2), ("z", None, 0)] {
        let size = Size { bytes: 1_900_000, entries: 18, tombstones: 0 };
        let range = KeyRange::new("a", end);
        let output = Table { id: TableId(9), range, size, ..Table::default() };
        let part = Input { run: RunId(1), range: KeyRange::new("e", end) };
        let outcome = Outcome {
            slices: vec![Slice::whole(output)],
            rewritten: vec![(part, Vec::new())],
            read: size,
            written: size,
            ..Outcome::default()
        };
        let edit = TreeEdit::of_plan(&before, &plan, outcome).unwrap();
        let mut after = before.clone();
        apply(&mut after, &edit).unwrap();
        let rest = after.levels()[2].runs()[0].slices().get(1);
        let found = rest.map_or((None, 0), |s| (Some(&s.range().start[..]), s.cell_count()));
        assert_eq!(found, (left.map(str::as_bytes), cells), "rewritten up to {end}");
    }
}

#[test]
fn tombstones_can_vanish_without_an_output() {
    let before = "tree\nL0 r1[t1:a..m 1kB 9e 9d]";
    let plan: MergePlan = "merge r1 over .. in place".parse().unwrap();
    let size = Size { bytes: 1000, entries: 9, tombstones: 9 };
    let outcome =
        Outcome { read: size, entries_dropped: 9, dropped_below: SeqNo(40), ..Outcome::default() };
    let mut tree = tree(before);
    let edit = TreeEdit::of_plan(&tree, &plan, outcome).unwrap();
    apply(&mut tree, &edit).unwrap();
    assert_eq!((tree.disk_run_count(), tree.dropped_below()), (0, SeqNo(40)));
}

#[test]
fn entries_are_conserved() {
    let before = tree("tree\nmem r2[t2:a..z 90B 9e]\nL0 r1[t1:a..z 70B 7e]");
    let plan: MergePlan = "merge r2 r1 over .. in place".parse().unwrap();
    let count = |entries| Size { bytes: entries * 10, entries, tombstones: 0 };
    let outcome = |written, reused, entries_dropped| Outcome {
        slices: vec![table(3, "a", "z", 1)],
        from_memory: count(9),
        read: count(7),
        written: count(written),
        reused: count(reused),
        entries_dropped,
        ..Outcome::default()
    };
    let judged = |outcome| TreeEdit::of_plan(&before, &plan, outcome).map(drop);
    assert_eq!(judged(outcome(10, 2, 4)), Ok(()));
    let broken = |entries_out| Err(PlanError::NotConserved { entries_in: 16, entries_out });
    assert_eq!(judged(outcome(10, 2, 3)), broken(15));
    assert_eq!(judged(outcome(17, 0, 0)), broken(17));
}

#[test]
fn counters_say_what_happened_at_the_level_of_the_output() {
    let mut tree = tree("tree\nmem r3[t3:a..z 90B 9e] r2[t2:a..z 90B 9e]\nL1 r1[t1:a..z 70B 7e]");
    let count = |entries| Size { bytes: entries * 10, entries, tombstones: 0 };
    let flush: MergePlan = "merge r2 over .. into new run at L0".parse().unwrap();
    let outcome = Outcome {
        slices: vec![table(4, "a", "z", 90)],
        from_memory: count(9),
        written: count(9),
        blocks: BlockCounts { written: 2, ..BlockCounts::default() },
        ..Outcome::default()
    };
    let edit = TreeEdit::of_plan(&tree, &flush, outcome).unwrap();
    apply(&mut tree, &edit).unwrap();
    let merge: MergePlan = "merge r3 r4 r1 over .. in place".parse().unwrap();
    let outcome = Outcome {
        slices: vec![table(5, "a", "z", 180)],
        from_memory: count(9),
        read: count(16),
        written: count(18),
        reused: count(2),
        entries_dropped: 5,
        blocks: BlockCounts { read: 3, written: 4, reused: 1 },
        dropped_below: SeqNo(8),
        ..Outcome::default()
    };
    let edit = TreeEdit::of_plan(&tree, &merge, outcome).unwrap();
    apply(&mut tree, &edit).unwrap();
    assert_eq!(
        tree.to_string(),
        "tree runs 6 tables 6 flushes 2 flushed 180B 18e dropped_below 8
L1 r5[t5:a..z 180B]
count L0 flushes 1 bytes_from_memory 90 entries_in 9 bytes_written 90 entries_written 9 \
         blocks_written 2
count L1 merges 1 bytes_from_memory 90 bytes_in 160 entries_in 25 blocks_in 3 bytes_written 180 \
         entries_written 18 blocks_written 4 bytes_reused 20 entries_reused 2 blocks_reused 1
"
    );
}

#[test]
fn a_memtable_counts_as_flushed_when_its_last_key_leaves() {
    let before = "tree\nmem r1[t1:a..z 100B {m 40B}]";
    let tree =
        carried_out(before, "merge r1 over ..m into new run at L0", vec![table(2, "a", "m", 40)]);
    assert_eq!((tree.flushes(), tree.flushed()), (0, Size::of_bytes(40)));
    let rest = tree.to_string();
    let tree =
        carried_out(&rest, "merge r1 over m.. into new run at L0", vec![table(3, "m", "z", 60)]);
    assert_eq!((tree.flushes(), tree.flushed()), (1, Size::of_bytes(100)));
}

#[test]
fn the_memo_changes_when_a_plan_commits() {
    let before = "tree\nL0 r1[t1:a..z 1MB]\nnote old=1\nnote kept=2";
    let plan = "merge r1 over .. in place note at=7 forget old";
    let tree = carried_out(before, plan, vec![table(2, "a", "z", 1)]);
    assert_eq!(tree.memo().iter().collect::<Vec<_>>(), [("at", "7"), ("kept", "2")]);
}

#[test]
fn names_are_never_given_again() {
    let mut tree = tree("tree\nL0 r1[t1:a..z 1MB]");
    let edit: TreeEdit = "edit\ntake r1 ..\nadd r7 at L0 [t9:a..z 1MB]".parse().unwrap();
    apply(&mut tree, &edit).unwrap();
    assert_eq!((tree.next_run(), tree.next_table()), (RunId(8), TableId(10)));
    apply(&mut tree, &"edit\ntake r7 ..".parse().unwrap()).unwrap();
    assert_eq!((tree.next_run(), tree.next_table()), (RunId(8), TableId(10)));
    let again = "edit\nadd r7 at L0 [t10:a..z 1MB]".parse().unwrap();
    assert_eq!(apply(&mut tree, &again), Err(EditError::UsedRun { run: RunId(7) }));
}

#[test]
fn a_sealed_memtable_is_the_newest_run_of_memory() {
    let mut tree = tree(TREE);
    let edit = TreeEdit::seal(tree.next_run(), table(9, "c", "d", 5));
    apply(&mut tree, &edit).unwrap();
    let memory = runs_of(&tree).lines().next().map(str::to_string);
    assert_eq!(memory.as_deref(), Some("mem r5[t9:c..d 5B] r4[t4:a..z 1MB]"));
    assert_eq!(tree.flushes(), 0);
}

/// The manifest holds the durable part; memory comes back from the log.
#[test]
fn the_durable_part_of_an_edit_says_nothing_of_memory() {
    let before = tree(TREE);
    let seal = TreeEdit::seal(before.next_run(), table(9, "c", "d", 5));
    assert_eq!(seal.durable(&before), TreeEdit::default());
    let plan: MergePlan = "merge r4 r3 r2 over .. in place".parse().unwrap();
    let out = Outcome { slices: vec![table(9, "a", "z", 5)], ..Outcome::default() };
    let edit = TreeEdit::of_plan(&before, &plan, out).unwrap();
    let durable = edit.durable(&before);
    assert_eq!(durable.remove.iter().map(|i| i.run.0).collect::<Vec<_>>(), [3, 2]);
    assert_eq!((durable.flushes, &durable.add), (1, &edit.add));

    let mut stored = tree(TREE.replace("mem r4[t4:a..z 1MB]\n", "").as_str());
    apply(&mut stored, &durable).unwrap();
    let mut whole = before;
    apply(&mut whole, &edit).unwrap();
    assert_eq!(stored.levels(), whole.levels());
    assert_eq!((stored.flushes(), stored.flushed()), (whole.flushes(), whole.flushed()));
}

/// A tombstone in memory may lie beyond all that the plan takes from storage.
#[test]
fn the_durable_part_of_an_edit_says_where_tombstones_of_memory_went() {
    let before = tree(TREE);
    let plan: MergePlan = "merge r4 r3 over .. in place".parse().unwrap();
    let out = Outcome {
        slices: vec![table(9, "a", "z", 5)],
        dropped_below: SeqNo(7),
        ..Outcome::default()
    };
    let mut edit = TreeEdit::of_plan(&before, &plan, out).unwrap();
    for input in edit.remove.iter_mut().filter(|input| input.run == RunId(3)) {
        input.range = KeyRange::new("c", "d");
    }
    let durable = edit.durable(&before);
    let text = durable.to_string();
    assert!(text.contains("dropped 7 ..\n"), "{text}");
    assert_eq!(text.parse::<TreeEdit>().unwrap(), durable);
    let mut stored = Tree::default();
    crate::edit::count_edit(&mut stored, &durable);
    assert_eq!(stored.dropped().below(&KeyRange::new("x", "y")), SeqNo(7));
}

#[test]
fn edits_stay_within_the_levels_that_a_tree_can_have() {
    let before = tree(TREE);
    let mut edit = TreeEdit::default();
    edit.counters.push((64, crate::Counters::default()));
    let mut after = before.clone();
    assert_eq!(apply(&mut after, &edit), Err(EditError::TooDeep { level: 64 }));
    assert_eq!(after, before);
    let mut edit = TreeEdit::seal(RunId(9), table(9, "a", "b", 1));
    edit.add[0].place = crate::AddPlace::Top(64);
    assert_eq!(apply(&mut after, &edit), Err(EditError::TooDeep { level: 64 }));
    edit.add[0].place = crate::AddPlace::Top(63);
    assert_eq!(apply(&mut after, &edit), Ok(()));
    assert_eq!(after.levels().len(), 64);
}

#[test]
fn plans_on_runs_that_are_gone_have_no_edit() {
    let before = tree(TREE);
    let plan: MergePlan = "merge r8 r3 over .. in place".parse().unwrap();
    let unknown = Err(PlanError::UnknownRun { run: RunId(8) });
    assert_eq!(TreeEdit::of_plan(&before, &plan, Outcome::default()), unknown);
    assert_eq!(Key::new(), KeyRange::ALL.start);
}

/// A merge keeps the age of the oldest tombstone that it takes, a flush has its own, and a table
/// that stays keeps what it says.
#[test]
fn tombstones_are_as_old_as_the_oldest_that_a_merge_takes() {
    let before = "tree flushes 8
mem r5[t5:a..z 1MB 9e 2d]
L0 r4[t4:a..g 1MB 9e 2d deleted 7, t3:p..z 1MB 9e 2d]
L1 r1[t0:a..g 1MB 9e, t1:p..z 1MB 9e 1d deleted 5]";
    let dated = |plan: &str, slices: Vec<Slice>| {
        let tree = tree(before);
        let plan: MergePlan = plan.parse().expect(plan);
        let outcome = Outcome { slices, ..Outcome::default() };
        let mut edit = TreeEdit::of_plan(&tree, &plan, outcome).expect("conserved");
        edit.date_tombstones(&tree);
        let slices = edit.add.iter().flat_map(|addition| &addition.slices);
        slices.map(|slice| slice.table().oldest_tombstone).collect::<Vec<_>>()
    };
    let new = |id: u64, start: &'static str, end: &'static str, tombstones: u64| {
        let size = Size { bytes: 5, entries: 9, tombstones };
        let range = KeyRange::new(start, end);
        Slice::whole(Table { id: TableId(id), range, size, ..Table::default() })
    };
    assert_eq!(dated("merge r5 over .. into new run at L0", vec![new(9, "a", "z", 1)]), [9]);
    let parts = vec![new(9, "a", "g", 1), new(10, "h", "k", 0), new(11, "p", "z", 1)];
    // Nothing is known of t3: its tombstones may be as old as the tree.
    assert_eq!(dated("merge r5 r4 r1 over .. into new run at L1", parts), [7, 0, 1]);
    let kept = tree(before).run(RunId(1)).unwrap().1.slices()[1].clone();
    assert_eq!(dated("merge r5 r4 r1 over .. into new run at L1", vec![kept]), [5]);
}

/// The manifest has what the tree knows of its reads with each flush, and only then.
#[test]
fn reads_are_durable_with_the_next_flush() {
    let mut tree = tree(TREE);
    let known = tree.reads().with_memtable(10, 2, 1);
    apply(&mut tree, &TreeEdit { reads: Some(known), ..TreeEdit::default() }).unwrap();
    let durable = |plan: &str| {
        let outcome = Outcome { slices: vec![table(9, "a", "z", 5)], ..Outcome::default() };
        TreeEdit::of_plan(&tree, &plan.parse().unwrap(), outcome).unwrap().durable(&tree).reads
    };
    assert_eq!(durable("merge r4 over .. into new run at L0"), Some(known));
    assert_eq!(durable("merge r3 r2 over .. in place"), None);
    assert_eq!(TreeEdit::default().durable(&tree), TreeEdit::default());
}
