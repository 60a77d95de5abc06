//! The memtable: the newest writes, sorted, in memory.
//!
//! ```text
//! Index: separators  ->  Leaf: up to 208 keys, as numbers  ->  ArenaEntry: head, key, value, in
//!                                                              words of one arena for all leaves
//!                                  or, per key, a Chain:       newest version, then older ones
//!                                                              that a reader may still need
//! ```
//!
//! The memtable is a tree of wide nodes. A node stores each key as a number of eight bytes, taken
//! from where the keys of the node begin to differ (`Numbers`). A search goes through three such
//! rows of numbers and reads the bytes of one whole key. (A lock-free skip list of the same keys,
//! measured, needed twice the time per insert of a plain B-tree and 1.7 times per read, because of
//! its cache misses.)
//!
//! Keys and values lie in an `Arena` in the order of their arrival, and stay there. A write fills
//! the memory behind the previous write, no memory is reserved for future keys, a split of a leaf
//! moves twelve bytes per key, and the end of a memtable frees some [`Chunks`], not a million
//! values. The price: a walk in key order jumps about in the arena. So it loads the cache lines of
//! many entries ahead, in parallel.
//!
//! Each leaf has a lock of its own, held for one search or for the copy of some keys. The index has
//! a lock that all share, except for a split of a leaf. So readers and writers meet only at the
//! same leaf, and no thread holds a lock while it waits for anything. Writers come one after the
//! other, in the order of their sequence numbers.
//!
//! Overwriting a key does not grow the memtable. Versions that no reader can read are dropped when
//! the next version arrives, and their memory is used for later values of the same size. Policies
//! see [`Memtable::live_bytes`] and [`Memtable::entries`]. These depend on the sequence of writes
//! only, not on readers, so that a simulation reproduces them.
//!
//! Once sealed, a memtable is read, clipped and merged like a run on storage. Under policies that
//! count in blocks, all sealed memtables are folded into one [`Folded`].

mod arena;
mod arena_entry;
mod buffer;
mod chain;
mod chunk;
mod cursor;
mod folded;
mod index;
mod leaf;
mod numbers;
mod sealed;
mod versions;

#[cfg(test)]
mod tests;

pub use buffer::{Fill, Memtable, range_deletes_key};
pub use chunk::Chunks;
pub use cursor::MemtableCursor;
pub use folded::{Folded, FoldedBuilder, FoldedRest};
pub use sealed::Sealed;
pub use versions::{FoundVersion, KeepFrom};
