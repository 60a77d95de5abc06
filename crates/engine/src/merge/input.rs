//! Cursors over the inputs of a plan, which add up the sizes of the entries they take.

use crate::values::ValueFiles;
use crate::version::{Source, Version};
use bytes::Bytes;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::fold::{Hiding, Walk};
use lsmith_storage::read::MergingCursor;
use lsmith_storage::table::{CacheFill, ReadTally};
use lsmith_tree::{Input, KeptTables, LevelId, SeqNo, Size};
use std::sync::Arc;

/// Returns a cursor over the entries of `input` in `version`, without the tables in `kept`. Adds
/// reads of files to `tally`.
fn entries(version: &Version, input: &Input, kept: &KeptTables, tally: &Arc<ReadTally>) -> Source {
    if let Some(memory) = version.memory_run(input.run) {
        return Source::of_memory(memory, &input.range);
    }
    let run = version.disk_run(input.run).expect("check_plan found every input");
    if kept.is_empty() {
        return run.source(&input.range, CacheFill::No, Some(tally));
    }
    let rest = Arc::new(run.without(&input.range, |table| kept.has(table)));
    rest.source(&input.range, CacheFill::No, Some(tally))
}

/// Returns the logical size of `entry`.
pub(super) fn entry_size(entry: &EntryRef<'_>) -> Size {
    Size {
        bytes: entry.logical_bytes(),
        entries: 1,
        tombstones: u64::from(entry.kind.is_tombstone()),
    }
}

/// The sizes of the entries that went into a merge, from memory and from storage.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct TakenSizes {
    pub(super) memory: Size,
    pub(super) storage: Size,
}

impl TakenSizes {
    pub(super) fn add(&mut self, level: LevelId, size: Size) {
        match level {
            LevelId::Memory => self.memory += size,
            LevelId::Disk(_) => self.storage += size,
        }
    }
}

/// All inputs of a plan as one cursor, in the store's order.
pub(super) struct InputCursor {
    merging: MergingCursor<Source>,
    inputs: Vec<TakenInput>,
    /// The range deletes, and the live snapshots.
    hiding: Hiding,
    snapshots: Vec<SeqNo>,
    /// Reads values in value files, if the merge needs them.
    values: Option<Arc<ValueFiles>>,
    /// The value of the reference under the cursor, if the merge needs it.
    value: Option<Bytes>,
    /// True if nothing is hidden and no value is read.
    is_plain: bool,
}

/// An input, and the size of its entries that were taken so far.
struct TakenInput {
    level: LevelId,
    size: Size,
    /// The logical bytes of a memtable that is taken whole, as policies see them. They exclude
    /// older versions kept for open snapshots, so that figures do not depend on readers.
    whole_bytes: Option<u64>,
}

impl TakenInput {
    fn new(version: &Version, input: &Input) -> TakenInput {
        let (level, run) = version.tree.run(input.run).expect("check_plan found every input");
        let whole = level == LevelId::Memory && run.lies_within(&input.range);
        TakenInput { level, size: Size::default(), whole_bytes: whole.then(|| run.bytes()) }
    }
}

fn sum(inputs: &[TakenInput]) -> TakenSizes {
    let mut all = TakenSizes::default();
    for TakenInput { level, size, whole_bytes } in inputs {
        all.add(*level, Size { bytes: whole_bytes.unwrap_or(size.bytes), ..*size });
    }
    all
}

/// Returns the sizes that went into a merge of `inputs` in parts, with `taken` of each input.
pub(super) fn taken_of(version: &Version, inputs: &[Input], taken: &[Size]) -> TakenSizes {
    let taken = inputs.iter().zip(taken);
    let taken =
        taken.map(|(input, size)| TakenInput { size: *size, ..TakenInput::new(version, input) });
    sum(&taken.collect::<Vec<_>>())
}

impl InputCursor {
    /// Returns a cursor over the entries of `inputs`, newest first, in `version`, without the
    /// tables in `kept`. Adds reads of files to `tally`.
    pub(super) fn new(
        version: &Version,
        inputs: &[Input],
        kept: &KeptTables,
        tally: &Arc<ReadTally>,
    ) -> InputCursor {
        let cursors = inputs.iter().map(|input| entries(version, input, kept, tally));
        InputCursor {
            inputs: inputs.iter().map(|input| TakenInput::new(version, input)).collect(),
            merging: MergingCursor::new(cursors.collect()),
            hiding: Hiding::default(),
            snapshots: Vec::new(),
            values: None,
            value: None,
            is_plain: true,
        }
    }

    /// Passes over entries of tables that a range delete hides as a whole from all readers. They
    /// are not read, and do not count as taken.
    pub(super) fn leaping(self, hiding: Hiding, snapshots: &[SeqNo]) -> InputCursor {
        let is_plain = self.is_plain && hiding.is_empty();
        InputCursor { hiding, snapshots: snapshots.to_vec(), is_plain, ..self }
    }

    /// Has values in value files read, as if they lay in the tables of `version`, if `reads`.
    pub(super) fn reading_if(self, reads: bool, version: &Version) -> InputCursor {
        let values = version.values.clone().filter(|_| reads);
        let is_plain = self.is_plain && values.is_none();
        InputCursor { values, is_plain, ..self }
    }

    /// Passes over what is hidden, and reads the value there if that is wanted.
    #[cold]
    fn settle(&mut self) -> Result<()> {
        if !self.hiding.is_empty() {
            self.hiding.leap(&mut self.merging, &self.snapshots)?;
        }
        let Some(values) = &self.values else { return Ok(()) };
        let reference = self.merging.entry().filter(|entry| entry.kind.is_reference());
        self.value = reference.map(|entry| values.read_checked(entry.value)).transpose()?;
        Ok(())
    }

    /// Returns the reference under the cursor with the value that was read in its place.
    #[cold]
    #[inline(never)]
    fn read_here(&self) -> Option<EntryRef<'_>> {
        let entry = self.merging.entry()?;
        let value = self.value.as_deref().unwrap_or(entry.value);
        Some(EntryRef { kind: entry.kind.resolved(), value, ..entry })
    }

    /// Returns the sizes that went into the merge, once the cursor is at its end.
    pub(super) fn taken(&self) -> TakenSizes {
        sum(&self.inputs)
    }

    /// Returns the size of the entries taken from each input so far.
    pub(super) fn taken_each(&self) -> Vec<Size> {
        self.inputs.iter().map(|input| input.size).collect()
    }
}

impl Walk for InputCursor {
    fn begin(&mut self) -> Result<()> {
        self.merging.seek_first()?;
        if self.is_plain { Ok(()) } else { self.settle() }
    }

    fn advance(&mut self) -> Result<()> {
        let size = self.merging.entry().map(|entry| entry_size(&entry));
        self.pass(size.unwrap_or_default())
    }

    #[inline(always)]
    fn pass(&mut self, size: Size) -> Result<()> {
        if let Some(source) = self.merging.source() {
            self.inputs[source].size += size;
        }
        self.merging.next()?;
        if self.is_plain { Ok(()) } else { self.settle() }
    }

    #[inline]
    fn here(&self) -> Option<EntryRef<'_>> {
        // Two tails: as one, the entry is copied for all.
        if self.value.is_none() { self.merging.entry() } else { self.read_here() }
    }
}
