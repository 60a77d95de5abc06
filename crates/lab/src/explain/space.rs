//! Samples how many bytes each level holds, and how many of them are obsolete.

use lsmith_sim::KeyedSim;
use lsmith_tree::{LevelId, Tree};
use std::collections::BTreeMap;

/// A sample reads every entry of the tree. So the next sample waits until this share of the tree's
/// bytes has been flushed. Then all samples together read a few entries per entry written.
const FLUSHED_PER_SAMPLE: f64 = 0.125;

/// Bytes of a level, summed over flushes.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct HeldBytes {
    pub(super) held: f64,
    pub(super) obsolete: f64,
}

/// Collects samples. Each counts for the flushes since the sample before.
#[derive(Clone, Debug, Default)]
pub(super) struct SpaceSampler {
    flushed_at_sample: u64,
    flushes_since: u64,
    flushes: u64,
    levels: BTreeMap<LevelId, HeldBytes>,
}

impl SpaceSampler {
    /// Takes a sample of `sim`, which is at rest after a flush, if enough was flushed since the
    /// last one.
    pub(super) fn look(&mut self, sim: &KeyedSim) {
        self.flushes_since += 1;
        let tree = sim.tree();
        let flushed = tree.flushed().bytes - self.flushed_at_sample;
        if flushed as f64 >= FLUSHED_PER_SAMPLE * tree.disk_bytes() as f64 {
            self.sample(tree, &sim.obsolete_bytes());
        }
    }

    fn sample(&mut self, tree: &Tree, obsolete: &[(LevelId, u64)]) {
        let weight = self.flushes_since as f64;
        for (level, obsolete) in obsolete {
            let held = match level {
                LevelId::Memory => tree.memory().bytes(),
                LevelId::Disk(index) => tree.levels()[*index].bytes(),
            };
            let sum = self.levels.entry(*level).or_default();
            sum.held += weight * held as f64;
            sum.obsolete += weight * *obsolete as f64;
        }
        self.flushed_at_sample = tree.flushed().bytes;
        self.flushes += self.flushes_since;
        self.flushes_since = 0;
    }

    /// Returns the bytes of each level on storage, averaged over flushes, youngest level first.
    pub(super) fn means(&self) -> impl Iterator<Item = (usize, HeldBytes)> {
        let flushes = self.flushes.max(1) as f64;
        self.levels.iter().filter_map(move |(level, sum)| match level {
            LevelId::Memory => None,
            LevelId::Disk(index) => Some((
                *index,
                HeldBytes { held: sum.held / flushes, obsolete: sum.obsolete / flushes },
            )),
        })
    }
}
