//! Reads of a file past the system's cache (direct I/O).
//!
//! The device reads whole blocks into memory that begins at a block. So a read takes the blocks
//! around the bytes that are asked for into memory of this thread, and copies these bytes out.
//! Where the system can, a read that was announced has begun by then.

use super::early;
use crate::sync::atomic::Ordering::Relaxed;
use crate::sync::unscheduled::AtomicU64;
use crate::system::{self, EarlyPlace};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::ops::Range;

/// The number of files opened so far.
static FILES: AtomicU64 = AtomicU64::new(0);

/// A length in bytes that is a multiple of nearly every device's block.
const BLOCK_BYTES: usize = 4096;

/// A thread keeps at most so much memory between its reads.
const KEPT_BYTES: usize = 256 << 10;

thread_local! {
    static BLOCKS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// How a file is read past the system's cache.
#[derive(Clone, Copy, Debug)]
pub(super) struct Direct {
    /// A number of this file alone.
    file: u64,
    /// Reads are of multiples of so many bytes.
    block_bytes: usize,
}

/// Has reads of `file` go past the system's cache. Does nothing where that cannot be done.
pub(super) fn prepare(file: &File) -> io::Result<()> {
    match system::bypass_cache(file) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        done => done,
    }
}

impl Direct {
    /// Returns how `file` is read: in blocks of its device, often of 512 bytes.
    pub(super) fn new(file: &File) -> Direct {
        let said = system::direct_bytes(file).filter(|bytes| *bytes <= KEPT_BYTES);
        let block_bytes = said.unwrap_or(BLOCK_BYTES);
        Direct { file: FILES.fetch_add(1, Relaxed), block_bytes }
    }

    /// Returns the blocks with `bytes` bytes from `offset` on, and how many bytes of them lie ahead
    /// of these.
    fn blocks(self, offset: u64, bytes: usize) -> (EarlyPlace, usize) {
        let Direct { file, block_bytes } = self;
        let ahead = (offset % block_bytes as u64) as usize;
        let bytes = (ahead + bytes).next_multiple_of(block_bytes);
        (EarlyPlace { file, offset: offset - ahead as u64, bytes }, ahead)
    }

    /// Begins to read what this thread will soon read.
    pub(super) fn announce(self, file: &File, range: Range<u64>) {
        let bytes = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        if (1..=KEPT_BYTES).contains(&bytes) {
            early::begin(file, self.blocks(range.start, bytes).0);
        }
    }

