//! Moose: levels whose ratios and numbers of runs cost least together.

use super::fluid::Filling;
use crate::pressure::pressure_of_runs;
use crate::read_price::{FROM_READS, ReadPrice};
use crate::{Eager, Explanation, Load, MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{LEVELS_MAX, MergePlan, TreeView};
use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

/// Levels as `fluid` has them, each with a ratio and a most number of runs of its own. With these
/// levels writes cost least: what merges write, and `price` for each run while a memtable is
/// written.
///
/// 1. A level above the last takes `ratio` runs, and then all of it goes down. With at most `n`
///    runs, and `ratio` = `j n + 1`, `j - 1` merges stay in the level.
/// 2. The last level holds all keys, and takes all that comes. Each `n` runs that come down are
///    merged with all of it.
/// 3. What levels cost adds up, and their ratios multiply. So the best levels above the last are
///    found for every product of ratios, from the least on: the best for a product are the best for
///    a part of it, and one level more. At each product the last level takes the data that remain.
///
/// The best number of runs grows like the root of the ratio, as the paper says. The larger the last
/// ratio, the fewer bytes are held besides the last run: at most `n / ratio`, and `space` bounds
/// that.
///
/// The size of the data is `size`. Without it, levels are made for twice the oldest run, and anew
/// when that has more bytes than they are for, or less than a quarter. Sizes are powers of the root
/// of 2. With price 1, the levels for 64 memtables are four of ratio 2 and one run, and a last one
/// of two runs with a ratio of 4.
///
/// The paper takes the number of runs from the ratio, and its dynamic program makes the sum of the
/// roots of all ratios least. Here the program counts the merges of `fluid`. The paper sets Bloom
/// filters by level too, and counts their false positives: here the store sets them, and `get`
/// prices a run whatever its level. How the paper changes levels while data grow is not known here.
///
/// Source: Liu et al., "Structural Designs Meet Optimality: Exploring Optimized LSM-tree Structures
/// in a Colossal Configuration Space", SIGMOD 2024: its abstract, and notes of a reader on its
/// dynamic program. The paper itself was not at hand.
#[derive(Clone, Debug)]
pub struct Moose {
    price: f64,
    reads: Option<ReadPrice>,
    space: f64,
    size: Option<u64>,
    eager: Eager,
    /// The levels of each size, at each price that reads can come to.
    designs: Arc<Vec<OnceLock<Vec<Rung>>>>,
}

/// A level: the runs that it takes until it is full, and the most that it has at rest.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Rung {
    ratio: u64,
    runs: u64,
}

/// The price if none is given, and until reads were counted for one memtable.
const PRICE: f64 = 1.0;

/// Prices that follow from reads are powers of two, from the least one on.
const PRICES: std::ops::RangeInclusive<i32> = -10..=10;

/// The sizes of data that have levels of their own: powers of the root of 2, in memtables. Larger
/// data have the levels of the largest, whose last ratio is larger then.
const SIZES: usize = 41;

/// The ratios that are tried. A level may have as many runs as divide its ratio less one. For most
/// of these ratios there are many such numbers.
const RATIOS: [u64; 21] =
    [2, 3, 4, 5, 6, 7, 8, 9, 10, 13, 16, 17, 21, 25, 31, 37, 49, 61, 97, 121, 241];

/// The most runs of a level.
const RUNS_MAX: u64 = 64;

/// The size for which the levels were made, as a power of the root of 2.
const SIZE: &str = "moose_size";

impl Rung {
    /// Returns what the level costs above the last, if its ratio is `j * runs + 1`.
    fn cost(self, price: f64) -> f64 {
        let (ratio, runs) = (self.ratio as f64, self.runs as f64);
        let merges = (ratio - 1.0) / runs;
        let fresh = ratio - merges;
        let again = runs * merges * (merges - 1.0) / 2.0 + merges - 1.0;
        (fresh + again + price * merges * runs * (runs + 1.0) / 2.0) / ratio
    }

    /// Returns what the last level costs if it has `share` times what comes down at once.
    fn last_cost(runs: u64, share: f64, price: f64) -> f64 {
        let runs = runs as f64;
        (runs - 1.0 + share) / runs + price * (runs + 1.0) / 2.0
    }
}

