//! The feed of changes.

use crate::bytes::lend;
use crate::error::{call, given, lsmith_error_t, quietly};
use crate::store::lsmith_t;
use lsmith::{Change, ChangeBatch, Changes, SeqNo};
use std::ffi::c_char;
use std::time::Duration;

/// A feed of the batches that were written, in their order.
#[derive(Debug)]
pub struct lsmith_changes_t(Changes);

/// A batch of a feed.
#[derive(Debug)]
pub struct lsmith_change_batch_t(ChangeBatch);

/// What a change does.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum lsmith_change_kind_t {
    /// There is no such change.
    LSMITH_NO_CHANGE = 0,
    /// A key gets a value.
    LSMITH_PUT = 1,
    /// A key is deleted.
    LSMITH_DELETE = 2,
    /// All keys from `key` up to `value` are deleted; an empty `value` is no bound.
    LSMITH_DELETE_RANGE = 3,
    /// An operand is combined with the value of a key.
    LSMITH_MERGE = 4,
}

use lsmith_change_kind_t::*;

/// Returns a feed of all writes from the sequence number `from` on. The option `changes_bytes` says
/// how far back feeds go. Returns null on error.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_get_updates_since(
    store: Option<&lsmith_t>,
    from: u64,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_changes_t>> {
    call(error, None, || {
        let changes = given(store, "store")?.0.changes(SeqNo(from))?;
        Ok(Some(Box::new(lsmith_changes_t(changes))))
    })
}

/// Destroys a feed.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_changes_destroy(changes: Option<Box<lsmith_changes_t>>) {
    quietly((), || drop(changes));
}

/// Returns the next batch. If there is none yet, waits for one for at most `wait_ms` milliseconds.
/// Returns null if there is none then, and on error.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_changes_next(
    changes: Option<&mut lsmith_changes_t>,
    wait_ms: u64,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_change_batch_t>> {
    call(error, None, || {
        let changes = &mut given(changes, "feed")?.0;
        let found = match wait_ms {
            0 => changes.next_batch()?,
            _ => changes.wait(Duration::from_millis(wait_ms))?,
        };
        Ok(found.map(|batch| Box::new(lsmith_change_batch_t(batch))))
    })
}

/// Returns the sequence number from which a new feed continues this one.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_changes_next_sequence_number(changes: Option<&lsmith_changes_t>) -> u64 {
    changes.map_or(0, |changes| changes.0.next_seq().0)
}

/// Returns the number of changes in a batch.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_change_batch_count(batch: Option<&lsmith_change_batch_t>) -> usize {
    batch.map_or(0, |batch| batch.0.changes.len())
}

/// Returns what the change at `index` does. Puts its keyspace, key and value where the caller says;
/// they live as long as the batch. The keyspace is `keyspacelen` bytes, without a zero byte.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_change_batch_get(
    batch: Option<&lsmith_change_batch_t>,
    index: usize,
    keyspace: Option<&mut *const c_char>,
    keyspacelen: Option<&mut usize>,
    key: Option<&mut *const c_char>,
    keylen: Option<&mut usize>,
    value: Option<&mut *const c_char>,
    vallen: Option<&mut usize>,
) -> lsmith_change_kind_t {
    let Some(change) = batch.and_then(|batch| batch.0.changes.get(index)) else {
        return LSMITH_NO_CHANGE;
    };
    let (kind, first, second): (_, &[u8], &[u8]) = match change {
        Change::Put { key, value, .. }
        | Change::PutUntil { key, value, .. }
        | Change::Insert { key, value, .. } => (LSMITH_PUT, key, value),
        Change::Delete { key, .. } | Change::Remove { key, .. } => (LSMITH_DELETE, key, &[]),
        Change::Combine { key, operand, .. } => (LSMITH_MERGE, key, operand),
        Change::DeleteRange { start, end, .. } => {
            (LSMITH_DELETE_RANGE, start, end.as_deref().unwrap_or_default())
        }
        _ => return LSMITH_NO_CHANGE,
    };
    put(keyspace, keyspacelen, change.keyspace().as_bytes());
    put(key, keylen, first);
    put(value, vallen, second);
    kind
}

/// Destroys a batch of a feed.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_change_batch_destroy(batch: Option<Box<lsmith_change_batch_t>>) {
    quietly((), || drop(batch));
}

fn put(place: Option<&mut *const c_char>, len: Option<&mut usize>, bytes: &[u8]) {
    let start = lend(bytes, len);
    if let Some(place) = place {
        *place = start;
    }
}
