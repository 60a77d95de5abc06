//! The greatest numbers that files may hold.
//!
//! A directory may come from a stranger or from a damaged disk. Integers up to these bounds can be
//! incremented, added and multiplied without overflow. No store comes near them, so the store never
//! wrote a larger one.

use lsmith_tree::SeqNo;

/// The greatest id of a file, table, run, root or memtable. At a million ids per second
/// they last for 146,000 years.
pub const NUMBER_MAX: u64 = 1 << 62;

/// The greatest sequence number of a write. At a billion writes per second they last for 146 years.
pub const SEQ_MAX: SeqNo = SeqNo(1 << 62);

/// The result of a check. The error is a message that names what was expected and found.
pub type Checked = std::result::Result<(), String>;

/// Fails if `value` is greater than `most`. `what` names it in the message.
pub fn check_number(what: &str, value: u64, most: u64) -> Checked {
    if value <= most { Ok(()) } else { Err(format!("{what} {value}: expected at most {most}")) }
}

/// Fails if `file_id` is too large.
pub fn check_file(file_id: u64) -> Checked {
    check_number("file number", file_id, NUMBER_MAX)
}

/// Fails if `seq` is too large for a write.
pub fn check_seq(seq: SeqNo) -> Checked {
    check_number("sequence number", seq.0, SEQ_MAX.0)
}
