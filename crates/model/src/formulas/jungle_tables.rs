//! The policy jungle as the store has it: expected append tables, followed from flush to flush.

use crate::cost::{Flushes, KeyOrder, Level, Model, Setting, Stage};
use std::collections::BTreeMap;
use std::ops::Range;

/// The tables of level 0.
const LEVEL0_TABLES: f64 = 4.0;

/// What falls between two append tables makes an append table if it fills one part in this many of
/// a new append table.
const NEW_APPEND_PARTS: f64 = 32.0;

/// An append table of less than one part in this many of a new append table is fused with a
/// neighbour.
const SMALL_PARTS: f64 = 5.0;

/// Nodes, as `lsmith_tree::ReplacedNodes` counts them: entries of a leaf, bytes of each, bytes of a
/// leaf in the node above and the leaves that it has, and bytes of a root.
const LEAF_ENTRIES: f64 = 128.0;
const REFERENCE_BYTES: f64 = 24.0;
const CHILD_BYTES: f64 = 24.0;
const CHILDREN: f64 = 128.0;
const ROOT_BYTES: f64 = 192.0;

/// How often the append tables are followed, each time with other ranges.
const COURSES: u32 = 8;

/// How much of the files of append tables may be dead.
#[derive(Clone, Debug, PartialEq)]
pub enum DeadShare {
    /// Entries of each file over its live entries; more than 1. One number for each level, level 0
    /// first; the last one holds for all deeper levels.
    Each(Vec<f64>),
    /// Entries of all files over all live entries; more than 1.
    All(f64),
}

/// The policy jungle while data grow and are updated.
///
/// # Derivation
/// An append table holds the newest entry of each key of a range that was requested in an interval.
/// Keys of all ranges are requested alike, so an append table of the share `w` of the key space
/// holds `w` times the [expected size](Setting::size_between) of that interval. A piece with later
/// requests makes the interval longer. What was appended and does not add to the live size is dead,
/// and so are the nodes that it replaced.
///
/// Append tables are followed from flush to flush by the rules of the policy: a level over its
/// limit sends down one append table after another, in the order of keys. An append table of one
/// and a half tables is split into equal parts. An append table is rewritten if too much of its
/// file is dead.
///
/// Chance is followed in two places. Append tables that are cut from one hold equally many of its
/// `n` entries, so their ranges differ, by one part in the root of `n`. Without that all append
/// tables of a level would outgrow a table at the same moment. Costs are the mean of eight courses,
/// each with other ranges.
///
/// The second place are the gaps between append tables. If many entries of a piece fall into one
/// gap, they make a small append table. A small append table is fused with a neighbour if both fit
/// into a table. Fusing writes the neighbour anew and drops its dead entries. The formula counts
/// the mean cost of fusing. It does not follow small append tables.
#[derive(Clone, Debug, PartialEq)]
pub struct JungleTables {
    /// How much may be dead.
    pub dead: DeadShare,
    /// The ratio of the limits of neighbouring levels.
    pub ratio: f64,
    /// Entries of a table.
    pub table: f64,
}

impl JungleTables {
    /// Returns true if the formula knows the append tables. An append table that is new in a gap
    /// has a quarter of a table in level 0, and `table / ratio` entries between that and the last
    /// level. If less than one entry were enough for an append table in level 0, there would be one
    /// between any two, and level 0 fuses none. If an append table of one entry were not small
    /// beside a new one, other levels would not fuse it either.
    pub fn holds(&self) -> bool {
        let [level0, others] = [self.table / LEVEL0_TABLES, self.table / self.ratio];
        level0 >= NEW_APPEND_PARTS && others >= SMALL_PARTS
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
        stages.push(stage("fuse", sums.fused, sums.fused));
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
    /// Flushed entries that went into an empty level.
    alone: f64,
    /// Entries appended to the append tables of each level.
    appended: Vec<f64>,
    /// Entries written to split append tables.
    split: f64,
    /// Entries written to fuse small append tables with a neighbour.
    fused: f64,
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
    /// The sizes that were computed, by the bits of both ends.
    known: BTreeMap<[u64; 2], f64>,
}

impl Sizes<'_> {
    fn between(&mut self, since: f64, until: f64) -> f64 {
        let bits = [since.to_bits(), until.to_bits()];
        *self.known.entry(bits).or_insert_with(|| self.setting.size_between(since, until))
    }

    /// Returns the nodes of a new append table of `entries`, as so many entries.
    fn nodes(&self, entries: f64) -> f64 {
        let leaves = (entries / LEAF_ENTRIES).ceil();
        node_bytes(entries, leaves, leaves) / self.setting.item_bytes
    }

