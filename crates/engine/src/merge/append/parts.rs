//! Which entries go to which table.

use crate::version::TableHandle;
use lsmith_storage::error::Result;
use lsmith_storage::fold::{Fold, Walk};
use lsmith_storage::table::ReadTable;
use lsmith_tree::{Key, MergePlan, logical_bytes};
use std::sync::Arc;

/// Where entries go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// To the old table at this index.
    Old(usize),
    /// To new tables.
    New,
}

/// Entries that go to one place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TablePart {
    pub(super) place: Place,
    /// The first key that does not belong to it; `None` for the last part.
    pub(super) end: Option<Key>,
    /// Logical bytes at which a new table is cut.
    pub(super) cut_bytes: u64,
}

/// Divides the entries of `fold` among `tables`, which are in key order. Those between two tables,
/// or beyond them, make new tables if they fill [one part in so many](MergePlan::NEW_APPEND_PARTS)
/// of a table of `cut_bytes`. Otherwise they go to the table in front of them, or else to the
/// first.
pub(super) fn divide<C: Walk, B: FnMut(&[u8]) -> bool>(
    fold: Fold<C, B>,
    tables: &[Arc<TableHandle>],
    cut_bytes: u64,
) -> Result<Vec<TablePart>> {
    let ranges = tables.iter().map(|table| &table.table().tree_table().range);
    let borders: Vec<Option<Key>> =
        ranges.flat_map(|range| [Some(range.start.clone()), range.end.clone()]).collect();
    let bytes = bytes_between(fold, &borders)?;
    Ok(parts(&bytes, &borders, cut_bytes))
}

/// Returns the logical bytes of the entries of `fold` in front of each border, from the one before,
/// and behind the last.
fn bytes_between<C: Walk, B: FnMut(&[u8]) -> bool>(
    mut fold: Fold<C, B>,
    borders: &[Option<Key>],
) -> Result<Vec<u64>> {
    let mut bytes = vec![0; borders.len() + 1];
    let mut at = 0;
    while let Some(entry) = fold.next_entry()? {
        let is_behind =
            |border: &Option<Key>| border.as_ref().is_some_and(|key| **key <= *entry.key);
        while borders.get(at).is_some_and(is_behind) {
            at += 1;
        }
        bytes[at] += logical_bytes(entry.key.len(), entry.value.len());
    }
    Ok(bytes)
}

/// Returns the parts. `borders` are the first key and the end of each table, and `bytes` go to the
/// gaps and tables between them, beginning with the gap in front of the first table.
fn parts(bytes: &[u64], borders: &[Option<Key>], cut_bytes: u64) -> Vec<TablePart> {
    let least = (cut_bytes / MergePlan::NEW_APPEND_PARTS).max(1);
    let is_large = |gap: usize| borders.is_empty() || bytes[gap] >= least;
    let new = |gap: usize| TablePart {
        place: Place::New,
        end: borders.get(gap).cloned().flatten(),
        cut_bytes: equal_cut(bytes[gap], cut_bytes),
    };
    let mut parts: Vec<TablePart> = is_large(0).then(|| new(0)).into_iter().collect();
    for table in 0..borders.len() / 2 {
        let gap = 2 * table + 2;
        let is_new = is_large(gap);
        let end = borders.get(if is_new { gap - 1 } else { gap }).cloned().flatten();
        parts.push(TablePart { place: Place::Old(table), end, cut_bytes: u64::MAX });
        parts.extend(is_new.then(|| new(gap)));
    }
    parts
}

/// Returns the bytes of each of several tables of about `cut_bytes` and equal size.
fn equal_cut(bytes: u64, cut_bytes: u64) -> u64 {
    let tables = (bytes.saturating_add(cut_bytes / 2) / cut_bytes.max(1)).max(1);
    bytes.div_ceil(tables)
}
