//! Query traces of RocksDB, in versions 0.1 and 0.2.
//!
//! An entry has a time of 8 bytes, a kind of 1, a length of 4, and a payload of that length. In
//! version 0.2 a payload starts with 8 bytes whose bits say which fields follow. The first entry is
//! the header, the last one, if the trace was ended, the footer.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::input::Fields;
use super::op::TraceOpKind;
use super::record::{Record, checked_size};
use crate::parts::VALUE_BYTES_MAX;

/// The first bytes of the payload of the header.
pub(super) const MAGIC: &[u8] = b"feedcafedeadbeef\tTrace Version: ";

/// The length of an entry without its payload.
pub(super) const HEAD_BYTES: usize = 13;

/// Longest payload: a batch with the longest value twice.
const PAYLOAD_BYTES_MAX: u64 = 2 * VALUE_BYTES_MAX;

/// Kinds of entries.
const BEGIN: u8 = 1;
pub(super) const END: u8 = 2;
const WRITE: u8 = 3;
const GET: u8 = 4;
const SEEK: u8 = 5;
const SEEK_FOR_PREV: u8 = 6;
const MULTI_GET: u8 = 13;

/// The bits of the fields of a payload. It has all of them; a seek may leave out its bounds.
const WRITE_FIELDS: u64 = 1 << 1;
const GET_FIELDS: u64 = 1 << 2 | 1 << 3;
const SEEK_FIELDS: u64 = 1 << 4 | 1 << 5;
const SEEK_BOUNDS: u64 = 1 << 6 | 1 << 7;
const MULTI_GET_FIELDS: u64 = 1 << 8 | 1 << 9 | 1 << 10;

/// Takes records; fails with a message for one that is not taken.
pub(super) type Take<'a> = dyn FnMut(Record<'_>) -> Result<(), String> + 'a;

/// What is played of a trace of RocksDB, as binary or as text.
pub(super) struct Choice {
    /// The column family that is played.
    pub(super) family: u32,
    /// The entries that a seek reads, which traces do not say.
    pub(super) scan_items: u32,
    /// Other column families that were met, some of them.
    pub(super) others: BTreeSet<u32>,
}

impl Choice {
    pub(super) fn new(family: u32, scan_items: u32) -> Self {
        Self { family, scan_items, others: BTreeSet::new() }
    }

    /// Returns true if operations on `family` are played.
    pub(super) fn plays(&mut self, family: u32) -> bool {
        if family != self.family && self.others.len() < 8 {
            self.others.insert(family);
        }
        family == self.family
    }

    /// Returns a scan from `key` on. All keys lie behind the key of one zero byte, as behind the
    /// empty one, which a store does not take.
    pub(super) fn seek<'k>(&self, key: impl Into<Cow<'k, [u8]>>) -> Record<'k> {
        let key = key.into();
        let from = if key.is_empty() { Cow::Borrowed(&b"\0"[..]) } else { key };
        Record::new(TraceOpKind::Scan, from, self.scan_items)
    }
}

/// The head of an entry.
pub(super) struct Head {
    pub(super) kind: u8,
    pub(super) payload_bytes: u64,
}

impl Head {
    pub(super) fn parse(bytes: &[u8]) -> Result<Head, String> {
        let mut fields = Fields(bytes);
        fields.u64("time")?;
        let kind = fields.byte("kind")?;
        let payload_bytes = u64::from(fields.u32("length")?);
        if payload_bytes > PAYLOAD_BYTES_MAX {
            let found = format!("found {payload_bytes}");
            return Err(format!(
                "expected a payload of at most {PAYLOAD_BYTES_MAX} bytes, {found}"
            ));
        }
        Ok(Head { kind, payload_bytes })
    }
}

/// A version of the format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    /// True if payloads say which fields they have.
    has_maps: bool,
}

