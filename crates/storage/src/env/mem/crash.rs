//! Computes the contents of the disk in memory after power loss.

use super::disk::{Disk, ROOT};
use super::loss::Loss;
use super::map::index;
use super::node::{DirNode, FileNode, Node, NodeId, SECTOR_BYTES};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Says whether a change is one of names or of contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChangeKind {
    Name,
    Contents,
}

/// Decides which changes survive. The same seed gives the same decisions.
#[derive(Debug)]
struct Dice {
    seed: u64,
    thrown: u64,
    loss: Loss,
    /// For losses that divide earlier changes from later ones: the last earlier moment.
    moment: u64,
}

impl Dice {
    /// Returns a pseudo-random number below `limit`.
    fn below(&mut self, limit: u64) -> u64 {
        self.thrown += 1;
        xxh3_64_with_seed(&self.thrown.to_le_bytes(), self.seed) % limit.max(1)
    }

    /// Returns true if a change made at the moment `at` survives.
    fn keeps(&mut self, kind: ChangeKind, at: u64) -> bool {
        match self.loss {
            Loss::Nothing => true,
            Loss::Everything => false,
            Loss::Parts { keep } => self.chance(keep),
            Loss::Torn { .. } => self.chance(0.5),
            Loss::Later => at <= self.moment,
            Loss::Earlier => at > self.moment,
            Loss::Contents => kind == ChangeKind::Name,
            Loss::Names => kind == ChangeKind::Contents,
        }
    }

    fn chance(&mut self, probability: f64) -> bool {
        // 53 bits: every number below 2^53 is a whole f64.
        let scale = 1_u64 << 53;
        (self.below(scale) as f64) < probability * scale as f64
    }

    /// Returns the offset up to which the unsynced `part` of `file` survives.
    fn end_kept(&mut self, file: &FileNode, part: &Range<u64>) -> u64 {
        let within = file.written_within(part);
        let last = file.written_at(part.end);
        if self.loss == Loss::Later && last > self.moment {
            // Writes end at ascending offsets, each later than the writes before it.
            let earlier = within.partition_point(|written| written.at <= self.moment);
            return within[..earlier].last().map_or(part.start, |written| written.end);
        }
        if !self.keeps(ChangeKind::Contents, last) {
            return part.start;
        }
        let between = matches!(self.loss, Loss::Parts { .. } | Loss::Torn { .. });
        if between && file.is_log() && self.below(4) == 0 {
            // The sector was written back between two appends, so the later ones are missing.
            let chosen = self.below(within.len() as u64) as usize;
            return within.get(chosen).map_or(part.end, |written| written.end);
        }
        part.end
    }
}

impl Disk {
    /// Returns the disk that a machine finds after losing power now.
    pub(super) fn after_power_loss(&self, seed: u64, loss: Loss) -> Disk {
        let mut dice = Dice { seed, thrown: 0, loss, moment: 0 };
        let first = self.first_unsynced();
        // The moment lies between just before the first unsynced change and the last change.
        dice.moment = first.saturating_sub(1) + dice.below(self.clock + 2 - first);
        let mut to = Disk::new(self.capacity);
        to.drawn = self.drawn;
        let mut copy = SurvivorCopy { from: self, to, moved: BTreeMap::new(), dice };
        copy.dir(ROOT, ROOT);
        copy.to
    }

    /// Returns the moment of the oldest change that is not synced.
    fn first_unsynced(&self) -> u64 {
        let moments = self.nodes.values().flat_map(|node| match node {
            Node::Dir(dir) => dir.unsynced.first().map(|(at, _)| *at),
            Node::File(file) => file.first_unsynced(),
        });
        moments.min().unwrap_or(self.clock)
    }
}

/// Copies what survives.
struct SurvivorCopy<'a> {
    from: &'a Disk,
    to: Disk,
    /// The new ids of copied files. A file may be found under two names.
    moved: BTreeMap<NodeId, NodeId>,
    dice: Dice,
}

