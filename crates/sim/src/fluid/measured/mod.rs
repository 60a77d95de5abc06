//! Counts different keys in intervals of a stream of writes, from its operations.

mod cell;
mod count;
mod points;

pub(super) use cell::DistinctKeys;
pub(super) use count::Counted;

#[cfg(test)]
mod tests;
