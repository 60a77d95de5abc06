//! A history of steps that change a store, and the content after each.
//!
//! A step is a batch over all keyspaces, or a bulk load or an ingested table in one, or the end of
//! all that one keyspace holds. Each step that writes does so with its own number under [`LAST`],
//! so that one read tells which steps the store has. Its content must be an exact prefix of the
//! history.

use crate::dice::Dice;
use crate::frame::contents::{Map, pair};
use lsmith::{
    Batch, IngestOptions, Isolation, KeyspaceOptions, PersistMode, Snapshot, Store, TableWriter,
    TableWriterOptions,
};
use std::path::Path;

/// The key under which every step writes its number. The last of all keys.
const LAST: &[u8] = b"~last";

pub(crate) const SPACES: [&str; 3] = ["left", "middle", "right"];

/// The content of all keyspaces.
pub(crate) type Maps = [Map; 3];

#[derive(Clone, Debug)]
enum Change {
    Put(Vec<u8>),
    Delete,
    /// The key is absent.
    Insert(Vec<u8>),
    /// The key was inserted once.
    Remove,
    /// The number is added to the number of the key.
    Combine(i64),
    /// All keys from the key up to this one are deleted.
    DeleteTo(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Write {
    space: usize,
    key: Vec<u8>,
    change: Change,
}

/// One step. The entries of a load are sorted, and of one keyspace.
#[derive(Clone, Debug)]
struct Step {
    writes: Vec<Write>,
    load: Option<Load>,
    /// The keyspace whose entries all go.
    end: Option<End>,
}

impl Step {
    /// Returns true if a transaction can write it.
    fn suits_a_transaction(&self) -> bool {
        let suits = |change: &Change| {
            matches!(change, Change::Put(_) | Change::Delete | Change::Combine(_))
        };
        self.writes.iter().all(|write| suits(&write.change))
    }
}

/// How all entries of a keyspace go. It is not the first one, which keeps the number of the step
/// before: that step is a batch.
#[derive(Clone, Copy, Debug)]
enum End {
    Clear(usize),
    Drop(usize),
}

impl End {
    fn space(self) -> usize {
        let (End::Clear(space) | End::Drop(space)) = self;
        space
    }
}

/// How the entries of a step go straight into tables of a keyspace.
#[derive(Clone, Copy, Debug)]
enum Load {
    Bulk(usize),
    Ingest(usize),
}

/// The table that is ingested, outside of the store.
const MADE: &str = "/made.table";

/// All steps that were tried, and how far they got.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    steps: Vec<Step>,
    /// The content after the acknowledged steps.
    pub(crate) maps: Maps,
    pub(crate) acknowledged: usize,
    /// The number of steps that must survive power loss.
    pub(crate) synced: usize,
    /// True if the keyspaces belong to one group.
    pub(crate) in_group: bool,
}

fn apply(maps: &mut Maps, step: &Step) {
    if let Some(end) = step.end {
        maps[end.space()].clear();
    }
    for Write { space, key, change } in &step.writes {
        match change {
            Change::Put(value) | Change::Insert(value) => {
                maps[*space].insert(key.clone(), value.clone());
            }
            Change::Delete | Change::Remove => {
                maps[*space].remove(key);
            }
            Change::Combine(number) => {
                let counter = maps[*space].entry(key.clone()).or_insert_with(|| vec![0; 8]);
                let sum = i64::from_le_bytes(counter[..].try_into().unwrap());
                *counter = sum.wrapping_add(*number).to_le_bytes().to_vec();
            }
            Change::DeleteTo(end) => maps[*space].retain(|other, _| other < key || other >= end),
        }
    }
}

/// Returns a number without a byte of 0, as [`value`] has none.
fn number(dice: &mut Dice) -> i64 {
    i64::from_le_bytes(dice.number().to_le_bytes().map(|byte| byte | 1))
}

/// Returns a change of a counter: mostly an addition.
fn count(dice: &mut Dice) -> Change {
    match dice.below(10) {
        0 => Change::Delete,
        1 => Change::Put(number(dice).to_le_bytes().to_vec()),
        _ => Change::Combine(number(dice)),
    }
}

fn value(dice: &mut Dice) -> Vec<u8> {
    let length = if dice.chance(4) { 1500 } else { dice.below(60) };
    // No zeros: so no damage of a record can look like a torn end.
    dice.bytes(length).into_iter().map(|byte| byte | 1).collect()
}

impl History {
    /// Returns the number of steps that were tried.
    pub(crate) fn tried(&self) -> usize {
        self.steps.len()
    }

