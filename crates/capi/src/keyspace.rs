//! Keyspaces: writing and reading single keys, and what concerns one tree.

use crate::bytes::{bound, bytes, copy_out, lsmith_pinned_t, text};
use crate::error::{Done, call, given, lsmith_error_t, quietly};
use crate::options::{lsmith_persist_t, mode_of};
use crate::policy::lsmith_policy_t;
use crate::snapshot::lsmith_snapshot_t;
use lsmith::Keyspace;
use std::ffi::c_char;
use std::ops::Bound;
use std::ptr;
use std::sync::Arc;

/// A keyspace (column family): a sorted map from keys to values.
#[derive(Debug)]
pub struct lsmith_keyspace_t(pub(crate) Keyspace);

/// Destroys the handle.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_keyspace_destroy(keyspace: Option<Box<lsmith_keyspace_t>>) {
    quietly((), || drop(keyspace));
}

/// Writes a value. Returns true if it was written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_put(
    keyspace: Option<&lsmith_keyspace_t>,
    mode: lsmith_persist_t,
    key: *const c_char,
    keylen: usize,
    value: *const c_char,
    vallen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(keyspace, error, |keyspace| {
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (bytes(key, keylen)?, bytes(value, vallen)?) };
        keyspace.put_with(key, value, mode_of(mode)?).map_err(Into::into)
    })
}

/// Deletes a key, present or not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_delete(
    keyspace: Option<&lsmith_keyspace_t>,
    mode: lsmith_persist_t,
    key: *const c_char,
    keylen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(keyspace, error, |keyspace| {
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, keylen) }?;
        keyspace.delete_with(key, mode_of(mode)?).map_err(Into::into)
    })
}

/// Deletes all keys from `start` up to, not including, `end`. A null pointer is no bound. It is as
/// durable as the store's option `persist` says.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_delete_range(
    keyspace: Option<&lsmith_keyspace_t>,
    start: *const c_char,
    startlen: usize,
    end: *const c_char,
    endlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(keyspace, error, |keyspace| {
        // SAFETY: as the caller promises.
        let range = unsafe { range_of(start, startlen, end, endlen) }?;
        keyspace.delete_range::<&[u8]>(range).map_err(Into::into)
    })
}

/// Hands an operand to the keyspace's operator (merge operator), which combines it with the value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_merge(
    keyspace: Option<&lsmith_keyspace_t>,
    key: *const c_char,
    keylen: usize,
    operand: *const c_char,
    operandlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(keyspace, error, |keyspace| {
        // SAFETY: as the caller promises.
        let (key, operand) = unsafe { (bytes(key, keylen)?, bytes(operand, operandlen)?) };
        keyspace.combine(key, operand).map_err(Into::into)
    })
}

/// Returns the value of a key at the snapshot `at`, or now if that is null. Puts its length into
/// `vallen`; a zero byte follows the value. The caller frees it. Returns null if the key is absent,
/// and on error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_get(
    keyspace: Option<&lsmith_keyspace_t>,
    at: Option<&lsmith_snapshot_t>,
    key: *const c_char,
    keylen: usize,
    vallen: Option<&mut usize>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> *mut c_char {
    call(error, ptr::null_mut(), || {
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, keylen) }?;
        let keyspace = &given(keyspace, "keyspace")?.0;
        let copy = |value: &[u8]| (value.len(), copy_out(value));
        let found = match at {
            Some(at) => at.0.get_with(keyspace, key, copy)?,
            None => keyspace.get_with(key, copy)?,
        };
        let Some((len, copied)) = found else { return Ok(ptr::null_mut()) };
        if let Some(vallen) = vallen {
            *vallen = len;
        }
        copied
    })
}

/// Returns the value of a key without a copy, where files are mapped. Otherwise as `lsmith_get`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_get_pinned(
    keyspace: Option<&lsmith_keyspace_t>,
    at: Option<&lsmith_snapshot_t>,
    key: *const c_char,
    keylen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_pinned_t>> {
    call(error, None, || {
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, keylen) }?;
        let keyspace = &given(keyspace, "keyspace")?.0;
        let found = match at {
            Some(at) => at.0.get(keyspace, key)?,
            None => keyspace.get(key)?,
        };
        Ok(found.map(lsmith_pinned_t::new))
    })
}

