//! LevelDB through its C interface.
#![allow(unsafe_code, reason = "a C library is called")]

use super::store::{Configs, Kind, Look, Settings, Store, Visit, Write};
use crate::data::Key;
use anyhow::{Result, bail};
use leveldb_sys as c;
use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{ptr, slice};

pub(super) const KIND: Kind = Kind {
    name: "leveldb",
    version: "LevelDB 1.22",
    differences: &[
        "LevelDB merges in one thread",
        "LevelDB cannot say when its merges have come to rest: settled when the process is quiet",
        "LevelDB copies the value of a get",
        "LevelDB's write buffer cannot be emptied before reads",
    ],
    configs: Configs::Named(&[]),
    open: |dir, settings| Ok(Box::new(LevelDb::open(dir, settings)?)),
};

/// Files held open: all of 2 MiB each that a large run makes.
const OPEN_FILES_MAX: c_int = 20_000;

struct LevelDb {
    db: *mut c::leveldb_t,
    reading: *mut c::leveldb_readoptions_t,
    writing: *mut c::leveldb_writeoptions_t,
    syncing: *mut c::leveldb_writeoptions_t,
}

// SAFETY: LevelDB's handle may be used by many threads; the options are never changed.
unsafe impl Send for LevelDb {}
// SAFETY: as above.
unsafe impl Sync for LevelDb {}

/// Calls a function of LevelDB that reports failure through its last parameter.
fn check<T>(call: impl FnOnce(*mut *mut c_char) -> T) -> Result<T> {
    let mut error = ptr::null_mut();
    let result = call(&mut error);
    if error.is_null() {
        return Ok(result);
    }
    // SAFETY: LevelDB has put a string there that is ours to free.
    let told = unsafe {
        let told = CStr::from_ptr(error).to_string_lossy().into_owned();
        c::leveldb_free(error.cast());
        told
    };
    bail!("LevelDB: {told}")
}

impl LevelDb {
    fn open(dir: &Path, settings: &Settings) -> Result<LevelDb> {
        let path = CString::new(dir.as_os_str().as_bytes())?;
        // SAFETY: every pointer comes from LevelDB; cache and filter live as long as the process.
        unsafe {
            let options = c::leveldb_options_create();
            c::leveldb_options_set_create_if_missing(options, 1);
            c::leveldb_options_set_write_buffer_size(options, settings.buffer_bytes / 2);
            c::leveldb_options_set_cache(
                options,
                c::leveldb_cache_create_lru(settings.cache_bytes),
            );
            let filter = c::leveldb_filterpolicy_create_bloom(c_int::from(settings.filter_bits));
            c::leveldb_options_set_filter_policy(options, filter);
            c::leveldb_options_set_compression(options, c::Compression::No);
            c::leveldb_options_set_max_open_files(options, OPEN_FILES_MAX);
            let opened = check(|error| c::leveldb_open(options, path.as_ptr(), error));
            c::leveldb_options_destroy(options);
            let db = opened?;
            let syncing = c::leveldb_writeoptions_create();
            c::leveldb_writeoptions_set_sync(syncing, 1);
            let reading = c::leveldb_readoptions_create();
            Ok(LevelDb { db, reading, writing: c::leveldb_writeoptions_create(), syncing })
        }
    }

    /// Visits entries from where `begin` puts an iterator.
    fn walk(
        &self,
        begin: impl FnOnce(*mut c::leveldb_iterator_t),
        step: unsafe extern "C" fn(*mut c::leveldb_iterator_t),
        visit: Visit<'_>,
    ) -> Result<()> {
        // SAFETY: the iterator is valid until it is destroyed; key and value are where LevelDB
        // says, until the next step.
        unsafe {
            let iterator = c::leveldb_create_iterator(self.db, self.reading);
            begin(iterator);
            while c::leveldb_iter_valid(iterator) != 0 {
                let mut key_bytes = 0_usize;
                let mut value_bytes = 0_usize;
                let key_start = c::leveldb_iter_key(iterator, &raw mut key_bytes);
                let value_start = c::leveldb_iter_value(iterator, &raw mut value_bytes);
                let key = slice::from_raw_parts(key_start.cast(), key_bytes);
                let value = slice::from_raw_parts(value_start.cast(), value_bytes);
                if !visit(key, value) {
                    break;
                }
                step(iterator);
            }
            let end = check(|error| c::leveldb_iter_get_error(iterator, error.cast()));
            c::leveldb_iter_destroy(iterator);
            end
        }
    }
}

