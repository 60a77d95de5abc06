//! The manifest: a checksummed log of everything that must be known to open the store again.
//!
//! The file named by `CURRENT` begins with a full account of every keyspace and goes on with one
//! record for each change. All records are text (see [`record`]). A record is synced before the
//! change that it describes takes effect. When a file is full, or the store is opened, a new one
//! is begun and `CURRENT` renamed over.

mod bare;
mod bounds;
#[cfg(test)]
mod fuzz;
mod owner;
mod record;
mod taken;
#[cfg(test)]
mod tests;

pub(crate) use bounds::{KEYSPACE_MAX, check_room};
pub(crate) use owner::Manifest;
pub(crate) use record::{Fault, KeyspaceRecord, LogRow, Record, Spill};
pub(crate) use taken::{Mark, Taken};

use crate::stats::{Counts, add};
use lsmith_storage::bounds::{check_file, check_seq};
use lsmith_storage::env::{Env, SyncReach};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::log::{LogId, LogKind, LogReader, LogWriter};
use lsmith_storage::names::{CURRENT, CURRENT_NEW, FileKind, numbered};
use lsmith_storage::sync::atomic::{AtomicU64, Ordering};
use lsmith_tree::{SeqNo, Tree, check_tree};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The version of the directory's format: the first line of `CURRENT`.
const FORMAT: u32 = 3;

/// How keyspaces are compressed of which nothing else is said.
const NOT_COMPRESSED: &str = "none";

/// Room for changes in a new manifest file, besides twice what it begins with.
const ROOM_BYTES: usize = 256 * 1024;

/// What a keyspace is according to the manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct KeyspaceFacts {
    pub(crate) name: String,
    pub(crate) policy: String,
    /// How tables are compressed: a list that `Compression` reads.
    pub(crate) compression: String,
    pub(crate) memtable_bytes: u64,
    /// Without memory: the write-ahead log remembers that. Without profiles: tables know them.
    pub(crate) tree: Tree,
    /// Entries up to this number are in tables.
    pub(crate) flushed_seq: SeqNo,
    /// Entries above that number which are in tables too.
    pub(crate) taken: Taken,
    /// What has to be read back before the log.
    pub(crate) spill: Option<Spill>,
}

impl KeyspaceFacts {
    /// A keyspace that was just made.
    pub(crate) fn new(keyspace: KeyspaceRecord, compression: String) -> KeyspaceFacts {
        let KeyspaceRecord { name, policy, memtable_bytes, .. } = keyspace;
        KeyspaceFacts {
            name,
            policy,
            compression,
            memtable_bytes,
            tree: Tree::new(),
            flushed_seq: SeqNo::default(),
            taken: Taken::default(),
            spill: None,
        }
    }

    /// Whether what the log holds of `key` under number `seq` has left memory, or is read back
    /// from elsewhere.
    pub(crate) fn is_past(&self, key: &[u8], seq: SeqNo) -> bool {
        self.spill.is_some_and(|spill| seq <= spill.upto) || self.has_left(key, seq)
    }

    /// Whether what was written to `key` under number `seq` has left memory.
    pub(crate) fn has_left(&self, key: &[u8], seq: SeqNo) -> bool {
        seq <= self.flushed_seq || seq <= self.taken.upto(key)
    }

    /// All writes of this keyspace up to this number are in tables or in a copy of memory, or have
    /// left nothing.
    pub(crate) fn complete_seq(&self) -> SeqNo {
        self.flushed_seq.max(self.spill.map(|spill| spill.upto).unwrap_or_default())
    }

    /// All writes up to this number, whatever the keyspace, are in tables, in copies of memory, or
    /// in logs that were synced before that was written here.
    pub(crate) fn durable_seq(&self) -> SeqNo {
        self.complete_seq().max(self.taken.newest())
    }

    /// Forgets what nobody will ask any more.
    fn tidy(&mut self) {
        self.taken.forget(self.flushed_seq);
        self.spill = self.spill.filter(|spill| spill.upto > self.flushed_seq);
    }
}

/// Everything that the manifest says.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Account {
    pub(crate) keyspaces: BTreeMap<u32, KeyspaceFacts>,
    /// The row of write-ahead logs; `None` in stores of earlier versions, which did not say.
    pub(crate) logs: Option<LogRow>,
    /// Above every file number in use.
    pub(crate) next_file: u64,
}

/// The file of the manifest of an open store.
#[derive(Debug)]
pub(crate) struct ManifestFile {
    env: Arc<dyn Env>,
    dir: PathBuf,
    counts: Arc<Counts>,
    files: Arc<AtomicU64>,
    number: u64,
    log: LogWriter,
    account: Account,
    failed: bool,
}

