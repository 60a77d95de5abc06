//! What is erased is compared with a list of all range deletes.

use super::*;
use crate::check::{PlanError, check_plan};
use crate::edit::TreeEdit;
use crate::key::Key;
use crate::plan::{MergePlan, Reason};
use crate::run::RunId;
use crate::tree::Tree;
use crate::view::TreeView;
use proptest::collection::vec;
use proptest::prelude::*;

fn range(start: u8, end: Option<u8>) -> KeyRange {
    let key = |byte: u8| Key::copy_from_slice(&[byte]);
    KeyRange { start: key(start), end: end.map(key) }
}

fn ranges() -> impl Strategy<Value = KeyRange> {
    (0..60u8, proptest::option::weighted(0.9, 0..40u8))
        .prop_map(|(start, length)| range(start, length.map(|more| start.saturating_add(more))))
}

#[derive(Clone, Debug)]
enum Step {
    Erase(KeyRange),
    /// All range deletes so far become visible.
    Publish,
    TakeSnapshot,
    DropSnapshot(usize),
    /// Nothing in the range is hidden any more, by as many of the oldest range deletes.
    Forget(KeyRange, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        8 => ranges().prop_map(Step::Erase),
        4 => Just(Step::Publish),
        2 => Just(Step::TakeSnapshot),
        2 => (0..8usize).prop_map(Step::DropSnapshot),
        1 => (ranges(), 0..8usize).prop_map(|(range, count)| Step::Forget(range, count)),
    ];
    vec(step, 1..300)
}

/// Every range delete, oldest first, with its number and the keys that it still counts for.
#[derive(Default)]
struct Plain {
    all: Vec<(SeqNo, Vec<bool>)>,
    visible: SeqNo,
    snapshots: Vec<SeqNo>,
}

impl Plain {
    fn newest_at(&self, key: u8, at: SeqNo) -> SeqNo {
        let covers = |(seq, keys): &&(SeqNo, Vec<bool>)| *seq <= at && keys[usize::from(key)];
        self.all.iter().rev().find(covers).map_or(SeqNo(0), |(seq, _)| *seq)
    }
}

fn check(erased: &Erased, plain: &Plain) {
    let mut walk = ErasedWalk::new(erased.clone());
    for at in plain.snapshots.iter().chain([&plain.visible]) {
        for key in 0..=120u8 {
            let expected = plain.newest_at(key, *at);
            assert_eq!(erased.newest_at(&[key], *at), expected, "{key} at {at}: {erased:?}");
            let walked = walk.part_of(&[key]).map_or(SeqNo(0), |part| part.newest_at(*at));
            assert_eq!(walked, expected);
        }
    }
    let parts: Vec<&ErasedPart> = erased.parts().collect();
    for pair in parts.windows(2) {
        assert!(pair[0].range.lies_below(&pair[1].range.start));
        let touch = pair[0].range.end.as_ref() == Some(&pair[1].range.start);
        let [left, right] = [pair[0], pair[1]];
        // Neighbours that touch are joined, unless they lie in two chunks.
        assert!(!touch || !left.is_like(right) || parts.len() > CHUNK_MAX);
    }
    for part in parts {
        assert!(!part.range.is_empty() && !part.seqs.is_empty());
        assert!(part.seqs.is_sorted_by(|newer, older| newer > older));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]
    #[test]
    fn every_reader_finds_the_newest_range_delete_of_a_key(steps in steps()) {
        let mut erased = Erased::default();
        let mut plain = Plain::default();
        for step in steps {
            match step {
                Step::Erase(range) => {
                    let seq = SeqNo(plain.all.len() as u64 + 1);
                    let Plain { visible, snapshots, .. } = &plain;
                    let readers = Readers { visible: *visible, snapshots };
                    erased.erase(&range, seq, &readers);
                    let keys = (0..=255u8).map(|key| range.contains(&[key])).collect();
                    plain.all.push((seq, keys));
                }
                Step::Publish => plain.visible = SeqNo(plain.all.len() as u64),
                Step::TakeSnapshot => plain.snapshots.push(plain.visible),
                Step::DropSnapshot(index) => {
                    if !plain.snapshots.is_empty() {
                        plain.snapshots.swap_remove(index % plain.snapshots.len());
                    }
                }
                Step::Forget(range, count) => {
                    let upto = SeqNo(count as u64);
                    erased.forget(&range, upto);
                    for (_, keys) in plain.all.iter_mut().filter(|(seq, _)| *seq <= upto) {
                        for (key, covered) in keys.iter_mut().enumerate() {
                            *covered &= !range.contains(&[key as u8]);
                        }
                    }
                }
            }
            check(&erased, &plain);
        }
    }
}

/// A queue that is erased from its start, further and further.
#[test]
fn range_deletes_that_grow_leave_two_parts() {
    let mut erased = Erased::default();
    for seq in 1..1000u64 {
        let range = KeyRange { start: Key::new(), end: Some(Key::of_number(seq)) };
        let readers = Readers { visible: SeqNo(seq - 1), snapshots: &[] };
        erased.erase(&range, SeqNo(seq), &readers);
        assert!(erased.len() <= 2, "{erased:?}");
        assert!(erased.parts().all(|part| part.seqs.len() <= 2), "{erased:?}");
    }
}