impl Version {
    /// Returns the version that the header says.
    pub(super) fn of(kind: u8, payload: &[u8]) -> Result<Version, String> {
        let magic = b"feedcafedeadbeef";
        if kind != BEGIN || !payload.starts_with(magic) {
            return Err("expected the header of a query trace of RocksDB, found none".to_owned());
        }
        let text = payload.strip_prefix(MAGIC).ok_or_else(|| not_operations("header"))?;
        let end = text.iter().position(|byte| *byte == b'\t').unwrap_or(text.len().min(20));
        match &text[..end] {
            b"0.1" => Ok(Version { has_maps: false }),
            b"0.2" => Ok(Version { has_maps: true }),
            other => {
                let found = String::from_utf8_lossy(other);
                Err(format!("expected a trace of version 0.1 or 0.2, found `{found}`"))
            }
        }
    }

    /// Gives the operations of an entry to `take`.
    pub(super) fn entry(
        self,
        kind: u8,
        payload: &[u8],
        choice: &mut Choice,
        take: &mut Take<'_>,
    ) -> Result<(), String> {
        let mut fields = Fields(payload);
        match kind {
            WRITE if !self.has_maps => batch(fields.0, choice, take),
            WRITE => {
                self.map(&mut fields, WRITE_FIELDS, 0)?;
                batch(fields.slice("the batch")?, choice, take)
            }
            GET => {
                self.map(&mut fields, GET_FIELDS, 0)?;
                let family = fields.u32("column family")?;
                let key = fields.slice("the key")?;
                if choice.plays(family) { take(get(key)) } else { Ok(()) }
            }
            SEEK | SEEK_FOR_PREV => {
                self.map(&mut fields, SEEK_FIELDS, SEEK_BOUNDS)?;
                let family = fields.u32("column family")?;
                let key = fields.slice("the key")?;
                if choice.plays(family) { take(choice.seek(key)) } else { Ok(()) }
            }
            MULTI_GET if self.has_maps => {
                self.map(&mut fields, MULTI_GET_FIELDS, 0)?;
                let count = fields.u32("the number of keys")?;
                let mut families = Fields(fields.slice("the column families")?);
                let mut keys = Fields(fields.slice("the keys")?);
                for _ in 0..count {
                    let key = keys.slice("a key")?;
                    if choice.plays(families.u32("a column family")?) {
                        take(get(key))?;
                    }
                }
                Ok(())
            }
            7..=12 => Err(not_operations("entry")),
            BEGIN => Err("expected one header at the start, found another one".to_owned()),
            other => {
                Err(format!("expected the kind of an operation (2 to 6 or 13), found {other}"))
            }
        }
    }

    /// Takes the bits of the fields, which must be all of `needed`, and any of `others`.
    fn map(self, fields: &mut Fields<'_>, needed: u64, others: u64) -> Result<(), String> {
        if !self.has_maps {
            return Ok(());
        }
        let map = fields.u64("the map of fields")?;
        if map & !others == needed {
            Ok(())
        } else {
            Err(format!("expected the map of fields {needed:#x}, found {map:#x}"))
        }
    }
}

fn get(key: &[u8]) -> Record<'_> {
    Record::new(TraceOpKind::Get, key, 0)
}

fn not_operations(what: &str) -> String {
    format!(
        "this is the {what} of a trace of blocks or files, whose keys are no keys of the database; \
         trace the operations instead, with `DB::StartTrace`"
    )
}

