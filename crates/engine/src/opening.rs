//! Opens a store: turns its files into the parts of an open store.
//!
//! Recovery, from start to end ([`open`]):
//!
//! 1. The lock of the directory is taken (`take_lock`).
//! 2. `CURRENT` names the manifest, which names keyspaces, trees and tables (`manifest::read`).
//!    The keyspaces are opened with empty memtables (`Opening::new`).
//! 3. Spills that the manifest names are read back into memtables
//!    (`Opening::read_spills`).
//! 4. The write-ahead logs are read in their order (`Opening::replay`). Writes that are in tables
//!    or in a copy are skipped; the others go back into memtables. Missing writes are damage if
//!    anything proves that they were synced, and the effect of power loss otherwise.
//! 5. Unless the store is opened for reading only, logs that are still needed are rewritten, parts
//!    that were left out are set aside, a new manifest and a new log are begun, and files that
//!    nothing names are removed (`Opening::begin_writing`).
//!
//! A store that is opened for reading only may have a writer meanwhile ([`beside`]).

mod begin;
mod beside;
mod follow;
mod kept;
mod lock;
mod renew;
mod replay;
mod row;
mod unread;

pub(crate) use beside::refresh;
pub(crate) use lock::{no_store, take_lock, take_lock_to_read};
pub(crate) use row::row_of;

use crate::context::Context;
use crate::engine::Engine;
use crate::keyspace::{KeyspaceBase, KeyspaceShared, open_keyspace};
use crate::keyspaces::Keyspaces;
use crate::manifest::{self, Account, KeyspaceFacts, Manifest};
use crate::memory::{Spilled, read_spill};
use crate::options::Options;
use crate::space::SpaceLimit;
use crate::wal::{Log, Wal};
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::directory;
use lsmith_storage::env::CipherEnv;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::log::LogReader;
use lsmith_storage::names::{self, CURRENT, CURRENT_NEW, FileKind, LOCK};
use lsmith_storage::sync::atomic::Ordering::SeqCst;
use std::collections::BTreeMap;
use std::sync::Arc;
use unread::{LogLimit, UnreadLogs, keep_newest};

/// Opens or creates the store that `options` describe.
///
/// # Errors
/// As [`Builder::open`](crate::Builder::open).
pub(crate) fn open(mut options: Options) -> Result<Engine> {
    options.dir = directory::absolute(&*options.env, &options.dir)?;
    let env = &options.env;
    let dir = &options.dir;
    let read_only = options.read_only;
    let _span = tracing::info_span!("open", dir = %dir.display(), read_only).entered();
    let list = || env.list(dir);
    let has_store = |found: &Vec<String>| found.iter().any(|name| name == CURRENT);
    let mut listed = list();
    if !options.read_only && options.create_if_missing && !listed.as_ref().is_ok_and(has_store) {
        directory::make(&**env, dir)?;
        listed = list();
    }
    let found = listed.map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => no_store(dir),
        _ => Error::io("list", dir, error),
    })?;
    if !has_store(&found) {
        if options.read_only || !options.create_if_missing {
            return Err(no_store(dir));
        }
        // An interrupted creation leaves a first manifest, a lock, or a new `CURRENT`. Any other
        // file belongs to others, or to a store whose `CURRENT` was lost.
        let ours = |name: &&String| match names::parse(name) {
            Some((kind, file_id)) => kind == FileKind::Manifest && names::is_near(file_id, 0),
            None => [LOCK, CURRENT_NEW].contains(&name.as_str()),
        };
        if let Some(stranger) = found.iter().find(|name| !ours(name)) {
            let message =
                format!("the directory is not a store and holds other files, such as {stranger}");
            return Err(Error::new(ErrorKind::InvalidArgument, message).at(dir));
        }
    }
    if options.read_only {
        return beside::open(options);
    }
    let held = take_lock(&**env, dir)?;
    let space = options.space_bytes.map(|bytes| SpaceLimit::of(&**env, dir, bytes)).transpose()?;
    let context = Arc::new(Context::new(options, held, space));
    let Options { env, dir, .. } = &context.options;
    renew::remove_left(&**env, dir, &found);
    if let Some(encryption) = env.encryption().filter(|_| context.options.renew_keys) {
        // Fails first if the store has another key.
        manifest::read(&**env, dir)?;
        renew::renew(&CipherEnv::of(encryption.clone()), dir)?;
    }
    let account = match manifest::read(&**env, dir)? {
        Some((_, account)) => account,
        None => Account { next_file: 1, ..Account::default() },
    };
    let mut opening = Opening::new(&context, account, |_| KeyspaceBase::default())?;
    opening.read()?;
    opening.finish()
}

