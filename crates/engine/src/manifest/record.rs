//! The records of the manifest. [`text`] has their text.

mod text;

#[cfg(test)]
mod tests;

use super::keyspaces::KeyspaceChange;
use super::taken::Mark;
use crate::identity::Identity;
use crate::options::FilterChoice;
use crate::rules::Expiry;
use lsmith_storage::error::{Error, ErrorKind};
use lsmith_tree::{SeqNo, Tree, TreeEdit};
use std::path::Path;

/// A keyspace as it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct KeyspaceRecord {
    pub(crate) id: u32,
    pub(crate) name: String,
    pub(crate) policy: String,
    pub(crate) memtable_bytes: u64,
}

/// A file with a copy of a keyspace's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Spill {
    /// The id of the file.
    pub(crate) file: u64,
    /// The newest write that the copy stands in for. The log is not needed for this write and all
    /// older ones: they are in the file or in tables.
    pub(crate) newest: SeqNo,
    /// The number of entries in the file.
    pub(crate) entries: u64,
}

/// One record of the manifest.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Record {
    /// All file ids below this one are used.
    NextFile(u64),
    /// A keyspace was made, without compression.
    Keyspace(KeyspaceRecord),
    /// A keyspace was made, with this compression.
    CompressedKeyspace(KeyspaceRecord, String),
    /// A keyspace that keeps sequence numbers was made, with this compression.
    NumberedKeyspace(KeyspaceRecord, String),
    /// A group was made, with this compression: a tree without a name for keys, whose members
    /// share it.
    Group(KeyspaceRecord, String),
    /// The next keyspace of a group was made. It has the first free id of the group.
    Member { group: u32, member: u8, name: String },
    /// A keyspace was made, as the record in it says, with this combine operator.
    Operator { operator: String, made: Box<Record> },
    /// A keyspace was made, as the record in it says, whose entries expire.
    Expiry { expiry: Expiry, made: Box<Record> },
    /// A keyspace or a group was made, as the record in it says, with these filters.
    Filters { filters: FilterChoice, made: Box<Record> },
    /// The whole tree of a keyspace.
    Tree { keyspace: u32, flushed_seq: SeqNo, taken: Vec<Mark>, tree: Box<Tree> },
    /// A keyspace changed its policy.
    Policy { keyspace: u32, policy: String },
    /// A keyspace changed its compression.
    Compression { keyspace: u32, compression: String },
    /// A keyspace has range deletes from now on.
    DeletesRanges { keyspace: u32 },
    /// The name of the clock by which entries expire.
    Clock(String),
    /// A change of a keyspace's tree.
    Edit { keyspace: u32, flushed_seq: SeqNo, taken: Vec<Mark>, edit: TreeEdit },
    /// Changes of the trees of several keyspaces that take effect together. Each is an `Edit`.
    Together(Vec<Record>),
    /// The memory of a keyspace was copied to a file, which replaces any earlier copy.
    Spill { keyspace: u32, spill: Spill },
    /// The write-ahead logs from now on.
    Logs(LogRow),
    /// All writes up to this sequence number, inclusive, were synced: opening fails if some are
    /// missing.
    Synced(SeqNo),
    /// Keyspaces were dropped or renamed.
    Change(KeyspaceChange),
    /// Files of tables may have names in other stores from now on, so nothing may change in a file
    /// that has several.
    Linked,
    /// Who the store is.
    Identity(Identity),
    /// The store has been in the state of the backup with this stamp, so it has the files of that
    /// backup that it still names.
    Backup(u128),
}

/// The row of write-ahead logs, as of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogRow {
    /// The oldest log that is still needed. Logs with smaller ids are not.
    pub(crate) from: u64,
    /// The sequence number of the first write in log `from` or a later one. All older writes are in
    /// tables or in spills, or have left nothing.
    pub(crate) first: SeqNo,
    /// The newest log at that moment.
    pub(crate) newest: u64,
}

/// Why a payload is no record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RecordFault {
    /// This version does not know the record's kind, which is given.
    Unknown(String),
    /// The payload does not fit its kind. The message says why.
    Bad(String),
}

impl RecordFault {
    /// Returns the error for a record at `offset` in the file at `path`.
    pub(crate) fn at(self, path: &Path, offset: u64) -> Error {
        match self {
            RecordFault::Bad(message) => Error::corruption(path, offset, message),
            RecordFault::Unknown(kind) => {
                let message =
                    format!("unknown record kind `{kind}`: a newer version may have written it");
                Error::new(ErrorKind::Unsupported, message).at(path)
            }
        }
    }
}

impl Record {
    /// Returns the ids of the tree and of the keyspace in its group, if the record makes a
    /// keyspace and says nothing else of it but its filters.
    pub(crate) fn makes(&self) -> Option<(u32, u8)> {
        match self {
            Record::Keyspace(made)
            | Record::CompressedKeyspace(made, _)
            | Record::NumberedKeyspace(made, _) => Some((made.id, 0)),
            Record::Member { group, member, .. } => Some((*group, *member)),
            Record::Filters { made, .. } => made.makes(),
            _ => None,
        }
    }

    /// Returns the id of the tree if the record makes one, for a keyspace or a group, and says
    /// nothing else of it.
    pub(crate) fn makes_tree(&self) -> Option<u32> {
        match self {
            Record::Keyspace(made)
            | Record::CompressedKeyspace(made, _)
            | Record::NumberedKeyspace(made, _)
            | Record::Group(made, _) => Some(made.id),
            _ => None,
        }
    }

    /// Returns the record, which makes a tree, with its filters.
    pub(crate) fn filtered(self, filters: FilterChoice) -> Record {
        match filters {
            FilterChoice { bits: None, prefix_bytes: None } => self,
            _ => Record::Filters { filters, made: Box::new(self) },
        }
    }

    /// Returns the record, which makes a keyspace, with its operator or expiry.
    pub(crate) fn ruled(self, operator: Option<&String>, expiry: Option<&Expiry>) -> Record {
        let made = Box::new(self);
        match (operator, expiry) {
            (Some(operator), _) => Record::Operator { operator: operator.clone(), made },
            (None, Some(expiry)) => Record::Expiry { expiry: *expiry, made },
            (None, None) => *made,
        }
    }

    /// Returns the sequence numbers that the record names outside of its tree or edit.
    pub(super) fn seqs(&self) -> Vec<SeqNo> {
        match self {
            Record::Tree { flushed_seq, taken, .. } | Record::Edit { flushed_seq, taken, .. } => {
                taken.iter().map(|mark| mark.newest).chain([*flushed_seq]).collect()
            }
            Record::Together(edits) => edits.iter().flat_map(Record::seqs).collect(),
            Record::Spill { spill, .. } => vec![spill.newest],
            Record::Logs(logs) => vec![logs.first],
            Record::Synced(seq) => vec![*seq],
            _ => Vec::new(),
        }
    }

    /// Returns the records that take effect together, or the record itself if it is alone.
    pub(super) fn edits_mut(&mut self) -> &mut [Record] {
        match self {
            Record::Together(edits) => edits,
            record => std::slice::from_mut(record),
        }
    }
}