    /// Forgets all steps but the first `found`, which are the history from now on.
    pub(crate) fn go_back_to(&mut self, found: usize) {
        self.steps.truncate(found);
        self.maps = self.after(found);
        (self.acknowledged, self.synced) = (found, found);
    }

    /// Returns the content after the first `count` steps.
    fn after(&self, count: usize) -> Maps {
        let mut maps = Maps::default();
        self.steps[..count].iter().for_each(|step| apply(&mut maps, step));
        maps
    }

    fn mark(&self, space: usize) -> Write {
        let number = (self.steps.len() + 1).to_string().into_bytes();
        Write { space, key: LAST.to_vec(), change: Change::Put(number) }
    }

    /// Returns a batch over all keyspaces.
    fn batch(&self, dice: &mut Dice) -> Step {
        let mut writes: Vec<Write> = (0..SPACES.len()).map(|space| self.mark(space)).collect();
        let mut maps = self.maps.clone();
        for _ in 0..1 + dice.below(6) {
            let space = dice.below(SPACES.len());
            if dice.chance(4) {
                let kind = *dice.pick(b"ipc");
                let [mut from, mut end] = [dice.below(60), dice.below(60)];
                (from, end) = (from.min(end), from.max(end) + 1);
                let [key, end] =
                    [from, end].map(|n| format!("{}{n:03}", kind as char).into_bytes());
                let write = Write { space, key, change: Change::DeleteTo(end) };
                apply(&mut maps, &Step { writes: vec![write.clone()], load: None, end: None });
                writes.push(write);
                continue;
            }
            // Keys that are inserted and removed, counters, and keys that are put and deleted.
            let write = if dice.chance(20) {
                let key = format!("c{:03}", dice.below(20)).into_bytes();
                Write { space, key, change: count(dice) }
            } else if dice.chance(40) {
                let key = format!("i{:03}", dice.below(60)).into_bytes();
                let change = if maps[space].contains_key(&key) {
                    Change::Remove
                } else {
                    Change::Insert(value(dice))
                };
                Write { space, key, change }
            } else {
                let key = format!("p{:03}", dice.below(60)).into_bytes();
                let change =
                    if dice.chance(25) { Change::Delete } else { Change::Put(value(dice)) };
                Write { space, key, change }
            };
            apply(&mut maps, &Step { writes: vec![write.clone()], load: None, end: None });
            writes.push(write);
        }
        Step { writes, load: None, end: None }
    }

    /// Returns a load into one keyspace, over keys that are put and deleted, and over counters.
    fn load(&self, dice: &mut Dice) -> Step {
        let space = dice.below(SPACES.len());
        let mut keys: Vec<usize> = (0..1 + dice.below(40)).map(|_| dice.below(60)).collect();
        keys.sort_unstable();
        keys.dedup();
        // A group does not ingest.
        let ingests = !self.in_group && dice.chance(50);
        let write = |key_number: usize| {
            let key = format!("p{key_number:03}").into_bytes();
            let change = match key_number % 3 {
                0 if ingests => Change::Delete,
                _ => Change::Put(key_number.to_string().into_bytes()),
            };
            Write { space, key, change }
        };
        let count = |counter: usize| {
            let key = format!("c{counter:03}").into_bytes();
            Write { space, key, change: Change::Combine(number(dice)) }
        };
        let counters = if ingests { 0..5 } else { 0..0 };
        let mut writes: Vec<Write> =
            counters.map(count).chain(keys.into_iter().map(write)).collect();
        writes.push(self.mark(space));
        let load = if ingests { Load::Ingest(space) } else { Load::Bulk(space) };
        Step { writes, load: Some(load), end: None }
    }

