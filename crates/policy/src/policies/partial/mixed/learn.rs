//! How `mixed` learns its thresholds.
//!
//! Top down, one parameter after the other, because the best setting of a level does not depend on
//! the levels below it (Thonangi & Yang, Theorem 4):
//!
//! 1. *Watch*, under the best windows everywhere, until the bottom level has stopped growing: it
//!    has changed by less than a twentieth while as much as the level above it holds went down.
//! 2. *Tau i*, for i = 2 up to the last level but one above the bottom: full merges from level i,
//!    the setting to be tried above it. A cycle lasts from one full merge of level i to the next;
//!    its cost is the blocks written into levels 1 to i over the bytes that came from memory. Costs
//!    are a parabola over the setting (Theorem 5), so the search can stop when they rise.
//! 3. *Beta*: the cost of all levels over a cycle with full merges into the bottom level, then that
//!    of the same volume with the best windows, once the level above has filled again.
//! 4. *Done*, until the tree has another height or its bottom level has changed by a quarter.
//!
//! The notes: `learn` is the step, `learn_at` what the counters said when its measurement began,
//! `tau_2`, `tau_3`, ... and `beta` what was found, `learned_at` height and bottom level then.

use lsmith_tree::{LevelId, MemoChange, MergePlan, TreeView};
use std::fmt;

/// Tenths: the grid on which thresholds lie.
const GRID: u64 = 10;

/// How a threshold is looked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Search {
    /// From 0 upwards, stopping at the first that is worse.
    Linear,
    /// Golden section on the grid.
    Golden,
}

/// Thresholds that were given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Thresholds<'a> {
    pub(super) tau: Option<&'a [u64]>,
    pub(super) beta: Option<bool>,
}

/// What is being done about the parameters.
#[derive(Clone, Debug, PartialEq)]
enum Step {
    Watch,
    /// A threshold is being tried.
    Tau {
        level: usize,
        trial: Trial,
    },
    /// Full merges into the bottom level are being measured.
    Full,
    /// Partial merges into the bottom level are to be measured over `volume` bytes from memory, to
    /// be compared with `cost`.
    Part {
        cost: f64,
        volume: u64,
    },
    Done,
}

/// The search for one threshold: the setting tried now, and what is known.
#[derive(Clone, Debug, PartialEq)]
struct Trial {
    setting: u64,
    /// Settings and costs measured so far, in the order in which they were.
    known: Vec<(u64, f64)>,
}

/// What the tree and the notes say.
#[derive(Debug)]
pub(super) struct Lesson<'a> {
    view: &'a TreeView,
    given: Thresholds<'a>,
    search: Search,
    step: Step,
    /// The bottom level; 0 for a tree without levels.
    bottom: usize,
}

/// Counters since the tree began.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Meter {
    blocks: u64,
    bytes: u64,
}

