//! Reads of a file past the system's cache (direct I/O).
//!
//! The device reads whole blocks into memory that begins at a block. So a read takes the blocks
//! around the bytes that are asked for into memory of this thread, and copies these bytes out.

use crate::system;
use std::cell::RefCell;
use std::fs::File;
use std::io;

/// A length in bytes that is a multiple of nearly every device's block.
const BLOCK_BYTES: usize = 4096;

/// A thread keeps at most so much memory between its reads.
const KEPT_BYTES: usize = 256 << 10;

thread_local! {
    static BLOCKS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Has reads of `file` go past the system's cache. Does nothing where that cannot be done.
pub(super) fn prepare(file: &File) -> io::Result<()> {
    match system::bypass_cache(file) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(()),
        done => done,
    }
}

/// Returns the bytes in whose multiples `file` is read: a block of its device, often 512 bytes.
pub(super) fn block_bytes(file: &File) -> usize {
    let said = system::direct_bytes(file);
    said.filter(|bytes| *bytes <= KEPT_BYTES).unwrap_or(BLOCK_BYTES)
}

/// Fills `buffer` with the bytes of `file` from `offset` on. Reads multiples of `block_bytes`.
pub(super) fn read_exact_at(
    file: &File,
    buffer: &mut [u8],
    offset: u64,
    block_bytes: usize,
) -> io::Result<()> {
    let ahead = (offset % block_bytes as u64) as usize;
    let wanted = ahead + buffer.len();
    let bytes = wanted.next_multiple_of(block_bytes);
    let aligned = block_bytes.max(BLOCK_BYTES);
    BLOCKS.with(|kept| {
        let kept = &mut *kept.borrow_mut();
        // Only new memory is written: what an earlier read left there is never copied out.
        if kept.len() < bytes + aligned {
            kept.resize(bytes + aligned, 0);
        }
        let first = kept.as_ptr().align_offset(aligned);
        let blocks = &mut kept[first..first + bytes];
        let done = fill(file, blocks, offset - ahead as u64, wanted, block_bytes);
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
}
