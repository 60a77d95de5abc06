//! The public handles: stores, keyspaces, batches, snapshots, iterators, bulk loads,
//! transactions.

mod backup;
mod batch;
mod builder;
mod change;
mod changes;
mod checkpoint;
mod cursor;
mod destroy;
mod detached;
mod export;
mod ingest;
mod iter;
mod keyspace;
mod keyspaces;
mod listing;
mod load;
mod loaded;
mod merges;
mod metrics;
mod reads;
mod snapshot;
mod stats;
mod store;
mod table_writer;
mod transaction;
mod writes;

pub use backup::{Backup, BackupOptions, Backups};
pub use batch::Batch;
pub use builder::Builder;
pub use change::Change;
pub use changes::{ChangeBatch, Changes};
pub use checkpoint::Checkpoint;
pub use cursor::Cursor;
pub use detached::DetachedBatch;
pub use ingest::{Ingest, IngestOptions};
pub use iter::{Iter, prefix_bounds};
pub use keyspace::Keyspace;
pub use listing::KeyspaceInfo;
pub use load::BulkLoad;
pub use loaded::Loaded;
pub use snapshot::Snapshot;
pub use stats::KeyspaceStats;
pub use store::Store;
pub use table_writer::{TableWriter, TableWriterOptions};
pub use transaction::{Isolation, Transaction, TransactionIter};
