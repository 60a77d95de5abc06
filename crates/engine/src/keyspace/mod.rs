//! One open keyspace, in two halves:
//!
//! * [`KeyspaceShared`], which all threads use: the version that readers take, the active memtable,
//!   the [`Gate`] that holds writers back, and the lock around the state.
//! * [`KeyspaceState`], which changes under that lock: the tree with its reservations, the sealed
//!   memtables, the open tables, the merge [`Policy`], failed plans, and [`Requests`].

mod active;
mod course;
mod gate;
mod halt;
mod open;
mod policy;
mod requests;
mod shared;
mod state;

pub(crate) use active::Active;
pub(crate) use gate::{Gate, HeldBackBy};
pub(crate) use open::{KeyspaceBase, open_keyspace};
pub(crate) use policy::Policy;
pub(crate) use requests::{Request, Requests};
pub(crate) use shared::KeyspaceShared;
pub(crate) use state::{Failure, KeyspaceState, Replacement, SEALED_MAX, SealedRun, WriteSpan};
