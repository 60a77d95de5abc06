//! Outlines of runs: what a page shows of the key space.

use lsmith_tree::{Key, Run, Tree};

/// The number of places in the key space that a page tells apart.
pub(super) const PLACES: u64 = 4096;
/// Slices that start in the same stretch of this many places are shown as one piece. So a run has
/// at most 512 pieces.
const STRETCH: u64 = 8;
/// The most borders that a scale keeps.
const BORDERS_MAX: usize = 1 << 16;

/// Maps keys to places in the key space, 0 to 4096.
#[derive(Clone, Debug)]
pub enum KeyScale {
    /// Keys are the numbers below this, as in simulations.
    Numbers(u64),
    /// Keys are any bytes. A key's place is its rank among these keys, which ascend.
    Borders(Vec<Key>),
}

impl KeyScale {
    /// Returns the scale on which the slices of `tree` are about equally wide.
    #[must_use]
    pub fn of_tree(tree: &Tree) -> KeyScale {
        let runs = || tree.runs().map(|(_, run)| run);
        let starts = runs().flat_map(|run| run.slices()).map(|slice| slice.range().start.clone());
        // Where a slice starts, the one before it in the run ends, as far as a reader can see.
        let ends = runs().filter_map(|run| run.hull().end);
        let mut borders: Vec<Key> = starts.chain(ends).collect();
        borders.sort();
        borders.dedup();
        let step = borders.len().div_ceil(BORDERS_MAX).max(1);
        KeyScale::Borders(borders.into_iter().step_by(step).collect())
    }

    /// Returns the place of a key. A key above another has no lower place.
    fn place(&self, key: &Key) -> u64 {
        let (below, all) = match self {
            // A key of more than eight bytes lies above the number of its first eight.
            KeyScale::Numbers(end) => {
                (key.prefix().saturating_add(u64::from(key.len() > 8)).min(*end), *end)
            }
            KeyScale::Borders(borders) => {
                let below = borders.partition_point(|border| border < key);
                (below as u64, borders.len().saturating_sub(1) as u64)
            }
        };
        (u128::from(below) * u128::from(PLACES) / u128::from(all.max(1))).min(PLACES.into()) as u64
    }
}

/// A part of a run: one slice, or neighbouring slices that are too narrow to be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    /// The place where the first slice starts.
    pub(super) start: u64,
    /// The place where the last slice ends, at or above `start`.
    pub(super) end: u64,
    /// Logical bytes.
    pub(super) bytes: u64,
}

/// What a page shows of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Outline {
    /// The pieces in key order. Their bytes add up to the bytes of the run.
    pub(super) pieces: Vec<Piece>,
    /// The number of slices.
    pub(super) slices: u64,
}

impl Outline {
    pub(super) fn of(run: &Run, scale: &KeyScale) -> Outline {
        let mut pieces: Vec<Piece> = Vec::new();
        for slice in run.slices() {
            let range = slice.range();
            let start = if range.start.is_empty() { 0 } else { scale.place(&range.start) };
            let end = range.end.as_ref().map_or(PLACES, |end| scale.place(end)).max(start);
            let bytes = slice.size().bytes;
            match pieces.last_mut() {
                Some(last) if last.start / STRETCH == start / STRETCH => {
                    last.end = end;
                    last.bytes += bytes;
                }
                _ => pieces.push(Piece { start, end, bytes }),
            }
        }
        Outline { pieces, slices: run.slices().len() as u64 }
    }
}
