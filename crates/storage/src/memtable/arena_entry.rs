//! The words of one write in an arena: head, key, value.

use super::arena::{Arena, FreeWords, words_of};
use super::chain::{Stored, ValuePlace};
use crate::cursor::EntryRef;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};

/// Values of at most this many bytes lie in the arena, longer ones in memory of their own, because
/// copying them costs too much.
const SHORT_BYTES_MAX: usize = 512;

/// Bits of the head, from the lowest on: the length of the value, the length of the key, the kind,
/// and the difference of the sequence number to the first write of the memtable.
const VALUE_BITS: u32 = 10;
const KEY_BITS: u32 = 16;
const KIND_BITS: u32 = 3;
const SEQ_BITS: u32 = 64 - KIND_BITS - KEY_BITS - VALUE_BITS;

/// Words of the head, in front of the key.
const HEAD_WORDS: usize = 1;

/// The offset of the words of a key's first write. The key stays there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ArenaEntry(pub(super) u32);

/// The decoded head. It is valid until the key is written again.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArenaHead {
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) key_bytes: u16,
    pub(super) value_bytes: u16,
}

/// An arena and its free words, as the writer uses them.
pub(super) struct Memory<'a> {
    pub(super) arena: &'a Arena,
    pub(super) free: &'a mut FreeWords,
}

impl ArenaHead {
    /// Returns the number of words of key and value together.
    pub(super) fn words(self) -> usize {
        words_of(self.key_bytes.into()) + words_of(self.value_bytes.into())
    }
}

impl ArenaEntry {
    /// Returns the most new words that a write takes.
    pub(super) fn words_max(entry: &EntryRef<'_>) -> usize {
        HEAD_WORDS + words_of(entry.key.len()) + words_of(entry.value.len().min(SHORT_BYTES_MAX))
    }

    /// Returns true if the words describe the write completely: its value is short, and its
    /// sequence number is not too far from the first one.
    pub(super) fn holds(entry: &EntryRef<'_>, arena: &Arena) -> bool {
        let since_first = entry.seq.0 - arena.first.0;
        entry.value.len() <= SHORT_BYTES_MAX && since_first >> SEQ_BITS == 0
    }

    /// Writes the head and the key, and the value if it is short.
    pub(super) fn new(entry: &EntryRef<'_>, Memory { arena, free }: &mut Memory<'_>) -> ArenaEntry {
        let value = if entry.value.len() <= SHORT_BYTES_MAX { entry.value } else { &[] };
        let key_words = words_of(entry.key.len());
        let value_words = words_of(value.len());
        let arena_entry = ArenaEntry(free.take_new(HEAD_WORDS + key_words + value_words));
        let dated_kind = (entry.seq.0 - arena.first.0) << KIND_BITS | entry.kind as u64;
        let head =
            (dated_kind << KEY_BITS | entry.key.len() as u64) << VALUE_BITS | value.len() as u64;
        arena.set_word(arena_entry.0, head);
        arena.set(arena_entry.key_at(), entry.key);
        arena.set(arena_entry.key_at() + key_words as u32, value);
        arena_entry
    }

    pub(super) fn head(self, arena: &Arena) -> ArenaHead {
        let (value_bytes, rest) = parts(arena.word(self.0), VALUE_BITS);
        let (key_bytes, rest) = parts(rest, KEY_BITS);
        let (kind, since_first) = parts(rest, KIND_BITS);
        ArenaHead {
            seq: SeqNo(arena.first.0 + since_first),
            kind: EntryKind::from_byte(kind as u8).expect("it was a kind"),
            key_bytes: key_bytes as u16,
            value_bytes: value_bytes as u16,
        }
    }

    /// Returns the length of the key in bytes.
    pub(super) fn key_bytes(self, arena: &Arena) -> usize {
        usize::from((arena.word(self.0) >> VALUE_BITS) as u16)
    }

    /// Returns the offset of the key; the value follows it.
    pub(super) fn key_at(self) -> u32 {
        self.0 + HEAD_WORDS as u32
    }

    /// Returns the write as a version.
    pub(super) fn version(self, arena: &Arena) -> Stored {
        let ArenaHead { seq, kind, key_bytes, value_bytes } = self.head(arena);
        let at = self.key_at() + words_of(key_bytes.into()) as u32;
        Stored::new(seq, kind, ValuePlace::Short { at, bytes: value_bytes })
    }
}

/// Splits `word` into the integer in its lowest `bits` bits and the integer above.
fn parts(word: u64, bits: u32) -> (u64, u64) {
    (word & ((1 << bits) - 1), word >> bits)
}

impl ValuePlace {
    /// Stores a value, in the hole of an old one if there is one of its size.
    pub(super) fn new(value: &[u8], Memory { arena, free }: &mut Memory<'_>) -> ValuePlace {
        if value.len() > SHORT_BYTES_MAX {
            return ValuePlace::Long(Box::new(Bytes::copy_from_slice(value)));
        }
        let at = free.take(arena, words_of(value.len()));
        arena.set(at, value);
        ValuePlace::Short { at, bytes: value.len() as u16 }
    }

    /// Frees the words of a value that no reader needs any more.
    pub(super) fn release(self, Memory { arena, free }: &mut Memory<'_>) {
        if let ValuePlace::Short { at, bytes } = self {
            free.release(arena, at, words_of(bytes.into()));
        }
    }

    /// Returns a copy of a short value, or another handle of a long one.
    pub(super) fn value(&self, arena: &Arena) -> Bytes {
        match self {
            ValuePlace::Short { at, bytes } => Bytes::from(arena.bytes(*at, usize::from(*bytes))),
            ValuePlace::Long(value) => Bytes::clone(value),
        }
    }

    /// Returns the length of the value in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self {
            ValuePlace::Short { bytes, .. } => usize::from(*bytes),
            ValuePlace::Long(value) => value.len(),
        }
    }

    /// Returns the bytes of the value that lie outside the arena.
    pub(super) fn bytes_beside(&self) -> usize {
        match self {
            ValuePlace::Short { .. } => 0,
            ValuePlace::Long(value) => value.len(),
        }
    }
}
