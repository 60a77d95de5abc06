//! The store.

use crate::error::{bad_argument, of_store};
use crate::held::{Held, Root};
use crate::transaction::Transaction;
use lsmith::cipher::{Keys, MasterKey};
use lsmith::{PersistMode, RecordOptions, Recording, Store as Opened};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use std::collections::BTreeMap;
use std::ops::Bound as End;
use std::path::PathBuf;
use std::sync::Arc;

type Pair<'py> = (Bound<'py, PyBytes>, Bound<'py, PyBytes>);

/// Returns the mode with this name.
pub(crate) fn mode_of(name: &str) -> PyResult<PersistMode> {
    match name {
        "buffer" => Ok(PersistMode::Buffer),
        "sync_data" => Ok(PersistMode::SyncData),
        "sync_all" => Ok(PersistMode::SyncAll),
        _ => Err(bad_argument(format!(
            "unknown mode `{name}`; expected one of: buffer, sync_data, sync_all"
        ))),
    }
}

/// Returns the options of a recording of one key in `one_in`.
fn recorded(one_in: u32, base: bool) -> RecordOptions {
    RecordOptions { one_in, base, ..RecordOptions::default() }
}

/// Returns what is known of a recording.
fn described<'py>(py: Python<'py>, recording: &Recording) -> PyResult<Bound<'py, PyDict>> {
    let Recording { path, one_in, ops, base_keys, has_base, bytes, ended, .. } = recording;
    let found = PyDict::new(py);
    found.set_item("path", path)?;
    found.set_item("one_in", one_in)?;
    found.set_item("ops", ops)?;
    found.set_item("base_keys", base_keys)?;
    found.set_item("has_base", has_base)?;
    found.set_item("bytes", bytes)?;
    found.set_item("ended", ended)?;
    Ok(found)
}

/// An open store. `close` closes it with all that was made from it, and so does the end of a `with`
/// block.
#[pyclass(frozen, module = "lsmith")]
pub(crate) struct Store(Arc<Root>);

#[pymethods]
impl Store {
    /// Opens the store in a directory, or makes one.
    #[new]
    #[pyo3(signature = (
        path, policy=None, memtable_bytes=None, threads=None, lockstep=false, record=None,
        record_one_in=64, key_file=None, older_key_file=None
    ))]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        policy: Option<&str>,
        memtable_bytes: Option<u64>,
        threads: Option<usize>,
        lockstep: bool,
        record: Option<PathBuf>,
        record_one_in: u32,
        key_file: Option<PathBuf>,
        older_key_file: Option<PathBuf>,
    ) -> PyResult<Store> {
        let mut builder = Opened::builder(path).lockstep(lockstep);
        if let Some(policy) = policy {
            builder = builder.policy(policy);
        }
        if let Some(bytes) = memtable_bytes {
            builder = builder.memtable_bytes(bytes);
        }
        if let Some(threads) = threads {
            builder = builder.threads(threads);
        }
        if let Some(folder) = record {
            builder = builder.record(folder, recorded(record_one_in, true));
        }
        let key = |file: PathBuf| MasterKey::read_key_file(&file).map_err(bad_argument);
        let older = older_key_file.map(key).transpose()?;
        match (key_file.map(key).transpose()?.map(Keys::new), older) {
            (Some(keys), Some(older)) => builder = builder.keys(keys.and_older(older)),
            (Some(keys), None) => builder = builder.keys(keys),
            (None, Some(_)) => return Err(bad_argument("`older_key_file` needs `key_file`")),
            (None, None) => {}
        }
        let store = py.detach(|| builder.open()).map_err(|error| of_store(&error))?;
        Ok(Store(Arc::new(Root::new(store))))
    }

    /// Returns the keyspace with this name, which is made if it is missing.
    fn keyspace(&self, name: &str) -> PyResult<Keyspace> {
        let keyspace = self.0.store()?.keyspace(name).map_err(|error| of_store(&error))?;
        Ok(Keyspace { held: self.0.hold(keyspace), root: Arc::clone(&self.0) })
    }

    /// Returns the names of all keyspaces.
    fn keyspaces(&self) -> PyResult<Vec<String>> {
        Ok(self.0.store()?.keyspaces())
    }

    /// Writes a batch, at once or not at all.
    #[pyo3(signature = (batch, mode="buffer"))]
    fn write(&self, py: Python<'_>, batch: &Batch, mode: &str) -> PyResult<()> {
        let (store, mode) = (self.0.store()?, mode_of(mode)?);
        let batch = batch.0.with(std::mem::take)?;
        py.detach(|| store.write(batch, mode)).map_err(|error| of_store(&error))
    }

    /// Returns a snapshot: what the store holds now.
    fn snapshot(&self) -> PyResult<Snapshot> {
        let held = self.0.hold(self.0.store()?.snapshot());
        Ok(Snapshot { held, root: Arc::clone(&self.0) })
    }

    /// Begins a transaction: `serializable` or `snapshot`.
    #[pyo3(signature = (isolation="serializable"))]
    fn transaction(&self, isolation: &str) -> PyResult<Transaction> {
        Transaction::begin(&self.0, isolation)
    }

    /// Begins a recording of one key in `one_in` in a new file in `folder`, and returns its path.
    /// Without `base`, the keys that are there already are left out.
    #[pyo3(signature = (folder, one_in=64, base=true))]
    fn record(
        &self,
        py: Python<'_>,
        folder: PathBuf,
        one_in: u32,
        base: bool,
    ) -> PyResult<PathBuf> {
        let store = self.0.store()?;
        let options = recorded(one_in, base);
        py.detach(|| store.record(folder, &options)).map_err(|error| of_store(&error))
    }

    /// Returns what is known of the recording under way, or None.
    fn recording<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = self.0.store()?.recording();
        found.map(|recording| described(py, &recording)).transpose()
    }

    /// Ends the recording under way, and returns what is known of it, or None.
    fn stop_recording<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        let store = self.0.store()?;
        let found = py.detach(|| store.stop_recording()).map_err(|error| of_store(&error))?;
        found.map(|recording| described(py, &recording)).transpose()
    }

    /// Makes all writes so far survive what the mode says.
    #[pyo3(signature = (mode="sync_all"))]
    fn persist(&self, py: Python<'_>, mode: &str) -> PyResult<()> {
        let (store, mode) = (self.0.store()?, mode_of(mode)?);
        py.detach(|| store.persist(mode)).map_err(|error| of_store(&error))
    }

    /// Waits until no merge is due.
    fn settle(&self, py: Python<'_>) -> PyResult<()> {
        let store = self.0.store()?;
        py.detach(|| store.settle()).map_err(|error| of_store(&error))
    }

    /// Returns all counts since the store was opened, by name.
    fn stats(&self) -> PyResult<BTreeMap<&'static str, u64>> {
        Ok(self.0.store()?.stats().fields().collect())
    }

    /// Closes the store. Keyspaces, snapshots, batches, transactions and iterators are
    /// closed with it.
    fn close(&self, py: Python<'_>) {
        py.detach(|| self.0.close());
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    #[pyo3(signature = (*_args))]
    fn __exit__(&self, py: Python<'_>, _args: &Bound<'_, PyTuple>) {
        self.close(py);
    }
}

