//! Copies of an open store: a store of its own, made while the first one is written.
//!
//! A [`Capture`] is what the store holds at one moment, and the files that hold it. It keeps these
//! files as they are. A [`NewStore`] is the directory in which the copy is made.

mod capture;
mod new_store;

pub(crate) use capture::{Capture, CapturedFile};
pub(crate) use new_store::NewStore;
