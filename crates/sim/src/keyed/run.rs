//! A keyed simulation, write by write.

use super::entry::{Entry, KeyedEntry};
use super::keyspaces::KeyspaceMeter;
use super::memtable::Memtable;
use super::ranges::{Ranges, WriteSpan};
use super::scan::Scans;
use super::{FullMemtables, KeyedContent};
use crate::cache::BlockCaches;
use crate::drive::Observer;
use crate::simulation::counted;
use crate::{Drive, Event, FigureCounter, Figures, SCAN_ITEMS, SimError, Simulation};
use lsmith_policy::MergePolicy;
use lsmith_tree::{BLOCK_BYTES_USUAL, EntryKind, LevelId, SeqNo, Slice, TableId, Tree};
use lsmith_workload::Lives;
use std::ops::Range;
use std::sync::Arc;

/// A keyed simulation. It takes writes, seals a memtable when it is full, and carries out plans
/// until the tree is at rest before the next write.
#[derive(Debug)]
pub struct KeyedSim {
    drive: Drive<KeyedContent>,
    memtable: Memtable,
    counter: FigureCounter,
    seal_bytes: u64,
    last_seq: SeqNo,
    /// Logical bytes of all writes.
    requested_bytes: u64,
    /// Logical bytes of the live entries up to the last sealed memtable.
    live_bytes: u64,
    /// The number of sealed memtables.
    sealed: u64,
    /// The flushes under a policy that counts in blocks.
    filled: Option<FullMemtables>,
    /// The range reads, if the caller makes any.
    scans: Option<Scans>,
    /// The number of lookups.
    lookups: u64,
    /// The reads since the last sealed memtable, if the policy needs them: lookups that found a
    /// value, that found none, and range reads.
    reads: Option<[u64; 3]>,
    /// The bytes of each keyspace of a group.
    keyspaces: KeyspaceMeter,
    /// True if merges rewrite every table, whatever the policy.
    rewrites: bool,
}

impl KeyedSim {
    /// Returns a simulation of an empty tree under `policy`. Memtables have `memtable_bytes`
    /// logical bytes, unless the policy seals them earlier.
    pub fn new(policy: &Arc<dyn MergePolicy>, memtable_bytes: u64) -> KeyedSim {
        let mut content = KeyedContent::new(BLOCK_BYTES_USUAL, policy.needs().blocks);
        content.set_keeps_tables(policy.needs().lets_tables_stay());
        let drive = Drive::new(Arc::clone(policy), content, memtable_bytes);
        KeyedSim {
            seal_bytes: policy.seal_bytes(drive.view()),
            drive,
            memtable: Memtable::default(),
            counter: FigureCounter::under(&**policy, SCAN_ITEMS),
            last_seq: SeqNo::default(),
            requested_bytes: 0,
            live_bytes: 0,
            sealed: 0,
            filled: policy.needs().blocks.then(|| FullMemtables::new(memtable_bytes)),
            scans: None,
            lookups: 0,
            reads: policy.needs().reads.then(Default::default),
            keyspaces: KeyspaceMeter::default(),
            rewrites: false,
        }
    }

    /// Returns the same simulation, which must be empty, of a group of keyspaces with `ranks` ranks
    /// each. Outputs are cut between them, as in a store.
    #[must_use]
    pub fn with_keyspaces(mut self, ranks: u64) -> KeyedSim {
        self.drive.content_mut().set_keyspaces(ranks);
        self.keyspaces = KeyspaceMeter::new(ranks);
        self
    }

    /// Returns the same simulation, which must be empty, in which merges rewrite every table that
    /// they take. By default they keep [tables](lsmith_tree::KeptTables) where no other input has
    /// keys.
    #[must_use]
    pub fn with_rewrites(mut self) -> KeyedSim {
        self.drive.content_mut().set_keeps_tables(false);
        self.rewrites = true;
        self
    }

    /// Returns the same simulation, which must be empty, with `scan_cost_mean` for range reads of
    /// `items` entries in place of [`SCAN_ITEMS`].
    #[must_use]
    pub fn with_scan_items(self, items: f64) -> KeyedSim {
        let counter = FigureCounter::under(&**self.drive.policy(), items);
        KeyedSim { counter, ..self }
    }

    /// Returns the same simulation, which must be empty, ready for range reads.
    #[must_use]
    pub fn with_scans(self) -> KeyedSim {
        KeyedSim { scans: Some(Scans::default()), ..self }
    }

