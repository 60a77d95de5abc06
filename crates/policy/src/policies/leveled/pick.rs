//! The choice of the piece that goes down.

use lsmith_spec::random::{GOLDEN_GAMMA, mix};
use lsmith_spec::{Params, SpecError};
use lsmith_tree::{Key, KeyRange, Run, Size, Slice, Slices, Tree};
use std::sync::Arc;

/// Which piece of an overfull level goes down. Ties go to the first piece in key order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pick {
    /// The piece that follows, in key order, the last one that went down (LevelDB).
    RoundRobin,
    /// The piece that overlaps the fewest bytes in the next level.
    MinOverlap,
    /// The piece with the narrowest key range, measured by how many bytes of the whole tree lie in
    /// it. This depends on the order of keys only, so every interpreter gets the same result. One
    /// run alone would not do: a new oldest level lacks most keys at first, so that ranges without
    /// a table of it would all seem equally narrow and go down again and again.
    Narrowest,
    /// The piece with the most bytes per byte of overlap (HyperLevelDB).
    BestRatio,
    /// The piece whose newest entry is the oldest (RocksDB's "oldest largest sequence number
    /// first"). Tables must keep sequence numbers for it. The age of the tables would not do: if
    /// every flush reaches every table, tables are written in key order, and the same end of the
    /// key space would go down again and again.
    Oldest,
    /// The piece whose oldest entry is the oldest (RocksDB's "oldest smallest sequence number
    /// first"): its keys have not gone down for the longest time. Tables must keep sequence numbers
    /// for it.
    OldestSmallest,
    /// The largest table (RocksDB's "compensated size"). If tombstones outnumber the
    /// other entries, the table counts as larger, by two entries of mean size for each tombstone
    /// more.
    Largest,
    /// The piece with the most tombstones, of several the one that overlaps the least (Lethe).
    Tombstones,
    /// The whole level at once.
    WholeLevel,
    /// The keys behind the last ones that went down, up to the end of their table. Unlike
    /// `RoundRobin`, this skips nothing where the borders of tables have moved.
    InTurn,
    /// Any piece, each as likely as another. Lim et al. model RocksDB's choice of the largest
    /// table like this.
    Random,
}

/// The runs to choose a piece from.
pub(super) struct Choice<'a> {
    /// The run that gives a piece.
    pub(super) source: &'a Run,
    /// The run below that takes it.
    pub(super) target: Option<&'a Arc<Run>>,
    /// The tree, which measures how wide a key range is.
    pub(super) tree: &'a Tree,
    /// The end of the last piece that went down.
    pub(super) cursor: Option<Key>,
    /// Logical bytes of a piece, approximately.
    pub(super) piece_bytes: u64,
}

/// A piece that could go down.
pub(super) struct Candidate {
    pub(super) piece: KeyRange,
    pub(super) overlap_bytes: u64,
}

impl Pick {
    const NAMES: [(&'static str, Pick); 11] = [
        ("min_overlap", Pick::MinOverlap),
        ("round_robin", Pick::RoundRobin),
        ("narrowest", Pick::Narrowest),
        ("best_ratio", Pick::BestRatio),
        ("oldest", Pick::Oldest),
        ("oldest_smallest", Pick::OldestSmallest),
        ("largest", Pick::Largest),
        ("tombstones", Pick::Tombstones),
        ("whole_level", Pick::WholeLevel),
        ("in_turn", Pick::InTurn),
        ("random", Pick::Random),
    ];

    pub(super) fn name(self) -> &'static str {
        Pick::NAMES.iter().find(|(_, pick)| *pick == self).map_or("", |(name, _)| name)
    }

    pub(super) fn read(params: &Params<'_>) -> Result<Pick, SpecError> {
        let names = Pick::NAMES.map(|(name, _)| name);
        let chosen = params.choice("pick", "min_overlap", &names)?;
        let found = Pick::NAMES.iter().find(|(name, _)| *name == chosen);
        Ok(found.map_or(Pick::MinOverlap, |(_, pick)| *pick))
    }

    /// Returns the pieces that could go down, best first.
    pub(super) fn ranked(self, choice: &Choice<'_>) -> impl Iterator<Item = Candidate> + use<> {
        let mut ranked: Vec<(f64, Candidate)> = match self {
            Pick::WholeLevel => vec![(0.0, choice.whole())],
            _ => self.with_ranks(choice).collect(),
        };
        ranked.sort_by(|left, right| left.0.total_cmp(&right.0));
        ranked.into_iter().map(|(_, candidate)| candidate)
    }

    /// Returns the first of the pieces [`ranked`](Pick::ranked), in one pass.
    pub(super) fn best(self, choice: &Choice<'_>) -> Option<Candidate> {
        if self == Pick::WholeLevel {
            return Some(choice.whole());
        }
        let best = self
            .with_ranks(choice)
            .reduce(|best, next| if next.0.total_cmp(&best.0).is_lt() { next } else { best });
        best.map(|(_, candidate)| candidate)
    }

