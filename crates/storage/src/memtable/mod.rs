//! The memtable: the newest writes, sorted, in memory.
//!
//! ```text
//! Index: separators  ->  Leaf: up to 208 keys, as numbers  ->  Record: head, key, value, in words
//!                                                              of one arena that all leaves share
//!                                  or, per key, a Chain:       newest version, then the older ones
//!                                                              that somebody may still read
//! ```
//!
//! A tree of wide nodes. In a node each key is a number of eight bytes, taken from where the
//! node's keys begin to differ (`Numbers`): a search goes through three such
//! rows and meets a key's own bytes once. (A lock-free skip list of the same keys was measured at
//! twice the time per insert of a plain B-tree and 1.7 times per read, for its cache misses.)
//!
//! Keys and values lie in the order of arrival in an `Arena`, and stay there: a
//! write fills the memory behind that of the write before, nothing is reserved for keys that may
//! come, a split of a leaf moves twelve bytes per key, and the end of a memtable frees some
//! thousand chunks, not a million values. A walk in the order of keys jumps about in the arena for
//! that, and so loads the lines of many records ahead, side by side.
//!
//! Each leaf has a lock of its own, taken for one search or for the copying of a stretch of keys;
//! the index has one that all share, but for who splits a leaf. So readers and writers meet only
//! at the same leaf, and nobody holds a lock while waiting for anything. Writers come one after the
//! other, as their sequence numbers do.
//!
//! Overwriting a key does not grow the memtable: versions that nobody can read go when the next
//! one arrives, and their memory goes to the next values of their size. What policies see of a
//! memtable, [`Memtable::live_bytes`] and [`Memtable::entries`], follows from the sequence of
//! writes alone, not from when readers came and went, so that a simulation reproduces it.
//!
//! Once sealed a memtable is read, clipped and merged like a run on storage. Under policies that
//! count in blocks, [`Folded`] is what all sealed memtables are folded into.

mod arena;
mod buffer;
mod chain;
mod cursor;
mod folded;
mod index;
mod leaf;
mod numbers;
mod record;
mod sealed;
mod versions;

#[cfg(test)]
mod tests;

pub use buffer::{Fill, Memtable};
pub use cursor::MemtableCursor;
pub use folded::{Folded, FoldedBuilder, Rest};
pub use sealed::Sealed;
pub use versions::{KeepFrom, Version};
