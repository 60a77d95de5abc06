//! Reads: cursors, snapshots, filters, what they cost.

mod cursors;
mod few;
mod prefixes;
mod snapshots;
