//! Fluid: levels with as many runs as a policy allows them, and the last level apart.

use crate::pressure::pressure_of_runs;
use crate::{Eager, Load, MergePolicy, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError};
use lsmith_tree::{LEVELS_MAX, LevelId, MergePlan, Place, Reason, Run, TreeView};
use std::sync::Arc;

/// A level takes `ratio` runs of the level above before it is full. At rest it has at most `inner`
/// runs, and the last level at most `last`. One run more, and all of them become one. That run
/// stays as long as the level has room for that again, and else goes to the next level. If the next
/// level would have one run too many then, its runs go into the same merge.
///
/// `inner` = `last` = 1 is leveling, and `inner` = `last` = `ratio` - 1 is tiering. With `inner` =
/// `ratio` - 1 and `last` = 1 it is lazy leveling, which has a name of its own.
///
/// Dostoevsky keeps the runs of a level at equal parts of its size: it merges what arrives into the
/// newest run until that has its part. Here all runs of the level are merged when there are too
/// many, which the two extremes do as well.
///
/// Source: Dayan & Idreos, "Dostoevsky", SIGMOD 2018.
///
/// Autumn is leveling whose ratios depend on the number of levels: `ratio` between the last two,
/// and 1 / `c` times as much from each to the one above. So the more levels there are, the more
/// each holds, and the fewer are needed: their number grows like the square root of leveling's.
/// With `ratio` 4 and `c` 0.5, a tree of three levels holds 16, 8 and 4 times what comes from
/// above. With `c` 1 it is leveling.
///
/// When the last level is full it stays, and the tree counts a level more, so that every level may
/// hold more. It goes down when it is too large for that as well.
///
/// Source: Zhao et al., "Autumn: A Scalable Read Optimized LSM-tree Based Key-Value Store", ICDE
/// 2025 (arXiv 2305.05074): its equation 5, and that the last level is merged late. The paper
/// itself was not at hand. How late is as above here. The paper's level 0 in memory is not kept:
/// the first level takes memtables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fluid {
    ratio: u64,
    inner: u64,
    last: u64,
    /// A ratio between levels over the ratio above it: 1 but for Autumn.
    c: f64,
    eager: Eager,
    name: &'static str,
}

/// The levels of a tree, for ratios that depend on how many there are.
#[derive(Clone, Copy)]
struct Levels {
    /// The deepest that has runs.
    deepest: usize,
    /// How many there are.
    count: usize,
}

const SOURCE: &str = "Dayan & Idreos, Dostoevsky, SIGMOD 2018";

const RATIO: ParamInfo = ParamInfo {
    name: "ratio",
    default: "4",
    meaning: "size of a level over that of the level above, 2 to 1000",
};

