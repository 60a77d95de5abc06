//! What a repair has saved, and what it could not.

use lsmith_tree::KeyRange;
use std::fmt;
use std::path::PathBuf;

/// What came of a repair.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct RepairReport {
    /// The keyspaces of the new store, in the order of their numbers.
    pub keyspaces: Vec<RepairedKeyspace>,
    /// Everything that is not as it was, in the order in which it was met.
    pub findings: Vec<Finding>,
}

/// A keyspace that was saved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairedKeyspace {
    /// Its name, made up where the manifest does not say it any more.
    pub name: String,
    /// Its merge policy.
    pub policy: String,
    /// Keys that it has in the new store.
    pub entries: u64,
    /// Whether the manifest did not say the order of all tables by age, so that it was guessed.
    pub order_guessed: bool,
    /// Keys of which several tables had an entry, and the guess decided which is the newest.
    pub contested: u64,
}

/// Something that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// What it means for the new store.
    pub kind: FindingKind,
    /// The file.
    pub path: PathBuf,
    /// Where in the file, in bytes from its start.
    pub offset: Option<u64>,
    /// The name of the keyspace, where it is one that is concerned.
    pub keyspace: Option<String>,
    /// What is wrong: a lower-case sentence without full stop.
    pub message: String,
}

/// What a finding means.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FindingKind {
    /// Entries of a table, or of a copy of memory, cannot be read.
    LostKeys {
        /// All of them lie in here.
        keys: KeyRange,
        /// Keys in there that were saved as older tables have them: what was lost may have been
        /// newer, or may have removed them.
        older: u64,
        /// Keys in there that were saved as the log still has them, which is how they were.
        logged: u64,
    },
    /// Batches of a log cannot be read.
    LostBatches {
        /// Bytes of the log in which they were; 0 where they are missing.
        bytes: u64,
        /// How many writes are missing, as the numbers around them say.
        writes: Option<u64>,
    },
    /// Something that an opening leaves out, too: it had not been synced, or was set aside.
    LeftOut {
        /// Bytes of it.
        bytes: u64,
    },
    /// What is said in files that cannot be read was made up or guessed.
    Guessed,
    /// Damage that costs nothing: what was damaged is said elsewhere, too.
    Harmless,
}

impl RepairReport {
    /// Whether the new store holds exactly what the old one did.
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
