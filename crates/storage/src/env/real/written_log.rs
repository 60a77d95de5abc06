//! A log file that is written by system calls, where maps cannot be synced or hinder a removal.
//!
//! An append is two calls: its first 8 bytes come last. Its bytes outlive the process at once, and
//! power loss after a sync. A log keeps its descriptor, also when it is full: a new one would not
//! learn of bytes that could not be written.

use super::descriptor::Descriptor;
use super::log::{make_room, write_record};
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
        if let Some((head, rest)) = bytes.split_first_chunk::<8>() {
            self.file.with(|file| write_record(file, end, head, rest))?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::unscheduled::AtomicU8;

    /// What broke: an append was one call, and a process could die after its first page.
    #[test]
    fn the_head_of_a_record_is_written_last() {
        const BYTES: usize = 4 << 20;
        const RECORDS: u64 = 20;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
        let log = WrittenLog::new(file, &path, RECORDS * BYTES as u64).unwrap();
        let reader = File::open(&path).unwrap();
        let is_over = AtomicU8::new(0);
        crate::sync::thread::scope(|threads| {
            threads.spawn(|| {
                let (mut head, mut last) = ([0; 8], [0; 8]);
                for record in 0..RECORDS {
                    let at = record * BYTES as u64;
                    while head == [0; 8] && is_over.load(Ordering::Relaxed) == 0 {
                        system::read_at(&reader, &mut head, at).unwrap();
                    }
                    if head == [0; 8] {
                        return;
                    }
                    system::read_at(&reader, &mut last, at + BYTES as u64 - 8).unwrap();
                    assert_eq!(head, last, "record {record} has a head and no end");
                    head = [0; 8];
                }
            });
            for _ in 0..RECORDS {
                log.append(&[7; BYTES]).unwrap();
            }
            is_over.store(1, Ordering::Relaxed);
        });
    }
}
