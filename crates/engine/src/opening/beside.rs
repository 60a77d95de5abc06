//! Opens a store for reading only, beside the process that writes it, if there is one.
//!
//! A reader opens the store as it would after the death of the writer: it reads the manifest up to
//! its last whole record, and the logs up to their last whole batch. The writer goes on meanwhile.
//!
//! * A [lease](crate::leases) comes first. From then on no file goes that the manifest names.
//! * Logs may be longer than the manifest knows. That is as if the writer had died later, except
//!   for writes that are not in the logs alone; see [`LogLimit`].
//! * Where no lease can be made, on a medium that is read-only or full or in a directory of others,
//!   the store is read without one. Then tables are not mapped. So what a writer frees meanwhile is
//!   an error: every block is checked whenever it is read from its file.
//! * If the opening fails, and the manifest has changed since it began or a file has gone, it is
//!   tried again.

use super::Opening;
use super::follow::{follow, position};
use super::lock::{is_unwritable, no_store, take_lock};
use super::unread::LogLimit;
use crate::context::Context;
use crate::engine::{Engine, ReadView};
use crate::keyspace::{KeyspaceBase, KeyspaceShared};
use crate::leases::{Lease, Position};
use crate::manifest;
use crate::options::Options;
use crate::version::Version;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::names::READERS;
use lsmith_tree::SeqNo;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;

/// The number of times that an opening is tried while the writer changes the manifest. From the
/// second on, a lease keeps every file that the manifest names, so more than two are rare.
const TRIES: usize = 16;

/// Opens the store that `options` describe, for reading only.
///
/// # Errors
/// As [`Builder::open`](crate::Builder::open).
pub(super) fn open(mut options: Options) -> Result<Engine> {
    let Options { env, dir, .. } = &options;
    let held = env.hold(dir).map_err(|error| Error::io("open the directory", dir, error))?;
    let at = position(&options)?;
    // Held until the first view has a lease.
    let first = match take_lease(&options, at, None) {
        Err(error) if is_unwritable(&error) => {
            tracing::warn!(%error, "the store is read without a lease, which a writer would heed");
            options.unleased = true;
            None
        }
        taken => taken?,
    };
    let held = match &first {
        // If the environment has no leases, no writer may be there at all.
        None if !options.unleased => take_lock(&*options.env, &options.dir)?,
        _ => held,
    };
    let context = Arc::new(Context::new(options, held, None));
    let (opening, view) = read(&context, |_| KeyspaceBase::default())?;
    let engine = opening.finish()?;
    *engine.view.lock() = Some(view);
    Ok(engine)
}

/// Makes the readers of `engine`, a store that was opened for reading only, see what has been
/// written meanwhile.
///
/// # Errors
/// As [`Store::refresh`](crate::Store::refresh).
pub(crate) fn refresh(engine: &Engine) -> Result<()> {
    let mut view = engine.view.lock();
    let context = &engine.context;
    if let Some(view) = &mut *view
        && view.position == position(&context.options)?
    {
        // After an error all is read anew below. If the error is still there, that reports it.
        if follow(engine, view).unwrap_or(false) {
            return Ok(());
        }
        // The log was read beyond what is visible. If this refresh fails too, the next one must not
        // go on from there.
        view.newest_log = None;
    }
    let open = engine.keyspaces.all();
    let base_of = |id: u32| {
        let open = open.iter().find(|keyspace| keyspace.id == id);
        let tables = open.map(|keyspace| keyspace.state.lock().tables.clone());
        KeyspaceBase { tables: tables.unwrap_or_default(), ..KeyspaceBase::default() }
    };
    let (opening, new) = read(context, base_of)?;
    show(engine, &opening);
    *view = Some(new);
    Ok(())
}

