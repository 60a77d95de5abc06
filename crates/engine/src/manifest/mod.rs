//! The manifest: a checksummed log of everything that must be known to open the store again.
//!
//! The file named by `CURRENT` begins with the account of the store: the row of logs, and every
//! keyspace with its tree. One record for each change follows. All records are text (see
//! [`record`]). A record is synced before the change that it describes takes effect. If a file is
//! full, and whenever the store is opened, a new file is begun and `CURRENT` is replaced by a
//! rename.

mod account;
mod bare;
mod bounds;
mod changed;
mod current;
mod file;
#[cfg(test)]
mod fuzz;
mod keyspaces;
mod owner;
mod record;
mod taken;
#[cfg(test)]
mod tests;

pub(crate) use account::{Account, KeyspaceFacts};
pub(crate) use bounds::{KEYSPACE_MAX, check_room};
pub(crate) use current::{current_text, read_current};
pub(crate) use file::{LeastBytes, position, read, read_account, write_account};
pub(crate) use keyspaces::KeyspaceChange;
pub(crate) use owner::Manifest;
pub(crate) use record::{KeyspaceRecord, LogRow, Record, RecordFault, Spill};
pub(crate) use taken::Mark;
