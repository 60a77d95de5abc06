//! The header is the one that the crate makes.

#![allow(clippy::disallowed_methods, reason = "a test reads the header")]

mod header;
mod needs;
