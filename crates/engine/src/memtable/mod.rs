//! The memtable: the newest writes, sorted, in memory.
//!
//! ```text
//! MemKey -> Chain: newest version, then the older ones that somebody may still read
//! ```
//!
//! One tree under one lock, one place in it per user key. A put takes the lock for one search, a
//! read for one search, a cursor for a few dozen keys at a time, of which it keeps copies; nobody
//! holds it while waiting for anything. (A lock-free skip list of the same keys was measured at
//! twice the time per insert and 1.7 times per read, for its cache misses.)
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
mod key;
mod sealed;

#[cfg(test)]
mod tests;

pub(crate) use buffer::{KeepFrom, Memtable};
pub(crate) use chain::Version;
pub(crate) use folded::{Folded, FoldedBuilder};
pub(crate) use sealed::Sealed;
