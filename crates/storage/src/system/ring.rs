//! A ring of requests to the system (`io_uring`): reads that begin before their bytes are needed,
//! so that a device works on several of one thread at a time.

use super::memory::Memory;
use super::types::EarlyPlace;
use io_uring::{IoUring, opcode, types};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

/// Reads whose bytes nobody has taken: as many as range reads announce at a time.
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
pub(crate) struct Ring {
    ring: IoUring,
    memory: Option<Memory>,
    reads: [Option<EarlyRead>; READS_MAX],
    /// The number of reads that were announced.
    announced: u64,
    /// True once a request stayed in the ring. Nothing may be submitted any more.
    is_stuck: bool,
}

impl Ring {
    /// Makes a ring. Fails where the system has none, or a sandbox forbids it.
    pub(crate) fn new() -> io::Result<Ring> {
        Ok(Ring {
            ring: IoUring::new(READS_MAX as u32)?,
            memory: Some(Memory::new(READS_MAX * BYTES_MAX)?),
            reads: [None; READS_MAX],
            announced: 0,
            is_stuck: false,
        })
    }

    /// Begins to read `place` of `file`. Does nothing if that cannot be done now.
    #[allow(unsafe_code, reason = "the system writes into memory")]
    pub(crate) fn begin(&mut self, file: &File, place: EarlyPlace) {
        if self.is_stuck || place.bytes > BYTES_MAX || self.find(place).is_some() {
            return;
        }
        self.note_done();
        let number = self.announced;
        self.announced += 1;
        let is_stale = |read: &EarlyRead| {
            read.done.is_some() && number.saturating_sub(read.number) > ANNOUNCED_MAX
        };
        let free = self.reads.iter().position(|read| read.as_ref().is_none_or(is_stale));
        let (Some(index), Some(memory)) = (free, &self.memory) else { return };
        let to = memory.start().wrapping_add(index * BYTES_MAX);
        let entry = opcode::Read::new(types::Fd(file.as_raw_fd()), to, place.bytes as u32)
            .offset(place.offset)
            .build()
            .user_data(index as u64);
        // SAFETY: The memory holds `BYTES_MAX` bytes from there on. Nobody reads or writes them,
        // and they are not freed, before the system has told that this read is done. The
        // descriptor is open until the request was submitted, below.
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
        // A request must not be submitted later: the number of its descriptor may then be another
        // file's. So the thread does without early reads from here on.
        self.is_stuck = !matches!(submitted, Ok(1));
    }

    /// Calls `take` with the bytes of `place`, if they are being read: all of them, or those up to
    /// the end of the file.
    #[allow(unsafe_code, reason = "the system has written into memory")]
    pub(crate) fn take(&mut self, place: EarlyPlace, take: impl FnOnce(&[u8])) {
        let Some(index) = self.find(place) else { return };
        let is_done = |ring: &Ring| ring.reads[index].is_some_and(|read| read.done.is_some());
        if !self.wait_until(is_done) {
            return;
        }
        let done = self.reads[index].take().and_then(|read| read.done);
        // A read that failed is done again, and then tells why.
        let bytes = done.and_then(|done| usize::try_from(done).ok());
        let (Some(bytes), Some(memory)) = (bytes, &self.memory) else { return };
        // SAFETY: The system is done with this memory, which holds so many bytes, all of them
        // zeros or written. `self` is borrowed, so no other read begins there meanwhile.
        let memory = unsafe {
            let start = memory.start().add(index * BYTES_MAX);
            std::slice::from_raw_parts(start, bytes.min(place.bytes))
        };
        take(memory);
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

    /// Waits until `is_so`, which looks at the reads. Returns false if it cannot wait.
    fn wait_until(&mut self, is_so: impl Fn(&Ring) -> bool) -> bool {
        loop {
            self.note_done();
            if is_so(self) {
                return true;
            }
            if self.is_stuck {
                return false;
            }
            match self.ring.submit_and_wait(1) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return false,
                _ => {}
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let are_done = |ring: &Ring| ring.reads.iter().flatten().all(|read| read.done.is_some());
        if !self.wait_until(are_done) {
            // The system may still write into it.
            std::mem::forget(self.memory.take());
        }
    }
}