impl Account {
    /// Takes one record.
    pub(crate) fn take(&mut self, record: Record) -> std::result::Result<(), String> {
        record.seqs().into_iter().try_for_each(check_seq)?;
        match record {
            Record::NextFile(number) => self.next_file = self.next_file.max(number),
            Record::Keyspace(keyspace) => {
                self.make_keyspace(keyspace, NOT_COMPRESSED.to_string())?
            }
            Record::CompressedKeyspace(keyspace, compression) => {
                self.make_keyspace(keyspace, compression)?
            }
            Record::Compression { keyspace, compression } => {
                self.keyspace(keyspace)?.compression = compression;
            }
            Record::Tree { keyspace, flushed_seq, taken, tree } => {
                bounds::check_tree(&tree)?;
                let tree = bare::restore_tree(*tree)?;
                bounds::check_tree(&tree)?;
                check_tree(&tree).map_err(|error| error.to_string())?;
                self.next_file = self.next_file.max(tree.next_table().0);
                let state = self.keyspace(keyspace)?;
                (state.tree, state.flushed_seq) = (tree, flushed_seq);
                state.taken = taken.into_iter().collect();
            }
            Record::Policy { keyspace, policy } => self.keyspace(keyspace)?.policy = policy,
            Record::Logs(logs) => {
                self.next_file = self.next_file.max(logs.newest.saturating_add(1));
                self.logs = Some(logs);
            }
            Record::Spill { keyspace, spill } => {
                let state = self.keyspace(keyspace)?;
                // Nothing that was marked before is in the file.
                state.taken.forget(spill.upto);
                state.spill = Some(spill);
                self.next_file = self.next_file.max(spill.file.saturating_add(1));
            }
            Record::Edit { keyspace, flushed_seq, taken, edit } => {
                let state = self.keyspace(keyspace)?;
                let mut edit = bare::restore(edit, &state.tree)?;
                bounds::check_edit(&edit)?;
                edit.apply_read_to(&mut state.tree).map_err(|error| error.to_string())?;
                bounds::check_counts(&state.tree)?;
                state.flushed_seq = state.flushed_seq.max(flushed_seq);
                state.taken.extend(&taken);
                state.tidy();
                let next = state.tree.next_table().0;
                self.next_file = self.next_file.max(next);
            }
        }
        check_file(self.next_file)
    }

    fn make_keyspace(
        &mut self,
        keyspace: KeyspaceRecord,
        compression: String,
    ) -> std::result::Result<(), String> {
        bounds::check_keyspace(&keyspace)?;
        if self.keyspaces.values().any(|state| state.name == keyspace.name) {
            return Err(format!("two keyspaces are called {}", keyspace.name));
        }
        let id = keyspace.id;
        match self.keyspaces.insert(id, KeyspaceFacts::new(keyspace, compression)) {
            Some(_) => Err(format!("keyspace {id} is made twice")),
            None => Ok(()),
        }
    }

    fn keyspace(&mut self, id: u32) -> std::result::Result<&mut KeyspaceFacts, String> {
        self.keyspaces.get_mut(&id).ok_or_else(|| format!("there is no keyspace {id}"))
    }

    /// The records that say all this.
    fn records(&self) -> Vec<Record> {
        let keyspaces = self.keyspaces.iter().flat_map(|(&id, state)| {
            let (name, policy) = (state.name.clone(), state.policy.clone());
            let memtable_bytes = state.memtable_bytes;
            let (flushed_seq, tree) =
                (state.flushed_seq, Box::new(bare::shorten_tree(state.tree.clone())));
            let taken = state.taken.marks().collect();
            let keyspace = KeyspaceRecord { id, name, policy, memtable_bytes };
            let keyspace = match &*state.compression {
                NOT_COMPRESSED => Record::Keyspace(keyspace),
                compression => Record::CompressedKeyspace(keyspace, compression.to_string()),
            };
            let spill = state.spill.map(|spill| Record::Spill { keyspace: id, spill });
            let tree = Record::Tree { keyspace: id, flushed_seq, taken, tree };
            std::iter::once(keyspace).chain(spill).chain([tree])
        });
        let next_file = std::iter::once(Record::NextFile(self.next_file));
        next_file.chain(self.logs.map(Record::Logs)).chain(keyspaces).collect()
    }
}

