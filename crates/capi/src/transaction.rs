//! Transactions.

use crate::bytes::{bytes, lsmith_pinned_t};
use crate::error::{Done, call, given, invalid, lsmith_error_t, quietly};
use crate::keyspace::{lsmith_keyspace_t, range_of};
use crate::options::{lsmith_persist_t, mode_of};
use crate::store::lsmith_t;
use lsmith::{Isolation, Keyspace, Transaction};
use std::ffi::c_char;

/// An optimistic transaction: its reads and writes are checked when it commits.
#[derive(Debug)]
pub struct lsmith_transaction_t(Transaction);

/// What a transaction checks when it commits.
pub type lsmith_isolation_t = u32;

/// Nobody else has written what it wrote.
pub const LSMITH_SNAPSHOT: lsmith_isolation_t = 0;
/// Nobody else has written what it read or wrote.
pub const LSMITH_SERIALIZABLE: lsmith_isolation_t = 1;

/// Begins a transaction. Returns null on error.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_transaction_begin(
    store: Option<&lsmith_t>,
    isolation: lsmith_isolation_t,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_transaction_t>> {
    call(error, None, || {
        let isolation = match isolation {
            LSMITH_SNAPSHOT => Isolation::Snapshot,
            LSMITH_SERIALIZABLE => Isolation::Serializable,
            other => {
                return Err(invalid(format!(
                    "expected a lsmith_isolation_t of 0 or 1, not {other}"
                )));
            }
        };
        let transaction = given(store, "store")?.0.transaction(isolation);
        Ok(Some(Box::new(lsmith_transaction_t(transaction))))
    })
}

/// Commits and destroys a transaction. Returns true if its writes took effect. `LSMITH_CONFLICT`
/// says that others were faster: begin a new one.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_transaction_commit(
    transaction: Option<Box<lsmith_transaction_t>>,
    mode: lsmith_persist_t,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        given(transaction, "transaction")?.0.commit(mode_of(mode)?)?;
        Ok(true)
    })
}

/// Destroys a transaction without a write.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_transaction_rollback(transaction: Option<Box<lsmith_transaction_t>>) {
    quietly((), || drop(transaction));
}

/// Returns the value of a key as the transaction sees it, or null if it is absent, and on error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_transaction_get(
    transaction: Option<&mut lsmith_transaction_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    key: *const c_char,
    keylen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_pinned_t>> {
    with(transaction, keyspace, error, None, |transaction, keyspace| {
        // SAFETY: as the caller promises.
        let found = transaction.get(keyspace, unsafe { bytes(key, keylen) }?)?;
        Ok(found.map(lsmith_pinned_t::new))
    })
}

/// As `lsmith_transaction_get`, and the commit fails if others write the key before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_transaction_get_for_update(
    transaction: Option<&mut lsmith_transaction_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    key: *const c_char,
    keylen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_pinned_t>> {
    with(transaction, keyspace, error, None, |transaction, keyspace| {
        // SAFETY: as the caller promises.
        let found = transaction.get_for_update(keyspace, unsafe { bytes(key, keylen) }?)?;
        Ok(found.map(lsmith_pinned_t::new))
    })
}

/// Writes a value in the transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_transaction_put(
    transaction: Option<&mut lsmith_transaction_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    key: *const c_char,
    keylen: usize,
    value: *const c_char,
    vallen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    with(transaction, keyspace, error, false, |transaction, keyspace| {
        // SAFETY: as the caller promises.
        let (key, value) = unsafe { (bytes(key, keylen)?, bytes(value, vallen)?) };
        transaction.put(keyspace, key, value)?;
        Ok(true)
    })
}

/// Deletes a key in the transaction.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_transaction_delete(
    transaction: Option<&mut lsmith_transaction_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    key: *const c_char,
    keylen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    with(transaction, keyspace, error, false, |transaction, keyspace| {
        // SAFETY: as the caller promises.
        transaction.delete(keyspace, unsafe { bytes(key, keylen) }?)?;
        Ok(true)
    })
}

/// Deletes a range of keys in the transaction. A null pointer is no bound.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_transaction_delete_range(
    transaction: Option<&mut lsmith_transaction_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    start: *const c_char,
    startlen: usize,
    end: *const c_char,
    endlen: usize,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    with(transaction, keyspace, error, false, |transaction, keyspace| {
        // SAFETY: as the caller promises.
        let range = unsafe { range_of(start, startlen, end, endlen) }?;
        transaction.delete_range::<&[u8]>(keyspace, range)?;
        Ok(true)
    })
}

/// Marks a place to return to.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_transaction_set_savepoint(transaction: Option<&mut lsmith_transaction_t>) {
    quietly((), || {
        if let Some(transaction) = transaction {
            transaction.0.set_savepoint();
        }
    });
}

/// Forgets the writes since the last savepoint, and the savepoint.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_transaction_rollback_to_savepoint(
    transaction: Option<&mut lsmith_transaction_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        given(transaction, "transaction")?.0.rollback_to_savepoint()?;
        Ok(true)
    })
}

fn with<T>(
    transaction: Option<&mut lsmith_transaction_t>,
    keyspace: Option<&lsmith_keyspace_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
    otherwise: T,
    work: impl FnOnce(&mut Transaction, &Keyspace) -> Done<T>,
) -> T {
    call(error, otherwise, || {
        work(&mut given(transaction, "transaction")?.0, &given(keyspace, "keyspace")?.0)
    })
}
