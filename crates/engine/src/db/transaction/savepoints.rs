//! Savepoints of a transaction.

use super::{Transaction, Undo};
use lsmith_storage::error::{Error, ErrorKind, Result};

impl Transaction {
    /// Sets a savepoint: [`rollback_to_savepoint`](Transaction::rollback_to_savepoint) takes back
    /// the writes from here on. Savepoints nest.
    pub fn set_savepoint(&mut self) {
        self.savepoints.push(self.undo.len());
    }

    /// Takes back all writes since the last savepoint, and removes that savepoint. What was read
    /// since then still counts as read.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no savepoint.
    pub fn rollback_to_savepoint(&mut self) -> Result<()> {
        let from = self.savepoints.pop().ok_or_else(no_savepoint)?;
        for Undo { space, before } in self.undo.drain(from..).rev() {
            self.spaces[space].changes.restore(before);
        }
        Ok(())
    }

    /// Removes the last savepoint, and keeps the writes since then.
    ///
    /// # Errors
    /// `InvalidArgument` if there is no savepoint.
    pub fn release_savepoint(&mut self) -> Result<()> {
        self.savepoints.pop().ok_or_else(no_savepoint)?;
        if self.savepoints.is_empty() {
            self.undo.clear();
        }
        Ok(())
    }
}

fn no_savepoint() -> Error {
    Error::new(ErrorKind::InvalidArgument, "the transaction has no savepoint")
}
