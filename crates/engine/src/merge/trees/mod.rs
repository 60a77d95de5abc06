//! Merges whose output are append tables, the trees.
//!
//! A plan that makes new trees is a merge like any other, except for the kind of its tables. A plan
//! that [appends](lsmith_tree::Place::Append) reads its entries twice: first to learn how many
//! bytes go to each tree and to each gap between two trees (`parts`), then to write them, tree by
//! tree (`walk`). Appended bytes lie behind the root that the tree of the keyspace names. So if the
//! plan fails, or is given up, the next batch is written over them.

mod parts;
mod walk;

use super::input::{InputCursor, taken_of};
use super::{Merger, PlanOutput, ReservedPlan, erasing, named, outcome_of};
use crate::stats::add;
use crate::version::{TableHandle, Version};
use lsmith_storage::directory;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::fold::{Erasing, Fold, FoldCounts, Walk};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::table::{
    AppendTable, Appended, BatchRules, ReadTable, ReadTally, TableOptions,
};
use lsmith_tree::{Input, RunId, SeqNo, Size, Slice, TableId};
use parts::{Place, TreePart, divide};
use std::path::PathBuf;
use std::sync::Arc;
use walk::{OneTree, TreeWalk};

/// The trees that a plan has written.
#[derive(Default)]
struct Trees {
    /// The numbers of new files.
    created: Vec<u64>,
    /// What becomes of the target, in key order.
    made: Vec<Made>,
    counts: FoldCounts,
    met: Size,
    kept: Size,
    written: Size,
    value_blocks: u64,
    /// Bytes of nodes that were read, and that were written.
    node_bytes_read: u64,
    node_bytes: u64,
    /// All bytes that were written.
    file_bytes: u64,
}

/// A tree after the plan.
enum Made {
    /// It is as it was.
    Same(Slice),
    /// It has another root, or is new.
    Root(Arc<TableHandle>),
    /// The root with this name of a new file.
    New(u64, u64),
}

impl Trees {
    /// Counts a batch. `before` is the length of the file without it.
    fn count(&mut self, appended: &Appended, before: u64) {
        self.counts += appended.counts;
        self.met += appended.met;
        self.kept += appended.kept;
        self.written += appended.written;
        self.value_blocks += appended.value_blocks;
        self.node_bytes_read += appended.read_bytes;
        self.node_bytes += appended.node_bytes;
        self.file_bytes += appended.root - before;
    }
}

/// What a plan merges, and by which rules.
struct TreePlan<'a> {
    reserved: &'a ReservedPlan,
    version: &'a Version,
    options: TableOptions,
    /// The live snapshots, newest first.
    snapshots: Vec<SeqNo>,
    /// The range deletes.
    erasing: Erasing,
    /// The inputs without the run whose trees are appended to.
    inputs: Vec<Input>,
    tally: Arc<ReadTally>,
}

impl TreePlan<'_> {
    /// Returns what is to be written. Tombstones are dropped here only if `drops`: trees that take
    /// entries in have older ones.
    fn fold(&self, drops: bool) -> Result<Fold<InputCursor, impl FnMut(&[u8]) -> bool + use<>>> {
        let cursor = InputCursor::new(self.version, &self.inputs, &self.tally);
        let cursor = cursor.leaping(self.erasing.clone(), &self.snapshots);
        let bottom = drops && self.reserved.bottom;
        let forgets = drops && self.reserved.forgets;
        let fold = Fold::new(cursor, self.snapshots.clone(), move |_| bottom)?;
        let fold = fold.forgetting(forgets).combining(self.reserved.keyspace.rules.for_merges());
        Ok(fold.erasing(self.erasing.clone()))
    }

    /// Returns what a tree that takes entries in may drop.
    fn rules(&self, drops: bool) -> BatchRules<impl FnMut(&[u8]) -> bool + use<>> {
        let bottom = drops && self.reserved.bottom;
        BatchRules {
            snapshots: self.snapshots.clone(),
            nothing_beneath: move |_: &[u8]| bottom,
            forgets: drops && self.reserved.forgets,
            operators: self.reserved.keyspace.rules.for_merges(),
            erasing: self.erasing.clone(),
        }
    }
}

