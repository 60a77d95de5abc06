//! Backups of stores, and stores restored from them.

use super::Store;
use crate::backup::{BackupDir, BackupFile, BackupList, check_checksum, checksum_of};
use crate::checkpoint::{Capture, NewStore};
use crate::manifest::{self, Account, Record};
use lsmith_storage::directory;
use lsmith_storage::env::{Env, RealEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::SeqNo;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// A directory of backups, of one store or of several.
///
/// A backup holds what a store held at one moment. Backups of one directory share the files that
/// did not change between them, so each costs the room of what is new. All backups stand alone: any
/// of them can be restored, whatever others are removed.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith::{Backups, Store};
///
/// let store = Store::builder(dir.path().join("store")).open()?;
/// let fruit = store.keyspace("fruit")?;
/// fruit.put("apple", "red")?;
/// let backups = Backups::new(dir.path().join("backups"));
/// let first = store.backup(&backups)?;
/// fruit.put("apple", "green")?;
/// store.backup(&backups)?;
///
/// assert_eq!(backups.list()?.len(), 2);
/// assert!(backups.verify()?.is_empty());
/// backups.restore(first.id, dir.path().join("restored"))?;
/// let restored = Store::builder(dir.path().join("restored")).open()?;
/// let value = restored.keyspace("fruit")?.get("apple")?;
/// assert_eq!(value.as_deref(), Some(&b"red"[..]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Backups {
    dir: BackupDir,
}

/// How [`Store::backup_with`] makes a backup.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct BackupOptions {
    /// If true, each file that would be shared with an earlier backup is read and checked first,
    /// and copied anew if it is damaged. False by default: only its length is looked at.
    pub check: bool,
}

impl BackupOptions {
    /// Sets [`check`](BackupOptions::check).
    #[must_use]
    pub fn check(mut self, check: bool) -> BackupOptions {
        self.check = check;
        self
    }
}

/// A backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Backup {
    /// Its id. A later backup of the same directory has a larger one.
    pub id: u64,
    /// The sequence number of the last write that it holds.
    pub seq: SeqNo,
    /// The number of its files.
    pub files: usize,
    /// The bytes of its files, shared ones included. Restoring it takes this room.
    pub bytes: u64,
    /// The bytes of files that this backup has copied. The others come from earlier backups.
    pub copied_bytes: u64,
}

impl Backup {
    fn of(list: &BackupList) -> Backup {
        let own = list.files.iter().filter(|file| file.backup == list.id);
        Backup {
            id: list.id,
            seq: list.seq,
            files: list.files.len(),
            bytes: list.files.iter().map(|file| file.bytes).sum(),
            copied_bytes: own.map(|file| file.bytes).sum(),
        }
    }
}

impl Store {
    /// Makes a backup of what this store holds at one moment during the call, as
    /// [`checkpoint`](Store::checkpoint) does, in the directory of `backups`. Makes the directory
    /// if it does not exist.
    ///
    /// Only files that are new since an earlier backup are copied, if that backup is still there
    /// and was made of this store, or this store was restored from it. Copied files are read as
    /// they are, and not checked: see [`Store::verify`].
    ///
    /// When the call returns, the backup survives power loss. A backup that fails, or that a crash
    /// cuts short, does not exist. The next one removes what it has left.
    ///
    /// # Errors
    /// `InvalidArgument` if the directory has other files, or leads into the store's directory;
    /// `Locked` if another backup is being made or removed there; `Corruption` if the list of an
    /// earlier backup is damaged; `Io` or `Full` if a file cannot be copied; `ReadOnly` if the
    /// store was opened for reading only; `Poisoned` if an earlier write of the log or the manifest
    /// failed.
    pub fn backup(&self, backups: &Backups) -> Result<Backup> {
        self.backup_with(backups, &BackupOptions::default())
    }