/// Returns true if the key is present at the snapshot `at`, or now if that is null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_contains(
    keyspace: Option<&lsmith_keyspace_t>,
    at: Option<&lsmith_snapshot_t>,
    key: *const c_char,
    keylen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        // SAFETY: as the caller promises.
        let key = unsafe { bytes(key, keylen) }?;
        let keyspace = &given(keyspace, "keyspace")?.0;
        Ok(match at {
            Some(at) => at.0.contains(keyspace, key)?,
            None => keyspace.contains(key)?,
        })
    })
}

/// Merges all runs that have keys from `start` up to, not including, `end` into one. A null pointer
/// is no bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_compact_range(
    keyspace: Option<&lsmith_keyspace_t>,
    start: *const c_char,
    startlen: usize,
    end: *const c_char,
    endlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(keyspace, error, |keyspace| {
        // SAFETY: as the caller promises.
        let range = unsafe { range_of(start, startlen, end, endlen) }?;
        keyspace.merge_range::<&[u8]>(range).map_err(Into::into)
    })
}

/// Returns the logical bytes of the entries from `start` up to `end`, roughly.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_approximate_size(
    keyspace: Option<&lsmith_keyspace_t>,
    start: *const c_char,
    startlen: usize,
    end: *const c_char,
    endlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> u64 {
    call(error, 0, || {
        // SAFETY: as the caller promises.
        let range = unsafe { range_of(start, startlen, end, endlen) }?;
        Ok(given(keyspace, "keyspace")?.0.approximate_bytes::<&[u8]>(range))
    })
}

/// Returns about how many keys have a value. Keys that were written again and not merged yet count
/// more than once, and deletes of absent keys make the count too small.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_approximate_len(
    keyspace: Option<&lsmith_keyspace_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> u64 {
    call(error, 0, || Ok(given(keyspace, "keyspace")?.0.approximate_len()))
}

/// Returns the spec of the merge policy. The caller frees the text.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_merge_policy(
    keyspace: Option<&lsmith_keyspace_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> *mut c_char {
    call(error, ptr::null_mut(), || {
        copy_out(given(keyspace, "keyspace")?.0.merge_policy().as_bytes())
    })
}

/// Changes the merge policy to the one that `spec` describes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_set_merge_policy(
    keyspace: Option<&lsmith_keyspace_t>,
    spec: *const c_char,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(keyspace, error, |keyspace| {
        // SAFETY: as the caller promises.
        keyspace.set_merge_policy(unsafe { text(spec, "a spec") }?).map_err(Into::into)
    })
}

/// Changes the merge policy to `policy`.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_use_merge_policy(
    keyspace: Option<&lsmith_keyspace_t>,
    policy: Option<&lsmith_policy_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(keyspace, error, |keyspace| {
        let policy = given(policy, "policy")?;
        keyspace.set_merge_policy(Arc::clone(&policy.0)).map_err(Into::into)
    })
}

/// Returns the tree and what else a policy sees of it, as text. The caller frees it.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_view(
    keyspace: Option<&lsmith_keyspace_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> *mut c_char {
    call(error, ptr::null_mut(), || {
        copy_out(given(keyspace, "keyspace")?.0.view().to_string().as_bytes())
    })
}

/// The ends of a range of keys.
pub(crate) type Ends<'a> = (Bound<&'a [u8]>, Bound<&'a [u8]>);

/// Returns the range of keys that two pointers are the bounds of.
///
/// # Safety
/// As [`bound`].
pub(crate) unsafe fn range_of<'a>(
    start: *const c_char,
    startlen: usize,
    end: *const c_char,
    endlen: usize,
) -> Done<Ends<'a>> {
    // SAFETY: as the caller promises.
    let (start, end) = unsafe { (bound(start, startlen)?, bound(end, endlen)?) };
    let start = start.map_or(Bound::Unbounded, Bound::Included);
    Ok((start, end.map_or(Bound::Unbounded, Bound::Excluded)))
}

/// Does what returns nothing.
fn act(
    keyspace: Option<&lsmith_keyspace_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
    action: impl FnOnce(&Keyspace) -> Done<()>,
) -> bool {
    call(error, false, || action(&given(keyspace, "keyspace")?.0).map(|()| true))
}
