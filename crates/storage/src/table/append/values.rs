//! The file of a batch, and the data blocks with its values.

use crate::cursor::EntryRef;
use crate::env::WriteFile;
use crate::error::{Error, Result};
use crate::format::{
    BlockBuilder, Compressor, SealedPlace, Span, ValueRef, common_prefix_bytes, seal,
};
use crate::table::writer::TableOptions;
use lsmith_tree::blocks::fits;
use lsmith_tree::logical_bytes;
use std::path::{Path, PathBuf};

/// The number of bytes that are collected for one write to the file.
const WRITE_BYTES: usize = 256 * 1024;

/// A file that a batch is appended to.
#[derive(Debug)]
pub(super) struct BatchFile {
    file: Box<dyn WriteFile>,
    path: PathBuf,
    table: u64,
    out: Vec<u8>,
    /// The offset in the file at which `out` starts.
    written: u64,
}

impl BatchFile {
    /// Continues `file` at `path`, which has `bytes` bytes and holds `table`.
    pub(super) fn new(file: Box<dyn WriteFile>, path: &Path, table: u64, bytes: u64) -> BatchFile {
        BatchFile { file, path: path.to_path_buf(), table, out: Vec::new(), written: bytes }
    }

    /// Returns the offset at which the next block starts.
    pub(super) fn end(&self) -> u64 {
        self.written + self.out.len() as u64
    }

    fn place(&self) -> SealedPlace {
        SealedPlace { table: self.table, offset: self.end() }
    }

    /// Returns the id of the table.
    pub(super) fn table(&self) -> u64 {
        self.table
    }

    /// Returns the error for entries that cannot be appended.
    #[cold]
    pub(super) fn refused(&self, what: &str) -> Error {
        Error::corruption(&self.path, self.written, what)
    }

    /// Appends a block with `payload`.
    pub(super) fn part(&mut self, payload: Vec<u8>) -> Result<Span> {
        let place = self.place();
        let start = self.out.len();
        self.out.extend_from_slice(&payload);
        seal(&mut self.out, start, place);
        let span = Span { offset: place.offset, bytes: (self.out.len() - start) as u64 };
        self.write_out_if_long()?;
        Ok(span)
    }

    /// Appends `bytes` as they are, and makes the whole file survive power loss.
    pub(super) fn finish(mut self, bytes: &[u8]) -> Result<u64> {
        self.out.extend_from_slice(bytes);
        self.write_out()?;
        self.file.sync().map_err(|error| Error::io("sync", &self.path, error))?;
        Ok(self.written)
    }

    fn write_out_if_long(&mut self) -> Result<()> {
        if self.out.len() >= WRITE_BYTES { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<()> {
        let written = self.file.write_all(&self.out);
        written.map_err(|error| Error::io("write", &self.path, error))?;
        self.written += self.out.len() as u64;
        self.out.clear();
        // A huge value must not occupy memory until the batch is finished.
        self.out.shrink_to(2 * WRITE_BYTES);
        Ok(())
    }
}

/// Writes the data blocks of a batch.
#[derive(Debug)]
pub(super) struct ValueWriter {
    pub(super) file: BatchFile,
    block: BlockBuilder,
    compressor: Compressor,
    block_bytes: u64,
    /// Logical bytes of the open block.
    open_bytes: u64,
    last_key: Vec<u8>,
}

impl ValueWriter {
    pub(super) fn new(file: BatchFile, options: &TableOptions) -> ValueWriter {
        ValueWriter {
            file,
            block: BlockBuilder::default(),
            compressor: Compressor::new(options.codec),
            block_bytes: options.block_bytes as u64,
            open_bytes: 0,
            last_key: Vec::new(),
        }
    }

    /// Returns true if any block was compressed.
    pub(super) fn has_compressed(&self) -> bool {
        self.compressor.used()
    }

    /// Returns true if an entry of `bytes` logical bytes joins the open block.
    pub(super) fn has_room_for(&self, bytes: u64) -> bool {
        fits(self.block_bytes, self.open_bytes, bytes)
    }

    /// Adds an entry with a value, for which the open block [must have
    /// room](ValueWriter::has_room_for). The bytes of its block are not known yet, and 0.
    pub(super) fn add(&mut self, entry: &EntryRef<'_>) -> ValueRef {
        let start = self.block.bytes(&self.file.out);
        let offset = self.file.end() - start as u64;
        let shared = common_prefix_bytes(&self.last_key, entry.key);
        self.block.add(&mut self.file.out, shared, entry);
        self.open_bytes += logical_bytes(entry.key.len(), entry.value.len());
        self.last_key.clear();
        self.last_key.extend_from_slice(entry.key);
        let block = Span { offset, bytes: 0 };
        ValueRef { block, start: start as u64, value_bytes: entry.value.len() as u64 }
    }

    /// Ends the open block. Returns its place, or `None` if there is none.
    pub(super) fn cut(&mut self) -> Result<Option<Span>> {
        if self.block.is_empty() {
            return Ok(None);
        }
        let start = self.block.bytes(&self.file.out) as u64;
        let place = SealedPlace { table: self.file.table, offset: self.file.end() - start };
        let bytes = self.block.finish_with(&mut self.file.out, place, &mut self.compressor);
        self.open_bytes = 0;
        self.file.write_out_if_long()?;
        Ok(Some(Span { offset: place.offset, bytes: bytes as u64 }))
    }
}
