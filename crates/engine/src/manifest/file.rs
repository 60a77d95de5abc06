//! The file of the manifest: reading one, writing one, and beginning a new one.

use super::account::{Account, check_facts};
use super::bare;
use super::current::{read_current, write_current};
use super::record::Record;
use crate::leases::Position;
use crate::stats::{Counts, add};
use lsmith_storage::directory;
use lsmith_storage::env::{Env, SyncReach};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::log::{LogEnd, LogId, LogKind, LogReader, LogWriter};
use lsmith_storage::names::{CURRENT, CURRENT_NEW, FileKind, numbered};
use lsmith_storage::sync::atomic::AtomicU64;
use lsmith_tree::Tree;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A new manifest file has room for twice the account that it begins with, and for these bytes.
pub(super) const ROOM_BYTES: usize = 256 * 1024;

/// The file of the manifest of an open store.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    env: Arc<dyn Env>,
    dir: PathBuf,
    counts: Arc<Counts>,
    /// The counter of file ids.
    files: Arc<AtomicU64>,
    file_id: u64,
    pub(super) log: LogWriter,
    account: Account,
    /// Set if a write has failed and its effect on the file is uncertain.
    failed: bool,
    /// The id of the file that this one has replaced, until it is removed.
    replaced: Option<u64>,
}

/// Returns how far the manifest in force in `dir` has come, or `None` if `dir` holds no store.
///
/// # Errors
/// As [`read`].
pub(crate) fn position(env: &dyn Env, dir: &Path) -> Result<Option<Position>> {
    let Some(file_id) = read_current(env, &dir.join(CURRENT))? else { return Ok(None) };
    let path = numbered(dir, FileKind::Manifest, file_id);
    let mut reader = LogReader::open(env, &path, LogId { kind: LogKind::Manifest, file_id })?;
    while reader.next_record()?.is_some() {}
    Ok(Some(Position { manifest: file_id, bytes: reader.read_bytes() }))
}

/// Reads the manifest in force in `dir`. Returns how far it has come and its account, or `None` if
/// `dir` holds no store.
///
/// # Errors
/// Fails with `Corruption`, `Unsupported` or `Io`.
pub(crate) fn read(env: &dyn Env, dir: &Path) -> Result<Option<(Position, Account)>> {
    let Some(file_id) = read_current(env, &dir.join(CURRENT))? else { return Ok(None) };
    let path = numbered(dir, FileKind::Manifest, file_id);
    let (bytes, account) = read_all(env, &path, file_id)?;
    Ok(Some((Position { manifest: file_id, bytes }, account)))
}

/// Reads manifest `file_id`, which is at `path`.
///
/// # Errors
/// Fails with `Corruption`, `Unsupported` or `Io`.
pub(crate) fn read_account(env: &dyn Env, path: &Path, file_id: u64) -> Result<Account> {
    Ok(read_all(env, path, file_id)?.1)
}

/// The bytes that a manifest has at least, by the records that were read of it.
///
/// The length of a manifest is synced before it is put in force, and closing a store never cuts a
/// manifest, as it cuts a log. So a short manifest is damaged, although its end may look torn.
#[derive(Default)]
pub(crate) struct LeastBytes {
    payload: usize,
    least: u64,
}

impl LeastBytes {
    /// Takes a record of `payload_bytes` bytes that ends at `end`.
    pub(crate) fn take(&mut self, record: &Record, payload_bytes: usize, end: u64) {
        self.payload += payload_bytes;
        // The file begins with an account, whose last record is a tree if there is a keyspace. No
        // tree follows behind the account. So the length of the file follows from the last tree.
        if self.least == 0 || matches!(record, Record::Tree { .. }) {
            self.least = file_bytes(end, self.payload);
        }
    }

