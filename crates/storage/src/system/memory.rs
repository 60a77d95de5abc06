//! Memory that goes back to the system as soon as it is freed.

use memmap2::{MmapMut, MmapRaw};
use std::io;

/// Zeroed memory of a memtable, a map of its own.
#[derive(Debug)]
pub(crate) struct Memory(MmapRaw);

impl Memory {
    /// Returns `bytes` bytes, all zero. Fails if the system has no memory, or the process too many
    /// maps.
    pub(crate) fn new(bytes: usize) -> io::Result<Memory> {
        Ok(Memory(MmapMut::map_anon(bytes)?.into()))
    }

    /// Returns the first byte, which is at the start of a page.
    #[inline(always)]
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Asks for a part of the memory at once, which takes less time than a fault per page. A system
    /// that does not know the call has faults instead.
    pub(crate) fn make_ready(&self, start: usize, bytes: usize) {
        #[cfg(target_os = "linux")]
        let _ = self.0.advise_range(memmap2::Advice::PopulateWrite, start, bytes);
        let _ = (start, bytes);
    }
}
