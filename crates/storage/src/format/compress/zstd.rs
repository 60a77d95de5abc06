//! Zstandard, if this build has it. It is the only part of a store that is not written in Rust.

/// True if this build has the codec.
pub(super) const IS_BUILT: bool = cfg!(feature = "zstd");

pub(super) use built::{Compressor, decompress};

#[cfg(feature = "zstd")]
mod built {
    use std::cell::RefCell;
    use zstd::bulk;

    /// Compresses blocks one after the other.
    pub(in super::super) struct Compressor(Option<bulk::Compressor<'static>>);

    impl Compressor {
        /// Returns a compressor of this level, 1 to 19.
        pub(in super::super) fn new(level: u8) -> Compressor {
            Compressor(bulk::Compressor::new(i32::from(level)).ok())
        }

        /// Compresses `payload` into `scratch`. Returns the length of the output in bytes.
        pub(in super::super) fn compress(
            &mut self,
            payload: &[u8],
            scratch: &mut Vec<u8>,
        ) -> Option<usize> {
            scratch.resize(zstd::zstd_safe::compress_bound(payload.len()), 0);
            self.0.as_mut()?.compress_to_buffer(payload, &mut scratch[..]).ok()
        }
    }

    crate::sync::thread_local! {
        /// One per thread, because its creation takes longer than the decompression of a block.
        static ZSTD: RefCell<Option<bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    }

    /// Decompresses `made` into `payload`. Returns the bytes written.
    pub(in super::super) fn decompress(made: &[u8], payload: &mut [u8]) -> Option<usize> {
        ZSTD.with(|zstd| {
            let zstd = &mut *zstd.borrow_mut();
            if zstd.is_none() {
                *zstd = bulk::Decompressor::new().ok();
            }
            zstd.as_mut()?.decompress_to_buffer(made, payload).ok()
        })
    }
}

#[cfg(not(feature = "zstd"))]
mod built {
    /// Compresses nothing.
    pub(in super::super) struct Compressor;

    impl Compressor {
        pub(in super::super) fn new(_: u8) -> Compressor {
            Compressor
        }

        pub(in super::super) fn compress(&mut self, _: &[u8], _: &mut Vec<u8>) -> Option<usize> {
            None
        }
    }

    pub(in super::super) fn decompress(_: &[u8], _: &mut [u8]) -> Option<usize> {
        None
    }
}
