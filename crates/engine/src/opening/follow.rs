//! Follows the logs of a writer in another process, as long as nothing else has changed.
//!
//! Then a reader reads on where it stopped, and takes new batches into its memtables, as the writer
//! did. They become visible when all of them are there.

use super::lock::no_store;
use super::row::open_log;
use crate::context::Context;
use crate::engine::{Engine, ReadView};
use crate::keyspace::KeyspaceShared;
use crate::leases::Position;
use crate::manifest;
use crate::memory::seal_while_opening;
use crate::options::Options;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::format::{OpKind, decode_batch, deleted_range};
use lsmith_storage::log::{LogReader, LogStart};
use lsmith_storage::memtable::KeepFrom;
use lsmith_storage::names::{self, FileKind};
use lsmith_storage::sync::atomic::Ordering::SeqCst;
use lsmith_tree::{Readers, SeqNo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The keyspaces of a reader by id.
type ById = BTreeMap<u32, Arc<KeyspaceShared>>;

/// Shows the batches that were written since `view` was read. Returns false if that is not enough,
/// so that the store must be read anew.
///
/// # Errors
/// `Corruption` if a log is damaged; `Io`.
pub(super) fn follow(engine: &Engine, view: &mut ReadView) -> Result<bool> {
    let context = &engine.context;
    let keyspaces: ById =
        engine.keyspaces.all().into_iter().map(|keyspace| (keyspace.id, keyspace)).collect();
    let mut last = context.visible.load(SeqCst);
    loop {
        match read_on(context, view, &keyspaces, last)? {
            Some(read) => last = read,
            None => return Ok(false),
        }
        match next_log(context, view, last)? {
            NextLog::None => break,
            NextLog::Begun => {}
            NextLog::Other => return Ok(false),
        }
    }
    // What the manifest says comes before the batches that rest on it. So these rest on what it
    // said when `view` was read.
    let is_current = view.position == position(&context.options)?;
    if is_current {
        context.visible.store(last, SeqCst);
    }
    Ok(is_current)
}

/// Returns how far the manifest has come.
pub(super) fn position(options: &Options) -> Result<Position> {
    let Options { env, dir, .. } = options;
    let now = || manifest::position(&**env, dir)?.ok_or_else(|| no_store(dir));
    // The writer may replace the manifest between two steps of this.
    now().or_else(|_| now()).or_else(|_| now())
}

/// Takes the rest of the newest log, with writes behind sequence number `last`, into memtables.
/// Returns the sequence number of the last write, or `None` if there is something that is not in
/// the logs alone.
fn read_on(
    context: &Context,
    view: &mut ReadView,
    keyspaces: &ById,
    mut last: u64,
) -> Result<Option<u64>> {
    let Some((file_id, reader)) = &mut view.newest_log else { return Ok(None) };
    if !reader.look_again()? {
        return Ok(Some(last));
    }
    let path = names::numbered(&context.options.dir, FileKind::Wal, *file_id);
    while let Some((offset, payload)) = reader.next_record()? {
        let batch = decode_batch(payload)
            .map_err(|damage| Error::corruption(&path, offset, damage.what.to_string()))?;
        let is_known = batch.ops.iter().all(|op| keyspaces.contains_key(&op.keyspace));
        if batch.ops.is_empty() || !is_known || batch.first.0 != last + 1 {
            return Ok(None);
        }
        let keep = KeepFrom(context.keep_from());
        for (seq, op) in (batch.first.0..).zip(&batch.ops) {
            let state = keyspaces[&op.keyspace].state.lock();
            let OpKind::Entry(kind) = op.kind else {
                let range = deleted_range(op.key, op.value);
                let (visible, snapshots) = context.readers();
                let readers = Readers { visible, snapshots: &snapshots };
                state.active.memtable.delete_range(&range, SeqNo(seq), keep, &readers);
                continue;
            };
            let entry = EntryRef { key: op.key, seq: SeqNo(seq), kind, value: op.value };
            state.active.memtable.insert(entry, keep);
        }
        last = batch.last().0;
        // Seals between batches only: no batch straddles two memtables.
        for ops in batch.ops.chunk_by(|left, right| left.keyspace == right.keyspace) {
            seal_while_opening(context, &keyspaces[&ops[0].keyspace]);
        }
    }
    Ok(Some(last))
}

/// What comes behind a log that was read to its end.
enum NextLog {
    None,
    /// The next log has begun, or the log has got more records. The view holds the one to read.
    Begun,
    /// Something that does not fit.
    Other,
}

/// Looks for the log behind the newest one of `view`, which was read up to write `last`.
fn next_log(context: &Context, view: &mut ReadView, last: u64) -> Result<NextLog> {
    let Options { env, dir, .. } = &context.options;
    let Some((newest, _)) = view.newest_log else { return Ok(NextLog::Other) };
    let listed = env.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut behind: Vec<u64> = listed
        .iter()
        .filter_map(|name| names::parse(name))
        .filter(|(kind, file_id)| *kind == FileKind::Wal && *file_id > newest)
        .map(|(_, file_id)| file_id)
        .collect();
    behind.sort_unstable();
    for file_id in behind {
        if !LogReader::is_begun(&**env, &names::numbered(dir, FileKind::Wal, file_id))? {
            continue;
        }
        let (_, mut reader) = open_log(&**env, dir, file_id)?;
        let Some((_, payload)) = reader.next_record()? else { continue };
        let start = LogStart::decode(payload).ok().flatten();
        let Some(start) = start.filter(|start| start.before == newest) else {
            return Ok(NextLog::Other);
        };
        // Otherwise the log before it got its last records after it was read.
        if start.first.0 == last + 1 {
            view.newest_log = Some((file_id, reader));
        }
        return Ok(NextLog::Begun);
    }
    Ok(NextLog::None)
}
