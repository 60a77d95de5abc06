//! SILT: a log store, hash stores, and a sorted store.

use super::stack::sum_of_steps;
use crate::cost::{Flushes, Level, Model, Setting, Stage};

/// A log store becomes a hash store when it is full. When there are enough hash stores, they and
/// the sorted store become the new sorted store.
///
/// The log store is a log on storage with an index in memory: a memtable and its log. A hash store
/// is a run in the order of hashes. Its table has empty places, which are written too. The sorted
/// store is one run with every key.
///
/// Source: Lim, Fan, Andersen, Kaminsky, "SILT: a memory-efficient, high-performance key-value
/// store", SOSP 2011, for the design and for costs without shared keys; Lim et al., FAST 2016, for
/// expected sizes and for hash stores that are merged into a larger one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SiltModel {
    /// Different keys of a full log store, in all partitions together.
    pub log: f64,
    /// Entries per place of a hash store, at most 1.
    pub occupancy: f64,
    /// Hash stores that are merged together, at least 1.
    pub hash_stores: u64,
    /// The share of all keys that a larger hash store may hold; less than 1. Each row of hash
    /// stores is merged into that one first. `None` without a larger hash store.
    pub grown: Option<f64>,
}

impl SiltModel {
    /// Returns the costs per request.
    ///
    /// Let a log store take `i` requests with `s` different keys: `i` is the inverse of `unique`. A
    /// conversion writes `s / occupancy` places per `i` requests. A merge of `h` hash stores into
    /// the sorted store writes every key per `h i` requests.
    ///
    /// With a larger hash store of at most the share `g`, `m` merges end in it, where `m h i`
    /// requests are the most with at most `g` of all keys. The last of the `m` goes on into the
    /// sorted store. The others write `unique(h i), .., unique((m - 1) h i)` over `occupancy`.
    ///
    /// Partitions do not matter. Each has its part of the keys, of the requests and of all stores.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let last = popularity.live();
        let places = 1.0 / self.occupancy;
        let interval = popularity.inverse(self.log);
        let row = self.hash_stores as f64;
        let minor = interval * row;
        let rows = match self.grown {
            Some(share) => (popularity.inverse(share * last) / minor).floor().max(1.0),
            None => 1.0,
        };
        let major = minor * rows;
        // The sizes of the larger hash store after each of so many merges of a round.
        let sizes = |merges: f64| sum_of_steps(merges, |merge| popularity.unique(merge * minor));
        let written = |merges: f64| sizes(merges) * places / major;
        let hashed = self.log * places / interval;
        let log = Stage::new("log store -> hash store", hashed, self.log / interval);
        let mut stages = vec![Stage::log(), log];
        if self.grown.is_some() {
            // Each merge but the first of a round reads what the one before has written.
            let reads = hashed * (rows - 1.0) / rows + written(rows - 2.0);
            stages.push(Stage::new("hash stores -> hash store", written(rows - 1.0), reads));
        }
        let sorted = last / major;
        let reads = hashed / rows + written(rows - 1.0) - written(rows - 2.0) + sorted;
        stages.push(Stage::new("hash stores -> sorted store", sorted, reads));
        // A log store that holds every key is never full.
        let kept = if interval.is_finite() { (row - 1.0) / 2.0 } else { 0.0 };
        let mut levels = vec![Level { runs: kept, size: kept * self.log }];
        if self.grown.is_some() {
            levels.push(Level { runs: (rows - 1.0) / rows, size: sizes(rows - 1.0) / rows });
        }
        let in_hash_stores: f64 = levels.iter().map(|level| level.size).sum();
        levels.push(Level { runs: 1.0, size: last });
        let flushes = Flushes::of_memtables(setting, interval);
        let space_cost = (in_hash_stores * places + last) / last;
        Model { space_cost, ..Model::new(setting, flushes, stages, levels) }
    }
}
