//! Combine operators.

mod calls;
mod writes;
