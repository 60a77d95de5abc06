//! Reads the keyspaces and trees of a damaged store from its manifests.

use super::damaged::DamagedStore;
use super::loose::LooseTree;
use super::reading::{LOST_TABLES_ID, Reading, made_up};
use super::report::FindingKind;
use crate::identity::StoreId;
use crate::manifest::{self, KeyspaceFacts, LogRow};
use lsmith_storage::error::{ErrorKind, Result};
use lsmith_storage::names::{CURRENT, FileKind, numbered};
use lsmith_tree::{SeqNo, Slice};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// All that the manifests say, as far as they are readable.
pub(super) struct Known {
    /// All keyspaces, by id.
    pub(super) keyspaces: BTreeMap<u32, KnownKeyspace>,
    /// True if the whole manifest was readable: all trees and marks are exact.
    pub(super) is_exact: bool,
    /// An id above every keyspace id, dropped ones included.
    next_keyspace: u32,
    /// The row of logs, as the manifest has it.
    pub(super) logs: Option<LogRow>,
    /// Who the store is, if that is known.
    pub(super) id: Option<StoreId>,
    /// All writes up to this sequence number were synced.
    pub(super) synced_seq: SeqNo,
    /// The name of the clock, if the manifest has it.
    pub(super) clock: Option<String>,
}

/// A keyspace of the damaged store.
pub(super) struct KnownKeyspace {
    pub(super) state: KeyspaceFacts,
    /// The slices of all runs on storage, newest run first.
    pub(super) runs: Vec<Vec<Slice>>,
    /// True if state and runs are exact.
    pub(super) is_exact: bool,
    /// Tables that may belong to the tree although it does not name them, highest file id first.
    pub(super) unplaced: Vec<u64>,
}

impl Known {
    /// Returns true if keyspace `id` was certainly dropped. Logs may still have writes to it.
    pub(super) fn was_dropped(&self, id: u32) -> bool {
        self.is_exact && id < self.next_keyspace && !self.keyspaces.contains_key(&id)
    }

    /// Returns keyspace `id`, and makes it up if the manifests do not have it.
    pub(super) fn keyspace(&mut self, old: &mut DamagedStore, id: u32) -> &KnownKeyspace {
        self.keyspaces.entry(id).or_insert_with(|| {
            let state = KeyspaceFacts::new(made_up(id), "none".to_string());
            let message = format!("nothing is known of keyspace {id}: it is called {}", state.name);
            old.report(FindingKind::Guessed, &old.dir.clone(), None, message);
            KnownKeyspace { state, runs: Vec::new(), is_exact: false, unplaced: Vec::new() }
        })
    }
}

/// Reads the manifests.
///
/// # Errors
/// `Unsupported` if a manifest, or an undamaged `CURRENT`, has another format.
pub(super) fn read(old: &mut DamagedStore) -> Result<Known> {
    let current = read_current(old)?;
    let mut manifest_ids = old.file_ids(FileKind::Manifest);
    manifest_ids.reverse();
    // Takes the manifest in force, or else the newest whole one. Manifests older than that in force
    // do not count: their tables may be gone.
    manifest_ids.retain(|file_id| current.is_none_or(|current| *file_id >= current));
    manifest_ids.sort_by_key(|file_id| Some(*file_id) != current);
    let mut best: Option<(u64, Reading)> = None;
    let findings_before = old.findings.len();
    for file_id in manifest_ids {
        let findings = old.findings.len();
        let reading = Reading::new(old, file_id)?;
        if reading.is_whole {
            old.findings.drain(findings_before..findings);
            best = Some((file_id, reading));
            break;
        }
        match &best {
            Some(_) => old.findings.truncate(findings),
            None => best = Some((file_id, reading)),
        }
    }
    if let Some((file_id, _)) = &best
        && current != Some(*file_id)
    {
        let path = numbered(&old.dir, FileKind::Manifest, *file_id);
        let message = "this manifest is taken to be the one in force";
        old.report(FindingKind::Guessed, &path, None, message);
    }
    Ok(old.place_tables(best.map(|(_, reading)| reading)))
}

/// Returns the file id of the manifest that `CURRENT` names, if it is readable.
fn read_current(old: &mut DamagedStore) -> Result<Option<u64>> {
    let path = old.dir.join(CURRENT);
    match manifest::read_current(&*old.env, &path) {
        Ok(Some(file_id)) => Ok(Some(file_id)),
        Ok(None) => {
            old.report(FindingKind::Harmless, &path, None, "there is no such file");
            Ok(None)
        }
        Err(error) if error.kind() == ErrorKind::Unsupported && is_sealed(old, &path) => Err(error),
        Err(error) => {
            old.report_error(FindingKind::Harmless, &error);
            Ok(None)
        }
    }
}

