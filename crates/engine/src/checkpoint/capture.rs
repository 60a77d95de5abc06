//! What an open store holds at one moment.
//!
//! The moment is chosen under the writer's lock and the commit locks of all keyspaces. So no write,
//! load or edit is half done, and the manifest, the trees and the logs agree. Then writes go on:
//!
//! * Tables are held by their handles, and their blocks by the versions that show them.
//! * Spills and logs are not removed as long as the [`Hold`] lives.
//! * A full log does not change any more, and neither does a sorted table. The newest log and
//!   append tables are written on behind the bytes that belong to the capture.

use crate::context::read_only;
use crate::engine::Engine;
use crate::keyspace::KeyspaceShared;
use crate::leases::Hold;
use crate::manifest::{Account, LogRow};
use crate::options::PersistMode;
use crate::version::{TableHandle, Version};
use crate::wal::WalWriter;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::sync::MutexGuard;
use lsmith_storage::table::ReadTable;
use lsmith_tree::{SeqNo, TableId};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;

/// What a store holds at one moment. As long as it lives, its files stay.
#[derive(Debug)]
pub(crate) struct Capture {
    /// What the manifest says.
    pub(crate) account: Account,
    /// The sequence number of the last write.
    pub(crate) last: SeqNo,
    /// All files but the manifest.
    pub(crate) files: Vec<CapturedFile>,
    _hold: Hold,
    _versions: Vec<Arc<Version>>,
    _tables: Vec<Arc<TableHandle>>,
}

/// A file of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CapturedFile {
    pub(crate) kind: FileKind,
    pub(crate) file_id: u64,
    /// The first bytes of the file, which belong to the capture.
    pub(crate) bytes: u64,
    /// True if the store may write on behind these bytes.
    pub(crate) grows: bool,
}

impl Capture {
    /// Captures what `engine` holds now. Makes everything in it survive power loss.
    ///
    /// # Errors
    /// `ReadOnly` or `Poisoned` if the store cannot be written to; `Io`.
    pub(crate) fn take(engine: &Engine) -> Result<Capture> {
        let context = &*engine.context;
        let options = &context.options;
        context.check_writable()?;
        let hold = context.leases.hold();
        let guard = engine.wal.lock();
        let writer = guard.as_ref().ok_or_else(read_only)?;
        let keyspaces = engine.keyspaces.all();
        let committing: Vec<MutexGuard<'_, ()>> =
            keyspaces.iter().map(|keyspace| keyspace.committing.lock()).collect();
        context.check_writable()?;
        let mut account = engine.manifest.account()?;
        let versions = keyspaces.iter().map(|keyspace| keyspace.version.load_full()).collect();
        let tables: Vec<_> =
            keyspaces.iter().flat_map(|keyspace| named_tables(&account, keyspace)).collect();
        let logs = logs_of(&mut account, writer);
        let last = SeqNo(writer.next_seq - 1);
        let to_sync = writer.logs_to_sync();
        drop(committing);
        drop(guard);
        engine.wal.sync_for(PersistMode::SyncData, &to_sync)?;
        account.synced_seq = last;
        let mut files: Vec<CapturedFile> =
            tables.iter().map(|table| CapturedFile::of_table(table)).collect();
        files.extend(values_of(&tables));
        files.extend(spills_of(&*options.env, &options.dir, &account)?);
        files.extend(logs);
        Ok(Capture { account, last, files, _hold: hold, _versions: versions, _tables: tables })
    }
}

impl CapturedFile {
    fn of_table(table: &TableHandle) -> CapturedFile {
        let open = table.table();
        CapturedFile {
            kind: FileKind::Table,
            file_id: table.file_id(),
            bytes: open.facts().file_bytes,
            grows: open.as_sorted().is_none(),
        }
    }
}

/// Returns the tables that `account` names for `keyspace`.
fn named_tables(account: &Account, keyspace: &KeyspaceShared) -> Vec<Arc<TableHandle>> {
    let known = account.keyspaces.get(&keyspace.id).into_iter();
    let slices = known.flat_map(|known| known.tree.disk_runs()).flat_map(|run| run.slices());
    let named: BTreeSet<TableId> = slices.map(|slice| slice.table().id).collect();
    let state = keyspace.state.lock();
    let table = |id| Arc::clone(state.tables.get(id).expect("no commit is half done"));
    named.iter().map(table).collect()
}

/// Returns the value files that `tables` refer to. They do not change any more.
fn values_of(tables: &[Arc<TableHandle>]) -> impl Iterator<Item = CapturedFile> {
    let files = tables.iter().flat_map(|table| table.value_files());
    let files: BTreeMap<u64, u64> = files.map(|file| (file.file_id(), file.file_bytes())).collect();
    let file =
        |(file_id, bytes)| CapturedFile { kind: FileKind::Values, file_id, bytes, grows: false };
    files.into_iter().map(file)
}

/// Returns the spills that `account` names.
fn spills_of(env: &dyn Env, dir: &Path, account: &Account) -> Result<Vec<CapturedFile>> {
    let spills = account.keyspaces.values().filter_map(|known| known.spill);
    let file = |file_id| {
        let path = numbered(dir, FileKind::Spill, file_id);
        let bytes = env.file_bytes(&path).map_err(|error| Error::io("measure", &path, error))?;
        Ok(CapturedFile { kind: FileKind::Spill, file_id, bytes, grows: false })
    };
    spills.map(|spill| file(spill.file)).collect()
}

/// Returns the logs that are needed beside `account`, and makes `account` name the newest of them.
fn logs_of(account: &mut Account, writer: &WalWriter) -> Vec<CapturedFile> {
    let from = account.logs.map_or(0, |row| row.from);
    let (logs, written) = writer.logs_from(from);
    account.logs = account.logs.map(|row| LogRow { newest: writer.file_id, ..row });
    let file = |log: &crate::wal::Log| {
        let grows = log.file_id == writer.file_id;
        let bytes = if grows { written } else { log.bytes };
        CapturedFile { kind: FileKind::Wal, file_id: log.file_id, bytes, grows }
    };
    logs.iter().map(file).collect()
}
