//! The memtable: the newest writes, sorted, in memory.
//!
//! ```text
//! Index: separators  ->  Leaf: up to 208 keys, their bytes side by side  ->  Chain per key:
//!                        newest version, then the older ones that somebody may still read
//! ```
//!
//! A tree of wide nodes. In a node each key is a number of eight bytes, taken from where the
//! node's keys begin to differ ([`Numbers`](numbers::Numbers)): a search goes through three such
//! rows and meets a key's own bytes once. A leaf keeps keys and values in a buffer of its own, so
//! that a write asks for memory once in a hundred times, a walk goes through memory in order,
//! and the end of a memtable frees some thousand buffers, not a million values. (A lock-free skip
//! list of the same keys was measured at twice the time per insert of a plain B-tree and 1.7 times
//! per read, for its cache misses.)
//!
//! Each leaf has a lock of its own, taken for one search or for the copying of a stretch of keys;
//! the index has one that all share, but for who splits a leaf. So readers and writers meet only
//! at the same leaf, and nobody holds a lock while waiting for anything.
//!
//! Overwriting a key does not grow the memtable: versions that nobody can read go when the next
//! one arrives. What policies see of a memtable, [`Memtable::live_bytes`] and
//! [`Memtable::entries`], follows from the sequence of writes alone, not from when readers came
//! and went, so that a simulation reproduces it.
//!
//! Once sealed a memtable is read, clipped and merged like a run on storage. Under policies that
//! count in blocks, [`Folded`] is what all sealed memtables are folded into.

mod buffer;
mod chain;
mod cursor;
mod folded;
mod index;
mod leaf;
mod numbers;
mod sealed;

#[cfg(test)]
mod tests;

pub(crate) use buffer::{KeepFrom, Memtable, Version};
pub(crate) use cursor::MemtableCursor;
pub(crate) use folded::{Folded, FoldedBuilder, Rest};
pub(crate) use sealed::Sealed;
