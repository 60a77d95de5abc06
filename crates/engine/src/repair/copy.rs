//! Picks the newest entry of each key among all sources, and loads it into the new store.

use super::damaged::DamagedStore;
use super::known::KnownKeyspace;
use super::memory::Memory;
use super::report::{Finding, FindingKind, RepairedKeyspace};
use super::sources::{Found, Loss, Losses, RunSource, Tables, of_memory};
use crate::db::{BulkLoad, Keyspace};
use crate::inspect::Entry;
use bytes::Bytes;
use lsmith_storage::combine::{Combiner, Stack};
use lsmith_storage::error::Result;
use lsmith_storage::names::{FileKind, numbered};
use lsmith_tree::{EntryKind, KeyRange, RangeDeletes, SeqNo, Slice};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// The sources of a keyspace, newest first.
struct Sources {
    all: Vec<Box<dyn Iterator<Item = Found>>>,
    /// The indexes of sources whose age relative to the others was guessed.
    guessed: std::ops::Range<usize>,
    /// The index of the last source: entries of the log that are in tables too.
    logged: usize,
    losses: Losses,
}

/// An entry of a key, and the index of its source.
struct Candidate {
    source: usize,
    entry: Entry,
    /// What lies below the entry in its source, if it is a combine.
    below: Vec<Entry>,
    /// True if the source may have lost a newer entry of the key.
    is_older: bool,
}

impl DamagedStore {
    /// Loads the entries of `known`, a keyspace of the old store, into the new `keyspace`.
    pub(super) fn copy_keyspace(
        &mut self,
        known: &KnownKeyspace,
        memory: Memory,
        keyspace: &Keyspace,
    ) -> Result<RepairedKeyspace> {
        let hides = Hides::new(known, &memory);
        let sources = self.sources(known, memory);
        let mut load = keyspace.bulk_load()?;
        let combiner = keyspace.shared().rules.combiner();
        let mut copy = KeyspaceCopy::new(sources, hides, (self.dir.clone(), combiner));
        let entries = copy.run(&mut load)?;
        if keyspace.shared().keeps_seqs {
            // The entries get new sequence numbers. Tables that were exported earlier must stay
            // older.
            keyspace.store().engine().write_path.rise_above(copy.newest)?;
        }
        load.finish()?;
        for Loss { mut finding, .. } in copy.lost {
            finding.keyspace = Some(known.state.name.clone());
            self.findings.push(finding);
        }
        Ok(RepairedKeyspace {
            name: keyspace.name().to_string(),
            policy: keyspace.merge_policy(),
            entries,
            order_guessed: !known.unplaced.is_empty(),
            contested: copy.contested,
        })
    }

    /// Returns the sources of `keyspace`. Memory is newer than tables. Tables of unknown age go in
    /// front of the newest run that lacks a table, or else in front of all runs.
    fn sources(&mut self, keyspace: &KnownKeyspace, memory: Memory) -> Sources {
        let Memory { held, mut copied, logged, .. } = memory;
        let losses = Losses::default();
        let mut tables = Tables::new(keyspace.is_exact);
        let mut all = vec![of_memory(held)];
        let (runs, missing) = self.runs(keyspace);
        let mut guessed = 0..0;
        let guessed_before = if keyspace.unplaced.is_empty() { 0 } else { missing.unwrap_or(0) };
        for index in 0..=runs.len() {
            if index == guessed_before {
                guessed.start = all.len();
                for &file_id in &keyspace.unplaced {
                    if let Some((_, newest)) = copied.take_if(|(file, _)| *file > file_id) {
                        all.push(of_memory(newest));
                    }
                    let mut source = RunSource::new(all.len(), &losses);
                    source.add_table(self, &mut tables, file_id);
                    all.push(Box::new(source));
                }
                guessed.end = all.len();
                all.extend(copied.take().map(|(_, newest)| of_memory(newest)));
            }
            let Some(run) = runs.get(index) else { break };
            let mut source = RunSource::new(all.len(), &losses);
            source.add_run(self, &mut tables, run);
            all.push(Box::new(source));
        }
        let last = all.len();
        all.push(of_memory(logged));
        Sources { all, guessed, logged: last, losses }
    }

    /// Returns the runs of `keyspace`, newest first, and the index of the newest run that lacks a
    /// table. If the runs are not exact, leaves missing tables out.
    fn runs(&mut self, keyspace: &KnownKeyspace) -> (Vec<Vec<Slice>>, Option<usize>) {
        let mut runs = keyspace.runs.clone();
        if keyspace.is_exact {
            return (runs, None);
        }
        let present: BTreeSet<u64> = self.file_ids(FileKind::Table).into_iter().collect();
        let mut missing = BTreeSet::new();
        let mut newest = None;
        for (index, run) in runs.iter_mut().enumerate() {
            run.retain(|slice| {
                let file_id = slice.table().id.0;
                let is_there = present.contains(&file_id);
                if !is_there {
                    missing.insert(file_id);
                    newest = newest.or(Some(index));
                }
                is_there
            });
        }
        for file_id in missing {
            let path = numbered(&self.dir, FileKind::Table, file_id);
            let message = "the table was merged or is lost: there is no file";
            self.report(FindingKind::Guessed, &path, None, message);
        }
        (runs, newest)
    }
}

