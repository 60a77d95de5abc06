//! What to change if no memtable was flushed: an error or a note.

use crate::failure::bad_argument;
use lsmith_spec::format_bytes;

/// A memtable of this size at least is named.
const MEMTABLE_BYTES_MIN: u64 = 1 << 10;

/// Returns the error for a workload that has written `written` bytes of keys and values, and has
/// flushed no memtable of `memtable_bytes`. All figures of merges would be 0. `what` names it.
pub(crate) fn unfilled(what: &str, written: u64, memtable_bytes: u64) -> anyhow::Error {
    bad_argument(format!("{what}: {}", why_unfilled(written, memtable_bytes)))
}

/// Returns why no memtable of `memtable_bytes` was flushed, and what to change.
pub(crate) fn why_unfilled(written: u64, memtable_bytes: u64) -> String {
    let memtable = format_bytes(memtable_bytes);
    let start = format!("no memtable of {memtable} was flushed, so nothing was merged");
    if written == 0 {
        return format!("{start}: the workload writes nothing");
    }
    let written_text = format_bytes(written);
    let way_out = match smaller(written) {
        Some(bytes) => {
            let bytes = format_bytes(bytes);
            format!("choose a smaller memtable, such as `--memtable {bytes}`, or a larger workload")
        }
        None => "choose a larger workload".to_owned(),
    };
    format!("{start}: the workload writes {written_text} of keys and values; {way_out}")
}

/// Returns a power of two that `written` bytes fill about 32 times: eight times at least, if all of
/// them overwrite each other. `None` if that is too small for a memtable.
fn smaller(written: u64) -> Option<u64> {
    let bytes = 1 << (written / 32).max(1).ilog2();
    (bytes >= MEMTABLE_BYTES_MIN).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggested_memtable_is_a_power_of_two_that_is_filled_often() {
        assert_eq!(smaller(3_000_000), Some(64 << 10));
        assert_eq!(smaller(1 << 30), Some(32 << 20));
        assert_eq!(smaller(32 << 10), Some(1 << 10));
        assert_eq!(smaller((32 << 10) - 1), None);
    }

    #[test]
    fn way_out_is_one_that_there_is() {
        let why = |written| why_unfilled(written, 4 << 20);
        assert!(why(0).ends_with("the workload writes nothing"), "{}", why(0));
        assert!(why(9000).ends_with("; choose a larger workload"), "{}", why(9000));
        assert!(why(3_000_000).contains("such as `--memtable 64KiB`, or"), "{}", why(3_000_000));
    }
}
