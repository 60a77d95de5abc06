//! Looks for damage in all files of an open store.

use crate::engine::Engine;
use crate::manifest;
use crate::memory::read_spill;
use crate::version::Version;
use lsmith_storage::cursor::Cursor;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::format::Damage;
use lsmith_storage::format::decode_batch;
use lsmith_storage::log::{LogId, LogKind, LogReader, LogStart};
use lsmith_storage::names::{self, FileKind, numbered};
use lsmith_storage::sync::atomic::Ordering;
use lsmith_storage::table::{CacheFill, OpenTable, ReadCursor, ReadTable};
use lsmith_tree::{KeyRange, check_tree};
use std::io::ErrorKind::NotFound;
use std::path::Path;

/// Returns all damage that it finds in the trees, tables, spills and logs of the store.
///
/// # Errors
/// As [`Store::verify`](crate::Store::verify).
pub(crate) fn verify(engine: &Engine) -> Result<Vec<Error>> {
    let mut damage = Vec::new();
    for keyspace in engine.keyspaces.all() {
        let version = keyspace.version.load_full();
        if let Err(error) = check_tree(&version.tree) {
            let message = format!("the tree of keyspace {} is not legal: {error}", keyspace.name);
            damage.push(Error::new(ErrorKind::Corruption, message).at(&engine.context.options.dir));
        }
        let mut shown: Vec<_> = version.shown(|_| true).into_values().collect();
        shown.sort_unstable_by_key(|(table, _)| table.file_id());
        for (table, ranges) in shown {
            collect(&mut damage, table.table().verify(&ranges))?;
            if table.value_files().next().is_some() {
                verify_values(&version, table.table(), &ranges, &mut damage)?;
            }
        }
    }
    // While the writer and the manifest are held, no file ends in the middle of a record.
    let _writer = engine.wal.lock();
    let _manifest = engine.manifest.lock();
    let env = &engine.context.options.env;
    let dir = &engine.context.options.dir;
    match manifest::read(&**env, dir) {
        Ok(read) => {
            let keyspaces = read.into_iter().flat_map(|(_, account)| account.keyspaces);
            for (id, state) in keyspaces {
                let Some(spill) = state.spill else { continue };
                collect(&mut damage, read_spill(&**env, dir, id, spill).map(drop))?;
            }
        }
        Err(error) => collect(&mut damage, Err(error))?,
    }
    // All files of the store have smaller file ids.
    let next = engine.context.next_file.load(Ordering::Relaxed);
    for name in env.list(dir).map_err(|error| Error::io("list", dir, error))? {
        let Some((FileKind::Wal, file_id)) = names::parse(&name) else { continue };
        if file_id >= next {
            continue;
        }
        let path = numbered(dir, FileKind::Wal, file_id);
        match verify_wal(&**env, &path, file_id) {
            // Another thread may remove unneeded logs without these locks.
            Err(_) if env.file_bytes(&path).is_err_and(|error| error.kind() == NotFound) => {}
            found => collect(&mut damage, found)?,
        }
    }
    Ok(damage)
}

/// Reads all values in value files to which `table` refers within `ranges`. Adds their damage to
/// `damage`.
fn verify_values(
    version: &Version,
    table: &OpenTable,
    ranges: &[KeyRange],
    damage: &mut Vec<Error>,
) -> Result<()> {
    let mut cursor = table.cursor(CacheFill::No);
    for range in ranges {
        cursor.keep_within(range.clone());
        if cursor.seek_first().is_err() {
            // Reported already, as damage of the table.
            continue;
        }
        while let Some(entry) = cursor.entry() {
            if entry.kind.is_reference() {
                collect(damage, version.read_checked(entry.value).map(drop))?;
            }
            if cursor.next().is_err() {
                break;
            }
        }
    }
    Ok(())
}

/// Adds the error of `found` to `damage` if it is damage; otherwise returns `found`.
fn collect(damage: &mut Vec<Error>, found: Result<()>) -> Result<()> {
    match found {
        Err(error) if matches!(error.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) => {
            damage.push(error);
            Ok(())
        }
        other => other,
    }
}

fn verify_wal(env: &dyn Env, path: &Path, file_id: u64) -> Result<()> {
    let id = LogId { kind: LogKind::Wal, file_id };
    let mut reader = LogReader::open(env, path, id)?;
    while let Some((offset, payload)) = reader.next_record()? {
        let damaged = |damage: Damage| Error::corruption(path, offset, damage.what);
        if LogStart::decode(payload).map_err(damaged)?.is_none() {
            decode_batch(payload).map_err(damaged)?;
        }
    }
    Ok(())
}
