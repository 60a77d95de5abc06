//! Iterators, which seek, and step both ways.

use crate::bytes::{bytes, lend};
use crate::error::{Done, call, given, invalid, lsmith_error_t, quietly, tell};
use crate::keyspace::{lsmith_keyspace_t, range_of};
use crate::snapshot::lsmith_snapshot_t;
use bytes::Bytes;
use lsmith::{Cursor, prefix_bounds};
use std::ffi::c_char;
use std::ops::Bound;
use std::ptr;

/// An iterator over the entries of a keyspace at one moment. It is on an entry, or on none.
#[derive(Debug)]
pub struct lsmith_iterator_t {
    cursor: Cursor,
    /// The key and the value of the entry, lent by the cursor until it moves.
    entry: Option<(*const [u8], *const [u8])>,
    /// The error of the last move.
    error: Option<lsmith_error_t>,
}

/// Returns an iterator over what the keyspace holds at the snapshot `at`, or now if that is null.
/// It is on no entry. Returns null on error.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_create_iterator(
    keyspace: Option<&lsmith_keyspace_t>,
    at: Option<&lsmith_snapshot_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_iterator_t>> {
    create(keyspace, at, error, || Ok((Bound::Unbounded, Bound::Unbounded)))
}

/// Returns an iterator over the entries with keys from `start` up to, not including, `end`, as
/// `lsmith_create_iterator` does for all. A null pointer is no bound. It never leaves the range,
/// and reads nothing beyond it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_create_range_iterator(
    keyspace: Option<&lsmith_keyspace_t>,
    at: Option<&lsmith_snapshot_t>,
    start: *const c_char,
    startlen: usize,
    end: *const c_char,
    endlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_iterator_t>> {
    create(keyspace, at, error, || {
        // SAFETY: as the caller promises.
        let (start, end) = unsafe { range_of(start, startlen, end, endlen) }?;
        Ok((start.map(Bytes::copy_from_slice), end.map(Bytes::copy_from_slice)))
    })
}

/// Returns an iterator over the entries whose keys begin with `prefix`, as
/// `lsmith_create_range_iterator` does for a range.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_create_prefix_iterator(
    keyspace: Option<&lsmith_keyspace_t>,
    at: Option<&lsmith_snapshot_t>,
    prefix: *const c_char,
    prefixlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_iterator_t>> {
    // SAFETY: as the caller promises.
    create(keyspace, at, error, || Ok(prefix_bounds(unsafe { bytes(prefix, prefixlen) }?)))
}

fn create(
    keyspace: Option<&lsmith_keyspace_t>,
    at: Option<&lsmith_snapshot_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
    bounds: impl FnOnce() -> Done<(Bound<Bytes>, Bound<Bytes>)>,
) -> Option<Box<lsmith_iterator_t>> {
    call(error, None, || {
        let (keyspace, range) = (&given(keyspace, "keyspace")?.0, bounds()?);
        let cursor = match at {
            Some(at) => at.0.cursor_within(keyspace, range),
            None => keyspace.cursor_within(range),
        };
        Ok(Some(Box::new(lsmith_iterator_t { cursor, entry: None, error: None })))
    })
}

/// Destroys an iterator.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_destroy(iter: Option<Box<lsmith_iterator_t>>) {
    quietly((), || drop(iter));
}

/// Returns true if the iterator is on an entry. If it is not, `lsmith_iter_get_error` tells whether
/// the last move failed.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_valid(iter: Option<&lsmith_iterator_t>) -> bool {
    iter.is_some_and(|iter| iter.entry.is_some())
}

/// Goes to the first entry.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_seek_to_first(iter: Option<&mut lsmith_iterator_t>) {
    go(iter, |cursor| Ok(cursor.first()?));
}

/// Goes to the last entry.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_seek_to_last(iter: Option<&mut lsmith_iterator_t>) {
    go(iter, |cursor| Ok(cursor.last()?));
}

/// Goes to the first entry whose key is `key` or greater.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_iter_seek(
    iter: Option<&mut lsmith_iterator_t>,
    key: *const c_char,
    keylen: usize,
) {
    // SAFETY: as the caller promises.
    go(iter, |cursor| Ok(cursor.seek(unsafe { bytes(key, keylen) }?)?));
}

/// Goes to the last entry whose key is `key` or smaller.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_iter_seek_for_prev(
    iter: Option<&mut lsmith_iterator_t>,
    key: *const c_char,
    keylen: usize,
) {
    // SAFETY: as the caller promises.
    go(iter, |cursor| Ok(cursor.seek_back(unsafe { bytes(key, keylen) }?)?));
}

/// Goes to the next entry. Before the first one, that is the first one.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_next(iter: Option<&mut lsmith_iterator_t>) {
    go(iter, |cursor| Ok(cursor.next()?));
}

/// Goes to the entry before. Behind the last one, that is the last one.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_prev(iter: Option<&mut lsmith_iterator_t>) {
    go(iter, |cursor| Ok(cursor.prev()?));
}

/// Returns the key that the iterator is on, valid until the iterator moves, and puts its length
/// into `keylen`. Returns null if it is on no entry.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_key(
    iter: Option<&lsmith_iterator_t>,
    keylen: Option<&mut usize>,
) -> *const c_char {
    part(iter, keylen, |(key, _)| key)
}

/// Returns the value that the iterator is on, as `lsmith_iter_key` does the key.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_value(
    iter: Option<&lsmith_iterator_t>,
    vallen: Option<&mut usize>,
) -> *const c_char {
    part(iter, vallen, |(_, value)| value)
}

/// Tells of the error of the last move, if it failed, and forgets it. After an error the next step
/// tries again, or goes on behind the key if the error is one of a single key.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_iter_get_error(
    iter: Option<&mut lsmith_iterator_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) {
    let found = match iter {
        Some(iter) => iter.error.take(),
        None => Some(invalid("expected an iterator, found a null pointer")),
    };
    if let Some(found) = found {
        tell(error, found);
    }
}

/// An entry that a cursor lends.
type Lent<'a> = Option<(&'a [u8], &'a [u8])>;

fn go(
    iter: Option<&mut lsmith_iterator_t>,
    step: impl for<'a> FnOnce(&'a mut Cursor) -> Done<Lent<'a>>,
) {
    let Some(lsmith_iterator_t { cursor, entry, error }) = iter else { return };
    (*entry, *error) = (None, None);
    let mut place = None;
    *entry = call(Some(&mut place), None, || {
        Ok(step(cursor)?.map(|(key, value)| (ptr::from_ref(key), ptr::from_ref(value))))
    });
    *error = place.map(|error| *error);
}

fn part(
    iter: Option<&lsmith_iterator_t>,
    len: Option<&mut usize>,
    choose: impl FnOnce((*const [u8], *const [u8])) -> *const [u8],
) -> *const c_char {
    let Some(entry) = iter.and_then(|iter| iter.entry) else {
        lend(&[], len);
        return ptr::null();
    };
    // SAFETY: the cursor has not moved since it lent the entry. Moves forget it first.
    lend(unsafe { &*choose(entry) }, len)
}
