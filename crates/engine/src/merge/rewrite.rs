//! Rewrites the remaining slices of a table, so that its file can be removed.

use super::output::Output;
use super::{Merged, Merger, ReservedPlan, entry_size};
use crate::version::Version;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::error::Result;
use lsmith_storage::table::{CacheFill, ReadTally};
use lsmith_tree::{Input, Key, KeyRange, Outcome, Slice, TableId, key_after};
use std::sync::Arc;

/// A slice of the output.
enum Piece {
    /// An old slice, unchanged.
    Kept(Slice),
    /// The first and the last key of a slice of the new table.
    New(Key, Key),
}

impl Merger {
    /// Copies the slices of `table` in the only input of the plan to a new table. All other slices
    /// stay. Returns what came out.
    pub(super) fn rewrite(
        &self,
        reserved: &ReservedPlan,
        table: TableId,
        version: &Version,
        output: &mut Output<'_>,
    ) -> Result<Merged> {
        let Input { run, range } = &reserved.plan.inputs[0];
        let open = version.disk_run(*run).expect("check_plan found every input");
        let tally = Arc::new(ReadTally::default());
        let mut outcome = Outcome::default();
        let mut pieces = Vec::new();
        for slice in open.run().clip(range) {
            if slice.table().id != table {
                outcome.reused += slice.size();
                outcome.blocks.reused += slice.cell_count();
                pieces.push(Piece::Kept(slice));
                continue;
            }
            let mut cursor = open.source(slice.range(), CacheFill::No, Some(&tally));
            cursor.seek_first()?;
            let mut first = None;
            let mut last = Vec::new();
            while let Some(entry) = cursor.entry() {
                outcome.written += entry_size(&entry);
                output.add(entry)?;
                self.check_open(&reserved.keyspace, outcome.written.entries)?;
                first.get_or_insert_with(|| Key::copy_from_slice(entry.key));
                last.clear();
                last.extend_from_slice(entry.key);
                cursor.next()?;
            }
            pieces.extend(first.map(|first| Piece::New(first, Key::from(last))));
        }
        output.finish_table()?;
        output.open_tables()?;
        outcome.read = outcome.written + outcome.reused;
        outcome.blocks.read = tally.blocks();
        outcome.blocks.written = output.facts.iter().map(|facts| facts.data_blocks).sum();
        let slice = |piece| match piece {
            Piece::Kept(slice) => slice,
            Piece::New(first, last) => {
                let range = KeyRange { start: first, end: Some(key_after(&last)) };
                output.handles[0].whole().clip(&range).expect("its entries are in the table")
            }
        };
        outcome.slices = pieces.into_iter().map(slice).collect();
        Ok(Merged { outcome, bytes_read: tally.bytes(), is_filtered: false })
    }
}
