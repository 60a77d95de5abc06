//! Legal trees that no policy would make.

use super::random::{self, Random};
use lsmith_tree::TreeView;
use std::fmt::Write;

/// The number of levels with a run each, or of runs in one level.
const MANY: usize = 60;

/// A tree with the largest possible sizes and counts, and three levels to learn about. The second
/// level holds too much.
const LARGE: &str = "view memtable 1B\n\
    tree flushes 4611686018427387904 flushed 72057594037927936B\n\
    mem r9[t9:a..z 1MB]\nL1 r3[t3:a..z 9007199254740992B]\n\
    L2 r2[t2:a..z 9007199254740992B {c 1B, e 2B}]\nL3 r1[t1:a..z 9007199254740992B]\n\
    count L1 bytes_from_memory 72057594037927936 bytes_in 72057594037927936 \
    blocks_written 72057594037927936 slack 72057594037927936 room_added 72057594037927936\n\
    count L3 bytes_in 72057594037927936 bytes_written 5 blocks_written 72057594037927936\n";

/// Returns notes with the greatest possible values. No policy writes such notes.
fn notes() -> Vec<String> {
    let most = u64::MAX;
    let steps = [
        "watch".to_string(),
        "full".to_string(),
        "done".to_string(),
        format!("settle {most} {most}"),
        format!("part {most} 0"),
        format!("tau 2 {most} {most} {most}"),
        format!("tau {most} {most}"),
    ];
    let mut all = Vec::new();
    for step in steps {
        for (least, blocks) in [(0, 1), (most, 1), (most, most)] {
            all.push(format!(
                "note learn=\"{step}\"\nnote learn_at=\"{least} {least}\"\n\
                 note learned_at=\"3 {blocks} {most}\"\nnote watched=\"3 0 {blocks}\"\n\
                 note last_cycle={most}\nnote tau_2={most}\nnote merged_at={most}\n\
                 note compacted=\"{most} {most}\"\nnote sweep_round=\"1/{most}\""
            ));
        }
    }
    all
}

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
    texts.extend(notes().iter().map(|notes| format!("{LARGE}{notes}")));
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
