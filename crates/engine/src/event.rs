//! Events inside a store, and the observer that receives them.

use lsmith_tree::{MergePlan, Tree, TreeEdit};
use std::fmt::Debug;

/// An event in the life of a keyspace's tree.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A memtable was sealed.
    Sealed {
        /// The tree with the sealed memtable.
        tree: &'a Tree,
    },
    /// A plan was reserved, and is carried out next.
    Planned {
        /// The plan.
        plan: &'a MergePlan,
    },
    /// A plan was carried out and has taken effect.
    Committed {
        /// The plan.
        plan: &'a MergePlan,
        /// The change of the tree.
        edit: &'a TreeEdit,
        /// The tree before the change.
        before: &'a Tree,
        /// The tree after the change.
        tree: &'a Tree,
        /// Bytes of the tables that the plan wrote.
        bytes_written: u64,
        /// Bytes on the device at the moment of the change: all tables of the tree before, and
        /// the tables that the plan wrote.
        bytes_at_peak: u64,
        /// Bytes of all tables of the tree after the change.
        table_bytes: u64,
    },
    /// The tree is at rest: there is no plan to make, and none is under way.
    Rest {
        /// The tree.
        tree: &'a Tree,
        /// Bytes of all tables of the tree.
        table_bytes: u64,
    },
}

/// Receives the events of a store. The store calls it while it holds locks: an observer must be
/// quick, and must not call the store. It may drop handles of the store, even the last one.
///
/// A panic on a thread that merges is caught. The merge goes on, and so do later events. Callers
/// that wait for rest get an error until [`Store::retry`](crate::Store::retry). On the thread of a
/// caller the panic goes up to the caller, after the caller's change has taken effect.
#[doc(alias = "event listener")]
pub trait Observer: Debug + Send + Sync {
    /// Receives `event`, which happened in the keyspace, or the group, called `keyspace`.
    fn on_event(&self, keyspace: &str, event: &Event<'_>);
}