    /// Returns the nodes that are replaced in an append table of `entries` if `new` ones are
    /// appended to the share `covered` of its range, as so many entries.
    fn replaced(&self, entries: f64, new: f64, covered: f64) -> f64 {
        let all = (entries / LEAF_ENTRIES).ceil().max(1.0);
        let within = entries / LEAF_ENTRIES * covered.min(1.0);
        let met = if within > 0.0 { -within * (-new / within).exp_m1() } else { 0.0 };
        node_bytes(entries, met.clamp(1.0, all), all) / self.setting.item_bytes
    }

    /// Appends `piece`, which lies in the range of `file`, to it. Where only a part of the range
    /// gets later requests, the interval of the append table ends at the mean. Returns the live
    /// entries that the append table has more.
    fn grow(&mut self, file: &mut AppendTable, piece: &AppendTable) -> f64 {
        let width = piece.width();
        if width <= 0.0 {
            return 0.0;
        }
        // In each place the interval of the piece begins where the append table's interval ends.
        let before = self.between(file.since, piece.since);
        let grown = self.between(file.since, piece.until) - before;
        let share = grown / self.between(piece.since, piece.until);
        let grown = piece.live * share.clamp(0.0, 1.0);
        let replaced = self.replaced(file.live, piece.live, width / file.width());
        file.live += grown;
        file.dead += piece.live - grown + replaced;
        file.until += (piece.until - file.until) * width / file.width();
        grown
    }
}

/// Returns the bytes of `leaves` of all leaves of an append table of `entries`, and of the nodes
/// above.
fn node_bytes(entries: f64, leaves: f64, all: f64) -> f64 {
    let above = if all > 1.0 { all.min(leaves * CHILDREN) * CHILD_BYTES } else { 0.0 };
    (leaves * LEAF_ENTRIES).min(entries) * REFERENCE_BYTES + above + ROOT_BYTES
}

/// An append table, or a piece that is appended.
#[derive(Clone, Copy, Debug)]
struct AppendTable {
    /// The range, in shares of the key space.
    start: f64,
    end: f64,
    /// The requests whose newest entries it holds: after the first position, up to the second.
    since: f64,
    until: f64,
    /// Live entries.
    live: f64,
    /// Entries that newer ones replace.
    dead: f64,
    /// The flush at which the file was made.
    born: u64,
}

impl AppendTable {
    fn width(&self) -> f64 {
        self.end - self.start
    }

    /// Returns the part of the append table in a range, as a file of its own.
    fn clip(&self, start: f64, end: f64, born: u64) -> AppendTable {
        let start = start.max(self.start);
        let end = end.min(self.end).max(start);
        let live = self.live * (end - start) / self.width();
        AppendTable { start, end, live, dead: 0.0, born, ..*self }
    }

    /// Makes the file anew at `flush`. Returns the dead entries that it had.
    fn renew(&mut self, flush: u64) -> f64 {
        self.born = flush;
        std::mem::take(&mut self.dead)
    }