impl<'a> Lesson<'a> {
    pub(super) fn of(view: &'a TreeView, given: Thresholds<'a>, search: Search) -> Lesson<'a> {
        let mut levels = view.tree.levels().iter();
        let bottom = levels.rposition(|level| !level.runs().is_empty()).unwrap_or(0);
        let step = view.memo("learn").and_then(Step::read).unwrap_or(Step::Watch);
        let mut lesson = Lesson { view, given, search, step, bottom };
        if lesson.step == Step::Done && lesson.has_changed() {
            lesson.step = Step::Watch;
        }
        lesson
    }

    /// Whether all of `level` goes down, rather than its best window.
    pub(super) fn is_full(&self, level: usize, capacity: impl Fn(usize) -> u64) -> bool {
        let into = level + 1;
        if level == 0 || self.bottom < 2 {
            return false;
        }
        if into >= self.bottom {
            return self.beta();
        }
        match &self.step {
            // Below the level whose threshold is tried: full out of it, best windows beneath.
            Step::Tau { level: tried, .. } if level == *tried => return true,
            Step::Tau { level: tried, .. } if level > *tried => return false,
            _ => {}
        }
        let blocks = self.blocks(into) as f64;
        blocks < self.tau(into) as f64 / GRID as f64 * capacity(into) as f64
    }

    /// The threshold of `level`, in tenths.
    fn tau(&self, level: usize) -> u64 {
        if let Some(given) = self.given.tau {
            return given.get(level - 2).copied().unwrap_or(0);
        }
        match &self.step {
            Step::Tau { level: tried, trial } if *tried == level => trial.setting,
            _ => self.number(&format!("tau_{level}")).unwrap_or(0),
        }
    }

    fn beta(&self) -> bool {
        if let Some(given) = self.given.beta {
            return given;
        }
        match self.step {
            // The level above the bottom is the one whose threshold is tried: out of it all goes.
            Step::Tau { level, .. } => level + 1 == self.bottom,
            Step::Full => true,
            Step::Part { .. } => false,
            Step::Watch | Step::Done => self.view.memo("beta") == Some("true"),
        }
    }

    /// The changes of the notes that go with `plan`.
    pub(super) fn learn_from(
        &self,
        plan: &MergePlan,
        capacity: impl Fn(usize) -> u64,
    ) -> Vec<MemoChange> {
        let Some((from, is_full)) = self.source(plan) else { return Vec::new() };
        if self.bottom < 2 {
            return Vec::new();
        }
        let above_bottom = self.bottom - 1;
        match &self.step {
            Step::Watch if from == above_bottom => self.watch(capacity(above_bottom)),
            Step::Tau { level, trial } if from == *level && is_full => {
                self.end_of_cycle(*level, trial)
            }
            Step::Full if from == above_bottom => self.end_of_full_cycle(),
            Step::Part { cost, volume } if from == above_bottom => self.part(*cost, *volume),
            _ => Vec::new(),
        }
    }

    /// The level that `plan` takes from, and whether it takes all of it.
    fn source(&self, plan: &MergePlan) -> Option<(usize, bool)> {
        let input = plan.inputs.first()?;
        let (level, run) = self.view.tree.run(input.run)?;
        match level {
            LevelId::Disk(level) if plan.inputs.len() > 1 => {
                Some((level, input.range.covers(&run.hull())))
            }
            _ => None,
        }
    }

    fn watch(&self, above_blocks: u64) -> Vec<MemoChange> {
        let into_bottom = self.view.tree.levels()[self.bottom].counters();
        let moved = into_bottom.bytes_in;
        let blocks = self.blocks(self.bottom);
        let seen: Option<[u64; 3]> = self.view.memo("watched").and_then(numbers);
        let Some([height, since, before]) = seen.filter(|seen| seen[0] == self.bottom as u64)
        else {
            return vec![note("watched", format!("{} {moved} {blocks}", self.bottom))];
        };
        if moved - since < above_blocks * self.view.block_bytes {
            return Vec::new();
        }
        let mut notes = vec![note("watched", format!("{height} {moved} {blocks}"))];
        if blocks.abs_diff(before) * 20 < before {
            notes.extend(self.begin(2));
        }
        notes
    }

    /// Begins to learn the threshold of `level`, or beta where no thresholds are left to learn, or
    /// nothing where that is given too.
    fn begin(&self, level: usize) -> Vec<MemoChange> {
        if level < self.bottom && self.given.tau.is_none() {
            let trial = Trial { setting: self.search.first(), known: Vec::new() };
            return self.enter(Step::Tau { level, trial }, None);
        }
        if self.given.beta.is_none() {
            return self.enter(Step::Full, None);
        }
        self.finish()
    }

    fn finish(&self) -> Vec<MemoChange> {
        let mut notes = self.enter(Step::Done, None);
        let learned = format!("{} {}", self.bottom, self.blocks(self.bottom));
        notes.push(note("learned_at", learned));
        notes
    }

    fn enter(&self, step: Step, meter: Option<Meter>) -> Vec<MemoChange> {
        let at = meter.map(|meter| format!("{} {}", meter.blocks, meter.bytes));
        vec![note("learn", step.to_string()), ("learn_at".to_string(), at)]
    }

    /// A full merge out of `level` ends one cycle and begins the next.
    fn end_of_cycle(&self, level: usize, trial: &Trial) -> Vec<MemoChange> {
        let now = self.meter(level);
        let Some(cost) = self.cost_since(now) else {
            let step = Step::Tau { level, trial: trial.clone() };
            return self.enter(step, Some(now));
        };
        let mut trial = trial.clone();
        trial.known.push((trial.setting, cost));
        if let Some(setting) = self.search.next(&trial.known) {
            trial.setting = setting;
            return self.enter(Step::Tau { level, trial }, Some(now));
        }
        let mut notes = vec![note(&format!("tau_{level}"), trial.best().to_string())];
        notes.extend(self.begin(level + 1));
        notes
    }

    fn end_of_full_cycle(&self) -> Vec<MemoChange> {
        let now = self.meter(self.bottom);
        let (Some(cost), Some(start)) = (self.cost_since(now), self.start()) else {
            return self.enter(Step::Full, Some(now));
        };
        // The full merge that ended the cycle has emptied the level above the bottom: measuring
        // begins when it overflows again.
        self.enter(Step::Part { cost, volume: now.bytes - start.bytes }, None)
    }

    fn part(&self, full_cost: f64, volume: u64) -> Vec<MemoChange> {
        let now = self.meter(self.bottom);
        let Some(start) = self.start() else {
            return self.enter(Step::Part { cost: full_cost, volume }, Some(now));
        };
        if now.bytes - start.bytes < volume {
            return Vec::new();
        }
        // Equal costs mean partial.
        let full = self.cost_since(now).is_some_and(|cost| full_cost < cost);
        let mut notes = vec![note("beta", full.to_string())];
        notes.extend(self.finish());
        notes
    }

    /// Blocks written into levels 1 to `level`, and bytes that came into level 1 from memory.
    fn meter(&self, level: usize) -> Meter {
        let levels = self.view.tree.levels();
        let upto = levels.iter().take(level + 1).skip(1);
        let blocks = upto.map(|level| level.counters().blocks_written).sum();
        let bytes = levels.get(1).map_or(0, |level| level.counters().bytes_from_memory);
        Meter { blocks, bytes }
    }

    fn start(&self) -> Option<Meter> {
        let [blocks, bytes] = self.view.memo("learn_at").and_then(numbers)?;
        Some(Meter { blocks, bytes })
    }

    /// Blocks per byte from memory since the measurement began.
    fn cost_since(&self, now: Meter) -> Option<f64> {
        let start = self.start().filter(|start| start.bytes < now.bytes)?;
        Some((now.blocks - start.blocks) as f64 / (now.bytes - start.bytes) as f64)
    }

    fn blocks(&self, level: usize) -> u64 {
        let runs = self.view.tree.runs_at(LevelId::Disk(level));
        runs.iter().map(|run| run.cell_count()).sum()
    }

    fn number(&self, name: &str) -> Option<u64> {
        self.view.memo(name)?.parse().ok()
    }

    fn has_changed(&self) -> bool {
        let learned = self.view.memo("learned_at").and_then(numbers);
        let Some([height, blocks]) = learned else { return true };
        let change = self.blocks(self.bottom).abs_diff(blocks);
        height != self.bottom as u64 || change * 4 > blocks
    }
}