/// A store that is being opened.
struct Opening {
    context: Arc<Context>,
    account: Account,
    keyspaces: BTreeMap<u32, Arc<KeyspaceShared>>,
    /// The sequence number of the last known write.
    last_seq: u64,
    /// The logs from the oldest on that a memtable needs.
    logs: Vec<Log>,
    /// Older logs that are kept for change feeds.
    kept: Vec<Log>,
    /// The file ids of logs that hold no batch.
    empty: Vec<u64>,
    left_out: UnreadLogs,
    /// All numbered files of the directory.
    files: Vec<(FileKind, u64)>,
    /// How far a reader that may have a writer beside it reads the logs.
    beside: Option<LogLimit>,
    /// The newest log that such a reader has read, with its file id.
    newest_log: Option<(u64, LogReader)>,
}

impl Opening {
    /// Opens the keyspaces and tables that `account` names, the content of the manifest. `base_of`
    /// returns what an opening of a keyspace begins with.
    fn new(
        context: &Arc<Context>,
        account: Account,
        base_of: impl Fn(u32) -> KeyspaceBase,
    ) -> Result<Opening> {
        let options = &context.options;
        let conflict = account.clock.as_ref().and_then(|known| options.clock.conflict(known));
        if let Some(message) = conflict {
            return Err(Error::new(ErrorKind::Unsupported, message).at(&options.dir));
        }
        let listed = options.env.list(&options.dir);
        let names = listed.map_err(|error| Error::io("list", &options.dir, error))?;
        let files = names::numbered_among(&options.dir, &names, account.next_file);
        let highest = files.iter().map(|(_, file_id)| *file_id + 1).max().unwrap_or(1);
        context.next_file.fetch_max(account.next_file.max(highest), SeqCst);
        let open = |(id, known): (&u32, &KeyspaceFacts)| {
            Ok((*id, open_keyspace(context, *id, known, base_of(*id))?))
        };
        let keyspaces = account.keyspaces.iter().map(open).collect::<Result<_>>()?;
        let durable = account.keyspaces.values().map(|known| known.durable_seq().0).max();
        Ok(Opening {
            context: Arc::clone(context),
            account,
            keyspaces,
            last_seq: durable.unwrap_or(0),
            logs: Vec::new(),
            kept: Vec::new(),
            empty: Vec::new(),
            left_out: UnreadLogs::default(),
            files,
            beside: None,
            newest_log: None,
        })
    }

    /// Reads the spills and the logs.
    fn read(&mut self) -> Result<()> {
        self.read_spills()?;
        self.replay()
    }

    /// Prepares the store for writing unless it is opened for reading only, and puts its parts
    /// together.
    fn finish(self) -> Result<Engine> {
        let context = &self.context;
        context.visible.store(self.last_seq, SeqCst);
        let options = &context.options;
        let manifest = Arc::new(Manifest::new(context));
        let opened = self.keyspaces.values().map(Arc::clone);
        let keyspaces = Arc::new(Keyspaces::new(context, opened));
        let wal = Arc::new(Wal::new(context, &manifest, &keyspaces));
        let left_out = self.left_out.to_public(&*options.env, &options.dir);
        if options.read_only {
            self.look_for_holes();
        } else {
            self.begin_writing(&manifest, &wal)?;
        }
        // Only now: what is there was allowed once, and must open.
        self.context.space.as_ref().inspect(|space| space.0.begin());
        keyspaces.balance_memory();
        let identity = manifest.identity().unwrap_or(self.account.identity);
        Ok(Engine::new(self.context, manifest, keyspaces, wal, identity, left_out))
    }

    /// Finds the dead blocks of tables that an earlier owner of the store has punched out.
    fn look_for_holes(&self) {
        for keyspace in self.keyspaces.values() {
            for (table, ranges) in keyspace.version.load().shown(|_| true).values() {
                table.show_only(ranges);
                table.look_for_holes();
            }
        }
    }

    /// Reads the spills back into memtables.
    fn read_spills(&self) -> Result<()> {
        let Options { env, dir, .. } = &self.context.options;
        for (id, known) in &self.account.keyspaces {
            let Some(spill) = known.spill else { continue };
            let mut entries = read_spill(&**env, dir, *id, spill)?;
            entries.retain(|entry| !known.has_left_memory(&entry.key, entry.seq));
            // Memtables take entries in the order of writing.
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
    fn file_ids_of(&self, kind: FileKind) -> Vec<u64> {
        let of_kind = self.files.iter().filter(|(found, _)| *found == kind);
        of_kind.map(|(_, file_id)| *file_id).collect()
    }

    /// Returns true if a memtable needs log `file_id`.
    fn needs_log(&self, file_id: u64) -> bool {
        self.logs.iter().any(|log| log.file_id == file_id)
    }
}