    /// Returns a step that ends all entries of a keyspace, if the last step allows that.
    fn end(&self, dice: &mut Dice) -> Option<Step> {
        self.steps.last().filter(|step| step.load.is_none() && step.end.is_none())?;
        let space = 1 + dice.below(SPACES.len() - 1);
        let drops = !self.in_group && dice.chance(50);
        let end = if drops { End::Drop(space) } else { End::Clear(space) };
        Some(Step { writes: Vec::new(), load: None, end: Some(end) })
    }

    /// Returns true if the last step dropped a keyspace, which snapshots do not keep.
    pub(crate) fn has_dropped(&self) -> bool {
        matches!(self.steps.last(), Some(Step { end: Some(End::Drop(_)), .. }))
    }

    /// Tries the next step, and notes how far it got. After an error the step may or may not be
    /// there; reopening the store decides that.
    pub(crate) fn go_on(
        &mut self,
        store: &Store,
        mode: PersistMode,
        dice: &mut Dice,
    ) -> lsmith::Result<()> {
        make_spaces(store, self.in_group)?;
        let end = if dice.chance(2) { self.end(dice) } else { None };
        let step = match end {
            Some(end) => end,
            None if dice.chance(2) => self.load(dice),
            None => self.batch(dice),
        };
        self.steps.push(step.clone());
        match step.end {
            Some(End::Clear(space)) => store.existing_keyspace(SPACES[space])?.clear()?,
            Some(End::Drop(space)) => store.drop_keyspace(SPACES[space])?,
            None => {}
        }
        match step.load {
            Some(Load::Ingest(space)) => ingest(store, SPACES[space], &step.writes, dice)?,
            Some(Load::Bulk(space)) => {
                let mut load = store.keyspace(SPACES[space])?.bulk_load()?;
                for Write { key, change, .. } in &step.writes {
                    let Change::Put(value) = change else { panic!("a load puts") };
                    load.put(key, value)?;
                }
                load.finish()?;
            }
            None if step.end.is_some() => {}
            None if self.steps.len().is_multiple_of(3) && step.suits_a_transaction() => {
                commit(store, &step, mode)?;
            }
            None => store.write(batch_of(store, &step)?, mode)?,
        }
        apply(&mut self.maps, &step);
        self.acknowledged = self.steps.len();
        // A load is newer than all that was written before it, and does not survive without that.
        // So is an end.
        if mode != PersistMode::Buffer || step.load.is_some() || step.end.is_some() {
            self.synced = self.acknowledged;
        }
        make_spaces(store, self.in_group)
    }

    /// Returns the number of steps in `store`, as far as numbers and missing numbers tell.
    fn found(&self, store: &Store) -> usize {
        let found = last(store);
        let end = self.steps.get(found).and_then(|step| step.end);
        let is_empty = |end: End| {
            let space = store.existing_keyspace(SPACES[end.space()]);
            space.map_or(true, |space| !space.contains(LAST).unwrap())
        };
        found + usize::from(end.is_some_and(is_empty))
    }

    /// Returns the number of steps in `store`. Asserts that its content is that after these steps.
    pub(crate) fn check(&self, store: &Store) -> usize {
        let found = self.found(store);
        assert!(found <= self.tried(), "step {found} was never tried, of {}", self.tried());
        let expected = self.after(found);
        for (name, map) in SPACES.iter().zip(&expected) {
            let Ok(space) = store.existing_keyspace(name) else {
                assert!(map.is_empty(), "keyspace {name} is missing with step {found}");
                continue;
            };
            let forward: Map = space.iter().map(pair).collect();
            assert!(forward == *map, "keyspace {name} is not as after step {found}");
            assert!(space.iter().rev().map(pair).eq(map.clone().into_iter().rev()));
            for (key, value) in map {
                assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]));
            }
        }
        found
    }
}

