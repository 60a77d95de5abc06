//! Carrying out a plan: read the inputs, write the output tables.

use crate::cursor::Cursor;
use crate::db::Options;
use crate::error::{Error, ErrorKind, Result};
use crate::merge::{Fold, FoldCounts};
use crate::names::{FileKind, numbered};
use crate::read::MergingCursor;
use crate::shared::Shared;
use crate::table::{CacheFill, TableFacts, TableWriter};
use crate::version::{Space, TableHandle, Version};
use lsmith_tree::{KeyRange, LevelId, MergePlan, Mode, Outcome, SeqNo, Slice, Table, TableId};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Entries between two looks at whether the store is closing.
const ENTRIES_PER_LOOK: u64 = 4096;

/// A plan that is being carried out.
pub(crate) struct Job {
    pub(crate) space: Arc<Space>,
    pub(crate) plan: MergePlan,
    /// Whether nothing older than the output holds keys of it.
    pub(crate) bottom: bool,
    /// Whether a memtable is among the inputs.
    pub(crate) takes_memory: bool,
    /// Entries up to this number leave memory.
    pub(crate) flushed_seq: SeqNo,
}

/// What came out of a plan.
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    pub(crate) tables: Vec<Arc<TableHandle>>,
    /// Bytes of the files read and written.
    pub(crate) bytes_read: u64,
    pub(crate) bytes_written: u64,
}

impl Shared {
    /// Carries out the plan of `job`, whose inputs are in `version`. On an error nothing is left on
    /// the device.
    pub(crate) fn execute(&self, job: &Job, version: &Version) -> Result<Done> {
        if job.plan.mode == Mode::Move {
            return Ok(relabel(&job.plan, version));
        }
        let mut output = Output::new(self, job.plan.cut_bytes);
        match self.merge(job, version, &mut output) {
            Ok(counts) => Ok(done(&job.plan, version, output, counts)),
            Err(error) => {
                output.remove();
                Err(error)
            }
        }
    }

    fn merge(&self, job: &Job, version: &Version, output: &mut Output<'_>) -> Result<FoldCounts> {
        let sources = job.plan.inputs.iter().map(|input| source(version, input)).collect();
        // Taken after the inputs were fixed: a later snapshot sees the newest of all of them.
        let snapshots = self.snapshots.newest_first();
        let mut fold = Fold::new(MergingCursor::new(sources), snapshots, |_| job.bottom)?;
        let mut entries = 0;
        while let Some(entry) = fold.next()? {
            output.add(entry)?;
            entries += 1;
            if entries % ENTRIES_PER_LOOK == 0 && self.closing.load(Ordering::Relaxed) {
                return Err(Error::new(ErrorKind::Io, "the store is closing"));
            }
        }
        output.finish_table()?;
        output.open_tables()?;
        Ok(fold.counts())
    }
}

/// Adds up what came out of `plan`.
fn done(plan: &MergePlan, version: &Version, output: Output<'_>, counts: FoldCounts) -> Done {
    let mut outcome = Outcome {
        entries_dropped: counts.entries_in - counts.entries_out,
        dropped_below: counts.dropped_below,
        ..Outcome::default()
    };
    let mut bytes_read = 0;
    for input in &plan.inputs {
        let Some((level, run)) = version.tree.run(input.run) else { continue };
        match level {
            LevelId::Memory => outcome.from_memory += run.size(),
            LevelId::Disk(_) => {
                outcome.read += run.size_within(&input.range);
                let open = version.runs.iter().find(|open| open.run().id() == input.run);
                bytes_read += open.map_or(0, |open| open.file_bytes_within(&input.range));
            }
        }
    }
    // Parts of tables are estimates, and a memtable may hold old versions for a snapshot: what
    // went through the merge is what counts.
    outcome.from_memory.entries = outcome.from_memory.entries.min(counts.entries_in);
    outcome.read.entries = counts.entries_in - outcome.from_memory.entries;
    for facts in &output.facts {
        outcome.written += facts.size;
        outcome.blocks.written += facts.data_blocks;
        outcome.slices.push(Slice::whole(table_of(facts)));
    }
    let bytes_written = output.facts.iter().map(|facts| facts.file_bytes).sum();
    Done { outcome, tables: output.handles, bytes_read, bytes_written }
}

