//! The directory of backups.

use super::{BackupFile, BackupList};
use crate::opening::take_lock;
use lsmith_storage::directory;
use lsmith_storage::env::{Env, HeldEnv};
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The file that says that a directory holds backups.
const BACKUPS: &str = "BACKUPS";

/// The content of [`BACKUPS`].
const BACKUPS_TEXT: &str = "lsmith backups\n";

/// The last part of the name of a list.
const LIST: &str = ".backup";

/// The last part of the name of a list that is being written.
const NEW_LIST: &str = ".backup.new";

/// The longest list that is read, in bytes.
const LIST_BYTES_MAX: u64 = 1 << 30;

/// The bytes that are read at once.
const READ_BYTES: u64 = 256 * 1024;

/// A directory of backups.
#[derive(Clone, Debug)]
pub(crate) struct BackupDir {
    pub(crate) env: Arc<dyn Env>,
    pub(crate) dir: PathBuf,
}

impl BackupDir {
    /// Makes the directory if it does not exist, and returns it locked, as
    /// [`lock`](BackupDir::lock) does.
    ///
    /// # Errors
    /// `InvalidArgument` if it has other files; `Locked`; `Io`; `Full`.
    pub(crate) fn make(&self) -> Result<BackupDir> {
        directory::make(&*self.env, &self.dir)?;
        let locked = self.locked()?;
        let found = locked.names()?;
        if found.iter().any(|name| name == BACKUPS) {
            return Ok(locked);
        }
        if let Some(other) = found.iter().find(|name| *name != names::LOCK) {
            let message = format!("expected an empty directory or one of backups, found {other}");
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(&self.dir));
        }
        locked.write(BACKUPS, BACKUPS_TEXT)?;
        directory::sync(&*locked.env, &self.dir)?;
        Ok(locked)
    }

    /// Returns the same directory, which must exist, locked: nobody else changes it as long as the
    /// returned value lives.
    ///
    /// # Errors
    /// `NotFound` if it is no directory of backups; `Locked`; `Io`.
    pub(crate) fn lock(&self) -> Result<BackupDir> {
        self.ids()?;
        self.locked()
    }

    fn locked(&self) -> Result<BackupDir> {
        let held = take_lock(&*self.env, &self.dir)?;
        let env = HeldEnv::new(Arc::clone(&self.env), &self.dir, held);
        Ok(BackupDir { env: Arc::new(env), dir: self.dir.clone() })
    }

    /// Returns the ids of all backups, oldest first.
    ///
    /// # Errors
    /// `NotFound` if it is no directory of backups; `Io`.
    pub(crate) fn ids(&self) -> Result<Vec<u64>> {
        let missing = || Error::new(ErrorKind::NotFound, "there are no backups").at(&self.dir);
        let found = self.env.list(&self.dir).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => missing(),
            _ => Error::io("list", &self.dir, error),
        })?;
        if !found.iter().any(|name| name == BACKUPS) {
            return Err(missing());
        }
        let mut ids: Vec<u64> = found.iter().filter_map(|name| backup_of(name)).collect();
        ids.sort_unstable();
        Ok(ids)
    }

    /// Reads the list of backup `id`.
    ///
    /// # Errors
    /// `NotFound` if there is no such backup; `Corruption`; `Unsupported`; `Io`.
    pub(crate) fn list(&self, id: u64) -> Result<BackupList> {
        let path = self.dir.join(list_name(id));
        let failed = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => {
                let message = format!("there is no backup {id}");
                Error::new(ErrorKind::NotFound, message).at(&self.dir)
            }
            _ => Error::io("read", &path, error),
        };
        let bytes = self.env.file_bytes(&path).map_err(failed)?;
        if bytes > LIST_BYTES_MAX {
            return Err(Error::corruption(&path, LIST_BYTES_MAX, "the list is too long"));
        }
        let mut text = vec![0; bytes as usize];
        let read = self.env.open(&path).and_then(|file| file.read_exact_at(&mut text, 0));
        read.map_err(failed)?;
        BackupList::decode(&text, &path, id)
    }

    /// Reads the lists of all backups but the one with id `but`, oldest first.
    ///
    /// # Errors
    /// As [`list`](BackupDir::list).
    pub(crate) fn lists_but(&self, but: Option<u64>) -> Result<Vec<BackupList>> {
        let ids = self.ids()?.into_iter().filter(|id| Some(*id) != but);
        ids.map(|id| self.list(id)).collect()
    }

    /// Returns an id for a new backup, which no file has.
    pub(crate) fn new_id(&self) -> Result<u64> {
        let used = |name: &String| backup_of(name).or_else(|| owner_of(name));
        Ok(self.names()?.iter().filter_map(used).max().unwrap_or(0) + 1)
    }

    /// Makes the backup valid by writing its list. All its files must be there.
    pub(crate) fn put_in_force(&self, list: &BackupList) -> Result<()> {
        let new = format!("{:06}{NEW_LIST}", list.id);
        // The names of all files, before one names them.
        directory::sync(&*self.env, &self.dir)?;
        self.write(&new, &list.encode())?;
        let path = self.dir.join(&new);
        let renamed = self.env.rename(&path, &self.dir.join(list_name(list.id)));
        renamed.map_err(|error| Error::io("rename", &path, error))?;
        directory::sync(&*self.env, &self.dir)
    }

    /// Removes the list of backup `id`. From then on the backup does not exist.
    pub(crate) fn remove_list(&self, id: u64) -> Result<()> {
        let path = self.dir.join(list_name(id));
        self.env.remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
        directory::sync(&*self.env, &self.dir)
    }

    /// Removes all files of backups that no list names. `lists` holds the lists of all backups.
    pub(crate) fn remove_unlisted(&self, lists: &[BackupList]) -> Result<()> {
        let files = lists.iter().flat_map(|list| &list.files);
        let listed: BTreeSet<String> = files.map(BackupFile::name).collect();
        for name in self.names()? {
            let is_left = name.ends_with(NEW_LIST) || owner_of(&name).is_some();
            if is_left && !listed.contains(&name) {
                directory::remove(&*self.env, &self.dir.join(name), "an old file of a backup");
            }
        }
        Ok(())
    }

    /// Returns the path of `file`.
    pub(crate) fn path_of(&self, file: &BackupFile) -> PathBuf {
        self.dir.join(file.name())
    }

    /// Reads `file` as a whole.
    ///
    /// # Errors
    /// `Corruption` if the file is missing, or if its length or checksum differs from the list;
    /// `Io`.
    pub(crate) fn check(&self, file: &BackupFile) -> Result<()> {
        let path = self.path_of(file);
        self.check_length(file)?;
        let checksum = checksum_of(&*self.env, &path, file.bytes)?;
        check_checksum(&path, file, checksum)
    }

    /// Looks at the length of `file`.
    ///
    /// # Errors
    /// As [`check`](BackupDir::check).
    pub(crate) fn check_length(&self, file: &BackupFile) -> Result<()> {
        let path = self.path_of(file);
        let damaged = |found: String| {
            let expected = file.bytes;
            let message = format!("expected a file of {expected} bytes, found {found}");
            Error::corruption(&path, 0, message)
        };
        match self.env.file_bytes(&path) {
            Ok(bytes) if bytes == file.bytes => Ok(()),
            Ok(bytes) => Err(damaged(bytes.to_string())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(damaged("none".into())),
            Err(error) => Err(Error::io("measure", &path, error)),
        }
    }

    fn names(&self) -> Result<Vec<String>> {
        self.env.list(&self.dir).map_err(|error| Error::io("list", &self.dir, error))
    }

    /// Writes the file called `name` with `text`, and syncs it. Replaces a file that is there.
    fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.dir.join(name);
        let write = || {
            match self.env.remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = self.env.create(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync()
        };
        write().map_err(|error| Error::io("write", &path, error))
    }
}

