//! Counts the files of a simulation.

use super::append::AppendFile;
use super::metadata::Metadata;
use super::parts::Parts;
use super::sizes::FileSizes;
use crate::report::PhysicalCosts;
use lsmith_sim::{Event, Figures};
use lsmith_tree::{MergePlan, Mode, Run, Tree, TreeEdit};
use std::collections::{HashMap, HashSet};

/// Counts the files of a simulation.
#[derive(Clone, Debug)]
pub struct PhysicalMeter {
    sizes: FileSizes,
    flush: f64,
    merge: f64,
    files: HashMap<u64, AppendFile>,
    parts: Parts,
    metadata: Metadata,
    /// The sum over all rests of bytes of tables per logical byte held, and their number.
    held: f64,
    rests: f64,
}

impl PhysicalMeter {
    /// Returns a meter of an empty tree.
    #[must_use]
    pub fn new(sizes: FileSizes) -> PhysicalMeter {
        let (parts, metadata) = (Parts::default(), Metadata::default());
        let (flush, merge, held, rests) = (0.0, 0.0, 0.0, 0.0);
        let files = HashMap::new();
        PhysicalMeter { sizes, flush, merge, files, parts, metadata, held, rests }
    }

    /// Counts what happens in a simulation, which must be passed every event.
    pub fn observe(&mut self, event: Event<'_>) {
        match event {
            Event::Merge { tree, plan, edit } => self.merge(tree, plan, edit),
            Event::Rest { tree } => self.rest(tree),
            Event::Sealed { tree, requested_bytes } => {
                self.metadata.sealed(&self.sizes, requested_bytes, tree.memory().bytes());
            }
            Event::Flushed { .. } => {}
        }
    }

    /// Returns the costs of the simulation that ended with `figures`.
    #[must_use]
    pub fn costs(&self, figures: &Figures) -> PhysicalCosts {
        let user = figures.parts.requested_bytes as f64 * self.sizes.user;
        let log = user * self.sizes.log + self.metadata.spilled;
        let metadata = self.metadata.manifest;
        let held = if self.rests > 0.0 { self.held / self.rests } else { 0.0 };
        PhysicalCosts {
            log,
            flush: self.flush,
            merge_written: self.merge,
            metadata,
            write_cost_user: (log + self.flush + self.merge + metadata) / user.max(1.0),
            space_cost_physical_mean: held * figures.space_cost_mean,
        }
    }

    fn merge(&mut self, tree: &Tree, plan: &MergePlan, edit: &TreeEdit) {
        self.metadata.edit(&self.sizes, tree, edit);
        let written: u64 = edit.counters.iter().map(|(_, count)| count.bytes_written).sum();
        if written == 0 {
            return;
        }
        if plan.mode == Mode::Merge && plan.makes_append() {
            self.merge += self.append(edit, written as f64);
            return;
        }
        let slices = edit.add.iter().flat_map(|addition| &addition.slices);
        let added: u64 = slices.map(|slice| slice.size().bytes).sum();
        let joined = edit.add.first().and_then(|addition| tree.run(addition.run));
        let run_bytes = added + joined.map_or(0, |(_, run)| run.bytes());
        let bytes = written as f64 * self.sizes.sorted(run_bytes as f64);
        if edit.counters.iter().any(|(_, count)| count.flushes > 0) {
            self.flush += bytes;
        } else {
            self.merge += bytes;
        }
    }

    /// Returns the bytes that a merge writes to append tables. It writes `written` logical bytes of
    /// entries. What files grow by besides are nodes that it replaces.
    fn append(&mut self, edit: &TreeEdit, written: f64) -> f64 {
        let mut bytes = 0.0;
        let mut batches = written;
        let mut grown = Vec::new();
        for slice in edit.add.iter().flat_map(|addition| &addition.slices) {
            let (size, dead) = (slice.size(), slice.dead_bytes());
            match self.files.get(&slice.table().id.0) {
                Some(file) => {
                    let growth = (size.bytes + dead) as f64 - file.logical;
                    if growth > 0.0 {
                        grown.push((slice, growth));
                    }
                }
                None => {
                    let file = self.sizes.append.new_file(size);
                    bytes += file.bytes;
                    batches -= size.bytes as f64;
                    self.files.insert(slice.table().id.0, file);
                }
            }
        }
        let growth: f64 = grown.iter().map(|(_, growth)| growth).sum();
        for (slice, own) in grown {
            let batch = batches.max(0.0) * own / growth;
            let file = self.files.entry(slice.table().id.0).or_default();
            bytes += self.sizes.append.append(file, batch, slice.size(), slice.dead_bytes());
        }
        bytes
    }

    fn rest(&mut self, tree: &Tree) {
        let slices = || tree.disk_runs().flat_map(|run| run.slices().iter());
        let appends = slices().filter(|slice| slice.is_append()).count();
        if self.files.len() > 2 * appends {
            let live: HashSet<u64> = slices().map(|slice| slice.table().id.0).collect();
            self.files.retain(|id, _| live.contains(id));
        }
        self.metadata.rest(&self.sizes, tree.memory().bytes());
        self.parts.begin();
        let memory = tree.memory().bytes() as f64;
        let (mut logical, mut bytes) = (memory, memory);
        for run in tree.disk_runs() {
            logical += (run.bytes() + run.dead_bytes()) as f64;
            bytes += self.run_bytes(run);
        }
        bytes += self.parts.held(&self.sizes);
        if logical > 0.0 {
            self.held += bytes / logical;
            self.rests += 1.0;
        }
    }

    /// Returns the bytes of the files of a run. Leaves out sorted tables if slices show only a
    /// part.
    fn run_bytes(&mut self, run: &Run) -> f64 {
        let sorted = self.sizes.sorted(run.bytes() as f64);
        let appends = run.slices().iter().filter(|slice| slice.table().root > 0).map(|slice| {
            let file = self.files.get(&slice.table().id.0);
            file.map_or(slice.size().bytes as f64 * sorted, |file| file.bytes)
        });
        appends.sum::<f64>() + self.parts.whole(run, sorted)
    }
}
