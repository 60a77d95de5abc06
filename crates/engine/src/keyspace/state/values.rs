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
    let (cleaned, others): (Vec<_>, Vec<_>) =
        files.values().partition::<Vec<_>, _>(|file| file.is_cleaned());
    for file in cleaned {
        totals.record_bytes -= file.garbage_bytes();
    }
    // Looked at once: other threads change the shares meanwhile, and a sort must not see that.
    let look = |file: &Arc<ValueHandle>| (file.garbage_bytes(), file.record_bytes());
    let mut others: Vec<_> = others.into_iter().map(|file| (look(file), file)).collect();
    others.retain(|((garbage, _), _)| *garbage > 0);
    others.sort_by_key(|((garbage, all), _)| Reverse(garbage * 1000 / (*all).max(1)));
    for ((garbage, _), file) in others {
        if !totals.exceed(space) {
            return;
        }
        file.clean();
        totals.record_bytes -= garbage;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::leases::Leases;
    use crate::values::{TableValues, ValueFiles};
    use lsmith_storage::env::{Env, MemEnv};
    use lsmith_storage::names::{FileKind, numbered};
    use lsmith_storage::sync::atomic::{AtomicBool, Ordering};
    use lsmith_storage::sync::thread;
    use lsmith_storage::table::{BlockCache, Codec, ValueWriter};
    use std::path::Path;

    /// Merges of other keyspaces and readers change shares while files are chosen.
    #[test]
    fn files_are_chosen_while_their_garbage_changes() {
        let env: Arc<dyn Env> = Arc::new(MemEnv::new());
        let dir = Path::new("/values");
        env.create_dir_all(dir).unwrap();
        let cache = Arc::new(BlockCache::new(0));
        let leases = Arc::new(Leases::new(&env, dir));
        let values = ValueFiles::new(&env, dir, &cache, &leases);
        let table = |file_id| {
            let path = numbered(dir, FileKind::Values, file_id);
            let mut writer = ValueWriter::create(&env, &path, file_id, Codec::None).unwrap();
            writer.add(&[1; 1000]).unwrap();
            writer.finish().unwrap();
            TableValues::new(values.open(file_id).unwrap(), 1000)
        };
        let tables: Vec<TableValues> = (1..=100).map(table).collect();
        let files: BTreeMap<_, _> = (1..).zip(tables.iter().map(|table| table.file())).collect();
        let files = files.into_iter().map(|(id, file)| (id, Arc::clone(file))).collect();
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                for round in 1_u64.. {
                    for (place, table) in (0..).zip(&tables) {
                        table.show((round * (7 + place) % 13) as f64 / 13.0);
                    }
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
            scope.spawn(|| {
                let chosen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
                    (0..3000).for_each(|_| choose(&files, f64::INFINITY));
                }));
                is_over.store(true, Ordering::Relaxed);
                assert!(chosen.is_ok());
            });
        });
    }
}
