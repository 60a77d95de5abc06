//! Reads past the system's cache that begin before their bytes are needed, so that a device works
//! on several of one thread at a time.
//!
//! A thread has a ring of requests to the system (`io_uring`), made with its first read of this
//! kind. Where the system or its sandbox forbids rings, no read begins early.

use super::{EarlyPlace, Memory};
use crate::sync::Process;
use io_uring::{IoUring, opcode, types};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Early reads of a thread whose bytes nobody has taken: as many as range reads announce at a time.
const READS_MAX: usize = 32;

/// What nobody has taken when this many more reads were announced will not be taken any more.
const ANNOUNCED_MAX: u64 = 64;

/// A longer read does not begin early.
const BYTES_MAX: usize = 64 << 10;

/// A read of the ring.
#[derive(Clone, Copy, Debug)]
struct EarlyRead {
    place: EarlyPlace,
    /// How many reads were announced before it.
    number: u64,
    /// The number of bytes read, or a negative number of an error; `None` while the system reads.
    done: Option<i32>,
}

/// The ring of a thread, with memory of its own for each read.
struct Ring {
    ring: IoUring,
    memory: Memory,
    reads: [Option<EarlyRead>; READS_MAX],
    /// The number of reads that were announced.
    announced: u64,
    process: Process,
}

/// The ring of this thread.
#[derive(Default)]
struct OfThread {
    /// True once it was made, or could not be made.
    is_asked: bool,
    ring: Option<Ring>,
}

thread_local! {
    static RING: RefCell<OfThread> = RefCell::default();
}

/// Begins to read `place` of `file`. Does nothing if that cannot be done now.
pub(crate) fn begin_early(file: &File, place: EarlyPlace) {
    // A thread that ends has no ring any more.
    let _ = RING.try_with(|of_thread| {
        let OfThread { is_asked, ring } = &mut *of_thread.borrow_mut();
        if !std::mem::replace(is_asked, true) {
            *ring = Ring::new().ok();
        }
        if let Some(ring) = ring.as_mut().filter(|ring| ring.process.is_here()) {
            ring.begin(file, place);
        }
    });
}

/// Calls `take` with the bytes of `place`, if this thread has begun to read them: all of them, or
/// those up to the end of the file.
pub(crate) fn take_early(place: EarlyPlace, take: impl FnOnce(&[u8])) {
    let _ = RING.try_with(|of_thread| {
        let ring = &mut of_thread.borrow_mut().ring;
        if let Some(ring) = ring.as_mut().filter(|ring| ring.process.is_here()) {
            ring.take(place, take);
        }
    });
}

impl Ring {
    fn new() -> io::Result<Ring> {
        Ok(Ring {
            ring: IoUring::new(READS_MAX as u32)?,
            memory: Memory::new(READS_MAX * BYTES_MAX)?,
            reads: [None; READS_MAX],
            announced: 0,
            process: Process::here(),
        })
    }

    #[allow(unsafe_code, reason = "the system writes into memory")]
    fn begin(&mut self, file: &File, place: EarlyPlace) {
        if place.bytes > BYTES_MAX || self.find(place).is_some() {
            return;
        }
        self.note_done();
        let number = self.announced;
        self.announced += 1;
        let is_stale = |read: &EarlyRead| {
            read.done.is_some() && number.saturating_sub(read.number) > ANNOUNCED_MAX
        };
        let free = self.reads.iter().position(|read| read.as_ref().is_none_or(is_stale));
        let Some(index) = free else { return };
        let memory = self.memory.start().wrapping_add(index * BYTES_MAX);
        let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), memory, place.bytes as u32)
            .offset(place.offset)
            .build()
            .user_data(index as u64);
        // SAFETY: The memory holds `BYTES_MAX` bytes from there on. Nobody reads or writes
        // them, and they are not freed, before the system has told that this read is done. The
        // descriptor is open until it was submitted, below.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            return;
        }
        self.reads[index] = Some(EarlyRead { place, number, done: None });
        let submitted = loop {
            match self.ring.submit() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                done => break done,
            }
        };
        // An entry must not be submitted later: the number of its descriptor may then be another
        // file's. So the thread does without early reads from here on.
        if !matches!(submitted, Ok(1)) {
            self.process = Process::NOWHERE;
        }
    }

    fn find(&self, place: EarlyPlace) -> Option<usize> {
        self.reads.iter().position(|read| read.is_some_and(|read| read.place == place))
    }

    /// Notes which reads the system has done.
    fn note_done(&mut self) {
        for told in self.ring.completion() {
            if let Some(Some(read)) = self.reads.get_mut(told.user_data() as usize) {
                read.done = Some(told.result());
            }
        }
    }

    #[allow(unsafe_code, reason = "the system has written into memory")]
    fn take(&mut self, place: EarlyPlace, take: impl FnOnce(&[u8])) {
        let Some(index) = self.find(place) else { return };
        loop {
            self.note_done();
            if self.reads[index].is_none_or(|read| read.done.is_some()) {
                break;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // The read stays where it is, until the system tells that it is done.
                Err(_) => return,
                Ok(_) => {}
            }
        }
        let done = self.reads[index].take().and_then(|read| read.done);
        // A read that failed is done again, and then tells why.
        let Some(bytes) = done.and_then(|done| usize::try_from(done).ok()) else { return };
        // SAFETY: The system is done with this memory, which holds so many bytes, all of them
        // zeros or written. `self` is borrowed, so no other read begins there meanwhile.
        let memory = unsafe {
            let start = self.memory.start().add(index * BYTES_MAX);
            std::slice::from_raw_parts(start, bytes.min(place.bytes))
        };
        take(memory);
    }

    /// Waits until the system writes into no memory of this ring. Returns false if it cannot.
    fn wait_for_all(&mut self) -> bool {
        loop {
            self.note_done();
            if self.reads.iter().flatten().all(|read| read.done.is_some()) {
                return true;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return false,
                _ => {}
            }
        }
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        // The ring of a parent process is not touched. Memory that the system may still write into
        // is never freed.
        if let Some(mut ring) = self.ring.take()
            && !(ring.process.is_here() && ring.wait_for_all())
        {
            std::mem::forget(ring);
        }
    }
}
