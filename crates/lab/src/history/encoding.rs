//! Bytes of a history: numbers of variable length, compressed, as text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// A growing stream of numbers. Each takes one byte per 7 bits, the lowest first; all bytes but the
/// last have their highest bit set.
#[derive(Clone, Debug, Default)]
pub(super) struct Varints {
    bytes: Vec<u8>,
}

impl Varints {
    /// Appends a number.
    pub(super) fn push(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// Appends several numbers.
    pub(super) fn extend(&mut self, values: impl IntoIterator<Item = u64>) {
        values.into_iter().for_each(|value| self.push(value));
    }

    /// Returns the numbers, deflated (RFC 1951), in base 64 (RFC 4648).
    pub(super) fn to_text(&self) -> String {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.bytes).expect("a vector takes all bytes");
        STANDARD.encode(encoder.finish().expect("a vector takes all bytes"))
    }
}
