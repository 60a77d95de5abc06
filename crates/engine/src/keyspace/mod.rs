//! One open keyspace: what threads share of it, and what changes under its lock.
//!
//! * [`KeyspaceShared`]: the version that readers take, the active memtable, the [`Gate`] at which
//!   writers are held back, and the lock around the state.
//! * [`KeyspaceState`]: the tree with its reservations, the sealed memtables, the open tables, the
//!   merge [`Policy`], plans that failed, and [`Requests`].

mod active;
mod failure;
mod gate;
mod open;
mod policy;
mod requests;
mod sealed;
mod shared;
mod state;
mod tables;

pub(crate) use active::Active;
pub(crate) use failure::Failure;
pub(crate) use gate::Gate;
pub(crate) use open::open_keyspace;
pub(crate) use policy::Policy;
pub(crate) use requests::{Request, Requests};
pub(crate) use sealed::{Replacement, SEALED_MAX, SealedRun, WriteSpan};
pub(crate) use shared::KeyspaceShared;
pub(crate) use state::KeyspaceState;