/// The range deletes of a keyspace.
struct Hides {
    /// The range deletes in force.
    range_deletes: RangeDeletes,
    /// All known range deletes, also the ones that are done.
    all: RangeDeletes,
    /// True if nothing of the manifest is missing.
    is_exact: bool,
}

impl Hides {
    fn new(known: &KnownKeyspace, memory: &Memory) -> Hides {
        let range_deletes =
            RangeDeletes::all([known.state.tree.range_deletes(), &memory.range_deletes]);
        let all = RangeDeletes::all([&range_deletes, &memory.logged_range_deletes]);
        Hides { range_deletes, all, is_exact: known.is_exact }
    }

    /// Returns true if a range delete hides `entry`. An entry that has forgotten its sequence
    /// number is older than all range deletes in force. If it is not certain which are, it is not
    /// hidden.
    fn hide(&self, entry: &Entry) -> bool {
        match entry.seq {
            SeqNo(0) => self.is_exact && self.range_deletes.part_of(&entry.key).is_some(),
            seq => seq < self.all.newest_at(&entry.key, SeqNo::MAX),
        }
    }
}

/// Returns true if `entry` is newer than `other`, which a newer source has. That source decides
/// unless both have a sequence number.
fn is_newer(entry: &Entry, other: &Entry) -> bool {
    SeqNo(0) < other.seq && other.seq < entry.seq
}

/// Takes the newest of the entries of a key that are left in the sources, newest source first.
fn take_newest(left: &mut [VecDeque<Entry>]) -> Option<Entry> {
    let newest = left
        .iter_mut()
        .filter(|entries| !entries.is_empty())
        .reduce(|best, other| if is_newer(&other[0], &best[0]) { other } else { best });
    newest.and_then(VecDeque::pop_front)
}

/// The copying of a keyspace, in key order.
struct KeyspaceCopy {
    hides: Hides,
    sources: Sources,
    /// The next entry of each source.
    next: Vec<Option<Found>>,
    /// The keys of these entries with their sources: least key first, then newest source first.
    keys: BinaryHeap<Reverse<(Bytes, usize)>>,
    /// Losses whose key ranges may hold keys that are still to come.
    active: Vec<Loss>,
    /// Losses whose key ranges are done.
    lost: Vec<Loss>,
    contested: u64,
    /// The greatest sequence number so far.
    newest: SeqNo,
    /// The directory of the old store, and the operators of the new keyspace.
    dir: PathBuf,
    combiner: Arc<dyn Combiner>,
}

impl KeyspaceCopy {
    fn new(
        mut sources: Sources,
        hides: Hides,
        (dir, combiner): (PathBuf, Arc<dyn Combiner>),
    ) -> KeyspaceCopy {
        let next: Vec<Option<Found>> = sources.all.iter_mut().map(Iterator::next).collect();
        let key = |(source, next): (usize, &Option<Found>)| {
            Some(Reverse((next.as_ref()?.entry.key.clone(), source)))
        };
        let keys = next.iter().enumerate().filter_map(key).collect();
        KeyspaceCopy {
            hides,
            sources,
            next,
            keys,
            active: Vec::new(),
            lost: Vec::new(),
            contested: 0,
            newest: SeqNo(0),
            dir,
            combiner,
        }
    }

    /// Loads all keys that are present. Returns how many there are.
    fn run(&mut self, load: &mut BulkLoad) -> Result<u64> {
        let mut count = 0;
        let mut candidates = Vec::new();
        while let Some(Reverse((key, _))) = self.keys.peek() {
            let key = key.clone();
            self.take(&key, &mut candidates);
            self.end_losses_below(&key);
            let newest = self.newest(&key, &candidates).filter(|entry| !self.hides.hide(entry));
            let value = match newest.map(|entry| (entry, entry.kind)) {
                Some((entry, EntryKind::Combine)) => {
                    self.combined(entry, &candidates).map(|value| (EntryKind::Put, value))
                }
                Some((entry, EntryKind::Expiring)) => {
                    Some((EntryKind::Expiring, entry.value.clone()))
                }
                Some((entry, kind)) => {
                    kind.is_value().then(|| (EntryKind::Put, entry.value.clone()))
                }
                None => None,
            };
            if let Some((kind, value)) = value {
                load.put_as(kind, &key, &value)?;
                count += 1;
            }
            candidates.clear();
        }
        self.lost.append(&mut self.active);
        self.lost.append(&mut self.sources.losses.borrow_mut());
        Ok(count)
    }

