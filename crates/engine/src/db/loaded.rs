//! What bulk loads and table writers share: the rule for entries, and the sizes that they return.

use crate::write::EMPTY_KEY;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::{KEY_BYTES_MAX, VALUE_BYTES_MAX};

/// The sizes of tables that were written or loaded; returned by
/// [`BulkLoad::finish`](crate::BulkLoad::finish),
/// [`TableWriter::finish`](crate::TableWriter::finish) and [`Store::ingest`](crate::Store::ingest).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loaded {
    /// The number of entries.
    pub entries: u64,
    /// The logical bytes of the entries: key + value + 8 each.
    pub logical_bytes: u64,
    /// The number of tables.
    pub tables: u64,
    /// The bytes of the files of these tables.
    pub table_bytes: u64,
}

/// Fails if an entry with this key and value cannot follow one with `last_key`, which is empty if
/// there is none.
pub(super) fn check_entry(key: &[u8], value: &[u8], last_key: &[u8]) -> Result<()> {
    let refuse = |message: String| Err(Error::new(ErrorKind::InvalidArgument, message));
    if key.is_empty() {
        return refuse(EMPTY_KEY.into());
    }
    if key.len() > KEY_BYTES_MAX || value.len() > VALUE_BYTES_MAX {
        return refuse(format!(
            "expected a key of 1 to {KEY_BYTES_MAX} bytes and a value of at most \
             {VALUE_BYTES_MAX} bytes, found {} and {}",
            key.len(),
            value.len()
        ));
    }
    if *key <= *last_key {
        return refuse(format!(
            "expected keys in ascending order, found `{}` after `{}`",
            key.escape_ascii(),
            last_key.escape_ascii()
        ));
    }
    Ok(())
}
