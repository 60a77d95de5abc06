//! The words of one write in an arena: head, key, value.

use super::arena::{Arena, Free, words_of};
use super::chain::{Place, Stored};
use crate::cursor::EntryRef;
use bytes::Bytes;
use lsmith_tree::{EntryKind, SeqNo};

/// Values up to this many bytes lie in the arena, longer ones in memory of their own: they would
/// only be copied about.
const SHORT_BYTES_MAX: usize = 512;

/// Bits of the head: from the lowest on the length of the value, that of the key, the kind, and the
/// number of the write, counted from the first of the memtable.
const VALUE_BITS: u32 = 10;
const KEY_BITS: u32 = 16;
const KIND_BITS: u32 = 2;
const SEQ_BITS: u32 = 64 - KIND_BITS - KEY_BITS - VALUE_BITS;

/// Words of a record before its key.
const HEAD_WORDS: usize = 1;

/// Where the record of a key's first write begins. The key stays there.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Record(pub(super) u32);

/// What a record says besides key and value. It stays true as long as nothing else was written of
/// the key.
#[derive(Clone, Copy, Debug)]
pub(super) struct Head {
    pub(super) seq: SeqNo,
    pub(super) kind: EntryKind,
    pub(super) key_bytes: u16,
    pub(super) value_bytes: u16,
}

/// An arena, as the one who writes has it.
pub(super) struct Memory<'a> {
    pub(super) arena: &'a Arena,
    pub(super) free: &'a mut Free,
}

impl Head {
    /// Words of key and value together.
    pub(super) fn words(self) -> usize {
        words_of(self.key_bytes.into()) + words_of(self.value_bytes.into())
    }
}

impl Record {
    /// New words that a write takes at most.
    pub(super) fn words_max(entry: &EntryRef<'_>) -> usize {
        HEAD_WORDS + words_of(entry.key.len()) + words_of(entry.value.len().min(SHORT_BYTES_MAX))
    }

    /// Whether a record says all of this write: its value is short, and not too many writes were
    /// between the first one and it.
    pub(super) fn holds(entry: &EntryRef<'_>, arena: &Arena) -> bool {
        let since_first = entry.seq.0 - arena.first.0;
        entry.value.len() <= SHORT_BYTES_MAX && since_first >> SEQ_BITS == 0
    }

    /// Writes one, with the value if that is short.
    pub(super) fn new(entry: &EntryRef<'_>, Memory { arena, free }: &mut Memory<'_>) -> Record {
        let value = if entry.value.len() <= SHORT_BYTES_MAX { entry.value } else { &[] };
        let (key_words, value_words) = (words_of(entry.key.len()), words_of(value.len()));
        let record = Record(free.take_new(HEAD_WORDS + key_words + value_words));
        let head = (entry.seq.0 - arena.first.0) << KIND_BITS | entry.kind as u64;
        let head = (head << KEY_BITS | entry.key.len() as u64) << VALUE_BITS | value.len() as u64;
        arena.set_word(record.0, head);
        arena.set(record.key_at(), entry.key);
        arena.set(record.key_at() + key_words as u32, value);
        record
    }

    pub(super) fn head(self, arena: &Arena) -> Head {
        let (value_bytes, rest) = parts(arena.word(self.0), VALUE_BITS);
        let (key_bytes, rest) = parts(rest, KEY_BITS);
        let (kind, since_first) = parts(rest, KIND_BITS);
        Head {
            seq: SeqNo(arena.first.0 + since_first),
            kind: EntryKind::from_byte(kind as u8).expect("two bits, four kinds"),
            key_bytes: key_bytes as u16,
            value_bytes: value_bytes as u16,
        }
    }

    /// How long the key is.
    pub(super) fn key_bytes(self, arena: &Arena) -> usize {
        usize::from((arena.word(self.0) >> VALUE_BITS) as u16)
    }

    /// Where the key is; the value is behind it.
    pub(super) fn key_at(self) -> u32 {
        self.0 + HEAD_WORDS as u32
    }

    /// The write.
    pub(super) fn version(self, arena: &Arena) -> Stored {
        let Head { seq, kind, key_bytes, value_bytes } = self.head(arena);
        let at = self.key_at() + words_of(key_bytes.into()) as u32;
        Stored { seq, kind, place: Place::Short { at, bytes: value_bytes } }
    }
}

/// The number in so many of the lowest bits, and the one in the others.
fn parts(word: u64, bits: u32) -> (u64, u64) {
    (word & ((1 << bits) - 1), word >> bits)
}

impl Place {
    /// Puts a value somewhere, where another one was if there is such a place.
    pub(super) fn new(value: &[u8], Memory { arena, free }: &mut Memory<'_>) -> Place {
        if value.len() > SHORT_BYTES_MAX {
            return Place::Long(Box::new(Bytes::copy_from_slice(value)));
        }
        let at = free.take(arena, words_of(value.len()));
        arena.set(at, value);
        Place::Short { at, bytes: value.len() as u16 }
    }

    /// Lets go what nobody reads any more.
    pub(super) fn give_back(self, Memory { arena, free }: &mut Memory<'_>) {
        if let Place::Short { at, bytes } = self {
            free.give(arena, at, words_of(bytes.into()));
        }
    }

    /// A copy of a short value, another handle of a long one.
    pub(super) fn value(&self, arena: &Arena) -> Bytes {
        match self {
            Place::Short { at, bytes } => Bytes::from(arena.bytes(*at, usize::from(*bytes))),
            Place::Long(value) => Bytes::clone(value),
        }
    }

    /// Bytes of the value.
    pub(super) fn bytes(&self) -> usize {
        match self {
            Place::Short { bytes, .. } => usize::from(*bytes),
            Place::Long(value) => value.len(),
        }
    }

    /// Bytes of the value that lie beside the arena.
    pub(super) fn bytes_beside(&self) -> usize {
        match self {
            Place::Short { .. } => 0,
            Place::Long(value) => value.len(),
        }
    }
}
