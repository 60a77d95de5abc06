//! Merges whose output are append tables.
//!
//! A plan that makes new tables is a merge like any other, except for their kind. A plan that
//! [appends](lsmith_tree::Place::Append) reads its entries twice: first to learn how many bytes go
//! to each table and to each gap between two tables (`parts`), then to write them, table by table
//! (`walk`). Appended bytes lie behind the root that the tree names. So if the plan fails, or is
//! given up, the next batch is written over them.

mod parts;
mod walk;

use super::input::{InputCursor, taken_of};
use super::{Merger, PlanOutput, ReservedPlan, hiding, named, outcome_of};
use crate::stats::add;
use crate::version::{TableHandle, Version};
use lsmith_storage::directory;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::fold::{Fold, FoldCounts, Hiding, Walk};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::panics;
use lsmith_storage::table::{
    AppendTable, Appended, BatchRules, ReadTable, ReadTally, TableOptions,
};
use lsmith_tree::{Input, KeptTables, RunId, SeqNo, Size, Slice, TableId};
use parts::{Place, TablePart, divide};
use std::path::PathBuf;
use std::sync::Arc;
use walk::{OneTable, TablesWalk};

/// The tables that a plan has written.
#[derive(Default)]
struct Grown {
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

/// A table after the plan.
enum Made {
    /// It is as it was.
    Same(Slice),
    /// It has another root, or is new.
    Root(Arc<TableHandle>),
    /// The root with this name of a new file.
    New(u64, u64),
}

impl Grown {
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
struct AppendPlan<'a> {
    reserved: &'a ReservedPlan,
    version: &'a Version,
    options: TableOptions,
    /// The live snapshots, newest first.
    snapshots: Vec<SeqNo>,
    /// The range deletes.
    hiding: Hiding,
    /// The inputs without the run whose tables are appended to.
    inputs: Vec<Input>,
    tally: Arc<ReadTally>,
}

impl AppendPlan<'_> {
    /// Returns what is to be written. Tombstones are dropped here only if `drops`: tables that take
    /// entries in have older ones.
    fn fold(&self, drops: bool) -> Result<Fold<InputCursor, impl FnMut(&[u8]) -> bool + use<>>> {
        let cursor =
            InputCursor::new(self.version, &self.inputs, &KeptTables::default(), &self.tally);
        let cursor = cursor.leaping(self.hiding.clone(), &self.snapshots);
        let cursor = cursor.reading_if(true, self.version);
        let bottom = drops && self.reserved.bottom;
        let forgets = drops && self.reserved.forgets;
        let fold = Fold::new(cursor, self.snapshots.clone(), move |_| bottom)?;
        let fold = fold.forgetting(forgets).combining(self.reserved.keyspace.rules.for_merges());
        Ok(fold.hiding(self.hiding.clone()))
    }

    /// Returns what a table that takes entries in may drop.
    fn rules(&self, drops: bool) -> BatchRules<impl FnMut(&[u8]) -> bool + use<>> {
        let bottom = drops && self.reserved.bottom;
        BatchRules {
            snapshots: self.snapshots.clone(),
            nothing_beneath: move |_: &[u8]| bottom,
            forgets: drops && self.reserved.forgets,
            operators: self.reserved.keyspace.rules.for_merges(),
            hiding: self.hiding.clone(),
        }
    }
}

impl Merger {
    /// Carries out a plan that [makes append tables](lsmith_tree::MergePlan::makes_append). After
    /// an error no new file stays on the device.
    pub(super) fn grow(
        &self,
        reserved: &ReservedPlan,
        version: &Version,
        options: TableOptions,
        era: u64,
    ) -> Result<PlanOutput> {
        let target = reserved.plan.appends_to();
        let others = reserved.plan.inputs.iter().filter(|input| Some(input.run) != target);
        let (hiding, snapshots) = hiding(&self.context, &reserved.plan, version);
        let plan = AppendPlan {
            reserved,
            version,
            options,
            snapshots,
            hiding,
            inputs: others.cloned().collect(),
            tally: Arc::default(),
        };
        let mut grown = Grown::default();
        let taken = panics::as_error("a merge", || {
            let taken = match target {
                Some(run) => self.append(&plan, run, &mut grown)?,
                None => self.plant(&plan, &mut grown)?,
            };
            self.open_tables(&mut grown)?;
            Ok(taken)
        });
        match taken {
            Ok(taken) => {
                add(&self.context.counts.node_bytes, grown.node_bytes);
                let is_filtered = grown.counts.filtered > 0;
                Ok(output(&plan, grown, &taken).filtered(is_filtered, era))
            }
            Err(error) => {
                for file_id in &grown.created {
                    let path = self.table_path(*file_id);
                    directory::remove(&*self.context.options.env, &path, "a failed output");
                }
                Err(named(error, &reserved.plan.inputs, version))
            }
        }
    }

    /// Writes all entries to new tables. Returns the size taken from each input.
    fn plant(&self, plan: &AppendPlan<'_>, grown: &mut Grown) -> Result<Vec<Size>> {
        let cuts = plan.reserved.plan.cut_keys(&plan.version.tree);
        let mut walk = TablesWalk::new(self, plan.fold(true)?, plan.reserved, cuts)?;
        walk.enter(None, plan.reserved.plan.cut_bytes.unwrap_or(u64::MAX));
        self.write_new(plan, &mut walk, grown, false)?;
        Ok(self.end(walk, grown))
    }

