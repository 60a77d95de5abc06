//! Examines an open store as a whole: finds damage, and files that opening left out.

mod left_out;
mod verify;

pub(crate) use left_out::left_out;
pub(crate) use verify::verify;
