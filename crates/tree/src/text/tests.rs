//! Whatever is printed can be parsed back, and what is wrong is said with its place.

use crate::*;
use proptest::collection::vec;
use proptest::prelude::*;

fn key() -> impl Strategy<Value = Key> {
    prop_oneof![
        "[a-z]{1,6}".prop_map(Key::from),
        vec(any::<u8>(), 1..12).prop_map(Key::from),
        (0..1u64 << 50).prop_map(|number| Key::copy_from_slice(&number.to_be_bytes())),
        (0..1u64 << 50).prop_map(|number| key_after(&number.to_be_bytes())),
    ]
}

fn size() -> impl Strategy<Value = Size> {
    (1..1u64 << 40, 0..1000u64).prop_map(|(bytes, entries)| Size {
        bytes,
        entries,
        tombstones: entries / 3,
    })
}

/// Disjoint slices, every third one a part of its table.
fn slices(first_table: u64) -> impl Strategy<Value = Vec<Slice>> {
    (proptest::collection::btree_set(key(), 3..12), size(), any::<bool>()).prop_map(
        move |(keys, size, seqs)| {
            let keys: Vec<Key> = keys.into_iter().collect();
            let mut slices = Vec::new();
            for (index, keys) in keys.chunks_exact(3).enumerate() {
                let point = ProfilePoint {
                    key: keys[1].clone(),
                    below: Size::of_bytes(1),
                    after: (index % 2 == 1).then(|| key_after(&keys[0])),
                };
                let table = Table {
                    id: TableId(first_table + index as u64),
                    root: index as u64 % 2,
                    range: KeyRange::new(keys[0].clone(), keys[2].clone()),
                    size,
                    dead_bytes: index as u64 % 2 * 5000,
                    born: index as u64 % 2 * first_table,
                    seq_min: SeqNo(u64::from(seqs)),
                    seq_max: SeqNo(7 * u64::from(seqs)),
                    deletes_applied: SeqNo(index as u64 % 3),
                    expires: index as u64 % 4 * 1000,
                    oldest_tombstone: index as u64 % 3,
                    profile: vec![point].into(),
                };
                let part = KeyRange { start: keys[1].clone(), end: None };
                let whole = Slice::whole(table);
                slices.push(if index % 3 == 0 { whole } else { whole.clip(&part).unwrap() });
            }
            slices
        },
    )
}

fn tree() -> impl Strategy<Value = Tree> {
    let runs = vec(slices(0), 1..8);
    let some = (runs, 0..4usize, size(), "[ -~]{0,12}", vec((key(), key(), 0..9u64), 0..4));
    some.prop_map(|(runs, levels, flushed, note, dropped)| {
        let mut tree = Tree::new();
        for (start, end, below) in dropped {
            let range = KeyRange { start, end: (below % 2 > 0).then_some(end) };
            tree.dropped.raise(&range, SeqNo(below));
            tree.range_deletes.delete_range(&range, SeqNo(below + 1), &Readers::ANY);
        }
        for (index, slices) in runs.into_iter().enumerate() {
            let renamed = slices.iter().enumerate().map(|(at, slice)| {
                let id = TableId((index * 10 + at) as u64);
                let table = Table { id, ..(**slice.table()).clone() };
                Slice::whole(table).clip(slice.range()).unwrap()
            });
            let place = match index {
                0 => AddPlace::Memory,
                _ => AddPlace::Top(index % (levels + 1)),
            };
            let knot = (index % 4 == 3).then_some(KnotId(2));
            let run = tree.next_run();
            let add = vec![Addition { run, place, knot, slices: renamed.collect() }];
            let counters = vec![(levels, Counters { merges: 1, slack: 9, ..Counters::default() })];
            let memo = vec![("note".into(), Some(note.clone()))];
            let edit = TreeEdit {
                add,
                counters,
                memo,
                flushes: 1,
                flushed,
                reads: (index > 0).then(|| Reads::default().with_memtable(9, index as u64, 0)),
                range_deletes: vec![(KeyRange::new("b", "c"), SeqNo(7)), (KeyRange::ALL, SeqNo(6))],
                forget: vec![(KeyRange { start: "c".into(), end: None }, SeqNo(9))],
                ..TreeEdit::default()
            };
            assert_eq!(edit.to_string().parse(), Ok(edit.clone()), "{edit}");
            apply(&mut tree, &edit).unwrap();
        }
        tree
    })
}

