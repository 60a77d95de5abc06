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

use crate::db::{Compression, KeyspaceOptions, Options, PersistMode, Snapshots, bad_policy};
use crate::leftovers::Leftovers;
use crate::manifest::{self, Account, SpaceState};
use crate::memory::{Spilled, read_spill};
use crate::pace::Pace;
use crate::shared::{Log, Shared, Work, Writer};
use crate::stats::{Counts, Recorders};
use crate::version::{Active, Core, Policy, Reclaim, Space, TableHandle};
use crate::write::Gate;
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::directory;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::names::{self, CURRENT, CURRENT_NEW, FileKind, LOCK, numbered};
use lsmith_storage::sync::ArcSwap;
use lsmith_storage::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use lsmith_storage::sync::{Mutex, RwLock};
use lsmith_storage::table::BlockCache;
use lsmith_tree::{TableId, Tree, TreeView};
use replay::{Unread, keep_newest};
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, hash_map};
use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;

/// Opens or creates the store that `options` describe.
pub(crate) fn open(options: Options) -> Result<Arc<Shared>> {
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

/// Takes the lock of the store in `dir`.
///
/// # Errors
/// `Locked` where somebody has it open; `Io`.
pub(crate) fn take_lock(env: &dyn Env, dir: &Path) -> Result<Box<dyn Debug + Send + Sync>> {
    env.lock(dir).map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => {
            let told = "the store is open already, in this process or another";
            Error::new(ErrorKind::Locked, told).at(dir)
        }
        _ => Error::io("lock", &dir.join(LOCK), error),
    })
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
    /// Those of them that no batch is in.
    empty: Vec<u64>,
    left_out: Unread,
    /// All numbered files found.
    files: Vec<(FileKind, u64)>,
    /// The next file number.
    next_file: Arc<AtomicU64>,
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
        let files = names::numbered_among(&options.dir, &names, account.next_file);
        let highest = files.iter().map(|(_, number)| *number + 1).max().unwrap_or(1);
        let next_file = Arc::new(AtomicU64::new(account.next_file.max(highest)));
        Ok(Recovery {
            options,
            account,
            cache,
            leftovers,
            spaces,
            last_seq,
            logs: Vec::new(),
            empty: Vec::new(),
            left_out: Unread::default(),
            files,
            next_file,
        })
    }

    fn pace(&self) -> Option<Pace> {
        let Options { merge_bytes_per_s, lockstep, .. } = &self.options;
        merge_bytes_per_s.filter(|_| !lockstep).map(Pace::new)
    }

    fn finish(mut self, lock: Box<dyn Debug + Send + Sync>) -> Result<Arc<Shared>> {
        self.read_spills()?;
        self.replay()?;
        let counts = Arc::new(Counts::default());
        let spaces = self.spaces.values().map(|space| (space.name.clone(), Arc::clone(space)));
        let shared = Arc::new(Shared {
            cache: Arc::clone(&self.cache),
            counts,
            recorders: self.options.histograms.then(Recorders::default),
            files: Arc::clone(&self.next_file),
            visible: AtomicU64::new(self.last_seq),
            snapshots: Arc::new(Snapshots::new()),
            spaces: RwLock::new(spaces.collect()),
            writer: Mutex::new(None),
            retiring: Mutex::default(),
            manifest: Mutex::new(None),
            poisoned: AtomicBool::new(false),
            log_due: AtomicBool::new(false),
            closing: AtomicBool::new(false),
            shares_log: AtomicBool::new(self.spaces.len() > 1),
            work: Work::default(),
            leftovers: Arc::clone(&self.leftovers),
            left_out: self.left_out.told(&*self.options.env, &self.options.dir),
            splits: Mutex::default(),
            pace: self.pace(),
            _lock: lock,
            options: self.options.clone(),
        });
        if self.options.read_only {
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

    /// The numbers of all files of `kind`.
    fn numbers_of(&self, kind: FileKind) -> Vec<u64> {
        let of_kind = self.files.iter().filter(|(found, _)| *found == kind);
        of_kind.map(|(_, number)| *number).collect()
    }

    fn needs_log(&self, number: u64) -> bool {
        self.logs.iter().any(|log| log.number == number)
    }
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
        coming: None,
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
        seal_due: AtomicBool::new(false),
        committing: Mutex::default(),
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
    /// Makes a keyspace, or finds the one of that name, which must be what `options` ask for.
    pub(crate) fn keyspace(&self, name: &str, options: &KeyspaceOptions) -> Result<Arc<Space>> {
        let build = |spec: &str| self.options.registry.build(spec).map_err(bad_policy);
        let policy = options.policy.as_deref().map(build).transpose()?;
        let policy = policy.map(|policy| policy.spec().to_string());
        options.memtable_bytes.map_or(Ok(()), crate::db::check_memtable)?;
        let found = self.spaces.read().get(name).map(Arc::clone);
        if let Some(space) = found {
            return space.check_options(policy, options.memtable_bytes).map(|()| space);
        }
        self.check_writable()?;
        crate::db::check_name(name)?;
        let mut spaces = loop {
            let shares = !self.spaces.read().is_empty();
            if shares {
                self.share_log()?;
            }
            let spaces = self.spaces.write();
            if shares || spaces.is_empty() {
                break spaces;
            }
        };
        if let Some(space) = spaces.get(name).map(Arc::clone) {
            drop(spaces);
            return space.check_options(policy, options.memtable_bytes).map(|()| space);
        }
        let id = spaces.values().map(|space| space.id + 1).max().unwrap_or(0);
        let memtable_bytes = options.memtable_bytes.unwrap_or(self.options.memtable_bytes);
        let policy = match policy {
            Some(policy) => policy,
            None => build(&self.options.policy)?.spec().to_string(),
        };
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

    /// Makes sure that a keyspace can be made beside others.
    ///
    /// As long as there is one keyspace, what leaves its memory need not wait for the log to be
    /// synced: nobody needs the log for it. A keyspace that is made later would seem to, and what
    /// was lost of the log with the power would be taken for damage. So from now on the log is
    /// synced first, and what was written before is synced here.
    fn share_log(&self) -> Result<()> {
        self.shares_log.store(true, SeqCst);
        let logs = self.writer.lock().as_ref().map(Writer::logs_to_sync);
        self.sync_for(PersistMode::SyncData, &logs.unwrap_or_default())
    }

    /// Has tables of `space` compressed otherwise from now on.
    pub(crate) fn set_compression(&self, space: &Space, codecs: &str) -> Result<()> {
        self.check_writable()?;
        let compression = Compression::parse(codecs)?;
        let told = compression.to_string();
        let record = manifest::Record::Compression { space: space.id, compression: told };
        let _committing = space.committing.lock();
        self.write_record(record, |_| ())?;
        space.core.lock().compression = compression;
        Ok(())
    }

    /// Gives `space` another policy from now on.
    pub(crate) fn set_policy(&self, space: &Space, spec: &str) -> Result<()> {
        self.check_writable()?;
        let policy = self.options.registry.build(spec).map_err(bad_policy)?;
        let policy = Policy::new(policy, self.options.lockstep);
        let record =
            manifest::Record::Policy { space: space.id, policy: policy.spec().to_string() };
        let committing = space.committing.lock();
        self.write_record(record, |_| ())?;
        let mut core = space.core.lock();
        core.policy = policy;
        space.gate.note(&core);
        drop(core);
        drop(committing);
        self.work.notify();
        Ok(())
    }
}
