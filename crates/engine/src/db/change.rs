//! A write as a value of its own: in change feeds, and in batches that are built without a store.

use crate::group::MEMBER_BYTES;
use crate::keyspace::KeyspaceShared;
use bytes::Bytes;
use lsmith_storage::expiry::{EXPIRY_BYTES, expires_at};
use lsmith_storage::format::{KEY_BYTES_MAX, OpKind};
use lsmith_tree::EntryKind;
use std::ops::{Bound, RangeBounds};
use std::sync::Arc;

/// A write, with the name of its keyspace.
///
/// [Change feeds](crate::Changes) return writes that were made. A
/// [`DetachedBatch`](crate::DetachedBatch) holds writes that may be made.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Change {
    /// A key gets a value: by a put, and in feeds also by an insert.
    Put {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// A key gets a value that expires.
    PutUntil {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
        /// The time from which on the key is absent.
        time: u64,
    },
    /// A key that the writer promises to be absent gets a value
    /// ([`Batch::put_new_unchecked`](crate::Batch::put_new_unchecked)). Feeds say
    /// [`Put`](Change::Put).
    Insert {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Bytes,
        /// The value.
        value: Bytes,
    },
    /// The value of a key is combined with an operand.
    Combine {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Bytes,
        /// The operand.
        operand: Bytes,
    },
    /// A key is deleted, and in feeds also removed.
    Delete {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Bytes,
    },
    /// A key that the writer promises to be present, and to have been inserted once, is deleted
    /// ([`Batch::delete_single_unchecked`](crate::Batch::delete_single_unchecked)). Feeds say
    /// [`Delete`](Change::Delete).
    Remove {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The key.
        key: Bytes,
    },
    /// All keys from `start` up to, not including, `end` are deleted.
    DeleteRange {
        /// The keyspace.
        keyspace: Arc<str>,
        /// The first key; empty for no bound.
        start: Bytes,
        /// The first key behind the range; `None` for no bound.
        end: Option<Bytes>,
    },
}

impl Change {
    /// Returns the name of the keyspace.
    pub fn keyspace(&self) -> &str {
        match self {
            Change::Put { keyspace, .. }
            | Change::PutUntil { keyspace, .. }
            | Change::Insert { keyspace, .. }
            | Change::Combine { keyspace, .. }
            | Change::Delete { keyspace, .. }
            | Change::Remove { keyspace, .. }
            | Change::DeleteRange { keyspace, .. } => keyspace,
        }
    }

    /// Returns the key and the value or operand, or the two ends of a range. What is missing is
    /// empty.
    pub(super) fn parts(&self) -> (&[u8], &[u8]) {
        match self {
            Change::Put { key, value, .. }
            | Change::PutUntil { key, value, .. }
            | Change::Insert { key, value, .. }
            | Change::Combine { key, operand: value, .. } => (key, value),
            Change::Delete { key, .. } | Change::Remove { key, .. } => (key, &[]),
            Change::DeleteRange { start, end, .. } => (start, end.as_deref().unwrap_or_default()),
        }
    }

    /// Returns the kind of the write in the log.
    pub(super) fn kind(&self) -> OpKind {
        OpKind::Entry(match self {
            Change::Put { .. } => EntryKind::Put,
            Change::PutUntil { .. } => EntryKind::Expiring,
            Change::Insert { .. } => EntryKind::Insert,
            Change::Combine { .. } => EntryKind::Combine,
            Change::Delete { .. } => EntryKind::Delete,
            Change::Remove { .. } => EntryKind::Remove,
            Change::DeleteRange { .. } => return OpKind::DeleteRange,
        })
    }

