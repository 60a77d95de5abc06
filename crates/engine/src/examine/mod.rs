//! Examining an open store as a whole: is anything damaged, was anything left out?

mod left_out;
mod verify;

pub(crate) use left_out::left_out;
pub(crate) use verify::verify;