    /// Fills `buffer` with the bytes of `file` from `offset` on. Reads whole blocks.
    pub(super) fn read_exact_at(
        self,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<()> {
        let (place, ahead) = self.blocks(offset, buffer.len());
        let wanted = ahead + buffer.len();
        let mut is_filled = false;
        early::take(place, |blocks| {
            if let Some(bytes) = blocks.get(ahead..wanted) {
                buffer.copy_from_slice(bytes);
                is_filled = true;
            }
        });
        if is_filled {
            return Ok(());
        }
        let aligned = self.block_bytes.max(BLOCK_BYTES);
        BLOCKS.with(|kept| {
            let kept = &mut *kept.borrow_mut();
            // Only new memory is written: what an earlier read left there is never copied out.
            if kept.len() < place.bytes + aligned {
                kept.resize(place.bytes + aligned, 0);
            }
            let first = kept.as_ptr().align_offset(aligned);
            let blocks = &mut kept[first..first + place.bytes];
            let done = fill(file, blocks, place.offset, wanted, self.block_bytes);
            if done.is_ok() {
                buffer.copy_from_slice(&blocks[ahead..wanted]);
            }
            if kept.len() > KEPT_BYTES + aligned {
                kept.truncate(KEPT_BYTES);
                kept.shrink_to_fit();
            }
            done
        })
    }
}

/// Reads from `offset` on until `wanted` bytes of `blocks` are filled.
fn fill(
    file: &File,
    blocks: &mut [u8],
    offset: u64,
    wanted: usize,
    block_bytes: usize,
) -> io::Result<()> {
    let mut filled = 0;
    loop {
        // A device is read from the start of a block on, also after a part of one.
        let from = filled / block_bytes * block_bytes;
        let end = from + system::read_at(file, &mut blocks[from..], offset + from as u64)?;
        if end >= wanted {
            return Ok(());
        }
        if end <= filled {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        filled = end;
    }
}

#[cfg(test)]
mod tests {
    use crate::env::{Env, RealEnv};
    use lsmith_fuzz::dice::Dice;

    /// Bytes that this process has read from devices, where the system counts them.
    fn device_bytes() -> Option<u64> {
        let io = std::fs::read_to_string("/proc/self/io").ok()?;
        let line = io.lines().find_map(|line| line.strip_prefix("read_bytes: "))?;
        line.parse().ok()
    }

    #[test]
    fn any_range_is_read_right_and_every_read_is_one_of_the_device() {
        // In the build's own directory: temporary files may be in memory.
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        let env = RealEnv::new().direct();
        let bytes: Vec<u8> = (0..70_001_u32).map(|at| (at / 3) as u8).collect();
        let mut file = env.create(&path).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync().unwrap();
        let file = env.open(&path).unwrap();
        assert!(file.map().unwrap().is_none());
        let is_direct = super::system::bypass_cache(&std::fs::File::open(&path).unwrap()).is_ok();
        let before = device_bytes();
        let mut asked = 0;
        for (from, to) in [(0, 1), (4095, 4097), (4096, 8192), (1, 70_001), (69_999, 70_001)] {
            for _ in 0..3 {
                let mut read = vec![0; to - from];
                file.read_exact_at(&mut read, from as u64).unwrap();
                assert!(read == bytes[from..to], "{from}..{to}");
                asked += to - from;
                file.release();
            }
        }
        let mut behind = [0; 3];
        let error = file.read_exact_at(&mut behind, 69_999).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
        let error = file.read_exact_at(&mut behind, 8 << 20).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::UnexpectedEof);
        if let (true, Some(before), Some(after)) = (is_direct, before, device_bytes()) {
            assert!(after - before >= asked as u64, "{} bytes were read", after - before);
        }
    }

    /// What broke: reads took multiples of 4 KiB, nearly twice what a block of a table needs.
    #[test]
    fn a_read_takes_no_more_than_the_blocks_of_the_device() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = dir.path().join("file");
        std::fs::write(&path, [7; 20_000]).unwrap();
        let file = std::fs::File::open(&path).unwrap();
        file.sync_all().unwrap();
        let Some(said) = super::system::direct_bytes(&file) else { return };
        if super::system::bypass_cache(&file).is_err() || device_bytes().is_none() {
            return;
        }
        let env = RealEnv::new().direct();
        let file = env.open(&path).unwrap();
        // Other tests read beside this one. So one of many reads is enough.
        let least = (0..50).filter_map(|round| {
            let before = device_bytes()?;
            file.read_exact_at(&mut [0; 100], 5000 + round).unwrap();
            Some(device_bytes()? - before)
        });
        // Where reads come from the system's cache after all, none is one of the device.
        assert!(least.min() <= Some(said as u64), "more than {said} bytes");
    }

    fn written(path: &std::path::Path, seed: u32) -> Vec<u8> {
        let byte = |at: u32| ((at ^ seed << 20).wrapping_mul(2_654_435_761) >> 16) as u8;
        let bytes: Vec<u8> = (0..300_001).map(byte).collect();
        std::fs::write(path, &bytes).unwrap();
        std::fs::File::open(path).unwrap().sync_all().unwrap();
        bytes
    }

    /// More announcements than a thread has room for, of several files, in any order, read or not,
    /// whole or in part, behind the end, and by threads that end before their reads do.
    #[test]
    fn announced_reads_are_read_right() {
        let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let paths = [0, 1, 2].map(|number| dir.path().join(number.to_string()));
        let all: Vec<_> = (0..).zip(&paths).map(|(seed, path)| written(path, seed)).collect();
        let env = RealEnv::new().direct();
        let one_thread = |seed: u64| {
            let mut dice = Dice::new(seed);
            for _ in 0..40 {
                let files = [&paths[0], &paths[1], &paths[2]].map(|path| env.open(path).unwrap());
                let mut known = Vec::new();
                for _ in 0..dice.below(80) {
                    let which = dice.below(3);
                    let start = dice.below(310_000) as u64;
                    let range = start..start + 1 + dice.below(9000) as u64;
                    files[which].announce(range.clone());
                    known.push((which, range));
                }
                while !known.is_empty() && dice.below(20) > 0 {
                    let (which, range) = known.swap_remove(dice.below(known.len()));
                    let mut read = vec![0; (range.end - range.start) as usize];
                    let done = files[which].read_exact_at(&mut read, range.start);
                    match all[which].get(range.start as usize..range.end as usize) {
                        Some(bytes) => {
                            done.unwrap();
                            assert!(read == bytes, "{which} {range:?}");
                        }
                        None => drop(done.unwrap_err()),
                    }
                }
            }
        };
        crate::sync::thread::scope(|scope| {
            for seed in 0..4 {
                scope.spawn(move || one_thread(seed));
            }
        });
    }
}
