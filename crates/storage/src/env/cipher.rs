//! An environment that encrypts the files of another one.
//!
//! What is written by [`create`](Env::create) and [`append`](Env::append) is cut into slots, which
//! are encrypted one by one. Logs are filled record by record and recover from a torn end, so the
//! log format encrypts their records itself, with the [keys](CipherEnv::keys) of this environment.
//!
//! # Format of a file of slots
//!
//! All integers are little endian. The file is a row of slots of 4096 bytes.
//!
//! ```text
//! slot 0
//!   0    8   magic "lsmithen"
//!   8    4   format version, 1
//!   12   4   length of a slot, 4096
//!   16   4   kind of the file: 0 without number, 1 table, 2 write-ahead log, 3 manifest, 4 spill,
//!            5 values
//!   20   4   zeros
//!   24   8   number of the file
//!   32   96  how it is encrypted: see the module `cipher`
//!   128      zeros; bytes 0..128 again from 2048 on
//!
//! every other slot
//!   0    8   session: a random number for all that is written between an opening and a closing
//!   8    8   low 12 bits: n, the number of bytes in the slot; above: offset of the first of them
//!   16   16  tag
//!   32   n   bytes, encrypted
//!            zeros up to 4096
//! ```
//!
//! The nonce is session (8) and slot index (4); the tag also covers bytes 0..16. A session writes
//! each slot at most once, so no nonce comes twice for one key.
//!
//! Every slot holds 4064 bytes, except the last one before a flush or a sync: a slot that was
//! synced is never written again, because power loss could then destroy it. Where an append cuts
//! bytes off, the next slot begins in the middle of the one before and hides its end. An empty slot
//! takes its place if nothing follows yet.
//!
//! Slots of zeros are holes and read as zeros. What power loss leaves behind the last synced slot
//! does not match its tags: the file ends in front of it.

mod head;
mod index;
mod read;
mod slot;
mod write;

use super::{Encryption, Env, HeldDir, LogFile, ReadFile, WriteFile};
use crate::cipher::Keys;
use crate::names::RENEWED;
use head::{Binding, Form, look};
use read::CipherRead;
#[cfg(all(test, feature = "encryption"))]
pub(super) use slot::FULL_BYTES;
use slot::SLOT_BYTES;
use std::fmt::Debug;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use write::CipherWrite;

/// Encrypts the files of another environment.
///
/// Names and lengths of files stay as they are, and so do locks, which have no contents. Files have
/// no maps. A punched hole may leave up to a page of old bytes at either end. Files get a second
/// name only under the same number: callers copy otherwise.
#[derive(Clone, Debug)]
#[repr(transparent)]
pub struct CipherEnv(Encryption);

impl CipherEnv {
    /// Encrypts the files of `inner` with `keys`.
    pub fn new(inner: Arc<dyn Env>, keys: Keys) -> CipherEnv {
        CipherEnv(Encryption { inner, keys: Arc::new(keys) })
    }

    /// Encrypts as `encryption` says.
    pub fn of(encryption: Encryption) -> CipherEnv {
        CipherEnv(encryption)
    }

    /// Wraps `env` with `wrap`. If `env` encrypts, it is what it encrypts into that is wrapped: a
    /// limit on space, for example, counts encrypted bytes.
    pub fn around(
        env: &Arc<dyn Env>,
        wrap: impl FnOnce(Arc<dyn Env>) -> Arc<dyn Env>,
    ) -> Arc<dyn Env> {
        match env.encryption() {
            // Not one that another environment wraps: that one must stay.
            Some(encryption) if std::ptr::addr_eq(encryption, Arc::as_ptr(env)) => {
                let inner = wrap(Arc::clone(&encryption.inner));
                Arc::new(CipherEnv(encryption.over(inner)))
            }
            _ => wrap(Arc::clone(env)),
        }
    }

    /// Returns true if the file at `path` is one of slots that has another key than the newest, or
    /// none. False for logs, which have keys of their own.
    ///
    /// # Errors
    /// Fails if the file cannot be read.
    pub fn is_stale(&self, path: &Path) -> io::Result<bool> {
        Ok(match look(&*self.0.inner.open(path)?, path, &self.0.keys)? {
            Form::Slots(opened) => !opened.is_newest,
            Form::Clear => true,
            Form::Log | Form::Empty => false,
        })
    }

    /// Replaces the file at `path` in one step by what `write` writes, under the newest key. It
    /// survives power loss; its name has to be synced.
    ///
    /// # Errors
    /// Fails if `write` does, or the new file cannot be written. The old one then stays.
    pub fn replace(
        &self,
        path: &Path,
        write: impl FnOnce(&mut dyn WriteFile) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut new = path.as_os_str().to_owned();
        new.push(RENEWED);
        let new = Path::new(&new);
        match self.0.inner.remove_file(new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let written = self.create_as(new, Binding::of(path).unwrap_or_default());
        let replaced = written.and_then(|mut file| {
            write(&mut *file)?;
            file.sync()?;
            self.0.inner.rename(new, path)
        });
        replaced.inspect_err(|_| drop(self.0.inner.remove_file(new)))
    }

    fn create_as(&self, path: &Path, binding: Binding) -> io::Result<Box<dyn WriteFile>> {
        let (head, cipher) = binding.begin(&self.0.keys, self.0.salt())?;
        let file = self.0.inner.create(path)?;
        let begun = CipherWrite::begin(file, head, cipher, self.session());
        // A creation that fails leaves no file.
        let begun = begun.inspect_err(|_| drop(self.0.inner.remove_file(path)))?;
        Ok(Box::new(begun))
    }

    fn open_slots(&self, path: &Path) -> io::Result<Option<CipherRead>> {
        let file = self.0.inner.open(path)?;
        Ok(match look(&*file, path, &self.0.keys)? {
            Form::Slots(opened) => Some(CipherRead::new(file, Some(opened.cipher))),
            Form::Empty => Some(CipherRead::new(file, None)),
            Form::Log | Form::Clear => None,
        })
    }
}

impl Env for CipherEnv {
    fn encryption(&self) -> Option<&Encryption> {
        Some(&self.0)
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        self.0.inner.create_dir_all(dir)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.0.inner.list(dir)
    }