/// Fails if `checksum`, computed from the file at `path`, differs from the checksum of `file`.
pub(crate) fn check_checksum(path: &Path, file: &BackupFile, checksum: u128) -> Result<()> {
    if checksum == file.checksum {
        return Ok(());
    }
    let message = format!("expected the checksum {:032x}, found {checksum:032x}", file.checksum);
    Err(Error::corruption(path, 0, message))
}

/// Returns the checksum of the first `bytes` bytes of the file at `path`.
pub(crate) fn checksum_of(env: &dyn Env, path: &Path, bytes: u64) -> Result<u128> {
    let failed = |error| Error::io("read", path, error);
    let file = env.open(path).map_err(failed)?;
    let mut hash = Xxh3::new();
    let mut buffer = Vec::new();
    let mut offset = 0;
    while offset < bytes {
        buffer.resize((bytes - offset).min(READ_BYTES) as usize, 0);
        file.read_exact_at(&mut buffer, offset).map_err(failed)?;
        hash.update(&buffer);
        offset += buffer.len() as u64;
    }
    Ok(hash.digest128())
}

fn list_name(id: u64) -> String {
    format!("{id:06}{LIST}")
}

/// Returns the id of the backup whose list is called `name`.
fn backup_of(name: &str) -> Option<u64> {
    let id = name.strip_suffix(LIST)?.parse().ok()?;
    (list_name(id) == name).then_some(id)
}

/// Returns the id of the backup that copied the file called `name`.
fn owner_of(name: &str) -> Option<u64> {
    let (backup, in_store) = name.split_once('-')?;
    names::parse(in_store)?;
    backup.parse().ok()
}
