//! The public handles: stores, keyspaces, batches, snapshots, iterators, bulk loads.

mod batch;
mod builder;
mod iter;
mod keyspace;
mod load;
mod snapshot;
mod store;

pub use batch::Batch;
pub use builder::Builder;
pub use iter::Iter;
pub use keyspace::{Keyspace, KeyspaceStats};
pub use load::{BulkLoad, Loaded};
pub use snapshot::Snapshot;
pub use store::Store;
