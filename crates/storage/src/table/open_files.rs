//! Chooses which table files keep a descriptor, because a process may have few.
//!
//! A table whose file is mapped needs none. Without a map, a read opens the file again. The files
//! that were read last by calls keep their descriptors. A read of a file that has one does no more
//! than compare two numbers.

use crate::env::{Env, KeepsOpen, ReadFile, close_when_short};
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io;
use std::sync::{Arc, Weak};

/// One of this many descriptors is given back at a time, so that few reads look for the oldest.
const GIVEN_BACK: usize = 16;

/// Usually tables keep this part of the descriptors that the process may have.
const USUAL_PART: u64 = 4;

/// The table files that keep descriptors: at most `max`, and files that are just being read.
#[derive(Debug)]
pub struct OpenFiles {
    max: usize,
    /// The number of times that a file was given a descriptor. The time of a read is this count.
    now: AtomicU64,
    open: Mutex<Vec<Weak<TableRead>>>,
}

impl OpenFiles {
    /// Returns an empty list for `max` files, at least one.
    pub fn new(max: usize) -> Arc<OpenFiles> {
        let max = max.max(1);
        let files = Arc::new(OpenFiles { max, now: AtomicU64::new(0), open: Mutex::default() });
        close_when_short(&files);
        files
    }

    /// Returns an empty list for a file or two.
    pub fn few() -> Arc<OpenFiles> {
        OpenFiles::new(usize::MAX)
    }

    /// Returns the usual number of files: a part of what the process may have open in `env`.
    pub fn usual_max(env: &dyn Env) -> usize {
        let max = env.open_files_max().map_or(u64::MAX, |max| max / USUAL_PART);
        usize::try_from(max).unwrap_or(usize::MAX)
    }

    /// Returns the number of files that have descriptors.
    pub fn count(&self) -> usize {
        let mut open = self.open.lock();
        forget_closed(&mut open);
        open.len()
    }

    /// Adds `read`, whose file has a descriptor now. Gives others back if they are too many.
    fn admit(&self, read: &Arc<TableRead>) {
        read.used.store(self.now.fetch_add(1, Ordering::Relaxed) + 1, Ordering::Relaxed);
        let mut open = self.open.lock();
        open.push(Arc::downgrade(read));
        if open.len() > self.max {
            forget_closed(&mut open);
        }
        if let Some(surplus) = open.len().checked_sub(self.max).filter(|surplus| *surplus > 0) {
            let oldest = (surplus + self.max / GIVEN_BACK).min(open.len() - 1);
            give_back(&mut open, oldest);
        }
    }
}

impl KeepsOpen for OpenFiles {
    fn close_all(&self) {
        let mut open = self.open.lock();
        forget_closed(&mut open);
        let all = open.len();
        give_back(&mut open, all);
    }
}

/// Removes the files that have no descriptor any more.
fn forget_closed(open: &mut Vec<Weak<TableRead>>) {
    let is_open = |read: &Weak<TableRead>| {
        read.upgrade().is_some_and(|read| read.is_open.load(Ordering::Relaxed))
    };
    open.retain(is_open);
}

/// Gives the descriptors of the `count` files back that were read least recently.
fn give_back(open: &mut Vec<Weak<TableRead>>, count: usize) {
    let used = |read: &Weak<TableRead>| read.upgrade().map_or(0, |read| read.used());
    // Read once each: other threads change the times meanwhile.
    open.sort_by_cached_key(used);
    open.drain(..count).filter_map(|read| read.upgrade()).for_each(|read| read.close());
}

/// The open file of a table.
#[derive(Debug)]
pub(super) struct TableRead {
    file: Arc<dyn ReadFile>,
    files: Arc<OpenFiles>,
    /// The time of the last read.
    used: AtomicU64,
    /// True if the file has a descriptor, as far as `files` knows.
    is_open: AtomicBool,
}

impl TableRead {
    /// Returns `file`, just opened, whose descriptor is one of `files`.
    pub(super) fn new(file: Arc<dyn ReadFile>, files: &Arc<OpenFiles>) -> Arc<TableRead> {
        let read = Arc::new(TableRead {
            file,
            files: Arc::clone(files),
            used: AtomicU64::new(0),
            is_open: AtomicBool::new(true),
        });
        files.admit(&read);
        read
    }

    fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Gives the descriptor back.
    pub(super) fn close(&self) {
        self.is_open.store(false, Ordering::Relaxed);
        self.file.release();
    }

    /// Calls `call` with the file, which may open it again.
    pub(super) fn with<T>(
        self: &Arc<Self>,
        call: impl FnOnce(&dyn ReadFile) -> io::Result<T>,
    ) -> io::Result<T> {
        let now = self.files.now.load(Ordering::Relaxed);
        if self.used() != now {
            self.used.store(now, Ordering::Relaxed);
        }
        let done = call(&*self.file);
        // Also if it was closed during the call, which then has opened it again.
        if !self.is_open.load(Ordering::Relaxed) && !self.is_open.swap(true, Ordering::Relaxed) {
            self.files.admit(self);
        }
        done
    }

    /// Returns the file, for calls that need no descriptor.
    pub(super) fn file(&self) -> &dyn ReadFile {
        &*self.file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::atomic::AtomicUsize;

    /// A file that counts how many of its kind have descriptors.
    #[derive(Debug)]
    struct Counted {
        is_open: AtomicBool,
        count: Arc<AtomicUsize>,
    }

    impl ReadFile for Counted {
        fn read_exact_at(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            if !self.is_open.swap(true, Ordering::Relaxed) {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
            Ok(())
        }

        fn bytes(&self) -> io::Result<u64> {
            Ok(0)
        }

        fn release(&self) {
            if self.is_open.swap(false, Ordering::Relaxed) {
                self.count.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }

    impl Drop for Counted {
        fn drop(&mut self) {
            self.release();
        }
    }

    struct Bench {
        count: Arc<AtomicUsize>,
        files: Arc<OpenFiles>,
        reads: Vec<Arc<TableRead>>,
    }

    impl Bench {
        fn new(max: usize) -> Bench {
            let count = Arc::default();
            let files = OpenFiles::new(max);
            let open = |_| {
                let file = Counted { is_open: AtomicBool::new(false), count: Arc::clone(&count) };
                file.read_exact_at(&mut [], 0).unwrap();
                TableRead::new(Arc::new(file), &files)
            };
            let reads = (0..100).map(open).collect();
            Bench { count, files, reads }
        }

        fn read(&self, index: usize) {
            self.reads[index].with(|file| file.read_exact_at(&mut [], 0)).unwrap();
        }

        fn open(&self) -> usize {
            self.count.load(Ordering::Relaxed)
        }

        fn is_open(&self, index: usize) -> bool {
            self.reads[index].is_open.load(Ordering::Relaxed)
        }
    }

    #[test]
    fn those_read_least_recently_are_closed_first() {
        let bench = Bench::new(32);
        assert!((30..=32).contains(&bench.open()), "{}", bench.open());
        for index in 0..20 {
            bench.read(index);
            bench.read(99);
        }
        assert!(bench.open() <= 32 && bench.files.count() == bench.open());
        assert!((0..20).chain([99]).all(|index| bench.is_open(index)));
        assert!((20..80).all(|index| !bench.is_open(index)));
    }

    #[test]
    fn one_at_a_time_is_enough() {
        let bench = Bench::new(0);
        for round in 0..300 {
            bench.read(round * 7 % 100);
            assert_eq!(bench.open(), 1);
        }
    }

    #[test]
    fn all_are_closed_when_no_more_can_be_opened() {
        let bench = Bench::new(usize::MAX);
        assert_eq!(bench.open(), 100);
        bench.files.close_all();
        assert_eq!((bench.files.count(), bench.open()), (0, 0));
        (0..100).for_each(|index| bench.read(index));
        assert_eq!((bench.files.count(), bench.open()), (100, 100));
    }

    #[test]
    fn dropped_and_mapped_files_are_forgotten() {
        let mut bench = Bench::new(usize::MAX);
        bench.reads.truncate(50);
        bench.reads[..20].iter().for_each(|read| read.close());
        assert_eq!((bench.files.count(), bench.open()), (30, 30));
    }
}
