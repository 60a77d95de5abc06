//! Writes: into the log, into the memtables, and seen.
//!
//! 1. Writers are held back while merges are behind ([`gate`]).
//! 2. Under the writer's lock: the batch goes to the log as one record. From here on it survives
//!    the death of the process.
//! 3. Its entries go into the memtables of their keyspaces, then all of them become visible at
//!    once.
//! 4. A memtable that is full is sealed, at once or by who next finds its keyspace unlocked. A
//!    batch never straddles two memtables of a keyspace.
//! 5. Outside the lock, the log is synced if the caller asked for it.

mod gate;
mod load;
mod log;

pub(crate) use gate::Gate;

use crate::db::{Op, Ops, PersistMode};
use crate::event::Event;
use crate::memory::{Newest, Replacement};
use crate::shared::{Shared, Writer, read_only};
use crate::stats::add;
use crate::version::{Active, Core, Held, Space, Writes};
use lsmith_storage::cursor::EntryRef;
use lsmith_storage::env::SyncReach;
use lsmith_storage::error::Result;
use lsmith_storage::memtable::{KeepFrom, Memtable, Sealed};
use lsmith_storage::sync::Guard;
use lsmith_storage::sync::MutexGuard;
use lsmith_storage::sync::atomic::{AtomicU64, Ordering};
use lsmith_tree::{AddPlace, KeyRange, Profile, RunId, SeqNo, Size, Slice, Table, TableId};
use std::sync::Arc;

/// What who wants to seal does where others hold the core of the keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Locked {
    /// Waits until they give it back.
    Wait,
    /// Leaves it to who comes later.
    GoOn,
}

impl Shared {
    /// Writes `ops`.
    pub(crate) fn write(&self, ops: Ops<'_>, mode: PersistMode) -> Result<()> {
        self.check_writable()?;
        ops.check()?;
        if ops.len() == 0 {
            return Ok(());
        }
        for space in ops.spaces() {
            self.hold_back(space, ops.bytes() as u64)?;
        }
        let mut guard = self.writer.lock();
        let writer = guard.as_mut().ok_or_else(read_only)?;
        self.check_writable()?;
        let first = SeqNo(writer.next_seq);
        self.log(writer, first, ops)?;
        let step = self.one_step();
        self.insert(writer, first, ops);
        writer.next_seq += ops.len() as u64;
        self.visible.store(writer.next_seq - 1, Ordering::SeqCst);
        step.over();
        self.seal_full(writer, ops.spaces(), Locked::GoOn);
        let logs = if mode == PersistMode::Buffer { Vec::new() } else { writer.logs_to_sync() };
        drop(guard);
        self.sync_for(mode, &logs)
    }

    /// Syncs `logs` as far as `mode` asks, and forgets those that need no more syncing.
    pub(crate) fn sync_for(
        &self,
        mode: PersistMode,
        logs: &[Arc<lsmith_storage::log::LogWriter>],
    ) -> Result<()> {
        let reach = match mode {
            PersistMode::Buffer => return Ok(()),
            PersistMode::SyncData => SyncReach::Data,
            PersistMode::SyncAll => SyncReach::All,
        };
        add(&self.counts.syncs, 1);
        self.sync_logs(logs, reach)?;
        // The last one may have been appended to since, and even have become a full one.
        if let [full @ .., _] = logs
            && !full.is_empty()
            && let Some(writer) = self.writer.lock().as_mut()
        {
            writer.unsynced.retain(|log| !full.iter().any(|synced| Arc::ptr_eq(synced, log)));
        }
        Ok(())
    }

    /// Appends the record of `ops` to the log.
    fn log(&self, writer: &mut Writer, first: SeqNo, ops: Ops<'_>) -> Result<()> {
        let mut buffer = std::mem::take(&mut writer.buffer);
        let appended =
            ops.with_record(first, &mut buffer, |parts| self.append_record(writer, parts));
        writer.buffer = buffer;
        appended?;
        add(&self.counts.batches, 1);
        add(&self.counts.entries_written, ops.len() as u64);
        add(&self.counts.user_bytes, ops.bytes() as u64);
        Ok(())
    }

    fn insert(&self, writer: &Writer, first: SeqNo, ops: Ops<'_>) {
        let keep = KeepFrom(self.snapshots.keep_from(&self.visible));
        let mut active: Option<(&Arc<Space>, Guard<Arc<Active>>)> = None;
        for (seq, op) in (first.0..).zip(ops.iter()) {
            let (_, active) = match &active {
                Some(known) if Arc::ptr_eq(known.0, op.space) => known,
                _ => {
                    let now = op.space.active.load();
                    now.begin(writer.wal_number);
                    active.insert((op.space, now))
                }
            };
            let Op { kind, key, value, .. } = op;
            active.memtable.insert(EntryRef { key, seq: SeqNo(seq), kind, value }, keep);
        }
    }

    /// Seals those memtables of `spaces` that are full, and has them flushed.
    fn seal_full(&self, writer: &mut Writer, spaces: &[Arc<Space>], locked: Locked) {
        // A log that has begun may have had memtables sealed.
        let mut sealed = writer.log_began && self.options.lockstep;
        for space in spaces {
            let Some(mut core) = self.look_at_full(space, locked) else { continue };
            if core.active.is_full(core.policy.seal_bytes(&core.view)) {
                self.seal(space, &mut core);
                sealed = true;
            }
        }
        if sealed {
            self.after_seal(writer);
        }
    }

