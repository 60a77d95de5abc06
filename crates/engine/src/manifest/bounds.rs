//! How large numbers in files may be.
//!
//! Whoever wrote a directory may have meant harm, or had another idea of a number. Up to these
//! bounds numbers can be counted on, added up and multiplied by what policies multiply them by. No
//! store comes near them: what is larger was never written by this program.

use crate::manifest::KeyspaceRecord;
use crate::options::{MEMTABLE_BYTES_MAX, check_name};
use lsmith_storage::bounds::{Checked, NUMBER_MAX, check_number, check_seq};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::{Size, Slice, Tree, TreeEdit};
use std::path::Path;

/// Logical bytes of a keyspace, and its entries: 64 PiB. Counters too: bytes that merges wrote.
const SIZE_MAX: u64 = 1 << 56;

/// Numbers of keyspaces.
pub(crate) const KEYSPACE_MAX: u32 = 1 << 31;

/// Whether there can be such a keyspace.
pub(crate) fn check_keyspace(keyspace: &KeyspaceRecord) -> Checked {
    check_number("keyspace number", keyspace.id.into(), KEYSPACE_MAX.into())?;
    check_name(&keyspace.name).map_err(|error| error.to_string())?;
    match keyspace.memtable_bytes {
        0 => Err("a memtable of 0 bytes".into()),
        bytes => check_number("memtable bytes", bytes, MEMTABLE_BYTES_MAX),
    }
}

fn check_size(what: &str, size: Size) -> Checked {
    let Size { bytes, entries, tombstones } = size;
    check_number(&format!("bytes {what}"), bytes, SIZE_MAX)?;
    check_number(&format!("entries {what}"), entries, SIZE_MAX)?;
    check_number(&format!("tombstones {what}"), tombstones, SIZE_MAX)
}

/// Whether there can be such slices. What they hold together, at most what there can be.
fn check_slices<'a>(slices: impl Iterator<Item = &'a Slice>) -> std::result::Result<Size, String> {
    let mut sum = Size::default();
    for slice in slices {
        let table = slice.table();
        check_number("table", table.id.0, NUMBER_MAX)?;
        check_number("root", table.root, NUMBER_MAX)?;
        check_seq(table.seq_min.max(table.seq_max))?;
        check_size("of a table", table.size)?;
        sum = sum.saturating_add(slice.size());
    }
    Ok(sum)
}

/// Whether an edit can say such things. The tree that it makes is another question.
pub(crate) fn check_edit(edit: &TreeEdit) -> Checked {
    let mut sum = Size::default();
    for addition in &edit.add {
        check_number("run", addition.run.0, NUMBER_MAX)?;
        sum = sum.saturating_add(check_slices(addition.slices.iter())?);
    }
    check_size("of an edit", sum)?;
    check_number("flushes", edit.flushes, NUMBER_MAX)?;
    check_size("flushed", edit.flushed)?;
    check_seq(edit.dropped_below)
}

/// Whether there can be a tree that counts like this: its slices are not looked at.
pub(crate) fn check_counts(tree: &Tree) -> Checked {
    let size = tree.runs().map(|(_, run)| run.size()).sum();
    check_size("of a tree", size)?;
    check_number("next run", tree.next_run().0, NUMBER_MAX)?;
    check_number("next table", tree.next_table().0, NUMBER_MAX)?;
    check_number("flushes", tree.flushes(), NUMBER_MAX)?;
    check_size("flushed", tree.flushed())?;
    check_seq(tree.dropped_below())?;
    for level in tree.levels() {
        let mut counters = level.counters().fields();
        counters.try_for_each(|(name, count)| check_number(name, count, SIZE_MAX))?;
    }
    Ok(())
}

/// Whether there can be such a tree.
pub(crate) fn check_tree(tree: &Tree) -> Checked {
    for (_, run) in tree.runs() {
        check_number("run", run.id().0, NUMBER_MAX)?;
        check_slices(run.slices().iter())?;
    }
    check_counts(tree)
}

/// Whether the store in `dir`, whose files and writes have numbers up to `newest`, has any left to
/// write with. What was written while it had can always be read.
///
/// # Errors
/// `Unsupported`.
pub(crate) fn check_room(newest: u64, dir: &Path) -> Result<()> {
    match newest > NUMBER_MAX / 2 {
        true => {
            let told = "the store has no numbers left for files or writes: it can only be read";
            Err(Error::new(ErrorKind::Unsupported, told).at(dir))
        }
        false => Ok(()),
    }
}