    /// Moves the entries of `key` from all sources to `candidates`, newest source first.
    fn take(&mut self, key: &Bytes, candidates: &mut Vec<Candidate>) {
        while let Some(Reverse((least, source))) = self.keys.peek()
            && least == key
        {
            let source = *source;
            self.keys.pop();
            let next = self.sources.all[source].next();
            if let Some(next) = &next {
                self.keys.push(Reverse((next.entry.key.clone(), source)));
            }
            let found = std::mem::replace(&mut self.next[source], next);
            candidates.extend(found.map(|Found { entry, below, is_older }| {
                self.newest = self.newest.max(entry.seq);
                Candidate { source, entry, below, is_older }
            }));
        }
    }

    /// Returns what the operator makes of `newest`, a combine that is one of `candidates`, and of
    /// what lies below it. If the operator fails, the key is lost.
    fn combined(&mut self, newest: &Entry, candidates: &[Candidate]) -> Option<Bytes> {
        let is_newest = |candidate: &&Candidate| std::ptr::eq(&candidate.entry, newest);
        let own = candidates.iter().find(is_newest).expect("it is one of them");
        let logged = self.sources.logged;
        let others = candidates.iter().filter(|other| other.source != logged);
        // An entry of the log counts if it is newer than all others.
        let all = Some(own).filter(|own| own.source == logged).into_iter().chain(others);
        let entries = |candidate: &Candidate| {
            std::iter::once(&candidate.entry).chain(&candidate.below).cloned().collect()
        };
        let mut left: Vec<VecDeque<Entry>> = all.map(entries).collect();
        let mut found = Stack::default();
        let mut last: Option<SeqNo> = None;
        while let Some(entry) = take_newest(&mut left) {
            let is_above = last.is_none() && entry.seq != newest.seq;
            let is_again = last.is_some_and(|last| SeqNo(0) < last && last <= entry.seq);
            if is_above || is_again {
                continue;
            }
            last = Some(entry.seq);
            if self.hides.hide(&entry) || found.push(entry.seq, entry.kind, entry.value) {
                break;
            }
        }
        found.combine(&newest.key, Some(&*self.combiner)).unwrap_or_else(|error| {
            let keys = KeyRange::inclusive(&newest.key, &newest.key);
            let finding = Finding {
                kind: FindingKind::LostKeys { keys: keys.clone(), older: 0, logged: 0 },
                path: self.dir.clone(),
                offset: None,
                keyspace: None,
                message: error.message().to_string(),
            };
            self.lost.push(Loss { source: own.source, keys, only: None, finding });
            None
        })
    }

    /// Moves the losses that end at or below `key` from `active` to `lost`.
    fn end_losses_below(&mut self, key: &[u8]) {
        self.active.append(&mut self.sources.losses.borrow_mut());
        let is_past = |loss: &mut Loss| loss.keys.end.as_ref().is_some_and(|end| **end <= *key);
        self.lost.extend(self.active.extract_if(.., is_past));
    }

    /// Returns the newest of `candidates`, the entries of `key`. An entry of the log counts only if
    /// a newer source may have lost the key.
    fn newest<'a>(&mut self, key: &[u8], candidates: &'a [Candidate]) -> Option<&'a Entry> {
        let (logged, others): (Vec<&Candidate>, Vec<&Candidate>) =
            candidates.iter().partition(|candidate| candidate.source == self.sources.logged);
        let newer = |best: &'a Candidate, other: &'a Candidate| {
            if is_newer(&other.entry, &best.entry) { other } else { best }
        };
        let best = others.iter().copied().reduce(newer);
        let is_guessed = |candidate: &&Candidate| self.sources.guessed.contains(&candidate.source);
        self.contested += u64::from(others.len() > 1 && others.iter().any(is_guessed));
        let (source, is_older) = best.map_or((usize::MAX, true), |it| (it.source, it.is_older));
        let is_above = |loss: &&mut Loss| loss.is_above(key, source, is_older);
        let Some(loss) = self.active.iter_mut().find(is_above) else {
            return best.map(|best| &best.entry);
        };
        let FindingKind::LostKeys { older, logged: saved, .. } = &mut loss.finding.kind else {
            unreachable!("sources lose keys");
        };
        match (logged.first(), best) {
            (Some(logged), best) if best.is_none_or(|best| best.entry.seq < logged.entry.seq) => {
                *saved += 1;
                Some(&logged.entry)
            }
            (_, best) => {
                *older += u64::from(best.is_some_and(|best| !best.entry.kind.is_tombstone()));
                best.map(|best| &best.entry)
            }
        }
    }
}
