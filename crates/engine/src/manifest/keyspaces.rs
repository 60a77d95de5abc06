//! Records that drop and rename keyspaces.
//!
//! ```text
//! drop 3
//! rename 1 archive
//! rename_member 2 0 lines
//! next_keyspace 4
//! ```
//!
//! The id of a keyspace is never used again, because logs may still hold writes to it. Opening
//! skips writes to keyspaces whose ids are below the next one, and which do not exist.

/// A change to the set of keyspaces or to their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum KeyspaceChange {
    /// A keyspace was dropped, or a group with all its keyspaces.
    Drop(u32),
    /// A keyspace of its own, or a group, has another name.
    Rename { keyspace: u32, name: String },
    /// A keyspace of a group has another name.
    RenameMember { group: u32, member: u8, name: String },
    /// All numbers of keyspaces below this one were used.
    Next(u32),
}

impl KeyspaceChange {
    /// Returns the record as text.
    pub(super) fn encode(&self) -> String {
        match self {
            KeyspaceChange::Drop(id) => format!("drop {id}\n"),
            KeyspaceChange::Rename { keyspace, name } => format!("rename {keyspace} {name}\n"),
            KeyspaceChange::RenameMember { group, member, name } => {
                format!("rename_member {group} {member} {name}\n")
            }
            KeyspaceChange::Next(id) => format!("next_keyspace {id}\n"),
        }
    }

    /// Parses what follows `kind` in a record. Returns `None` if this is not the kind of a change.
    ///
    /// # Errors
    /// Fails if the text does not fit its kind.
    pub(super) fn decode(kind: &str, text: &str) -> Option<Result<KeyspaceChange, String>> {
        let change = match kind {
            "drop" => text.parse().ok().map(KeyspaceChange::Drop),
            "next_keyspace" => text.parse().ok().map(KeyspaceChange::Next),
            "rename" => renamed(text),
            "rename_member" => renamed_member(text),
            _ => return None,
        };
        Some(change.ok_or_else(|| format!("expected the record `{kind}`, found `{text}`")))
    }
}

fn renamed(text: &str) -> Option<KeyspaceChange> {
    let (keyspace, name) = text.split_once(' ')?;
    Some(KeyspaceChange::Rename { keyspace: keyspace.parse().ok()?, name: name.to_string() })
}

fn renamed_member(text: &str) -> Option<KeyspaceChange> {
    let (group, text) = text.split_once(' ')?;
    let (member, name) = text.split_once(' ')?;
    let (group, member) = (group.parse().ok()?, member.parse().ok()?);
    Some(KeyspaceChange::RenameMember { group, member, name: name.to_string() })
}
