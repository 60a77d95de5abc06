//! Encodes and decodes the bytes around a payload.

use crate::error::{Error, ErrorKind, Result};
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The length of the file header in bytes.
pub(super) const FILE_HEADER_BYTES: usize = 32;

/// The length in bytes of the head of a record, which is stored last and in one step.
pub(super) const HEAD_BYTES: usize = 8;

/// The length of the header of a record in bytes: head and checksum.
pub(super) const RECORD_HEADER_BYTES: usize = 16;

/// The longest payload of one record in bytes: the largest multiple of 8 below 2^31.
pub(super) const PAYLOAD_BYTES_MAX: usize = (1 << 31) - 8;

const MAGIC: [u8; 8] = *b"lsmithlg";
const VERSION: u32 = 1;
const SYNC_MARK: u32 = 1 << 31;

/// Two bits in different bytes of every tag, so that no change of a single byte makes a head zero.
const TAG_BITS: u32 = 1 << 24 | 1;

/// The use of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogKind {
    /// Batches that are not flushed yet.
    Wal,
    /// Edits of the trees.
    Manifest,
    /// A copy of memtables that replaces older batches.
    Spill,
}

impl LogKind {
    fn code(self) -> u32 {
        match self {
            LogKind::Wal => 1,
            LogKind::Manifest => 2,
            LogKind::Spill => 3,
        }
    }
}

/// Identifies a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogId {
    /// The use of the log.
    pub kind: LogKind,
    /// The id of the file, never used twice in a store.
    pub file_id: u64,
}

/// Returns the bytes that a record with a payload of `payload_bytes` takes.
pub(super) fn record_bytes(payload_bytes: usize) -> usize {
    RECORD_HEADER_BYTES + payload_bytes.next_multiple_of(8)
}

fn word<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let word = bytes[at..].first_chunk();
    *word.expect("callers check the length of the bytes")
}

/// Returns the file header of the log `id`.
pub(super) fn file_header(id: LogId) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&VERSION.to_le_bytes());
    header[12..16].copy_from_slice(&id.kind.code().to_le_bytes());
    header[16..24].copy_from_slice(&id.file_id.to_le_bytes());
    let checksum = xxh3_64(&header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Checks the start of the file `bytes`, which must be the log `id`. Returns true if the header is
/// complete, and false for a torn one.
///
/// # Errors
///
/// Fails with `Corruption` if this cannot be that log, and with `Unsupported` for another version.
pub(super) fn check_file_header(path: &Path, bytes: &[u8], id: LogId) -> Result<bool> {
    let magic = &bytes[..bytes.len().min(8)];
    if magic.iter().all(|byte| *byte == 0) {
        return Ok(false);
    }
    if !MAGIC.starts_with(magic) {
        return Err(Error::corruption(path, 0, "not an lsmith log"));
    }
    if bytes.len() < FILE_HEADER_BYTES {
        return Ok(false);
    }
    if u64::from_le_bytes(word(bytes, 24)) != xxh3_64(&bytes[..24]) {
        return Err(Error::corruption(path, 8, "the header does not match its checksum"));
    }
    let version = u32::from_le_bytes(word(bytes, 8));
    if version != VERSION {
        let message = format!("log format version {version}, this program knows version {VERSION}");
        return Err(Error::new(ErrorKind::Unsupported, message).at(path));
    }
    let kind = u32::from_le_bytes(word(bytes, 12));
    if kind != id.kind.code() {
        let message = format!("log of kind {kind}, expected kind {}", id.kind.code());
        return Err(Error::corruption(path, 12, message));
    }
    let file_id = u64::from_le_bytes(word(bytes, 16));
    if file_id != id.file_id {
        let message = format!("log number {file_id}, expected {}", id.file_id);
        return Err(Error::corruption(path, 16, message));
    }
    Ok(true)
}

/// The decoded head of a record at a known offset.
#[derive(Clone, Copy)]
pub(super) struct RecordHead {
    pub(super) payload_bytes: usize,
    pub(super) marked: bool,
    seed: u64,
    pub(super) tag: u32,
}

impl RecordHead {
    pub(super) fn new(file_id: u64, offset: u64, coded: u32) -> RecordHead {
        let mut place = [0; 20];
        place[..8].copy_from_slice(&file_id.to_le_bytes());
        place[8..16].copy_from_slice(&offset.to_le_bytes());
        place[16..].copy_from_slice(&coded.to_le_bytes());
        let seed = xxh3_64(&place);
        RecordHead {
            payload_bytes: (coded & !SYNC_MARK) as usize,
            marked: coded & SYNC_MARK != 0,
            seed,
            tag: (seed >> 32) as u32 | TAG_BITS,
        }
    }

    /// Reads the head at `offset` of the file `bytes`. At least 8 bytes must follow. Returns `None`
    /// if the tag is wrong.
    pub(super) fn read(file_id: u64, bytes: &[u8], offset: usize) -> Option<RecordHead> {
        let head = RecordHead::new(file_id, offset as u64, u32::from_le_bytes(word(bytes, offset)));
        (head.tag == u32::from_le_bytes(word(bytes, offset + 4))).then_some(head)
    }

    /// Returns true if the complete record at `offset` of the file `bytes` matches its checksum.
    pub(super) fn matches(&self, bytes: &[u8], offset: usize) -> bool {
        let record = &bytes[offset..offset + record_bytes(self.payload_bytes)];
        let checksum = xxh3_64_with_seed(&record[RECORD_HEADER_BYTES..], self.seed);
        checksum == u64::from_le_bytes(word(record, 8))
    }
}

/// Limits a search for records at all offsets of a file: it may read this many times the length of
/// the file. Written records do not overlap, so each byte belongs to at most one of them. One
/// random head in 2^30 has a valid tag.
const SEARCHED_FILES_MAX: usize = 8;

/// A budget for the bytes that a search for records reads. Without it, overlapping heads could each
/// announce a record up to the end of the file.
pub(super) struct Effort(usize);

impl Effort {
    /// Returns the budget for a file of `bytes` bytes.
    pub(super) fn for_file(bytes: usize) -> Effort {
        Effort(bytes.saturating_mul(SEARCHED_FILES_MAX))
    }

    /// Takes `bytes` from the budget. Returns false if it is exhausted.
    pub(super) fn spend(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// The offset and the contents of the header of a new record.
pub(super) struct Placing {
    pub(super) file_id: u64,
    pub(super) offset: u64,
    pub(super) payload_bytes: usize,
    /// Whether everything in front of the record is synced.
    pub(super) marked: bool,
}

/// Fills in the header of `record`, which has room for it in front of payload and padding.
pub(super) fn seal(record: &mut [u8], placing: &Placing) {
    debug_assert_eq!(record.len(), record_bytes(placing.payload_bytes));
    debug_assert!(placing.payload_bytes <= PAYLOAD_BYTES_MAX);
    let mark = if placing.marked { SYNC_MARK } else { 0 };
    let coded = placing.payload_bytes as u32 | mark;
    let head = RecordHead::new(placing.file_id, placing.offset, coded);
    let checksum = xxh3_64_with_seed(&record[RECORD_HEADER_BYTES..], head.seed);
    record[..4].copy_from_slice(&coded.to_le_bytes());
    record[4..8].copy_from_slice(&head.tag.to_le_bytes());
    record[8..16].copy_from_slice(&checksum.to_le_bytes());
}
