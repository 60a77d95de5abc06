//! Bounds on the integers in a manifest.
//!
//! A hostile or foreign program may have written the directory. Integers within these bounds can be
//! incremented, added up, and multiplied as policies do, without overflow. No store comes near the
//! bounds: this program has never written a larger one.

use crate::manifest::KeyspaceRecord;
use crate::options::{MEMTABLE_BYTES_MAX, check_name};
use lsmith_storage::bounds::{Checked, NUMBER_MAX, check_number, check_seq};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::{Reads, Size, Slice, Tree, TreeEdit};
use std::path::Path;

/// The most logical bytes (64 PiB) or entries of a keyspace. Also bounds the counters of levels.
const SIZE_MAX: u64 = 1 << 56;

/// The greatest id of a keyspace.
pub(crate) const KEYSPACE_MAX: u32 = 1 << 31;

/// Fails if an integer or the name in `keyspace` is out of bounds.
pub(crate) fn check_keyspace(keyspace: &KeyspaceRecord) -> Checked {
    check_number("keyspace number", keyspace.id.into(), KEYSPACE_MAX.into())?;
    check_name(&keyspace.name).map_err(|error| error.to_string())?;
    match keyspace.memtable_bytes {
        0 => Err("a memtable of 0 bytes".into()),
        bytes => check_number("memtable bytes", bytes, MEMTABLE_BYTES_MAX),
    }
}

fn check_reads(reads: Reads) -> Checked {
    let Reads { memtables, found, absent, scans } = reads;
    let most = memtables.max(found).max(absent).max(scans);
    check_number("reads", most, SIZE_MAX)
}

fn check_size(what: &str, size: Size) -> Checked {
    let Size { bytes, entries, tombstones } = size;
    check_number(&format!("bytes {what}"), bytes, SIZE_MAX)?;
    check_number(&format!("entries {what}"), entries, SIZE_MAX)?;
    check_number(&format!("tombstones {what}"), tombstones, SIZE_MAX)
}

/// Fails if an integer in one of the slices is out of bounds. Returns the sum of their sizes, which
/// saturates.
fn check_slices<'a>(slices: impl Iterator<Item = &'a Slice>) -> std::result::Result<Size, String> {
    let mut sum = Size::default();
    for slice in slices {
        let table = slice.table();
        check_number("table", table.id.0, NUMBER_MAX)?;
        check_number("root", table.root, NUMBER_MAX)?;
        check_seq(table.seq_min.max(table.seq_max).max(table.deletes_applied))?;
        check_size("of a table", table.size)?;
        check_number("dead bytes", table.dead_bytes, SIZE_MAX)?;
        check_number("flushes before a table", table.born, NUMBER_MAX)?;
        check_number("flushes before a tombstone", table.oldest_tombstone, NUMBER_MAX)?;
        sum = sum.saturating_add(slice.size());
    }
    Ok(sum)
}

/// Fails if an integer in `edit` is out of bounds. Does not check the tree that the edit makes.
pub(crate) fn check_edit(edit: &TreeEdit) -> Checked {
    let mut sum = Size::default();
    for addition in &edit.add {
        check_number("run", addition.run.0, NUMBER_MAX)?;
        sum = sum.saturating_add(check_slices(addition.slices.iter())?);
    }
    check_size("of an edit", sum)?;
    check_number("flushes", edit.flushes, NUMBER_MAX)?;
    check_size("flushed", edit.flushed)?;
    edit.reads.map_or(Ok(()), check_reads)?;
    let ranges = edit.range_deletes.iter().chain(&edit.forget).chain(&edit.dropped);
    ranges.map(|(_, seq)| *seq).try_for_each(check_seq)?;
    check_seq(edit.dropped_below)
}

/// Fails if a counter of `tree` is out of bounds. Does not check its slices.
pub(crate) fn check_counts(tree: &Tree) -> Checked {
    let size = tree.runs().map(|(_, run)| run.size()).sum();
    check_size("of a tree", size)?;
    let dead = tree.runs().map(|(_, run)| run.dead_bytes()).fold(0, u64::saturating_add);
    check_number("dead bytes of a tree", dead, SIZE_MAX)?;
    check_number("next run", tree.next_run().0, NUMBER_MAX)?;
    check_number("next table", tree.next_table().0, NUMBER_MAX)?;
    check_number("flushes", tree.flushes(), NUMBER_MAX)?;
    check_size("flushed", tree.flushed())?;
    check_reads(tree.reads())?;
    check_seq(tree.dropped_below())?;
    tree.range_deletes().parts().flat_map(|part| &part.seqs).try_for_each(|seq| check_seq(*seq))?;
    for level in tree.levels() {
        let mut counters = level.counters().fields();
        counters.try_for_each(|(name, count)| check_number(name, count, SIZE_MAX))?;
    }
    Ok(())
}

/// Fails if an integer in `tree` is out of bounds.
pub(crate) fn check_tree(tree: &Tree) -> Checked {
    for (_, run) in tree.runs() {
        check_number("run", run.id().0, NUMBER_MAX)?;
        check_slices(run.slices().iter())?;
    }
    check_counts(tree)
}

/// Checks that the store in `dir`, whose file ids and sequence numbers are at most `newest`, has
/// enough of them left to write with. A store without can still be read.
///
/// # Errors
/// Fails with `Unsupported` if more than half of all ids or sequence numbers are used.
pub(crate) fn check_room(newest: u64, dir: &Path) -> Result<()> {
    if newest > NUMBER_MAX / 2 {
        let message = "the store has no numbers left for files or writes: it can only be read";
        return Err(Error::new(ErrorKind::Unsupported, message).at(dir));
    }
    Ok(())
}
