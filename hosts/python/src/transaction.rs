//! Transactions.

use crate::error::{bad_argument, of_store};
use crate::held::{Held, Root};
use crate::store::{Entries, Items, Keyspace, mode_of, range_of};
use lsmith::{Isolation, Transaction as Begun};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::sync::Arc;

/// Returns the isolation with this name.
fn isolation_of(name: &str) -> PyResult<Isolation> {
    match name {
        "serializable" => Ok(Isolation::Serializable),
        "snapshot" => Ok(Isolation::Snapshot),
        _ => Err(bad_argument(format!(
            "unknown isolation `{name}`; expected one of: serializable, snapshot"
        ))),
    }
}

/// Reads and writes that take effect together, if nobody has changed what they used. At the end of
/// a `with` block it commits, or takes everything back if there was an exception.
#[pyclass(frozen, module = "lsmith")]
pub(crate) struct Transaction {
    /// `None` once it has ended.
    held: Arc<Held<Option<Begun>>>,
    root: Arc<Root>,
}

impl Transaction {
    pub(crate) fn begin(root: &Arc<Root>, isolation: &str) -> PyResult<Transaction> {
        let begun = root.store()?.transaction(isolation_of(isolation)?);
        Ok(Transaction { held: root.hold(Some(begun)), root: Arc::clone(root) })
    }

    /// Calls `act` with the transaction.
    fn with<R>(&self, act: impl FnOnce(&mut Begun) -> R) -> PyResult<R> {
        let found = self.held.with(|slot| slot.as_mut().map(act))?;
        found.ok_or_else(|| bad_argument("the transaction has ended: begin another one"))
    }

    /// Takes the transaction, which has then ended.
    fn take(&self) -> PyResult<Option<Begun>> {
        self.held.with(Option::take)
    }

    fn act(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&mut Begun) -> lsmith::Result<()> + Send,
    ) -> PyResult<()> {
        py.detach(|| self.with(act))?.map_err(|error| of_store(&error))
    }

    fn read<'py, V: AsRef<[u8]> + Send>(
        &self,
        py: Python<'py>,
        read: impl FnOnce(&mut Begun) -> lsmith::Result<Option<V>> + Send,
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let found = py.detach(|| self.with(read))?.map_err(|error| of_store(&error))?;
        Ok(found.map(|value| PyBytes::new(py, value.as_ref())))
    }
}

#[pymethods]
impl Transaction {
    /// Returns the value of a key, or None.
    fn get<'py>(
        &self,
        py: Python<'py>,
        keyspace: &Keyspace,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keyspace = keyspace.open()?;
        self.read(py, |begun| begun.get(&keyspace, key))
    }

    /// Returns the value of a key, or None. Nobody may change the key until the commit.
    fn get_for_update<'py>(
        &self,
        py: Python<'py>,
        keyspace: &Keyspace,
        key: &[u8],
    ) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let keyspace = keyspace.open()?;
        self.read(py, |begun| begun.get_for_update(&keyspace, key))
    }

    /// Returns an iterator over the entries from `start` up to `end`; None is no bound. It has the
    /// transaction's own writes so far.
    #[pyo3(signature = (keyspace, start=None, end=None, reverse=false))]
    fn range(
        &self,
        keyspace: &Keyspace,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
        reverse: bool,
    ) -> PyResult<Items> {
        let keyspace = keyspace.open()?;
        let iter = self.with(|begun| begun.range(&keyspace, range_of(start, end)))?;
        Ok(Items::of(&self.root, Entries::Transaction(iter), reverse))
    }

    /// Returns an iterator over the entries whose keys begin with `prefix`.
    #[pyo3(signature = (keyspace, prefix, reverse=false))]
    fn prefix(&self, keyspace: &Keyspace, prefix: &[u8], reverse: bool) -> PyResult<Items> {
        let keyspace = keyspace.open()?;
        let iter = self.with(|begun| begun.prefix(&keyspace, prefix))?;
        Ok(Items::of(&self.root, Entries::Transaction(iter), reverse))
    }

    /// Writes a value.
    fn put(&self, py: Python<'_>, keyspace: &Keyspace, key: &[u8], value: &[u8]) -> PyResult<()> {
        let keyspace = keyspace.open()?;
        self.act(py, |begun| begun.put(&keyspace, key, value))
    }

    /// Deletes a key, present or not.
    fn delete(&self, py: Python<'_>, keyspace: &Keyspace, key: &[u8]) -> PyResult<()> {
        let keyspace = keyspace.open()?;
        self.act(py, |begun| begun.delete(&keyspace, key))
    }

    /// Deletes all keys from `start` up to `end`; None is no bound.
    #[pyo3(signature = (keyspace, start=None, end=None))]
    fn delete_range(
        &self,
        py: Python<'_>,
        keyspace: &Keyspace,
        start: Option<&[u8]>,
        end: Option<&[u8]>,
    ) -> PyResult<()> {
        let (keyspace, range) = (keyspace.open()?, range_of(start, end));
        self.act(py, |begun| begun.delete_range(&keyspace, range))
    }

    /// Notes a moment up to which writes can be taken back.
    fn set_savepoint(&self) -> PyResult<()> {
        self.with(Begun::set_savepoint)
    }

    /// Takes back the writes since the last savepoint, which is then gone.
    fn rollback_to_savepoint(&self) -> PyResult<()> {
        self.with(Begun::rollback_to_savepoint)?.map_err(|error| of_store(&error))
    }

    /// Forgets the last savepoint.
    fn release_savepoint(&self) -> PyResult<()> {
        self.with(Begun::release_savepoint)?.map_err(|error| of_store(&error))
    }

    /// Makes all writes take effect, and returns their sequence number. Fails with the kind
    /// `Conflict` if somebody has changed what the transaction used. Either way it has then ended.
    #[pyo3(signature = (mode="buffer"))]
    fn commit(&self, py: Python<'_>, mode: &str) -> PyResult<u64> {
        let mode = mode_of(mode)?;
        let ended = || bad_argument("the transaction has ended: begin another one");
        let begun = self.take()?.ok_or_else(ended)?;
        let seq = py.detach(|| begun.commit(mode)).map_err(|error| of_store(&error))?;
        Ok(seq.0)
    }

    /// Takes everything back.
    fn rollback(&self) -> PyResult<()> {
        self.take().map(drop)
    }

    fn __len__(&self) -> PyResult<usize> {
        self.with(|begun| begun.len())
    }

    fn __enter__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    /// Commits, unless the block has raised an exception or has ended the transaction itself.
    #[pyo3(signature = (kind=None, _error=None, _trace=None))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Option<&Bound<'_, PyAny>>,
        _error: Option<&Bound<'_, PyAny>>,
        _trace: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let Some(begun) = self.take()? else { return Ok(()) };
        if kind.is_some() {
            return Ok(());
        }
        let mode = lsmith::PersistMode::Buffer;
        py.detach(|| begun.commit(mode)).map_err(|error| of_store(&error))?;
        Ok(())
    }
}