impl Fluid {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "fluid",
        source: SOURCE,
        summary: "levels of at most inner runs, the last of at most last; too many become one",
        params: &[
            RATIO,
            ParamInfo {
                name: "inner",
                default: "ratio-1",
                meaning: "most runs of a level but the last, 1 to ratio - 1",
            },
            ParamInfo {
                name: "last",
                default: "1",
                meaning: "most runs of the last level, 1 to ratio - 1",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Fluid::read(params)?)),
    };

    /// Lazy leveling: tiered levels, and a last level of one run.
    pub const LAZY_LEVELING: PolicyInfo = PolicyInfo {
        name: "lazy_leveling",
        source: SOURCE,
        summary: "levels of fewer than ratio runs, and a last level of one run",
        params: &[RATIO, Eager::PARAM],
        build: |params| Ok(Arc::new(Fluid::read_lazy(params)?)),
    };

    /// Autumn: levels of one run, whose ratios grow with their number.
    pub const AUTUMN: PolicyInfo = PolicyInfo {
        name: "autumn",
        source: "Zhao et al., Autumn, ICDE 2025",
        summary: "levels of one run, which all hold more when there is a level more",
        params: &[
            ParamInfo {
                name: "ratio",
                default: "4",
                meaning: "size of the last level over that of the level above, 2 to 1000",
            },
            ParamInfo {
                name: "c",
                default: "0.8",
                meaning: "a ratio between levels over that of the level above, 0.1 to 1",
            },
            Eager::PARAM,
        ],
        build: |params| Ok(Arc::new(Fluid::read_autumn(params)?)),
    };

    /// Returns the policy whose levels grow by `ratio` and have at most `inner` runs, the last at
    /// most `last`. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is not 2 to 1000, or another is not 1 to `ratio` - 1.
    pub fn new(ratio: u64, inner: u64, last: u64) -> Result<Fluid, SpecError> {
        let spec = Spec::bare(Fluid::INFO.name).with("ratio", ratio);
        Fluid::INFO.read(&spec.with("inner", inner).with("last", last), Fluid::read)
    }

    /// Returns lazy leveling with levels that grow by `ratio`, from 2 to 1000. Other parameters
    /// have their defaults.
    ///
    /// # Errors
    /// Fails if `ratio` is out of range.
    pub fn lazy_leveling(ratio: u64) -> Result<Fluid, SpecError> {
        let info = Fluid::LAZY_LEVELING;
        info.read(&Spec::bare(info.name).with("ratio", ratio), Fluid::read_lazy)
    }

    /// Returns levels of one run. The last grows by `ratio`, from 2 to 1000, and each one above by
    /// 1 / `c` times as much, with `c` from 0.1 to 1. Other parameters have their defaults.
    ///
    /// # Errors
    /// Fails if a parameter is out of range.
    pub fn autumn(ratio: u64, c: f64) -> Result<Fluid, SpecError> {
        let info = Fluid::AUTUMN;
        let spec = Spec::bare(info.name).with("ratio", ratio).with("c", c);
        info.read(&spec, Fluid::read_autumn)
    }

    fn read_lazy(params: &Params<'_>) -> Result<Fluid, SpecError> {
        Ok(Fluid { name: Fluid::LAZY_LEVELING.name, ..Fluid::read(params)? })
    }

    fn read_autumn(params: &Params<'_>) -> Result<Fluid, SpecError> {
        let c = params.real("c", 0.8, 0.1..=1.0)?;
        Ok(Fluid { name: Fluid::AUTUMN.name, inner: 1, last: 1, c, ..Fluid::read(params)? })
    }

    fn read(params: &Params<'_>) -> Result<Fluid, SpecError> {
        let ratio = params.count("ratio", 4, 2..=1000)?;
        Ok(Fluid {
            ratio,
            inner: params.count("inner", ratio - 1, 1..=ratio - 1)?,
            last: params.count("last", 1, 1..=ratio - 1)?,
            c: 1.0,
            eager: Eager::read(params)?,
            name: Fluid::INFO.name,
        })
    }

    /// Returns the levels of the tree. The last one is full when there is not room for another run
    /// in a tree that ends with it, and then there is a level more.
    fn levels(&self, view: &TreeView) -> Levels {
        let levels = view.tree.levels();
        let deepest = levels.iter().rposition(|level| !level.runs().is_empty()).unwrap_or(0);
        let bytes = levels.get(deepest).map_or(0, |level| level.bytes());
        let is_full = self.c < 1.0 && !self.has_room(view, deepest, bytes, deepest + 1);
        Levels { deepest, count: deepest + 1 + usize::from(is_full) }
    }

    /// Returns true if a run of `bytes` in `level` of `count` leaves room: as many runs may then
    /// arrive there as make another merge. Half a run more is allowed, since runs are not equally
    /// large.
    fn has_room(&self, view: &TreeView, level: usize, bytes: u64, count: usize) -> bool {
        let ratio =
            |level: usize| self.ratio as f64 / self.c.powi(count.saturating_sub(level + 1) as i32);
        let arriving = (0..level).fold(view.memtable_bytes as f64, |all, above| all * ratio(above));
        let room = (ratio(level) - self.runs_max(view, level) as f64).max(0.0) + 0.5;
        (bytes as f64) < room * arriving
    }
}

