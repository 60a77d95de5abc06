//! Encrypts the files of a store again, with the newest key.
//!
//! Each file is written anew beside itself and then takes its name, in one step. So every file has
//! one key or the other at any time. If a renewal is interrupted, the next one does the rest.
//! Every opening writes the manifest and `CURRENT` anew.

use lsmith_storage::directory;
use lsmith_storage::env::{CipherEnv, Env, ReadFile, WriteFile};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::log::{LogId, LogKind, renewed};
use lsmith_storage::names::{self, FileKind, RENEWED};
use std::io;
use std::path::Path;

/// The bytes of a file that are encrypted at a time.
const COPY_BYTES: u64 = 1 << 20;

/// Encrypts all numbered files in `dir` that have another key than the newest.
///
/// # Errors
/// `Corruption` or `Unsupported` if the start of a file cannot be read; `Io`; `Full`.
pub(super) fn renew(encryption: &CipherEnv, dir: &Path) -> Result<()> {
    let names = encryption.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut files = 0;
    for (kind, file_id) in names.iter().filter_map(|name| names::parse(name)) {
        files += u64::from(renew_file(encryption, dir, kind, file_id)?);
    }
    if files > 0 {
        directory::sync(encryption, dir)?;
        tracing::info!(files, "files were encrypted with the newest key");
    }
    Ok(())
}

/// Removes what interrupted renewals have left among `files`, the names in `dir`.
pub(super) fn remove_left(env: &dyn Env, dir: &Path, files: &[String]) {
    let is_left =
        |name: &str| name.strip_suffix(RENEWED).is_some_and(|of| names::parse(of).is_some());
    for name in files.iter().filter(|name| is_left(name)) {
        directory::remove(env, &dir.join(name), "an interrupted renewal of a file");
    }
}

/// Returns true if the file had an old key.
fn renew_file(encryption: &CipherEnv, dir: &Path, kind: FileKind, file_id: u64) -> Result<bool> {
    let path = &names::numbered(dir, kind, file_id);
    let failed = |error| Error::io("encrypt", path, error);
    let kind = match kind {
        FileKind::Wal => Some(LogKind::Wal),
        FileKind::Spill => Some(LogKind::Spill),
        FileKind::Manifest | FileKind::NewWal => return Ok(false),
        FileKind::Table | FileKind::Values => None,
    };
    let log = kind.map(|kind| renewed(encryption, path, LogId { kind, file_id })).transpose()?;
    if let Some(bytes) = log.flatten() {
        encryption.replace(path, |file| file.write_all(&bytes)).map_err(failed)?;
        return Ok(true);
    }
    let is_stale = encryption.is_stale(path).map_err(failed)?;
    if is_stale {
        let old = encryption.open(path).map_err(failed)?;
        encryption.replace(path, |file| copy(&*old, file)).map_err(failed)?;
    }
    Ok(is_stale)
}

fn copy(from: &dyn ReadFile, to: &mut dyn WriteFile) -> io::Result<()> {
    let bytes = from.bytes()?;
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < bytes {
        buffer.resize((bytes - offset).min(COPY_BYTES) as usize, 0);
        from.read_exact_at(&mut buffer, offset)?;
        to.write_all(&buffer)?;
        offset += buffer.len() as u64;
    }
    Ok(())
}
