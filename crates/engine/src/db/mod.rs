//! The public face: stores, keyspaces, batches, snapshots, iterators.

mod batch;
mod builder;
mod compression;
mod iter;
mod keyspace;
mod load;
mod snapshot;
mod store;

pub use batch::{BATCH_BYTES_MAX, Batch};
pub(crate) use batch::{Op, Ops};
pub use builder::{Builder, DEFAULT_KEYSPACE, DEFAULT_POLICY, KeyspaceOptions, PersistMode};
pub(crate) use builder::{
    MEMORY_PARTS, MEMTABLE_BYTES_MAX, Options, bad_policy, check_memtable, check_name,
};
pub(crate) use compression::Compression;
pub use compression::check_compression;
pub use iter::Iter;
pub use keyspace::{Keyspace, KeyspaceStats};
pub use load::{BulkLoad, Loaded};
pub use snapshot::Snapshot;
pub(crate) use snapshot::{SnapshotGuard, Snapshots};
pub use store::Store;
