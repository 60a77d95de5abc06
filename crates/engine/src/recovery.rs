//! Opening a store: from what is on the device to what was promised.
//!
//! 1. `CURRENT` names the manifest, the manifest says which keyspaces, trees and tables there are.
//! 2. The write-ahead logs are read in their order. Batches that are in tables already are passed
//!    over; the others go back into memtables. Sequence numbers have no gaps: where one is
//!    missing, power was lost before that part of the log got to the device, and what follows
//!    must not be seen, so that the store opens on a prefix of the batches.
//! 3. Unless the store is opened for reading only, a new manifest and a new log are begun, and
//!    files that nothing names any more are removed.

use crate::db::{KeyspaceOptions, Options, Snapshots, bad_policy, decode_batch};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::manifest::{self, Account, Manifest, SpaceState};
use crate::memtable::{KeepFrom, Memtable, Version as Entry};
use crate::names::{self, CURRENT, CURRENT_NEW, FileKind, LOCK, numbered};
use crate::shared::{Shared, Work, Writer};
use crate::stats::Counts;
use crate::table::BlockCache;
use crate::version::{Core, Space, TableHandle};
use crate::wal::{LogEnd, LogId, LogKind, LogReader};
use arc_swap::ArcSwap;
use bytes::Bytes;
use lsmith_tree::{SeqNo, TableId, TreeView};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

/// Opens or creates the store that `options` describe.
pub(crate) fn open(options: Options) -> Result<Arc<Shared>> {
    let (env, dir) = (&options.env, &options.dir);
    if !options.read_only && options.create_if_missing {
        create_dir(&**env, dir)?;
    }
    let found = env.list(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => no_store(dir),
        _ => Error::io("list", dir, error),
    })?;
    let is_store = found.iter().any(|name| name == CURRENT);
    if !is_store {
        if options.read_only || !options.create_if_missing {
            return Err(no_store(dir));
        }
        // What a creation leaves that was cut short may be there; anything else is not ours.
        let ours = |name: &&String| {
            names::parse(name).is_some() || [LOCK, CURRENT_NEW].contains(&name.as_str())
        };
        if let Some(stranger) = found.iter().find(|name| !ours(name)) {
            let told =
                format!("the directory is no store and holds other files, such as {stranger}");
            return Err(Error::new(ErrorKind::InvalidArgument, told).at(dir));
        }
    }
    let lock = take_lock(&**env, dir)?;
    let account = match manifest::read(&**env, dir)? {
        Some((_, account)) => account,
        None => Account { next_file: 1, ..Account::default() },
    };
    Recovery::new(options, account)?.finish(lock)
}

fn no_store(dir: &Path) -> Error {
    Error::new(ErrorKind::NotFound, "there is no store").at(dir)
}

fn create_dir(env: &dyn Env, dir: &Path) -> Result<()> {
    env.create_dir_all(dir).map_err(|error| Error::io("create the directory", dir, error))?;
    match dir.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) => {
            env.sync_dir(parent).map_err(|error| Error::io("sync the directory", parent, error))
        }
        None => Ok(()),
    }
}

fn take_lock(env: &dyn Env, dir: &Path) -> Result<Box<dyn Debug + Send + Sync>> {
    env.lock(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let told = "the store is open already, in this process or another";
            Error::new(ErrorKind::Locked, told).at(dir)
        }
        _ => Error::io("lock", dir, error),
    })
}

/// A store on its way to being open.
struct Recovery {
    options: Options,
    account: Account,
    cache: Arc<BlockCache>,
    spaces: BTreeMap<u32, Arc<Space>>,
    /// The number of the last batch entry known.
    last_seq: u64,
    /// Logs that memtables need.
    logs: Vec<u64>,
    /// All numbered files found.
    files: Vec<(FileKind, u64)>,
}

impl Recovery {
    fn new(options: Options, account: Account) -> Result<Recovery> {
        let cache = Arc::new(BlockCache::new(options.cache_bytes));
        let mut spaces = BTreeMap::new();
        let mut last_seq = 0;
        for (&id, state) in &account.spaces {
            last_seq = last_seq.max(state.flushed_seq.0);
            spaces.insert(id, open_space(&options, &cache, id, state)?);
        }
        let names = options.env.list(&options.dir);
        let names = names.map_err(|error| Error::io("list", &options.dir, error))?;
        let files = names.iter().filter_map(|name| names::parse(name)).collect();
        Ok(Recovery { options, account, cache, spaces, last_seq, logs: Vec::new(), files })
    }

