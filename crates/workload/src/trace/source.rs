//! From a file to operations and keys, whatever its format.

use std::io::{self, BufRead};

use super::format::{BinaryFormat, Format, TextFormat};
use super::input::{Entries, Lines, start_of};
use super::layout::Layout;
use super::oracle;
use super::reader::{Operations, Reader};
use super::recording::{Recorded, RecordingReader};
use super::rocksdb::{self, Choice, Head, Version};
use super::tectonic;
use crate::WorkloadError;
use crate::inputs::{failed, whole};

/// A file on its way to operations.
pub(super) struct Source<'a> {
    file: &'a str,
    reader: Reader,
    choice: Choice,
    /// The keyspace of a recording that is played, escaped.
    keyspace: Option<&'a str>,
    recorded: Option<Recorded>,
    is_of_rocksdb: bool,
}

/// What was found in a file.
pub(super) struct Found {
    pub(super) read: Operations,
    /// The first damaged line or entry, if the limit reaches it.
    pub(super) damage: Option<WorkloadError>,
    /// What a recording says beside its operations.
    pub(super) recorded: Option<Recorded>,
    /// True if the trace has column families and seeks.
    pub(super) is_of_rocksdb: bool,
}

impl<'a> Source<'a> {
    /// Returns a source of at most `limit` operations.
    pub(super) fn new(
        file: &'a str,
        limit: Option<u64>,
        choice: Choice,
        keyspace: Option<&'a str>,
        wants_lives: bool,
    ) -> Self {
        let reader = Reader::new(limit, wants_lives);
        Self { file, reader, choice, keyspace, recorded: None, is_of_rocksdb: false }
    }

    /// Reads all of `input`, or as much as the limit needs. `seed` is for formats that draw. Fails
    /// if it is no trace.
    pub(super) fn read(
        mut self,
        format: Option<Format>,
        input: Box<dyn BufRead + '_>,
        seed: u64,
    ) -> Result<Found, WorkloadError> {
        let (start, input) = start_of(input).map_err(self.unread())?;
        let found = || match BinaryFormat::of(self.file, &start) {
            Some(binary) => Some(Format::Binary(binary)),
            None => tectonic::starts(&start).then_some(Format::Tectonic),
        };
        let damage = match format.or_else(found) {
            None => self.lines(None, input),
            Some(Format::Text(text)) => self.lines(Some(text), input),
            Some(Format::Binary(BinaryFormat::OracleGeneral)) => self.requests(input),
            Some(Format::Binary(BinaryFormat::RocksDb)) => self.queries(input),
            Some(Format::Tectonic) => self.spec(input, seed),
        }?;
        let others = &self.choice.others;
        if self.reader.is_empty() && damage.is_none() && !others.is_empty() {
            let families: Vec<String> = others.iter().map(u32::to_string).collect();
            let message = format!(
                "no operation on column family {}; the trace has {}: say `family=`",
                self.choice.family,
                families.join(", ")
            );
            return Err(failed(self.file, message));
        }
        let Self { recorded, is_of_rocksdb, .. } = self;
        Ok(Found { read: self.reader.finish(), damage, recorded, is_of_rocksdb })
    }

