//! A log file that is written by system calls, where maps cannot be synced or hinder a removal.
//!
//! An append is one call. Its bytes outlive the process at once, and power loss after a sync.

use super::descriptor::Descriptor;
use super::log::make_room;
use crate::env::common::check_append;
use crate::env::{LogFile, SyncReach};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::system;
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// A log file of fixed capacity.
#[derive(Debug)]
pub(super) struct WrittenLog {
    file: Descriptor,
    /// The number of bytes appended, all of them complete.
    end: AtomicU64,
    /// The length of the file. Only the holder of `appending` changes it.
    capacity: AtomicU64,
    /// Held during an append, so that no append becomes visible before the one in front of it.
    appending: Mutex<()>,
}

impl WrittenLog {
    /// Turns `file`, new and empty and at `path`, into a log of `capacity` zero bytes.
    pub(super) fn new(file: File, path: &Path, capacity: u64) -> io::Result<WrittenLog> {
        make_room(&file, capacity, || system::allocate(&file, capacity))?;
        // What allocated the space may have left the length as it was.
        file.set_len(capacity)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        Ok(WrittenLog {
            file: Descriptor::new(file, options, path)?,
            end: AtomicU64::new(0),
            capacity: AtomicU64::new(capacity),
            appending: Mutex::new(()),
        })
    }
}

impl LogFile for WrittenLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let _appending = self.appending.lock();
        let end = self.end.load(Ordering::Relaxed);
        check_append(bytes.len(), end, self.capacity())?;
        self.file.with(|file| system::write_all_at(file, bytes, end))?;
        self.end.store(end + bytes.len() as u64, Ordering::Release);
        Ok(())
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        match reach {
            SyncReach::Data => self.file.with(File::sync_data),
            SyncReach::All => self.file.with(File::sync_all),
        }
    }

    fn bytes(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    fn cut(&self) -> io::Result<()> {
        let _appending = self.appending.lock();
        let end = self.end.load(Ordering::Relaxed);
        self.file.with(|file| file.set_len(end))?;
        self.capacity.store(end, Ordering::Relaxed);
        Ok(())
    }
}
