//! The first and the last entry, as a transaction sees them.

use super::Transaction;
use crate::db::Keyspace;
use bytes::Bytes;
use lsmith_storage::error::Result;

/// A key and its value.
type KeyValue = (Bytes, Bytes);

impl Transaction {
    /// Returns the entry with the least key that `keyspace` has for this transaction. The keys up
    /// to it count as read.
    ///
    /// # Errors
    /// As [`get`](Transaction::get).
    pub fn first(&mut self, keyspace: &Keyspace) -> Result<Option<KeyValue>> {
        self.iter(keyspace).next().transpose()
    }

    /// Returns the entry with the greatest key, as [`first`](Transaction::first) does.
    ///
    /// # Errors
    /// As [`get`](Transaction::get).
    pub fn last(&mut self, keyspace: &Keyspace) -> Result<Option<KeyValue>> {
        self.iter(keyspace).next_back().transpose()
    }

    /// Deletes the entry with the least key, and returns it. The keys up to it count as read. The
    /// commit fails if others have taken the same entry meanwhile.
    ///
    /// # Errors
    /// As [`get`](Transaction::get).
    #[doc(alias = "pop_min")]
    pub fn pop_first(&mut self, keyspace: &Keyspace) -> Result<Option<KeyValue>> {
        let first = self.first(keyspace)?;
        self.pop(keyspace, first)
    }

    /// Deletes the entry with the greatest key, and returns it, as
    /// [`pop_first`](Transaction::pop_first) does.
    ///
    /// # Errors
    /// As [`get`](Transaction::get).
    #[doc(alias = "pop_max")]
    pub fn pop_last(&mut self, keyspace: &Keyspace) -> Result<Option<KeyValue>> {
        let last = self.last(keyspace)?;
        self.pop(keyspace, last)
    }

    fn pop(&mut self, keyspace: &Keyspace, entry: Option<KeyValue>) -> Result<Option<KeyValue>> {
        if let Some((key, _)) = &entry {
            self.delete(keyspace, key)?;
        }
        Ok(entry)
    }
}
