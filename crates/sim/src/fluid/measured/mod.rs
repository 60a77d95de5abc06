//! What a stream of writes comes to, counted from its operations.

mod cell;
mod count;
mod points;

pub(super) use cell::DistinctKeys;
pub(super) use count::Counted;

#[cfg(test)]
mod tests;
