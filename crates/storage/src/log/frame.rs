//! Encodes and decodes the bytes around a payload.

use crate::cipher::{
    CipherError, FileCipher, HEAD_BYTES as CIPHER_BYTES, IN_CLEAR, NEEDS_KEY, NONCE_BYTES,
    TAG_BYTES,
};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use std::io;
use std::path::Path;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The length of the file header in bytes.
pub(super) const FILE_HEADER_BYTES: usize = 32;

/// The length in bytes of the file header of an encrypted log: it says twice how it is encrypted.
pub(super) const ENCRYPTED_HEADER_BYTES: usize = FILE_HEADER_BYTES + 2 * CIPHER_BYTES;

/// The length in bytes of the head of a record, which is stored last and in one step.
pub(super) const HEAD_BYTES: usize = 8;

/// The length of the header of a record in bytes: head and checksum.
pub(super) const RECORD_HEADER_BYTES: usize = 16;

/// The longest payload of one record in bytes: the largest multiple of 8 below 2^31.
pub(super) const PAYLOAD_BYTES_MAX: usize = (1 << 31) - 8;

const MAGIC: [u8; 8] = *b"lsmithlg";
const VERSION: u32 = 1;
/// The version of logs whose payloads are encrypted.
const ENCRYPTED: u32 = 2;
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

/// Encrypts and decrypts the payloads of a log.
#[derive(Debug)]
pub(super) struct LogCipher(Box<dyn FileCipher>);

impl LogCipher {
    /// Encrypts the payload at the end of `record`, which starts at `offset` with the first word
    /// `coded`, and adds its tag.
    pub(super) fn seal(&self, record: &mut Vec<u8>, coded: u32, offset: u64) {
        let payload = &mut record[RECORD_HEADER_BYTES..];
        let tag = self.0.seal(&nonce(offset), &coded.to_le_bytes(), payload);
        record.extend_from_slice(&tag);
    }

    /// Puts the payload that was encrypted as `sealed`, in the record at `offset` with the first
    /// word `coded`, into `payload`. Returns false if it was not encrypted there with this key.
    pub(super) fn open(
        &self,
        sealed: &[u8],
        coded: u32,
        offset: u64,
        payload: &mut Vec<u8>,
    ) -> bool {
        payload.clear();
        let Some((encrypted, tag)) = sealed.split_last_chunk::<TAG_BYTES>() else { return false };
        payload.extend_from_slice(encrypted);
        self.0.open(&nonce(offset), &coded.to_le_bytes(), payload, tag)
    }
}

/// Returns the nonce of the record at `offset`. A log is written once, from its start.
fn nonce(offset: u64) -> [u8; NONCE_BYTES] {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(&offset.to_le_bytes());
    nonce
}

/// How the records of a log are stored.
#[derive(Debug)]
pub(super) struct Layout {
    /// The offset of the first record.
    pub(super) first: usize,
    pub(super) cipher: Option<LogCipher>,
    /// True if the cipher has the newest key.
    pub(super) is_newest: bool,
}

impl Layout {
    /// The layout of a log in clear.
    pub(super) const CLEAR: Layout =
        Layout { first: FILE_HEADER_BYTES, cipher: None, is_newest: false };

    /// Returns the bytes that each payload is longer in the file.
    pub(super) fn extra_bytes(&self) -> usize {
        if self.cipher.is_some() { TAG_BYTES } else { 0 }
    }

    /// Returns the layout of the log `id` without looking at its header, but at what says twice how
    /// it is encrypted. `None` if none of that is good.
    pub(super) fn guess(env: &dyn Env, bytes: &[u8], id: LogId) -> Option<Layout> {
        let Some(encryption) = env.encryption() else { return Some(Layout::CLEAR) };
        let prefix = header_of(id, ENCRYPTED);
        let copies = bytes.get(FILE_HEADER_BYTES..ENCRYPTED_HEADER_BYTES)?;
        let mut copies = copies.chunks(CIPHER_BYTES);
        let opened =
            copies.find_map(|copy| encryption.keys().open(&prefix, copy.first_chunk()?).ok());
        let clear = || encryption.keys().reads_clear().then_some(Layout::CLEAR);
        opened.map(Layout::encrypted).or_else(clear)
    }

    /// Returns the layout with a cipher, which has the newest key or not.
    fn encrypted((cipher, is_newest): (Box<dyn FileCipher>, bool)) -> Layout {
        Layout { first: ENCRYPTED_HEADER_BYTES, cipher: Some(LogCipher(cipher)), is_newest }
    }
}

/// Returns true if `word`, bytes 8 to 16 of a log, says that its payloads are encrypted.
pub(super) fn is_encrypted(word: &[u8; 8]) -> bool {
    word.starts_with(&ENCRYPTED.to_le_bytes())
}

/// Returns the length of the file headers that `env` writes, in bytes.
pub(super) fn header_bytes(env: &dyn Env) -> usize {
    if env.encryption().is_some() { ENCRYPTED_HEADER_BYTES } else { FILE_HEADER_BYTES }
}

