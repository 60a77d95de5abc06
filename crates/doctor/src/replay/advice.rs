//! The best rows, and what it takes to get there.

use super::Row;
use super::candidates::Candidate;
use crate::Family;
use serde::Serialize;

/// The part by which runs and space may be more than now without a word.
const TOLERANCE: f64 = 0.1;

/// How to get to a row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Move {
    /// The store of the row.
    pub store: &'static str,
    /// The policy of the row.
    pub policy: String,
    /// Bytes that the row writes less, over bytes that the present settings write.
    pub saves: f64,
    /// True if the row has no more runs and no more space at its peak than now, within a tenth.
    pub is_free: bool,
    /// What to put into OPTIONS: names and values that differ from now; for Cassandra, the class of
    /// the strategy and all its options. Empty for lsmith, where the policy is the spec.
    pub options: Vec<String>,
    /// Bytes that the move itself writes at most: the tree as it is now, once. `None` without a
    /// MANIFEST.
    pub merge_bytes: Option<u64>,
    /// The most bytes that the move needs beside the tree of now. `None` without a MANIFEST.
    pub extra_bytes: Option<u64>,
}

/// Returns the best rows: of each store the one that writes least at no more runs and space, and of
/// RocksDB the one that writes least at all, with the present style and with any. All of them write
/// less than the first row, which has the present settings, by more than the part `band`.
pub(super) fn moves(
    family: &Family,
    candidates: &[Candidate],
    rows: &[Row],
    band: f64,
) -> Vec<Move> {
    let Some((now, others)) = rows.split_first() else { return Vec::new() };
    let is_free = |row: &Row| {
        row.runs_mean <= now.runs_mean * (1.0 + TOLERANCE)
            && row.space_peak <= now.space_peak * (1.0 + TOLERANCE)
    };
    let style = |place: usize| candidates[place].options.first().map(|option| &option.1);
    let stays = |place: usize| style(place).is_some() && style(place) == style(0);
    let least = |may: &dyn Fn(usize, &Row) -> bool| {
        let writes_less = |row: &Row| row.write < now.write * (1.0 - band);
        let places = (1..).zip(others).filter(|(at, row)| writes_less(row) && may(*at, row));
        let best = places.min_by(|left, right| left.1.write.total_cmp(&right.1.write));
        best.map(|(at, _)| at)
    };
    let of = |row: &Row, store: &str| row.store == store;
    let theirs = if now.store == "Cassandra" { "Cassandra" } else { "RocksDB" };
    let mut places: Vec<usize> = Vec::new();
    for place in [
        least(&|_, row| of(row, theirs) && is_free(row)),
        least(&|at, _| stays(at)),
        least(&|_, row| of(row, theirs)),
        least(&|_, row| of(row, "lsmith") && is_free(row)),
    ] {
        places.extend(place.filter(|place| !places.contains(place)));
    }
    let tree_bytes = family.files.iter().map(|file| file.bytes).sum();
    let tree_bytes = Some(tree_bytes).filter(|bytes: &u64| *bytes > 0);
    let made = places.into_iter().map(|place| {
        let (candidate, row) = (&candidates[place], &rows[place]);
        let bytes = if stays(place) { Some(0) } else { tree_bytes };
        // A strategy of Cassandra is set with all its options.
        let differs = |option: &&(&str, String)| {
            row.store == "Cassandra" || !candidates[0].options.contains(option)
        };
        Move {
            store: row.store,
            policy: row.policy.clone(),
            saves: 1.0 - row.write / now.write,
            is_free: is_free(row),
            options: candidate
                .options
                .iter()
                .filter(differs)
                .map(|(name, value)| format!("{name}={value}"))
                .collect(),
            merge_bytes: bytes,
            extra_bytes: bytes,
        }
    });
    made.collect()
}
