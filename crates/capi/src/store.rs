//! The store.

use crate::bytes::{copy_out, optional_text, text};
use crate::error::{Done, call, given, invalid, lsmith_error_t, quietly};
use crate::keyspace::lsmith_keyspace_t;
use crate::options::{self, lsmith_persist_t, mode_of};
use crate::policy::lsmith_policy_t;
use crate::shared::lsmith_shared_t;
use lsmith::{Builder, Store};
use std::ffi::c_char;
use std::fmt::Write;
use std::ptr;
use std::sync::Arc;

/// An open store: a directory with keyspaces.
#[derive(Debug)]
pub struct lsmith_t(pub(crate) Store);

/// Opens the store in the directory `path`, or makes one. `options` is null or a text such as
/// `memtable_bytes=64MiB, policy=tiered(ratio=4)`; docs/c.md has all names. Returns null on error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_open(
    path: *const c_char,
    options: *const c_char,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_t>> {
    // SAFETY: as the caller promises.
    call(error, None, || unsafe { open(path, options, options::of_store) }.map(Some))
}

/// Opens the store in the directory `path`, or makes one, with the memory and the threads that
/// `shared` has for several stores. `options` cannot have `memory_bytes` or `cache_bytes` then.
/// Returns null on error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_open_shared(
    path: *const c_char,
    options: *const c_char,
    shared: Option<&lsmith_shared_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_t>> {
    call(error, None, || {
        let shared = given(shared, "handle of what stores share")?;
        let shared = |builder, text: &str| {
            options::refuse(text, &["memory_bytes", "cache_bytes"], "are shared")?;
            options::of_store(shared.give_to(builder), text)
        };
        // SAFETY: as the caller promises.
        unsafe { open(path, options, shared) }.map(Some)
    })
}

/// Opens the store in the directory `path`, or makes one, with `policy` as the policy of new
/// keyspaces, and of keyspaces that had a policy of its name. Returns null on error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_open_with_policy(
    path: *const c_char,
    options: *const c_char,
    policy: Option<&lsmith_policy_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_t>> {
    call(error, None, || {
        let policy = given(policy, "policy")?;
        let with_policy = |builder, text: &str| {
            options::refuse(text, &["policy"], "was given as a handle")?;
            Ok(options::of_store(builder, text)?.policy(Arc::clone(&policy.0)))
        };
        // SAFETY: as the caller promises.
        unsafe { open(path, options, with_policy) }.map(Some)
    })
}

unsafe fn open(
    path: *const c_char,
    options: *const c_char,
    set: impl FnOnce(Builder, &str) -> Done<Builder>,
) -> Done<Box<lsmith_t>> {
    // SAFETY: as the caller promises.
    let (path, options) = unsafe { (text(path, "a path")?, optional_text(options, "options")?) };
    let builder = set(Store::builder(path), options.unwrap_or_default())?;
    Ok(Box::new(lsmith_t(builder.open()?)))
}

/// Destroys the handle. The store closes when no keyspace, batch, iterator, snapshot, transaction
/// or feed of it is left.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_close(store: Option<Box<lsmith_t>>) {
    quietly((), || drop(store));
}

/// Returns the keyspace (column family) `name`, which is made if it is missing. `options` is null
/// or a text such as `policy=leveled(ratio=8), prefix_bytes=8`. Returns null on error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_keyspace(
    store: Option<&lsmith_t>,
    name: *const c_char,
    options: *const c_char,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> Option<Box<lsmith_keyspace_t>> {
    call(error, None, || {
        // SAFETY: as the caller promises.
        let (name, asked) = unsafe { (text(name, "a name")?, optional_text(options, "options")?) };
        let options = options::of_keyspace(asked.unwrap_or_default())?;
        let keyspace = given(store, "store")?.0.keyspace_with(name, &options)?;
        Ok(Some(Box::new(lsmith_keyspace_t(keyspace))))
    })
}

/// Removes the keyspace `name` with all that it holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_drop_keyspace(
    store: Option<&lsmith_t>,
    name: *const c_char,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    call(error, false, || {
        // SAFETY: as the caller promises.
        let name = unsafe { text(name, "a name") }?;
        given(store, "store")?.0.drop_keyspace(name)?;
        Ok(true)
    })
}

/// Returns the names of all keyspaces, one on each line. The caller frees the text.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_list_keyspaces(
    store: Option<&lsmith_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> *mut c_char {
    call(error, ptr::null_mut(), || {
        let names = given(store, "store")?.0.keyspaces();
        copy_out(names.join("\n").as_bytes())
    })
}

/// Makes all writes so far survive what `mode` says.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_flush_wal(
    store: Option<&lsmith_t>,
    mode: lsmith_persist_t,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(store, error, |store| store.persist(mode_of(mode)?).map_err(Into::into))
}

/// Seals and flushes the memtables of all keyspaces.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_flush(
    store: Option<&lsmith_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(store, error, |store| store.flush().map_err(Into::into))
}

/// Waits until no merge (compaction) is due.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_wait_for_compact(
    store: Option<&lsmith_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(store, error, |store| store.settle().map_err(Into::into))
}

/// Has work tried again that failed in the background.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_retry(store: Option<&lsmith_t>) {
    quietly((), || {
        if let Some(store) = store {
            store.0.retry();
        }
    });
}

/// Makes a copy of the store, as it is now, in the new directory `path`. Files are linked where
/// that can be done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_checkpoint_create(
    store: Option<&lsmith_t>,
    path: *const c_char,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> bool {
    act(store, error, |store| {
        // SAFETY: as the caller promises.
        store.checkpoint(unsafe { text(path, "a path") }?)?;
        Ok(())
    })
}

/// Looks for damage in all files. Returns the number of damaged places; the error tells of the
/// first of them.
#[unsafe(no_mangle)]
pub extern "C" fn lsmith_verify(
    store: Option<&lsmith_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> usize {
    let mut count = 0;
    call(error, (), || {
        let found = given(store, "store")?.0.verify()?;
        count = found.len();
        found.into_iter().next().map_or(Ok(()), |first| Err(first.into()))
    });
    count
}

/// Returns what the store tells of itself. The caller frees the text. `stats`: all counts since the
/// store was opened, a name and a number on each line. `memory`: the bytes that it holds in memory,
/// by part, and their limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn lsmith_property_value(
    store: Option<&lsmith_t>,
    name: *const c_char,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
) -> *mut c_char {
    call(error, ptr::null_mut(), || {
        let store = &given(store, "store")?.0;
        let mut told = String::new();
        // SAFETY: as the caller promises.
        match unsafe { text(name, "a name") }? {
            "stats" => {
                for (name, count) in store.stats().fields() {
                    // Writing to a string cannot fail.
                    let _ = writeln!(told, "{name} {count}");
                }
            }
            "memory" => {
                let memory = store.memory();
                for (name, bytes) in
                    memory.parts().chain(memory.limit.map(|limit| ("limit", limit)))
                {
                    let _ = writeln!(told, "{name} {bytes}");
                }
            }
            other => {
                return Err(invalid(format!("expected `stats` or `memory`, found `{other}`")));
            }
        }
        copy_out(told.as_bytes())
    })
}

/// Does what returns nothing.
fn act(
    store: Option<&lsmith_t>,
    error: Option<&mut Option<Box<lsmith_error_t>>>,
    action: impl FnOnce(&Store) -> Done<()>,
) -> bool {
    call(error, false, || action(&given(store, "store")?.0).map(|()| true))
}
