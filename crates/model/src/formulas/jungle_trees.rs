//! The policy jungle as the store has it: expected trees, followed from flush to flush.

use crate::cost::{Flushes, KeyOrder, Level, Model, Setting, Stage};
use std::collections::BTreeMap;

/// The tables of level 0.
const LEVEL0_TABLES: f64 = 4.0;

/// What falls between two trees makes a tree if it fills one part in this many of a new tree.
const NEW_TREE_PARTS: f64 = 32.0;

/// How often the trees are followed, each time with other ranges.
const COURSES: u32 = 8;

/// How much of the files of trees may be dead.
#[derive(Clone, Debug, PartialEq)]
pub enum DeadShare {
    /// Entries of each file over its live entries; more than 1. One number for each level, level 0
    /// first; the last one holds for all deeper levels.
    EachTree(Vec<f64>),
    /// Entries of all files over all live entries; more than 1.
    AllTrees(f64),
}

/// The policy jungle while data grow and are updated.
///
/// # Derivation
/// A tree holds the newest entry of each key of a range that was requested in an interval. Keys of
/// all ranges are requested alike, so a tree of the share `w` of the key space holds `w` times the
/// [expected size](Setting::size_between) of that interval. A piece with later requests makes the
/// interval longer. What was appended and does not add to the live size is dead.
///
/// Trees are followed from flush to flush by the rules of the policy: a level over its limit sends
/// down one tree after another, in the order of keys. A tree of one and a half tables is split into
/// equal parts. A tree is rewritten if too much of its file is dead. Small trees are not fused:
/// they follow from chance.
///
/// Chance is followed in one place. Trees that are cut from one hold equally many of its `n`
/// entries, so their ranges differ, by one part in the root of `n`. Without that all trees of a
/// level would outgrow a table at the same moment. Costs are the mean of eight courses, each with
/// other ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct JungleTrees {
    /// How much may be dead.
    pub dead: DeadShare,
    /// The ratio of the limits of neighbouring levels.
    pub ratio: f64,
    /// Entries of a table.
    pub table: f64,
}

impl JungleTrees {
    /// Returns true if the formula knows the trees. In a level that is not the last, what falls
    /// between two trees makes one if it has `table / ratio / 32` entries. If that is less than one
    /// entry, there is a tree between any two, which is fused soon. Expected trees leave no gaps
    /// for such trees.
    pub fn holds(&self) -> bool {
        self.table >= NEW_TREE_PARTS * self.ratio
    }

    /// Returns the costs per request, plus the log, of all full memtables of `setting`. Means are
    /// over flushes.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let mut sizes = Sizes { setting, known: BTreeMap::new() };
        let mut sums = Sums::default();
        for course in 0..COURSES {
            let chance = Chance(f64::from(course) / f64::from(COURSES));
            let forest = Forest {
                levels: Vec::new(),
                sizes: &mut sizes,
                jungle: self,
                chance,
                sums: &mut sums,
            };
            forest.follow();
        }
        let requests = sums.requests.max(1.0);
        let flushes = sums.flushes.max(1.0);
        let merged = if sums.flushed > 0.0 { 1.0 - sums.alone / sums.flushed } else { 0.0 };
        let stage = |name: &str, entries: f64, read: f64| {
            Stage::new(name, entries / requests, read / requests)
        };
        let mut stages = vec![Stage::log()];
        for (level, &entries) in sums.appended.iter().enumerate() {
            // A memtable is in memory and is not read.
            let read = if level == 0 { 0.0 } else { entries };
            stages.push(stage(&format!("append to level {level}"), entries, read));
        }
        stages.push(stage("split", sums.split, sums.split));
        stages.push(stage("rewrite in place", sums.rewritten, sums.rewritten));
        let means = sums.levels.iter().filter(|level| level.runs > 0.0);
        let means =
            means.map(|level| Level { runs: level.runs / flushes, size: level.size / flushes });
        let flushed = Flushes { size: sums.flushed / requests, merged };
        let model = Model::new(setting, flushed, stages, means.collect());
        Model { space_cost: sums.space / flushes, ..model }
    }
}

