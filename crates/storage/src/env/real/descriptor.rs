//! A descriptor that can be given back.
//!
//! A process may have few files open. So an open file can give its descriptor back, and opens the
//! file again, by its path, when it needs the descriptor. It then makes sure that the path leads to
//! the same file.

use super::open;
use crate::sync::ArcSwap;
use crate::system::{FileId, id_of};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The descriptor of a file, or what leads to it.
#[derive(Debug)]
pub(super) struct Descriptor {
    path: PathBuf,
    options: OpenOptions,
    id: FileId,
    /// What is done with the file whenever it is opened.
    prepare: Option<fn(&File) -> io::Result<()>>,
    file: ArcSwap<Option<File>>,
}

impl Descriptor {
    /// Opens the regular file at `path` with `options`, which make no file if it is opened again.
    pub(super) fn open(options: OpenOptions, path: &Path) -> io::Result<Descriptor> {
        let file = open::open(&mut options.clone(), path)?;
        Descriptor::new(file, options, path)
    }

    /// Returns the descriptor of `file`, which is at `path` and is opened again with `options`.
    pub(super) fn new(file: File, options: OpenOptions, path: &Path) -> io::Result<Descriptor> {
        let id = id_of(&file)?;
        let file = ArcSwap::from_pointee(Some(file));
        Ok(Descriptor { path: path.to_path_buf(), options, id, prepare: None, file })
    }

    /// Calls `prepare` with the file now, and whenever it is opened again.
    pub(super) fn prepare(&mut self, prepare: fn(&File) -> io::Result<()>) -> io::Result<()> {
        self.prepare = Some(prepare);
        self.with(prepare)
    }

    /// Calls `call` with the open file.
    #[inline]
    pub(super) fn with<T>(&self, call: impl FnOnce(&File) -> io::Result<T>) -> io::Result<T> {
        let held = self.file.load();
        if let Some(file) = &**held {
            return call(file);
        }
        drop(held);
        let file = Arc::new(Some(self.open_again()?));
        self.file.store(Arc::clone(&file));
        file.as_ref().as_ref().map_or(Err(io::ErrorKind::NotFound.into()), call)
    }

    /// Returns the open file, or `None` if its descriptor was given back.
    pub(super) fn now(&self) -> Arc<Option<File>> {
        self.file.load_full()
    }

    /// Opens the file again, for the caller alone.
    #[cold]
    pub(super) fn open_again(&self) -> io::Result<File> {
        let file = open::open(&mut self.options.clone(), &self.path)?;
        if id_of(&file)? != self.id {
            return Err(io::Error::other("another file has taken the name of the open one"));
        }
        if let Some(prepare) = self.prepare {
            prepare(&file)?;
        }
        Ok(file)
    }

    /// Gives the descriptor back, once no call uses it any more.
    pub(super) fn release(&self) {
        self.file.store(Arc::new(None));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;

    fn content(descriptor: &Descriptor) -> io::Result<String> {
        descriptor.with(|mut file| {
            let mut text = String::new();
            file.read_to_string(&mut text).map(|_| text)
        })
    }

    #[test]
    fn a_file_is_opened_again_and_never_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        fs::write(&path, "this").unwrap();
        let mut options = OpenOptions::new();
        options.read(true);
        let descriptor = Descriptor::open(options, &path).unwrap();
        descriptor.release();
        assert_eq!(content(&descriptor).unwrap(), "this");
        descriptor.release();
        fs::rename(&path, dir.path().join("elsewhere")).unwrap();
        assert_eq!(content(&descriptor).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::write(&path, "that").unwrap();
        let error = content(&descriptor).unwrap_err();
        assert!(error.to_string().contains("another file"), "{error}");
        fs::rename(dir.path().join("elsewhere"), &path).unwrap();
        assert_eq!(content(&descriptor).unwrap(), "this", "an error is not for ever");
    }
}
