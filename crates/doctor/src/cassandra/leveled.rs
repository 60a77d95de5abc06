//! How `LeveledCompactionStrategy` picks compactions.

use crate::rocks::{Level, Pri};
use lsmith_policy::{MergePolicy, Needs, Shape};
use lsmith_spec::Spec;
use lsmith_tree::{MergePlan, Place, Reason, TreeView};

/// Bytes of a level over bytes of the level above (`fanout_size`), and of level 1 over a table.
const RATIO: f64 = 10.0;

/// A level may have this part more before it is too large.
const EXCESS: f64 = 1.001;

/// Cassandra's compactions by level. Of a level that is too large it takes one table down, in turn.
/// Two tables in level 0 are merged: into level 1, or within level 0 if they are less than one
/// table of level 1.
///
/// Source: `LeveledManifest.getCompactionCandidates` and `getCandidatesFor` of Cassandra 5.0. Its
/// fallback with more than 32 tables in level 0 is left out: in a replay compactions keep up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leveled {
    level: Level,
}

impl Leveled {
    /// Returns the picker for tables of `table_bytes`.
    pub(crate) fn new(table_bytes: u64) -> Leveled {
        let level = Level {
            trigger: 2,
            base_bytes: RATIO * table_bytes as f64,
            ratio: RATIO,
            table_bytes,
            compaction_bytes: u64::MAX,
            is_dynamic: false,
            aligns: false,
            moves_max: 1,
            pri: Pri::RoundRobin,
            takes_within: false,
            value_bytes: 0.0,
        };
        Leveled { level }
    }
}

impl MergePolicy for Leveled {
    fn spec(&self) -> Spec {
        Spec::bare("LeveledCompactionStrategy")
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let levels = view.tree.levels();
        for (at, level) in levels.iter().enumerate().skip(1).rev() {
            let room = self.level.table_bytes as f64 * RATIO.powi(at as i32);
            if level.bytes() as f64 > room * EXCESS {
                return self.level.table_down(view, at);
            }
        }
        let level0 = levels.first().filter(|level| level.runs().len() > 1)?;
        if level0.bytes() > self.level.table_bytes {
            return self.level.level0_down(view, 1);
        }
        let reason = Reason::new("within level 0", [0; 3]);
        let runs = level0.runs().iter().map(|run| run.id());
        Some(MergePlan::merge(runs, Place::NewRun(0), reason))
    }

    fn needs(&self) -> Needs {
        Needs::default()
    }

    fn shape(&self) -> Shape {
        Shape::Leveled { ratio: RATIO, level0_runs: self.level.trigger }
    }
}