    /// Appends the entries to the tables that the plan takes from run `target`, and to new ones
    /// between them. Returns the size taken from each other input.
    fn append(&self, plan: &AppendPlan<'_>, target: RunId, grown: &mut Grown) -> Result<Vec<Size>> {
        let run = plan.version.disk_run(target).expect("check_plan found every run");
        // Without tables of the target, all entries go to new ones.
        let mut taken = plan.reserved.plan.inputs.iter().filter(|input| input.run == target);
        let parts = taken.next().map(|input| run.overlapping(&input.range));
        let old: Vec<Arc<TableHandle>> =
            parts.into_iter().flatten().map(|part| Arc::clone(part.table())).collect();
        let cut_bytes = plan.reserved.plan.cut_bytes.unwrap_or(u64::MAX);
        let parts = divide(plan.fold(false)?, &old, cut_bytes)?;
        let mut walk = TablesWalk::new(self, plan.fold(false)?, plan.reserved, Vec::new())?;
        for TablePart { place, end, cut_bytes } in parts {
            walk.enter(end, cut_bytes);
            match place {
                Place::Old(index) => {
                    let made = self.append_to(plan, &old[index], &mut walk, grown)?;
                    grown.made.push(made);
                }
                Place::New => self.write_new(plan, &mut walk, grown, true)?,
            }
        }
        Ok(self.end(walk, grown))
    }

    /// Appends the entries up to the end of the part to the table of `handle`.
    fn append_to<B: FnMut(&[u8]) -> bool>(
        &self,
        plan: &AppendPlan<'_>,
        handle: &Arc<TableHandle>,
        walk: &mut TablesWalk<'_, B>,
        grown: &mut Grown,
    ) -> Result<Made> {
        if OneTable(walk).here().is_none() {
            return Ok(Made::Same(handle.whole()));
        }
        let base = handle.table().as_append().expect("check_plan found append tables");
        let appended = base.append(&plan.options, OneTable(walk), plan.rules(true))?;
        grown.count(&appended, base.facts().file_bytes);
        Ok(Made::Root(handle.open_next(base, appended.root)?))
    }

    /// Writes the entries up to the end of the part as new tables.
    fn write_new<B: FnMut(&[u8]) -> bool>(
        &self,
        plan: &AppendPlan<'_>,
        walk: &mut TablesWalk<'_, B>,
        grown: &mut Grown,
        drops: bool,
    ) -> Result<()> {
        while walk.begins_table() {
            let env = &self.context.options.env;
            let (file_id, file) = self.context.make_numbered(FileKind::Table, |path, _| {
                env.create(path).map_err(|error| Error::io("create", path, error))
            })?;
            grown.created.push(file_id);
            let path = self.table_path(file_id);
            let rules = plan.rules(drops);
            let entries = OneTable(walk);
            let appended =
                AppendTable::create(file, &path, file_id, &plan.options, entries, rules)?;
            grown.count(&appended, 0);
            if appended.written.entries == 0 {
                // All entries were tombstones.
                grown.created.pop();
                directory::remove(&**env, &path, "an empty table");
                continue;
            }
            grown.made.push(Made::New(file_id, appended.root));
        }
        Ok(())
    }

    /// Returns the size taken from each input of `walk`, which is at its end.
    fn end<B: FnMut(&[u8]) -> bool>(
        &self,
        walk: TablesWalk<'_, B>,
        grown: &mut Grown,
    ) -> Vec<Size> {
        let (counts, taken) = walk.end();
        // What the tables met they have counted; what the walk gave them counts once.
        grown.counts.entries_in += counts.entries_in - counts.entries_out;
        grown.counts.filtered += counts.filtered;
        grown.counts.dropped_below = grown.counts.dropped_below.max(counts.dropped_below);
        taken
    }

    fn table_path(&self, file_id: u64) -> PathBuf {
        numbered(&self.context.options.dir, FileKind::Table, file_id)
    }

    /// Makes the names of new files survive power loss, and opens the tables.
    fn open_tables(&self, grown: &mut Grown) -> Result<()> {
        let options = &self.context.options;
        if !grown.created.is_empty() {
            directory::sync(&*options.env, &options.dir)?;
        }
        for made in &mut grown.made {
            if let Made::New(file_id, root) = *made {
                let place = self.context.tables();
                let handle = TableHandle::open_root(&place, TableId(file_id), root)?;
                *made = Made::Root(handle);
            }
        }
        Ok(())
    }
}

/// Returns the output of `plan`. `taken` is the size that was taken from each input.
fn output(plan: &AppendPlan<'_>, grown: Grown, taken: &[Size]) -> PlanOutput {
    let mut outcome = outcome_of(grown.counts, taken_of(plan.version, &plan.inputs, taken));
    outcome.read += grown.met;
    outcome.reused += grown.kept;
    outcome.written = grown.written;
    outcome.deletes_applied =
        plan.hiding.deletes_applied(&plan.reserved.plan.hull(), &plan.snapshots);
    outcome.blocks.read = plan.tally.blocks();
    outcome.blocks.written = grown.value_blocks;
    let mut tables = Vec::new();
    for made in grown.made {
        match made {
            Made::Same(slice) => outcome.slices.push(slice),
            Made::Root(handle) => {
                // A table that has lost all entries has no slice, and goes.
                if handle.table().facts().size.entries > 0 {
                    outcome.slices.push(handle.whole());
                }
                tables.push(handle);
            }
            Made::New(..) => unreachable!("all tables were opened"),
        }
    }
    let bytes_read = plan.tally.bytes() + grown.node_bytes_read;
    let done = PlanOutput::new(outcome, &plan.reserved.plan, plan.version);
    done.with(tables, bytes_read, grown.file_bytes)
}
