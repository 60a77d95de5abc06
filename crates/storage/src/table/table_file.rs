//! The file of a table: reads parts of it, and reports where they are damaged.

use super::open_files::{OpenFiles, TableRead};
use super::writer::OUTSIDE;
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::format::{
    Block, Damage, FEATURE_APPEND, FEATURE_OUTSIDE, FOOTER_BYTES, FORMAT_VERSION, Fences, Filter,
    Footer, FooterFault, SealedPlace, Section, TableFacts, unseal,
};
use bytes::{Bytes, BytesMut};
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes of one read when many blocks in a row are needed.
pub(super) const CHUNK_BYTES: u64 = 256 * 1024;

/// An open table file.
#[derive(Clone, Debug)]
pub(super) struct TableFile {
    file: Arc<TableRead>,
    path: PathBuf,
    /// The id of the table.
    pub(super) table: u64,
    /// The id in the seals of the data blocks: the table's file id, or 0 if it was written
    /// outside of a store.
    pub(super) sealed_as: u64,
    /// Added to the sequence numbers of all entries: 0 except for tables of bulk loads.
    pub(super) seq_base: u64,
}

/// All parts of a table file except its data blocks.
#[derive(Debug)]
pub(super) struct TableParts {
    pub(super) footer: Footer,
    pub(super) fences: Fences,
    pub(super) filter: Option<Filter>,
    pub(super) facts: TableFacts,
}

impl TableFile {
    /// Opens the file of `table` at `path`, without reading it yet. Its descriptor is one of
    /// `files`.
    pub(super) fn open(
        env: &dyn Env,
        path: &Path,
        table: u64,
        files: &Arc<OpenFiles>,
    ) -> Result<TableFile> {
        let file = env.open(path).map_err(|error| Error::io("open", path, error))?;
        let file = TableRead::new(file, files);
        Ok(TableFile { file, path: path.to_path_buf(), table, sealed_as: table, seq_base: 0 })
    }

    /// Returns the error for damage in bytes that start at `offset` of the file.
    #[cold]
    pub(super) fn damaged(&self, damage: Damage, offset: u64) -> Error {
        damage.within(&self.path, offset)
    }

    /// Returns the path.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the error of a call that failed.
    #[cold]
    pub(super) fn failed(&self, call: &'static str, error: io::Error) -> Error {
        Error::io(call, &self.path, error)
    }

    /// Reads the bytes of the file at `place`.
    pub(super) fn read(&self, place: Range<u64>) -> Result<Bytes> {
        // A file can be longer than what a machine of 32 bits can address.
        let too_long = |_| self.failed("read", io::ErrorKind::OutOfMemory.into());
        let bytes = usize::try_from(place.end - place.start).map_err(too_long)?;
        self.fill(BytesMut::zeroed(bytes), place.start)
    }

    /// Fills `buffer` with the bytes of the file from `offset` on.
    pub(super) fn fill(&self, mut buffer: BytesMut, offset: u64) -> Result<Bytes> {
        let filled = self.file.with(|file| file.read_exact_at(&mut buffer, offset));
        self.filled(buffer, offset, filled)
    }

    /// Fills `buffer` with bytes that nobody will read again soon.
    fn fill_once(&self, mut buffer: BytesMut, offset: u64) -> Result<Bytes> {
        let filled = self.file.with(|file| file.read_once_at(&mut buffer, offset));
        self.filled(buffer, offset, filled)
    }

