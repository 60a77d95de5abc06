//! Texts that were right before somebody changed them.
//!
//! Promised: reading one is an error or gives what can be printed, read back, checked, asked and
//! applied; never a panic. `LSMITH_FULL=1` tries many more; `LSMITH_SEED` repeats a run.

use lsmith_tree::{KeyRange, MergePlan, Tree, TreeEdit, TreeView, check_plan, check_tree};
use std::env;
use std::hash::{BuildHasher, Hasher, RandomState};

const TREES: [&str; 4] = [
    "tree\nL0 r2[t2:a..m 1MB] r1[t1:b..z 1MB]",
    "tree runs 9 tables 12 flushes 6 flushed 4MB 40e 2d dropped_below 7\n\
     mem r8[t11:a..z 1MB 9e s30..40]\n\
     L0 r4[t4:a..z 1MB 40e 2d s1..40 root 3] r3~k1[t3:a..z 1MB {k 64KiB 20e, m..p 128KiB 40e}]\n\
     L1 r2[t2:a..g 2MB 40e, t1:g..z 1MB]\ncount L1 merges 3 slack 9\nnote at=\"x y\"",
    "tree\nL3 r1[t1:\"\\x00\".. 1MB, ]\nL4 r2[t2:#12..#12+ 1B]",
    "tree\nL0 r1[t1:c..f of a..z 1MB 9e s1..5, t1:g..h of a..z 1MB 9e s1..5]",
];

const EDITS: [&str; 2] = [
    "edit flushes 1 flushed 1MB dropped_below 3\ntake r2 ..\ntake r1 b..f\n\
     add r9 at L1 [t20:a..b of a..m 1MB 9e s1..7, t21:c..d 2MB]\ncount L1 merges 1\n\
     note at=7\nforget old",
    "edit\ntake r4 ..\nadd r20 above r3 [t30:a..f 1MB]\nadd r21~k2 at mem [t31:a..z 1MB]",
];

const PLANS: [&str; 5] = [
    "merge r4 r3 r2 over .. into new run at L1 # level 0 has 3 runs of 3",
    "merge r4:a..c r3:a..f into r3 cut 4MiB reuse 64KiB full 4KiB slack 1MB note at=7",
    "move r2 over ..m into new run above r1",
    "merge r2 over .. appended to r1",
    "merge r2 r1 over a..c in place forget at # gone",
];

const PARTS: [&str; 24] = [
    "..",
    "",
    "18446744073709551615",
    "18446744073709551616",
    "0",
    "63",
    "64",
    "[",
    "]",
    "{",
    "}",
    ",",
    "\"",
    "\\x",
    "#",
    " # ",
    "r1",
    "t1:a..z",
    "1MB",
    "s1..2",
    "L0",
    "\n",
    "of ..",
    "é",
];

/// splitmix64
struct Dice(u64);

impl Dice {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, texts: &[&'a str]) -> &'a str {
        texts[self.below(texts.len())]
    }
}

/// `text` with a few parts taken away, put in, or replaced.
fn mutated(text: &str, dice: &mut Dice) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    for _ in 0..1 + dice.below(3) {
        let at = dice.below(chars.len() + 1);
        let mut end = at + dice.below(4);
        // As a rule a whole number goes.
        while chars.get(end).is_some_and(char::is_ascii_digit) {
            end += 1;
        }
        let end = end.min(chars.len());
        let new: Vec<char> = match dice.below(4) {
            0 => Vec::new(),
            1 => dice.below(200).to_string().chars().collect(),
            _ => dice.pick(&PARTS).chars().collect(),
        };
        chars.splice(at..end, new);
    }
    chars.into_iter().collect()
}

fn read_edit(text: &str, tree: &Tree) {
    let Ok(edit) = text.parse::<TreeEdit>() else { return };
    assert_eq!(edit.to_string().parse(), Ok(edit.clone()), "{text}");
    let _ = edit.clone().apply_read_to(&mut tree.clone());
}

fn read_tree(text: &str) {
    let Ok(tree) = text.parse::<Tree>() else { return };
    assert_eq!(tree.to_string().parse(), Ok(tree.clone()), "{text}");
    let _ = check_tree(&tree);
    tree.runs().flat_map(|(_, run)| run.cells()).for_each(drop);
    let _ = tree.disk_bytes();
    EDITS.iter().for_each(|edit| read_edit(edit, &tree));
    let view = TreeView::new(tree, 1 << 20);
    for plan in PLANS.map(|plan| plan.parse::<MergePlan>().expect("it is right")) {
        let _ = check_plan(&view, &plan);
    }
}

#[test]
fn changed_texts_are_read_or_refused() {
    let seed = match env::var("LSMITH_SEED") {
        Ok(seed) => seed.parse().expect("LSMITH_SEED is a number"),
        Err(_) => RandomState::new().build_hasher().finish(),
    };
    let full = env::var_os("LSMITH_FULL").is_some_and(|value| value != "0");
    let count = if full { 2_000_000 } else { 20_000 };
    eprintln!("LSMITH_SEED={seed}, {count} texts");
    let mut dice = Dice(seed);
    for _ in 0..count {
        let tree: Tree = dice.pick(&TREES[..2]).parse().expect("it is right");
        match dice.below(4) {
            0 | 1 => read_tree(&mutated(dice.pick(&TREES), &mut dice)),
            2 => read_edit(&mutated(dice.pick(&EDITS), &mut dice), &tree),
            _ => {
                let text = mutated(dice.pick(&PLANS), &mut dice);
                let _ = text.parse::<KeyRange>();
                let _ = format!("view snapshot 3\n{tree}under_way {text}").parse::<TreeView>();
                if let Ok(plan) = text.parse::<MergePlan>() {
                    assert_eq!(plan.to_string().parse(), Ok(plan.clone()), "{text}");
                    let _ = check_plan(&TreeView::new(tree, 1 << 20), &plan);
                }
            }
        }
    }
}