    fn file_bytes(&self, path: &Path) -> io::Result<u64> {
        self.open(path)?.bytes()
    }

    fn held_bytes(&self, path: &Path) -> io::Result<u64> {
        self.0.inner.held_bytes(path)
    }

    fn punch(&self, path: &Path, range: Range<u64>) -> io::Result<()> {
        self.punch_all(path, &[range])
    }

    fn punch_all(&self, path: &Path, ranges: &[Range<u64>]) -> io::Result<()> {
        let Some(file) = self.open_slots(path)? else {
            return self.0.inner.punch_all(path, ranges);
        };
        let slots = ranges.iter().map(|range| file.slots_within(range));
        let slots = slots.collect::<io::Result<Vec<_>>>()?;
        let places = slots.iter().filter(|slots| !slots.is_empty());
        let places: Vec<_> =
            places.map(|slots| slots.start * SLOT_BYTES..slots.end * SLOT_BYTES).collect();
        self.0.inner.punch_all(path, &places)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.0.inner.remove_file(path)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.inner.remove_dir(dir)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.inner.rename(from, to)
    }

    /// A file in clear gets no second name either, so that it is copied and encrypted.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let fits = match look(&*self.0.inner.open(from)?, from, &self.0.keys)? {
            Form::Slots(opened) => Binding::of(to).is_none_or(|binding| binding == opened.binding),
            Form::Log => true,
            Form::Clear | Form::Empty => false,
        };
        if !fits {
            return Err(io::ErrorKind::Unsupported.into());
        }
        self.0.inner.link(from, to)
    }

    fn link_count(&self, path: &Path) -> io::Result<u64> {
        self.0.inner.link_count(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.0.inner.sync_dir(dir)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        self.0.inner.sync_file(path)
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        self.create_as(path, Binding::of(path).unwrap_or_default())
    }

    fn append(&self, path: &Path, at: u64) -> io::Result<Box<dyn WriteFile>> {
        let file = self.0.inner.open(path)?;
        let opened = match look(&*file, path, &self.0.keys)? {
            Form::Slots(opened) => opened,
            Form::Empty if at == 0 => {
                let binding = Binding::of(path).unwrap_or_default();
                let (head, cipher) = binding.begin(&self.0.keys, self.0.salt())?;
                let file = self.0.inner.append(path, 0)?;
                return Ok(Box::new(CipherWrite::begin(file, head, cipher, self.session())?));
            }
            Form::Empty => return Err(io::ErrorKind::UnexpectedEof.into()),
            Form::Log | Form::Clear => return self.0.inner.append(path, at),
        };
        let read = CipherRead::new(file, Some(opened.cipher));
        let cut = read.cut_at(at)?;
        let cipher = read.into_cipher().expect("a file of slots has a cipher");
        let file = self.0.inner.append(path, cut.slots * SLOT_BYTES)?;
        let written = CipherWrite::continued(file, cipher, self.session(), cut, at)?;
        Ok(Box::new(written))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        match self.open_slots(path)? {
            Some(file) => Ok(Arc::new(file)),
            None => self.0.inner.open(path),
        }
    }

    fn create_log(&self, path: &Path, capacity: u64) -> io::Result<Box<dyn LogFile>> {
        self.0.inner.create_log(path, capacity)
    }

    fn create_log_for(
        &self,
        path: &Path,
        capacity: u64,
        record_bytes: u64,
    ) -> io::Result<Box<dyn LogFile>> {
        self.0.inner.create_log_for(path, capacity, record_bytes)
    }

    fn absolute(&self, path: &Path) -> io::Result<PathBuf> {
        self.0.inner.absolute(path)
    }

    fn is_within(&self, path: &Path, dir: &Path) -> io::Result<bool> {
        self.0.inner.is_within(path, dir)
    }

    fn lock(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.0.inner.lock(dir)
    }

    fn hold(&self, dir: &Path) -> io::Result<Arc<dyn HeldDir>> {
        self.0.inner.hold(dir)
    }

    fn lock_file(&self, path: &Path) -> io::Result<Box<dyn Debug + Send + Sync>> {
        self.0.inner.lock_file(path)
    }

    fn free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.0.inner.free_bytes(dir)
    }

    fn random(&self) -> u128 {
        self.0.inner.random()
    }

    fn open_files_max(&self) -> Option<u64> {
        self.0.inner.open_files_max()
    }

    fn memory_max(&self) -> Option<u64> {
        self.0.inner.memory_max()
    }

    fn shared_memory(&self) -> Option<u64> {
        self.0.inner.shared_memory()
    }

    fn now(&self) -> Duration {
        self.0.inner.now()
    }
}

impl CipherEnv {
    /// Returns the number of a new session.
    fn session(&self) -> u64 {
        self.0.inner.random() as u64
    }
}
