//! The runs of level 0 that go down together, one group of overlapping tables after the other.

use lsmith_tree::text::{display_key, parse_key};
use lsmith_tree::{Key, KeyRange, LevelId, MemoChange, Run, RunId, TreeView};
use std::sync::Arc;

/// The name of the note on the batch that is being merged: the newest run, and the level down to
/// which the group at hand is merged, if that is chosen already.
const BATCH: &str = "triangle";

/// The name of the note that holds the key at which to go on.
const NEXT: &str = "triangle_next";

/// The runs of level 0 that go down together, and how far that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Batch {
    /// No newer run belongs to it.
    pub(super) newest: RunId,
    /// Keys below have gone down.
    pub(super) from: Key,
    /// The level down to which the group at `from` is merged; `None` if that is to be chosen.
    pub(super) down_to: Option<usize>,
}

impl Batch {
    /// Returns the batch under way that the memo speaks of.
    pub(super) fn under_way(view: &TreeView) -> Option<Batch> {
        let mut words = view.memo(BATCH)?.split(' ');
        let newest = RunId(words.next()?.strip_prefix('r')?.parse().ok()?);
        let down_to = words.next().and_then(|level| level.parse().ok());
        let batch = Batch { newest, from: parse_key(view.memo(NEXT)?).ok()?, down_to };
        batch.has_more(view, &batch.from).then_some(batch)
    }

    /// Returns the changes of the memo for a batch that goes on at `next`, or ends. Leaves out
    /// changes without effect.
    pub(super) fn notes(
        &self,
        view: &TreeView,
        next: Option<&Key>,
        down_to: Option<usize>,
    ) -> Vec<MemoChange> {
        let level = down_to.map_or(String::new(), |level| format!(" {level}"));
        let batch = next.map(|_| format!("{}{level}", self.newest));
        let next = next.map(|key| display_key(key).to_string());
        let notes = [(BATCH, batch), (NEXT, next)].into_iter();
        let changed = notes.filter(|(name, text)| view.memo(name) != text.as_deref());
        changed.map(|(name, text)| (name.into(), text)).collect()
    }

    /// Returns the runs of the batch, newest first.
    pub(super) fn runs<'a>(&self, view: &'a TreeView) -> &'a [Arc<Run>] {
        let runs = view.tree.runs_at(LevelId::Disk(0));
        let first = runs.iter().position(|run| run.id() <= self.newest);
        &runs[first.unwrap_or(runs.len())..]
    }

    /// Returns true if the batch has keys from `from` on.
    pub(super) fn has_more(&self, view: &TreeView, from: &Key) -> bool {
        let rest = KeyRange { start: from.clone(), end: None };
        self.runs(view).iter().any(|run| !run.overlapping(&rest).is_empty())
    }

    /// Returns the keys of the first group of tables that overlap each other, at once or through
    /// others.
    pub(super) fn first_group(&self, view: &TreeView) -> Option<KeyRange> {
        let runs = self.runs(view);
        let rest = KeyRange { start: self.from.clone(), end: None };
        let firsts = runs.iter().filter_map(|run| run.overlapping(&rest).first());
        let first = firsts.min_by(|left, right| left.range().start.cmp(&right.range().start))?;
        let mut group = first.range().intersection(&rest);
        loop {
            let mut wide = group.clone();
            for run in runs {
                if let Some(last) = run.overlapping(&wide).last() {
                    wide = wide.hull(&last.range().intersection(&rest));
                }
            }
            if wide == group {
                return Some(group);
            }
            group = wide;
        }
    }
}