impl Merger {
    /// Carries out a plan that [makes trees](lsmith_tree::MergePlan::makes_trees). After an error
    /// no new file stays on the device.
    pub(super) fn grow(
        &self,
        reserved: &ReservedPlan,
        version: &Version,
        options: TableOptions,
        era: u64,
    ) -> Result<PlanOutput> {
        let target = reserved.plan.appends_to();
        let others = reserved.plan.inputs.iter().filter(|input| Some(input.run) != target);
        let (erasing, snapshots) = erasing(&self.context, &reserved.plan, version);
        let plan = TreePlan {
            reserved,
            version,
            options,
            snapshots,
            erasing,
            inputs: others.cloned().collect(),
            tally: Arc::default(),
        };
        let mut trees = Trees::default();
        let grown = panics::as_error("a merge", || {
            let taken = match target {
                Some(run) => self.append(&plan, run, &mut trees)?,
                None => self.plant(&plan, &mut trees)?,
            };
            self.open_trees(&mut trees)?;
            Ok(taken)
        });
        match grown {
            Ok(taken) => {
                add(&self.context.counts.node_bytes, trees.node_bytes);
                let is_filtered = trees.counts.filtered > 0;
                Ok(output(&plan, trees, &taken).filtered(is_filtered, era))
            }
            Err(error) => {
                for number in &trees.created {
                    let path = self.tree_path(*number);
                    directory::remove(&*self.context.options.env, &path, "a failed output");
                }
                Err(named(error, &reserved.plan.inputs, version))
            }
        }
    }

    /// Writes all entries to new trees. Returns the size taken from each input.
    fn plant(&self, plan: &TreePlan<'_>, trees: &mut Trees) -> Result<Vec<Size>> {
        let cuts = plan.reserved.plan.cut_keys(&plan.version.tree);
        let mut walk = TreeWalk::new(self, plan.fold(true)?, plan.reserved, cuts)?;
        walk.enter(None, plan.reserved.plan.cut_bytes.unwrap_or(u64::MAX));
        self.write_new(plan, &mut walk, trees, false)?;
        Ok(self.end(walk, trees))
    }

    /// Appends the entries to the trees that the plan takes from run `target`, and to new ones
    /// between them. Returns the size taken from each other input.
    fn append(&self, plan: &TreePlan<'_>, target: RunId, trees: &mut Trees) -> Result<Vec<Size>> {
        let run = plan.version.disk_run(target).expect("check_plan found every run");
        // Without trees of the target, all entries go to new ones.
        let mut taken = plan.reserved.plan.inputs.iter().filter(|input| input.run == target);
        let parts = taken.next().map(|input| run.overlapping(&input.range));
        let old: Vec<Arc<TableHandle>> =
            parts.into_iter().flatten().map(|part| Arc::clone(part.table())).collect();
        let cut_bytes = plan.reserved.plan.cut_bytes.unwrap_or(u64::MAX);
        let parts = divide(plan.fold(false)?, &old, cut_bytes)?;
        let mut walk = TreeWalk::new(self, plan.fold(false)?, plan.reserved, Vec::new())?;
        for TreePart { place, end, cut_bytes } in parts {
            walk.enter(end, cut_bytes);
            match place {
                Place::Tree(index) => {
                    let made = self.append_to(plan, &old[index], &mut walk, trees)?;
                    trees.made.push(made);
                }
                Place::New => self.write_new(plan, &mut walk, trees, true)?,
            }
        }
        Ok(self.end(walk, trees))
    }

