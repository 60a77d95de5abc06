//! Writes what a snapshot shows to tables, for stores to ingest.

use super::{Keyspace, Snapshot, TableWriter};
use crate::version::dropped;
use lsmith_storage::combine::Combiner;
use lsmith_storage::cursor::{Cursor, EntryRef};
use lsmith_storage::directory;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::expiry::{EXPIRY_BYTES, expires_at};
use lsmith_storage::table::ReadTally;
use lsmith_tree::{EntryKind, Key, KeyRange, SeqNo};
use std::ops::{Bound, RangeBounds};
use std::path::Path;
use std::sync::Arc;

/// What a key has at a snapshot.
enum Found<'a> {
    Nothing,
    Value(&'a [u8]),
    /// A value that is there until a time.
    Until(&'a [u8], u64),
    /// The value that operands make, which is to be read.
    Combined,
}

impl Snapshot {
    /// Adds the entries that `keyspace` has in `range` at the snapshot to `writer`, without
    /// sequence numbers and without deletions. Entries that expire keep their times; expired
    /// entries are left out. A key with combines has the value that they make. Returns the number
    /// of entries.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another store, or the table is in the directory
    /// of the store. Otherwise as
    /// [`get`](Snapshot::get), [`TableWriter::put`] and [`TableWriter::put_until`].
    pub fn export_newest<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
        writer: &mut TableWriter,
    ) -> Result<u64> {
        let mut exported = 0;
        let to = writer.path().to_path_buf();
        let context = keyspace.store().context();
        context.check_encrypts(&**writer.env(), &to, "`TableWriterOptions::env`")?;
        self.each_newest(keyspace, range, &to, |key, found, _| {
            match found {
                Found::Nothing => return Ok(()),
                Found::Value(value) => writer.put(key, value)?,
                Found::Until(value, time) => writer.put_until(key, value, time)?,
                Found::Combined => match self.get(keyspace, key)? {
                    Some(value) => writer.put(key, value)?,
                    None => return Ok(()),
                },
            }
            exported += 1;
            Ok(())
        })?;
        Ok(exported)
    }

    /// Adds the entries that `keyspace` has in `range` at the snapshot to `writer`, with their
    /// sequence numbers. Deletions are entries too, as long as no merge has dropped them. Range
    /// deletes are added, unless the keyspace has a combine operator. Entries that expire keep
    /// their times; expired entries become deletions. A key with combines has the value that they
    /// make. Returns the number of entries.
    ///
    /// # Errors
    /// `InvalidArgument` if the keyspace belongs to another store or to a group, or forgets
    /// sequence numbers, or if the table is in the directory of the store. Otherwise as
    /// [`get`](Snapshot::get), [`TableWriter::put_at`] and [`TableWriter::put_until_at`].
    pub fn export<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
        writer: &mut TableWriter,
    ) -> Result<u64> {
        self.check_store(keyspace)?;
        if !keyspace.shared().keeps_seqs {
            let message = format!("the keyspace `{}` forgets sequence numbers", keyspace.name());
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let range_deletes = keyspace.key_range::<K>((range.start_bound(), range.end_bound()));
        let mut exported = 0;
        let to = writer.path().to_path_buf();
        let context = keyspace.store().context();
        context.check_encrypts(&**writer.env(), &to, "`TableWriterOptions::env`")?;
        self.each_newest(keyspace, range, &to, |key, found, seq| {
            match found {
                Found::Nothing => writer.delete_at(key, seq)?,
                Found::Value(value) => writer.put_at(key, value, seq)?,
                Found::Until(value, time) => writer.put_until_at(key, value, time, seq)?,
                Found::Combined => match self.get(keyspace, key)? {
                    Some(value) => writer.put_at(key, value, seq)?,
                    None => writer.delete_at(key, seq)?,
                },
            }
            exported += 1;
            Ok(())
        })?;
        // Stores do not ingest range deletes of a keyspace with an operator.
        if keyspace.operator().is_none() {
            self.export_range_deletes(keyspace, range_deletes, writer)?;
        }
        Ok(exported)
    }

    /// Adds the range deletes that the snapshot sees in `range`.
    fn export_range_deletes(
        &self,
        keyspace: &Keyspace,
        range: Option<KeyRange>,
        writer: &mut TableWriter,
    ) -> Result<()> {
        let Some(range) = range else { return Ok(()) };
        let range_deletes = keyspace.version_at(self.guard()).all_range_deletes();
        for part in range_deletes.overlapping(&range) {
            let KeyRange { start, end } = part.range.intersection(&range);
            let end = end.map_or(Bound::Unbounded, Bound::Excluded);
            match part.newest_at(self.seq()) {
                SeqNo(0) => {}
                seq => writer.delete_range_at::<Key>((Bound::Included(start), end), seq)?,
            }
        }
        Ok(())
    }

    /// Calls `each` with each key of `keyspace` in `range` that has an entry at the snapshot, what
    /// the key has, and the sequence number of its newest entry. They go to a table at `to`, which
    /// must not be a file of the store.
    fn each_newest<K: AsRef<[u8]>>(
        &self,
        keyspace: &Keyspace,
        range: impl RangeBounds<K>,
        to: &Path,
        mut each: impl FnMut(&[u8], Found<'_>, SeqNo) -> Result<()>,
    ) -> Result<()> {
        self.check_store(keyspace)?;
        let options = &keyspace.store().context().options;
        directory::check_outside(&*options.env, to, "a table", &options.dir, "the store")?;
        let Some(range) = keyspace.key_range(range) else { return Ok(()) };
        let version = keyspace.version_at(self.guard());
        if version.is_dropped {
            return Err(dropped());
        }
        let tally = Arc::new(ReadTally::default());
        let mut entries = version.cursor(&tally);
        entries.seek(&range.start)?;
        let mut hidden = version.hidden();
        let mut now = None;
        // The key of the last entry that the snapshot sees. Older entries of it are hidden.
        let mut seen: Option<Vec<u8>> = None;
        while let Some(EntryRef { key, seq, kind, value }) = entries.entry()
            && range.contains(key)
        {
            let hidden_below = hidden.below(key, self.seq());
            if seq <= self.seq() && seq >= hidden_below && seen.as_deref() != Some(key) {
                let apart;
                let found = match kind {
                    EntryKind::Combine => Found::Combined,
                    EntryKind::Expiring => {
                        let now = match now {
                            Some(now) => now,
                            None => *now.insert(keyspace.shared().rules.now()?),
                        };
                        let (time, value) = (expires_at(value), value.get(EXPIRY_BYTES..));
                        match value.filter(|_| now < time) {
                            Some(value) => Found::Until(value, time),
                            None => Found::Nothing,
                        }
                    }
                    kind if kind.is_value() => Found::Value(value),
                    kind if kind.is_reference() => {
                        apart = version.read_checked(value)?;
                        Found::Value(&apart)
                    }
                    _ => Found::Nothing,
                };
                each(&key[keyspace.member_bytes()..], found, seq)?;
                let seen = seen.get_or_insert_default();
                seen.clear();
                seen.extend_from_slice(key);
            }
            entries.next()?;
        }
        Ok(())
    }
}
