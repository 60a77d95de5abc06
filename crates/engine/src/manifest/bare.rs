//! What the manifest leaves out of trees: profiles.
//!
//! A table says in its own properties how much lies below which key. With a point for every data
//! block that is much more than the manifest has to say about the table, so the manifest names
//! tables, and whoever opens them puts their profiles back into the tree.

use lsmith_tree::{Profile, Slice, Table, TableId, TreeEdit};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// `edit` without the profiles of its tables.
pub(super) fn bare(mut edit: TreeEdit) -> TreeEdit {
    let mut known = FxHashMap::default();
    let slices = edit.add.iter_mut().flat_map(|addition| &mut addition.slices);
    for slice in slices.filter(|slice| !slice.table().profile.is_empty()) {
        *slice = bare_slice(slice, &mut known);
    }
    edit
}

fn bare_slice(slice: &Slice, known: &mut FxHashMap<TableId, Arc<Table>>) -> Slice {
    let table = known.entry(slice.table().id).or_insert_with(|| {
        let Table { id, root, ref range, size, seq_min, seq_max, profile: _ } = **slice.table();
        let (range, profile) = (range.clone(), Profile::default());
        Arc::new(Table { id, root, range, size, seq_min, seq_max, profile })
    });
    let whole = Slice::whole(Arc::clone(table));
    whole.clip(slice.range()).expect("the table has the range that it had")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_profiles_are_left_out() {
        let text = |profile: &str| {
            format!(
                "edit flushes 1\ntake r1 ..\n\
                 add r2 at L1 [t3:a..c of a..z 1MB 9e s1..7{profile}, t4:d..e 2MB, \
                 t3:f..g of a..z 1MB 9e s1..7{profile}]"
            )
        };
        let with: TreeEdit = text(" {b 500kB 4e, c..f 600kB 5e}").parse().unwrap();
        let without: TreeEdit = text("").parse().unwrap();
        assert_ne!(with, without);
        assert_eq!(bare(with), without);
        assert_eq!(bare(without.clone()), without);
    }
}
