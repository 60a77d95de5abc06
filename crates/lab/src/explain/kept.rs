//! What a store remembers of its merges: the counters of each level, and what follows from them.

use lsmith_tree::{Counters, Level, Tree};
use serde::Serialize;

/// What the merges of a tree have written since it was created, by level. Bytes are logical.
///
/// A store keeps the counters of each level in its manifest. It keeps neither single merges nor
/// their reasons, and no reads.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Kept {
    /// Memtables that left memory.
    pub flushes: u64,
    /// Their bytes.
    pub flush_bytes: u64,
    /// Bytes that flushes and merges wrote: the sum of all levels.
    pub bytes_written: u64,
    /// True if [`KeptLevel::from_above_bytes`] and [`KeptLevel::rewritten_bytes`] are known.
    pub is_split: bool,
    /// The levels, level 0 first.
    pub levels: Vec<KeptLevel>,
}

/// What a level holds, and what merges into it took and wrote. Of each merge,
/// `from_memory_bytes + from_storage_bytes - dropped_bytes - reused_bytes` were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct KeptLevel {
    /// The number of the level.
    pub level: usize,
    /// Runs that it holds now. A lookup considers each.
    pub runs: u64,
    /// Bytes that it holds now.
    pub bytes: u64,
    /// Tombstones that it holds now.
    pub tombstones: u64,
    /// Memtables that became runs of their own.
    pub flushes: u64,
    /// Merges into the level.
    pub merges: u64,
    /// Moves to the level.
    pub moves: u64,
    /// Times that a run was rewritten by itself.
    pub compactions: u64,
    /// Bytes that merges took from memory.
    pub from_memory_bytes: u64,
    /// Bytes that merges took from storage.
    pub from_storage_bytes: u64,
    /// The part that came from the level above. Derived: see [`Kept::of`].
    pub from_above_bytes: Option<u64>,
    /// The part that was in this level already. Derived: see [`Kept::of`].
    pub rewritten_bytes: Option<u64>,
    /// Bytes that merges took and did not write.
    pub dropped_bytes: u64,
    /// Bytes of blocks that merges kept.
    pub reused_bytes: u64,
    /// Bytes moved to the level.
    pub moved_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

impl Kept {
    /// Returns what `tree` remembers.
    ///
    /// The counters do not say which level the inputs of a merge came from. If all merges and moves
    /// go from one level to the next, that follows from what the levels hold now: what came to a
    /// level is there, was rewritten there, or went on to the next level. The deepest level comes
    /// first, since nothing goes on from there. For merges that skip a level, the bytes count as
    /// if they had stopped in the skipped level and not been rewritten there. Bytes that move
    /// within a level count as rewritten there. If the levels do not add up, for example because a
    /// bulk load added tables without a merge, nothing is derived.
    #[must_use]
    pub fn of(tree: &Tree) -> Kept {
        let mut levels: Vec<_> = tree.levels().iter().enumerate().map(kept_level).collect();
        let is_split = split(&mut levels).is_some();
        if !is_split {
            for level in &mut levels {
                (level.from_above_bytes, level.rewritten_bytes) = (None, None);
            }
        }
        Kept {
            flushes: tree.flushes(),
            flush_bytes: tree.flushed().bytes,
            bytes_written: levels.iter().map(|level| level.written_bytes).sum(),
            is_split,
            levels,
        }
    }
}

fn kept_level((index, level): (usize, &Level)) -> KeptLevel {
    let (size, counters): (_, &Counters) = (level.size(), level.counters());
    let went_in = counters.bytes_from_memory.saturating_add(counters.bytes_in);
    let came_out = counters.bytes_written.saturating_add(counters.bytes_reused);
    KeptLevel {
        level: index,
        runs: level.runs().len() as u64,
        bytes: size.bytes,
        tombstones: size.tombstones,
        flushes: counters.flushes,
        merges: counters.merges,
        moves: counters.moves,
        compactions: counters.compactions,
        from_memory_bytes: counters.bytes_from_memory,
        from_storage_bytes: counters.bytes_in,
        dropped_bytes: went_in.saturating_sub(came_out),
        reused_bytes: counters.bytes_reused,
        moved_bytes: counters.bytes_moved,
        written_bytes: counters.bytes_written,
        ..KeptLevel::default()
    }
}

/// Splits the bytes from storage of each level. Returns `None` if the levels do not add up.
fn split(levels: &mut [KeptLevel]) -> Option<()> {
    let mut went_on = 0;
    for level in levels.iter_mut().rev() {
        let merged = level.written_bytes.checked_add(level.reused_bytes)?;
        let came = merged.checked_add(level.moved_bytes)?;
        let rewritten = came.checked_sub(level.bytes)?.checked_sub(went_on)?;
        let from_above = level.from_storage_bytes.checked_sub(rewritten)?;
        (level.from_above_bytes, level.rewritten_bytes) = (Some(from_above), Some(rewritten));
        went_on = from_above.checked_add(level.moved_bytes)?;
    }
    // Nothing on storage lies above level 0.
    (went_on == 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_of(tree: &str) -> Vec<(Option<u64>, Option<u64>)> {
        let kept = Kept::of(&tree.parse().unwrap());
        assert_eq!(kept.is_split, kept.levels.iter().all(|level| level.rewritten_bytes.is_some()));
        let levels = kept.levels.iter();
        levels.map(|level| (level.from_above_bytes, level.rewritten_bytes)).collect()
    }

    /// Three memtables of 100 bytes. Two went down one after the other, the second into the first.
    const ADDS_UP: &str = "tree\nL0 r9[t9:a..z 100B]\nL1 r8[t8:a..z 190B]\n\
        count L0 flushes 3 bytes_from_memory 300 bytes_written 300\n\
        count L1 merges 2 bytes_in 300 bytes_written 290";

    #[test]
    fn inputs_are_split_from_the_deepest_level_up() {
        assert_eq!(split_of(ADDS_UP), [(Some(0), Some(0)), (Some(200), Some(100))]);
    }

    #[test]
    fn nothing_is_derived_if_the_levels_do_not_add_up() {
        let loaded = ADDS_UP.replace("r9[t9:a..z 100B]", "r10[t10:a..z 70B] r9[t9:a..z 100B]");
        assert_eq!(split_of(&loaded), [(None, None); 2]);
    }
}
