//! Bytes of a history: numbers of variable length, compressed, as text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;
use std::io::Write;

/// A growing stream of numbers. Each takes one byte per 7 bits, the lowest first; all bytes but the
/// last have their highest bit set.
#[derive(Clone, Debug, Default)]
pub(super) struct Numbers {
    bytes: Vec<u8>,
}

impl Numbers {
    /// Appends a number.
    pub(super) fn push(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.bytes.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.bytes.push(number as u8);
    }

    /// Appends several numbers.
    pub(super) fn extend(&mut self, numbers: impl IntoIterator<Item = u64>) {
        numbers.into_iter().for_each(|number| self.push(number));
    }

    /// Returns the numbers, deflated (RFC 1951), in base 64 (RFC 4648).
    pub(super) fn to_text(&self) -> String {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.bytes).expect("a vector takes all bytes");
        STANDARD.encode(encoder.finish().expect("a vector takes all bytes"))
    }
}