/// Levels that take whole runs from above until they are full.
pub(super) trait Filling {
    /// Returns the most runs of `level` at rest.
    fn runs_max(&self, view: &TreeView, level: usize) -> usize;

    /// Returns true if a run of `bytes` stays in `level`.
    fn stays(&self, view: &TreeView, level: usize, bytes: u64) -> bool;

    fn eager(&self) -> Eager;

    /// Returns the merge of the first level that has too many runs.
    fn merge_first(&self, view: &TreeView) -> Option<MergePlan> {
        (0..view.tree.levels().len().max(1)).find_map(|level| {
            let memtable = view.tree.memory().runs().last().filter(|_| level == 0);
            self.merge_level(view, level, memtable).filter(|plan| view.is_free_for(plan))
        })
    }

    /// Returns the merge of `level` if it has too many runs. `memtable` is the sealed memtable that
    /// would become its newest run.
    fn merge_level(
        &self,
        view: &TreeView,
        level: usize,
        memtable: Option<&Arc<Run>>,
    ) -> Option<MergePlan> {
        // What another plan takes is on its way down.
        let of_level = |level| {
            let runs = view.tree.runs_at(LevelId::Disk(level)).iter();
            runs.take_while(|run| !view.is_reserved(run.id()))
        };
        let memtable = memtable.filter(|memtable| !view.is_reserved(memtable.id()));
        let mut taken: Vec<_> = memtable.into_iter().chain(of_level(level)).collect();
        let (count, allowed) = (taken.len(), self.runs_max(view, level));
        if count <= allowed {
            return None;
        }
        let bytes = |runs: &[&Arc<Run>]| runs.iter().map(|run| run.bytes()).sum();
        let mut to = level;
        while !self.stays(view, to, bytes(&taken)) {
            to += 1;
            let below: Vec<_> = of_level(to).collect();
            if below.len() < self.runs_max(view, to) {
                break;
            }
            taken.extend(below);
        }
        if memtable.is_some() && !self.eager().takes(taken.iter().map(|run| run.bytes())) {
            return None;
        }
        let numbers = [level as u64, count as u64, allowed as u64];
        let reason = Reason::new("level {} has {} runs, {} allowed", numbers);
        Some(MergePlan::merge(taken.iter().map(|run| run.id()), Place::NewRun(to), reason))
    }
}

impl Filling for Fluid {
    fn runs_max(&self, view: &TreeView, level: usize) -> usize {
        let is_last = view.tree.levels().iter().skip(level + 1).all(|it| it.runs().is_empty());
        if is_last { self.last as usize } else { self.inner as usize }
    }

    /// The last level stays while a tree of one level more has room for it.
    fn stays(&self, view: &TreeView, level: usize, bytes: u64) -> bool {
        let levels = self.levels(view);
        let count = if level < levels.deepest { levels.count } else { level + 2 };
        level + 1 >= LEVELS_MAX || self.has_room(view, level, bytes, count)
    }

    fn eager(&self) -> Eager {
        self.eager
    }
}

impl MergePolicy for Fluid {
    fn spec(&self) -> Spec {
        let spec = Spec::bare(self.name).with("ratio", self.ratio);
        self.eager.write(match self.name {
            "fluid" => spec.with("inner", self.inner).with("last", self.last),
            "autumn" => spec.with("c", self.c),
            _ => spec,
        })
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        self.merge_first(view)
    }

    /// Merges of the first level of Autumn are long, and its levels have one run each. So all runs
    /// hold writers back that are more than one for each level.
    fn pressure(&self, view: &TreeView, load: &Load) -> f64 {
        if self.name != Fluid::AUTUMN.name {
            return self.shape().pressure(view, load);
        }
        let levels = self.levels(view).count as u64;
        pressure_of_runs(view, view.tree.disk_run_count(), levels, load)
    }

    fn shape(&self) -> Shape {
        if self.name == Fluid::AUTUMN.name {
            // All levels that there can be, and what arrives.
            return Shape::Stack { runs_max: LEVELS_MAX as u64 + 1 };
        }
        Shape::Tiered { ratio: self.inner.max(self.last) + 1 }
    }
}
