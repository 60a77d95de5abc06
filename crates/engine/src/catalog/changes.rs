//! Drops and renames keyspaces.

use super::Catalog;
use crate::context::read_only;
use crate::keyspace::KeyspaceShared;
use crate::keyspaces::{Named, find};
use crate::manifest::{KeyspaceChange, Record};
use crate::memory::remove_spill;
use crate::options::check_name;
use crate::version::Version;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::{Error, ErrorKind, Result};
use std::sync::Arc;

impl Catalog {
    /// Drops the keyspace, or the group, called `name`.
    ///
    /// # Errors
    /// As [`Store::drop_keyspace`](crate::Store::drop_keyspace).
    pub(crate) fn drop_keyspace(&self, name: &str) -> Result<()> {
        self.context.check_writable()?;
        let dropped = match self.keyspaces.find(name) {
            Some(Named::Alone(tree) | Named::Group(tree)) => tree,
            Some(Named::Member(tree, _)) => return Err(is_member(name, &tree)),
            None => return Err(self.unknown(name)),
        };
        let halt = dropped.halt(&self.context)?;
        let mut guard = self.wal.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.context.check_writable()?;
        // Power loss must not take earlier writes to other keyspaces, and leave the drop.
        self.wal.sync(&writer.logs_to_sync(), SyncReach::Data)?;
        let unused = self.commit_drop(&dropped, name)?;
        drop(halt);
        self.wal.leave_log(writer);
        drop(guard);
        self.wal.retire_logs();
        // The files of the tables go here, outside of the locks, unless someone reads them.
        drop(unused);
        self.context.leftovers.drop_all();
        self.keyspaces.balance_memory();
        Ok(())
    }

    /// Takes `dropped` out of the manifest and of the keyspaces, where it is called `name`. Returns
    /// its versions, which nobody needs any more. The caller holds the writer's lock, so nothing is
    /// written or sealed meanwhile.
    fn commit_drop(&self, dropped: &Arc<KeyspaceShared>, name: &str) -> Result<Vec<Arc<Version>>> {
        let mut keyspaces = self.keyspaces.write();
        if !keyspaces.get(name).is_some_and(|found| Arc::ptr_eq(found, dropped)) {
            return Err(self.unknown(name));
        }
        let _committing = dropped.committing.lock();
        self.manifest.write(Record::Change(KeyspaceChange::Drop(dropped.id)), |_| ())?;
        let step = self.context.one_step();
        keyspaces.remove(name);
        let mut state = dropped.state.lock();
        let (version, spill) = state.forget_all(&self.context, dropped);
        let old = dropped.version.swap(Arc::new(version));
        let mut unused = self.context.snapshots.unpin(dropped.id);
        step.over();
        unused.push(old);
        remove_spill(&self.context, spill);
        dropped.gate.note(&state);
        Ok(unused)
    }

    /// Renames what is called `from`: a keyspace or a group.
    ///
    /// # Errors
    /// As [`Store::rename_keyspace`](crate::Store::rename_keyspace).
    pub(crate) fn rename(&self, from: &str, to: &str) -> Result<()> {
        self.context.check_writable()?;
        check_name(to)?;
        self.wal.sync_before_record()?;
        let mut keyspaces = self.keyspaces.write();
        let named = find(&keyspaces, from).ok_or_else(|| self.unknown(from))?;
        if find(&keyspaces, to).is_some() {
            let message = format!("`{from}` cannot be called `{to}`: expected a name not in use");
            return Err(Error::new(ErrorKind::InvalidArgument, message));
        }
        let to_name = to.to_string();
        match named {
            Named::Alone(tree) | Named::Group(tree) => {
                let change = KeyspaceChange::Rename { keyspace: tree.id, name: to_name };
                self.manifest.write(Record::Change(change), |_| ())?;
                tree.name.change(to);
                keyspaces.remove(from);
                keyspaces.insert(to.to_string(), tree);
            }
            Named::Member(tree, member) => {
                let (group, member_id) = (tree.id, member.id);
                let change =
                    KeyspaceChange::RenameMember { group, member: member_id, name: to_name };
                self.manifest.write(Record::Change(change), |_| ())?;
                member.name.change(to);
            }
        }
        Ok(())
    }

    fn unknown(&self, name: &str) -> Error {
        let message = format!("there is no keyspace called `{name}`");
        Error::new(ErrorKind::NotFound, message).at(&self.context.options.dir)
    }
}

/// Returns the error of a caller who drops `name`, a keyspace of `group`.
fn is_member(name: &str, group: &KeyspaceShared) -> Error {
    let message = format!(
        "`{name}` is a keyspace of the group `{group}`, which is dropped as a whole: clear \
         `{name}`, or drop `{group}` with all its keyspaces",
        group = group.name
    );
    Error::new(ErrorKind::InvalidArgument, message)
}
