//! The records of a log file of RocksDB or LevelDB: blocks of 32 KiB with fragments of records.

use crate::DoctorError;

const BLOCK_BYTES: usize = 32 << 10;

/// Checksum, length and kind.
const HEADER_BYTES: usize = 7;

/// Added to checksums, so that data with checksums in it have other ones.
const MASK: u32 = 0xa282_ead8;

/// The kinds of fragments. Recycled ones, 5 to 8, are the same with 4 more bytes of header.
const FULL: u8 = 1;
const FIRST: u8 = 2;
const MIDDLE: u8 = 3;
const LAST: u8 = 4;
const RECYCLED: u8 = 4;

/// The records of a file.
#[derive(Debug, Default)]
pub(super) struct Records {
    /// Offset and content of each record.
    pub(super) records: Vec<(usize, Vec<u8>)>,
    /// Where the file ends within a record, if it does.
    pub(super) torn_at: Option<usize>,
}

impl Records {
    pub(super) fn read(bytes: &[u8]) -> Result<Records, DoctorError> {
        let mut found = Records::default();
        // The beginning and the bytes of a record whose last fragment is still to come.
        let mut begun: Option<(usize, Vec<u8>)> = None;
        let mut at = 0;
        while at < bytes.len() {
            let block_left = BLOCK_BYTES - at % BLOCK_BYTES;
            if block_left < HEADER_BYTES {
                at += block_left;
                continue;
            }
            let Some(header) = bytes.get(at..at + HEADER_BYTES) else { break };
            let length = usize::from(u16::from_le_bytes([header[4], header[5]]));
            let kind = header[6];
            if kind == 0 && length == 0 {
                // Space that was allocated ahead.
                at += block_left;
                continue;
            }
            let is_recycled = (FULL + RECYCLED..=LAST + RECYCLED).contains(&kind);
            let head = HEADER_BYTES + if is_recycled { 4 } else { 0 };
            if head + length > block_left {
                let message = format!("expected a fragment within its block, found {length} bytes");
                return Err(DoctorError::at(at, message));
            }
            let Some(rest) = bytes.get(at + 6..at + head + length) else { break };
            let stored = u32::from_le_bytes([header[0], header[1], header[2], header[3]]);
            let checksum = crc32c(rest).rotate_right(15).wrapping_add(MASK);
            if checksum != stored {
                let message = format!("expected the checksum {checksum:08x}, found {stored:08x}");
                return Err(DoctorError::at(at, message));
            }
            let part = &rest[head - 6..];
            let plain = if is_recycled { kind - RECYCLED } else { kind };
            match (plain, begun.take()) {
                (FULL, None) => found.records.push((at, part.to_vec())),
                (FIRST, None) => begun = Some((at, part.to_vec())),
                (MIDDLE | LAST, Some((from, mut record))) => {
                    record.extend_from_slice(part);
                    match plain {
                        LAST => found.records.push((from, record)),
                        _ => begun = Some((from, record)),
                    }
                }
                (FULL..=LAST, _) => {
                    let message = format!("a fragment of kind {kind} where none may be");
                    return Err(DoctorError::at(at, message));
                }
                _ => {
                    let message = format!("expected a fragment of kind 1 to 8, found kind {kind}");
                    return Err(DoctorError::at(at, message));
                }
            }
            at += head + length;
        }
        found.torn_at = begun.map(|(from, _)| from).or((at < bytes.len()).then_some(at));
        Ok(found)
    }
}

/// The checksum of Castagnoli, bit by bit from a table of one byte.
fn crc32c(bytes: &[u8]) -> u32 {
    const TABLE: [u32; 256] = {
        let mut table = [0; 256];
        let mut byte = 0;
        while byte < 256 {
            let mut crc = byte as u32;
            let mut bit = 0;
            while bit < 8 {
                crc = if crc & 1 == 1 { crc >> 1 ^ 0x82f6_3b78 } else { crc >> 1 };
                bit += 1;
            }
            table[byte] = crc;
            byte += 1;
        }
        table
    };
    let step = |crc: u32, byte: &u8| crc >> 8 ^ TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!0, step)
}

#[cfg(test)]
mod tests {
    use super::crc32c;

    #[test]
    fn checksums_are_those_of_castagnoli() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }
}
