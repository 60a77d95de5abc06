//! The end of a keyspace.

use super::KeyspaceState;
use crate::context::Context;
use crate::keyspace::{Active, KeyspaceShared, Requests};
use crate::manifest::Spill;
use crate::version::Version;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_tree::Tree;
use std::sync::Arc;

impl KeyspaceShared {
    /// Ends the keyspace in a reader beside the writer that has dropped it. Handles of it fail from
    /// now on. Versions that are held go on.
    pub(crate) fn end(&self) {
        let mut state = self.state.lock();
        state.is_dropped = true;
        state.view.tree = Tree::new();
        state.sealed.clear();
        state.tables.clear();
        let mut version = Version::empty();
        version.is_dropped = true;
        self.version.store(Arc::new(version));
    }
}

impl KeyspaceState {
    /// Fails with `NotFound` if the keyspace, which is `keyspace`, was dropped.
    pub(crate) fn check_kept(&self, keyspace: &KeyspaceShared) -> Result<()> {
        if !self.is_dropped {
            return Ok(());
        }
        let name = &keyspace.name;
        let message = format!("the keyspace `{name}` was dropped: its handles are of no use");
        Err(Error::new(ErrorKind::NotFound, message))
    }

    /// Forgets everything, because the manifest no longer has the keyspace. Returns the version
    /// that readers see from now on, which is empty and refuses reads, and the spill that
    /// is not needed any more.
    pub(crate) fn forget_all(
        &mut self,
        context: &Context,
        keyspace: &KeyspaceShared,
    ) -> (Version, Option<Spill>) {
        self.is_dropped = true;
        self.view.tree = Tree::new();
        self.view.reservations.clear();
        self.failures.clear();
        self.sealed.clear();
        self.vanished = None;
        self.requests = Requests::default();
        self.active = Active::new(context);
        keyspace.active.store(Arc::clone(&self.active));
        self.tables.drain().for_each(|(_, table)| table.retire());
        // A batch on its way may still write to the active memtable. Nobody is to see that.
        let mut version = self.version(None);
        version.active = context.new_memtable();
        (version, self.spill.take())
    }
}
