//! LZ4, if this build has it.

/// True if this build has the codec.
pub(super) const IS_BUILT: bool = cfg!(feature = "lz4");

/// Compresses `payload` into `scratch`. Returns the length of the output in bytes.
#[cfg(feature = "lz4")]
pub(super) fn compress(payload: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
    scratch.resize(lz4_flex::block::get_maximum_output_size(payload.len()), 0);
    lz4_flex::block::compress_into(payload, scratch).ok()
}

#[cfg(not(feature = "lz4"))]
pub(super) fn compress(_: &[u8], _: &mut Vec<u8>) -> Option<usize> {
    None
}

/// Decompresses `made` into `payload`. Returns the bytes written.
#[cfg(feature = "lz4")]
pub(super) fn decompress(made: &[u8], payload: &mut [u8]) -> Option<usize> {
    lz4_flex::block::decompress_into(made, payload).ok()
}

#[cfg(not(feature = "lz4"))]
pub(super) fn decompress(_: &[u8], _: &mut [u8]) -> Option<usize> {
    None
}
