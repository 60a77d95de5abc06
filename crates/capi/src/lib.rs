//! lsmith for C and C++: the store, and its merge policies.
//!
//! `include/lsmith.h` is made from this crate, and says what every call asks for. `docs/c.md` is
//! the guide.
//!
//! # Safety
//! Callers are C. Of every call they promise:
//!
//! - A handle came from the call that makes such handles, and was not destroyed.
//! - A key or value points to as many readable bytes as its length says, unless the length is 0.
//! - A text ends with a zero byte. What is returned through a pointer has room.
//! - Batches, iterators, transactions, feeds and errors are used by one thread at a time.
//!
//! A null handle is caught. No panic crosses into C: it becomes an error.
#![allow(non_camel_case_types, reason = "these are the names in C")]
#![allow(clippy::missing_const_for_fn, reason = "C has no such functions")]

mod batch;
mod bytes;
mod changes;
mod error;
mod iterator;
mod keyspace;
mod options;
mod policy;
mod shared;
mod snapshot;
mod store;
mod transaction;

pub use batch::*;
pub use bytes::{lsmith_free, lsmith_pinned_destroy, lsmith_pinned_t, lsmith_pinned_value};
pub use changes::*;
pub use error::*;
pub use iterator::*;
pub use keyspace::*;
pub use options::{LSMITH_BUFFER, LSMITH_SYNC_ALL, LSMITH_SYNC_DATA, lsmith_persist_t};
pub use policy::*;
pub use shared::*;
pub use snapshot::*;
pub use store::*;
pub use transaction::*;
