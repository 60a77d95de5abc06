//! A log file mapped into memory: an append is a copy, without a system call.
//!
//! The map belongs to the page cache of the system: its bytes outlive the process at once, and
//! power loss after a sync. The space is allocated when the file is created, so no append can find
//! the device full. On a file system that allocates nothing ahead, zeros are written in its place.
//!
//! Creation also touches every page for writing. Without that, one of 30 appends of 133 bytes meets
//! a new page, which costs 2 us and, at times, a wait for the journal of the file system. An append
//! takes 22 ns with touched pages (plus 0.3 ms per MiB for touching), 80 ns without. The puts do
//! not wait for this if the log is created in advance. The price is that every page is written once
//! more than needed.
//!
//! A page of a log costs more than the copy of its bytes: over a third of the CPU time of a fill
//! with values of 8 kB was for touched pages, and for giving them up. Calls that write long records
//! need no touched pages. So a log for long records is not touched, and is written by calls.
//!
//! A first sync of the whole file would write all those pages: 15 ms for 16 MiB. So a sync covers
//! the pages that were appended to, and now and then also the following ones. The first write to
//! space changes the metadata of the file, and doing that in every sync would take twice as long.

use super::descriptor::Descriptor;
use crate::env::common::check_append;
use crate::env::{LogFile, SyncReach};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::unscheduled::AtomicU64 as Word;
use crate::system;
use memmap2::{MmapOptions, MmapRaw};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// The zeros that are written at once where space cannot be allocated.
static ZEROS: [u8; 64 << 10] = [0; 64 << 10];

/// A log is written by calls if its records have about so many bytes or more.
const LONG_RECORD_BYTES: u64 = 4096;

/// The number of bytes that a sync writes beyond the appended ones, so that few syncs meet space
/// that was never written. Each such sync costs 1 ms.
const WRITTEN_AHEAD_BYTES: u64 = 1 << 20;

/// A log file of fixed capacity.
#[derive(Debug)]
pub(super) struct RealLog {
    file: Descriptor,
    map: MmapRaw,
    /// True if records are written by calls, and not through the map.
    is_written: bool,
    /// The number of bytes appended, all of them complete. Always a multiple of 8, and at most the
    /// length of the map. Only the holder of `appending` changes it. A writer reads it without the
    /// lock before each append, because a lock is slow compared with a copy of some hundred bytes.
    end: AtomicU64,
    /// The length of the file. The map has the same length until the log is cut. Only the holder of
    /// `appending` changes it.
    capacity: AtomicU64,
    /// The number of bytes from the start that are synced.
    synced: AtomicU64,
    /// The number of bytes from the start whose space has been written.
    written: AtomicU64,
    /// Held during an append, so that no append becomes visible before the one in front of it.
    appending: Mutex<()>,
}

impl RealLog {
    /// Turns `file`, new and empty and at `path`, into a log of `capacity` zero bytes, for records
    /// of about `record_bytes`.
    pub(super) fn new(
        file: File,
        path: &Path,
        capacity: u64,
        record_bytes: u64,
    ) -> io::Result<RealLog> {
        make_room(&file, capacity, || system::allocate(&file, capacity))?;
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let length = usize::try_from(capacity).map_err(too_large)?;
        let map = MmapOptions::new().len(length).map_raw(&file)?;
        let is_written = record_bytes >= LONG_RECORD_BYTES;
        if !is_written {
            system::touch_all(&map)?;
        }
        system::keep_from_children(&map)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        Ok(RealLog {
            file: Descriptor::new(file, options, path)?,
            map,
            is_written,
            end: AtomicU64::new(0),
            capacity: AtomicU64::new(capacity),
            synced: AtomicU64::new(0),
            written: AtomicU64::new(0),
            appending: Mutex::new(()),
        })
    }

    /// Syncs the appended bytes. Where logs are mapped, a flush of a part of a map is `fdatasync`
    /// for that part, and reports the same failures.
    fn sync_data(&self) -> io::Result<()> {
        let end = self.end.load(Ordering::Acquire);
        let from = self.synced.load(Ordering::Acquire).min(end);
        let written = if end <= self.written.load(Ordering::Relaxed) {
            end
        } else {
            self.capacity().min(end + WRITTEN_AHEAD_BYTES)
        };
        self.map.flush_range(from as usize, (written - from) as usize)?;
        self.synced.fetch_max(end, Ordering::Release);
        self.written.fetch_max(written, Ordering::Relaxed);
        Ok(())
    }

    /// Syncs all of the file. Does not fail because no descriptor can be had.
    fn sync_all(&self) -> io::Result<()> {
        if let Some(file) = &*self.file.now() {
            return file.sync_all();
        }
        // A new descriptor does not learn of failures from before. The map does.
        self.sync_data()?;
        // Closed at once: a store may sync many full logs, and other threads may hold them longer.
        match self.file.open_again() {
            Ok(file) => file.sync_all(),
            Err(_) => {
                system::sync_everything();
                Ok(())
            }
        }
    }