    fn finish(mut self, lock: Box<dyn Debug + Send + Sync>) -> Result<Arc<Shared>> {
        self.replay()?;
        let highest = self.files.iter().map(|(_, number)| *number + 1).max().unwrap_or(1);
        let files = Arc::new(AtomicU64::new(self.account.next_file.max(highest)));
        let counts = Arc::new(Counts::default());
        let read_only = self.options.read_only;
        let manifest = match read_only {
            true => None,
            false => {
                let Options { env, dir, .. } = &self.options;
                Some(Manifest::create(env, dir, &counts, &files, self.account.clone())?)
            }
        };
        let spaces = self.spaces.values().map(|space| (space.name.clone(), Arc::clone(space)));
        let shared = Arc::new(Shared {
            cache: Arc::clone(&self.cache),
            counts,
            files,
            visible: AtomicU64::new(self.last_seq),
            snapshots: Arc::new(Snapshots::new()),
            spaces: RwLock::new(spaces.collect()),
            writer: Mutex::new(None),
            manifest: Mutex::new(manifest),
            poisoned: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            work: Work::default(),
            _lock: lock,
            options: self.options.clone(),
        });
        if !read_only {
            self.begin_writing(&shared)?;
        }
        Ok(shared)
    }

    /// Begins a new log, and removes what is not needed any more.
    fn begin_writing(&self, shared: &Shared) -> Result<()> {
        let (wal_number, wal) = shared.create_log(0)?;
        let mut logs = self.logs.clone();
        logs.push(wal_number);
        let writer = Writer {
            wal: Arc::new(wal),
            wal_number,
            unsynced: Vec::new(),
            logs,
            next_seq: self.last_seq + 1,
            buffer: Vec::new(),
        };
        self.remove_strangers(&writer.logs);
        *shared.writer.lock() = Some(writer);
        for space in shared.all_spaces() {
            let mut core = space.core.lock();
            if core.active.live_bytes() >= core.policy.seal_bytes(space.memtable_bytes) {
                shared.seal(&space, &mut core);
            }
        }
        Ok(())
    }

    /// Removes numbered files that nothing names.
    fn remove_strangers(&self, logs: &[u64]) {
        let Options { env, dir, .. } = &self.options;
        let named = |kind, number| match kind {
            FileKind::Wal => logs.contains(&number),
            FileKind::Manifest => false,
            FileKind::Table => self
                .spaces
                .values()
                .any(|space| space.core.lock().tables.contains_key(&TableId(number))),
        };
        for &(kind, number) in &self.files {
            if named(kind, number) {
                continue;
            }
            let path = numbered(dir, kind, number);
            if let Err(error) = env.remove_file(&path) {
                tracing::warn!(path = %path.display(), %error, "cannot remove an old file");
            }
        }
    }

    /// Reads the logs back into memtables.
    fn replay(&mut self) -> Result<()> {
        let durable = self.last_seq;
        let mut last: Option<u64> = None;
        let mut numbers: Vec<u64> =
            self.files.iter().filter(|(kind, _)| *kind == FileKind::Wal).map(|(_, n)| *n).collect();
        numbers.sort_unstable();
        for number in numbers {
            let path = numbered(&self.options.dir, FileKind::Wal, number);
            let id = LogId { kind: LogKind::Wal, number };
            let mut reader = LogReader::open(&*self.options.env, &path, id)?;
            while let Some((offset, payload)) = reader.next_record()? {
                let damaged = |told: String| Error::corruption(&path, offset, told);
                let (first, ops) =
                    decode_batch(payload).map_err(|damage| damaged(damage.what.to_string()))?;
                let expected = last.unwrap_or(first.0.min(durable + 1) - 1) + 1;
                if first.0 != expected {
                    if first.0 <= durable + 1 {
                        let told = format!("expected write number {expected}, found {first}");
                        return Err(damaged(told));
                    }
                    // Power was lost before the writes in between got to the device.
                    tracing::warn!(
                        path = %path.display(), offset, expected, found = first.0,
                        "the log has a gap: what follows had not been synced and is left out"
                    );
                    self.last_seq = self.last_seq.max(last.unwrap_or(0));
                    return Ok(());
                }
                last = Some(first.0 + ops.len() as u64 - 1);
                self.insert(number, first, &ops).map_err(damaged)?;
            }
            if let Some(LogEnd::Torn { offset, bytes_dropped }) = reader.end() {
                tracing::warn!(
                    path = %path.display(), offset, bytes_dropped,
                    "the end of the log was not complete and is left out: it had not been synced"
                );
            }
        }
        self.last_seq = self.last_seq.max(last.unwrap_or(0));
        Ok(())
    }