    /// Returns the bytes in `buffer`, if it was filled.
    fn filled(&self, buffer: BytesMut, offset: u64, filled: io::Result<()>) -> Result<Bytes> {
        filled.map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => {
                self.damaged(Damage::whole("the file ends too early"), offset)
            }
            _ => Error::io("read", &self.path, error),
        })?;
        Ok(buffer.freeze())
    }

    /// Maps the file into memory, if its environment has maps. It keeps no descriptor then.
    pub(super) fn map(&self) -> Option<Bytes> {
        // If the process has no room for more maps, the table is read by calls.
        let map = self.file.with(|file| file.map()).ok().flatten();
        if map.is_some() {
            self.file.close();
        }
        map
    }

    /// Announces that the bytes at `place` will be needed soon.
    pub(super) fn announce(&self, place: Range<u64>) {
        self.file.file().announce(place);
    }

    /// Opens the data block whose sealed bytes were read from `offset`.
    pub(super) fn unsealed_block(&self, sealed: Bytes, offset: u64) -> Result<Block> {
        let opened = Block::open(sealed, SealedPlace { table: self.sealed_as, offset });
        let block = opened.map_err(|damage| self.damaged(damage, offset))?;
        Ok(block.with_seq_base(self.seq_base))
    }

    /// Reads and checks everything but the data blocks.
    pub(super) fn parts(&self) -> Result<TableParts> {
        let footer = self.footer()?;
        let tail_bytes = footer.properties.end - footer.filter.start;
        // A valid checksum does not limit this length, so a lack of memory must be an error.
        let room = usize::try_from(tail_bytes).unwrap_or(usize::MAX);
        let enough = Vec::<u8>::new().try_reserve_exact(room);
        enough.map_err(|error| Error::io("read", &self.path, error.into()))?;
        let tail = self.read(footer.filter.start..footer.properties.end)?;
        let filter = if footer.filter.is_empty() {
            None
        } else {
            Some(self.part(&tail, &footer, &footer.filter, Filter::parse)?)
        };
        let data_bytes = footer.filter.start;
        let plain_bytes = footer.plain_bytes_max();
        let parse_index = |payload: &[u8]| Fences::parse(payload, data_bytes, plain_bytes);
        let fences = self.part(&tail, &footer, &footer.index, parse_index)?;
        let parse_facts = |payload: &[u8]| TableFacts::parse(payload, &footer);
        let mut facts = self.part(&tail, &footer, &footer.properties, parse_facts)?;
        facts.table = self.table;
        facts.seq_min.0 = facts.seq_min.0.wrapping_add(self.seq_base);
        facts.seq_max.0 = facts.seq_max.0.wrapping_add(self.seq_base);
        if facts.data_blocks != fences.count() as u64 {
            let damage =
                Damage::whole("the properties and the index have different numbers of blocks");
            return Err(self.damaged(damage, footer.properties.start));
        }
        Ok(TableParts { footer, fences, filter, facts })
    }

    /// Parses `section`, which is a part of `tail`: the bytes from the filter to the properties.
    pub(super) fn part<T>(
        &self,
        tail: &Bytes,
        footer: &Footer,
        section: &Section,
        parse: impl FnOnce(&[u8]) -> std::result::Result<T, Damage>,
    ) -> Result<T> {
        let start = footer.filter.start;
        let sealed = &tail[(section.start - start) as usize..(section.end - start) as usize];
        let place = SealedPlace { table: footer.table, offset: section.start };
        let payload = unseal(sealed, place);
        payload.and_then(parse).map_err(|damage| self.damaged(damage, section.start))
    }

    /// Returns the length of the file in bytes.
    pub(super) fn bytes(&self) -> Result<u64> {
        self.file.with(|file| file.bytes()).map_err(|error| Error::io("measure", &self.path, error))
    }

    /// Reads the footer of a sorted table, which must be this one.
    pub(super) fn footer(&self) -> Result<Footer> {
        let footer = self.footer_ending(self.bytes()?)?;
        if footer.features & FEATURE_APPEND != 0 {
            let what = "the file is an append table, which is read from a named root";
            return Err(Error::new(ErrorKind::Unsupported, what).at(&self.path));
        }
        Ok(footer)
    }

    /// Reads the footer of the root that ends at byte `end` of an append table, which must be this
    /// one.
    pub(super) fn append_footer(&self, end: u64) -> Result<Footer> {
        let bytes = self.bytes()?;
        if end > bytes {
            let damage = Damage::whole("the file ends before the named root does");
            return Err(self.damaged(damage, bytes));
        }
        let footer = self.footer_ending(end)?;
        if footer.features & FEATURE_APPEND == 0 {
            let damage = Damage::whole("expected a root of an append table");
            return Err(self.damaged(damage, end - FOOTER_BYTES as u64));
        }
        Ok(footer)
    }

    /// Reads the footer that ends at byte `end`.
    fn footer_ending(&self, end: u64) -> Result<Footer> {
        let Some(start) = end.checked_sub(FOOTER_BYTES as u64) else {
            return Err(self.damaged(Damage::whole("the file is too short for a table"), end));
        };
        let read = self.read(start..end)?;
        let footer = read.first_chunk().expect("as many bytes were read");
        match Footer::decode(footer, start) {
            Ok(footer) if footer.is_of(self.table) => Ok(footer),
            Ok(footer) => {
                let what =
                    format!("the file holds table {}, not table {}", footer.table, self.table);
                Err(Error::corruption(&self.path, start, what))
            }
            Err(FooterFault::Damage(damage)) => Err(self.damaged(damage, start)),
            Err(FooterFault::Other(version)) => {
                let what = format!(
                    "the table has format version {version}, \
                     this program reads version {FORMAT_VERSION}"
                );
                Err(Error::new(ErrorKind::Unsupported, what).at(&self.path))
            }
            Err(FooterFault::Features(bits)) => {
                let what = format!("the table has features {bits:#x}, unknown to this program");
                Err(Error::new(ErrorKind::Unsupported, what).at(&self.path))
            }
        }
    }
}

