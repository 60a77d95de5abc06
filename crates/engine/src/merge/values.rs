//! Where a merge puts the values that it writes: into tables, or into value files beside them.

use crate::context::Context;
use bytes::Bytes;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::error::{ErrorKind, Result};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::reference::{EncodedReference, Packing, ValueReference};
use lsmith_storage::table::{Codec, ValueWriter};
use lsmith_tree::EntryKind;
use std::path::PathBuf;

/// No value is this long, so all values stay in tables.
pub(super) const NEVER: usize = usize::MAX;

/// Which values go into value files, and how.
#[derive(Clone, Copy)]
pub(super) struct Separation {
    /// Values of this length and longer.
    pub(super) from_bytes: usize,
    /// The codec that compresses them.
    pub(super) codec: Codec,
}

/// Puts values that are long enough into value files, one for each table.
///
/// A reference of an input is copied, and its value not read. Except that the value is written anew
/// if its file is being cleaned, or if the output has no value files: then it goes where its length
/// says. What is compressed with the same codec is then copied as it is.
pub(super) struct ValueSink<'a> {
    context: &'a Context,
    separation: Separation,
    writer: Option<ValueWriter>,
    /// The ids of all files created.
    created: Vec<u64>,
    /// Bytes in finished files.
    finished_bytes: u64,
    /// The reference, or the value, of the entry that was placed last.
    reference: EncodedReference,
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
    pub(super) fn new(context: &'a Context) -> ValueSink<'a> {
        ValueSink {
            context,
            separation: Separation { from_bytes: NEVER, codec: Codec::None },
            writer: None,
            created: Vec::new(),
            finished_bytes: 0,
            reference: EncodedReference::default(),
            moved: Bytes::new(),
        }
    }

    /// Puts values into value files as `separation` says.
    pub(super) fn separate(&mut self, separation: Separation) {
        self.separation = separation;
    }

    /// Returns true if the table gets `entry` as it is.
    #[inline]
    pub(super) fn stays(&self, entry: &EntryRef<'_>) -> bool {
        !entry.kind.is_reference() && entry.value.len() < self.separation.from_bytes
    }

    /// Returns `entry` as its table gets it, and the bytes of a value that was moved for it.
    #[inline(never)]
    pub(super) fn place<'e>(&'e mut self, entry: EntryRef<'e>) -> Result<(EntryRef<'e>, u64)> {
        if entry.kind.is_reference() {
            return self.place_reference(entry);
        }
        let Some(kind) = self.kind_apart(&entry, entry.value.len()) else { return Ok((entry, 0)) };
        self.reference = self.writer()?.add(entry.value)?.encode();
        Ok((EntryRef { kind, value: &self.reference, ..entry }, 0))
    }

    /// The same for an entry with a reference.
    fn place_reference<'e>(&'e mut self, entry: EntryRef<'e>) -> Result<(EntryRef<'e>, u64)> {
        let (file, reference) = self.context.values.file_of(entry.value)?;
        if self.separation.from_bytes != NEVER && !file.is_cleaned() {
            return Ok((entry, 0));
        }
        let value_bytes = reference.value_bytes as usize;
        let apart = self.kind_apart(&entry, value_bytes);
        let stays_packed = apart.is_some() && self.stays_packed(&reference);
        let read = if stays_packed { file.read_stored(&reference) } else { file.read(&reference) };
        match read {
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
        let moved_bytes = value_bytes as u64;
        let Some(kind) = apart else {
            let placed = EntryRef { kind: entry.kind.resolved(), value: &self.moved, ..entry };
            return Ok((placed, moved_bytes));
        };
        let moved = std::mem::take(&mut self.moved);
        let writer = self.writer()?;
        let moved = match stays_packed {
            true => writer.copy(&moved, &reference)?,
            false => writer.add(&moved)?,
        };
        self.reference = moved.encode();
        Ok((EntryRef { kind, value: &self.reference, ..entry }, moved_bytes))
    }

    /// Returns the kind that `entry` has if its value, of `value_bytes` bytes, lies in a value
    /// file. Returns `None` if the value goes into the table.
    fn kind_apart(&self, entry: &EntryRef<'_>, value_bytes: usize) -> Option<EntryKind> {
        let kind = entry.kind.resolved().referring();
        kind.filter(|_| value_bytes >= self.separation.from_bytes)
    }

    /// Returns true if the value of `reference` is compressed with the codec of the output already.
    fn stays_packed(&self, reference: &ValueReference) -> bool {
        let packing = reference.stored.packing;
        packing != Packing::Plain && packing == self.separation.codec.packing()
    }

    /// Returns the file under construction, which is created if there is none.
    fn writer(&mut self) -> Result<&mut ValueWriter> {
        if self.writer.is_none() {
            let env = &self.context.options.env;
            let codec = self.separation.codec;
            let (file_id, writer) =
                self.context.make_numbered(FileKind::Values, |path, file_id| {
                    ValueWriter::create(env, path, file_id, codec)
                })?;
            self.created.push(file_id);
            self.writer = Some(writer);
        }
        Ok(self.writer.as_mut().expect("a file was just created"))
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