/// Reads the manifest in force in `dir`: its number and what it says. `None` where there is no
/// store.
///
/// # Errors
/// `Corruption` and `Unsupported`, with path and offset; `Io`.
pub(crate) fn read(env: &dyn Env, dir: &Path) -> Result<Option<(u64, Account)>> {
    let Some(number) = read_current(env, &dir.join(CURRENT))? else { return Ok(None) };
    let path = numbered(dir, FileKind::Manifest, number);
    let mut reader = LogReader::open(env, &path, LogId { kind: LogKind::Manifest, number })?;
    // Its length was synced before it was put in force, and nobody cuts it: where a log that ends
    // early could be one that was cut when it was closed, a manifest is damaged.
    if reader.bytes() < ROOM_BYTES as u64 {
        let told = format!("the manifest is cut off: no manifest has less than {ROOM_BYTES} bytes");
        return Err(Error::corruption(&path, reader.bytes(), told));
    }
    let (mut account, mut payload_bytes, mut least_bytes) = (Account::default(), 0, 0);
    while let Some((offset, payload)) = reader.next_record()? {
        payload_bytes += payload.len();
        let record = Record::decode(payload).map_err(|fault| fault.at(&path, offset))?;
        // It begins with an account of everything, in which a tree comes last, and behind which
        // there is none. From that its length follows.
        if least_bytes == 0 || matches!(record, Record::Tree { .. }) {
            least_bytes = file_bytes(reader.read_bytes(), payload_bytes);
        }
        account.take(record).map_err(|told| Error::corruption(&path, offset, told))?;
    }
    if reader.bytes() < least_bytes {
        let told = format!("the manifest is cut off: it was made with {least_bytes} bytes");
        return Err(Error::corruption(&path, reader.bytes(), told));
    }
    for state in account.keyspaces.values() {
        // Edits were judged when they were made, but these may come from elsewhere.
        check_state(state).map_err(|error| {
            let told = format!("the tree of keyspace {} is not legal: {error}", state.name);
            Error::corruption(&path, reader.read_bytes(), told)
        })?;
    }
    if account.next_file == 0 {
        return Err(Error::corruption(&path, 0, "the manifest does not say what exists"));
    }
    if let Some(lsmith_storage::log::LogEnd::Torn { offset, bytes_dropped }) = reader.end() {
        tracing::warn!(
            path = %path.display(), offset, bytes_dropped,
            "the end of the manifest was not complete and is left out: it had not taken effect"
        );
    }
    account.next_file = account.next_file.max(number + 1);
    Ok(Some((number, account)))
}

fn check_state(state: &KeyspaceFacts) -> std::result::Result<(), String> {
    check_tree(&state.tree).map_err(|error| error.to_string())?;
    bare::check_known(&state.tree)
}

impl ManifestFile {
    /// Begins a new manifest that says `account`, and puts it in force. `files` is the counter of
    /// file numbers.
    ///
    /// # Errors
    /// `Full` or `Io`.
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

    /// Writes a new manifest that says `account`, and a [`CURRENT_NEW`] that names it.
    ///
    /// # Errors
    /// `Full` or `Io`; nothing is left then of what was written.
    fn prepare(
        env: &Arc<dyn Env>,
        dir: &Path,
        counts: &Arc<Counts>,
        files: &Arc<AtomicU64>,
        mut account: Account,
    ) -> Result<ManifestFile> {
        let number = files.fetch_add(1, Ordering::Relaxed);
        account.next_file = number + 1;
        let path = numbered(dir, FileKind::Manifest, number);
        let written = write_account(&**env, &path, number, &account).and_then(|log| {
            sync_dir(&**env, dir)?;
            write_current(&**env, dir, number)?;
            Ok(log)
        });
        let log = written.inspect_err(|_| {
            for path in [&path, &dir.join(CURRENT_NEW)] {
                remove(&**env, path);
            }
        })?;
        let (env, dir) = (Arc::clone(env), dir.to_path_buf());
        let (counts, files) = (Arc::clone(counts), Arc::clone(files));
        Ok(ManifestFile { env, dir, counts, files, number, log, account, failed: false })
    }

    /// Makes `CURRENT` name this manifest.
    ///
    /// # Errors
    /// `Full` or `Io`; nobody knows then which manifest is in force.
    fn put_in_force(&self) -> Result<()> {
        let (new, current) = (self.dir.join(CURRENT_NEW), self.dir.join(CURRENT));
        let renamed = self.env.rename(&new, &current);
        renamed.map_err(|error| Error::io("rename to CURRENT", &new, error))?;
        sync_dir(&*self.env, &self.dir)?;
        add(&self.counts.manifest_bytes, self.log.bytes());
        Ok(())
    }