/// Returns the file header of the new log `id` in `env`, and the layout of its records.
pub(super) fn begin(env: &dyn Env, id: LogId) -> io::Result<(Vec<u8>, Layout)> {
    let Some(encryption) = env.encryption() else {
        return Ok((file_header(id).to_vec(), Layout::CLEAR));
    };
    let header = header_of(id, ENCRYPTED);
    let (head, cipher) = encryption.keys().begin(&header, encryption.salt())?;
    Ok(([&header[..], &head, &head].concat(), Layout::encrypted((cipher, true))))
}

/// Returns the file header of the log `id` in clear.
pub(super) fn file_header(id: LogId) -> [u8; FILE_HEADER_BYTES] {
    header_of(id, VERSION)
}

/// Returns the file header of the log `id` without what says how it is encrypted.
fn header_of(id: LogId, version: u32) -> [u8; FILE_HEADER_BYTES] {
    let mut header = [0; FILE_HEADER_BYTES];
    header[..8].copy_from_slice(&MAGIC);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    header[12..16].copy_from_slice(&id.kind.code().to_le_bytes());
    header[16..24].copy_from_slice(&id.file_id.to_le_bytes());
    let checksum = xxh3_64(&header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    header
}

/// Checks the start of the file `bytes`, which must be the log `id` of `env`. Returns the layout of
/// its records, or `None` for a torn header.
///
/// # Errors
///
/// Fails with `Corruption` if this cannot be that log, and with `Unsupported` for another version,
/// and if a key is missing, wrong, or not needed.
pub(super) fn check_file_header(
    env: &dyn Env,
    path: &Path,
    bytes: &[u8],
    id: LogId,
) -> Result<Option<Layout>> {
    let magic = &bytes[..bytes.len().min(8)];
    if magic.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if !MAGIC.starts_with(magic) {
        let is_encrypted = crate::cipher::MAGIC.starts_with(magic);
        let error = || Error::corruption(path, 0, "not an lsmith log");
        return Err(if is_encrypted { Error::needs_key(path) } else { error() });
    }
    if bytes.len() < FILE_HEADER_BYTES {
        return Ok(None);
    }
    if u64::from_le_bytes(word(bytes, 24)) != xxh3_64(&bytes[..24]) {
        return Err(Error::corruption(path, 8, "the header does not match its checksum"));
    }
    let version = u32::from_le_bytes(word(bytes, 8));
    if ![VERSION, ENCRYPTED].contains(&version) {
        let message = format!("log format version {version}, this program knows versions 1 and 2");
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
    layout(env, bytes, version).map_err(|error| Error::io("read the log", path, error))
}

/// Returns the layout of the log `bytes` of `version`, or `None` for a torn header.
fn layout(env: &dyn Env, bytes: &[u8], version: u32) -> io::Result<Option<Layout>> {
    match (env.encryption(), version) {
        (None, VERSION) => Ok(Some(Layout::CLEAR)),
        (None, _) => Err(CipherError::key(NEEDS_KEY)),
        (Some(encryption), VERSION) if encryption.keys().reads_clear() => Ok(Some(Layout::CLEAR)),
        (Some(_), VERSION) => Err(CipherError::key(IN_CLEAR)),
        (Some(encryption), _) => {
            if bytes.len() < ENCRYPTED_HEADER_BYTES {
                return Ok(None);
            }
            let (prefix, rest) = bytes.split_first_chunk().expect("the header is whole");
            let head = rest.first_chunk().expect("the header is whole");
            Ok(Some(Layout::encrypted(encryption.keys().open(prefix, head)?)))
        }
    }
}

/// The decoded head of a record at a known offset.
#[derive(Clone, Copy)]
pub(super) struct RecordHead {
    /// The first word of the record: length and mark.
    pub(super) coded: u32,
    /// The length of the payload in the file, with its tag if it is encrypted.
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
            coded,
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
    /// The length of the payload in the file, with its tag if it is encrypted.
    pub(super) payload_bytes: usize,
    /// Whether everything in front of the record is synced.
    pub(super) marked: bool,
}

impl Placing {
    /// Returns the first word of the record.
    pub(super) fn coded(&self) -> u32 {
        let mark = if self.marked { SYNC_MARK } else { 0 };
        self.payload_bytes as u32 | mark
    }
}

/// Fills in the header of `record`, which has room for it in front of payload and padding.
pub(super) fn seal(record: &mut [u8], placing: &Placing) {
    debug_assert_eq!(record.len(), record_bytes(placing.payload_bytes));
    debug_assert!(placing.payload_bytes <= PAYLOAD_BYTES_MAX);
    let coded = placing.coded();
    let head = RecordHead::new(placing.file_id, placing.offset, coded);
    let checksum = xxh3_64_with_seed(&record[RECORD_HEADER_BYTES..], head.seed);
    record[..4].copy_from_slice(&coded.to_le_bytes());
    record[4..8].copy_from_slice(&head.tag.to_le_bytes());
    record[8..16].copy_from_slice(&checksum.to_le_bytes());
}
