//! Texts that were right before somebody changed them, and texts of any kind.
//!
//! Promised: reading one is an error or gives what can be printed, read back, checked, asked and
//! applied; never a panic, and nothing is allocated out of proportion.

use lsmith_fuzz::{Choices, change_text, fuzz, peak_bytes, text_of};
use lsmith_tree::text::{TextError, display_key, parse_key};
use lsmith_tree::{KeyRange, MergePlan, Tree, TreeEdit, TreeView, check_plan, check_tree};
use std::fmt::{Debug, Display};
use std::str::FromStr;

const TREES: [&str; 4] = [
    "tree\nL0 r2[t2:a..m 1MB] r1[t1:b..z 1MB]",
    "tree runs 9 tables 12 flushes 6 flushed 4MB 40e 2d dropped_below 7\n\
     mem r8[t11:a..z 1MB 9e s30..40]\n\
     L0 r4[t4:a..z 1MB 40e 2d s1..40 root 3] r3~k1[t3:a..z 1MB {k 64KiB 20e, m..p 128KiB 40e}]\n\
     L1 r2[t2:a..g 2MB 40e, t1:g..z 1MB]\ncount L1 merges 3 slack 9\n\
     dropped 9 f..k\ndropped 3 k..\nerased 7 b..d\nerased 9 b..d\nerased 4 x..\nnote at=\"x y\"",
    "tree\nL3 r1[t1:\"\\x00\".. 1MB, ]\nL4 r2[t2:#12..#12+ 1B]",
    "tree\nL0 r1[t1:c..f of a..z 1MB 9e s1..5, t1:g..h of a..z 1MB 9e s1..5]",
];

const EDITS: [&str; 2] = [
    "edit flushes 1 flushed 1MB dropped_below 3\ntake r2 ..\ntake r1 b..f\n\
     add r9 at L1 [t20:a..b of a..m 1MB 9e s1..7, t21:c..d 2MB]\ncount L1 merges 1\n\
     note at=7\nforget old",
    "edit\ntake r4 ..\nadd r20 above r3 [t30:a..f 1MB cleared 7]\nerase 9 a..c\nerased_done 7 ..b\n\
     add r21~k2 at mem [t31:a..z 1MB]",
];

const PLANS: [&str; 5] = [
    "merge r4 r3 r2 over .. into new run at L1 # level 0 has 3 runs of 3",
    "merge r4:a..c r3:a..f into r3 cut 4MiB reuse 64KiB full 4KiB slack 1MB note at=7",
    "move r2 over ..m into new run at L1",
    "merge r2 over .. appended to r1",
    "merge r2 r1 over a..c in place forget at # gone",
];

const VIEWS: [&str; 2] = [
    "view memtable 4MiB block 4KiB\ntree\nL0 r2[t2:a..m 1MB] r1[t1:b..z 1MB]\n\
     under_way merge r2 over .. into r1",
    "tree\nL0 r1[t1:a..m 1MB]\nblocked move r1 over .. in place # why\nnote x=y",
];

const RANGES: [&str; 6] =
    ["..", "a..b", "#7..#7+", "\"\\xff b\"..\"..x..y\"", "a/b-c_d..", "..\"\\\\\\\"é\""];

const PARTS: [&str; 63] = [
    "..",
    "",
    "18446744073709551615",
    "18446744073709551616",
    "0",
    "1",
    "63",
    "64",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "\\x",
    "\\x00",
    "\\xzz",
    "\\",
    "#",
    "# ",
    " # ",
    "+",
    "~k1",
    "=",
    ":",
    "r1",
    "r2",
    "r1[t1:a..z 1MB]",
    "t1:a..z",
    "1MB",
    "9e",
    "2d",
    "s1..2",
    "root 3",
    "L0",
    "L1",
    "L63",
    "\n",
    " ",
    "of ..",
    "é",
    "a",
    "b",
    "tree",
    "edit",
    "view ",
    "take ",
    "add ",
    "merge ",
    "move ",
    "over ",
    "into ",
    "at ",
    "above ",
    "count ",
    "merges ",
    "note ",
    "forget ",
    "cut ",
    "reuse ",
    "memtable ",
    "under_way ",
    "\u{85}",
];

fn one(whole: &[&str], choices: &mut Choices<'_>) -> String {
    if choices.chance(80) {
        change_text(choices.pick(whole), &PARTS, choices)
    } else {
        let rest = text_of(&PARTS, 30, choices);
        let head = whole[0].split_once([' ', '\n']).map_or("", |(head, _)| head);
        format!("{head} {rest}")
    }
}

/// What `text` says, which is printed and read back the same.
fn read<T>(text: &str) -> Option<T>
where
    T: FromStr<Err = TextError> + Display + PartialEq + Debug,
{
    let (read, peak) = peak_bytes(|| text.parse::<T>());
    // The levels of a tree stand in a row, named or not.
    assert!(peak < (64 << 10) + 2000 * text.len(), "{peak} bytes for {text:?}");
    match read {
        Ok(read) => {
            let printed = read.to_string();
            assert_eq!(printed.parse().as_ref(), Ok(&read), "{text:?} is printed as {printed:?}");
            Some(read)
        }
        Err(TextError { line, column, .. }) => {
            assert!(line <= text.lines().count().max(1), "{text:?}: line {line}");
            let columns = text.lines().nth(line - 1).unwrap_or_default().chars().count();
            assert!((1..=columns + 1).contains(&column), "{text:?}: {line}, {column}");
            None
        }
    }
}

fn right<T: FromStr<Err = TextError>>(text: &str) -> T {
    text.parse().expect("it is right")
}

#[test]
fn fuzz_keys_and_ranges() {
    fuzz!(200_000, |choices| {
        let text = one(&RANGES, choices);
        read::<KeyRange>(&text);
        if let Ok(key) = parse_key(&text) {
            assert_eq!(parse_key(&display_key(&key).to_string()), Ok(key), "{text:?}");
        }
    });
}

#[test]
fn fuzz_trees() {
    fuzz!(20_000, |choices| {
        let Some(tree) = read::<Tree>(&one(&TREES, choices)) else { return };
        let _ = check_tree(&tree);
        tree.runs().flat_map(|(_, run)| run.cells()).for_each(drop);
        let _ = tree.disk_bytes();
        for mut edit in EDITS.map(right::<TreeEdit>) {
            let _ = edit.apply_read_to(&mut tree.clone());
        }
        let view = TreeView::new(tree, 1 << 20);
        for plan in PLANS.map(right::<MergePlan>) {
            let _ = check_plan(&view, &plan);
        }
    });
}

#[test]
fn fuzz_edits() {
    fuzz!(60_000, |choices| {
        let mut tree: Tree = right(choices.pick(&TREES[..2]));
        if let Some(mut edit) = read::<TreeEdit>(&one(&EDITS, choices)) {
            let _ = edit.apply_read_to(&mut tree);
        }
    });
}

#[test]
fn fuzz_plans() {
    fuzz!(60_000, |choices| {
        let tree: Tree = right(choices.pick(&TREES[..2]));
        if let Some(plan) = read::<MergePlan>(&one(&PLANS, choices)) {
            let _ = check_plan(&TreeView::new(tree, 1 << 20), &plan);
        }
    });
}

#[test]
fn fuzz_views() {
    fuzz!(40_000, |choices| {
        if let Some(view) = read::<TreeView>(&one(&VIEWS, choices)) {
            for plan in PLANS.map(right::<MergePlan>) {
                let _ = check_plan(&view, &plan);
            }
        }
    });
}