    /// Writes `record` down, durably.
    ///
    /// # Errors
    /// `Poisoned` after an earlier failure. After any other error, [`failed`](Manifest::failed)
    /// tells whether it is known that nothing has changed.
    pub(crate) fn write(&mut self, mut record: Record) -> Result<()> {
        if let Record::Edit { keyspace, edit, .. } = &mut record {
            let tree = self.account.keyspaces.get(keyspace).map(|state| &state.tree);
            *edit = bare::shorten(std::mem::take(edit), tree.unwrap_or(&Tree::new()));
        }
        if self.failed {
            return Err(Error::new(ErrorKind::Poisoned, "an earlier manifest write failed"));
        }
        let payload = record.encode();
        // Checked before it is written: a record that cannot be read back must never get there.
        let mut account = self.account.clone();
        account.take(record).map_err(|told| Error::corruption(&self.dir, 0, told))?;
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

    /// Whether a write has failed in such a way that nobody knows what is written: the store must
    /// not go on writing.
    pub(crate) fn failed(&self) -> bool {
        self.failed
    }

    /// Begins a new file that says `account`.
    fn roll(&mut self, account: Account) -> Result<()> {
        let new = ManifestFile::prepare(&self.env, &self.dir, &self.counts, &self.files, account)?;
        self.failed = true;
        new.put_in_force()?;
        let old = std::mem::replace(self, new);
        remove(&*self.env, &numbered(&self.dir, FileKind::Manifest, old.number));
        Ok(())
    }

    /// What the manifest says now.
    pub(crate) fn account(&self) -> &Account {
        &self.account
    }
}

/// The length of a manifest file that begins with payloads of `payload_bytes` bytes together, the
/// records of which end at `begun_bytes`.
fn file_bytes(begun_bytes: u64, payload_bytes: usize) -> u64 {
    begun_bytes + (2 * payload_bytes + ROOM_BYTES) as u64
}

/// Writes manifest `number`, which says `account`, durably but for its name.
fn write_account(env: &dyn Env, path: &Path, number: u64, account: &Account) -> Result<LogWriter> {
    let payloads: Vec<String> = account.records().iter().map(Record::encode).collect();
    let bytes: usize = payloads.iter().map(String::len).sum();
    let capacity = LogWriter::capacity_for(payloads.iter().map(String::len));
    let id = LogId { kind: LogKind::Manifest, number };
    let log = LogWriter::create(env, path, id, file_bytes(capacity, bytes))?;
    for payload in &payloads {
        log.append(&[payload.as_bytes()])?;
    }
    log.sync(SyncReach::All)?;
    Ok(log)
}

fn sync_dir(env: &dyn Env, dir: &Path) -> Result<()> {
    env.sync_dir(dir).map_err(|error| Error::io("sync the directory", dir, error))
}

/// Removes a file that nothing names. One that stays costs space only, and the next opening
/// removes it.
fn remove(env: &dyn Env, path: &Path) {
    match env.remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %error, "cannot remove an old manifest");
        }
        _ => {}
    }
}

/// `CURRENT`: three lines of text, the last of which is a checksum of the others.
fn current_text(number: u64) -> String {
    let text = format!("lsmith store, format {FORMAT}\nmanifest {number}\n");
    let checksum = xxh3_64(text.as_bytes());
    format!("{text}checksum {checksum:016x}\n")
}

/// Writes what is to become `CURRENT`.
fn write_current(env: &dyn Env, dir: &Path, number: u64) -> Result<()> {
    let new = dir.join(CURRENT_NEW);
    let write = || {
        match env.remove_file(&new) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = env.create(&new)?;
        file.write_all(current_text(number).as_bytes())?;
        file.sync()
    };
    write().map_err(|error| Error::io("write", &new, error))
}

/// The number of the manifest that the `CURRENT` at `path` names; `None` where there is none.
///
/// # Errors
/// `Corruption`, `Unsupported`, `Io`.
pub(crate) fn read_current(env: &dyn Env, path: &Path) -> Result<Option<u64>> {
    let bytes = match env.file_bytes(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::io("look at", path, error)),
        Ok(bytes) => bytes.min(4096) as usize,
    };
    let mut text = vec![0; bytes];
    let read = || env.open(path)?.read_exact_at(&mut text, 0);
    let mut read = read;
    read().map_err(|error| Error::io("read", path, error))?;
    let text = String::from_utf8_lossy(&text);
    let mut lines = text.lines();
    let head = lines.next().unwrap_or_default();
    let format = head.strip_prefix("lsmith store, format ").and_then(|text| text.parse().ok());
    match format {
        Some(FORMAT) => {}
        Some(other) if other > 0 => {
            let told = format!("the store has format {other}, this program reads format {FORMAT}");
            return Err(Error::new(ErrorKind::Unsupported, told).at(path));
        }
        _ => {
            let told = format!("expected `lsmith store, format {FORMAT}`");
            return Err(Error::corruption(path, 0, told));
        }
    }
    let number = lines.next().and_then(|line| line.strip_prefix("manifest ")?.parse().ok());
    let offset = head.len() as u64 + 1;
    match number.filter(|&number| current_text(number) == text) {
        Some(number) => match check_file(number) {
            Ok(()) => Ok(Some(number)),
            Err(told) => Err(Error::corruption(path, offset, told)),
        },
        None => Err(Error::corruption(path, offset, "the name of the manifest fails its checksum")),
    }
}
