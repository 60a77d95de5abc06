//! One open keyspace: what threads share of it, and what changes under its lock.
//!
//! * [`KeyspaceShared`]: the version that readers take, the active memtable, the [`Gate`] at which
//!   writers are held back, and the lock around the state.
//! * [`KeyspaceState`]: the tree with its reservations, the sealed memtables, the open tables, the
//!   merge [`Policy`], plans that failed, and [`Requests`].

mod active;
mod gate;
mod open;
mod policy;
mod requests;
mod shared;
mod state;

pub(crate) use active::Active;
pub(crate) use gate::Gate;
pub(crate) use open::open_keyspace;
pub(crate) use policy::Policy;
pub(crate) use requests::{Request, Requests};
pub(crate) use shared::KeyspaceShared;
pub(crate) use state::{Failure, KeyspaceState, Replacement, SEALED_MAX, SealedRun, WriteSpan};
