//! Entries that expire, and filters of merges.

mod clocks;
mod entries;
mod filters;