/// Gives the records of a write batch to `take`: a sequence number (8 bytes), the number of
/// records (4), and the records, each with a tag in front.
fn batch(bytes: &[u8], choice: &mut Choice, take: &mut Take<'_>) -> Result<(), String> {
    let mut fields = Fields(bytes);
    fields.u64("sequence number")?;
    let expected = fields.u32("the number of records")?;
    let mut found = 0_u32;
    while !fields.0.is_empty() {
        let tag = fields.byte("tag")?;
        // Tags of records that name their column family.
        let has_family = matches!(tag, 0x4 | 0x5 | 0x6 | 0x8 | 0xe | 0x10 | 0x17 | 0x19);
        let family = if has_family { fields.varint("column family")? } else { 0 };
        let record = match tag {
            0x0 | 0x4 | 0x7 | 0x8 => Record::new(TraceOpKind::Delete, fields.slice("the key")?, 0),
            0x1 | 0x5 | 0x10 | 0x11 | 0x16..=0x19 => written(TraceOpKind::Put, &mut fields)?,
            0x2 | 0x6 => written(TraceOpKind::Combine, &mut fields)?,
            0xe | 0xf => {
                let key = fields.slice("the key")?;
                let end = fields.slice("the end")?;
                Record { end: Some(end), ..Record::new(TraceOpKind::DeleteRange, key, 0) }
            }
            // Marks of transactions, and notes for the log.
            0x9 | 0xd | 0x12 | 0x13 => continue,
            0x3 | 0xa | 0xb | 0xc => {
                fields.slice("a note")?;
                continue;
            }
            0x15 => {
                fields.slice("the time of a commit")?;
                fields.slice("the name of a commit")?;
                continue;
            }
            other => return Err(format!("expected a tag of a write batch, found {other:#x}")),
        };
        found = found.saturating_add(1);
        // A range that ends at its start deletes nothing.
        let is_empty = record.end.is_some_and(|end| *end <= *record.key);
        if choice.plays(family) && !is_empty {
            take(record)?;
        }
    }
    if found == expected {
        Ok(())
    } else {
        Err(format!("expected {expected} records in the batch, found {found}"))
    }
}

/// Takes a key and a value.
fn written<'a>(kind: TraceOpKind, fields: &mut Fields<'a>) -> Result<Record<'a>, String> {
    let key = fields.slice("the key")?;
    let value = fields.slice("the value")?.len();
    Ok(Record::new(kind, key, checked_size("value", value as u64)?))
}

/// Parses a line that `trace_analyzer` has printed: the key in hexadecimal digits, the kind of
/// operation, the column family, the length of the value, and a time. `None` if the column family
/// is not played.
pub(super) fn line(line: &str, choice: &mut Choice) -> Result<Option<Record<'static>>, String> {
    let words: Vec<&str> = line.split(' ').collect();
    let [key, kind, family, size, time] = words[..] else {
        let names = "key, kind, column family, value size, time, with a blank between them";
        return Err(format!("expected 5 fields ({names}), found {}", words.len()));
    };
    let key = from_hex(key)?;
    let number = |name: &str, text: &str| {
        let whole = text.parse::<u32>();
        whole.map_err(|_| format!("{name} `{text}` is not a whole number below 2^32"))
    };
    if time.parse::<u64>().is_err() {
        return Err(super::record::not_whole("time", time));
    }
    let size = checked_size("value", u64::from(number("value size", size)?))?;
    let family = number("column family", family)?;
    let record = match kind {
        "0" | "8" => Record::new(TraceOpKind::Get, key, 0),
        "1" => Record::new(TraceOpKind::Put, key, size),
        "2" | "3" => Record::new(TraceOpKind::Delete, key, 0),
        "5" => Record::new(TraceOpKind::Combine, key, size),
        "6" | "7" => choice.seek(key),
        "4" => {
            return Err("a range delete has no end here: take the binary trace".to_owned());
        }
        _ => return Err(format!("expected a kind of operation from 0 to 8, found `{kind}`")),
    };
    Ok(choice.plays(family).then_some(record))
}

/// Parses hexadecimal digits, two for each byte, with or without `0x` in front.
fn from_hex(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.strip_prefix("0x").unwrap_or(text).as_bytes();
    let digit = |letter: u8| char::from(letter).to_digit(16);
    let pair = |pair: &[u8]| match pair {
        [high, low] => Some((digit(*high)? << 4 | digit(*low)?) as u8),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(pair).collect();
    bytes.ok_or_else(|| format!("expected a key in pairs of hexadecimal digits, found `{text}`"))
}

/// Returns true if a line is one that `trace_analyzer` prints.
pub(super) fn is_line(text: &str) -> bool {
    line(text, &mut Choice::new(0, 1)).is_ok()
}