/// Returns the levels that cost least for data of `memtables` memtables, the first level first.
fn design(memtables: f64, price: f64, space: f64) -> Vec<Rung> {
    let best_of = |ratio: u64| {
        let runs = (1..=RUNS_MAX).filter(|runs| (ratio - 1).is_multiple_of(*runs));
        let rungs = runs.map(|runs| Rung { ratio, runs });
        rungs.map(|rung| (rung.cost(price), rung)).min_by(|one, other| one.0.total_cmp(&other.0))
    };
    let rungs: Vec<(f64, Rung)> = RATIOS.into_iter().filter_map(best_of).collect();
    // The least cost of levels by what comes down from them at once, and the last of them.
    let mut above: BTreeMap<u64, (f64, Option<Rung>)> = BTreeMap::from([(1, (0.0, None))]);
    // What there is if no level is within the bound on space.
    let mut best = (f64::INFINITY, 1, Rung { ratio: memtables.ceil() as u64, runs: 1 });
    let mut next = Some((1, 0.0));
    while let Some((arriving, cost)) = next {
        let share = (memtables / arriving as f64).max(1.0);
        for runs in 1..=RUNS_MAX {
            let all = cost + Rung::last_cost(runs, share, price);
            let is_small = 1.0 + runs as f64 / share <= space;
            if is_small && all < best.0 {
                best = (all, arriving, Rung { ratio: share.ceil() as u64, runs });
            }
        }
        for (more, rung) in &rungs {
            let product = arriving * rung.ratio;
            if product as f64 > memtables {
                break;
            }
            let known = above.entry(product).or_insert((f64::INFINITY, None));
            if cost + more < known.0 {
                *known = (cost + more, Some(*rung));
            }
        }
        next = above.range(arriving + 1..).next().map(|(product, (cost, _))| (*product, *cost));
    }
    let (_, mut arriving, last) = best;
    let mut levels = vec![last];
    while let Some((_, Some(rung))) = above.get(&arriving) {
        levels.push(*rung);
        arriving /= rung.ratio;
    }
    levels.reverse();
    levels
}

/// Levels, and how memtables go into them.
struct Ladder<'a> {
    levels: &'a [Rung],
    eager: Eager,
}

impl Filling for Ladder<'_> {
    fn runs_max(&self, _: &TreeView, level: usize) -> usize {
        self.levels[level.min(self.levels.len() - 1)].runs as usize
    }

    /// The last level takes all that comes, unless another policy has left levels below it.
    fn stays(&self, view: &TreeView, level: usize, bytes: u64) -> bool {
        let is_deepest =
            || view.tree.levels().iter().skip(level + 1).all(|it| it.runs().is_empty());
        if level + 1 >= LEVELS_MAX || level + 1 >= self.levels.len() && is_deepest() {
            return true;
        }
        let ratio = |level: usize| self.levels[level.min(self.levels.len() - 1)].ratio as f64;
        let arriving = (0..level).fold(view.memtable_bytes as f64, |all, above| all * ratio(above));
        let room = (ratio(level) - self.runs_max(view, level) as f64).max(0.0) + 0.5;
        (bytes as f64) < room * arriving
    }

    fn eager(&self) -> Eager {
        self.eager
    }
}

impl Moose {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "moose",
        source: "Liu et al., Moose, SIGMOD 2024",
        summary: "levels with the ratios and numbers of runs that cost least for the data",
        params: &[
            ParamInfo {
                name: "price",
                default: "1",
                meaning: "what a run costs while a memtable is written, in written memtables, \
                          0.001 to 1000, or `reads`: what it costs the reads that are counted",
            },
            ReadPrice::GET,
            ReadPrice::SCAN,
            ParamInfo {
                name: "space",
                default: "none",
                meaning: "most bytes held over the bytes of all keys, 1.001 to 1000, where levels \
                          can keep to it",
            },
            ParamInfo {
                name: "size",
                default: "the tree's",
                meaning: "bytes of the data for which levels are made",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Moose::read(params)?)),
    };

    /// Returns the policy with `price` for a run, from 0.001 to 1000. Other parameters have their
    /// defaults.
    ///
    /// # Errors
    /// Fails if `price` is out of range.
    pub fn new(price: f64) -> Result<Moose, SpecError> {
        Moose::INFO.read(&Spec::bare(Moose::INFO.name).with("price", price), Moose::read)
    }

    fn read(params: &Params<'_>) -> Result<Moose, SpecError> {
        let reads = ReadPrice::read(params, FROM_READS, ReadPrice::IN_MEMORY)?;
        let price = match reads {
            Some(_) => PRICE,
            None => params.real("price", PRICE, 0.001..=1000.0)?,
        };
        let prices = if reads.is_some() { PRICES.count() } else { 1 };
        Ok(Moose {
            price,
            reads,
            space: params.real_if_given("space", 1.001..=1000.0)?.unwrap_or(f64::INFINITY),
            size: params.bytes_if_given("size", 1..=1 << 60)?,
            eager: Eager::read(params)?,
            designs: Arc::new(vec![OnceLock::new(); prices * SIZES]),
        })
    }

    /// Returns the step of the size for which levels are made.
    fn size(&self, view: &TreeView) -> usize {
        let oldest = || view.tree.disk_runs().last().map_or(0, |run| run.bytes());
        let bytes = self.size.unwrap_or_else(oldest);
        let memtables = bytes as f64 / view.memtable_bytes.max(1) as f64;
        let step = (2.0 * memtables.max(1.0).log2()).ceil() as usize;
        let size = if self.size.is_some() {
            step
        } else {
            let noted = view.memo(SIZE).and_then(|text| text.parse::<usize>().ok());
            noted.filter(|noted| (step..=step + 4).contains(noted)).unwrap_or(step + 2)
        };
        size.min(SIZES - 1)
    }

    /// Returns the price of a run for the tree of `view`, and the place of its levels.
    fn price(&self, view: &TreeView) -> (f64, usize) {
        let unit = view.memtable_bytes.max(1) as f64;
        let Some(reads) = self.reads else { return (self.price, 0) };
        let price = reads.at(view, unit).unwrap_or(self.price);
        let (least, most) = (*PRICES.start(), *PRICES.end());
        let step = (price.log2().round() as i32).clamp(least, most);
        (2.0_f64.powi(step), (step - least) as usize)
    }

    fn levels(&self, view: &TreeView) -> &[Rung] {
        let ((price, row), size) = (self.price(view), self.size(view));
        let memtables = 2.0_f64.powf(size as f64 / 2.0);
        self.designs[row * SIZES + size].get_or_init(|| design(memtables, price, self.space))
    }
}

