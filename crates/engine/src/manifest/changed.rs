//! What drops and renames make of the account.

use super::account::Account;
use super::bounds::KEYSPACE_MAX;
use super::keyspaces::KeyspaceChange;
use super::record::Record;
use crate::options::check_name;
use lsmith_storage::bounds::check_number;

impl Account {
    /// Applies `change`.
    ///
    /// # Errors
    /// Fails if the change is out of bounds or contradicts the account.
    pub(super) fn change(&mut self, change: KeyspaceChange) -> Result<(), String> {
        match change {
            KeyspaceChange::Drop(id) => {
                let dropped = self.keyspaces.remove(&id);
                dropped.map(drop).ok_or_else(|| format!("there is no keyspace {id}"))
            }
            KeyspaceChange::Rename { keyspace, name } => {
                self.check_renaming(&name)?;
                self.keyspace(keyspace)?.name = name;
                Ok(())
            }
            KeyspaceChange::RenameMember { group, member: member_id, name } => {
                self.check_renaming(&name)?;
                let members = self.keyspace(group)?.members.as_mut();
                let member = members.and_then(|members| members.get_mut(usize::from(member_id)));
                *member.ok_or_else(|| format!("group {group} has no keyspace {member_id}"))? = name;
                Ok(())
            }
            KeyspaceChange::Next(id) => {
                check_number("next keyspace", id.into(), u64::from(KEYSPACE_MAX) + 1)?;
                self.next_keyspace = self.next_keyspace.max(id);
                Ok(())
            }
        }
    }

    fn check_renaming(&self, name: &str) -> Result<(), String> {
        check_name(name).map_err(|error| error.to_string())?;
        self.check_new_name(name)
    }

    /// Returns true if keyspace `id` was dropped.
    pub(crate) fn was_dropped(&self, id: u32) -> bool {
        id < self.next_keyspace && !self.keyspaces.contains_key(&id)
    }

    /// Returns true if the keyspace of `key` in tree `id`, a keyspace or a group, was made, whether
    /// it was dropped or not.
    pub(crate) fn knows(&self, id: u32, key: &[u8]) -> bool {
        let Some(facts) = self.keyspaces.get(&id) else { return self.was_dropped(id) };
        let member_id = key.first().map_or(0, |member_id| usize::from(*member_id));
        facts.members.as_ref().is_none_or(|members| member_id < members.len())
    }

    /// Returns the record of the next keyspace's id, if the keyspaces do not say it.
    pub(super) fn next_record(&self) -> Option<Record> {
        let last = self.keyspaces.keys().next_back();
        let known = last.map_or(0, |last| last + 1);
        let next = self.next_keyspace;
        (known < next).then_some(Record::Change(KeyspaceChange::Next(next)))
    }
}
