//! The paper's version of LevelDB's design as a policy, for simulations and the store.

use lsmith_policy::{Explanation, Load, MergePolicy, ParamInfo, PolicyInfo, Registry, Shape};
use lsmith_spec::{Params, Spec, SpecError, parse_bytes};
use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{
    Input, KeyRange, LevelId, MergePlan, Mode, Place, Reason, Run, Slices, TreeView,
};
use std::sync::Arc;

/// When level 0 has `l0` runs, all of level 0 is merged with all of level 1. In every other level
/// that exceeds its size, one table is merged with all tables that it overlaps in the next level.
/// The last level has no limit.
#[derive(Clone, Debug, PartialEq)]
struct LevelDb {
    level0_runs: usize,
    table_bytes: u64,
    /// The sizes of the levels from 1 to the one before the last.
    level_bytes: Vec<u64>,
    pick: Pick,
}

/// The choice of the table that is merged down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pick {
    /// The next keys behind the last merged ones, up to the end of their table.
    RoundRobin,
    /// A random table. The paper models RocksDB's choice of the largest table like this.
    Random,
}

const PICKS: [&str; 2] = ["round_robin", "random"];

const INFO: PolicyInfo = PolicyInfo {
    name: "leveldb",
    source: "Lim et al., FAST 2016",
    summary: "level 0 goes down as a whole, a table of any other level that is full",
    params: &[
        ParamInfo { name: "l0", default: "4", meaning: "runs of level 0 that go down together" },
        ParamInfo { name: "table", default: "2MiB", meaning: "bytes of a table" },
        ParamInfo { name: "sizes", default: "", meaning: "bytes of levels from 1, joined by `:`" },
        ParamInfo { name: "pick", default: "round_robin", meaning: "round_robin or random" },
    ],
    build,
};

/// Returns the registry of the store's policies and this one.
pub(super) fn registry() -> Registry {
    let mut registry = Registry::builtin();
    registry.register(INFO);
    registry
}

/// Returns the spec of a design with these sizes.
pub(super) fn spec(level0_runs: u64, table_bytes: u64, level_bytes: &[u64], pick: Pick) -> Spec {
    let sizes: Vec<String> = level_bytes.iter().map(|bytes| format!("{bytes}B")).collect();
    let bare = Spec::bare(INFO.name).with("l0", level0_runs);
    let spec = bare.with("table", format!("{table_bytes}B")).with("pick", pick.name());
    if sizes.is_empty() { spec } else { spec.with("sizes", sizes.join(":")) }
}

fn build(params: &Params<'_>) -> Result<Arc<dyn MergePolicy>, SpecError> {
    let sizes = params.text("sizes").into_iter().flat_map(|text| text.split(':'));
    let level_bytes: Result<Vec<u64>, _> = sizes.map(parse_bytes).collect();
    Ok(Arc::new(LevelDb {
        level0_runs: params.count("l0", 4, 1..=1000)? as usize,
        table_bytes: params.bytes("table", 2 << 20, 1..=1 << 50)?,
        level_bytes: level_bytes?,
        pick: match params.choice("pick", PICKS[0], &PICKS)? {
            "random" => Pick::Random,
            _ => Pick::RoundRobin,
        },
    }))
}

impl Pick {
    fn name(self) -> &'static str {
        match self {
            Pick::RoundRobin => PICKS[0],
            Pick::Random => PICKS[1],
        }
    }
}

fn cursor_name(level: usize) -> String {
    format!("next_L{level}")
}

impl LevelDb {
    fn level0_down(&self, view: &TreeView) -> Option<MergePlan> {
        let runs = view.tree.runs_at(LevelId::Disk(0));
        if runs.len() < self.level0_runs {
            return None;
        }
        let below = view.tree.runs_at(LevelId::Disk(1)).first();
        let place = below.map_or(Place::NewRun(1), |run| Place::Into(run.id()));
        let all = runs.iter().chain(below).map(|run| run.id());
        let reason = Reason::new(
            "level 0 has {} runs of {}",
            [runs.len() as u64, self.level0_runs as u64, 0],
        );
        let plan = MergePlan::merge(all, place, reason);
        Some(MergePlan { cut_bytes: Some(self.table_bytes), ..plan })
    }