impl MergePolicy for Moose {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("moose");
        let spec = match self.reads {
            Some(reads) => reads.write(spec.with("price", "reads"), ReadPrice::IN_MEMORY),
            None => spec.with("price", self.price),
        };
        let spec = if self.space.is_finite() { spec.with("space", self.space) } else { spec };
        self.eager.write(match self.size {
            Some(bytes) => spec.with("size", format_bytes(bytes)),
            None => spec,
        })
    }

    fn needs(&self) -> Needs {
        Needs { reads: self.reads.is_some(), ..Needs::default() }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let ladder = Ladder { levels: self.levels(view), eager: self.eager };
        let mut plan = ladder.merge_first(view)?;
        let size = self.size(view).to_string();
        if self.size.is_none() && view.memo(SIZE) != Some(&size) {
            plan.memo.push((SIZE.into(), Some(size)));
        }
        Some(plan)
    }

    /// All runs hold writers back that are more than the levels have at rest.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        let ladder = Ladder { levels: self.levels(view), eager: self.eager };
        // Another policy may have left more levels.
        let levels = ladder.levels.len().max(view.tree.levels().len());
        let allowed: usize = (0..levels).map(|level| ladder.runs_max(view, level)).sum();
        pressure_of_runs(view, view.tree.disk_run_count(), allowed as u64, load)
    }

    fn shape(&self) -> Shape {
        Shape::Tiered { ratio: RUNS_MAX + 1 }
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        let ((price, _), levels) = (self.price(view), self.levels(view));
        let of = |level: &Rung| format!("{}x{}", level.ratio, level.runs);
        let levels: Vec<String> = levels.iter().map(of).collect();
        let note = format!("ratios x runs of levels at price {price:.2}: {}", levels.join(", "));
        Explanation { plan: self.next_merge(view), notes: vec![note], ..Explanation::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(memtables: u64, price: f64, space: f64) -> String {
        let levels = design(memtables as f64, price, space);
        let of = |level: &Rung| format!("{}x{}", level.ratio, level.runs);
        levels.iter().map(of).collect::<Vec<_>>().join(" ")
    }

    /// Few dear runs are few levels, and many cheap ones too.
    #[test]
    fn levels_follow_from_the_price_and_the_data() {
        let any = f64::INFINITY;
        let by_price = [0.1, 1.0, 10.0].map(|price| told(64, price, any));
        assert_eq!(by_price, ["10x9 7x10", "2x1 2x1 2x1 2x1 4x2", "10x1 7x1"]);
        assert_eq!(told(256, 1.0, any), "2x1 2x1 2x1 2x1 2x1 2x1 4x2");
        assert_eq!(told(1, 1.0, any), "1x1");
    }

    /// The last ratio has to be large for little space.
    #[test]
    fn little_space_makes_the_last_level_larger() {
        let by_space = [3.0, 1.2, 1.001].map(|space| told(512, 0.2, space));
        assert_eq!(by_space, ["5x4 5x4 5x4 5x6", "4x3 5x4 26x5", "512x1"]);
    }
}