    /// Returns the same simulation, which must be empty, with a cache of `bytes` for lookups and
    /// range reads. If it is full, blocks leave whose last use is longest ago. Merges read past it,
    /// as in a store.
    #[must_use]
    pub fn with_cache(mut self, bytes: u64) -> KeyedSim {
        self.drive.content_mut().set_caches(BlockCaches::new(&[bytes], false));
        self
    }

    /// Returns the same simulation, which must be empty, in which entries [that
    /// expire](KeyedSim::write_expiring) do so as `lives` says.
    #[must_use]
    pub fn with_expiry(mut self, lives: &Lives) -> KeyedSim {
        self.drive.content_mut().set_lives(lives);
        self
    }

    /// Returns the same simulation, which must be empty, ready for [range
    /// deletes](KeyedSim::delete_range). It does not count the cost of range reads, which pass over
    /// deleted ranges.
    #[must_use]
    pub fn with_range_deletes(mut self) -> KeyedSim {
        let forgets = !self.drive.policy().needs().sequence_numbers;
        self.drive.content_mut().ranges = Some(Ranges::new(forgets));
        self
    }

    /// Deletes all keys with these ranks, at least one. A tombstone of the first key has
    /// `tombstone_bytes` (key and 8). Does nothing unless the simulation was made [with range
    /// deletes](KeyedSim::with_range_deletes).
    pub fn delete_range(&mut self, ranks: Range<u64>, tombstone_bytes: u32) {
        let Ok(first) = u32::try_from(ranks.start) else { return };
        if self.drive.content().ranges.is_none() || ranks.is_empty() {
            return;
        }
        // As in the store, a tombstone of its first key stands for the range delete in memory.
        self.write(EntryKind::Delete, first, tombstone_bytes);
        if let Some(deletes) = &mut self.drive.content_mut().ranges {
            deletes.add(ranks, self.last_seq);
        }
    }

    /// Writes an entry that expires, of `bytes` logical bytes (key, time, value and 8), for the key
    /// with this rank. A tombstone of the key has `tombstone_bytes` (key and 8).
    pub fn write_expiring(&mut self, rank: u32, bytes: u32, tombstone_bytes: u32) {
        let seq = self.next_seq();
        self.add(Entry::expiring(rank, bytes, seq, tombstone_bytes));
        self.drive.content_mut().look_at_time();
    }

    /// Writes an entry of `bytes` logical bytes (key, value and 8; at least 1) for the key with
    /// this rank.
    pub fn write(&mut self, kind: EntryKind, rank: u32, bytes: u32) {
        let seq = self.next_seq();
        self.add(Entry::new(rank, bytes, seq, kind));
    }

    fn next_seq(&mut self) -> SeqNo {
        self.last_seq.0 += 1;
        self.last_seq
    }

    /// Adds an entry with the last sequence number.
    fn add(&mut self, entry: Entry) {
        self.requested_bytes += entry.bytes();
        self.memtable.write(entry);
        if let Some(filled) = &mut self.filled {
            filled.write(entry.kind(), entry.rank(), entry.bytes() as u32);
        }
        if let Some(scans) = &mut self.scans {
            scans.write(entry);
        }
        self.drive.content_mut().set_time(self.last_seq);
    }

    /// Reads `items` live entries, in key order, from the key with this rank on. Only a simulation
    /// [with scans](KeyedSim::with_scans) counts what that costs.
    pub fn scan(&mut self, rank: u32, items: u32) {
        self.note_reads([0, 0, 1]);
        if let Some(scans) = &mut self.scans {
            let seen = scans.scan(self.drive.content(), self.drive.tree(), rank, items);
            self.drive.content_mut().read_seen(&seen);
        }
    }

    /// Looks up the key with this rank. Only a simulation [with a cache](KeyedSim::with_cache)
    /// counts what that costs.
    pub fn lookup(&mut self, rank: u32) {
        self.lookups += 1;
        if !self.memtable.holds(rank) {
            let (tree, content) = self.drive.tree_and_content();
            content.lookup(tree, rank);
        }
    }

    /// Returns true if the policy needs to know of every read.
    pub(crate) fn counts_reads(&self) -> bool {
        self.reads.is_some()
    }

    /// Notes so many lookups that found a value, lookups that found none, and range reads, for a
    /// policy that needs to know of them.
    pub fn note_reads(&mut self, counts: [u64; 3]) {
        let sums = self.reads.iter_mut().flatten();
        sums.zip(counts).for_each(|(sum, count)| *sum += count);
    }

