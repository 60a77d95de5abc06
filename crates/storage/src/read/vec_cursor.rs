//! A cursor over a sorted vector, with which tests compare every other cursor.

use crate::cursor::{Cursor, EntryRef};
use crate::error::{Error, ErrorKind, Result};
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};
use proptest::collection::vec;
use proptest::prelude::*;
use std::cmp::Reverse;

/// An entry that owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owned {
    pub(crate) key: Bytes,
    pub(crate) seq: SeqNo,
    pub(crate) kind: EntryKind,
    pub(crate) value: Bytes,
}

impl Owned {
    /// Creates a put whose value names its key and sequence number.
    pub(crate) fn put(key: &[u8], seq: u64) -> Owned {
        let value = Bytes::from(format!("{}@{seq}", key.escape_ascii()));
        Owned { key: Bytes::copy_from_slice(key), seq: SeqNo(seq), kind: EntryKind::Put, value }
    }

    /// Returns the same key and sequence number with another kind.
    pub(crate) fn with(mut self, kind: EntryKind) -> Owned {
        self.kind = kind;
        if kind.is_tombstone() {
            self.value = Bytes::new();
        }
        self
    }

    pub(crate) fn as_ref(&self) -> EntryRef<'_> {
        EntryRef { key: &self.key, seq: self.seq, kind: self.kind, value: &self.value }
    }
}

impl From<EntryRef<'_>> for Owned {
    fn from(entry: EntryRef<'_>) -> Owned {
        Owned {
            key: Bytes::copy_from_slice(entry.key),
            seq: entry.seq,
            kind: entry.kind,
            value: Bytes::copy_from_slice(entry.value),
        }
    }
}

/// Sorts `entries` in the store's order. Equal entries keep their order.
pub(crate) fn sort(entries: &mut [Owned]) {
    entries.sort_by_key(|entry| (entry.key.clone(), Reverse(entry.seq)));
}

/// Walks a sorted vector.
#[derive(Clone, Debug, Default)]
pub(crate) struct VecCursor {
    entries: Vec<Owned>,
    at: Option<usize>,
    /// The number of calls that still succeed, if not all do.
    calls_left: Option<usize>,
}

impl VecCursor {
    pub(crate) fn new(mut entries: Vec<Owned>) -> VecCursor {
        sort(&mut entries);
        VecCursor::sorted(entries)
    }

    /// Walks `entries` in this order.
    pub(crate) fn sorted(entries: Vec<Owned>) -> VecCursor {
        VecCursor { entries, at: None, calls_left: None }
    }

    /// Makes every call after the first `calls` fail.
    pub(crate) fn failing_after(mut self, calls: usize) -> VecCursor {
        self.calls_left = Some(calls);
        self
    }

    fn go(&mut self, at: Option<usize>) -> Result<()> {
        self.at = at.filter(|at| *at < self.entries.len());
        if let Some(left) = &mut self.calls_left {
            let Some(less) = left.checked_sub(1) else {
                self.at = None;
                return Err(Error::new(ErrorKind::Io, "no more calls"));
            };
            *left = less;
        }
        Ok(())
    }

    fn below(&self, key: &[u8]) -> usize {
        self.entries.partition_point(|entry| entry.key < key)
    }
}

impl Cursor for VecCursor {
    fn seek_first(&mut self) -> Result<()> {
        self.go(Some(0))
    }

    fn seek_last(&mut self) -> Result<()> {
        self.go(self.entries.len().checked_sub(1))
    }

    fn seek(&mut self, key: &[u8]) -> Result<()> {
        self.go(Some(self.below(key)))
    }

    fn seek_before(&mut self, key: &[u8]) -> Result<()> {
        self.go(self.below(key).checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        self.go(Some(self.at.expect("the cursor is on an entry") + 1))
    }

    fn prev(&mut self) -> Result<()> {
        self.go(self.at.expect("the cursor is on an entry").checked_sub(1))
    }

    fn entry(&self) -> Option<EntryRef<'_>> {
        self.at.map(|at| self.entries[at].as_ref())
    }

    fn value(&self) -> Bytes {
        self.entries[self.at.expect("the cursor is on an entry")].value.clone()
    }
}

/// One call on a cursor.
#[derive(Clone, Debug)]
pub(crate) enum Call {
    First,
    Last,
    Seek(Vec<u8>),
    SeekBefore(Vec<u8>),
    Next,
    Prev,
}

/// Generates keys that share long and short prefixes, and prefixes of each other.
pub(crate) fn key() -> impl Strategy<Value = Vec<u8>> {
    let tail = vec(prop::sample::select(vec![0u8, 1, b'a', 0xff]), 0..3);
    (prop::sample::select(vec!["", "a", "a-long-prefix"]), tail)
        .prop_map(|(head, tail)| [head.as_bytes(), &tail].concat())
}

pub(crate) fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = prop_oneof![
        1 => Just(Call::First),
        1 => Just(Call::Last),
        2 => key().prop_map(Call::Seek),
        2 => key().prop_map(Call::SeekBefore),
        10 => Just(Call::Next),
        10 => Just(Call::Prev),
    ];
    vec(call, 1..60)
}

/// Makes the same calls on both cursors, and compares their entries after each.
pub(crate) fn compare(model: &mut VecCursor, cursor: &mut impl Cursor, calls: &[Call]) {
    assert_eq!(cursor.entry(), None, "a new cursor is on no entry");
    for call in calls {
        for cursor in [model as &mut dyn Cursor, cursor] {
            match call {
                Call::First => cursor.seek_first(),
                Call::Last => cursor.seek_last(),
                Call::Seek(key) => cursor.seek(key),
                Call::SeekBefore(key) => cursor.seek_before(key),
                Call::Next | Call::Prev if cursor.entry().is_none() => Ok(()),
                Call::Next => cursor.next(),
                Call::Prev => cursor.prev(),
            }
            .unwrap();
        }
        assert_eq!(cursor.entry(), model.entry(), "after {call:?}");
        if let Some(entry) = cursor.entry() {
            assert_eq!(cursor.value(), entry.value);
        }
    }
}