    /// Returns the plan that merges a table of `level` down, if the level exceeds its size.
    fn table_down(&self, view: &TreeView, level: usize) -> Option<MergePlan> {
        let allowed = *self.level_bytes.get(level.checked_sub(1)?)?;
        let run = view.tree.runs_at(LevelId::Disk(level)).first()?;
        if run.bytes() <= allowed {
            return None;
        }
        let piece = self.picked(view, level, run);
        let end = piece.end.clone().unwrap_or_default();
        let mut inputs = vec![Input { run: run.id(), range: piece.clone() }];
        let below = view.tree.runs_at(LevelId::Disk(level + 1)).first();
        let overlap = below.map_or(Slices::default(), |below| below.overlapping(&piece));
        if let (Some(below), Some(first), Some(last)) = (below, overlap.first(), overlap.last()) {
            let range = first.range().hull(last.range()).hull(&piece);
            inputs.push(Input { run: below.id(), range });
        }
        Some(MergePlan {
            inputs,
            place: below.map_or(Place::NewRun(level + 1), |below| Place::Into(below.id())),
            mode: if overlap.is_empty() { Mode::Move } else { Mode::Merge },
            cut_bytes: Some(self.table_bytes),
            reuse: None,
            memo: vec![(cursor_name(level).into(), Some(display_key(&end).to_string()))],
            reason: Reason::new(
                "level {} holds {} bytes of {}",
                [level as u64, run.bytes(), allowed],
            ),
        })
    }

    /// Returns the part of `run` to merge down: a table, or its rest behind the last merged keys.
    fn picked(&self, view: &TreeView, level: usize, run: &Run) -> KeyRange {
        let slices = run.slices();
        match self.pick {
            Pick::RoundRobin => {
                let noted = view.memo(&cursor_name(level)).and_then(|text| parse_key(text).ok());
                let cursor = noted.unwrap_or_default();
                let behind = slices.partition_point(|slice| slice.range().lies_below(&cursor));
                let piece = slices[behind % slices.len()].range().clone();
                if piece.contains(&cursor) { KeyRange { start: cursor, ..piece } } else { piece }
            }
            // The next table name differs at each merge, so its hash is a random number.
            Pick::Random => {
                let seed = view.tree.next_table().0 ^ (level as u64) << 56;
                slices[stirred(seed, slices.len())].range().clone()
            }
        }
    }
}

/// Returns a pseudo-random number below `bound`: two rounds of multiplication and shift, after
/// SplitMix64 (Steele, Lea and Flood, 2014).
fn stirred(value: u64, bound: usize) -> usize {
    let once = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (once ^ once >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((u128::from(value ^ value >> 31) * bound as u128) >> 64) as usize
}

impl MergePolicy for LevelDb {
    fn spec(&self) -> Spec {
        spec(self.level0_runs as u64, self.table_bytes, &self.level_bytes, self.pick)
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        // The paper's simulator also runs one merge after the other.
        if !view.reservations.is_empty() {
            return None;
        }
        let deeper = (1..view.tree.levels().len()).rev();
        let mut plans = deeper.filter_map(|level| self.table_down(view, level));
        plans.next().or_else(|| self.level0_down(view))
    }

    fn pressure(&self, _: &TreeView, _: &Load) -> f64 {
        0.0
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: 10.0, level0_runs: self.level0_runs as u64 }
    }

    fn explain(&self, view: &TreeView) -> Explanation {
        Explanation { plan: self.next_merge(view), ..Explanation::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(spec: &str, tree: &str) -> Option<String> {
        let policy = registry().build(spec).unwrap();
        assert_eq!(policy.spec().to_string().parse(), Ok(policy.spec()));
        policy.next_merge(&tree.parse().unwrap()).map(|plan| plan.to_string())
    }

    #[test]
    fn level_0_goes_down_as_a_whole() {
        let runs = "tree\nL0 r5[t5:a..z 1MB] r4[t4:a..z 1MB]\nL1 r3[t3:a..z 9MB]";
        let plan_of = |l0: u64| plan(&format!("leveldb(l0={l0}, sizes=10MB)"), runs);
        assert_eq!(plan_of(3), None);
        let plan = plan_of(2).unwrap();
        assert!(plan.starts_with("merge r5 r4 r3 over .. into r3"), "{plan}");
    }

    #[test]
    fn tables_go_down_in_turn() {
        let tree = "L1 r3[t3:a..h 9MB, t4:h..p 9MB]\nL2 r2[t1:b..j 9MB, t2:k..m 9MB, t0:q..z 9MB]";
        let first = plan("leveldb(sizes=10MB)", &format!("tree\n{tree}")).unwrap();
        assert!(first.contains("r3:a..h r2:a..j"), "{first}");
        let next = plan("leveldb(sizes=10MB)", &format!("tree\nnote next_L1=h\n{tree}")).unwrap();
        assert!(next.contains("r3:h..p r2:b..p"), "{next}");
        let rest = plan("leveldb(sizes=10MB)", &format!("tree\nnote next_L1=k\n{tree}")).unwrap();
        assert!(rest.contains("r3 r2 over k..p"), "{rest}");
        assert_eq!(plan("leveldb(sizes=18MB)", &format!("tree\n{tree}")), None);
    }

    #[test]
    fn random_picks_reach_every_table() {
        let counts = (0..4000).fold([0; 4], |mut counts, value| {
            counts[stirred(value, 4)] += 1;
            counts
        });
        assert!(counts.iter().all(|count| (900..1100).contains(count)), "{counts:?}");
    }
}