    /// Appends the entries up to the end of the part to the tree of `handle`.
    fn append_to<B: FnMut(&[u8]) -> bool>(
        &self,
        plan: &TreePlan<'_>,
        handle: &Arc<TableHandle>,
        walk: &mut TreeWalk<'_, B>,
        trees: &mut Trees,
    ) -> Result<Made> {
        if OneTree(walk).here().is_none() {
            return Ok(Made::Same(handle.whole()));
        }
        let base = handle.table().as_append().expect("check_plan found append tables");
        let appended = base.append(&plan.options, OneTree(walk), plan.rules(true))?;
        trees.count(&appended, base.facts().file_bytes);
        Ok(Made::Root(handle.open_next(base, appended.root)?))
    }

    /// Writes the entries up to the end of the part as new trees.
    fn write_new<B: FnMut(&[u8]) -> bool>(
        &self,
        plan: &TreePlan<'_>,
        walk: &mut TreeWalk<'_, B>,
        trees: &mut Trees,
        drops: bool,
    ) -> Result<()> {
        while walk.begins_tree() {
            let env = &self.context.options.env;
            let (number, file) = self.context.make_numbered(FileKind::Table, |path, _| {
                env.create(path).map_err(|error| Error::io("create", path, error))
            })?;
            trees.created.push(number);
            let path = self.tree_path(number);
            let rules = plan.rules(drops);
            let entries = OneTree(walk);
            let appended = AppendTable::create(file, &path, number, &plan.options, entries, rules)?;
            trees.count(&appended, 0);
            if appended.written.entries == 0 {
                // All entries were tombstones.
                trees.created.pop();
                directory::remove(&**env, &path, "an empty tree");
                continue;
            }
            trees.made.push(Made::New(number, appended.root));
        }
        Ok(())
    }

    /// Returns the size taken from each input of `walk`, which is at its end.
    fn end<B: FnMut(&[u8]) -> bool>(&self, walk: TreeWalk<'_, B>, trees: &mut Trees) -> Vec<Size> {
        let (counts, taken) = walk.end();
        // What the trees met they have counted; what the walk gave them counts once.
        trees.counts.entries_in += counts.entries_in - counts.entries_out;
        trees.counts.filtered += counts.filtered;
        trees.counts.dropped_below = trees.counts.dropped_below.max(counts.dropped_below);
        taken
    }

    fn tree_path(&self, number: u64) -> PathBuf {
        numbered(&self.context.options.dir, FileKind::Table, number)
    }

    /// Makes the names of new files survive power loss, and opens the trees.
    fn open_trees(&self, trees: &mut Trees) -> Result<()> {
        let options = &self.context.options;
        if !trees.created.is_empty() {
            directory::sync(&*options.env, &options.dir)?;
        }
        for made in &mut trees.made {
            if let Made::New(number, root) = *made {
                let place = self.context.tables();
                let handle = TableHandle::open_root(&place, TableId(number), root)?;
                *made = Made::Root(handle);
            }
        }
        Ok(())
    }
}

/// Returns the output of `plan`. `taken` is the size that was taken from each input.
fn output(plan: &TreePlan<'_>, trees: Trees, taken: &[Size]) -> PlanOutput {
    let mut outcome = outcome_of(trees.counts, taken_of(plan.version, &plan.inputs, taken));
    outcome.read += trees.met;
    outcome.reused += trees.kept;
    outcome.written = trees.written;
    outcome.cleared = plan.erasing.cleared(&plan.reserved.plan.hull(), &plan.snapshots);
    outcome.blocks.read = plan.tally.blocks();
    outcome.blocks.written = trees.value_blocks;
    let mut tables = Vec::new();
    for made in trees.made {
        match made {
            Made::Same(slice) => outcome.slices.push(slice),
            Made::Root(handle) => {
                // A tree that has lost all entries is a table without a slice, and goes.
                if handle.table().facts().size.entries > 0 {
                    outcome.slices.push(handle.whole());
                }
                tables.push(handle);
            }
            Made::New(..) => unreachable!("all trees were opened"),
        }
    }
    let bytes_read = plan.tally.bytes() + trees.node_bytes_read;
    let done = PlanOutput::new(outcome, &plan.reserved.plan, plan.version);
    done.with(tables, bytes_read, trees.file_bytes)
}
