//! The log format: framed records in a file, used by the write-ahead log, the manifest and spills.
//!
//! # Format
//!
//! A log is a file of fixed length, a multiple of 8 bytes. It is created full of zeros and filled
//! from its start. All integers are little endian. Header and records start at multiples of 8
//! bytes.
//!
//! ```text
//! file header, 32 bytes
//!   0   8   magic "lsmithlg"
//!   8   4   format version, 1
//!   12  4   kind: 1 write-ahead log, 2 manifest, 3 spill
//!   16  8   file id, the one in the file's name
//!   24  8   xxh3-64 of bytes 0..24
//!
//! record, over and over
//!   0   4   payload length in bytes (low 31 bits); top bit: the sync mark
//!   4   4   tag: high half of S, with bits 0 and 24 set
//!   8   8   checksum: xxh3-64 of payload and padding, with seed S
//!   16  n   payload
//!       p   padding: zeros up to a multiple of 8
//!
//! S = xxh3-64 of 20 bytes: file id (8), offset of the record (8), bytes 0..4 of the record
//! ```
//!
//! The first 24 header bytes and their checksum stay at these offsets in every version, so that an
//! older reader can tell a newer file from a damaged one.
//!
//! Tag and checksum depend on the file id and the offset, so bytes of another file or another
//! offset never match. The first 8 bytes of a record are its *head*. The head is never zero, not
//! even after a change of one of its bytes. It lies in one device sector, and is stored in one step
//! after the rest of the record. So a zero head means that the record was never completed. A head
//! with a wrong tag was damaged, because a head cannot be half stored. The length in a head with
//! the right tag is reliable.
//!
//! The **sync mark** says that everything in front of the record was synced when the record was
//! appended. Power loss cannot have caused damage in front of a valid record with a mark.
//!
//! # Where a log ends
//!
//! A reader goes from record to record while they are valid. At the first invalid one, at offset
//! `o`, it decides between two cases. The log is **torn** if power loss, or the death of the
//! process during an append, can have caused this. Then only data is dropped for which no sync had
//! returned. Otherwise the file is **damaged**, which is an error with its path and `o`. The rules
//! in this order:
//!
//! 1. A valid record with a sync mark follows anywhere behind `o`: damaged.
//! 2. The head, or the record that it announces, extends beyond the end of the file: torn (the file
//!    is shorter than it was created). A file that ends exactly behind a record ends cleanly.
//! 3. The head is zero: the log ends here. The end is clean if only zeros follow. Otherwise it is
//!    torn: later pages were written, this one was not.
//! 4. The tag is wrong: damaged.
//! 5. The checksum is wrong, and in one of the sectors (512 bytes) of the record, zeros extend from
//!    inside the record (at least its last 8 bytes there) to the end of the sector: torn. A sector
//!    that was not written reads as zeros from its first unsynced byte to its end. A sector that
//!    was written in the middle of an append reads as zeros from that point.
//! 6. The checksum is wrong otherwise: damaged, also in the last record.
//!
//! Rule 5 has a limit. If no mark follows, damage inside a record whose payload has zeros at the
//! end of a sector counts as a torn end. The reader reports it as torn, and never returns the
//! record as valid.
//!
//! The file header follows the same idea. A log is torn at 0 if its first word is zero, or if the
//! file ends within the header. Any other wrong header is damage, and a newer version is
//! unsupported.

mod follow;
mod frame;
#[cfg(test)]
mod fuzz;
mod reader;
mod remains;
mod renew;
mod start;
#[cfg(test)]
mod tests;
mod turns;
mod writer;

pub use follow::LogFollower;
pub use frame::{LogId, LogKind};
pub use reader::{LogEnd, LogReader};
pub use remains::{FoundRecord, LogRemains};
pub use renew::renewed;
pub use start::{LOG_START_BYTES_MAX, LogStart};
pub use writer::LogWriter;