    /// Makes a backup as `options` say. See [`backup`](Store::backup).
    ///
    /// # Errors
    /// As [`backup`](Store::backup).
    pub fn backup_with(&self, backups: &Backups, options: &BackupOptions) -> Result<Backup> {
        let context = self.context();
        context.check_writable()?;
        let _span = tracing::info_span!("backup", to = %backups.dir.dir.display()).entered();
        let BackupDir { env, dir } = &backups.dir;
        directory::check_outside(&**env, dir, "backups", &context.options.dir, "the store")?;
        context.check_encrypts(&**env, dir, "`Backups::with_env`")?;
        let to = &backups.dir.make()?;
        let lists = to.lists_but(None)?;
        // Looks at what an interruption left before a new id is chosen.
        to.remove_unlisted(&lists)?;
        let capture = Capture::take(self.engine())?;
        let known = lists.iter().find(|list| capture.account.backup == Some(list.stamp()));
        let mut making = Making {
            store: self,
            to,
            id: to.new_id()?,
            known: known.map(files_by_place).unwrap_or_default(),
            check: options.check,
            files: Vec::new(),
        };
        let made = making.make(&capture);
        let list = made.inspect_err(|_| {
            // What failed may have put the backup in force: a rename that was not synced. So the
            // lists are read again. What cannot be removed now goes with the next backup.
            let _ = to.lists_but(None).and_then(|lists| to.remove_unlisted(&lists));
        })?;
        // The backup is whole. Without its stamp, the next one copies more than it must.
        self.engine().manifest.write(Record::Backup(list.stamp()), |_| ())?;
        let made = Backup::of(&list);
        let Backup { id, seq, bytes, copied_bytes, .. } = made;
        tracing::info!(number = id, %seq, bytes, copied_bytes, "a backup was made");
        Ok(made)
    }
}

/// The files of a backup by what they were in the store: kind (as the end of the name), file id and
/// length.
type FilesByPlace = BTreeMap<(String, u64), BackupFile>;

fn files_by_place(list: &BackupList) -> FilesByPlace {
    let place = |file: &BackupFile| ((file.name_in_store(), file.bytes), *file);
    list.files.iter().map(place).collect()
}

/// A backup that is being made.
struct Making<'a> {
    store: &'a Store,
    to: &'a BackupDir,
    id: u64,
    /// The files that the store had when an earlier backup was made.
    known: FilesByPlace,
    check: bool,
    files: Vec<BackupFile>,
}

