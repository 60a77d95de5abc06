//! Counts in words.

use crate::table::short;

/// Returns `once`, or how many times.
pub(super) fn times(count: u64) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// Returns bytes in short, such as `14.2 MB`.
pub(super) fn bytes(count: u64) -> String {
    format!("{}B", short(count as f64))
}