/// The output of a plan that moves: its inputs, clipped.
fn relabel(plan: &MergePlan, version: &Version) -> Done {
    let mut outcome = Outcome::default();
    for input in &plan.inputs {
        if let Some((_, run)) = version.tree.run(input.run) {
            outcome.slices.extend(run.clip(&input.range));
        }
    }
    outcome.slices.sort_by(|left, right| left.range().start.cmp(&right.range().start));
    Done { outcome, tables: Vec::new(), bytes_read: 0, bytes_written: 0 }
}

fn source(version: &Version, input: &lsmith_tree::Input) -> Box<dyn Cursor> {
    if let Some((_, memtable)) = version.sealed.iter().find(|(run, _)| *run == input.run) {
        return Box::new(memtable.cursor());
    }
    let run = version.runs.iter().find(|open| open.run().id() == input.run);
    let run = run.expect("check_plan found every input");
    run.parts(&input.range, CacheFill::No).cursor()
}

/// What the tree knows of a table.
pub(crate) fn table_of(facts: &TableFacts) -> Table {
    Table {
        id: TableId(facts.table),
        root: 0,
        range: KeyRange::inclusive(&facts.first_key, &facts.last_key),
        size: facts.size,
        seq_min: facts.seq_min,
        seq_max: facts.seq_max,
        profile: facts.profile.clone(),
    }
}

/// The tables that a plan writes, one after the other.
struct Output<'a> {
    shared: &'a Shared,
    cut_bytes: Option<u64>,
    writer: Option<TableWriter>,
    /// The key after which a table that is full may be cut: empty while it is not full.
    last_key: Vec<u8>,
    /// Numbers of all files that were created.
    created: Vec<u64>,
    facts: Vec<TableFacts>,
    handles: Vec<Arc<TableHandle>>,
}

impl<'a> Output<'a> {
    fn new(shared: &'a Shared, cut_bytes: Option<u64>) -> Output<'a> {
        Output {
            shared,
            cut_bytes,
            writer: None,
            last_key: Vec::new(),
            created: Vec::new(),
            facts: Vec::new(),
            handles: Vec::new(),
        }
    }

    fn options(&self) -> &'a Options {
        &self.shared.options
    }

    fn path(&self, number: u64) -> std::path::PathBuf {
        numbered(&self.options().dir, FileKind::Table, number)
    }

    /// Adds an entry; the versions of one key are never in two tables.
    fn add(&mut self, entry: crate::cursor::EntryRef<'_>) -> Result<()> {
        if !self.last_key.is_empty() && entry.key != self.last_key {
            self.finish_table()?;
        }
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let number = self.shared.files.fetch_add(1, Ordering::Relaxed);
                self.created.push(number);
                let path = self.path(number);
                let options = self.options();
                self.writer.insert(TableWriter::create(
                    &options.env,
                    &path,
                    number,
                    &options.table,
                )?)
            }
        };
        writer.add(entry)?;
        if self.cut_bytes.is_some_and(|cut| writer.logical_bytes() >= cut) {
            self.last_key.clear();
            self.last_key.extend_from_slice(entry.key);
        }
        Ok(())
    }

    fn finish_table(&mut self) -> Result<()> {
        self.last_key.clear();
        if let Some(writer) = self.writer.take() {
            self.facts.push(writer.finish()?);
        }
        Ok(())
    }

    /// Makes the names of the tables survive power loss, and opens them.
    fn open_tables(&mut self) -> Result<()> {
        if self.created.is_empty() {
            return Ok(());
        }
        let Options { env, dir, .. } = self.options();
        let dir: &Path = dir;
        env.sync_dir(dir).map_err(|error| Error::io("sync the directory", dir, error))?;
        for facts in &self.facts {
            let id = TableId(facts.table);
            self.handles.push(TableHandle::open(env, dir, id, &self.shared.cache)?);
        }
        Ok(())
    }

    /// Removes all that was written.
    fn remove(mut self) {
        drop(self.writer.take());
        self.handles.clear();
        for &number in &self.created {
            let path = self.path(number);
            match self.options().env.remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    tracing::warn!(path = %path.display(), %error, "cannot remove a failed output");
                }
                _ => {}
            }
        }
    }
}