impl Making<'_> {
    /// Copies the files of `capture` and puts the backup in force.
    fn make(&mut self, capture: &Capture) -> Result<BackupList> {
        let context = self.store.context();
        for file in &capture.files {
            let new = self.new_file(file.kind, file.file_id, file.bytes);
            match self.known.get(&(new.name_in_store(), new.bytes)) {
                Some(known) if self.is_sound(known)? => self.files.push(*known),
                _ => self.copy(new)?,
            }
        }
        let manifest = context.new_file_id();
        self.write_manifest(manifest, &capture.account)?;
        let files = std::mem::take(&mut self.files);
        let list = BackupList { id: self.id, seq: capture.last, manifest, files };
        self.to.put_in_force(&list)?;
        Ok(list)
    }

    /// Returns a file that this backup copies, without its checksum.
    fn new_file(&self, kind: FileKind, file_id: u64, bytes: u64) -> BackupFile {
        BackupFile { backup: self.id, kind, file_id, bytes, checksum: 0 }
    }

    /// Returns true if `known`, a file of an earlier backup, can be a part of this one.
    fn is_sound(&self, known: &BackupFile) -> Result<bool> {
        let checked = if self.check { self.to.check(known) } else { self.to.check_length(known) };
        match checked {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == ErrorKind::Corruption => {
                tracing::warn!(%error, "a file of an earlier backup is damaged: it is copied anew");
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn copy(&mut self, file: BackupFile) -> Result<()> {
        let from = numbered(&self.store.context().options.dir, file.kind, file.file_id);
        let from_env = &*self.store.context().options.env;
        let mut hash = Xxh3::new();
        let to = self.to.path_of(&file);
        let to_env = &*self.to.env;
        directory::copy((from_env, &from), (to_env, &to), file.bytes, |part| hash.update(part))?;
        self.files.push(BackupFile { checksum: hash.digest128(), ..file });
        Ok(())
    }

    fn write_manifest(&mut self, file_id: u64, account: &Account) -> Result<()> {
        let env = &*self.to.env;
        let new = self.new_file(FileKind::Manifest, file_id, 0);
        let path = self.to.path_of(&new);
        // All files are copies, which have one name.
        let account =
            Account { next_file: file_id + 1, linked: false, backup: None, ..account.clone() };
        drop(manifest::write_account(env, &path, file_id, &account)?);
        let bytes = env.file_bytes(&path).map_err(|error| Error::io("measure", &path, error))?;
        let checksum = checksum_of(env, &path, bytes)?;
        self.files.push(BackupFile { bytes, checksum, ..new });
        Ok(())
    }
}

impl Backups {
    /// Returns the backups in the directory `dir`, which need not exist yet. A relative path leads
    /// on from where the process is now.
    pub fn new(dir: impl AsRef<Path>) -> Backups {
        Backups::with_env(dir, Arc::new(RealEnv::new()))
    }

    /// Returns the backups in the directory `dir` of `env`, which need not exist yet. The stores
    /// that are backed up may have another environment.
    pub fn with_env(dir: impl AsRef<Path>, env: Arc<dyn Env>) -> Backups {
        let dir = dir.as_ref();
        // Without an absolute path, the first use of this one says what is wrong.
        let dir = directory::absolute(&*env, dir).unwrap_or_else(|_| dir.to_path_buf());
        Backups { dir: BackupDir { env, dir } }
    }

    /// Returns all backups, oldest first.
    ///
    /// # Errors
    /// `NotFound` if there is no directory of backups; `Corruption` if a list is damaged;
    /// `Unsupported` if a newer version has made a backup; `Io`.
    pub fn list(&self) -> Result<Vec<Backup>> {
        Ok(self.dir.lists_but(None)?.iter().map(Backup::of).collect())
    }

    /// Reads all files of all backups. Returns all damage that it finds: each error names a file.
    ///
    /// # Errors
    /// `NotFound` if there is no directory of backups. `Io` if something keeps the check from
    /// reading a file.
    pub fn verify(&self) -> Result<Vec<Error>> {
        let mut damage = Vec::new();
        let mut files = BTreeMap::new();
        let mut collect = |found: Result<()>| match found {
            Err(error)
                if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) =>
            {
                damage.push(error);
                Ok(())
            }
            other => other,
        };
        for id in self.dir.ids()? {
            let list = self.dir.list(id);
            collect(
                list.map(|list| files.extend(list.files.iter().map(|file| (file.name(), *file)))),
            )?;
        }
        files.values().try_for_each(|file| collect(self.dir.check(file)))?;
        Ok(damage)
    }

    /// Makes a store in `dir` of backup `id`. `dir` must not exist, or be empty, or hold what a
    /// restore that was cut short has left there. Every file is checked while it is copied. When
    /// the call returns, the store survives power loss. A restore that fails, or that a crash cuts
    /// short, leaves no store in `dir`.
    ///
    /// The store belongs to the environment of the backups. Its next backup shares the files of
    /// this one.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Corruption` if a file is damaged, with its path;
    /// `InvalidArgument` if `dir` holds anything else, or leads into the directory of the backups;
    /// `Io`; `Full`.
    pub fn restore(&self, id: u64, dir: impl AsRef<Path>) -> Result<Backup> {
        let to = dir.as_ref().display();
        let _span = tracing::info_span!("restore", number = id, %to).entered();
        let list = self.dir.list(id)?;
        let env = &self.dir.env;
        let path = |file: &BackupFile| self.dir.path_of(file);
        let (manifest, others): (Vec<&BackupFile>, Vec<&BackupFile>) =
            list.files.iter().partition(|file| file.kind == FileKind::Manifest);
        let [manifest] = manifest[..] else {
            let message = "expected one manifest in the list of a backup";
            return Err(Error::new(ErrorKind::Corruption, message).at(&self.dir.dir));
        };
        self.dir.check(manifest)?;
        let account = manifest::read_account(&**env, &path(manifest), list.manifest)?;
        let backups = &self.dir.dir;
        directory::check_outside(&**env, dir.as_ref(), "a store", backups, "the backups")?;
        let mut new = NewStore::begin(env, dir.as_ref(), list.manifest)?;
        for file in others {
            self.dir.check_length(file)?;
            let mut hash = Xxh3::new();
            let from = path(file);
            let see = |part: &[u8]| hash.update(part);
            new.add(file.kind, file.file_id, |to_env, to| {
                directory::copy((&**env, &from), (to_env, to), file.bytes, see)
            })?;
            check_checksum(&from, file, hash.digest128())?;
        }
        new.finish(&Account { backup: Some(list.stamp()), ..account })?;
        Ok(Backup::of(&list))
    }

    /// Removes backup `id`, and the files that no other backup needs. The list of this backup
    /// may be damaged; the lists of all other backups must be intact.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Corruption` if the list of another backup is
    /// damaged: nothing is removed then; `Locked` if a backup is being made; `Io`.
    pub fn remove(&self, id: u64) -> Result<()> {
        let dir = self.dir.lock()?;
        if !dir.ids()?.contains(&id) {
            let message = format!("there is no backup {id}");
            return Err(Error::new(ErrorKind::NotFound, message).at(&dir.dir));
        }
        let others = dir.lists_but(Some(id))?;
        dir.remove_list(id)?;
        dir.remove_unlisted(&others)
    }

    /// Removes all backups but the newest `count`. Returns the ids of the removed backups.
    ///
    /// # Errors
    /// As [`remove`](Backups::remove). Some of the backups may then be gone.
    pub fn keep(&self, count: usize) -> Result<Vec<u64>> {
        let mut ids = self.dir.ids()?;
        ids.truncate(ids.len().saturating_sub(count));
        ids.iter().try_for_each(|id| self.remove(*id))?;
        Ok(ids)
    }
}
