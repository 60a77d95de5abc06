//! Single writes to a keyspace.

use super::Keyspace;
use crate::clock::Until;
use crate::group::Member;
use crate::options::PersistMode;
use crate::rules::Expiry;
use crate::write::{Op, Ops};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::EntryKind;
use std::time::Duration;

impl Keyspace {
    /// Sets the value of `key`, and replaces an older one.
    ///
    /// [`Builder::persist`](crate::Builder::persist) chooses how durable the write is when the call
    /// returns. [`put_with`](Keyspace::put_with) and [`Store::write`](crate::Store::write) choose
    /// per call.
    ///
    /// # Errors
    /// `InvalidArgument` if the key is empty, or key or value are too long. Otherwise as
    /// [`Store::write`](crate::Store::write).
    #[doc(alias("insert", "set"))]
    pub fn put(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_value(EntryKind::Put, key.as_ref(), value.as_ref(), None)
    }

    /// Sets the value of `key` and returns when the write is as durable as `mode` says.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// # let users = store.keyspace("users")?;
    /// use lsmith::PersistMode;
    ///
    /// users.put_with("7", "ada", PersistMode::SyncData)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn put_with(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        mode: PersistMode,
    ) -> Result<()> {
        self.write_value(EntryKind::Put, key.as_ref(), value.as_ref(), Some(mode))
    }

    /// Deletes `key`, whether it is present or not.
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    #[doc(alias("remove", "erase"))]
    pub fn delete(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Delete, key.as_ref(), &[])
    }

    /// Deletes `key` and returns when the write is as durable as `mode` says.
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn delete_with(&self, key: impl AsRef<[u8]>, mode: PersistMode) -> Result<()> {
        self.write_one_with(EntryKind::Delete, key.as_ref(), &[], mode)
    }

    /// Sets the value of `key`, which the caller promises to be absent. See
    /// [`Batch::put_new_unchecked`](crate::Batch::put_new_unchecked).
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    pub fn put_new_unchecked(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        self.write_value(EntryKind::Insert, key.as_ref(), value.as_ref(), None)
    }

    /// Deletes `key`, which the caller promises to be present and to have been inserted once. See
    /// [`Batch::put_new_unchecked`](crate::Batch::put_new_unchecked).
    ///
    /// # Errors
    /// As [`put`](Keyspace::put).
    #[doc(alias("single delete", "SingleDelete"))]
    pub fn delete_single_unchecked(&self, key: impl AsRef<[u8]>) -> Result<()> {
        self.write_one(EntryKind::Remove, key.as_ref(), &[])
    }

    /// Sets the value of `key` until `time`: a [`SystemTime`](std::time::SystemTime), or a number
    /// that the [clock](crate::Builder::clock) shows then. From then on the key is absent.
    ///
    /// # Errors
    /// `InvalidArgument` if entries of the keyspace cannot
    /// [expire](crate::KeyspaceOptions::expiry), if the clock is the default one and `time` is a
    /// number before 2001, as durations are, or if the clock is another one and `time` is no
    /// number. Otherwise as [`Store::write`](crate::Store::write).
    pub fn put_until(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        time: impl Into<Until>,
    ) -> Result<()> {
        let stored = self.value_until(time.into(), value.as_ref())?;
        self.write_one(EntryKind::Expiring, key.as_ref(), &stored)
    }

    /// Sets the value of `key` for the time `ttl` from now, to the tick of the
    /// [clock](crate::Builder::clock), at most one tick less. Then the key is absent.
    ///
    /// ```
    /// # let dir = tempfile::tempdir()?;
    /// # let store = lsmith::Store::builder(dir.path()).open()?;
    /// use lsmith::{Expiry, KeyspaceOptions};
    /// use std::time::Duration;
    ///
    /// let options = KeyspaceOptions { expiry: Some(Expiry::default()), ..Default::default() };
    /// let sessions = store.keyspace_with("sessions", &options)?;
    /// sessions.put_with_ttl("7", "ada", Duration::from_secs(3600))?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// `InvalidArgument` if entries of the keyspace cannot
    /// [expire](crate::KeyspaceOptions::expiry), or if the clock does not say how long a
    /// [tick](crate::Clock::with_tick) is; `Callback` if the clock panics. Otherwise as
    /// [`Store::write`](crate::Store::write).
    #[doc(alias("ttl", "time to live"))]
    pub fn put_with_ttl(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        ttl: Duration,
    ) -> Result<()> {
        let stored = self.value_with_ttl(ttl, value.as_ref())?;
        self.write_one(EntryKind::Expiring, key.as_ref(), &stored)
    }

    /// Returns the value of the entry that a put of `value` makes which expires at `time`.
    pub(super) fn value_until(&self, time: Until, value: &[u8]) -> Result<Vec<u8>> {
        self.check_expires()?;
        self.shared().rules.value_until(time, value)
    }

    /// Returns the value of the entry that a put of `value` makes which expires after `ttl`.
    pub(super) fn value_with_ttl(&self, ttl: Duration, value: &[u8]) -> Result<Vec<u8>> {
        self.check_expires()?;
        self.shared().rules.value_with_ttl(ttl, value)
    }

    fn check_expires(&self) -> Result<()> {
        let refuse = |message| Err(Error::new(ErrorKind::InvalidArgument, message));
        self.lacks_expiry().map_or(Ok(()), refuse)
    }

    /// Gives `key` what the operator of the keyspace makes of its value and `operand`. The value is
    /// not read: the operator is called later, by reads and by merges. See
    /// [`Combine`](crate::Combine).
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace has no
    /// [operator](crate::KeyspaceOptions::operator), or if its operator refuses the operand: see
    /// [`Combine::check_operand`](crate::Combine::check_operand). Otherwise as
    /// [`Store::write`](crate::Store::write).
    #[doc(alias = "merge operator")]
    pub fn combine(&self, key: impl AsRef<[u8]>, operand: impl AsRef<[u8]>) -> Result<()> {
        let (key, operand) = (key.as_ref(), operand.as_ref());
        self.check_operand(&self.stored_key(key), operand)?;
        self.write_one(EntryKind::Combine, key, operand)
    }

    /// Returns how entries of the keyspace expire, if they do.
    pub fn expiry(&self) -> Option<Expiry> {
        self.shared().rules.expiry(self.member().map_or(0, Member::id))
    }

    /// Returns a message if entries of the keyspace cannot expire.
    pub(super) fn lacks_expiry(&self) -> Option<String> {
        let message = || format!("entries of the keyspace `{}` cannot expire", self.name());
        self.expiry().is_none().then(message)
    }

    /// Returns kind and value of the entry that a write of `value` makes now, if all values of the
    /// keyspace expire.
    ///
    /// # Errors
    /// `Callback` if the clock panics.
    #[inline]
    pub(super) fn expiring(&self, value: &[u8]) -> Result<Option<Vec<u8>>> {
        self.lives().map(|after| self.shared().rules.value_for(after, value)).transpose()
    }

    /// Fails if the operator of the keyspace refuses an `operand` for `key`, which is as the tree
    /// has it, or if there is no operator.
    pub(super) fn check_operand(&self, key: &[u8], operand: &[u8]) -> Result<()> {
        self.shared().rules.check_operand(self.name(), key, operand)
    }

    /// Returns the name of the combine operator, if the keyspace has one.
    pub fn operator(&self) -> Option<String> {
        self.shared().rules.operator_name(self.member().map_or(0, Member::id))
    }

    #[inline]
    fn write_value(
        &self,
        kind: EntryKind,
        key: &[u8],
        value: &[u8],
        mode: Option<PersistMode>,
    ) -> Result<()> {
        let mode = mode.unwrap_or(self.store().context().options.persist);
        match self.expiring(value)? {
            Some(stored) => self.write_one_with(EntryKind::Expiring, key, &stored, mode),
            None => self.write_one_with(kind, key, value, mode),
        }
    }

    fn write_one(&self, kind: EntryKind, key: &[u8], value: &[u8]) -> Result<()> {
        self.write_one_with(kind, key, value, self.store().context().options.persist)
    }

    #[inline(always)]
    fn write_one_with(
        &self,
        kind: EntryKind,
        key: &[u8],
        value: &[u8],
        mode: PersistMode,
    ) -> Result<()> {
        let key = self.stored_key(key);
        self.write_op(Op::entry(self.shared(), kind, &key, value), mode)
    }

    /// Writes `op`.
    #[inline(always)]
    pub(super) fn write_op(&self, op: Op<'_>, mode: PersistMode) -> Result<()> {
        let timer = self.store().context().timer();
        self.store().engine().write_path.write(Ops::One(op), mode)?;
        timer.end(|recorders| &recorders.write_nanos);
        Ok(())
    }
}