    /// The core of `space`, to see whether its memtable is full. Where others hold it, because they
    /// plan or commit, a writer goes on: one that comes later looks, or a merging thread, unless
    /// the memtable has grown to twice what it is sealed at. In lockstep no thread would come.
    fn look_at_full<'a>(&self, space: &'a Space, locked: Locked) -> Option<MutexGuard<'a, Core>> {
        space.core.try_lock().or_else(|| {
            let bytes = space.active.load().memtable.live_bytes();
            if locked == Locked::Wait || self.options.lockstep || bytes >= 2 * space.memtable_bytes
            {
                return Some(space.core.lock());
            }
            space.seal_due.store(true, Ordering::Relaxed);
            None
        })
    }

    /// Seals the memtable of `space` if it is full and was not sealed because the core was locked.
    pub(crate) fn seal_overdue(&self, space: &Arc<Space>, locked: Locked) {
        // Where nothing is due, no lock is taken to find that out.
        if !space.seal_due.load(Ordering::Relaxed) {
            return;
        }
        if let Some(writer) = self.writer.lock().as_mut() {
            // Set again where the core is still locked and nobody waits.
            space.seal_due.store(false, Ordering::Relaxed);
            self.seal_full(writer, std::slice::from_ref(space), locked);
        }
    }

    /// Lets the merging threads know of a sealed memtable, or in lockstep does their work.
    pub(crate) fn after_seal(&self, writer: &mut Writer) {
        if self.options.lockstep {
            writer.log_began = false;
            self.settle_in_lockstep(&writer.logs_to_sync());
            self.retire_logs_of(writer);
        } else {
            self.balance_memory();
            self.work.notify();
        }
    }

    /// Seals the active memtable: it becomes the newest run of memory, or in lockstep, where the
    /// policy wants memory in one run, that run with what was there before.
    pub(crate) fn seal(&self, space: &Space, core: &mut Core) {
        let Some((oldest, newest)) = core.active.memtable.seq_range() else { return };
        let step = self.one_step();
        let full = std::mem::replace(&mut core.active, Active::new());
        space.active.store(Arc::clone(&core.active));
        let (memtable, log) = (Arc::clone(&full.memtable), full.log());
        let writes = Writes { oldest, newest, log };
        let folds = self.options.lockstep && core.policy.wants_blocks();
        if folds && !core.is_memory_reserved() {
            self.seal_folded(space, core, memtable, writes);
        } else {
            seal_as_written(core, &self.files, memtable, writes);
        }
        space.publish(core);
        step.over();
        // What others have written is asked from here on.
        space.gate.note(core);
        self.tell(space, &Event::Sealed { tree: &core.view.tree });
    }

    fn seal_folded(&self, space: &Space, core: &mut Core, memtable: Arc<Memtable>, writes: Writes) {
        let version = space.version.load();
        let bytes = memtable.live_bytes();
        let newest = Newest { cursor: Sealed::Written(memtable).cursor(), bytes };
        let older: Vec<_> = version.memory.iter().collect();
        let folded = self.fold_over(newest, &older, core.view.block_bytes);
        let folded = folded.expect("nothing in memory fails, and the store is not closing");
        let old: Vec<RunId> = core.sealed.iter().map(|held| held.run).collect();
        let writes = core.writes_of(&old).map_or(writes, |older| writes.with(older));
        core.replace_memory(&old, Replacement { folded, writes, place: AddPlace::Memory });
    }
}

/// Makes `memtable` the newest run of memory, as it is. `files` is the counter of file numbers.
fn seal_as_written(core: &mut Core, files: &AtomicU64, memtable: Arc<Memtable>, writes: Writes) {
    let (first, last) = memtable.key_range().expect("it has been written to");
    let table = Table {
        id: TableId(files.fetch_add(1, Ordering::Relaxed)),
        root: 0,
        range: KeyRange::inclusive(&first, &last),
        size: Size { bytes: memtable.live_bytes(), entries: memtable.entries(), tombstones: 0 },
        seq_min: writes.oldest,
        seq_max: writes.newest,
        profile: Profile::default(),
    };
    let run = core.add_to_memory(Slice::whole(table));
    core.sealed.insert(0, Held { run, sealed: Sealed::Written(memtable), writes });
}

/// Seals the memtable of `space` if it is full, while the store is being opened: logs may hold more
/// than fits into one.
pub(crate) fn seal_while_opening(space: &Space, files: &AtomicU64) {
    let mut core = space.core.lock();
    if !core.active.is_full(core.policy.seal_bytes(&core.view)) {
        return;
    }
    let Some((oldest, newest)) = core.active.memtable.seq_range() else { return };
    let full = std::mem::replace(&mut core.active, Active::new());
    space.active.store(Arc::clone(&core.active));
    let writes = Writes { oldest, newest, log: full.log() };
    seal_as_written(&mut core, files, Arc::clone(&full.memtable), writes);
    space.publish(&core);
}