    fn unread(&self) -> impl Fn(io::Error) -> WorkloadError + use<'a> {
        let file = self.file;
        move |error| failed(file, error.to_string())
    }

    fn line_error(&self, line: u64, message: String) -> WorkloadError {
        WorkloadError::Line { file: self.file.to_owned(), line, message }
    }

    fn entry_error(&self, offset: u64, message: String) -> WorkloadError {
        WorkloadError::Entry { file: self.file.to_owned(), offset, message }
    }

    /// Reads lines. Returns the first damaged one.
    fn lines(
        &mut self,
        format: Option<TextFormat>,
        input: Box<dyn BufRead + '_>,
    ) -> Result<Option<WorkloadError>, WorkloadError> {
        let unread = self.unread();
        let mut lines = Lines::new(input);
        let first = lines.next().map_err(&unread)?;
        let is_empty = first.is_none();
        let first = first.unwrap_or(Ok(b"")).unwrap_or(b"\0");
        let layout = Layout::of(first, format).map_err(|message| self.line_error(1, message))?;
        self.is_of_rocksdb = layout == Layout::RocksDb;
        if layout == Layout::Recording {
            let first = String::from_utf8_lossy(first).into_owned();
            return self.recording(&first, lines);
        }
        if !layout.has_header()
            && !is_empty
            && let Err(message) = self.line(&layout, first)
        {
            return Ok(Some(self.line_error(1, message)));
        }
        while !self.reader.is_full() {
            let Some(line) = lines.next().map_err(&unread)? else {
                if layout == Layout::Ycsb && self.reader.is_empty() {
                    let message = "no operation of YCSB: its binding `basic` prints them, with \
                                   basicdb.verbose=true";
                    return Err(failed(self.file, message.to_owned()));
                }
                break;
            };
            let read = line.and_then(|line| self.line(&layout, line));
            if let Err(message) = read {
                return Ok(Some(self.line_error(lines.count, message)));
            }
        }
        Ok(None)
    }

    /// Reads the rest of a recording whose first line is `first`. Returns the first damaged line.
    /// Lines without a check behind them are left out: the process of the store has died then.
    fn recording(
        &mut self,
        first: &str,
        mut lines: Lines<'_>,
    ) -> Result<Option<WorkloadError>, WorkloadError> {
        let unread = self.unread();
        let mut recording = RecordingReader::new(self.keyspace);
        recording.begin(first).map_err(|message| self.line_error(1, message))?;
        let mut damage = None;
        while let Some(line) = lines.next().map_err(&unread)? {
            let text = line.map(|line| String::from_utf8_lossy(line).into_owned());
            if !lines.has_end {
                break;
            }
            let count = lines.count;
            let read = text
                .map_err(|message| (count, message))
                .and_then(|text| recording.take(count, &text, &mut self.reader));
            if let Err((line, message)) = read {
                damage = Some(self.line_error(line, message));
                break;
            }
        }
        let recorded = recording.finish().map_err(|message| failed(self.file, message))?;
        self.recorded = Some(recorded);
        Ok(damage)
    }

    fn line(&mut self, layout: &Layout, line: &[u8]) -> Result<(), String> {
        let line = std::str::from_utf8(line).map_err(|_| "not valid UTF-8".to_owned())?;
        match layout.line(line, &mut self.choice)? {
            Some(record) => self.reader.take(record),
            None => Ok(()),
        }
    }

    /// Draws what a spec of Tectonic says.
    fn spec(
        &mut self,
        input: Box<dyn BufRead + '_>,
        seed: u64,
    ) -> Result<Option<WorkloadError>, WorkloadError> {
        let text = String::from_utf8(whole(self.file, input)?);
        let text = text.map_err(|_| failed(self.file, "not valid UTF-8".to_owned()))?;
        let drawn = tectonic::generate(&text, seed, &mut self.reader);
        drawn.map(|()| None).map_err(|(line, message)| match line {
            Some(line) => self.line_error(line, message),
            None => failed(self.file, message),
        })
    }

    /// Reads requests of libCacheSim. Returns the first damaged one.
    fn requests(
        &mut self,
        input: Box<dyn BufRead + '_>,
    ) -> Result<Option<WorkloadError>, WorkloadError> {
        let unread = self.unread();
        let mut entries = Entries::new(input);
        let mut entry = Vec::new();
        while !self.reader.is_full() {
            let offset = entries.offset;
            entries.next(oracle::ENTRY_BYTES, &mut entry).map_err(&unread)?;
            if entry.is_empty() {
                break;
            }
            let read = oracle::request(&entry).and_then(|record| self.reader.take(record));
            if let Err(message) = read {
                return Ok(Some(self.entry_error(offset, message)));
            }
        }
        Ok(None)
    }

    /// Reads queries of RocksDB. Returns the first damaged entry.
    fn queries(
        &mut self,
        input: Box<dyn BufRead + '_>,
    ) -> Result<Option<WorkloadError>, WorkloadError> {
        let unread = self.unread();
        self.is_of_rocksdb = true;
        let mut entries = Entries::new(input);
        let mut bytes = Vec::new();
        let header = entry(&mut entries, &mut bytes).map_err(&unread)?;
        let version = header.and_then(|kind| Version::of(kind.unwrap_or_default(), &bytes));
        let version = version.map_err(|message| self.entry_error(0, message))?;
        while !self.reader.is_full() {
            let offset = entries.offset;
            let kind = match entry(&mut entries, &mut bytes).map_err(&unread)? {
                Ok(None | Some(rocksdb::END)) => break,
                Ok(Some(kind)) => Ok(kind),
                Err(message) => Err(message),
            };
            let reader = &mut self.reader;
            let choice = &mut self.choice;
            let read = kind.and_then(|kind| {
                version.entry(kind, &bytes, choice, &mut |record| reader.take(record))
            });
            if let Err(message) = read {
                return Ok(Some(self.entry_error(offset, message)));
            }
        }
        Ok(None)
    }
}

/// Reads the next entry of RocksDB's into `payload`. Returns the kind of the entry; `None`
/// at the end of the file.
fn entry(
    entries: &mut Entries<'_>,
    payload: &mut Vec<u8>,
) -> io::Result<Result<Option<u8>, String>> {
    entries.next(rocksdb::HEAD_BYTES as u64, payload)?;
    if payload.is_empty() {
        return Ok(Ok(None));
    }
    let Head { kind, payload_bytes } = match Head::parse(payload) {
        Ok(head) => head,
        Err(message) => return Ok(Err(message)),
    };
    entries.next(payload_bytes, payload)?;
    let found = payload.len() as u64;
    if found < payload_bytes {
        return Ok(Err(format!("expected a payload of {payload_bytes} bytes, found {found}")));
    }
    Ok(Ok(Some(kind)))
}