    /// Fails with `Corruption` if the file at `path`, which has `bytes` bytes, is too short.
    pub(crate) fn check(&self, path: &Path, bytes: u64) -> Result<()> {
        let least = self.least.max(ROOM_BYTES as u64);
        if bytes >= least {
            return Ok(());
        }
        let message = format!("the manifest is too short: expected at least {least} bytes");
        Err(Error::corruption(path, bytes, message))
    }
}

/// Reads manifest `file_id`, which is at `path`. Returns where its last record ends and its
/// account.
fn read_all(env: &dyn Env, path: &Path, file_id: u64) -> Result<(u64, Account)> {
    let mut reader = LogReader::open(env, path, LogId { kind: LogKind::Manifest, file_id })?;
    let mut least = LeastBytes::default();
    least.check(path, reader.bytes())?;
    let mut account = Account::default();
    while let Some((offset, payload)) = reader.next_record()? {
        let payload_bytes = payload.len();
        let record = Record::decode(payload).map_err(|fault| fault.at(path, offset))?;
        least.take(&record, payload_bytes, reader.read_bytes());
        account.take(record).map_err(|message| Error::corruption(path, offset, message))?;
    }
    least.check(path, reader.bytes())?;
    for state in account.keyspaces.values() {
        // Edits were checked when they were made, but another program may have written these.
        check_facts(state).map_err(|error| {
            let message = format!("the tree of keyspace {} is not legal: {error}", state.name);
            Error::corruption(path, reader.read_bytes(), message)
        })?;
    }
    if account.next_file == 0 {
        return Err(Error::corruption(path, 0, "the manifest does not name the next file number"));
    }
    if let Some(LogEnd::Torn { offset, bytes_dropped }) = reader.end() {
        tracing::warn!(
            path = %path.display(), offset, bytes_dropped,
            "the end of the manifest is torn and is left out: it had not taken effect"
        );
    }
    account.next_file = account.next_file.max(file_id + 1);
    Ok((reader.read_bytes(), account))
}

impl ManifestFile {
    /// Begins a new manifest with `account`, and puts it in force. `files` is the counter of file
    /// numbers.
    ///
    /// # Errors
    /// Fails with `Full` or `Io`.
    pub(crate) fn create(
        env: &Arc<dyn Env>,
        dir: &Path,
        counts: &Arc<Counts>,
        files: &Arc<AtomicU64>,
        account: Account,
    ) -> Result<ManifestFile> {
        let manifest = ManifestFile::prepare(env, dir, counts, files, account)?;
        manifest.put_in_force()?;
        Ok(manifest)
    }

    /// Writes a new manifest with `account`, and a [`CURRENT_NEW`] that names it.
    ///
    /// # Errors
    /// Fails with `Full` or `Io`, and removes both files then.
    fn prepare(
        env: &Arc<dyn Env>,
        dir: &Path,
        counts: &Arc<Counts>,
        files: &Arc<AtomicU64>,
        mut account: Account,
    ) -> Result<ManifestFile> {
        let (file_id, log) =
            directory::make_numbered(dir, FileKind::Manifest, files, |path, file_id| {
                account.next_file = file_id + 1;
                write_account(&**env, path, file_id, &account)
            })?;
        let synced = directory::sync(&**env, dir);
        synced.and_then(|()| write_current(&**env, dir, file_id)).inspect_err(|_| {
            let path = numbered(dir, FileKind::Manifest, file_id);
            for path in [&path, &dir.join(CURRENT_NEW)] {
                directory::remove(&**env, path, "a manifest that was not put in force");
            }
        })?;
        Ok(ManifestFile {
            env: Arc::clone(env),
            dir: dir.to_path_buf(),
            counts: Arc::clone(counts),
            files: Arc::clone(files),
            file_id,
            log,
            account,
            failed: false,
            replaced: None,
        })
    }

