//! The inputs of a plan as cursors that count what they pass.

use crate::version::{Source, Version};
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::error::Result;
use lsmith_storage::fold::Walk;
use lsmith_storage::read::{ConcatCursor, MergingCursor};
use lsmith_storage::table::{CacheFill, ReadTally};
use lsmith_tree::{Input, LevelId, Size, logical_bytes};
use std::sync::Arc;

/// A cursor over what `input` takes of `version`; what it reads of files is added to `tally`.
fn entries(version: &Version, input: &Input, tally: &Arc<ReadTally>) -> Source {
    if let Some(memory) = version.memory_run(input.run) {
        return Source::Memory(memory.cursor(&input.range));
    }
    let run = version.disk_run(input.run).expect("check_plan found every input");
    let parts = run.parts(&input.range, CacheFill::No).tallied(tally);
    Source::Run(ConcatCursor::new(parts))
}

/// What the entry under `walk` takes.
pub(super) fn entry_size(entry: &EntryRef<'_>) -> Size {
    Size {
        bytes: logical_bytes(entry.key.len(), entry.value.len()),
        entries: 1,
        tombstones: u64::from(entry.kind.is_tombstone()),
    }
}

/// What went into a merge, by where it came from.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passed {
    pub(super) memory: Size,
    pub(super) storage: Size,
}

impl Passed {
    pub(super) fn add(&mut self, level: LevelId, size: Size) {
        match level {
            LevelId::Memory => self.memory += size,
            LevelId::Disk(_) => self.storage += size,
        }
    }
}

/// Many inputs as one, in the store's order.
pub(super) struct InputCursor {
    merging: MergingCursor<Source>,
    takings: Vec<Taking>,
}

/// An input, and what was passed of it so far.
struct Taking {
    level: LevelId,
    passed: Size,
    /// The logical bytes of a memtable that is taken whole, as policies see them: how many versions
    /// it holds besides depends on who reads, and no figure may.
    whole_bytes: Option<u64>,
}

impl Taking {
    fn new(version: &Version, input: &Input) -> Taking {
        let (level, run) = version.tree.run(input.run).expect("check_plan found every input");
        let whole = level == LevelId::Memory && run.lies_within(&input.range);
        Taking { level, passed: Size::default(), whole_bytes: whole.then(|| run.bytes()) }
    }
}

fn sum(takings: &[Taking]) -> Passed {
    let mut all = Passed::default();
    for Taking { level, passed, whole_bytes } in takings {
        all.add(*level, Size { bytes: whole_bytes.unwrap_or(passed.bytes), ..*passed });
    }
    all
}

/// What went into a merge of `inputs`, of each of which `passed` was passed, in parts.
pub(super) fn passed_of(version: &Version, inputs: &[Input], passed: &[Size]) -> Passed {
    let takings = inputs.iter().zip(passed);
    let takings =
        takings.map(|(input, passed)| Taking { passed: *passed, ..Taking::new(version, input) });
    sum(&takings.collect::<Vec<_>>())
}

impl InputCursor {
    /// All that `inputs`, newest first, take of `version`.
    pub(super) fn new(version: &Version, inputs: &[Input], tally: &Arc<ReadTally>) -> InputCursor {
        let cursors = inputs.iter().map(|input| entries(version, input, tally));
        InputCursor {
            takings: inputs.iter().map(|input| Taking::new(version, input)).collect(),
            merging: MergingCursor::new(cursors.collect()),
        }
    }

    /// What went into the merge, once all has been passed.
    pub(super) fn passed(&self) -> Passed {
        sum(&self.takings)
    }

    /// What was passed of each input so far.
    pub(super) fn passed_each(&self) -> Vec<Size> {
        self.takings.iter().map(|taking| taking.passed).collect()
    }
}

impl Walk for InputCursor {
    fn begin(&mut self) -> Result<()> {
        self.merging.seek_first()
    }

    #[inline]
    fn advance(&mut self) -> Result<()> {
        if let (Some(source), Some(entry)) = (self.merging.source(), self.merging.entry()) {
            self.takings[source].passed += entry_size(&entry);
        }
        self.merging.next()
    }

    #[inline]
    fn here(&self) -> Option<EntryRef<'_>> {
        self.merging.entry()
    }
}
