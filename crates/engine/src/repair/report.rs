//! The report of a repair: what was saved, and what was lost.

use lsmith_tree::KeyRange;
use std::fmt;
use std::path::PathBuf;

/// The result of [`repair`](crate::repair).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The keyspaces of the new store, in the order of their ids.
    pub keyspaces: Vec<RepairedKeyspace>,
    /// Every difference from an undamaged store, in the order in which they were found.
    pub findings: Vec<Finding>,
}

/// A keyspace that was saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedKeyspace {
    /// The name in the new store. Made up if the manifest no longer has it.
    pub name: String,
    /// The merge policy in the new store, as a spec.
    pub policy: String,
    /// The number of keys in the new store.
    pub entries: u64,
    /// True if the age of some tables was guessed, because the manifest does not have it.
    pub order_guessed: bool,
    /// The number of keys for which that guess decided which of several tables has the newest
    /// entry.
    pub contested: u64,
}

/// A difference from an undamaged store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The effect on the new store.
    pub kind: FindingKind,
    /// The file, or the directory of the store.
    pub path: PathBuf,
    /// The offset in the file, in bytes, if there is one.
    pub offset: Option<u64>,
    /// The name of the keyspace, if the finding belongs to one.
    pub keyspace: Option<String>,
    /// The cause: a lower-case sentence without full stop.
    pub message: String,
}

/// The effect of a finding on the new store.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// Entries of a table or of a spill cannot be read.
    LostKeys {
        /// A range that holds all keys of these entries.
        keys: KeyRange,
        /// The number of keys in the range that were saved from older tables. A lost entry may have
        /// been newer, or a tombstone.
        older: u64,
        /// The number of keys in the range that were saved from the log, with their newest values.
        logged: u64,
    },
    /// Batches of a log cannot be read.
    LostBatches {
        /// The bytes of the log that cannot be read; 0 if the batches are missing.
        bytes: u64,
        /// The number of missing writes by their sequence numbers, if it is known.
        writes: Option<u64>,
    },
    /// Bytes that opening the store would leave out too: they were not synced, or were set aside.
    LeftOut {
        /// The number of these bytes.
        bytes: u64,
    },
    /// Content that cannot be read was guessed or made up.
    Guessed,
    /// Damage without loss: the damaged content is also stored elsewhere, or not needed.
    Harmless,
}

impl RepairReport {
    /// Returns true if nothing was lost or guessed: the new store has what opening the old store
    /// would show.
    pub fn is_exact(&self) -> bool {
        let harmless = |kind: &FindingKind| {
            matches!(kind, FindingKind::Harmless | FindingKind::LeftOut { .. })
        };
        self.findings.iter().all(|finding| harmless(&finding.kind))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            FindingKind::LostKeys { .. } => f.write_str("lost: ")?,
            FindingKind::LostBatches { .. } => f.write_str("lost: ")?,
            FindingKind::LeftOut { .. } => f.write_str("left out: ")?,
            FindingKind::Guessed => f.write_str("guessed: ")?,
            FindingKind::Harmless => f.write_str("without loss: ")?,
        }
        write!(f, "{} in {}", self.message, self.path.display())?;
        if let Some(offset) = self.offset {
            write!(f, " at offset {offset}")?;
        }
        match &self.kind {
            FindingKind::LostKeys { keys, older, logged } => {
                let name = self.keyspace.as_deref().unwrap_or_default();
                write!(f, ": keys within {keys} of keyspace {name}")?;
                if *logged > 0 {
                    write!(f, ", {logged} saved from the log")?;
                }
                if *older > 0 {
                    write!(f, ", {older} saved as older tables have them")?;
                }
                Ok(())
            }
            FindingKind::LostBatches { bytes, writes } => {
                write!(f, ": {bytes} bytes")?;
                writes.map_or(Ok(()), |writes| write!(f, ", {writes} writes are missing"))
            }
            FindingKind::LeftOut { bytes } => write!(f, ": {bytes} bytes"),
            FindingKind::Guessed | FindingKind::Harmless => Ok(()),
        }
    }
}