proptest! {
    #[test]
    fn trees_and_edits_survive_their_text(tree in tree()) {
        let text = tree.to_string();
        prop_assert_eq!(text.parse::<Tree>().expect(&text), tree, "{}", text);
    }

    #[test]
    fn views_survive_their_text(tree in tree(), memtable in 1..1u64 << 40, key in key()) {
        let mut view = TreeView::new(tree, memtable);
        let plan = MergePlan {
            inputs: vec![Input { run: RunId(3), range: KeyRange { start: key, end: None } }],
            memo: vec![("at".into(), Some("x y".into())), ("old".into(), None)],
            cut_bytes: Some(memtable),
            ..MergePlan::merge([], Place::Into(RunId(4)), Reason::new("because {}", [1, 0, 0]))
        };
        view.reservations.push(Reservation { plan, state: ReservationState::UnderWay });
        let text = view.to_string();
        prop_assert_eq!(text.parse::<TreeView>().expect(&text), view, "{}", text);
    }

    #[test]
    fn garbage_is_an_error_not_a_panic(text in "\\PC{0,60}") {
        let _ = text.parse::<Tree>();
        let _ = format!("tree\n{text}").parse::<Tree>();
        let _ = format!("tree\nL0 r1[{text}]").parse::<TreeView>();
        let _ = format!("merge {text}").parse::<MergePlan>();
        let _ = format!("edit\n{text}").parse::<TreeEdit>();
    }
}

/// Numbers add up to more than there can be: who wrote the text may have meant harm.
#[test]
fn the_greatest_numbers_are_read_without_a_panic() {
    let most = u64::MAX;
    let text = format!(
        "tree runs {most} tables {most} flushes {most} flushed {most}B {most}e {most}d\n\
         mem r{most}[t{most}:a..c {most}B {most}e {most}d s{most}..{most} root {most} \
         dead {most}B born {most}]\n\
         L0 r1[t1:a..c {most}B {most}e, t2:c..f {most}B {{d {most}B {most}e, e {most}B {most}e}}]\n\
         L0 r2[t3:a..c {most}B] r3[t4:a..b of a..z {most}B {{b {most}B}}]\n\
         L63 r4[t5:a..c {most}B]\ncount L63 slack {most} merges {most}"
    );
    let mut tree: Tree = text.parse().expect("a tree");
    assert_eq!((tree.next_run(), tree.next_table()), (RunId(most), TableId(most)));
    assert_eq!((tree.disk_bytes(), tree.levels()[0].size().bytes), (most, most));
    assert!(check_tree(&tree).is_err(), "the name of the run in memory is still to be given");
    tree.runs().flat_map(|(_, run)| run.cells()).for_each(drop);
    let text = format!("edit flushes {most} flushed 1B\ncount L63 slack 1 merges {most}");
    let edit: TreeEdit = text.parse().expect("an edit");
    edit.clone().apply_read_to(&mut tree).expect("it fits");
    tree = "tree flushes 3 flushed 18446744073709551615B".parse().expect("a tree");
    apply(&mut tree, &edit).expect("it fits");
    assert_eq!((tree.flushes(), tree.flushed().bytes), (most, most));
    for text in ["tree runs 18446744073709551616", "tree flushed 18446744073709551615kB"] {
        assert!(text.parse::<Tree>().is_err(), "{text}");
    }
}

/// Trees of older stores do not say when the files of append tables were begun.
#[test]
fn trees_are_read_without_what_older_stores_did_not_write() {
    let text = "tree flushes 9\nL0 r1[t1:a..c 1MB root 3 dead 5kB, t2:c..f 1MB root 4]";
    let tree: Tree = text.parse().expect(text);
    let born: Vec<u64> =
        tree.disk_runs().flat_map(|run| run.slices()).map(|slice| slice.table().born).collect();
    assert_eq!(born, [0, 0]);
    let error = "tree\nL0 r1[t1:a..c 1MB born 3]".parse::<Tree>().unwrap_err();
    assert!(error.to_string().contains("found `born 3]`"), "{error}");
}