    /// Returns a piece of each slice with its rank, in key order.
    fn with_ranks(self, choice: &Choice<'_>) -> impl Iterator<Item = (f64, Candidate)> {
        let mut below = choice.target.map_or(Slices::default(), |run| run.slices());
        choice.source.slices().iter().enumerate().map(move |(index, slice)| {
            let rest = (self == Pick::InTurn).then(|| choice.behind_cursor(slice)).flatten();
            let slice = rest.as_ref().unwrap_or(slice);
            let candidate = choice.first_piece(slice, &mut below);
            (self.rank(choice, index, slice, &candidate), candidate)
        })
    }

    /// Returns the rank of a candidate. The smallest goes first. `index` is the index of its slice.
    fn rank(self, choice: &Choice<'_>, index: usize, slice: &Slice, candidate: &Candidate) -> f64 {
        let Candidate { piece, overlap_bytes } = candidate;
        match self {
            Pick::RoundRobin | Pick::InTurn => match &choice.cursor {
                Some(cursor) if piece.start < *cursor => 1.0,
                _ => 0.0,
            },
            Pick::MinOverlap => *overlap_bytes as f64,
            Pick::Narrowest => {
                choice.tree.disk_runs().map(|run| run.size_within(piece).bytes).sum::<u64>() as f64
            }
            Pick::BestRatio => {
                -(slice.size_within(piece).bytes as f64) / (*overlap_bytes as f64 + 1.0)
            }
            Pick::Oldest => slice.table().seq_max.0 as f64,
            Pick::OldestSmallest => slice.table().seq_min.0 as f64,
            Pick::Largest => -compensated_bytes(slice.size()),
            Pick::Tombstones => {
                let all = choice.target.map_or(0, |run| run.bytes());
                let part = *overlap_bytes as f64 / (all as f64 + 1.0);
                part - slice.size_within(piece).tombstones as f64
            }
            Pick::WholeLevel => 0.0,
            // The number of merges differs at each, so its hash is a random number. Names of tables
            // would not do: a store names other files too, so simulations would pick others.
            Pick::Random => {
                let counters = choice.tree.levels().iter().map(|level| level.counters());
                let merges: u64 = counters.map(|counters| counters.merges + counters.moves).sum();
                stirred(merges ^ choice.source.id().0 << 32, index as u64)
            }
        }
    }
}

/// Returns the bytes of a table with this size, and more if it has many tombstones.
fn compensated_bytes(size: Size) -> f64 {
    let rest = size.entries.saturating_sub(size.tombstones);
    let excess = size.tombstones.saturating_sub(rest);
    let mean = size.bytes as f64 / size.entries.max(1) as f64;
    size.bytes as f64 + 2.0 * excess as f64 * mean
}

/// Returns a pseudo-random number from 0 to 1.
fn stirred(seed: u64, index: u64) -> f64 {
    mix(seed.wrapping_add(index.wrapping_mul(GOLDEN_GAMMA))) as f64 / u64::MAX as f64
}

impl Choice<'_> {
    /// Returns the part of `slice` behind the cursor, if the cursor is inside. A level of one table
    /// is swept from its start: it may be a table without keys of a unit simulation.
    fn behind_cursor(&self, slice: &Slice) -> Option<Slice> {
        let cursor = self.cursor.clone().filter(|_| self.source.slices().len() > 1)?;
        slice
            .range()
            .contains(&cursor)
            .then(|| slice.clip(&KeyRange { start: cursor, end: None }))?
    }

    fn whole(&self) -> Candidate {
        Candidate {
            piece: self.source.hull(),
            overlap_bytes: self.target.map_or(0, |run| run.bytes()),
        }
    }

    /// Returns the first piece of `slice`. Removes from `below` the slices of the target that end
    /// below it, so that calls in key order take one pass over the target.
    fn first_piece(&self, slice: &Slice, below: &mut Slices<'_>) -> Candidate {
        let piece = slice.first_piece(self.piece_bytes);
        let is_passed = |slice: &Slice| slice.range().lies_below(&piece.start);
        if below.first().is_some_and(is_passed) {
            let passed = below.iter().take_while(|slice| is_passed(slice)).count();
            *below = below.range(passed..below.len());
        }
        let is_reached = |slice: &&Slice| !piece.lies_below(&slice.range().start);
        Candidate {
            overlap_bytes: below.iter().take_while(is_reached).map(|s| s.size().bytes).sum(),
            piece,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::stirred;

    #[test]
    fn random_picks_reach_every_table() {
        for seed in 0..50 {
            let picked = |seed: u64| {
                let ranks = (0..4).map(|index| stirred(seed, index));
                let least = ranks.enumerate().min_by(|left, right| left.1.total_cmp(&right.1));
                least.map_or(0, |(index, _)| index)
            };
            let mut counts = [0; 4];
            (0..4000).for_each(|merge| counts[picked((seed << 32) ^ (3 * merge))] += 1);
            assert!(counts.iter().all(|count| (880..1120).contains(count)), "{counts:?}");
        }
    }
}