    /// Makes `CURRENT` name this manifest.
    ///
    /// # Errors
    /// Fails with `Full` or `Io`. It is then uncertain which manifest is in force.
    fn put_in_force(&self) -> Result<()> {
        let new = self.dir.join(CURRENT_NEW);
        let renamed = self.env.rename(&new, &self.dir.join(CURRENT));
        renamed.map_err(|error| Error::io("rename to CURRENT", &new, error))?;
        directory::sync(&*self.env, &self.dir)?;
        add(&self.counts.manifest_bytes, self.log.bytes());
        Ok(())
    }

    /// Writes `record` durably, into a new file if this one is full.
    ///
    /// # Errors
    /// Fails with `Poisoned` after an earlier failure. After any other error nothing has changed
    /// unless [`failed`](ManifestFile::failed) returns true.
    pub(crate) fn write(&mut self, mut record: Record) -> Result<()> {
        for record in record.edits_mut() {
            if let Record::Edit { keyspace, edit, .. } = record {
                let tree = self.account.keyspaces.get(keyspace).map(|state| &state.tree);
                *edit = bare::shorten(std::mem::take(edit), tree.unwrap_or(&Tree::new()));
            }
        }
        if self.failed {
            return Err(Error::new(ErrorKind::Poisoned, "an earlier manifest write failed"));
        }
        let payload = record.encode();
        // A record that could not be read back must never be written.
        let mut account = self.account.clone();
        account.take(record).map_err(|message| Error::corruption(&self.dir, 0, message))?;
        if !self.log.room(payload.len()) {
            return self.roll(account);
        }
        self.failed = true;
        let before = self.log.bytes();
        self.log.append(&[payload.as_bytes()])?;
        self.log.sync(SyncReach::Data)?;
        self.failed = false;
        self.account = account;
        add(&self.counts.manifest_bytes, self.log.bytes() - before);
        Ok(())
    }

    /// Returns true if a write has failed and it is uncertain what was written. The store must then
    /// stop writing.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// Begins a new file with `account`, which replaces the present one.
    fn roll(&mut self, account: Account) -> Result<()> {
        let new = ManifestFile::prepare(&self.env, &self.dir, &self.counts, &self.files, account)?;
        self.failed = true;
        new.put_in_force()?;
        let old = std::mem::replace(self, new);
        self.replaced = Some(old.file_id);
        Ok(())
    }

    /// Returns the id of the file that this one has replaced, once. The caller removes it.
    pub(crate) fn take_replaced(&mut self) -> Option<u64> {
        self.replaced.take()
    }

    /// Returns how far the manifest has come.
    pub(crate) fn position(&self) -> Position {
        Position { manifest: self.file_id, bytes: self.log.bytes() }
    }

    /// Returns the account as of the last record.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }
}

/// Returns the length of a new manifest file in bytes. The account that it begins with has
/// `payload_bytes` of payloads, and its records end at offset `account_end`.
fn file_bytes(account_end: u64, payload_bytes: usize) -> u64 {
    account_end + (2 * payload_bytes + ROOM_BYTES) as u64
}

/// Writes manifest `file_id` with `account`. All but the file's name is durable on return. After an
/// error there is no file.
pub(crate) fn write_account(
    env: &dyn Env,
    path: &Path,
    file_id: u64,
    account: &Account,
) -> Result<LogWriter> {
    let payloads: Vec<String> = account.records().iter().map(Record::encode).collect();
    let bytes: usize = payloads.iter().map(String::len).sum();
    let capacity = LogWriter::capacity_for(env, payloads.iter().map(String::len));
    let id = LogId { kind: LogKind::Manifest, file_id };
    let log = LogWriter::create(env, path, id, file_bytes(capacity, bytes))?;
    let mut appended = payloads.iter().map(|payload| log.append(&[payload.as_bytes()]));
    let written = appended.try_for_each(|done| done.map(drop));
    written.and_then(|()| log.sync(SyncReach::All)).inspect_err(|_| {
        directory::remove(env, path, "a manifest that was not written");
    })?;
    Ok(log)
}