/// A change copies a chunk or two, not all parts.
#[test]
fn many_parts_lie_in_chunks_of_bounded_size() {
    let mut erased = Erased::default();
    let number = |n: u64| KeyRange::new(Key::of_number(2 * n), Key::of_number(2 * n + 1));
    for n in 0..10_000 {
        // Not in order.
        let n = n * 7919 % 10_000;
        let before = erased.clone();
        erased.erase(&number(n), SeqNo(n + 1), &Readers::ANY);
        let kept =
            |chunk: &&Arc<Vec<ErasedPart>>| before.chunks.iter().any(|b| Arc::ptr_eq(b, chunk));
        if n % 100 == 0 {
            assert!(erased.chunks.iter().filter(|chunk| !kept(chunk)).count() <= 3);
        }
    }
    assert_eq!(erased.len(), 10_000);
    assert!(erased.chunks.iter().all(|chunk| chunk.len() <= CHUNK_MAX));
    assert!(erased.chunks.len() <= 4 * 10_000 / CHUNK_MAX);
    for n in 0..10_000 {
        assert_eq!(erased.newest_at(&Key::of_number(2 * n), SeqNo::MAX), SeqNo(n + 1));
        assert_eq!(erased.newest_at(&Key::of_number(2 * n + 1), SeqNo::MAX), SeqNo(0));
    }
}

#[test]
fn first_write_into_a_part_is_noted_until_it_is_erased_again() {
    let mut erased = Erased::default();
    let written = |erased: &Erased, key: u8| erased.part_of(&[key]).map(|part| part.written.0);
    erased.erase(&range(10, Some(30)), SeqNo(5), &Readers::ANY);
    assert!(!erased.note_write(&[30], SeqNo(6)) && !erased.note_write(&[9], SeqNo(7)));
    assert!(erased.note_write(&[20], SeqNo(8)) && !erased.note_write(&[21], SeqNo(9)));
    assert_eq!(written(&erased, 10), Some(8));
    erased.erase(&range(15, Some(40)), SeqNo(10), &Readers::ANY);
    assert_eq!([10, 15, 39].map(|key| written(&erased, key)), [Some(8), Some(0), Some(0)]);
    assert!(erased.without_writes().parts().all(|part| part.written == SeqNo(0)));
    assert_eq!(erased.without_writes().newest_at(&[10], SeqNo::MAX), SeqNo(5));
}

/// Returns the tree after an edit that forgets what is done.
fn after(tree: &str, edit: &str, oldest: u64) -> Tree {
    let mut tree: Tree = tree.parse().unwrap();
    let mut edit: TreeEdit = edit.parse().unwrap();
    let readers = DoneReaders { oldest: SeqNo(oldest), unsealed: SeqNo(900) };
    edit.forget_done(&tree, readers).unwrap();
    edit.apply_to(&mut tree).unwrap();
    tree
}

fn erased_lines(tree: &Tree) -> Vec<String> {
    let text = tree.to_string();
    text.lines().filter(|line| line.starts_with("erased")).map(str::to_string).collect()
}

#[test]
fn a_range_delete_stays_while_a_run_may_hold_older_entries() {
    let tree = "tree\nmem r4[t4:a..z 1kB s60..70]\nL0 r3[t3:b..d 1kB s30..35]\n\
                L1 r1[t1:a..g 1MB s1..20, t2:m..z 1MB s1..20]\n";
    let erase = "edit\nerase 50 c..x\n";
    assert_eq!(erased_lines(&after(tree, erase, 800)), ["erased 50 c..x"]);
    // Merged without what it hides, and with one newer entry.
    let tree = format!("{tree}erased 50 c..x\n");
    let merged = "edit\ntake r3 ..\ntake r1 ..h\nadd r1 [t5:a..g 1MB s1..60 cleared 50]\n";
    let left = after(&tree, merged, 800);
    assert_eq!(erased_lines(&left), ["erased 50 m..x"]);
    assert_eq!(left.dropped().below(&KeyRange::new("c", "d")), SeqNo(50));
    assert_eq!(left.dropped().below(&KeyRange::new("n", "o")), SeqNo(0));
    // A table that was cleared up to an older range delete may hold hidden entries.
    let merged = merged.replace("cleared 50", "cleared 49");
    assert_eq!(erased_lines(&after(&tree, &merged, 800)), ["erased 50 c..x"]);
    let gone = "edit\ntake r3 ..\ntake r1 ..\n";
    assert_eq!(erased_lines(&after(&tree, gone, 800)), [""; 0]);
    // The active memtable has older entries.
    let late = tree.replace("erased 50", "erased 950");
    assert_eq!(erased_lines(&after(&late, gone, 800)), ["erased 950 c..x"]);
}

