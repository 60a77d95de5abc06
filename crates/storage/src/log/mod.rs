//! The framed record log that the write-ahead log, the manifest and copies of memory are kept in.
//!
//! # Format
//!
//! A log is a file of fixed length, a multiple of 8 bytes, made full of zeros and filled from its
//! start. All numbers are little endian. Everything starts at a multiple of 8 bytes.
//!
//! ```text
//! file header, 32 bytes
//!   0   8   magic "lsmithlg"
//!   8   4   format version, 1
//!   12  4   kind: 1 write-ahead log, 2 manifest, 3 spill
//!   16  8   file number, the one in the file's name
//!   24  8   xxh3-64 of bytes 0..24
//!
//! record, over and over
//!   0   4   payload length in bytes (low 31 bits); top bit: the sync mark
//!   4   4   tag: high half of S, with bits 0 and 24 set
//!   8   8   checksum: xxh3-64 of payload and padding, with seed S
//!   16  n   payload
//!       p   padding: zeros up to a multiple of 8
//!
//! S = xxh3-64 of 20 bytes: file number (8), offset of the record (8), bytes 0..4 of the record
//! ```
//!
//! The first 24 header bytes and their checksum stay where they are in every version, so that an
//! older reader can tell a newer file from a damaged one.
//!
//! Tag and checksum depend on the file number and the offset: bytes of another file or of another
//! place never pass. The first 8 bytes of a record (its *head*) are never zero, not even after
//! one of their bytes was changed; they lie in one device sector, are stored after the rest of the
//! record and in one step. So a head that is zero says that the record was never completed, and a
//! head with a wrong tag was damaged, as it cannot be half stored; the length in a head with the
//! right tag can be believed.
//!
//! The **sync mark** says that everything in front of the record had been synced when the record
//! was appended. Damage in front of a valid record with a mark is no trace of lost power.
//!
//! # Where a log ends
//!
//! A reader goes from record to record as long as they are valid. Where one is not, at offset `o`,
//! the log is **torn** there if power loss, or the death of the process in the middle of an
//! append, can have made it so: that drops only what no sync had returned for. Otherwise the file
//! is **damaged**, which is an error with its path and `o`. In this order:
//!
//! 1. A valid record with a sync mark follows anywhere behind `o`: damaged.
//! 2. The head, or the record that it announces, runs past the end of the file: torn (the file is
//!    shorter than it was made). A file that ends exactly behind a record ends cleanly.
//! 3. The head is zero: the log ends here. If only zeros follow, that is its clean end; else torn
//!    (later pages had been written, this one not).
//! 4. The tag is wrong: damaged.
//! 5. The checksum is wrong, and in one of the sectors (512 bytes) that the record touches, zeros
//!    reach from inside the record (its last 8 bytes there, or more) to the end of the sector:
//!    torn. A sector that was not written reads as zeros from its first unsynced byte to its end,
//!    and one that was written in the middle of an append does so from there.
//! 6. The checksum is wrong otherwise: damaged, also in the last record.
//!
//! The limit of rule 5: where no mark follows, damage inside a record whose payload itself has
//! zeros at the end of a sector is taken for a torn end. It is told as such, never read as valid.
//!
//! The file header follows the same thought: a zero first word, or a file that ends within the
//! header, is a log torn at 0; any other wrong header is damage, and a newer version is
//! unsupported.

mod frame;
#[cfg(test)]
mod fuzz;
mod reader;
mod remains;
mod start;
#[cfg(test)]
mod tests;
mod turns;
mod writer;

pub use frame::{LogId, LogKind};
pub use reader::{LogEnd, LogReader};
pub use remains::{FoundRecord, LogRemains};
pub use start::{LOG_START_BYTES_MAX, LogStart};
pub use writer::LogWriter;
