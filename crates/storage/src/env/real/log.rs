//! A log file mapped into memory: an append is a copy, without a system call.
//!
//! What is in the map belongs to the system's page cache: it outlives the process at once, and
//! the device after a sync. The space is allocated when the file is made, so no append can find
//! the device full. Every page is also touched for writing then, off the path of the puts if the
//! log is made ahead: of 133-byte appends one in 30 meets a new page, which costs it 2 us and, at
//! times, a wait for the file system's journal. Measured per append: 22 ns with pages touched
//! ahead (and 0.3 ms per MiB for that), 80 ns without. Its price: every page is written once more
//! than needed. A sync of the whole file would do that at the first time, 15 ms for 16 MiB, so a
//! sync is of the pages that were appended to, and now and then of the next ones too: space that
//! is written for the first time is written down in the file's metadata, and that with every
//! sync would take twice as long.

use crate::env::common::check_append;
use crate::env::{LogFile, SyncReach};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::unscheduled::AtomicU64 as Word;
use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::{Errno, retry_on_intr};
use std::fs::File;
use std::io;

/// Bytes that are written ahead of those appended, so that few syncs meet space that was never
/// written: 1 ms for each.
#[cfg(target_os = "linux")]
const WRITTEN_AHEAD_BYTES: u64 = 1 << 20;

/// A log file of fixed capacity.
#[derive(Debug)]
pub(super) struct RealLog {
    file: File,
    map: MmapRaw,
    /// Bytes appended, all of them complete. Always a multiple of 8, and at most the length of
    /// the map. Changed only by the holder of `appending`; read without it, as a writer asks
    /// before each append and a lock is dear next to a copy of some hundred bytes.
    end: AtomicU64,
    /// The length of the file: that of the map until the log is cut. Changed only by the holder of
    /// `appending`.
    capacity: AtomicU64,
    /// Bytes from the start that are synced.
    #[cfg(target_os = "linux")]
    synced: AtomicU64,
    /// Bytes from the start whose space has been written.
    #[cfg(target_os = "linux")]
    written: AtomicU64,
    /// Held during an append, so that nothing is visible before what is in front of it.
    appending: Mutex<()>,
}

impl RealLog {
    /// Turns `file`, new and empty, into a log of `capacity` zero bytes.
    pub(super) fn new(file: File, capacity: u64) -> io::Result<RealLog> {
        retry_on_intr(|| fallocate(&file, FallocateFlags::empty(), 0, capacity))?;
        let too_large = |_| io::Error::from(io::ErrorKind::FileTooLarge);
        let length = usize::try_from(capacity).map_err(too_large)?;
        let map = MmapOptions::new().len(length).map_raw(&file)?;
        touch_all(&map)?;
        Ok(RealLog {
            file,
            map,
            end: AtomicU64::new(0),
            capacity: AtomicU64::new(capacity),
            #[cfg(target_os = "linux")]
            synced: AtomicU64::new(0),
            #[cfg(target_os = "linux")]
            written: AtomicU64::new(0),
            appending: Mutex::new(()),
        })
    }

    /// Syncs what was appended. Here the call for a part of a map is `fdatasync` for that part, and
    /// tells of the same failures.
    #[cfg(target_os = "linux")]
    fn sync_data(&self) -> io::Result<()> {
        let end = self.end.load(Ordering::Acquire);
        let from = self.synced.load(Ordering::Acquire).min(end);
        let upto = match end <= self.written.load(Ordering::Relaxed) {
            true => end,
            false => self.capacity().min(end + WRITTEN_AHEAD_BYTES),
        };
        self.map.flush_range(from as usize, (upto - from) as usize)?;
        self.synced.fetch_max(end, Ordering::Release);
        self.written.fetch_max(upto, Ordering::Relaxed);
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Copies `head` and `rest` to `at`, `head` last and in one step.
    #[allow(unsafe_code)]
    fn store(&self, at: usize, head: [u8; 8], rest: &[u8]) {
        assert!(at.is_multiple_of(8) && at + 8 + rest.len() <= self.map.len());
        // SAFETY: The assertion keeps every byte written inside the map, which lives as long as
        // `self`. Nothing of the map is ever borrowed or read through `self`, and `appending`,
        // held by the only caller, keeps two stores apart; so neither the copy nor the
        // atomic store races with another access of this process. The map starts at a page and
        // `at` is a multiple of 8, so the pointer is aligned for `AtomicU64`.
        unsafe {
            let place = self.map.as_mut_ptr().add(at);
            place.add(8).copy_from_nonoverlapping(rest.as_ptr(), rest.len());
            // Release: whoever sees the head (after a crash of this process, the next reader of
            // the file) sees the rest.
            Word::from_ptr(place.cast()).store(u64::from_ne_bytes(head), Ordering::Release);
        }
    }
}

/// Makes every page of `map` writable now. A system that cannot is no error: the pages then come
/// one by one.
fn touch_all(map: &MmapRaw) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Err(error) = map.advise(memmap2::Advice::PopulateWrite)
        && Errno::from_io_error(&error) != Some(Errno::INVAL)
    {
        return Err(error);
    }
    Ok(())
}

impl LogFile for RealLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        let _appending = self.appending.lock();
        let end = self.end.load(Ordering::Relaxed);
        check_append(bytes.len(), end, self.capacity())?;
        if let Some((head, rest)) = bytes.split_first_chunk::<8>() {
            self.store(end as usize, *head, rest);
            self.end.store(end + bytes.len() as u64, Ordering::Release);
        }
        Ok(())
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        // Changes made through a shared map are changes of the file, and synced with it.
        match reach {
            SyncReach::Data => self.sync_data(),
            SyncReach::All => self.file.sync_all(),
        }
    }

    fn bytes(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    fn capacity(&self) -> u64 {
        self.capacity.load(Ordering::Relaxed)
    }

    /// The pages of the map behind the new end must not be touched any more, and are not: nothing
    /// is stored beyond the capacity, and a sync looks at no page through the map.
    fn cut(&self) -> io::Result<()> {
        let _appending = self.appending.lock();
        let end = self.end.load(Ordering::Relaxed);
        self.file.set_len(end)?;
        self.capacity.store(end, Ordering::Relaxed);
        Ok(())
    }
}