/// Writes a table with `writes`, and ingests it.
fn ingest(store: &Store, space: &str, writes: &[Write], dice: &mut Dice) -> lsmith::Result<()> {
    let made = Path::new(MADE);
    // A call that failed has left it.
    let _ = store.env().remove_file(made);
    let operator = Some("counter".into());
    let env = store.env().clone();
    let options = TableWriterOptions { env, operator, ..TableWriterOptions::default() };
    let mut writer = TableWriter::create_with(made, &options)?;
    for Write { key, change, .. } in writes {
        match change {
            Change::Combine(number) => writer.combine(key, number.to_le_bytes())?,
            Change::Put(value) => writer.put(key, value)?,
            _ => writer.delete(key)?,
        }
    }
    writer.finish()?;
    let options = IngestOptions::default().link(dice.chance(50));
    store.ingest(&store.keyspace(space)?, &[made], &options).map(drop)
}

/// Asserts that `snapshot` shows `maps`.
pub(crate) fn check_snapshot(snapshot: &Snapshot, maps: &Maps) -> lsmith::Result<()> {
    for (name, map) in SPACES.iter().zip(maps) {
        let space = snapshot.store().existing_keyspace(name)?;
        let mut found = Map::new();
        for entry in snapshot.range::<&[u8]>(&space, ..) {
            let (key, value) = entry?;
            found.insert(key.to_vec(), value.to_vec());
        }
        assert!(found == *map, "a snapshot of keyspace {name} does not show what it did");
    }
    Ok(())
}

/// Returns the number of the last step in `store`; 0 if there is none.
fn last(store: &Store) -> usize {
    let number = |name| {
        let found = store.existing_keyspace(name).ok()?.get(LAST).unwrap()?;
        std::str::from_utf8(&found).unwrap().parse::<usize>().ok()
    };
    SPACES.into_iter().filter_map(number).max().unwrap_or(0)
}

fn make_spaces(store: &Store, in_group: bool) -> lsmith::Result<()> {
    for (name, memtable_bytes) in SPACES.into_iter().zip([700, 5000, 100_000]) {
        if store.existing_keyspace(name).is_err() {
            let alone = KeyspaceOptions {
                memtable_bytes: Some(memtable_bytes),
                operator: Some("counter".into()),
                ..KeyspaceOptions::default()
            };
            let policy = Some("minlatency(k=2)".into());
            let memtable_bytes = Some(2000);
            let group = Some("all".into());
            let operator = alone.operator.clone();
            let together = KeyspaceOptions {
                policy,
                memtable_bytes,
                group,
                keep_numbers: None,
                operator,
                ..KeyspaceOptions::default()
            };
            // Its policy may have been changed.
            let others = KeyspaceOptions { policy: None, ..together.clone() };
            let options = match name {
                _ if !in_group => alone,
                name if name == SPACES[0] => together,
                _ => others,
            };
            store.keyspace_with(name, &options)?;
        }
    }
    Ok(())
}

/// Writes a step by a transaction.
fn commit(store: &Store, step: &Step, mode: PersistMode) -> lsmith::Result<()> {
    let mut transaction = store.transaction(Isolation::Serializable);
    for Write { space, key, change } in &step.writes {
        let space = store.keyspace(SPACES[*space])?;
        match change {
            Change::Put(value) => transaction.put(&space, key, value)?,
            Change::Delete => transaction.delete(&space, key)?,
            Change::Combine(number) => transaction.combine(&space, key, number.to_le_bytes())?,
            _ => unreachable!("a transaction has no such write"),
        }
    }
    transaction.commit(mode).map(drop)
}

fn batch_of(store: &Store, step: &Step) -> lsmith::Result<Batch> {
    let spaces = [0, 1, 2].map(|index| store.keyspace(SPACES[index]));
    let mut batch = Batch::new();
    for Write { space, key, change } in &step.writes {
        let Ok(space) = &spaces[*space] else { continue };
        match change {
            Change::Put(value) => batch.put(space, key, value),
            Change::Delete => batch.delete(space, key),
            Change::Insert(value) => batch.put_new_unchecked(space, key, value),
            Change::Remove => batch.delete_single_unchecked(space, key),
            Change::Combine(number) => batch.combine(space, key, number.to_le_bytes()),
            Change::DeleteTo(end) => batch.delete_range(space, &key[..]..&end[..]),
        }
    }
    for space in spaces {
        space?;
    }
    Ok(batch)
}
