//! A memory buffer that is swept like a level, instead of memtables and level 0.

use crate::cost::{Flushes, Level, Model, Setting, Stage};
use crate::formulas::leveldb::Sweep;

/// Memory holds one sorted buffer. Its pieces are merged straight into level 1, in key order, again
/// and again; there is no level 0. Other levels are as in [`LeveledModel`](super::LeveledModel).
///
/// The buffer is a level without write cost. A piece of it holds the requests of one sweep of the
/// buffer.
///
/// Source: Lim et al., FAST 2016, name this variant; compare partial merges out of memory, Thonangi
/// & Yang, ICDE 2017.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryBufferModel {
    /// Entries of mean size that the buffer holds.
    pub buffer: f64,
    /// Sizes of the levels from 1 to the one before the last, in entries of mean size.
    pub sizes: Vec<f64>,
    /// The pick of pieces.
    pub sweep: Sweep,
    /// See [`LeveledModel::false_overlap`](super::LeveledModel::false_overlap).
    pub false_overlap: f64,
}

impl MemoryBufferModel {
    /// Returns the costs per request.
    pub fn evaluate(&self, setting: &Setting<'_>) -> Model {
        let popularity = setting.popularity;
        let swept = |size: f64| match self.sweep {
            Sweep::RoundRobin => popularity.interval(size),
            Sweep::Random => popularity.inverse(size),
        };
        let last = popularity.live();
        let mut stages = vec![Stage::log()];
        let mut levels = Vec::new();
        let first = swept(self.buffer.min(last));
        let mut interval = first;
        for (index, size) in self.sizes.iter().copied().chain([last]).enumerate() {
            let is_last = index == self.sizes.len();
            let taken = popularity.unique(interval);
            let beside = self.false_overlap * taken;
            let merged =
                if is_last { last } else { popularity.unique(interval + popularity.inverse(size)) };
            let name = match index {
                0 => "memory -> 1".to_owned(),
                _ => format!("level {index} -> {}", index + 1),
            };
            let read = if index == 0 { 0.0 } else { taken };
            let reads = (read + size + beside) / interval;
            stages.push(Stage::new(name, (merged + beside) / interval, reads));
            levels.push(Level { runs: 1.0, size });
            interval += swept(size);
        }
        let flushes = Flushes::of_memtables(setting, first).merged(1.0);
        Model::new(setting, flushes, stages, levels)
    }
}
