//! Opening and closing.

pub(crate) mod close;
// Windows has no fork.
#[cfg(unix)]
mod forks;
pub(crate) mod formats;
mod identity;
mod left_out;
mod reopen;
