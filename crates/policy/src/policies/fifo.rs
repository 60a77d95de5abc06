//! Keep the newest data: a cache of bounded size.

use crate::{MergePolicy, Needs, ParamInfo, PolicyInfo, Shape};
use lsmith_spec::{Params, Spec, SpecError, format_bytes};
use lsmith_tree::{KeyRange, MergePlan, Reason, Run, TreeView};
use std::sync::Arc;

/// Every flush stays a run of its own. When storage holds too much, the oldest run is dropped
/// unread, with all that it holds; of a large run that another policy has left, one table. This is
/// the one policy that loses data, because it is meant to.
///
/// Tables go before that if all their entries have expired. So a keyspace whose values live for a
/// time keeps what is young enough.
///
/// Source: the FIFO compaction of `RocksDB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fifo {
    bytes: Option<u64>,
}

impl Fifo {
    /// How specs name and build this policy.
    pub const INFO: PolicyInfo = PolicyInfo {
        name: "fifo",
        source: "RocksDB's FIFO compaction",
        summary: "never merges; drops the oldest data when storage holds too much",
        params: &[ParamInfo {
            name: "bytes",
            default: "none",
            meaning: "logical bytes on storage above which the oldest run is dropped; none: no \
                      bound, tables go when all their entries have expired",
        }],
        build: |params| Ok(Arc::new(Fifo::read(params)?)),
    };

    /// Returns the policy that keeps the newest `bytes`, if there is such a bound.
    ///
    /// # Errors
    /// Fails if `bytes` is 0 or more than 2^60.
    pub fn new(bytes: Option<u64>) -> Result<Fifo, SpecError> {
        let spec = Spec::bare(Fifo::INFO.name);
        let spec = match bytes {
            Some(bytes) => spec.with("bytes", bytes),
            None => spec,
        };
        Fifo::INFO.read(&spec, Fifo::read)
    }

    fn read(params: &Params<'_>) -> Result<Fifo, SpecError> {
        Ok(Fifo { bytes: params.bytes_if_given("bytes", 1..=1 << 60)? })
    }
}

impl MergePolicy for Fifo {
    fn spec(&self) -> Spec {
        let spec = Spec::bare("fifo");
        match self.bytes {
            Some(bytes) => spec.with("bytes", format_bytes(bytes)),
            None => spec,
        }
    }

    fn choose_merge(&self, view: &TreeView) -> Option<MergePlan> {
        let most = self.bytes?;
        let held: u64 = view.tree.disk_runs().map(|run| run.bytes()).sum();
        if held <= most {
            return None;
        }
        let reason = Reason::new("storage holds {} bytes, more than {}", [held, most, 0]);
        drop_oldest(view, reason)
    }

    fn needs(&self) -> Needs {
        Needs { drops: true, ..Needs::default() }
    }

    fn shape(&self) -> Shape {
        Shape::Unmerged
    }
}

/// Runs of more memtables than this were not flushed as they are: another policy has left them.
const FLUSHED_MEMTABLES_MAX: u64 = 4;

/// Returns the plan that drops the oldest run, or of a large one the table whose newest entry is
/// the oldest.
fn drop_oldest(view: &TreeView, reason: Reason) -> Option<MergePlan> {
    let run: &Run = view.tree.disk_runs().last()?;
    let is_flushed = run.bytes() <= FLUSHED_MEMTABLES_MAX.saturating_mul(view.memtable_bytes);
    let oldest = run.slices().iter().min_by_key(|slice| slice.table().seq_max)?;
    let range = if is_flushed { KeyRange::ALL } else { oldest.range().clone() };
    let plan = MergePlan::drop(run.id(), range, reason);
    view.is_free_for(&plan).then_some(plan)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_tree::{Mode, Size, Slice, Table, TableId, Tree, TreeEdit};

    /// Returns a tree with a run of each of `bytes`, oldest first.
    fn tree(bytes: &[u64]) -> TreeView {
        let mut view = TreeView::new(Tree::default(), 100);
        for bytes in bytes {
            let size = Size { bytes: *bytes, entries: 1, tombstones: 0 };
            let range = KeyRange::new("a", "b");
            let id = TableId(view.tree.next_table().0 + 1);
            let table = Table { id, range, size, ..Table::default() };
            let mut seal = TreeEdit::seal(view.tree.next_run(), Slice::whole(table));
            seal.apply_to(&mut view.tree).unwrap();
            let flush = MergePlan::flush(&view.tree).unwrap();
            let memory = view.tree.memory().runs()[0].clip(&KeyRange::ALL).collect();
            let outcome = lsmith_tree::Outcome {
                slices: memory,
                from_memory: size,
                written: size,
                ..lsmith_tree::Outcome::default()
            };
            let mut edit = TreeEdit::of_plan(&view.tree, &flush, outcome).unwrap();
            edit.apply_to(&mut view.tree).unwrap();
        }
        view
    }

    #[test]
    fn the_oldest_run_goes_when_storage_holds_too_much() {
        let fifo = Fifo { bytes: Some(100) };
        assert_eq!(fifo.next_merge(&tree(&[60, 40])), None);
        let view = tree(&[60, 30, 11]);
        let plan = fifo.next_merge(&view).unwrap();
        let oldest = view.tree.disk_runs().last().unwrap().id();
        assert_eq!((plan.mode, plan.inputs[0].run), (Mode::Drop, oldest));
        assert_eq!(Fifo { bytes: None }.next_merge(&view), None);
    }
}