/// A keyspace: keys and values in key order. Keys and values are bytes.
#[pyclass(frozen, module = "lsmith")]
pub(crate) struct Keyspace {
    held: Arc<Held<lsmith::Keyspace>>,
    root: Arc<Root>,
}

impl Keyspace {
    pub(crate) fn open(&self) -> PyResult<lsmith::Keyspace> {
        self.held.with(|keyspace| keyspace.clone())
    }

    fn items(&self, iter: lsmith::Iter, reverse: bool) -> Items {
        Items::of(&self.root, Entries::Store(iter), reverse)
    }
}

#[pymethods]
impl Keyspace {
    /// Returns the value of a key, or None.
    fn get<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keyspace = self.open()?;
        let found = py.detach(|| keyspace.get(key)).map_err(|error| of_store(&error))?;
        Ok(found.map(|value| PyBytes::new(py, &value)))
    }

    /// Writes a value.
    #[pyo3(signature = (key, value, mode="buffer"))]
    fn put(&self, py: Python<'_>, key: &[u8], value: &[u8], mode: &str) -> PyResult<()> {
        let (keyspace, mode) = (self.open()?, mode_of(mode)?);
        py.detach(|| keyspace.put_with(key, value, mode)).map_err(|error| of_store(&error))
    }

    /// Deletes a key, present or not.
    #[pyo3(signature = (key, mode="buffer"))]
    fn delete(&self, py: Python<'_>, key: &[u8], mode: &str) -> PyResult<()> {
        let (keyspace, mode) = (self.open()?, mode_of(mode)?);
        py.detach(|| keyspace.delete_with(key, mode)).map_err(|error| of_store(&error))
    }

    /// Deletes all keys from `start` up to `end`; None is no bound.
    #[pyo3(signature = (start=None, end=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> PyResult<()> {
        let (keyspace, range) = (self.open()?, range_of(start, end));
        py.detach(|| keyspace.delete_range(range)).map_err(|error| of_store(&error))
    }

    /// Returns an iterator over the entries from `start` up to `end`; None is no bound.
    #[pyo3(signature = (start=None, end=None, reverse=false))]
    fn range(&self, start: Option<&[u8]>, end: Option<&[u8]>, reverse: bool) -> PyResult<Items> {
        Ok(self.items(self.open()?.range(range_of(start, end)), reverse))
    }

    /// Returns an iterator over the entries whose keys begin with `prefix`.
    #[pyo3(signature = (prefix, reverse=false))]
    fn prefix(&self, prefix: &[u8], reverse: bool) -> PyResult<Items> {
        Ok(self.items(self.open()?.prefix(prefix), reverse))
    }

    /// Returns the spec of the merge policy.
    fn merge_policy(&self) -> PyResult<String> {
        Ok(self.open()?.merge_policy())
    }

    /// Changes the merge policy.
    fn set_merge_policy(&self, py: Python<'_>, policy: &str) -> PyResult<()> {
        let keyspace = self.open()?;
        py.detach(|| keyspace.set_merge_policy(policy)).map_err(|error| of_store(&error))
    }

    /// Returns the tree as text.
    fn tree(&self) -> PyResult<String> {
        Ok(self.open()?.tree().to_string())
    }

    fn __getitem__<'py>(&self, py: Python<'py>, key: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let missing = || PyKeyError::new_err(PyBytes::new(py, key).unbind());
        self.get(py, key)?.ok_or_else(missing)
    }

    fn __setitem__(&self, py: Python<'_>, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.put(py, key, value, "buffer")
    }

    fn __delitem__(&self, py: Python<'_>, key: &[u8]) -> PyResult<()> {
        self.delete(py, key, "buffer")
    }

    fn __contains__(&self, py: Python<'_>, key: &[u8]) -> PyResult<bool> {
        let keyspace = self.open()?;
        py.detach(|| keyspace.contains(key)).map_err(|error| of_store(&error))
    }

    fn __iter__(&self) -> PyResult<Items> {
        Ok(self.items(self.open()?.iter(), false))
    }
}

