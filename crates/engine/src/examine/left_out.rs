//! Finds the parts of its files that a store left out when it was opened, and foreign files.

use crate::engine::Engine;
use crate::left_out::{LeftOut, LeftOutReason};
use crate::manifest::{self, Account};
use lsmith_storage::error::{Error, Result};
use lsmith_storage::log::{LogEnd, LogId, LogKind, LogRemains};
use lsmith_storage::names::{
    self, CURRENT, FileKind, LOCK, LOST, READERS, RECORD, RECORD_NEW, numbered,
};
use lsmith_tree::TableId;
use std::path::PathBuf;

/// Returns all parts of the directory of `engine` that the store does not use.
///
/// # Errors
/// As [`Store::left_out`](crate::Store::left_out).
pub(crate) fn left_out(engine: &Engine) -> Result<Vec<LeftOut>> {
    // While these are held, no file ends in the middle of a record.
    let _writer = engine.wal.lock();
    let _manifest = engine.manifest.lock();
    let options = &engine.context.options;
    let env = &*options.env;
    let dir = &*options.dir;
    let Some((position, account)) = manifest::read(env, dir)? else { return Ok(Vec::new()) };
    let manifest = position.manifest;
    let mut names = env.list(dir).map_err(|error| Error::io("list", dir, error))?;
    names.sort_by_key(|name| names::parse(name).map_or(u64::MAX, |(_, file_id)| file_id));
    let mut search = LeftOutSearch { engine, account: &account, found: Vec::new() };
    search.add_torn_manifest(manifest)?;
    // A store that was opened for writing has set these parts aside.
    search.found.extend(engine.left_out.iter().filter(|_| options.read_only).cloned());
    for name in names {
        if let Some(reason) = search.reason(&name, manifest) {
            search.add_file(dir.join(name), reason);
        }
    }
    Ok(search.found)
}

/// A search for parts that are left out. `account` is the content of the manifest.
struct LeftOutSearch<'a> {
    engine: &'a Engine,
    account: &'a Account,
    found: Vec<LeftOut>,
}

impl LeftOutSearch<'_> {
    /// Returns why the file called `name` is left out, if it is. `manifest` is the file id of the
    /// manifest.
    fn reason(&self, name: &str, manifest: u64) -> Option<LeftOutReason> {
        let Some((kind, file_id)) = names::parse(name) else {
            if name.ends_with(LOST) {
                return Some(LeftOutReason::SetAside);
            }
            let is_ours = [CURRENT, LOCK, READERS, RECORD, RECORD_NEW].contains(&name);
            return (!is_ours).then_some(LeftOutReason::Stranger);
        };
        // A store that was opened for writing has files that nothing names yet.
        let is_named = !self.engine.context.options.read_only
            || match kind {
                FileKind::Wal => true,
                FileKind::Manifest => file_id == manifest,
                FileKind::NewWal => false,
                FileKind::Spill => {
                    let mut spills =
                        self.account.keyspaces.values().filter_map(|keyspace| keyspace.spill);
                    spills.any(|spill| spill.file == file_id)
                }
                FileKind::Table => {
                    let keyspaces = self.engine.keyspaces.all();
                    let has = |table| {
                        let mut states = keyspaces.iter().map(|keyspace| keyspace.state.lock());
                        states.any(|state| state.tables.contains_key(&table))
                    };
                    has(TableId(file_id))
                }
                FileKind::Values => {
                    let keyspaces = self.engine.keyspaces.all();
                    let mut states = keyspaces.iter().map(|keyspace| keyspace.state.lock());
                    states.any(|state| state.value_files().contains_key(&file_id))
                }
            };
        (!is_named).then_some(LeftOutReason::Unnamed)
    }

    fn add_file(&mut self, path: PathBuf, reason: LeftOutReason) {
        let bytes = self.engine.context.options.env.file_bytes(&path).unwrap_or(0);
        self.found.push(LeftOut { path, offset: 0, bytes, reason });
    }

    /// Adds the end of manifest `file_id` if it is torn.
    fn add_torn_manifest(&mut self, file_id: u64) -> Result<()> {
        let options = &self.engine.context.options;
        let path = numbered(&options.dir, FileKind::Manifest, file_id);
        let id = LogId { kind: LogKind::Manifest, file_id };
        let remains = LogRemains::read(&*options.env, &path, id)?;
        if let Ok(LogEnd::Torn { offset, bytes_dropped }) = remains.end
            && bytes_dropped > 0
        {
            let reason = LeftOutReason::TornEnd;
            self.found.push(LeftOut { path, offset, bytes: bytes_dropped, reason });
        }
        Ok(())
    }
}