    /// Returns the write of `kind` with these parts. The value of one that expires begins with its
    /// time.
    pub(super) fn new(kind: OpKind, keyspace: Arc<str>, key: Bytes, value: Bytes) -> Change {
        let OpKind::Entry(kind) = kind else {
            let end = (!value.is_empty()).then_some(value);
            return Change::DeleteRange { keyspace, start: key, end };
        };
        match kind {
            // Logs have no references.
            EntryKind::Put | EntryKind::PutReference => Change::Put { keyspace, key, value },
            EntryKind::Insert | EntryKind::InsertReference => {
                Change::Insert { keyspace, key, value }
            }
            EntryKind::Delete => Change::Delete { keyspace, key },
            EntryKind::Remove => Change::Remove { keyspace, key },
            EntryKind::Combine => Change::Combine { keyspace, key, operand: value },
            EntryKind::Expiring => {
                let time = expires_at(&value);
                let value = value.slice(EXPIRY_BYTES.min(value.len())..);
                Change::PutUntil { keyspace, key, value, time }
            }
        }
    }

    /// Returns the write of `kind` to `tree`, whose keys are as the tree has them. `share` turns a
    /// part of `key` or `value` into bytes of their own.
    pub(super) fn of_op<'a>(
        tree: &KeyspaceShared,
        kind: OpKind,
        (key, value): (&'a [u8], &'a [u8]),
        share: impl Fn(&'a [u8]) -> Bytes,
    ) -> Change {
        let keyspace = Arc::from(tree.name_of(key));
        let member_bytes = if tree.members.is_some() { MEMBER_BYTES } else { 0 };
        let value = match kind {
            OpKind::Entry(_) => value,
            // Without an end of its own, the range ends at the next keyspace of the group.
            OpKind::DeleteRange if member_bytes > 0 && value.first() != key.first() => &[],
            OpKind::DeleteRange => value.get(member_bytes..).unwrap_or_default(),
        };
        let key = key.get(member_bytes..).unwrap_or_default();
        Change::new(kind, keyspace, share(key), share(value))
    }
}

/// Returns the first key of `range` and the first behind it, or `None` if no key lies in it.
pub(super) fn range_ends<K: AsRef<[u8]>>(
    range: impl RangeBounds<K>,
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let above = |key: &K| [key.as_ref(), &[0]].concat();
    let start = match range.start_bound() {
        Bound::Unbounded => Vec::new(),
        Bound::Included(key) => key.as_ref().to_vec(),
        Bound::Excluded(key) => above(key),
    };
    let end = match range.end_bound() {
        Bound::Unbounded => None,
        Bound::Excluded(key) => Some(key.as_ref().to_vec()),
        Bound::Included(key) => Some(above(key)),
    };
    // No key is empty, and none lies below one zero byte.
    let is_low = |end: &Vec<u8>| start.is_empty() && **end <= [0][..];
    if end.as_ref().is_some_and(|end| *end == start || is_low(end)) {
        return None;
    }
    // In the log an end that is empty is none.
    let end = end.map(|end| if end.is_empty() { vec![0] } else { end });
    within_keys(start, end)
}

/// Returns the same range of keys with bounds that are no longer than a log can have them, or
/// `None` if no key can lie in it. A range that ends before it begins stays as it is, to be
/// refused.
pub(super) fn within_keys(
    start: Vec<u8>,
    end: Option<Vec<u8>>,
) -> Option<(Vec<u8>, Option<Vec<u8>>)> {
    let is_turned =
        |start: &[u8], end: &Option<Vec<u8>>| end.as_ref().is_some_and(|end| *start >= **end);
    if is_turned(&start, &end) {
        return Some((start, end));
    }
    // No key is longer than these first bytes. So the next key differs in them.
    let start = match start.get(..KEY_BYTES_MAX).filter(|first| first.len() < start.len()) {
        Some(first) => above_all_that_begin_with(first)?,
        None => start,
    };
    let shortened = |end: Vec<u8>| match end.get(..KEY_BYTES_MAX) {
        Some(first) if first.len() < end.len() => [first, &[0]].concat(),
        _ => end,
    };
    let end = end.map(shortened);
    (!is_turned(&start, &end)).then_some((start, end))
}

/// Returns the first key above all that begin with `first`, or `None` if there is none.
fn above_all_that_begin_with(first: &[u8]) -> Option<Vec<u8>> {
    let last = first.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut above = first[..=last].to_vec();
    above[last] += 1;
    Some(above)
}
