//! Backups: copies of a store in a directory of their own, which share the files that did not
//! change between them.
//!
//! ```text
//! BACKUPS                    says that the directory holds backups
//! LOCK                       locked while a backup is made or removed
//! 000003.backup              the list of backup 3: which files it consists of
//! 000003-000014.table        a file that backup 3 has copied: table 14 of the store
//! 000003-000077.manifest     the manifest of backup 3
//! ```
//!
//! A [list](BackupList) is written when all its files are there and synced, under another name
//! first. So a backup is whole or does not exist. An interrupted backup leaves files that no list
//! names.
//!
//! A later backup shares files with an earlier one if the store has been in the state of that
//! backup: its manifest has the [stamp](BackupList::stamp) of the list. File ids are never used
//! twice, and files do not change, or only grow. So a file of the store with the id and the length
//! in the list is the same file. This also holds for several stores that were restored from one
//! backup and have since been written to.

mod directory;
mod list;

pub(crate) use directory::{BackupDir, check_checksum, checksum_of};
pub(crate) use list::{BackupFile, BackupList};
