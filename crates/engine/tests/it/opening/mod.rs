//! Opening and closing.

pub(crate) mod close;
mod forks;
pub(crate) mod formats;
mod identity;
mod left_out;
mod reopen;