/// Returns true if the `CURRENT` at `path` matches its checksum. Otherwise its version may be
/// damaged.
fn is_sealed(old: &DamagedStore, path: &Path) -> bool {
    let read = || {
        let file = old.env.open(path)?;
        let mut bytes = vec![0; file.bytes()?.min(4096) as usize];
        file.read_exact_at(&mut bytes, 0)?;
        Ok::<_, std::io::Error>(bytes)
    };
    let text = read().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    text.is_ok_and(|text| {
        let sealed = text.split_once("checksum ");
        sealed.is_some_and(|(said, sum)| {
            u64::from_str_radix(sum.trim_end(), 16) == Ok(xxh3_64(said.as_bytes()))
        })
    })
}

impl DamagedStore {
    /// Turns `reading` into what is known. If the manifest was damaged, assigns the tables that no
    /// tree names to keyspaces.
    fn place_tables(&mut self, reading: Option<Reading>) -> Known {
        let mut reading = reading.unwrap_or_default();
        let mut unplaced = BTreeMap::<u32, Vec<u64>>::new();
        if !reading.is_whole {
            unplaced = self.unplaced(&mut reading);
        }
        let logs = reading.account.logs;
        let synced_seq = reading.account.synced_seq;
        let next_keyspace = reading.account.next_keyspace;
        let clock = reading.account.clock.take();
        let is_exact = reading.is_whole;
        let keyspaces =
            std::mem::take(&mut reading.account.keyspaces).into_iter().map(|(id, state)| {
                let tree = reading.loose.remove(&id);
                let runs = tree.unwrap_or_else(|| LooseTree::new(&state.tree)).into_runs();
                let unplaced = unplaced.remove(&id).unwrap_or_default();
                (id, KnownKeyspace { state, runs, is_exact, unplaced })
            });
        let keyspaces = keyspaces.collect();
        let id = reading.account.identity.map(|identity| identity.id);
        Known { keyspaces, is_exact, next_keyspace, logs, id, synced_seq, clock }
    }

    /// Returns the tables that no tree names, by keyspace, highest file id first.
    fn unplaced(&mut self, reading: &mut Reading) -> BTreeMap<u32, Vec<u64>> {
        for (id, state) in &reading.account.keyspaces {
            reading.loose.entry(*id).or_insert_with(|| LooseTree::new(&state.tree));
        }
        let trees = reading.loose.values();
        let placed: BTreeSet<u64> =
            trees.flat_map(|tree| tree.tables().map(|table| table.0)).collect();
        let mut tables = self.file_ids(FileKind::Table);
        tables.retain(|table| !placed.contains(table));
        tables.reverse();
        let only = self.only_owner(&reading.loose);
        let mut unplaced = BTreeMap::<u32, Vec<u64>>::new();
        for table in tables {
            let owner = reading.owners.get(&table).or(reading.likely_owners.get(&table)).copied();
            let keyspace = owner.or(only).unwrap_or(LOST_TABLES_ID);
            reading.make_keyspace(keyspace);
            unplaced.entry(keyspace).or_default().push(table);
        }
        for (keyspace, tables) in &unplaced {
            let name = &reading.account.keyspaces[keyspace].name;
            let dir = self.dir.clone();
            let count = tables.len();
            let message = format!("the age of {count} tables among those of keyspace {name}");
            self.report(FindingKind::Guessed, &dir, None, message);
        }
        unplaced
    }
}

impl DamagedStore {
    /// Returns the keyspace of tables that no record names: the only keyspace, or the only one with
    /// missing tables, which were merged into those.
    fn only_owner(&self, trees: &BTreeMap<u32, LooseTree>) -> Option<u32> {
        if trees.is_empty() {
            return Some(0);
        }
        let present: BTreeSet<u64> = self.file_ids(FileKind::Table).into_iter().collect();
        let lacks = |tree: &LooseTree| tree.tables().any(|table| !present.contains(&table.0));
        let only = |mut ids: Vec<u32>| ids.pop().filter(|_| ids.is_empty());
        let lacking = trees.iter().filter(|(_, tree)| lacks(tree));
        only(trees.keys().copied().collect()).or_else(|| only(lacking.map(|(id, _)| *id).collect()))
    }
}