impl Drop for LevelDb {
    fn drop(&mut self) {
        // SAFETY: nobody uses the pointers after this.
        unsafe {
            c::leveldb_close(self.db);
            c::leveldb_readoptions_destroy(self.reading);
            c::leveldb_writeoptions_destroy(self.writing);
            c::leveldb_writeoptions_destroy(self.syncing);
        }
    }
}

impl Store for LevelDb {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        let options = if sync { self.syncing } else { self.writing };
        let key_at = key.as_ptr().cast();
        let value_at = value.as_ptr().cast();
        // SAFETY: key and value have these lengths.
        check(|error| unsafe {
            c::leveldb_put(self.db, options, key_at, key.len(), value_at, value.len(), error);
        })
    }

    fn delete(&self, key: &Key) -> Result<()> {
        // SAFETY: the key has this length.
        check(|error| unsafe {
            c::leveldb_delete(self.db, self.writing, key.as_ptr().cast(), key.len(), error);
        })
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        // SAFETY: the batch is ours until it is destroyed; LevelDB copies keys and values.
        unsafe {
            let batch = c::leveldb_writebatch_create();
            for (key, value) in writes {
                let at = key.as_ptr().cast();
                match value {
                    Some(value) => {
                        let value_at = value.as_ptr().cast();
                        c::leveldb_writebatch_put(batch, at, key.len(), value_at, value.len());
                    }
                    None => c::leveldb_writebatch_delete(batch, at, key.len()),
                }
            }
            let done = check(|error| c::leveldb_write(self.db, self.writing, batch, error));
            c::leveldb_writebatch_destroy(batch);
            done
        }
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        let mut bytes = 0;
        let at = key.as_ptr().cast();
        // SAFETY: LevelDB gives null, or a copy of the value that is ours to free.
        let value = check(|error| unsafe {
            c::leveldb_get(self.db, self.reading, at, key.len(), &raw mut bytes, error)
        })?;
        if value.is_null() {
            return Ok(false);
        }
        // SAFETY: as above.
        unsafe {
            look(slice::from_raw_parts(value.cast(), bytes));
            c::leveldb_free(value.cast());
        }
        Ok(true)
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        // SAFETY: the iterator is valid, and the key has this length.
        let begin = |iterator| unsafe {
            match from {
                Some(from) => c::leveldb_iter_seek(iterator, from.as_ptr().cast(), from.len()),
                None => c::leveldb_iter_seek_to_first(iterator),
            }
        };
        self.walk(begin, c::leveldb_iter_next, visit)
    }

    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()> {
        // SAFETY: the iterator is valid.
        let begin = |iterator| unsafe { c::leveldb_iter_seek_to_last(iterator) };
        self.walk(begin, c::leveldb_iter_prev, visit)
    }

    fn settle(&self) -> Result<bool> {
        Ok(false)
    }

    fn property(&self, name: &str) -> Result<Option<String>> {
        let name = CString::new(name)?;
        // SAFETY: LevelDB gives null, or a string that is ours to free.
        unsafe {
            let value = c::leveldb_property_value(self.db, name.as_ptr());
            if value.is_null() {
                return Ok(None);
            }
            let text = CStr::from_ptr(value).to_string_lossy().into_owned();
            c::leveldb_free(value.cast());
            Ok(Some(text))
        }
    }
}