#[test]
fn every_place_and_mode_survives_its_text() {
    for text in [
        "merge r4 r3 r2 over .. into new run at L1 # level 0 has 3 runs of 3",
        "merge r4 over a.. in place",
        "merge r4:a..c r3:a..f into r3 cut 4MiB reuse 64KiB full 4KiB slack 1MB note at=7",
        "merge r4:a..c r3:a..f into r3 reuse 1B full 4095B",
        "merge r4:a..c r3:a..f into r3 reuse nothing full 4kB slack 8B",
        "move r4 over ..m in place",
        "merge r4 over .. appended to r1",
        "merge r4 over .. into r1 cut 1MB at c at \"d e\" within 10MB of r0 note at=7",
        "merge r4 over .. into r1 at \"\" within 1B of r0",
        "merge r4 over .. in place forget at # gone",
    ] {
        let plan: MergePlan = text.parse().expect(text);
        assert_eq!(plan.to_string(), text);
    }
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let error = "tree\nL0 r1[t1:a..z lots]".parse::<Tree>().unwrap_err();
    assert_eq!(error.to_string(), "line 2, column 15: expected a size in bytes, found `lots]`");
    let error = "merge r1 over .. somewhere".parse::<MergePlan>().unwrap_err();
    assert_eq!(error.to_string(), "line 1, column 18: expected `into`, found `somewhere`");
    let error = "merge r1 over .. into nothing".parse::<MergePlan>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 1, column 23: expected a run such as `r1`, found `nothing`"
    );
    let error = "tree\nL99 ".parse::<Tree>().unwrap_err();
    assert!(error.to_string().contains("a level below 64"), "{error}");
    let error = "tree\nL0 r1[t1:a..z 1MB s5..3]".parse::<Tree>().unwrap_err();
    assert!(error.to_string().contains("expected at least 5 before this"), "{error}");
}

/// What broke: `apply` asserted in debug builds that the tree is legal afterwards. But the tree and
/// the edit may come from a text: with the last possible table number, with a profile of more bytes
/// than its table, or with a table that two runs show.
#[test]
fn edits_of_trees_that_somebody_wrote_are_applied_without_a_panic() {
    let most = u64::MAX;
    let trees = [
        format!("tree\nL0 r1[t{most}:a..c 1MB]"),
        format!("tree runs {most} tables {most} flushes {most}\nL0 r1[t2:a..c 1MB]"),
        "tree\nL0 r1[t1:a..m 1MB 5e {c 2MB 9e, f 3MB 10e}]".to_string(),
        "tree\nL0 r1[t1:a..m 1MB {m 2MB, z 3MB, b 1B}]".to_string(),
        "tree\nL0 r1[t1:a..m 1MB]\nL1 r0[t1:a..m 1MB]".to_string(),
        "tree\nL0 r1[t1:a..m 1MB]".to_string(),
    ];
    let edits = [
        "edit flushes 1".to_string(),
        format!("edit\nadd r7 at L0 [t{most}:a..c 1MB]"),
        "edit\nadd r7 at L0 [t9:a..m 1MB {c 2MB, f 3MB}]".to_string(),
        "edit\nadd r7 at L0 [t1:a..m 1MB]".to_string(),
        "edit\ntake r1 ..".to_string(),
        "edit\ntake r1 b..d".to_string(),
    ];
    let mut illegal = 0;
    for (tree, edit) in trees.iter().flat_map(|tree| edits.iter().map(move |edit| (tree, edit))) {
        let mut tree: Tree = tree.parse().expect(tree);
        let edit: TreeEdit = edit.parse().expect(edit);
        if apply(&mut tree, &edit).is_ok() {
            illegal += u32::from(check_tree(&tree).is_err());
            let _ = tree.to_string();
            tree.runs().flat_map(|(_, run)| run.cells()).for_each(drop);
        }
    }
    assert!(illegal > 5, "{illegal}");
}