/// The table of a store that a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreTable {
    /// The id of the table in its store.
    pub table_id: u64,
    /// True if it is an append table, which is read from a root that its store knows.
    pub is_append: bool,
}

impl StoreTable {
    /// Returns what the last footer of the file at `path` says. `None` if the table was written
    /// outside of a store, or if the file does not end with a sound footer.
    ///
    /// # Errors
    ///
    /// Fails with `Io` if the file cannot be read.
    pub fn of(env: &dyn Env, path: &Path) -> Result<Option<StoreTable>> {
        let file = TableFile::open(env, path, OUTSIDE, &OpenFiles::few())?;
        let end = file.bytes()?;
        let Some(start) = end.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
        let read = file.read(start..end)?;
        let footer = read.first_chunk().and_then(|footer| Footer::decode(footer, start).ok());
        let own = footer.filter(|footer| footer.features & FEATURE_OUTSIDE == 0);
        Ok(own.map(|footer| StoreTable {
            table_id: footer.table,
            is_append: footer.features & FEATURE_APPEND != 0,
        }))
    }
}

/// Reads blocks of a table in order, many with one read, without the cache.
#[derive(Debug, Default)]
pub(super) struct ReadAhead {
    chunk: Bytes,
    chunk_start: u64,
}

/// A request to a [`ReadAhead`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted<'a> {
    /// The index of the block.
    pub(super) index: usize,
    /// Following blocks are needed if they can have keys below this one; `None` for all of them.
    pub(super) end: Option<&'a [u8]>,
    /// The most bytes of one read, unless the block is longer.
    pub(super) chunk_bytes: u64,
    /// True if nobody will read the blocks again soon.
    pub(super) once: bool,
}

/// A block, and the number of bytes that were read from the file for it.
pub(super) struct Loaded {
    pub(super) block: Block,
    pub(super) bytes_read: u64,
}

impl ReadAhead {
    /// Returns the wanted block of `file`, which has these `fences`.
    pub(super) fn block(
        &mut self,
        file: &TableFile,
        fences: &Fences,
        wanted: Wanted<'_>,
    ) -> Result<Loaded> {
        let Wanted { index, end, chunk_bytes, once } = wanted;
        let place = fences.place(index);
        let mut bytes_read = 0;
        if !self.contains(&place) {
            let wanted = end.map_or(fences.count(), |end| fences.blocks_below(end));
            let within = fences.blocks_within(place.start + chunk_bytes);
            let last = wanted.min(within).max(index + 1) - 1;
            let chunk = place.start..fences.place(last).end;
            bytes_read = chunk.end - chunk.start;
            self.read(file, chunk, once)?;
        }
        let within = (place.start - self.chunk_start) as usize;
        let sealed = self.chunk.slice(within..within + (place.end - place.start) as usize);
        Ok(Loaded { block: file.unsealed_block(sealed, place.start)?, bytes_read })
    }

    /// Returns true if the bytes at `place` are already in the chunk.
    pub(super) fn contains(&self, place: &Range<u64>) -> bool {
        let chunk_end = self.chunk_start + self.chunk.len() as u64;
        place.start >= self.chunk_start && place.end <= chunk_end
    }

    /// Reads `chunk`, into the memory of the previous chunk if nobody else uses that.
    fn read(&mut self, file: &TableFile, chunk: Range<u64>, once: bool) -> Result<()> {
        let mut buffer = std::mem::take(&mut self.chunk).try_into_mut().unwrap_or_default();
        let bytes = (chunk.end - chunk.start) as usize;
        if buffer.capacity() < bytes {
            buffer = BytesMut::zeroed(bytes);
        } else {
            buffer.resize(bytes, 0);
        }
        self.chunk = match once {
            true => file.fill_once(buffer, chunk.start)?,
            false => file.fill(buffer, chunk.start)?,
        };
        self.chunk_start = chunk.start;
        Ok(())
    }
}