/// Sums over flushes, of all courses together.
#[derive(Default)]
struct Sums {
    requests: f64,
    flushes: f64,
    /// Entries that left memory.
    flushed: f64,
    /// Those of them that went into an empty level.
    alone: f64,
    /// Entries appended to the trees of each level.
    appended: Vec<f64>,
    /// Entries written to split trees.
    split: f64,
    /// Entries written to be rid of dead ones.
    rewritten: f64,
    /// Entries of all files over live ones.
    space: f64,
    levels: Vec<Level>,
}

impl Sums {
    fn append(&mut self, level: usize, entries: f64) {
        if self.appended.len() <= level {
            self.appended.resize(level + 1, 0.0);
        }
        self.appended[level] += entries;
    }
}

/// Expected sizes of intervals of requests.
struct Sizes<'a> {
    setting: &'a Setting<'a>,
    /// Those that were computed, by the bits of both ends.
    known: BTreeMap<[u64; 2], f64>,
}

impl Sizes<'_> {
    fn between(&mut self, since: f64, until: f64) -> f64 {
        let bits = [since.to_bits(), until.to_bits()];
        *self.known.entry(bits).or_insert_with(|| self.setting.size_between(since, until))
    }

    /// Appends `piece`, which lies in the range of `tree`, to it. Where only a part of the range
    /// gets later requests, the interval of the tree ends at the mean.
    fn grow(&mut self, tree: &mut Tree, piece: &Tree) {
        let width = piece.width();
        if width <= 0.0 {
            return;
        }
        // In each place the interval of the piece begins where that of the tree ends.
        let before = self.between(tree.since, piece.since);
        let grown = self.between(tree.since, piece.until) - before;
        let share = grown / self.between(piece.since, piece.until);
        let grown = piece.live * share.clamp(0.0, 1.0);
        tree.live += grown;
        tree.dead += piece.live - grown;
        tree.until += (piece.until - tree.until) * width / tree.width();
    }
}

/// A tree, or a piece that is appended.
#[derive(Clone, Copy, Debug)]
struct Tree {
    /// The range, in shares of the key space.
    start: f64,
    end: f64,
    /// The requests whose newest entries it holds: after the first number, up to the second.
    since: f64,
    until: f64,
    /// Live entries.
    live: f64,
    /// Entries that newer ones replace.
    dead: f64,
    /// The flush at which the file was made.
    born: u64,
}

impl Tree {
    fn width(&self) -> f64 {
        self.end - self.start
    }

    /// Returns the part of the tree in a range, as a file of its own.
    fn clip(&self, start: f64, end: f64, born: u64) -> Tree {
        let start = start.max(self.start);
        let end = end.min(self.end).max(start);
        let live = self.live * (end - start) / self.width();
        Tree { start, end, live, dead: 0.0, born, ..*self }
    }

    /// Returns the tree cut into `count` files with equally many entries. Their ranges differ by
    /// chance: with `n` entries each, by one part in the root of `n`.
    fn cut(self, count: f64, born: u64, chance: &mut Chance) -> Vec<Tree> {
        let live = self.live / count;
        let widths: Vec<f64> = (0..count as u32)
            .map(|_| (1.0 + chance.draw() / live.max(1.0).sqrt()).max(0.1))
            .collect();
        let all: f64 = widths.iter().sum();
        let mut end = self.start;
        let mut trees: Vec<Tree> = widths
            .into_iter()
            .map(|width| {
                let start = end;
                end = start + self.width() * width / all;
                Tree { start, end, live, dead: 0.0, born, ..self }
            })
            .collect();
        if let Some(last) = trees.last_mut() {
            last.end = self.end;
        }
        trees
    }
}

/// Numbers that are spread as a normal variable of deviation 1, nearly, always the same ones.
struct Chance(f64);

impl Chance {
    fn draw(&mut self) -> f64 {
        // Multiples of the golden ratio spread evenly over an interval of one.
        self.0 = (self.0 + 0.618_033_988_749_894_9).fract();
        // The quantile of the logistic distribution.
        (self.0 / (1.0 - self.0)).ln() * 3_f64.sqrt() / std::f64::consts::PI
    }
}

/// The run of a level.
#[derive(Default)]
struct Run {
    /// In the order of keys.
    trees: Vec<Tree>,
    /// The place from which the next tree goes down.
    next: f64,
}