    /// Puts the writes of one batch into the memtables of keyspaces that have not flushed them.
    fn insert(
        &mut self,
        log: u64,
        first: SeqNo,
        ops: &[crate::db::LoggedOp<'_>],
    ) -> std::result::Result<(), String> {
        for (index, op) in ops.iter().enumerate() {
            let seq = SeqNo(first.0 + index as u64);
            let space = self.spaces.get(&op.space);
            let space = space.ok_or_else(|| format!("there is no keyspace {}", op.space))?;
            if seq <= self.account.spaces[&op.space].flushed_seq {
                continue;
            }
            let mut core = space.core.lock();
            core.active_log.get_or_insert(log);
            if !self.logs.contains(&log) {
                self.logs.push(log);
            }
            let value = Bytes::copy_from_slice(op.value);
            let entry = Entry { seq, kind: op.kind, value };
            // Nobody reads yet: only the newest version is needed.
            let keep = KeepFrom(SeqNo(seq.0 - 1));
            core.active.insert(op.key, entry, keep);
        }
        Ok(())
    }
}

/// Opens a keyspace as the manifest describes it, with an empty memtable.
fn open_space(
    options: &Options,
    cache: &Arc<BlockCache>,
    id: u32,
    state: &SpaceState,
) -> Result<Arc<Space>> {
    let policy = options.registry.build(&state.policy).map_err(|error| {
        let told =
            format!("the keyspace {} has a policy that cannot be built: {error}", state.name);
        Error::new(ErrorKind::Unsupported, told).at(&options.dir)
    })?;
    let mut tables = FxHashMap::default();
    for slice in state.tree.disk_runs().flat_map(|run| run.slices()) {
        let table = slice.table();
        if !tables.contains_key(&table.id) {
            let handle = TableHandle::open(&options.env, &options.dir, table.id, cache)?;
            if handle.table().facts().size != table.size {
                let path = numbered(&options.dir, FileKind::Table, table.id.0);
                let told = "the table does not hold what the manifest says";
                return Err(Error::corruption(&path, 0, told));
            }
            tables.insert(table.id, handle);
        }
    }
    let core = Core {
        policy,
        view: TreeView::new(state.tree.clone(), state.memtable_bytes),
        active: Arc::new(Memtable::new()),
        active_log: None,
        sealed: Vec::new(),
        tables,
        failures: Vec::new(),
        pressure: 0.0,
        owed_nanos: 0.0,
        merge_all: false,
    };
    let version = core.version(None);
    Ok(Arc::new(Space {
        id,
        name: state.name.clone(),
        memtable_bytes: state.memtable_bytes,
        version: ArcSwap::from_pointee(version),
        core: Mutex::new(core),
    }))
}

impl Shared {
    /// Makes a keyspace, or finds the one of that name.
    pub(crate) fn keyspace(&self, name: &str, options: &KeyspaceOptions) -> Result<Arc<Space>> {
        if let Some(space) = self.spaces.read().get(name) {
            return Ok(Arc::clone(space));
        }
        self.check_writable()?;
        crate::db::check_name(name)?;
        let policy = options.policy.as_deref().unwrap_or(&self.options.policy);
        let policy = self.options.registry.build(policy).map_err(bad_policy)?;
        let memtable_bytes = options.memtable_bytes.unwrap_or(self.options.memtable_bytes);
        let mut spaces = self.spaces.write();
        if let Some(space) = spaces.get(name) {
            return Ok(Arc::clone(space));
        }
        let id = spaces.values().map(|space| space.id + 1).max().unwrap_or(0);
        let policy = policy.spec().to_string();
        let record = manifest::SpaceRecord { id, name: name.into(), policy, memtable_bytes };
        let state = self
            .write_record(manifest::Record::Space(record), |account| account.spaces[&id].clone())?;
        let space = open_space(&self.options, &self.cache, id, &state)?;
        spaces.insert(name.to_string(), Arc::clone(&space));
        Ok(space)
    }

    /// Gives `space` another policy from now on.
    pub(crate) fn set_policy(&self, space: &Space, spec: &str) -> Result<()> {
        self.check_writable()?;
        let policy = self.options.registry.build(spec).map_err(bad_policy)?;
        let record =
            manifest::Record::Policy { space: space.id, policy: policy.spec().to_string() };
        let mut core = space.core.lock();
        self.write_record(record, |_| ())?;
        core.policy = policy;
        self.note_pressure(&mut core);
        drop(core);
        self.work.notify();
        Ok(())
    }

    fn write_record<T>(&self, record: manifest::Record, then: impl Fn(&Account) -> T) -> Result<T> {
        let mut manifest = self.manifest.lock();
        let manifest = manifest.as_mut().ok_or_else(crate::shared::read_only)?;
        if let Err(error) = manifest.write(record) {
            self.poison();
            return Err(error);
        }
        Ok(then(manifest.account()))
    }
}
