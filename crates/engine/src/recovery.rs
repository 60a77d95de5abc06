//! Opening a store: from what is on the device to what was promised.
//!
//! 1. `CURRENT` names the manifest, the manifest says which keyspaces, trees and tables there are.
//! 2. Copies of memory, where the manifest names them, go back into memtables. Then the write-ahead
//!    logs are read in their order. Writes that are in tables or in a copy already are passed over;
//!    the others go back into memtables. Sequence numbers have no gaps: where one is missing, power
//!    was lost before that part of the log got to the device, and what follows must not be seen, so
//!    that the store opens on a prefix of the batches.
//! 3. Unless the store is opened for reading only, a new manifest and a new log are begun, and
//!    files that nothing names any more are removed.

use crate::cursor::EntryRef;
use crate::db::{Compression, KeyspaceOptions, Options, Snapshots, bad_policy, decode_batch};
use crate::env::Env;
use crate::error::{Error, ErrorKind, Result};
use crate::leftovers::Leftovers;
use crate::manifest::{self, Account, Manifest, SpaceState};
use crate::memory::{Spilled, read_spill};
use crate::memtable::KeepFrom;
use crate::names::{self, CURRENT, CURRENT_NEW, FileKind, LOCK, numbered};
use crate::pace::Pace;
use crate::shared::{Log, Shared, Work, Writer};
use crate::stats::{Counts, Recorders};
use crate::table::BlockCache;
use crate::version::{Active, Core, Policy, Reclaim, Space, TableHandle};
use crate::wal::{LogEnd, LogId, LogKind, LogReader};
use crate::write::Gate;
use arc_swap::ArcSwap;
use lsmith_tree::{SeqNo, TableId, Tree, TreeView};
use parking_lot::{Mutex, RwLock};
use rustc_hash::FxHashMap;
use std::cmp::Ordering;
use std::collections::{BTreeMap, VecDeque, hash_map};
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
        // What a creation leaves that was cut short may be there. Anything else is not ours, or is
        // what is left of a store whose `CURRENT` was lost.
        let ours = |name: &&String| match names::parse(name) {
            Some((kind, _)) => kind == FileKind::Manifest,
            None => [LOCK, CURRENT_NEW].contains(&name.as_str()),
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

/// How a batch in the log goes with those before it.
enum Next {
    /// Nothing that is needed lies between them.
    Follows,
    /// Power was lost before the batches in between got to the device.
    Missing,
    /// This cannot be.
    Wrong,
}

/// A store on its way to being open.
struct Recovery {
    options: Options,
    account: Account,
    cache: Arc<BlockCache>,
    leftovers: Arc<Leftovers>,
    spaces: BTreeMap<u32, Arc<Space>>,
    /// The number of the last batch entry known.
    last_seq: u64,
    /// Logs from the oldest on that a memtable needs.
    logs: Vec<Log>,
    /// All numbered files found.
    files: Vec<(FileKind, u64)>,
}

impl Recovery {
    fn new(options: Options, account: Account) -> Result<Recovery> {
        let cache = Arc::new(match &options.cache {
            Some(cache) => BlockCache::within(cache),
            None => BlockCache::new(options.memory_bytes.unwrap_or(options.cache_bytes)),
        });
        let leftovers = Arc::default();
        let mut spaces = BTreeMap::new();
        let mut last_seq = 0;
        for (&id, state) in &account.spaces {
            last_seq = last_seq.max(state.durable_seq().0);
            spaces.insert(id, open_space(&options, &cache, &leftovers, id, state)?);
        }
        let names = options.env.list(&options.dir);
        let names = names.map_err(|error| Error::io("list", &options.dir, error))?;
        let files = names.iter().filter_map(|name| names::parse(name)).collect();
        Ok(Recovery {
            options,
            account,
            cache,
            leftovers,
            spaces,
            last_seq,
            logs: Vec::new(),
            files,
        })
    }

    fn pace(&self) -> Option<Pace> {
        let Options { merge_bytes_per_s, lockstep, .. } = &self.options;
        merge_bytes_per_s.filter(|_| !lockstep).map(Pace::new)
    }

    fn finish(mut self, lock: Box<dyn Debug + Send + Sync>) -> Result<Arc<Shared>> {
        self.read_spills()?;
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
            recorders: self.options.histograms.then(Recorders::default),
            files,
            visible: AtomicU64::new(self.last_seq),
            snapshots: Arc::new(Snapshots::new()),
            spaces: RwLock::new(spaces.collect()),
            writer: Mutex::new(None),
            retiring: Mutex::default(),
            manifest: Mutex::new(manifest),
            poisoned: AtomicBool::new(false),
            log_due: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            work: Work::default(),
            leftovers: Arc::clone(&self.leftovers),
            splits: Mutex::default(),
            pace: self.pace(),
            _lock: lock,
            options: self.options.clone(),
        });
        if read_only {
            self.look_for_holes();
        } else {
            self.begin_writing(&shared)?;
        }
        shared.balance_memory();
        Ok(shared)
    }

    /// Looks what of the tables others have given back.
    fn look_for_holes(&self) {
        for space in self.spaces.values() {
            for (table, ranges) in space.version.load().shown(|_| true).values() {
                table.show_only(ranges);
                table.look_for_holes();
            }
        }
    }

    /// Begins a new log, and removes what is not needed any more.
    fn begin_writing(&self, shared: &Shared) -> Result<()> {
        let Options { env, dir, .. } = &self.options;
        for &Log { number, .. } in &self.logs {
            // The process that wrote it may have died before it could sync it.
            let path = numbered(dir, FileKind::Wal, number);
            let synced = env.sync_file(&path);
            synced.map_err(|error| Error::io("sync the log", &path, error))?;
        }
        // Before anything is written, because the directory is synced with the new log: a log that
        // was left out must not come back in front of what is written from now on.
        self.remove_strangers();
        let (wal_number, wal) = shared.create_log(0)?;
        let mut logs = self.logs.clone();
        logs.push(Log { number: wal_number, bytes: wal.capacity() });
        let writer = Writer {
            wal: Arc::new(wal),
            wal_number,
            spares: VecDeque::new(),
            unsynced: Vec::new(),
            logs,
            next_seq: self.last_seq + 1,
            buffer: Vec::new(),
        };
        *shared.writer.lock() = Some(writer);
        for space in shared.all_spaces() {
            let mut core = space.core.lock();
            if core.active.memtable.is_full(core.policy.seal_bytes(&core.view)) {
                shared.seal(&space, &mut core);
            }
            // Not before there is a manifest that is synced and does not need the space.
            core.reclaim(&space.version.load());
        }
        Ok(())
    }

    /// Removes numbered files that nothing names.
    fn remove_strangers(&self) {
        let Options { env, dir, .. } = &self.options;
        let named = |kind, number| match kind {
            FileKind::Wal => self.needs_log(number),
            FileKind::Manifest => false,
            FileKind::Spill => {
                let mut spills = self.account.spaces.values().filter_map(|state| state.spill);
                spills.any(|spill| spill.file == number)
            }
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

    fn needs_log(&self, number: u64) -> bool {
        self.logs.iter().any(|log| log.number == number)
    }

    /// Reads copies of memory back into memtables.
    fn read_spills(&self) -> Result<()> {
        let Options { env, dir, .. } = &self.options;
        for (id, state) in &self.account.spaces {
            let Some(spill) = state.spill else { continue };
            let mut entries = read_spill(&**env, dir, *id, spill)?;
            entries.retain(|entry| !state.has_left(&entry.key, entry.seq));
            // In the order of writing.
            entries.sort_unstable_by_key(|entry| entry.seq);
            let core = self.spaces[id].core.lock();
            for Spilled { seq, kind, key, value } in entries {
                let entry = EntryRef { key: &key, seq, kind, value: &value };
                core.active.memtable.insert(entry, keep_newest(seq));
            }
        }
        Ok(())
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
            let bytes = reader.bytes();
            while let Some((offset, payload)) = reader.next_record()? {
                let damaged = |told: String| Error::corruption(&path, offset, told);
                let (first, ops) =
                    decode_batch(payload).map_err(|damage| damaged(damage.what.to_string()))?;
                let expected = last.map_or(first.0.min(durable + 1), |last| last + 1);
                match self.judge(first.0, expected, durable) {
                    Next::Follows => {}
                    Next::Missing => {
                        tracing::warn!(
                            path = %path.display(), offset, expected, found = first.0,
                            "the log has a gap: what follows had not been synced and is left out"
                        );
                        self.last_seq = durable.max(expected - 1);
                        return Ok(());
                    }
                    Next::Wrong => {
                        let told = format!("expected write number {expected}, found {first}");
                        return Err(damaged(told));
                    }
                }
                // An empty batch stands for a bulk load, whose entries have one number together.
                last = Some(first.0 + ops.len().max(1) as u64 - 1);
                self.insert(Log { number, bytes }, first, &ops).map_err(damaged)?;
            }
            if let Some(LogEnd::Torn { offset, bytes_dropped }) = reader.end() {
                tracing::warn!(
                    path = %path.display(), offset, bytes_dropped,
                    "the end of the log was not complete and is left out: it had not been synced"
                );
            }
            // Once a log is needed all that follow are, or there would be gaps between them.
            if !self.logs.is_empty() && !self.needs_log(number) {
                self.logs.push(Log { number, bytes });
            }
        }
        self.last_seq = durable.max(last.unwrap_or(0));
        Ok(())
    }

    /// What a batch is whose first write is number `first` where `expected` should follow, when
    /// all writes up to `durable` are in tables or in synced logs.
    fn judge(&self, first: u64, expected: u64, durable: u64) -> Next {
        match first.cmp(&expected) {
            Ordering::Equal => Next::Follows,
            Ordering::Less => Next::Wrong,
            Ordering::Greater if first > durable + 1 => Next::Missing,
            // A log was not needed any more and is gone, while one before it, as little needed, is
            // still or again there; or its unsynced part is lost.
            Ordering::Greater if self.logs.is_empty() => Next::Follows,
            Ordering::Greater => Next::Wrong,
        }
    }

    /// Puts the writes of one batch into the memtables of keyspaces that have not flushed them.
    fn insert(
        &mut self,
        log: Log,
        first: SeqNo,
        ops: &[crate::db::LoggedOp<'_>],
    ) -> std::result::Result<(), String> {
        for (index, op) in ops.iter().enumerate() {
            let seq = SeqNo(first.0 + index as u64);
            let space = self.spaces.get(&op.space);
            let space = space.ok_or_else(|| format!("there is no keyspace {}", op.space))?;
            if self.account.spaces[&op.space].is_past(op.key, seq) {
                continue;
            }
            let core = space.core.lock();
            core.active.begin(log.number);
            if self.logs.last().is_none_or(|last| last.number != log.number) {
                self.logs.push(log);
            }
            let entry = EntryRef { key: op.key, seq, kind: op.kind, value: op.value };
            core.active.memtable.insert(entry, keep_newest(seq));
        }
        Ok(())
    }
}

/// Nobody reads yet: of versions older than that with number `seq` only the newest is needed.
fn keep_newest(seq: SeqNo) -> KeepFrom {
    KeepFrom(SeqNo(seq.0 - 1))
}

/// Opens a keyspace as the manifest describes it, with an empty memtable.
fn open_space(
    options: &Options,
    cache: &Arc<BlockCache>,
    leftovers: &Arc<Leftovers>,
    id: u32,
    state: &SpaceState,
) -> Result<Arc<Space>> {
    let policy = options.registry.build(&state.policy).map_err(|error| {
        let told =
            format!("the keyspace {} has a policy that cannot be built: {error}", state.name);
        Error::new(ErrorKind::Unsupported, told).at(&options.dir)
    })?;
    let compression = Compression::parse(&state.compression).map_err(|error| {
        let told = format!("the keyspace {}: {error}", state.name);
        Error::new(ErrorKind::Unsupported, told).at(&options.dir)
    })?;
    let tables = open_tables(options, cache, &state.tree)?;
    let tree = state.tree.clone();
    let tree = tree.with_tables(|table| Arc::clone(tables[&table.id].table().tree_table()));
    let mut view = TreeView::new(tree, state.memtable_bytes);
    view.block_bytes = options.table.block_bytes as u64;
    let core = Core {
        policy: Policy::new(policy, options.lockstep),
        compression,
        view,
        active: Active::new(),
        sealed: Vec::new(),
        vanished: None,
        spill: state.spill,
        spill_due: false,
        tables,
        reclaim: Reclaim::new(leftovers),
        failures: Vec::new(),
        failed_in_row: 0,
        leaving: 0,
        merge_all: false,
        flush_all: false,
    };
    let version = core.version(None, None);
    Ok(Arc::new(Space {
        id,
        name: state.name.clone(),
        memtable_bytes: state.memtable_bytes,
        version: ArcSwap::from_pointee(version),
        active: ArcSwap::new(Arc::clone(&core.active)),
        gate: Gate::default(),
        observer_panic: Mutex::default(),
        core: Mutex::new(core),
    }))
}

/// Opens all tables of `tree`, which is the manifest's, and makes sure that they are what it says.
fn open_tables(
    options: &Options,
    cache: &Arc<BlockCache>,
    tree: &Tree,
) -> Result<FxHashMap<TableId, Arc<TableHandle>>> {
    let mut tables: FxHashMap<_, _> = FxHashMap::default();
    for slice in tree.disk_runs().flat_map(|run| run.slices()) {
        let named = slice.table();
        let hash_map::Entry::Vacant(place) = tables.entry(named.id) else { continue };
        let mut handle = TableHandle::open(&options.env, &options.dir, named.id, cache)?;
        if handle.is_undated() && named.seq_min == named.seq_max {
            Arc::get_mut(&mut handle).expect("nobody else has it yet").date(named.seq_max);
        }
        let found = handle.table().tree_table();
        let agrees = (found.size, &found.range) == (named.size, &named.range)
            && (found.seq_min, found.seq_max) == (named.seq_min, named.seq_max);
        if !agrees {
            let path = numbered(&options.dir, FileKind::Table, named.id.0);
            let told = "the table does not hold what the manifest says";
            return Err(Error::corruption(&path, 0, told));
        }
        place.insert(handle);
    }
    Ok(tables)
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
        crate::db::check_memtable(memtable_bytes)?;
        let mut spaces = self.spaces.write();
        if let Some(space) = spaces.get(name) {
            return Ok(Arc::clone(space));
        }
        let id = spaces.values().map(|space| space.id + 1).max().unwrap_or(0);
        let policy = policy.spec().to_string();
        let space = manifest::SpaceRecord { id, name: name.into(), policy, memtable_bytes };
        let compression = Compression::parse(&self.options.compression)?;
        let record = match compression.is_none() {
            true => manifest::Record::Space(space),
            false => manifest::Record::CompressedSpace(space, compression.to_string()),
        };
        let state = self.write_record(record, |account| account.spaces[&id].clone())?;
        let space = open_space(&self.options, &self.cache, &self.leftovers, id, &state)?;
        spaces.insert(name.to_string(), Arc::clone(&space));
        Ok(space)
    }

    /// Has tables of `space` compressed otherwise from now on.
    pub(crate) fn set_compression(&self, space: &Space, codecs: &str) -> Result<()> {
        self.check_writable()?;
        let compression = Compression::parse(codecs)?;
        let told = compression.to_string();
        let record = manifest::Record::Compression { space: space.id, compression: told };
        let mut core = space.core.lock();
        self.write_record(record, |_| ())?;
        core.compression = compression;
        Ok(())
    }

    /// Gives `space` another policy from now on.
    pub(crate) fn set_policy(&self, space: &Space, spec: &str) -> Result<()> {
        self.check_writable()?;
        let policy = self.options.registry.build(spec).map_err(bad_policy)?;
        let policy = Policy::new(policy, self.options.lockstep);
        let record =
            manifest::Record::Policy { space: space.id, policy: policy.spec().to_string() };
        let mut core = space.core.lock();
        self.write_record(record, |_| ())?;
        core.policy = policy;
        space.gate.note(&core);
        drop(core);
        self.work.notify();
        Ok(())
    }
}
