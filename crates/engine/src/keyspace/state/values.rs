//! The value files of a keyspace: how large they are, and which are cleaned.

use super::KeyspaceState;
use crate::values::{ValueHandle, ValueTotals};
use lsmith_tree::{MergePlan, TableId};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

impl KeyspaceState {
    /// Returns the value files that tables of the tree refer to, by id.
    pub(crate) fn value_files(&self) -> BTreeMap<u64, Arc<ValueHandle>> {
        // Asked before each plan: no store without value files looks at its tables.
        if !self.values.are_used() {
            return BTreeMap::new();
        }
        let files = self.tables.values().flat_map(|table| table.value_files());
        files.map(|file| (file.file_id(), Arc::clone(file))).collect()
    }

    /// Returns the sizes of these files.
    pub(crate) fn value_totals(&self) -> ValueTotals {
        ValueTotals::of(self.value_files().values())
    }

    /// Returns a plan that rewrites a table with references into a file that is being cleaned, and
    /// the table. Chooses files to clean if all take more than `space` times the bytes that are
    /// referred to.
    ///
    /// Garbage decides, not age: a file without garbage is never cleaned, and cold keys do not keep
    /// a file of garbage, because their table is rewritten.
    pub(crate) fn clean_values(&self, space: f64) -> Option<(MergePlan, TableId)> {
        let files = self.value_files();
        if files.is_empty() {
            return None;
        }
        choose(&files, space);
        if !files.values().any(|file| file.is_in_the_way()) {
            return None;
        }
        self.rewrite_one("table {} has values in a file of garbage", |id| {
            let table = self.tables.get(&id);
            table.is_some_and(|table| table.value_files().any(|file| file.is_in_the_way()))
        })
    }
}

/// Marks the files with the greatest shares of garbage as to be cleaned, until the rest is within
/// the bound.
fn choose(files: &BTreeMap<u64, Arc<ValueHandle>>, space: f64) {
    let mut totals = ValueTotals::of(files.values());
    let (cleaned, mut others): (Vec<_>, Vec<_>) =
        files.values().partition::<Vec<_>, _>(|file| file.is_cleaned());
    for file in cleaned {
        totals.record_bytes -= file.garbage_bytes();
    }
    others.retain(|file| file.garbage_bytes() > 0);
    let share = |file: &&Arc<ValueHandle>| {
        Reverse(file.garbage_bytes() * 1000 / file.record_bytes().max(1))
    };
    others.sort_by_key(share);
    for file in others {
        if !totals.exceed(space) {
            return;
        }
        file.clean();
        totals.record_bytes -= file.garbage_bytes();
    }
}