/// Shows `opening` to the readers of `engine`.
fn show(engine: &Engine, opening: &Opening) {
    let context = &engine.context;
    let seq = SeqNo(opening.last_seq);
    opening.look_for_holes();
    let mut by_name = engine.keyspaces.write();
    let open: BTreeMap<u32, Arc<KeyspaceShared>> =
        by_name.values().map(|open| (open.id, Arc::clone(open))).collect();
    let version_of = |id: &u32| match open.get(id) {
        Some(open) => open.version.load_full(),
        None => Arc::new(Version::empty()),
    };
    let before: Vec<_> = opening.keyspaces.keys().map(|id| (*id, version_of(id))).collect();
    let publish = || {
        by_name.clear();
        for (id, fresh) in &opening.keyspaces {
            let shown = open.get(id).unwrap_or(fresh);
            if !Arc::ptr_eq(shown, fresh) {
                shown.take_over(fresh);
            }
            by_name.insert(shown.name.to_string(), Arc::clone(shown));
        }
        let gone = open.iter().filter(|(id, _)| !opening.keyspaces.contains_key(id));
        gone.for_each(|(_, gone)| gone.end());
    };
    context.snapshots.show_view(seq, &context.visible, before, publish);
    drop(by_name);
    engine.keyspaces.balance_memory();
}

/// Opens what the manifest and the logs say now. `base_of` returns what an opening of a keyspace
/// begins with.
fn read(
    context: &Arc<Context>,
    base_of: impl Fn(u32) -> KeyspaceBase,
) -> Result<(Opening, ReadView)> {
    let mut at = position(&context.options)?;
    let mut limit = LogLimit::default();
    let mut is_last = false;
    for _ in 1..TRIES {
        match try_read(context, at, limit, &base_of) {
            Ok((opening, view)) => {
                let found = opening.beside.unwrap_or_default();
                // What was not settled may be by now. After that, what is not settled is younger
                // than this call.
                if found.stop.is_none() || is_last {
                    return Ok((opening, view));
                }
                limit.settled = found.newest;
                is_last = true;
                at = position(&context.options)?;
            }
            Err(error) => {
                let now = position(&context.options)?;
                // Files that hold nothing go without a word in the manifest, and no lease keeps
                // them. One may go between the listing of the directory and its opening.
                let has_gone =
                    error.io_error().is_some_and(|error| error.kind() == ErrorKind::NotFound);
                if now == at && !has_gone {
                    return Err(error);
                }
                at = now;
            }
        }
    }
    try_read(context, at, limit, &base_of)
}

/// Opens what the manifest, which has come to `at` or beyond, and the logs say now.
fn try_read(
    context: &Arc<Context>,
    at: Position,
    limit: LogLimit,
    base_of: &impl Fn(u32) -> KeyspaceBase,
) -> Result<(Opening, ReadView)> {
    let options = &context.options;
    // Held until all is read: also logs that the manifest does not name yet.
    let open = match take_lease(options, at, None) {
        Err(error) if options.unleased && is_unwritable(&error) => None,
        taken => taken?.map(Arc::new),
    };
    let read = manifest::read(&*options.env, &options.dir)?;
    let (position, account) = read.ok_or_else(|| no_store(&options.dir))?;
    let settle = || take_lease(options, position, Some(account.next_file));
    let settled = open.as_ref().and_then(|_| settle().ok().flatten());
    // If there is no room for another lease, the first one will do: it keeps more.
    let lease = settled.map(Arc::new).or_else(|| open.clone());
    let base_of = |id: u32| KeyspaceBase { lease: lease.clone(), ..base_of(id) };
    let mut opening = Opening::new(context, account, base_of)?;
    opening.beside = Some(limit);
    opening.read()?;
    let is_whole = opening.beside.is_none_or(|limit| limit.stop.is_none());
    let newest_log = opening.newest_log.take().filter(|_| is_whole);
    Ok((opening, ReadView { position, newest_log }))
}

/// Takes a lease at position `at`, which is settled with `below`. Returns `None` if the environment
/// has none.
fn take_lease(options: &Options, at: Position, below: Option<u64>) -> Result<Option<Lease>> {
    let Options { env, dir, .. } = options;
    match Lease::take(env, dir, at, below) {
        Ok(lease) => Ok(Some(lease)),
        Err(error) if error.kind() == ErrorKind::Unsupported => Ok(None),
        Err(error) => Err(Error::io("take the lease of a reader", &dir.join(READERS), error)),
    }
}