impl SurvivorCopy<'_> {
    fn dir(&mut self, from: NodeId, to: NodeId) {
        let Some(Node::Dir(dir)) = self.from.nodes.get(&from) else {
            unreachable!("a node stays while a name or a power loss can lead to it")
        };
        let mut names = dir.synced.clone();
        for (at, change) in &dir.unsynced {
            if self.dice.keeps(ChangeKind::Name, *at) {
                change.apply(&mut names);
            }
        }
        let copied = names.into_iter().map(|(name, id)| (name, self.node(id))).collect();
        let dir = self.to.dir_mut(to);
        dir.names = copied;
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

/// Returns what is left of `file`, without any name yet.
fn after_power_loss(file: &FileNode, dice: &mut Dice) -> FileNode {
    if let Some(before) = &file.before_cut
        && !dice.keeps(ChangeKind::Contents, before.at)
    {
        return after_power_loss(&before.file, dice);
    }
    let mut left = FileNode { links: 0, handles: 0, ..file.clone() };
    lose_length(&mut left, dice);
    fill_holes(&mut left, dice);
    for part in file.unsynced_parts() {
        lose_part(&mut left, file, part, dice);
    }
    for part in &file.dropped {
        zero(&mut left, part);
    }
    if left.length < left.bytes.len() as u64 {
        Arc::make_mut(&mut left.bytes).truncate(left.length as usize);
    }
    left.end = left.end.min(left.length);
    left.dropped.clear();
    left.sync();
    left
}

fn lose_length(left: &mut FileNode, dice: &mut Dice) {
    let grown = left.length.saturating_sub(left.synced_length);
    if grown > 0 && !dice.keeps(ChangeKind::Contents, left.written_at(left.end)) {
        left.length -= match dice.loss {
            Loss::Parts { .. } | Loss::Torn { .. } => dice.below(grown + 1),
            Loss::Later => left.length - dice.end_kept(left, &(left.synced_length..left.length)),
            _ => grown,
        };
    }
}

/// Brings back bytes that were punched out of a file without a sync.
fn fill_holes(left: &mut FileNode, dice: &mut Dice) {
    let punched = std::mem::take(&mut left.punched);
    let (stay, lost): (Vec<_>, Vec<_>) =
        punched.into_iter().partition(|punched| dice.keeps(ChangeKind::Contents, punched.at));
    left.holes.clone_from(&left.synced_holes);
    stay.into_iter().for_each(|punched| left.holes.add(punched.place));
    // The oldest comes last, because its bytes were there before the other changes.
    for punched in lost.into_iter().rev() {
        let start = punched.place.start as usize;
        let is_hole = left.holes.gaps_in(punched.place).is_empty();
        let stored = Arc::make_mut(&mut left.bytes);
        if !is_hole && let Some(page) = stored.get_mut(start..start + punched.bytes.len()) {
            page.copy_from_slice(&punched.bytes);
        }
    }
}

/// Loses what `dice` choose of the unsynced `part` of `file`.
fn lose_part(left: &mut FileNode, file: &FileNode, part: Range<u64>, dice: &mut Dice) {
    let torn = match dice.loss {
        Loss::Torn { logs } => (logs || !file.is_log()) && dice.below(3) == 0,
        _ => false,
    };
    if torn {
        return tear(left, part, dice);
    }
    let kept = dice.end_kept(file, &part);
    if kept < part.end {
        zero(left, &(kept..part.end));
    }
}

/// Mixes, in some sectors of `part`, old bytes with written ones, or fills them with garbage.
fn tear(left: &mut FileNode, part: Range<u64>, dice: &mut Dice) {
    let is_log = left.is_log();
    let stored = Arc::make_mut(&mut left.bytes);
    let mut start = part.start as usize;
    while start < part.end as usize {
        let sector_end = (start / SECTOR_BYTES as usize + 1) * SECTOR_BYTES as usize;
        let end = sector_end.min(part.end as usize);
        let stored_end = end.min(stored.len());
        let Some(sector) = stored.get_mut(start..stored_end) else { return };
        match dice.below(if is_log { 2 } else { 5 }) {
            0 => sector.chunks_mut(8).for_each(|word| {
                if dice.below(2) == 0 {
                    word.fill(0);
                }
            }),
            1 => {
                let kept = dice.below(sector.len() as u64) as usize;
                sector[if is_log { kept / 8 * 8 } else { kept }..].fill(0);
            }
            2 => sector.iter_mut().for_each(|byte| *byte = dice.below(256) as u8),
            3 => sector.fill(0),
            _ => {}
        }
        start = end;
    }
}

fn zero(left: &mut FileNode, place: &Range<u64>) {
    let bytes = Arc::make_mut(&mut left.bytes);
    let end = index(place.end).min(bytes.len());
    bytes.get_mut(index(place.start)..end).unwrap_or_default().fill(0);
}