impl Run {
    fn live(&self) -> f64 {
        self.trees.iter().map(|tree| tree.live).sum()
    }

    /// Takes out the tree whose turn it is to go down.
    fn take_next(&mut self) -> Tree {
        let at = self.trees.partition_point(|tree| tree.start < self.next);
        let tree = self.trees.remove(if at < self.trees.len() { at } else { 0 });
        self.next = tree.end;
        tree
    }

    fn insert(&mut self, tree: Tree) {
        let at = self.trees.partition_point(|other| other.start < tree.start);
        self.trees.insert(at, tree);
    }
}

/// The trees of all levels.
struct Forest<'a, 's> {
    levels: Vec<Run>,
    sizes: &'a mut Sizes<'s>,
    jungle: &'a JungleTrees,
    chance: Chance,
    sums: &'a mut Sums,
}

impl Forest<'_, '_> {
    /// Follows the trees from the first flush to the last.
    fn follow(mut self) {
        let setting = self.sizes.setting;
        let flushes = setting.full_memtables();
        let mut since = 0.0;
        for flush in 0..flushes as u64 {
            let until = setting.requests_of_flushes(flush as f64 + 1.0);
            if !until.is_finite() {
                break;
            }
            let [start, end] = match setting.order {
                KeyOrder::Random => [0.0, 1.0],
                KeyOrder::Ascending => [flush as f64, flush as f64 + 1.0].map(|at| at / flushes),
            };
            let live = self.sizes.between(since, until);
            let piece = Tree { start, end, since, until, live, dead: 0.0, born: flush };
            let is_alone = self.levels.first().is_none_or(|run| run.trees.is_empty());
            self.sums.alone += if is_alone { live } else { 0.0 };
            self.sums.flushed += live;
            self.sums.requests += until - since;
            self.sums.flushes += 1.0;
            self.append(0, &piece, flush);
            self.settle(flush);
            self.count(until);
            since = until;
        }
    }

    /// Counts what the levels hold after `requests`.
    fn count(&mut self, requests: f64) {
        let held: f64 = self.trees().map(|tree| tree.live + tree.dead).sum();
        let live = self.sizes.between(0.0, requests).min(self.sizes.setting.live());
        self.sums.space += held / live;
        let levels = &mut self.sums.levels;
        if levels.len() < self.levels.len() {
            levels.resize_with(self.levels.len(), || Level { runs: 0.0, size: 0.0 });
        }
        for (sum, run) in levels.iter_mut().zip(&self.levels) {
            sum.runs += if run.trees.is_empty() { 0.0 } else { 1.0 };
            sum.size += run.live();
        }
    }

    fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.levels.iter().flat_map(|run| &run.trees)
    }

    /// Returns the entries of a tree that is new in a gap of `level`.
    fn new_tree(&self, level: usize) -> f64 {
        match level {
            0 => self.jungle.table / LEVEL0_TABLES,
            _ if level + 1 >= self.levels.len() => self.jungle.table,
            _ => self.jungle.table / self.jungle.ratio,
        }
    }

    /// Appends `piece` to the trees of `level`. What falls between two trees makes new ones, or
    /// goes to the tree in front of it if it is little.
    fn append(&mut self, level: usize, piece: &Tree, flush: u64) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Run::default);
        }
        let new_tree = self.new_tree(level);
        let mut trees = std::mem::take(&mut self.levels[level].trees);
        let mut made = Vec::new();
        // The new trees of a gap; none if it takes too little.
        let chance = &mut self.chance;
        let mut fill = |start: f64, end: f64| {
            let gap = piece.clip(start, end, flush);
            let is_large = gap.live > 0.0 && gap.live >= new_tree / NEW_TREE_PARTS;
            let count = if is_large { (gap.live / new_tree).round().max(1.0) } else { 0.0 };
            made.extend(gap.cut(count, flush, chance));
            is_large
        };
        let count = trees.len();
        let mut written = 0.0;
        let first = trees.first().map_or(f64::INFINITY, |tree| tree.start);
        if piece.start < first && !fill(piece.start, first) {
            trees[0].start = piece.start;
        }
        for at in 0..count {
            let next = trees.get(at + 1).map_or(f64::INFINITY, |tree| tree.start);
            let tree = &mut trees[at];
            if next <= piece.start || tree.start >= piece.end {
                continue;
            }
            if tree.end < next.min(piece.end) && !fill(tree.end, next) {
                tree.end = next.min(piece.end);
            }
            let own = piece.clip(tree.start, tree.end, flush);
            written += own.live;
            self.sizes.grow(tree, &own);
        }
        written += made.iter().map(|tree| tree.live).sum::<f64>();
        trees.append(&mut made);
        trees.sort_by(|left, right| left.start.total_cmp(&right.start));
        self.levels[level].trees = trees;
        self.sums.append(level, written);
    }

    /// Does what is due after a flush.
    fn settle(&mut self, flush: u64) {
        while self.descend(flush) || self.split(flush) || self.rewrite(flush) {}
    }

    /// Takes trees out of the first level that is over its limit. A whole level goes down into an
    /// empty one, and a tree into a gap, without being written.
    fn descend(&mut self, flush: u64) -> bool {
        let JungleTrees { ratio, table, .. } = *self.jungle;
        let limits =
            std::iter::successors(Some(LEVEL0_TABLES * table), |limit| Some(limit * ratio));
        let full = self.levels.iter().zip(limits).position(|(run, limit)| run.live() > limit);
        let Some(level) = full else { return false };
        if self.levels.get(level + 1).is_none_or(|run| run.trees.is_empty()) {
            let trees = std::mem::take(&mut self.levels[level].trees);
            if level + 1 == self.levels.len() {
                self.levels.push(Run::default());
            }
            self.levels[level + 1].trees = trees;
            return true;
        }
        let tree = self.levels[level].take_next();
        let target = &mut self.levels[level + 1];
        if target.trees.iter().all(|other| other.end <= tree.start || tree.end <= other.start) {
            target.insert(tree);
        } else {
            self.append(level + 1, &tree, flush);
        }
        true
    }

    /// Splits the trees that have outgrown a table. Those of level 0 go down before.
    fn split(&mut self, flush: u64) -> bool {
        let table = self.jungle.table;
        let mut is_split = false;
        for run in self.levels.iter_mut().skip(1) {
            let trees = std::mem::take(&mut run.trees);
            for tree in trees {
                if tree.live <= 1.5 * table {
                    run.trees.push(tree);
                    continue;
                }
                run.trees.extend(tree.cut(
                    (tree.live / table).floor() + 1.0,
                    flush,
                    &mut self.chance,
                ));
                self.sums.split += tree.live;
                is_split = true;
            }
        }
        is_split
    }

    /// Rewrites trees because too much is dead.
    fn rewrite(&mut self, flush: u64) -> bool {
        let mut rewritten = 0.0;
        let mut renew = |tree: &mut Tree| {
            rewritten += tree.live;
            (tree.dead, tree.born) = (0.0, flush);
        };
        match &self.jungle.dead {
            DeadShare::EachTree(shares) => {
                for (level, run) in self.levels.iter_mut().enumerate() {
                    let share = shares.get(level).or(shares.last()).copied().unwrap_or(3.0);
                    let is_due = |tree: &&mut Tree| {
                        tree.dead > 0.0 && tree.live + tree.dead > share * tree.live
                    };
                    run.trees.iter_mut().filter(is_due).for_each(&mut renew);
                }
            }
            DeadShare::AllTrees(share) => {
                let mut trees: Vec<&mut Tree> =
                    self.levels.iter_mut().flat_map(|run| &mut run.trees).collect();
                let sum = |part: fn(&Tree) -> f64| trees.iter().map(|tree| part(tree)).sum::<f64>();
                let mut excess = sum(|tree| tree.dead) - (share - 1.0) * sum(|tree| tree.live);
                let score = |tree: &Tree| {
                    tree.dead / tree.live.max(1.0) * ((flush + 1 - tree.born).max(1) as f64)
                };
                trees.sort_by(|left, right| score(right).total_cmp(&score(left)));
                for tree in trees {
                    if excess <= 0.0 || tree.dead <= 0.0 {
                        break;
                    }
                    excess -= tree.dead;
                    renew(tree);
                }
            }
        }
        self.sums.rewritten += rewritten;
        rewritten > 0.0
    }
}
