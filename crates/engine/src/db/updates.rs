//! Calls that read and write in one step, however many threads write.
//!
//! Each is a transaction that is tried again while others are faster. Of several in each other's
//! way, one always commits.

use super::{Isolation, Keyspace, Transaction};
use bytes::Bytes;
use lsmith_storage::error::{ErrorKind, Result};

impl Keyspace {
    /// Deletes the entry with the least key, and returns it. No two calls return the same entry,
    /// and no key that was written before the call is less.
    ///
    /// A delete leaves a tombstone, which the next calls pass over until merges drop it. So a queue
    /// that is long, or is read by one thread, is better read by [`range`](Keyspace::range) and cut
    /// by [`delete_range`](Keyspace::delete_range).
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// let tasks = store.keyspace("tasks")?;
    /// tasks.put("1", "wash up")?;
    /// tasks.put("2", "dry")?;
    /// let (key, value) = tasks.pop_first()?.expect("two tasks");
    /// assert_eq!((&key[..], &value[..]), (&b"1"[..], &b"wash up"[..]));
    /// assert_eq!(tasks.pop_last()?.expect("one task").0, "2");
    /// assert_eq!(tasks.pop_first()?, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Keyspace::get), or as [`put`](Keyspace::put).
    #[doc(alias = "pop_min")]
    pub fn pop_first(&self) -> Result<Option<(Bytes, Bytes)>> {
        self.update(Isolation::Serializable, |one| one.pop_first(self))
    }

    /// Deletes the entry with the greatest key, and returns it, as
    /// [`pop_first`](Keyspace::pop_first) does.
    ///
    /// # Errors
    /// As [`pop_first`](Keyspace::pop_first).
    #[doc(alias = "pop_max")]
    pub fn pop_last(&self) -> Result<Option<(Bytes, Bytes)>> {
        self.update(Isolation::Serializable, |one| one.pop_last(self))
    }

    /// Gives `key` the value `new` if it has the value `expected`. `None` stands for an absent key.
    /// Otherwise writes nothing, and returns the value that the key has as the inner error.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// let leases = store.keyspace("leases")?;
    /// assert!(leases.compare_and_swap("printer", None, Some(b"ada"))?.is_ok());
    /// let held = leases.compare_and_swap("printer", None, Some(b"bob"))?;
    /// assert_eq!(held.unwrap_err().as_deref(), Some(&b"ada"[..]));
    /// leases.compare_and_swap("printer", Some(b"ada"), None)?.expect("ada has the lease");
    ///
    /// // An update of any value: a counter of ids that many threads may take from.
    /// let next = || loop {
    ///     let old = leases.get("next id")?;
    ///     let id = old.as_deref().map_or(0, |id| u64::from_be_bytes(id.try_into().unwrap()));
    ///     let new = (id + 1).to_be_bytes();
    ///     if leases.compare_and_swap("next id", old.as_deref(), Some(&new))?.is_ok() {
    ///         return Ok::<u64, lsmith::Error>(id);
    ///     }
    /// };
    /// assert_eq!([next()?, next()?], [0, 1]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`get`](Keyspace::get), or as [`put`](Keyspace::put).
    #[doc(alias("compare_exchange", "cas", "put_if_absent", "insert_if_absent", "fetch_update"))]
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<std::result::Result<(), Option<Bytes>>> {
        let key = key.as_ref();
        self.update(Isolation::Snapshot, |one| {
            let found = one.get_for_update(self, key)?;
            if found.as_deref() != expected {
                return Ok(Err(found));
            }
            match new {
                Some(value) => one.put(self, key, value)?,
                None => one.delete(self, key)?,
            }
            Ok(Ok(()))
        })
    }

    /// Commits what `update` does in a transaction, and tries again while others were faster.
    fn update<T>(
        &self,
        isolation: Isolation,
        mut update: impl FnMut(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        loop {
            let mut one = self.store().transaction(isolation);
            let updated = update(&mut one)?;
            if one.is_empty() {
                // What was read is one moment.
                return Ok(updated);
            }
            match one.commit(self.store().context().options.persist) {
                Err(error) if error.kind() == ErrorKind::Conflict => {}
                done => return done.map(|_| updated),
            }
        }
    }
}