    /// Tells the tree what was read while the memtable was filled.
    fn tell_reads(&mut self) -> Result<(), SimError> {
        let Some(reads) = &mut self.reads else { return Ok(()) };
        let counts = std::mem::take(reads);
        self.drive.note_reads(counts)
    }

    /// Sets the number of live entries, which the cost of range reads depends on.
    pub fn set_live_entries(&mut self, entries: u64) {
        self.counter.live_entries(entries);
    }

    /// Returns true if the memtable must be sealed before the next write.
    pub fn is_full(&self) -> bool {
        self.memtable.is_full(self.seal_bytes)
    }

    /// Seals the memtable, unless it is empty, and settles. `live_bytes` are the newest versions of
    /// all keys that are not deleted. Under a policy that counts in blocks, the memtable is folded
    /// together with memory.
    ///
    /// # Errors
    /// Fails if the policy proposes an illegal plan, or if it never rests.
    pub fn flush(&mut self, live_bytes: u64, observe: &mut Observer<'_>) -> Result<(), SimError> {
        let folds = self.drive.policy().needs().blocks;
        let Some((entries, writes)) = self.take_memtable(folds) else { return Ok(()) };
        self.tell_reads()?;
        self.live_bytes = live_bytes;
        self.observed(observe, |drive, observe| {
            let id = drive.tree().next_table();
            if !folds {
                let memtable = added(drive.content_mut(), id, entries, writes);
                return drive.flush(memtable, observe);
            }
            let memory = drive.tree().memory().runs().to_vec();
            let content = drive.content_mut();
            let folded = content.fold(id, &entries, &memory);
            let folded = folded.map(|memory| content.dated(memory, writes));
            drive.replace_memory(folded, observe)
        })?;
        self.seal_bytes = self.drive.policy().seal_bytes(self.drive.view());
        Ok(())
    }

    /// Seals the memtable, unless it is empty, and carries out no plan.
    pub(crate) fn seal(
        &mut self,
        live_bytes: u64,
        observe: &mut Observer<'_>,
    ) -> Result<(), SimError> {
        let Some((entries, writes)) = self.take_memtable(false) else { return Ok(()) };
        self.tell_reads()?;
        self.live_bytes = live_bytes;
        self.observed(observe, |drive, observe| {
            let id = drive.tree().next_table();
            let memtable = added(drive.content_mut(), id, entries, writes);
            drive.seal(memtable, observe)
        })
    }

    /// Asks the policy at how many bytes the next memtable is sealed. The answer changes with the
    /// tree.
    pub(crate) fn ask_seal_bytes(&mut self) {
        self.seal_bytes = self.drive.policy().seal_bytes(self.drive.view());
    }

    /// Calls `act` with the drive, and with an observer that counts before it calls `observe`.
    pub(crate) fn observed<R>(
        &mut self,
        observe: &mut Observer<'_>,
        act: impl FnOnce(&mut Drive<KeyedContent>, &mut Observer<'_>) -> R,
    ) -> R {
        let KeyedSim { drive, counter, keyspaces, live_bytes, .. } = self;
        act(drive, &mut |event: Event<'_>| {
            keyspaces.observe(&event);
            counted(event, *live_bytes, counter, observe);
        })
    }

    /// Counts the tree as it is among the trees at rest, although plans may be under way.
    pub(crate) fn sample(&mut self, observe: &mut Observer<'_>) {
        self.observed(observe, |drive, observe| observe(Event::Rest { tree: drive.tree() }));
    }

    /// Makes one run of all that is in memory, under a policy that wants that, if no plan under way
    /// takes from it.
    pub(crate) fn fold_memory_if_free(&mut self) -> Result<(), SimError> {
        let drive = &mut self.drive;
        let memory = drive.tree().memory().runs().to_vec();
        let is_free = memory.iter().all(|run| !drive.view().is_reserved(run.id()));
        if !drive.policy().needs().blocks || memory.len() < 2 || !is_free {
            return Ok(());
        }
        let (id, run) = (drive.tree().next_table(), drive.tree().next_run());
        let content = drive.content_mut();
        let writes = content.ranges.as_mut().map(|ranges| ranges.fold(run));
        let folded = content.fold(id, &[], &memory);
        let folded = folded.map(|memory| content.dated(memory, writes));
        drive.set_memory(folded)
    }

    pub(crate) fn drive_mut(&mut self) -> &mut Drive<KeyedContent> {
        &mut self.drive
    }

    pub(crate) fn drive(&self) -> &Drive<KeyedContent> {
        &self.drive
    }

