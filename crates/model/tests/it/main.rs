//! The formulas against definitions, published numbers and each other.

#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]
#![allow(clippy::print_stdout, reason = "with --nocapture, cells and deviations are shown")]

mod cells;
mod formulas;
mod primitives;
mod silt;