    /// Copies `head` and `rest` to `at`. The head is stored last and in one step.
    #[allow(unsafe_code, reason = "writes to the map")]
    fn store(&self, at: usize, head: [u8; 8], rest: &[u8]) {
        assert!(at.is_multiple_of(8) && at + 8 + rest.len() <= self.map.len());
        // SAFETY: The assertion keeps every byte written inside the map, which lives as long as
        // `self`. Nothing borrows or reads the map through `self`, and the only caller holds
        // `appending`, which keeps two stores apart. So neither the copy nor the atomic store races
        // with another access of this process. The map starts at a page and `at` is a multiple of
        // 8, so the pointer is aligned for `AtomicU64`.
        unsafe {
            let place = self.map.as_mut_ptr().add(at);
            place.add(8).copy_from_nonoverlapping(rest.as_ptr(), rest.len());
            // Release: a reader that sees the head sees the rest too. After a crash of this
            // process, that is the next reader of the file.
            Word::from_ptr(place.cast()).store(u64::from_ne_bytes(head), Ordering::Release);
        }
    }
}

/// Writes `head` and `rest` at `at` of `file`. The head is written last and in one step.
pub(super) fn write_record(file: &File, at: u64, head: &[u8; 8], rest: &[u8]) -> io::Result<()> {
    system::write_all_at(file, rest, at + 8)?;
    system::write_all_at(file, head, at)
}

/// Makes `file`, new and empty, `bytes` zero bytes long, with their space: by `allocate`, or by
/// writing them where the file system (ramfs, FUSE, NFS before 4.2) cannot do that.
pub(super) fn make_room(
    file: &File,
    bytes: u64,
    allocate: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    match allocate() {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {}
        done => return done,
    }
    let mut at = 0;
    while at < bytes {
        let zeros = &ZEROS[..(bytes - at).min(ZEROS.len() as u64) as usize];
        system::write_all_at(file, zeros, at)?;
        at += zeros.len() as u64;
    }
    Ok(())
}

impl LogFile for RealLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let _appending = self.appending.lock();
        let end = self.end.load(Ordering::Relaxed);
        check_append(bytes.len(), end, self.capacity())?;
        if let Some((head, rest)) = bytes.split_first_chunk::<8>() {
            if self.is_written {
                self.file.with(|file| write_record(file, end, head, rest))?;
            } else {
                self.store(end as usize, *head, rest);
            }
            self.end.store(end + bytes.len() as u64, Ordering::Release);
        }
        Ok(())
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        // Changes made through a shared map are changes of the file, and are synced with it.
        match reach {
            SyncReach::Data => self.sync_data(),
            SyncReach::All => self.sync_all(),
        }
    }

    fn bytes(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// Pages of the map behind the new end must not be touched any more. They are not: no append
    /// stores beyond the capacity, and a sync reads no page through the map.
    fn cut(&self) -> io::Result<()> {
        let _appending = self.appending.lock();
        let end = self.end.load(Ordering::Relaxed);
        self.file.with(|file| file.set_len(end))?;
        self.capacity.store(end, Ordering::Relaxed);
        Ok(())
    }

    /// The map needs no descriptor, and a sync of data goes through the map.
    fn release(&self) {
        self.file.release();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    /// What broke: a sync of all opened the file of each full log again, and kept it open for as
    /// long as a flush held the log.
    #[test]
    fn a_sync_of_all_keeps_no_released_file_open() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        let mut options = std::fs::OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
        let log = RealLog::new(file, &path, 4096, 0).unwrap();
        log.append(b"before a release").unwrap();
        log.release();
        log.sync(SyncReach::All).unwrap();
        assert!(log.file.now().is_none());
    }

    #[test]
    fn a_log_for_long_records_has_what_was_appended() {
        let dir = tempfile::tempdir().unwrap();
        for record_bytes in [0, 4095, 4096, 1 << 20] {
            let path = dir.path().join(record_bytes.to_string());
            let mut options = std::fs::OpenOptions::new();
            let file = options.read(true).write(true).create_new(true).open(&path).unwrap();
            let log = RealLog::new(file, &path, 100_000, record_bytes).unwrap();
            assert_eq!(log.is_written, record_bytes >= 4096);
            let mut expected = Vec::new();
            for (index, bytes) in [8, 16, 10_000, 24, 50_000, 8].into_iter().enumerate() {
                let record = vec![index as u8 + 1; bytes];
                log.append(&record).unwrap();
                expected.extend_from_slice(&record);
                log.sync(if index % 2 == 0 { SyncReach::Data } else { SyncReach::All }).unwrap();
                assert_eq!(log.bytes(), expected.len() as u64);
            }
            assert!(log.append(&[7; 60_000]).is_err(), "there is no room");
            log.release();
            log.sync(SyncReach::Data).unwrap();
            let mut found = std::fs::read(&path).unwrap();
            assert_eq!(found.len(), 100_000);
            assert!(found.split_off(expected.len()).iter().all(|byte| *byte == 0));
            assert!(found == expected);
            log.cut().unwrap();
            assert_eq!(std::fs::metadata(&path).unwrap().len(), expected.len() as u64);
        }
    }

    /// What broke: no store could be made on ramfs, FUSE and older NFS.
    #[test]
    fn zeros_are_written_where_space_cannot_be_allocated() {
        let file = tempfile::tempfile().unwrap();
        let bytes = 3 * ZEROS.len() as u64 + 17;
        make_room(&file, bytes, || Err(io::ErrorKind::Unsupported.into())).unwrap();
        assert_eq!(file.metadata().unwrap().len(), bytes);
        // Not a file of holes: that would have no space.
        assert!(system::held_bytes(&file.metadata().unwrap()) >= bytes);
        let full = make_room(&file, bytes, || Err(io::ErrorKind::StorageFull.into())).unwrap_err();
        assert_eq!(full.kind(), io::ErrorKind::StorageFull, "any other error is one");
    }
}
