//! What happens inside a store, told to whoever wants to know.

use lsmith_tree::{MergePlan, Tree, TreeEdit};
use std::fmt::Debug;

/// Something that happened to the tree of a keyspace.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A memtable was sealed.
    Sealed {
        /// The tree, the memtable included.
        tree: &'a Tree,
    },
    /// A plan was taken up.
    Planned {
        /// The plan.
        plan: &'a MergePlan,
    },
    /// A plan was carried out.
    Committed {
        /// The plan.
        plan: &'a MergePlan,
        /// The change that it made.
        edit: &'a TreeEdit,
        /// The tree before.
        before: &'a Tree,
        /// The tree afterwards.
        tree: &'a Tree,
        /// Bytes of the tables that it wrote.
        bytes_written: u64,
        /// Bytes of all tables of the tree before, and of those written, together: what was on the
        /// device at the moment of the change.
        bytes_at_peak: u64,
        /// Bytes of all tables of the tree afterwards.
        table_bytes: u64,
    },
    /// Nothing waits and nothing is under way.
    Rest {
        /// The tree.
        tree: &'a Tree,
        /// Bytes of all its tables.
        table_bytes: u64,
    },
}

/// Is told what happens. Called while locks are held: it must be quick, and must not call the
/// store. It may drop handles of it, the last one included.
///
/// A panic on a thread that merges is caught: the merge goes on, the next events are told as ever,
/// and who waits for rest gets an error until [`Store::retry`](crate::Store::retry). On the thread
/// of a caller it is the caller's panic, after what the caller did has taken effect.
pub trait Observer: Debug + Send + Sync {
    /// `event` happened in the keyspace called `keyspace`.
    fn on_event(&self, keyspace: &str, event: &Event<'_>);
}
