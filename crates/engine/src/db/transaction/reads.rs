//! What a serializable transaction has read in a keyspace.

use lsmith_tree::{Key, KeyRange};
use std::collections::BTreeSet;

/// Keys and parts of ranges that were read.
#[derive(Debug, Default)]
pub(super) struct Reads {
    keys: BTreeSet<Key>,
    ranges: Vec<RangeRead>,
}

/// How far an iterator has read its range.
#[derive(Debug)]
struct RangeRead {
    range: KeyRange,
    /// The end of what was read from the front.
    front: Option<Key>,
    /// The start of what was read from the back.
    back: Option<Key>,
    ended: bool,
}

/// How an iterator over a range went on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Went<'a> {
    /// The front returned this key.
    Front(&'a [u8]),
    /// The back returned this key.
    Back(&'a [u8]),
    /// There is no other key.
    End,
}

impl Reads {
    /// Adds `key`.
    pub(super) fn add_key(&mut self, key: &[u8]) {
        if !self.keys.contains(key) {
            self.keys.insert(Key::copy_from_slice(key));
        }
    }

    /// Adds `range`, in which nothing was read yet. Returns its index.
    pub(super) fn begin_range(&mut self, range: KeyRange) -> usize {
        self.ranges.push(RangeRead { range, front: None, back: None, ended: false });
        self.ranges.len() - 1
    }

    /// Notes that the iterator over range `range_index` has gone on.
    pub(super) fn note(&mut self, range_index: usize, went: Went<'_>) {
        let range = &mut self.ranges[range_index];
        match went {
            Went::Front(key) => range.front = Some(after(key)),
            Went::Back(key) => range.back = Some(Key::copy_from_slice(key)),
            Went::End => range.ended = true,
        }
    }

    /// Adds what was read to `keys` and `ranges`.
    pub(super) fn add_to(&self, keys: &mut BTreeSet<Key>, ranges: &mut Vec<KeyRange>) {
        keys.extend(self.keys.iter().cloned());
        for RangeRead { range, front, back, ended } in &self.ranges {
            if *ended {
                ranges.push(range.clone());
                continue;
            }
            if let Some(end) = front {
                ranges.push(KeyRange { start: range.start.clone(), end: Some(end.clone()) });
            }
            if let Some(start) = back {
                ranges.push(KeyRange { start: start.clone(), end: range.end.clone() });
            }
        }
    }
}

/// Returns the least key above `key`.
fn after(key: &[u8]) -> Key {
    Key::from([key, &[0]].concat())
}