/// Returns the keys from `start` up to `end`.
pub(crate) fn range_of(start: Option<&[u8]>, end: Option<&[u8]>) -> (End<Vec<u8>>, End<Vec<u8>>) {
    let start = start.map_or(End::Unbounded, |start| End::Included(start.to_vec()));
    (start, end.map_or(End::Unbounded, |end| End::Excluded(end.to_vec())))
}

/// A batch of writes, to several keyspaces of one store.
#[pyclass(frozen, module = "lsmith")]
pub(crate) struct Batch(Arc<Held<lsmith::Batch>>);

impl Batch {
    fn change(
        &self,
        to: &Keyspace,
        change: impl FnOnce(&mut lsmith::Batch, &lsmith::Keyspace),
    ) -> PyResult<()> {
        let keyspace = to.open()?;
        self.0.with(|batch| {
            // From here on the batch holds the store open.
            if batch.is_empty() {
                to.root.watch(&self.0);
            }
            change(batch, &keyspace);
        })
    }
}

#[pymethods]
impl Batch {
    #[new]
    fn new() -> Batch {
        Batch(Arc::new(Held::new(lsmith::Batch::new())))
    }

    /// Adds a write.
    fn put(&self, keyspace: &Keyspace, key: &[u8], value: &[u8]) -> PyResult<()> {
        self.change(keyspace, |batch, keyspace| batch.put(keyspace, key, value))
    }

    /// Adds a delete.
    fn delete(&self, keyspace: &Keyspace, key: &[u8]) -> PyResult<()> {
        self.change(keyspace, |batch, keyspace| batch.delete(keyspace, key))
    }

    fn __len__(&self) -> PyResult<usize> {
        self.0.with(|batch| batch.len())
    }
}

/// What the store held at one moment.
#[pyclass(frozen, module = "lsmith")]
pub(crate) struct Snapshot {
    held: Arc<Held<lsmith::Snapshot>>,
    root: Arc<Root>,
}

#[pymethods]
impl Snapshot {
    /// Returns the value of a key, or None.
    fn get<'py>(
        &self,
        py: Python<'py>,
        keyspace: &Keyspace,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keyspace = keyspace.open()?;
        let found = py.detach(|| self.held.with(|snapshot| snapshot.get(&keyspace, key)))?;
        let found = found.map_err(|error| of_store(&error))?;
        Ok(found.map(|value| PyBytes::new(py, &value)))
    }

    /// Returns an iterator over the entries from `start` up to `end`; None is no bound.
    #[pyo3(signature = (keyspace, start=None, end=None, reverse=false))]
    fn range(
        &self,
        keyspace: &Keyspace,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        reverse: bool,
    ) -> PyResult<Items> {
        let keyspace = keyspace.open()?;
        let range = range_of(start, end);
        let iter = self.held.with(|snapshot| snapshot.range(&keyspace, range))?;
        Ok(Items::of(&self.root, Entries::Store(iter), reverse))
    }
}

/// An iterator over entries, as pairs of bytes.
#[pyclass(frozen, module = "lsmith")]
pub(crate) struct Items {
    held: Arc<Held<Entries>>,
    reverse: bool,
}

/// Entries of a store, or of a store as a transaction sees it.
pub(crate) enum Entries {
    Store(lsmith::Iter),
    Transaction(lsmith::TransactionIter),
}

impl Items {
    pub(crate) fn of(root: &Root, entries: Entries, reverse: bool) -> Items {
        Items { held: root.hold(entries), reverse }
    }
}

#[pymethods]
impl Items {
    fn __iter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Pair<'py>>> {
        let next = py.detach(|| {
            self.held.with(|entries| match (entries, self.reverse) {
                (Entries::Store(iter), false) => iter.next(),
                (Entries::Store(iter), true) => iter.next_back(),
                (Entries::Transaction(iter), false) => iter.next(),
                (Entries::Transaction(iter), true) => iter.next_back(),
            })
        })?;
        let pair = next.transpose().map_err(|error| of_store(&error))?;
        Ok(pair.map(|(key, value)| (PyBytes::new(py, &key), PyBytes::new(py, &value))))
    }
}
