//! Batches (write batches).

use crate::bytes::bytes;
use crate::error::{Done, call, given, lsmith_error_t, quietly};
use crate::keyspace::{lsmith_keyspace_t, range_of};
use crate::options::{lsmith_persist_t, mode_of};
use crate::store::lsmith_t;
use lsmith::{Batch, Keyspace};
use std::ffi::c_char;

/// Writes to keyspaces of one store that take effect together.
#[derive(Debug)]
pub struct lsmith_writebatch_t(Batch);

/// Returns an empty batch.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_writebatch_create() -> Option<Box<lsmith_writebatch_t>> {
    quietly(None, || Some(Box::new(lsmith_writebatch_t(Batch::new()))))
}

/// Destroys a batch. What was not written is forgotten.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_writebatch_destroy(batch: Option<Box<lsmith_writebatch_t>>) {
    quietly((), || drop(batch));
}

/// Adds a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_writebatch_put(
    batch: Option<&mut lsmith_writebatch_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    key: *const c_char,
    keylen: usize,
    value: *const c_char,
    vallen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (bytes(key, keylen)?, bytes(value, vallen)?) };
        batch.put(keyspace, key, value);
        Ok(())
    })
}

/// Adds a delete.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_writebatch_delete(
    batch: Option<&mut lsmith_writebatch_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    key: *const c_char,
    keylen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: as the caller promises.
        batch.delete(keyspace, unsafe { bytes(key, keylen) }?);
        Ok(())
    })
}

/// Adds a delete of all keys from `start` up to, not including, `end`. A null pointer is no bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_writebatch_delete_range(
    batch: Option<&mut lsmith_writebatch_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    start: *const c_char,
    startlen: usize,
    end: *const c_char,
    endlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    add(batch, keyspace, error, |batch, keyspace| {
        // SAFETY: as the caller promises.
        batch.delete_range::<&[u8]>(keyspace, unsafe { range_of(start, startlen, end, endlen) }?);
        Ok(())
    })
}

/// Returns the number of writes in a batch.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_writebatch_count(batch: Option<&lsmith_writebatch_t>) -> usize {
    batch.map_or(0, |batch| batch.0.len())
}

/// Removes all writes from a batch.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_writebatch_clear(batch: Option<&mut lsmith_writebatch_t>) {
    quietly((), || {
        if let Some(batch) = batch {
            batch.0.clear();
        }
    });
}

/// Writes a batch, at once or not at all. If it is written, it is empty afterwards.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_write(
    store: Option<&lsmith_t>,
    mode: lsmith_persist_t,
    batch: Option<&mut lsmith_writebatch_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        let (store, batch) = (given(store, "store")?, given(batch, "batch")?);
        store.0.write(batch.0.clone(), mode_of(mode)?)?;
        batch.0.clear();
        Ok(true)
    })
}

fn add(
    batch: Option<&mut lsmith_writebatch_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
    change: impl FnOnce(&mut Batch, &Keyspace) -> Done<()>,
) -> bool {
    call(error, false, || {
        change(&mut given(batch, "batch")?.0, &given(keyspace, "keyspace")?.0)?;
        Ok(true)
    })
}
