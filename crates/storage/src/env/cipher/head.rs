//! The first slot of a file, and what kind of file it shows.

use super::slot::SLOT_BYTES;
use crate::cipher::{
    CipherError, FileCipher, HEAD_BYTES, IN_CLEAR, Keys, MAGIC, PREFIX_BYTES, SALT_BYTES,
    START_BYTES,
};
use crate::env::ReadFile;
use crate::names::{self, FileKind};
use std::io;
use std::path::Path;

const VERSION: u32 = 1;

/// The offset of a copy of the start, in case the start is damaged: it is needed for every slot.
const COPY_AT: usize = 2048;

/// The parts of names that logs have.
const LOG_NAMES: [&str; 3] = ["wal", "manifest", "spill"];

/// What a file says that it is: kind and number, both 0 without a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Binding {
    kind: u32,
    file_id: u64,
}

impl Binding {
    /// Returns what the file at `path` must be by its name; `None` if the name says nothing.
    pub(super) fn of(path: &Path) -> Option<Binding> {
        let (kind, file_id) = names::parse(path.file_name()?.to_str()?)?;
        let kind = match kind {
            FileKind::Table => 1,
            FileKind::Wal | FileKind::NewWal => 2,
            FileKind::Manifest => 3,
            FileKind::Spill => 4,
            FileKind::Values => 5,
        };
        Some(Binding { kind, file_id })
    }

    /// Returns the first slot of a new file, and its cipher.
    pub(super) fn begin(
        self,
        keys: &Keys,
        salt: [u8; SALT_BYTES],
    ) -> io::Result<(Vec<u8>, Box<dyn FileCipher>)> {
        let mut prefix = [0; PREFIX_BYTES];
        prefix[..8].copy_from_slice(&MAGIC);
        prefix[8..12].copy_from_slice(&VERSION.to_le_bytes());
        prefix[12..16].copy_from_slice(&(SLOT_BYTES as u32).to_le_bytes());
        prefix[16..20].copy_from_slice(&self.kind.to_le_bytes());
        prefix[24..].copy_from_slice(&self.file_id.to_le_bytes());
        let (head, cipher) = keys.begin(&prefix, salt)?;
        let start = [&prefix[..], &head[..]].concat();
        let mut slot = start.clone();
        slot.resize(COPY_AT, 0);
        slot.extend_from_slice(&start);
        slot.resize(SLOT_BYTES as usize, 0);
        Ok((slot, cipher))
    }
}

/// A file of slots.
pub(super) struct Opened {
    pub(super) cipher: Box<dyn FileCipher>,
    pub(super) binding: Binding,
    pub(super) is_newest: bool,
}

/// How the contents of a file are stored.
pub(super) enum Form {
    Slots(Opened),
    /// A log, which encrypts its records itself.
    Log,
    /// In clear, which the keys allow.
    Clear,
    /// The first slot was not written.
    Empty,
}

/// Finds out how the contents of `file`, at `path`, are stored.
pub(super) fn look(file: &dyn ReadFile, path: &Path, keys: &Keys) -> io::Result<Form> {
    let bytes = file.bytes()?;
    let mut start = [0; START_BYTES];
    let there = bytes.min(START_BYTES as u64) as usize;
    file.read_exact_at(&mut start[..there], 0)?;
    let magic = &start[..there.min(MAGIC.len())];
    let is_unwritten = magic.iter().all(|byte| *byte == 0);
    if MAGIC.starts_with(magic) && !is_unwritten && bytes < SLOT_BYTES {
        return Ok(Form::Empty);
    }
    let is_slots = start[..MAGIC.len()] == MAGIC;
    let opened = is_slots.then(|| open(&start, path, keys));
    if let Some(Ok(opened)) = opened {
        return Ok(Form::Slots(opened));
    }
    if bytes >= SLOT_BYTES {
        file.read_exact_at(&mut start, COPY_AT as u64)?;
        if start[..MAGIC.len()] == MAGIC
            && let Ok(opened) = open(&start, path, keys)
        {
            tracing::warn!(path = %path.display(), "the start of an encrypted file is damaged");
            return Ok(Form::Slots(opened));
        }
    }
    match opened {
        Some(opened) => opened.map(Form::Slots),
        // Only names of logs lead past the cipher: anything else might be a file in clear.
        None if is_log(path) => Ok(Form::Log),
        None if is_unwritten => Ok(Form::Empty),
        None if keys.reads_clear() => Ok(Form::Clear),
        None => Err(CipherError::key(IN_CLEAR)),
    }
}

/// Opens the file at `path` that begins with `start`.
fn open(start: &[u8; START_BYTES], path: &Path, keys: &Keys) -> io::Result<Opened> {
    let (prefix, head) = start.split_first_chunk::<PREFIX_BYTES>().expect("the start is longer");
    let head: &[u8; HEAD_BYTES] = head.first_chunk().expect("the start has both");
    let word = |at: usize| u32::from_le_bytes(*prefix[at..].first_chunk().expect("4 bytes"));
    let (cipher, is_newest) = keys.open(prefix, head)?;
    if (word(8), word(12)) != (VERSION, SLOT_BYTES as u32) {
        let message = format!(
            "expected version {VERSION} of encrypted files with slots of {SLOT_BYTES} bytes, \
             found version {} with {}",
            word(8),
            word(12)
        );
        return Err(CipherError::key(message));
    }
    let file_id = u64::from_le_bytes(*prefix[24..].first_chunk().expect("8 bytes"));
    let binding = Binding { kind: word(16), file_id };
    if let Some(expected) = Binding::of(path).filter(|expected| *expected != binding) {
        let message = format!(
            "the file was written as kind {} number {}, and is now where kind {} number {} belongs",
            binding.kind, binding.file_id, expected.kind, expected.file_id
        );
        return Err(CipherError::damage(16, message));
    }
    Ok(Opened { cipher, binding, is_newest })
}

fn is_log(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    name.split('.').skip(1).any(|part| LOG_NAMES.contains(&part))
}
