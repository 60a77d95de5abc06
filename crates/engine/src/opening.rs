//! Opening a store: from what is on the device to what was promised.
//!
//! 1. `CURRENT` names the manifest, the manifest says which keyspaces, trees and tables there are.
//! 2. Copies of memory, where the manifest names them, go back into memtables. Then the write-ahead
//!    logs are read in their order ([`replay`]). Writes that are in tables or in a copy already are
//!    passed over; the others go back into memtables.
//! 3. Unless the store is opened for reading only, the logs that are still needed are written anew,
//!    what was left out is set aside, a new log and a new manifest are begun ([`begin`]), and files
//!    that nothing names any more are removed.

mod begin;
mod replay;
mod row;

use crate::context::Context;
use crate::engine::Engine;
use crate::keyspace::{KeyspaceShared, open_keyspace};
use crate::keyspaces::Keyspaces;
use crate::manifest::{self, Account, KeyspaceFacts, Manifest};
use crate::memory::{Spilled, read_spill};
use crate::options::Options;
use crate::wal::{Log, Wal};
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::directory;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, CURRENT, CURRENT_NEW, FileKind, LOCK};
use lsmith_storage::sync::atomic::Ordering::SeqCst;
use replay::{Unread, keep_newest};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// Opens or creates the store that `options` describe.
///
/// # Errors
/// As [`Builder::open`](crate::Builder::open).
pub(crate) fn open(options: Options) -> Result<Engine> {
    let (env, dir) = (&options.env, &options.dir);
    let list = || env.list(dir);
    let has_store = |found: &Vec<String>| found.iter().any(|name| name == CURRENT);
    let mut found = list();
    if !options.read_only && options.create_if_missing && !found.as_ref().is_ok_and(has_store) {
        directory::make(&**env, dir)?;
        found = list();
    }
    let found = found.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => no_store(dir),
        _ => Error::io("list", dir, error),
    })?;
    if !has_store(&found) {
        if options.read_only || !options.create_if_missing {
            return Err(no_store(dir));
        }
        // What a creation leaves that was cut short may be there. Anything else is not ours, or is
        // what is left of a store whose `CURRENT` was lost.
        let ours = |name: &&String| match names::parse(name) {
            Some((kind, number)) => kind == FileKind::Manifest && names::is_near(number, 0),
            None => [LOCK, CURRENT_NEW].contains(&name.as_str()),
        };
        if let Some(stranger) = found.iter().find(|name| !ours(name)) {
            let message =
                format!("the directory is no store and holds other files, such as {stranger}");
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(dir));
        }
    }
    let lock = take_lock(&**env, dir)?;
    let account = match manifest::read(&**env, dir)? {
        Some((_, account)) => account,
        None => Account { next_file: 1, ..Account::default() },
    };
    Opening::new(options, account, lock)?.finish()
}

fn no_store(dir: &Path) -> Error {
    Error::new(ErrorKind::NotFound, "there is no store").at(dir)
}

/// Takes the lock of the store in `dir`.
///
/// # Errors
/// `Locked` where somebody has it open; `Io`.
pub(crate) fn take_lock(env: &dyn Env, dir: &Path) -> Result<Box<dyn Debug + Send + Sync>> {
    env.lock(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let message = "the store is open already, in this process or another";
            Error::new(ErrorKind::Locked, message).at(dir)
        }
        _ => Error::io("lock", &dir.join(LOCK), error),
    })
}

/// A store on its way to being open.
struct Opening {
    context: Arc<Context>,
    account: Account,
    keyspaces: BTreeMap<u32, Arc<KeyspaceShared>>,
    /// The number of the last write known.
    last_seq: u64,
    /// Logs from the oldest on that a memtable needs.
    logs: Vec<Log>,
    /// Those of them that no batch is in.
    empty: Vec<u64>,
    left_out: Unread,
    /// All numbered files found.
    files: Vec<(FileKind, u64)>,
}

impl Opening {
    /// Opens the keyspaces and tables that `account`, the manifest, names.
    fn new(
        options: Options,
        account: Account,
        lock: Box<dyn Debug + Send + Sync>,
    ) -> Result<Opening> {
        let names = options.env.list(&options.dir);
        let names = names.map_err(|error| Error::io("list", &options.dir, error))?;
        let files = names::numbered_among(&options.dir, &names, account.next_file);
        let highest = files.iter().map(|(_, number)| *number + 1).max().unwrap_or(1);
        let context = Context::new(options, lock, account.next_file.max(highest));
        let open =
            |(id, known): (&u32, &KeyspaceFacts)| Ok((*id, open_keyspace(&context, *id, known)?));
        let keyspaces = account.keyspaces.iter().map(open).collect::<Result<_>>()?;
        let durable = account.keyspaces.values().map(|known| known.durable_seq().0).max();
        Ok(Opening {
            context: Arc::new(context),
            account,
            keyspaces,
            last_seq: durable.unwrap_or(0),
            logs: Vec::new(),
            empty: Vec::new(),
            left_out: Unread::default(),
            files,
        })
    }

    /// Reads back what only copies of memory and logs hold, and begins to write.
    fn finish(mut self) -> Result<Engine> {
        self.read_spills()?;
        self.replay()?;
        let context = &self.context;
        context.visible.store(self.last_seq, SeqCst);
        let options = &context.options;
        let manifest = Arc::new(Manifest::new(context));
        let keyspaces = self.keyspaces.values().map(Arc::clone);
        let keyspaces = Arc::new(Keyspaces::new(context, keyspaces));
        let wal = Arc::new(Wal::new(context, &manifest, &keyspaces));
        let left_out = self.left_out.to_public(&*options.env, &options.dir);
        if options.read_only {
            self.look_for_holes();
        } else {
            self.begin_writing(&manifest, &wal)?;
        }
        keyspaces.balance_memory();
        Ok(Engine::new(self.context, manifest, keyspaces, wal, left_out))
    }

    /// Looks which parts of the tables another process has given back.
    fn look_for_holes(&self) {
        for keyspace in self.keyspaces.values() {
            for (table, ranges) in keyspace.version.load().shown(|_| true).values() {
                table.show_only(ranges);
                table.look_for_holes();
            }
        }
    }

    /// Reads copies of memory back into memtables.
    fn read_spills(&self) -> Result<()> {
        let Options { env, dir, .. } = &self.context.options;
        for (id, known) in &self.account.keyspaces {
            let Some(spill) = known.spill else { continue };
            let mut entries = read_spill(&**env, dir, *id, spill)?;
            entries.retain(|entry| !known.has_left_memory(&entry.key, entry.seq));
            // In the order of writing.
            entries.sort_unstable_by_key(|entry| entry.seq);
            let state = self.keyspaces[id].state.lock();
            for Spilled { seq, kind, key, value } in entries {
                let entry = EntryRef { key: &key, seq, kind, value: &value };
                state.active.memtable.insert(entry, keep_newest(seq));
            }
        }
        Ok(())
    }

    /// Returns the numbers of all files of `kind`.
    fn numbers_of(&self, kind: FileKind) -> Vec<u64> {
        let of_kind = self.files.iter().filter(|(found, _)| *found == kind);
        of_kind.map(|(_, number)| *number).collect()
    }

    /// Returns true if log `number` is among those that a memtable needs.
    fn needs_log(&self, number: u64) -> bool {
        self.logs.iter().any(|log| log.number == number)
    }
}