impl Search {
    fn first(self) -> u64 {
        match self {
            Search::Linear => 0,
            Search::Golden => golden(0, GRID).0,
        }
    }

    /// The next setting to try, given what is known; `None` when the best is known.
    fn next(self, known: &[(u64, f64)]) -> Option<u64> {
        match self {
            Search::Linear => {
                let (last, cost) = *known.last()?;
                let worse = known.len() > 1 && cost > known[known.len() - 2].1;
                (!worse && last < GRID).then_some(last + 1)
            }
            Search::Golden => {
                let cost = |setting| known.iter().find(|(s, _)| *s == setting).map(|(_, c)| *c);
                let (mut low, mut high) = (0, GRID);
                // The same interval as ever, narrowed by what is known by now.
                while high - low > 2 {
                    let (left, right) = golden(low, high);
                    match (cost(left), cost(right)) {
                        (None, _) => return Some(left),
                        (_, None) => return Some(right),
                        // Noisy ties go to the smaller setting.
                        (Some(l), Some(r)) if l <= r => high = right,
                        _ => low = left,
                    }
                }
                (low..=high).find(|setting| cost(*setting).is_none())
            }
        }
    }
}

/// The two inner points of a golden section of the grid from `low` to `high`, apart.
fn golden(low: u64, high: u64) -> (u64, u64) {
    let step = ((high - low) as f64 * 0.381_966).round() as u64;
    let left = low + step.max(1);
    (left, (high - step.max(1)).max(left + 1))
}

impl Trial {
    /// The setting of least cost; the smallest of those that tie.
    fn best(&self) -> u64 {
        let better = |a: &(u64, f64), b: &(u64, f64)| a.1.total_cmp(&b.1).then(a.0.cmp(&b.0));
        self.known.iter().copied().min_by(better).map_or(0, |(setting, _)| setting)
    }
}

fn note(name: &str, text: String) -> MemoChange {
    (name.to_string(), Some(text))
}

fn numbers<const N: usize>(text: &str) -> Option<[u64; N]> {
    let numbers: Option<Vec<u64>> = text.split(' ').map(|part| part.parse().ok()).collect();
    numbers?.try_into().ok()
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Watch => f.write_str("watch"),
            Step::Done => f.write_str("done"),
            Step::Full => f.write_str("full"),
            Step::Part { cost, volume } => write!(f, "part {cost:e} {volume}"),
            Step::Tau { level, trial } => {
                write!(f, "tau {level} {}", trial.setting)?;
                trial.known.iter().try_for_each(|(setting, cost)| write!(f, " {setting} {cost:e}"))
            }
        }
    }
}

impl Step {
    fn read(text: &str) -> Option<Step> {
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["watch"] => Some(Step::Watch),
            ["done"] => Some(Step::Done),
            ["full"] => Some(Step::Full),
            ["part", cost, volume] => {
                Some(Step::Part { cost: cost.parse().ok()?, volume: volume.parse().ok()? })
            }
            ["tau", level, setting, ref known @ ..] => {
                let pairs = known.chunks_exact(2);
                let known = pairs.map(|pair| Some((pair[0].parse().ok()?, pair[1].parse().ok()?)));
                let trial =
                    Trial { setting: setting.parse().ok()?, known: known.collect::<Option<_>>()? };
                Some(Step::Tau { level: level.parse().ok()?, trial })
            }
            _ => None,
        }
    }
}

impl fmt::Display for Lesson<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taus = (2..self.bottom).map(|level| (self.tau(level) as f64 / GRID as f64).to_string());
        let taus: Vec<String> = taus.collect();
        write!(f, "tau {} beta {}; learning: {}", taus.join("/"), self.beta(), self.step)
    }
}