    /// Returns the logical bytes in the active memtable.
    pub(crate) fn active_bytes(&self) -> u64 {
        self.memtable.bytes()
    }

    /// Takes the entries of the memtable, and its writes if that matters. `None` if it is empty.
    fn take_memtable(&mut self, folds: bool) -> Option<(Vec<Entry>, Option<WriteSpan>)> {
        if self.memtable.bytes() == 0 {
            return None;
        }
        let run = self.drive.tree().next_run();
        let entries = self.memtable.take();
        let (tree, content) = self.drive.tree_and_content();
        let seal = |deletes: &mut Ranges| deletes.seal(tree, run, self.last_seq, folds);
        let writes = content.ranges.as_mut().map(seal);
        if let Some(scans) = &mut self.scans {
            scans.seal();
        }
        self.sealed += 1;
        self.keyspaces.seal(&entries);
        self.counter.requested(self.requested_bytes);
        self.drive.set_requested_bytes(self.requested_bytes);
        Some((entries, writes))
    }

    /// Returns the number of flushes: sealed memtables or, under a policy that counts in blocks,
    /// full ones.
    pub fn flushes(&self) -> u64 {
        self.filled.as_ref().map_or(self.sealed, FullMemtables::count)
    }

    /// Replaces the policy. The new one is first asked at the next flush.
    pub fn set_policy(&mut self, policy: &Arc<dyn MergePolicy>) {
        self.seal_bytes = policy.seal_bytes(self.drive.view());
        let by_block = policy.needs().blocks;
        self.drive.content_mut().set_by_block(by_block);
        let keeps = policy.needs().lets_tables_stay() && !self.rewrites;
        self.drive.content_mut().set_keeps_tables(keeps);
        if by_block && self.filled.is_none() {
            let memtable_bytes = self.drive.view().memtable_bytes;
            self.filled = Some(FullMemtables::new(memtable_bytes).after(self.sealed));
        }
        self.drive.set_policy(Arc::clone(policy));
    }

    /// Returns the tree, at rest, without the active memtable.
    pub fn tree(&self) -> &Tree {
        self.drive.tree()
    }

    /// Returns the entries of all tables.
    pub(super) fn content(&self) -> &KeyedContent {
        self.drive.content()
    }

    /// Returns the rank and the logical bytes of every live key of the tree. Does not see the
    /// active memtable.
    pub fn live(&self) -> Vec<(u64, u64)> {
        self.drive.content().live(self.drive.tree())
    }

    /// Returns the logical bytes of obsolete entries in each level that has runs, newest level
    /// first: tombstones, and entries that a newer run hides. Does not see the active memtable.
    pub fn obsolete_bytes(&self) -> Vec<(LevelId, u64)> {
        self.drive.content().obsolete_bytes(self.drive.tree())
    }

    /// Returns the figures so far. The active memtable has cost nothing yet.
    pub fn figures(&self) -> Figures {
        let mut counter = self.counter.clone();
        if let Some(filled) = &self.filled {
            counter.filled(filled.count());
        }
        // Range reads pass over deleted ranges.
        let scans = self.scans.as_ref().filter(|_| self.drive.content().ranges.is_none());
        let mut scan_cost_measured = scans.and_then(Scans::cost);
        let mut missed = self.drive.content().caches().uncached().next();
        if self.drive.policy().needs().appends {
            // Which blocks of append tables are read depends on how batches lie in their files.
            missed = None;
            scan_cost_measured.iter_mut().for_each(|cost| cost.blocks = None);
        }
        let mean = |missed: u64, reads: u64| (reads > 0).then(|| missed as f64 / reads as f64);
        let scans = self.scans.as_ref().map_or(0, Scans::count);
        Figures {
            scan_cost_measured,
            read_cost_uncached: missed.and_then(|missed| mean(missed.lookups, self.lookups)),
            scan_cost_uncached: missed.and_then(|missed| mean(missed.scans, scans)),
            ..counter.figures()
        }
    }

    /// Returns the finished simulation.
    pub fn finish(self) -> Simulation {
        Simulation {
            figures: self.figures(),
            keyspaces: self.keyspaces.bytes(),
            tree: self.drive.into_tree(),
        }
    }
}

/// Adds a memtable of `entries` to `content`.
fn added(
    content: &mut KeyedContent,
    id: TableId,
    entries: Vec<Entry>,
    writes: Option<WriteSpan>,
) -> Slice {
    let memtable = content.add(id, entries.len(), entries.into_iter());
    content.dated(memtable, writes)
}
