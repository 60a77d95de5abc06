//! `CURRENT`, the file that names the manifest in force.

use lsmith_storage::bounds::check_file;
use lsmith_storage::cipher;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::CURRENT_NEW;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The version of the directory's format, which the first line of `CURRENT` names.
const FORMAT: u32 = 3;

/// Returns the file id of the manifest that the `CURRENT` at `path` names, or `None` if there is no
/// such file.
///
/// # Errors
/// Fails with `Corruption` or `Io`, or with `Unsupported` if the store has another format.
pub(crate) fn read_current(env: &dyn Env, path: &Path) -> Result<Option<u64>> {
    // A writer may replace the file at `path` meanwhile. So the length comes from the open file.
    let file = match env.open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| Error::io("open", path, error))?,
    };
    let length = file.bytes().map_err(|error| Error::io("look at", path, error))?;
    let mut bytes = vec![0; length.min(4096) as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|error| Error::io("read", path, error))?;
    if cipher::is_encrypted(&bytes) {
        return Err(Error::needs_key(path));
    }
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let format = head.strip_prefix("lsmith store, format ").and_then(|text| text.parse().ok());
    match format {
        Some(FORMAT) => {}
        Some(other) if other > 0 => {
            let message = format!("the store has format {other}: expected format {FORMAT}");
            return Err(Error::new(ErrorKind::Unsupported, message).at(path));
        }
        _ => {
            let message = format!("the first line is not `lsmith store, format {FORMAT}`");
            return Err(Error::corruption(path, 0, message));
        }
    }
    let file_id = lines.next().and_then(|line| line.strip_prefix("manifest ")?.parse().ok());
    let offset = head.len() as u64 + 1;
    let Some(file_id) = file_id.filter(|&file_id| current_text(file_id) == text) else {
        let message = "the number of the manifest does not match its checksum";
        return Err(Error::corruption(path, offset, message));
    };
    check_file(file_id).map_err(|message| Error::corruption(path, offset, message))?;
    Ok(Some(file_id))
}

/// Returns the text of `CURRENT`: two lines, and a third with their checksum.
pub(crate) fn current_text(file_id: u64) -> String {
    let text = format!("lsmith store, format {FORMAT}\nmanifest {file_id}\n");
    let checksum = xxh3_64(text.as_bytes());
    format!("{text}checksum {checksum:016x}\n")
}

/// Writes [`CURRENT_NEW`], which names manifest `file_id` and is to be renamed to `CURRENT`.
pub(super) fn write_current(env: &dyn Env, dir: &Path, file_id: u64) -> Result<()> {
    let new = dir.join(CURRENT_NEW);
    let write = || {
        match env.remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = env.create(&new)?;
        file.write_all(current_text(file_id).as_bytes())?;
        file.sync()
    };
    write().map_err(|error| Error::io("write", &new, error))
}