    /// Returns the append table cut into `count` files with equally many entries. Their ranges
    /// differ by chance: with `n` entries each, by one part in the root of `n`.
    fn cut(self, count: f64, born: u64, chance: &mut Chance) -> Vec<AppendTable> {
        let live = self.live / count;
        let widths: Vec<f64> = (0..count as u32)
            .map(|_| (1.0 + chance.draw() / live.max(1.0).sqrt()).max(0.1))
            .collect();
        let all: f64 = widths.iter().sum();
        let mut end = self.start;
        let mut files: Vec<AppendTable> = widths
            .into_iter()
            .map(|width| {
                let start = end;
                end = start + self.width() * width / all;
                AppendTable { start, end, live, dead: 0.0, born, ..self }
            })
            .collect();
        if let Some(last) = files.last_mut() {
            last.end = self.end;
        }
        files
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

/// Returns the probability that a gap between two neighbours takes at least `least` entries, if
/// `new` of all `entries` of a range came between the older entries.
fn gap_takes(least: f64, new: f64, entries: f64) -> f64 {
    // Each next entry in the order of keys is new, or the second neighbour.
    if new > 0.0 { (new / entries).powf(least) } else { 0.0 }
}

/// The run of a level.
#[derive(Default)]
struct Run {
    /// In the order of keys.
    files: Vec<AppendTable>,
    /// The place from which the next append table goes down.
    next: f64,
    /// Live entries of all append tables.
    live: f64,
    /// Dead entries of all append tables.
    dead: f64,
    /// A range that has all append tables that have changed since the last flush.
    changed: Option<[f64; 2]>,
}

impl Run {
    fn change(&mut self, start: f64, end: f64) {
        let [least, most] = self.changed.unwrap_or([start, end]);
        self.changed = Some([least.min(start), most.max(end)]);
    }

    /// Returns the places in the order of keys of the append tables that have a part of a range.
    fn overlapping(&self, start: f64, end: f64) -> Range<usize> {
        let first = self.files.partition_point(|file| file.end <= start);
        first..self.files.partition_point(|file| file.start < end).max(first)
    }

    /// Returns the places of all append tables that may have changed since the last flush.
    fn changed(&self) -> Range<usize> {
        self.changed.map_or(0..0, |[start, end]| self.overlapping(start, end))
    }

    /// Takes out the append table whose turn it is to go down.
    fn take_next(&mut self) -> AppendTable {
        let at = self.files.partition_point(|file| file.start < self.next);
        let file = self.files.remove(if at < self.files.len() { at } else { 0 });
        self.next = file.end;
        self.live -= file.live;
        self.dead -= file.dead;
        file
    }

    fn insert(&mut self, file: AppendTable) {
        let at = self.files.partition_point(|other| other.start < file.start);
        self.files.insert(at, file);
        self.live += file.live;
        self.dead += file.dead;
        self.change(file.start, file.end);
    }
}

/// The append tables of all levels.
struct Forest<'a, 's> {
    levels: Vec<Run>,
    sizes: &'a mut Sizes<'s>,
    jungle: &'a JungleTables,
    chance: Chance,
    sums: &'a mut Sums,
}

impl Forest<'_, '_> {
    /// Follows the append tables from the first flush to the last.
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
            let piece = AppendTable { start, end, since, until, live, dead: 0.0, born: flush };
            let is_alone = self.levels.first().is_none_or(|run| run.files.is_empty());
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
        let held: f64 = self.levels.iter().map(|run| run.live + run.dead).sum();
        let live = self.sizes.between(0.0, requests).min(self.sizes.setting.live());
        self.sums.space += held / live;
        let levels = &mut self.sums.levels;
        if levels.len() < self.levels.len() {
            levels.resize_with(self.levels.len(), || Level { runs: 0.0, size: 0.0 });
        }
        for (sum, run) in levels.iter_mut().zip(&self.levels) {
            sum.runs += if run.files.is_empty() { 0.0 } else { 1.0 };
            sum.size += run.live;
        }
    }

    /// Returns the entries of an append table that is new in a gap of `level`.
    fn new_file(&self, level: usize) -> f64 {
        match level {
            0 => self.jungle.table / LEVEL0_TABLES,
            _ if level + 1 >= self.levels.len() => self.jungle.table,
            _ => self.jungle.table / self.jungle.ratio,
        }
    }

    /// Appends `piece` to the append tables of `level`. What falls between two append tables makes
    /// new ones, or goes to the append table in front of it if it is little.
    fn append(&mut self, level: usize, piece: &AppendTable, flush: u64) {
        if self.levels.len() <= level {
            self.levels.resize_with(level + 1, Run::default);
        }
        let new_file = self.new_file(level);
        let run = &mut self.levels[level];
        let mut made = Vec::new();
        // The new append tables of a gap; none if it takes too little.
        let chance = &mut self.chance;
        let mut fill = |start: f64, end: f64| {
            let gap = piece.clip(start, end, flush);
            let is_large = gap.live > 0.0 && gap.live >= new_file / NEW_APPEND_PARTS;
            let count = if is_large { (gap.live / new_file).round().max(1.0) } else { 0.0 };
            made.extend(gap.cut(count, flush, chance));
            is_large
        };
        let first = run.files.first().map_or(f64::INFINITY, |file| file.start);
        if piece.start < first && !fill(piece.start, first) {
            run.files[0].start = piece.start;
        }
        // The append table in front of the piece may take in what is little.
        let met = run.overlapping(piece.start, piece.end);
        let least = (new_file / NEW_APPEND_PARTS).ceil();
        let (mut written, mut grown, mut dead) = (0.0, 0.0, 0.0);
        for at in met.start.saturating_sub(1)..met.end {
            let next = run.files.get(at + 1).map_or(f64::INFINITY, |file| file.start);
            let file = &mut run.files[at];
            if next <= piece.start {
                continue;
            }
            if file.end < next.min(piece.end) && !fill(file.end, next) {
                file.end = next.min(piece.end);
            }
            let own = piece.clip(file.start, file.end, flush);
            written += own.live;
            let before = file.dead;
            let new = self.sizes.grow(file, &own);
            grown += new;
            dead += file.dead - before;
            // Level 0 fuses no append tables.
            let small = if level > 0 { gap_takes(least, new, file.live) } else { 0.0 };
            if file.live <= self.jungle.table {
                self.sums.fused += small * file.live;
                let gone = small * file.dead;
                file.dead -= gone;
                run.dead -= gone;
            }
        }
        run.live += grown;
        run.dead += dead;
        run.change(piece.start, piece.end);
        for file in made {
            written += file.live;
            run.insert(file);
        }
        self.sums.append(level, written);
    }

    /// Does what is due after a flush.
    fn settle(&mut self, flush: u64) {
        while self.descend(flush) {}
        self.split(flush);
        match &self.jungle.dead {
            DeadShare::Each(shares) => self.rewrite_each(shares, flush),
            DeadShare::All(share) => self.rewrite_of_all(*share, flush),
        }
        for run in &mut self.levels {
            run.changed = None;
        }
    }

    /// Takes append tables out of the first level that is over its limit. A whole level goes down
    /// into an empty one, and an append table into a gap, without being written.
    fn descend(&mut self, flush: u64) -> bool {
        let JungleTables { ratio, table, .. } = *self.jungle;
        let limits =
            std::iter::successors(Some(LEVEL0_TABLES * table), |limit| Some(limit * ratio));
        let full = self.levels.iter().zip(limits).position(|(run, limit)| run.live > limit);
        let Some(level) = full else { return false };
        if self.levels.get(level + 1).is_none_or(|run| run.files.is_empty()) {
            if level + 1 == self.levels.len() {
                self.levels.push(Run::default());
            }
            let next = self.levels[level].next;
            let moved = std::mem::take(&mut self.levels[level]);
            self.levels[level].next = next;
            let next = self.levels[level + 1].next;
            self.levels[level + 1] = Run { next, changed: Some([0.0, 1.0]), ..moved };
            return true;
        }
        let file = self.levels[level].take_next();
        let target = &mut self.levels[level + 1];
        if target.overlapping(file.start, file.end).is_empty() {
            target.insert(file);
        } else {
            self.append(level + 1, &file, flush);
        }
        true
    }

    /// Splits the append tables that have outgrown a table. Append tables of level 0 go down
    /// before.
    fn split(&mut self, flush: u64) {
        let table = self.jungle.table;
        for run in self.levels.iter_mut().skip(1) {
            let changed = run.changed();
            let is_large = |file: &AppendTable| file.live > 1.5 * table;
            if !run.files[changed.clone()].iter().any(is_large) {
                continue;
            }
            let mut files = Vec::new();
            for &file in &run.files[changed.clone()] {
                if !is_large(&file) {
                    files.push(file);
                    continue;
                }
                let count = (file.live / table).floor() + 1.0;
                files.extend(file.cut(count, flush, &mut self.chance));
                run.dead -= file.dead;
                self.sums.split += file.live;
            }
            run.files.splice(changed, files);
        }
    }

    /// Rewrites each append table of whose file too much is dead.
    fn rewrite_each(&mut self, shares: &[f64], flush: u64) {
        for (level, run) in self.levels.iter_mut().enumerate() {
            let share = shares.get(level).or(shares.last()).copied().unwrap_or(3.0);
            for at in run.changed() {
                let file = &mut run.files[at];
                let live = file.live + self.sizes.nodes(file.live);
                if file.dead > 0.0 && file.dead > (share - 1.0) * live {
                    run.dead -= file.renew(flush);
                    self.sums.rewritten += file.live;
                }
            }
        }
    }

    /// Rewrites append tables as long as too much is dead of all files together. The append table
    /// with the greatest share of dead entries times the age of its file comes first.
    fn rewrite_of_all(&mut self, share: f64, flush: u64) {
        let score = |file: &AppendTable| {
            file.dead / file.live.max(1.0) * ((flush + 1 - file.born).max(1) as f64)
        };
        loop {
            let files = self.levels.iter().flat_map(|run| &run.files);
            let live: f64 = files.map(|file| file.live + self.sizes.nodes(file.live)).sum();
            let dead: f64 = self.levels.iter().map(|run| run.dead).sum();
            if dead <= (share - 1.0) * live {
                return;
            }
            let most = self.levels.iter().enumerate().flat_map(|(level, run)| {
                let scores = run.files.iter().map(score).enumerate();
                scores.map(move |(at, score)| (score, level, at))
            });
            let most = most.max_by(|left, right| left.0.total_cmp(&right.0));
            let Some((_, level, at)) = most.filter(|(score, ..)| *score > 0.0) else { return };
            let run = &mut self.levels[level];
            let file = &mut run.files[at];
            run.dead -= file.renew(flush);
            self.sums.rewritten += file.live;
        }
    }
}
