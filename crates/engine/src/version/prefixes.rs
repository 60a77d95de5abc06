//! Runs that a range read need not look at, because filters exclude the prefix of all its keys.
//!
//! Filters may hold prefixes of keys: see [`KeyspaceOptions::prefix_bytes`]. If all keys within the
//! bounds of a read have one prefix, a table whose filter excludes it has none of the keys.
//!
//! [`KeyspaceOptions::prefix_bytes`]: crate::KeyspaceOptions::prefix_bytes

use super::OpenRun;
use lsmith_storage::format::prefix_hash;
use lsmith_storage::table::{ReadCount, ReadTable, ReadTally};
use lsmith_tree::KeyRange;

impl OpenRun {
    /// Returns true if no table of the run has keys in `range`, as far as filters know. Adds the
    /// tables that filters exclude to `tally`.
    pub(super) fn is_excluded(&self, range: &KeyRange, tally: &ReadTally) -> bool {
        let mut reads = ReadCount::default();
        let is_excluded = self.overlapping(range).all(|part| {
            let table = part.table().table();
            let prefix = prefix_of(range, table.facts().prefix_bytes);
            prefix.is_some_and(|prefix| table.excludes(prefix_hash(prefix), &mut reads))
        });
        if is_excluded {
            tally.note_excluded(reads.filter_negatives);
        }
        is_excluded
    }
}

/// Returns the prefix of `bytes` bytes that all keys in `range` have. Returns `None` if they have
/// none in common, and if `bytes` is 0.
fn prefix_of(range: &KeyRange, bytes: u16) -> Option<&[u8]> {
    let prefix = range.start.get(..usize::from(bytes)).filter(|prefix| !prefix.is_empty())?;
    let ends_within = match (&range.end, end_of(prefix)) {
        (Some(end), Some(beyond)) => **end <= *beyond,
        (_, None) => true,
        (None, Some(_)) => false,
    };
    ends_within.then_some(prefix)
}

/// Returns the least key above all keys that begin with `prefix`, if there is one.
fn end_of(prefix: &[u8]) -> Option<Vec<u8>> {
    let grows = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut end = prefix[..=grows].to_vec();
    end[grows] += 1;
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lsmith_tree::Key;

    fn range(start: &[u8], end: Option<&[u8]>) -> KeyRange {
        KeyRange { start: Key::copy_from_slice(start), end: end.map(Key::copy_from_slice) }
    }

    #[test]
    fn bounds_decide_whether_all_keys_share_a_prefix() {
        let shared = |start: &[u8], end: Option<&[u8]>| prefix_of(&range(start, end), 2).is_some();
        assert!(shared(b"ab", Some(b"ac")));
        assert!(shared(b"ab", Some(b"ab\xff\xff")));
        assert!(shared(b"abc", Some(b"abd")));
        assert!(shared(b"a\xff", Some(b"b")));
        assert!(shared(b"\xff\xff", None));
        assert!(shared(b"\xff\xff", Some(b"\xff\xff7")));
        assert!(!shared(b"a", Some(b"ac")), "`a` has one byte");
        assert!(!shared(b"ab", Some(b"ac\0")), "`ac` is among the keys");
        assert!(!shared(b"ab", Some(b"b")));
        assert!(!shared(b"ab", None));
        assert!(!shared(b"", None));
        assert_eq!(prefix_of(&range(b"ab", Some(b"ac")), 0), None);
    }

    #[test]
    fn shared_prefix_is_that_of_each_key_in_the_range() {
        let bytes = [0, 1, b'a', 254, 255];
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        for length in 0..3 {
            let longer: Vec<_> = keys.iter().filter(|key| key.len() == length).cloned().collect();
            let longer = longer.iter().flat_map(|key| bytes.map(|b| [&key[..], &[b]].concat()));
            keys.extend(longer.collect::<Vec<_>>());
        }
        for start in &keys {
            for end in keys.iter().map(Some).chain([None]) {
                let range = range(start, end.map(|end| &end[..]));
                for bytes in 1..=3 {
                    let Some(prefix) = prefix_of(&range, bytes) else { continue };
                    let others = |key: &&Vec<u8>| range.contains(key) && !key.starts_with(prefix);
                    assert_eq!(keys.iter().find(others), None, "{range:?} {prefix:?}");
                }
            }
        }
    }
}
