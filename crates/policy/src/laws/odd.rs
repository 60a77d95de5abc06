//! Trees that no policy would make, but that are legal.

use super::random::{self, Random};
use lsmith_tree::TreeView;
use std::fmt::Write;

/// One run per level in each of these many levels, or so many runs in one.
const MANY: usize = 60;

pub(super) fn views(random: &mut Random) -> Vec<TreeView> {
    let mut texts: Vec<String> = [
        "tree",
        "tree\nL5",
        "tree\nL0 r1[t1:.. 1000GB]",
        "tree\nL0 r1[t1:a..z 0B] r2[t2:a..z 0B] r3[t3:a..z 0B]\nL1 r4[t4:a..z 0B] r5[t5:.. 0B]",
        "view memtable 1B\ntree\nL1 r1[t1:a..z 1GB {g 1MB, h 900MB}]",
        "tree\nmem r3[t3:a..z 1MB] r2[t2:a..z 1MB] r1[t1:a..z 1MB]",
        "tree\nmem r1[t1:a..z 0B]\nL63 r0[t0:a..z 1MB]",
        "tree\nmem r2[t2:.. 4MB]\nL63 r1[t1:.. 1MB] r0[t0:.. 1MB]",
        "tree\nL0 r1[t1:c..d of a..z 1MB]\nL1 r2[t1:d..f of a..z 1MB]\nL2 r3[t1:f..y of a..z 1MB]",
        "tree\nL2 r1~k1[t1:a..m 5MB]\nL3 r2~k1[t2:c..z 5MB]\nL4 r3[t3:a..z 5MB]",
        "tree\nmem r9[t9:a..z 1MB]\nL0 r8~k1[t8:a..c 1MB] r7[t7:a..z 1MB] r6~k1[t6:x..z 1MB]",
        "tree\nL0 r1[t1:a..z 1MB]\nL1 r2[t2:x..z 1MB]\nL1 r2[t2:x..z 1MB]\nnote next_L1=z\n\
         note next_L0=\"\"\nnote merged_at=nonsense",
        "tree flushes 18446744073709551614 flushed 1B\nmem r2[t2:a..z 1MB]\nL0 r1[t1:a..z 1MB]",
        "tree flushes 1 flushed 1000000GiB\nL0 r1[t1:a..z 1MB] r0[t0:a..z 1MB]",
    ]
    .map(str::to_string)
    .to_vec();
    texts.push(runs("L0", MANY));
    texts.push(runs("L3", MANY));
    texts.push((0..MANY).fold("tree\n".to_string(), |text, i| {
        format!(
            "{text}L{i} r{}[t{}:a..z 1MB] r{}[t{}:c..x 1MB]\n",
            2 * i,
            2 * i,
            2 * i + 1,
            2 * i + 1
        )
    }));
    let mut views: Vec<TreeView> =
        texts.iter().map(|text| text.parse().expect("a legal tree")).collect();
    let waiting = random::view(random);
    views.push(waiting.clone());
    let views_of_memory = (0..8).fold(waiting, |mut view, _| {
        random::seal(random, &mut view.tree, 0..100);
        view
    });
    views.push(views_of_memory);
    views
}

fn runs(level: &str, count: usize) -> String {
    let mut text = format!("tree flushes {count} flushed {count}MB\n{level}");
    for run in (0..count).rev() {
        // Writing to a string cannot fail.
        let _ = write!(text, " r{run}[t{run}:a..z 1MB]");
    }
    text
}
