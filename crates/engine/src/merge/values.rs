//! Where a merge puts the values that it writes: into tables, or into value files beside them.

use crate::context::Context;
use bytes::Bytes;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::error::{ErrorKind, Result};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::reference::REFERENCE_BYTES;
use lsmith_storage::table::ValueWriter;
use std::path::PathBuf;

/// No value is this long, so all values stay in tables.
pub(super) const NEVER: usize = usize::MAX;

/// Puts values that are long enough into value files, one for each table.
///
/// A reference of an input is copied, and its value not read. Except that the value is written anew
/// if its file is being cleaned, or if the output has no value files: then it goes where its length
/// says.
pub(super) struct ValueSink<'a> {
    context: &'a Context,
    /// Values of this length and longer go into value files.
    from_bytes: usize,
    writer: Option<ValueWriter>,
    /// The ids of all files created.
    created: Vec<u64>,
    /// Bytes in finished files.
    finished_bytes: u64,
    /// The reference, or the value, of the entry that was placed last.
    reference: [u8; REFERENCE_BYTES],
    moved: Bytes,
}

/// The value files of an output that is gone.
#[derive(Default)]
pub(super) struct WrittenValues {
    created: Vec<u64>,
    pub(super) file_bytes: u64,
}

impl<'a> ValueSink<'a> {
    /// Returns a sink without files.
    pub(super) fn new(context: &'a Context, from_bytes: usize) -> ValueSink<'a> {
        ValueSink {
            context,
            from_bytes,
            writer: None,
            created: Vec::new(),
            finished_bytes: 0,
            reference: [0; REFERENCE_BYTES],
            moved: Bytes::new(),
        }
    }

    /// Sets the length from which on values go into value files.
    pub(super) fn set_from_bytes(&mut self, from_bytes: usize) {
        self.from_bytes = from_bytes;
    }

    /// Returns true if the table gets `entry` as it is.
    #[inline]
    pub(super) fn stays(&self, entry: &EntryRef<'_>) -> bool {
        !entry.kind.is_reference() && entry.value.len() < self.from_bytes
    }

    /// Returns `entry` as its table gets it, and the bytes of a value that was moved for it.
    #[inline(never)]
    pub(super) fn place<'e>(&'e mut self, entry: EntryRef<'e>) -> Result<(EntryRef<'e>, u64)> {
        let mut placed = entry;
        if entry.kind.is_reference() {
            let (file, reference) = self.context.values.file_of(entry.value)?;
            if self.from_bytes != NEVER && !file.is_cleaned() {
                return Ok((entry, 0));
            }
            match file.read(&reference) {
                Ok(value) => self.moved = value,
                Err(error) if error.kind() == ErrorKind::Corruption => {
                    if file.give_up() {
                        let file_id = file.file_id();
                        tracing::warn!(%error, file_id, "a damaged value stays in its file");
                    }
                    return Ok((entry, 0));
                }
                Err(error) => return Err(error),
            }
            placed.kind = entry.kind.resolved();
            placed.value = &[];
        }
        let is_moved = entry.kind.is_reference();
        let value = if is_moved { &self.moved } else { entry.value };
        let moved_bytes = if is_moved { value.len() as u64 } else { 0 };
        let Some(kind) = placed.kind.referring().filter(|_| value.len() >= self.from_bytes) else {
            placed.value = if is_moved { &self.moved } else { entry.value };
            return Ok((placed, moved_bytes));
        };
        let writer = match &mut self.writer {
            Some(writer) => writer,
            None => {
                let env = &self.context.options.env;
                let (file_id, writer) =
                    self.context.make_numbered(FileKind::Values, |path, file_id| {
                        ValueWriter::create(env, path, file_id)
                    })?;
                self.created.push(file_id);
                self.writer.insert(writer)
            }
        };
        self.reference = writer.add(value)?.encode();
        Ok((EntryRef { kind, value: &self.reference, ..placed }, moved_bytes))
    }

    /// Finishes the file under construction, if there is one.
    pub(super) fn finish_file(&mut self) -> Result<()> {
        self.moved = Bytes::new();
        if let Some(writer) = self.writer.take() {
            self.finished_bytes += writer.finish()?;
        }
        Ok(())
    }

    /// Returns true if files were created.
    pub(super) fn has_files(&self) -> bool {
        !self.created.is_empty()
    }

    /// Returns the bytes in finished files.
    pub(super) fn file_bytes(&self) -> u64 {
        self.finished_bytes
    }

    /// Returns the finished files.
    pub(super) fn into_written(self) -> WrittenValues {
        WrittenValues { created: self.created, file_bytes: self.finished_bytes }
    }

    /// Adds the files of `written`.
    pub(super) fn append(&mut self, written: WrittenValues) {
        self.created.extend(written.created);
        self.finished_bytes += written.file_bytes;
    }

    /// Returns the paths of all files.
    pub(super) fn paths(&mut self) -> Vec<PathBuf> {
        drop(self.writer.take());
        let dir = &self.context.options.dir;
        self.created.iter().map(|id| numbered(dir, FileKind::Values, *id)).collect()
    }
}
