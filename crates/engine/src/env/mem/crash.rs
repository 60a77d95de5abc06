//! What is left on the disk in memory after power loss.

use super::disk::{Disk, ROOT};
use super::node::{DirNode, FileNode, Node, NodeId};
use std::collections::BTreeMap;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Decides what survives: the same from the same seed.
#[derive(Debug)]
pub(super) struct Dice {
    seed: u64,
    thrown: u64,
    keep: f64,
}

impl Dice {
    pub(super) fn new(seed: u64, keep: f64) -> Dice {
        Dice { seed, thrown: 0, keep }
    }

    /// A number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.thrown += 1;
        xxh3_64_with_seed(&self.thrown.to_le_bytes(), self.seed) % limit.max(1)
    }

    fn keeps(&mut self) -> bool {
        // 53 bits: every number below 2^53 is a whole f64.
        let scale = 1_u64 << 53;
        (self.below(scale) as f64) < self.keep * scale as f64
    }
}

impl Disk {
    /// What a machine finds on this disk after losing power now.
    pub(super) fn after_power_loss(&self, dice: Dice) -> Disk {
        let mut copy =
            Copy { from: self, to: Disk::new(self.capacity), moved: BTreeMap::new(), dice };
        copy.dir(ROOT, ROOT);
        copy.to
    }
}

/// The copying of what survives.
struct Copy<'a> {
    from: &'a Disk,
    to: Disk,
    /// Where files went that have been copied; a file may be found under two names.
    moved: BTreeMap<NodeId, NodeId>,
    dice: Dice,
}

impl Copy<'_> {
    fn dir(&mut self, from: NodeId, to: NodeId) {
        let Some(Node::Dir(dir)) = self.from.nodes.get(&from) else {
            unreachable!("names lead to nodes that are kept as long as power loss brings them back")
        };
        let mut names = dir.synced.clone();
        for change in &dir.unsynced {
            if self.dice.keeps() {
                change.apply(&mut names);
            }
        }
        let names = names.into_iter().map(|(name, id)| (name, self.node(id))).collect();
        let dir = self.to.dir_mut(to);
        dir.names = names;
        dir.sync();
    }

    fn node(&mut self, id: NodeId) -> NodeId {
        match self.from.nodes.get(&id) {
            Some(Node::File(file)) => {
                let copied = self.moved.get(&id).copied();
                let to = copied.unwrap_or_else(|| {
                    let file = after_power_loss(file, &mut self.dice);
                    self.to.add(Node::File(file))
                });
                self.moved.insert(id, to);
                self.to.file_mut(to).links += 1;
                to
            }
            _ => {
                let to = self.to.add(Node::Dir(DirNode::default()));
                self.dir(id, to);
                to
            }
        }
    }
}

/// What is left of `file`: no name leads to it yet.
fn after_power_loss(file: &FileNode, dice: &mut Dice) -> FileNode {
    if let Some(before) = &file.before_cut
        && !dice.keeps()
    {
        return after_power_loss(before, dice);
    }
    let mut left = FileNode { links: 0, handles: 0, ..file.clone() };
    if !dice.keeps() {
        left.length -= dice.below(file.length - file.synced_length + 1);
    }
    for part in file.unsynced_parts() {
        let lost_from = if !dice.keeps() {
            part.start
        } else if dice.below(4) == 0 {
            // Written back between two appends: those that came later are not in it.
            let earlier = file.append_ends.iter().filter(|end| part.contains(end));
            let earlier: Vec<u64> = earlier.copied().collect();
            let chosen = dice.below(earlier.len() as u64) as usize;
            earlier.get(chosen).copied().unwrap_or(part.end)
        } else {
            part.end
        };
        let stored = Arc::make_mut(&mut left.bytes);
        let lost = lost_from as usize..(part.end as usize).min(stored.len());
        if !lost.is_empty() {
            stored[lost].fill(0);
        }
    }
    if left.length < left.bytes.len() as u64 {
        Arc::make_mut(&mut left.bytes).truncate(left.length as usize);
    }
    left.end = left.end.min(left.length);
    left.sync();
    left
}
