//! The greatest numbers that files may hold.
//!
//! A directory may come from a stranger, or from a damaged disk. Numbers up to these bounds can be
//! incremented, added and multiplied without overflow. No store comes near them: a larger number
//! was never written by this program.

use lsmith_tree::SeqNo;

/// The greatest number of a file, table, run, root or memtable. At a million numbers per second
/// they last for 146,000 years.
pub const NUMBER_MAX: u64 = 1 << 62;

/// The greatest sequence number of a write. At a billion writes per second they last for 146 years.
pub const SEQ_MAX: SeqNo = SeqNo(1 << 62);

/// The outcome of a check: the error is a message that names what was expected and found.
pub type Checked = std::result::Result<(), String>;

/// Fails if `number`, which is a `what`, is greater than `most`.
pub fn check_number(what: &str, number: u64, most: u64) -> Checked {
    if number <= most { Ok(()) } else { Err(format!("{what} {number}: expected at most {most}")) }
}

/// Fails if no file can have this number.
pub fn check_file(number: u64) -> Checked {
    check_number("file number", number, NUMBER_MAX)
}

/// Fails if no write can have this sequence number.
pub fn check_seq(seq: SeqNo) -> Checked {
    check_number("write number", seq.0, SEQ_MAX.0)
}