#[test]
fn older_numbers_go_when_no_reader_needs_them() {
    let tree = "tree\nL1 r1[t1:a..z 1MB s1..20]\nerased 30 a..m\nerased 50 c..x\n";
    let erase = "edit\nerase 60 b..d\n";
    let lines = |oldest| erased_lines(&after(tree, erase, oldest));
    let all = ["erased 30 a..b", "erased 30 b..c", "erased 60 b..c", "erased 30 c..d"];
    assert_eq!(lines(29)[..4], all);
    assert_eq!(lines(55)[..3], ["erased 30 a..b", "erased 30 b..c", "erased 60 b..c"]);
    assert_eq!(lines(55)[3..5], ["erased 50 c..d", "erased 60 c..d"]);
    // Parts that the edit does not touch stay as they are.
    assert_eq!(lines(60)[..3], ["erased 30 a..b", "erased 60 b..d", "erased 30 d..m"]);
}

/// Returns the plan that drops what nobody sees.
fn erasing(view: &str, oldest: u64) -> Option<String> {
    let view: TreeView = view.parse().unwrap();
    MergePlan::erase(&view, SeqNo(oldest)).map(|plan| plan.to_string())
}

#[test]
fn slices_that_nobody_sees_are_dropped_by_a_plan() {
    let tree = "tree\nL1 r1[t1:a..c 1kB s1..20, t2:c..g 1kB s1..60, t3:g..i 1kB s1..20]\n\
                erased 50 b..k";
    let plan = "drop r1 over g..i into r1 # range deletes hide this part of run 1";
    assert_eq!(erasing(tree, 50), Some(plan.into()));
    // A reader sees the slice, and not the range delete.
    assert_eq!(erasing(tree, 49), None);
    assert_eq!(erasing(&tree.replace(" s1..20", ""), 49), None);
    let reserved = format!("{tree}\nunder_way merge r1 into r1");
    assert_eq!(erasing(&reserved, 50), None);
    // Two range deletes hide a slice together, unless there is a gap between them.
    let two = tree.replace("b..k", "b..h\nerased 60 h..k");
    assert_eq!(erasing(&two, 60), Some(plan.into()));
    assert_eq!(erasing(&two, 50), None);
    assert_eq!(erasing(&two.replace("60 h", "60 h1"), 60), None);
    let newer = tree.replace("g..i 1kB s1..20", "g..i 1kB s1..51");
    assert_eq!(erasing(&newer, 50), None);
}

/// The part ends at a profile point.
#[test]
fn a_large_part_that_nobody_sees_is_dropped() {
    let tree = "tree\nL1 r1[t1:a..z 8MiB s1..20 {f 2MiB, n 5MiB}]\nerased 50 ..p";
    let plan = "drop r1 over a..n into r1 # range deletes hide this part of run 1";
    assert_eq!(erasing(tree, 50), Some(plan.into()));
    assert_eq!(erasing(&tree.replace("..p", "..m"), 50), None, "less than half");
    assert_eq!(erasing(&tree.replace("MiB", "kB"), 50), None, "less than a megabyte");
    let behind = tree.replace("..p", "c..");
    let plan = plan.replace("a..n", "f..z");
    assert_eq!(erasing(&behind, 50), Some(plan));
}

/// What lies over older entries of its keys may go if range deletes hide both.
#[test]
fn a_drop_over_older_entries_needs_range_deletes_that_all_readers_see() {
    let tree = "tree\nL0 r2[t2:b..d 1kB s30..40]\nL1 r1[t1:a..z 1kB s1..20]\n";
    let plan = MergePlan::drop(RunId(2), KeyRange::new("b", "d"), Reason::new("", [0; 3]));
    let bare: TreeView = tree.parse().unwrap();
    let refused = Err(PlanError::CannotDrop { run: RunId(2) });
    assert_eq!(check_plan(&bare, &plan), refused);
    let hidden: TreeView = format!("{tree}erased 50 b..k").parse().unwrap();
    assert_eq!(check_plan(&hidden, &plan), Ok(0));
    let [seen, unseen] = [50, 49].map(|oldest| plan.drops_too_early(&hidden.tree, SeqNo(oldest)));
    assert_eq!((seen, unseen), (false, true));
    for erased in ["erased 39 b..k", "erased 50 c..k", "erased 50 b..c", "erased 50 b..c, c1..k"] {
        let partly: TreeView =
            format!("{tree}{}", erased.replace(", ", "\nerased 50 ")).parse().unwrap();
        assert_eq!(check_plan(&partly, &plan), refused, "{erased}");
    }
    // Without numbers it lies under every range delete, except for readers that see none.
    let bare: TreeView = format!("{}erased 50 b..k", tree.replace(" s30..40", "")).parse().unwrap();
    assert!(!plan.drops_too_early(&bare.tree, SeqNo(50)));
    assert!(plan.drops_too_early(&bare.tree, SeqNo(49)));
    // Two range deletes hide it together.
    let parts: TreeView = format!("{tree}erased 50 b..c\nerased 60 c..k").parse().unwrap();
    assert_eq!(check_plan(&parts, &plan), Ok(0));
}
