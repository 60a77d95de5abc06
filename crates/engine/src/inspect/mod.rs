//! Reads single files of a store, whole or damaged, without opening the store and without its lock.
//!
//! * [`FileType::of`] returns the type of a file by its name.
//! * [`TableFile`] reads a sorted table block by block.
//! * [`AppendFile`] reads an append table leaf by leaf.
//! * [`LogFile`] reads the records of a write-ahead log, a manifest, or a spill.
//! * [`current`] returns the file id of the manifest that `CURRENT` names.
//! * [`trees`] returns the trees of all keyspaces, also beside the process that has the store open.
//! * [`damage`] returns the damage in all files of a directory.
//!
//! Damage does not end the reading: it is reported with the block or record that has it, and what
//! follows is read too. Functions fail only if a file cannot be read (`Io`) or has a newer format
//! (`Unsupported`).
//!
//! ```
//! # let dir = tempfile::tempdir()?;
//! use lsmith::inspect::{Content, FileType, LogFile};
//!
//! let store = lsmith::Store::builder(dir.path()).open()?;
//! store.keyspace("default")?.put("apple", "red")?;
//! drop(store);
//! let env = lsmith::env::RealEnv::new();
//! for entry in std::fs::read_dir(dir.path())? {
//!     let path = entry?.path();
//!     if FileType::of(&path).is_some_and(|(kind, _)| kind == FileType::Log) {
//!         let log = LogFile::open(&env, &path)?;
//!         // Record 0 is the start of the log.
//!         let record = log.records().nth(1).expect("one batch");
//!         let Content::Batch { first, writes, .. } = record.content? else {
//!             panic!("not a batch")
//!         };
//!         assert_eq!((first.0, &writes[0].entry.key[..]), (1, &b"apple"[..]));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append_file;
mod entry;
mod file_type;
mod log;
mod table;
mod trees;

pub use append_file::{AppendFile, AppendLeaf, Root, RootProperties};
pub use entry::Entry;
pub use file_type::FileType;
pub use log::{Content, LogFile, LogRecord, Write};
pub use lsmith_storage::reference::{Packing, StoredBytes, ValueReference};
pub use lsmith_tree::EntryKind;
pub use table::{Filter, Footer, Properties, TableBlock, TableFile, is_table};
pub use trees::{KeyspaceTree, trees};

use crate::manifest;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::table::{OpenFiles, ValueFile};
use std::path::Path;

/// Returns all damage in the files of `dir`, each checked by itself. For a store that does not
/// open. [`Store::verify`](crate::Store::verify) finds more, because it knows what the files must
/// hold.
///
/// Files of newer formats are in the result, as errors of kind `Unsupported`.
///
/// # Errors
/// `Io` if a file cannot be read.
pub fn damage(env: &dyn Env, dir: &Path) -> Result<Vec<Error>> {
    let mut damage = Vec::new();
    for name in env.list(dir).map_err(|error| Error::io("list", dir, error))? {
        let path = dir.join(name);
        let found = match FileType::of(&path) {
            None => Ok(()),
            Some((FileType::Current, _)) => current(env, &path).map(drop),
            Some((FileType::Table, _)) => table_damage(env, &path, &mut damage),
            Some((FileType::Values, file_id)) => value_damage(env, &path, file_id, &mut damage),
            Some(_) => log_damage(env, &path, &mut damage),
        };
        match found {
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            found => damage.extend(found.err()),
        }
    }
    Ok(damage)
}

fn table_damage(env: &dyn Env, path: &Path, damage: &mut Vec<Error>) -> Result<()> {
    if AppendFile::is_append(env, path)? {
        let table = AppendFile::open(env, path)?;
        table.parts().for_each(|part| damage.extend(part.damage));
        damage.extend(table.into_damage());
        return Ok(());
    }
    let mut table = TableFile::open(env, path)?;
    for index in 0..table.block_count() {
        match table.block(index) {
            Err(error) if error.kind() == ErrorKind::Corruption => damage.push(error),
            other => other.map(drop)?,
        }
    }
    damage.append(&mut table.take_damage());
    Ok(())
}

fn value_damage(env: &dyn Env, path: &Path, file_id: u64, damage: &mut Vec<Error>) -> Result<()> {
    let file = ValueFile::open(env, path, file_id, &OpenFiles::few())?;
    damage.extend(file.damage()?);
    Ok(())
}

fn log_damage(env: &dyn Env, path: &Path, damage: &mut Vec<Error>) -> Result<()> {
    let log = LogFile::open(env, path)?;
    damage.extend(log.records().filter_map(|record| record.content.err()));
    damage.extend(log.into_damage());
    Ok(())
}

/// Returns the file id of the manifest that the `CURRENT` at `path` names.
///
/// # Errors
/// `NotFound` if there is no such file; `Corruption`, with the offset, if it is damaged;
/// `Unsupported` if it has a newer format; `Io` if it cannot be read.
pub fn current(env: &dyn Env, path: &Path) -> Result<u64> {
    let found = manifest::read_current(env, path)?;
    found.ok_or_else(|| Error::new(ErrorKind::NotFound, "there is no such file").at(path))
}
