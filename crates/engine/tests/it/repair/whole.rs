//! Repairs of stores without damage, over all features.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{GROUP_POLICIES, POLICIES, any_mode, restless};
use crate::frame::contents::maps;
use crate::frame::small::plain_at;
use lsmith::env::{Env, MemEnv};
use lsmith::{
    Batch, Expiry, IngestOptions, Keyspace, KeyspaceOptions, RepairOptions, SeqNo, Snapshot, Store,
    TableWriter, TableWriterOptions, repair,
};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

const OLD: &str = "/old";
const NEW: &str = "/new";
const STEPS: usize = 300;

/// A time that is over, and none that [`put_until`](Batch::put_until) takes for a duration.
const PAST: u64 = 1_000_000_000;

/// A time that has not come, in any unit.
const FAR: u64 = 1 << 60;

/// A keyspace, and what can be done in it.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Plain,
    Combines,
    Expires,
    /// It keeps sequence numbers, and has an operator.
    Numbered,
}

const SPACES: [(&str, Kind, bool); 8] = [
    ("plain", Kind::Plain, false),
    ("combines", Kind::Combines, false),
    ("sums", Kind::Combines, false),
    ("expires", Kind::Expires, false),
    ("numbered", Kind::Numbered, false),
    ("member", Kind::Plain, true),
    ("combining-member", Kind::Combines, true),
    ("expiring-member", Kind::Expires, true),
];

fn make(store: &Store, (name, kind, in_group): (&str, Kind, bool), dice: &mut Dice) -> Keyspace {
    if let Ok(found) = store.existing_keyspace(name) {
        return found;
    }
    let combines = matches!(kind, Kind::Combines | Kind::Numbered);
    let policies: &[&str] = if in_group { &GROUP_POLICIES } else { &POLICIES };
    // The first keyspace of a group chooses the policy of all.
    let is_first = SPACES
        .iter()
        .filter(|(_, _, is_grouped)| in_group && *is_grouped)
        .all(|(other, ..)| store.existing_keyspace(other).is_err());
    let policy = is_first.then(|| (*dice.pick(policies)).into());
    let options = KeyspaceOptions {
        policy,
        group: in_group.then(|| "group".to_string()),
        keep_numbers: (kind == Kind::Numbered).then_some(true),
        operator: combines.then(|| "counter".to_string()),
        expiry: (kind == Kind::Expires).then_some(Expiry::default()),
        ..KeyspaceOptions::default()
    };
    store.keyspace_with(name, &options).unwrap()
}

fn key(dice: &mut Dice) -> Vec<u8> {
    format!("{:03}", dice.below(20)).into_bytes()
}

fn number(dice: &mut Dice) -> [u8; 8] {
    dice.number().to_le_bytes()
}

/// Adds a few writes of any kind to `batch`.
fn write(batch: &mut Batch, space: &Keyspace, kind: Kind, dice: &mut Dice) {
    for _ in 0..1 + dice.below(5) {
        let key = key(dice);
        match (dice.below(10), kind) {
            (0 | 1, _) => batch.delete(space, key),
            (2, _) if dice.chance(30) => {
                let end = format!("{:03}", dice.below(20)).into_bytes();
                let range = key.clone().min(end.clone())..key.max(end);
                batch.delete_range(space, range);
            }
            (2..=6, Kind::Combines | Kind::Numbered) => batch.combine(space, key, number(dice)),
            (2..=6, Kind::Expires) => {
                batch.put_until(space, key, number(dice), *dice.pick(&[PAST, FAR]));
            }
            _ => batch.put(space, key, number(dice)),
        }
    }
}

/// Ingests a table with or without numbers of its own. Some arrivals are refused.
fn ingest(disk: &MemEnv, store: &Store, space: &Keyspace, kind: Kind, dice: &mut Dice) {
    let path = Path::new("/arriving");
    // Power loss may have brought it back.
    let _ = disk.remove_file(path);
    let mut entries = BTreeMap::new();
    for _ in 0..1 + dice.below(20) {
        entries.insert(key(dice), (number(dice), 1 + dice.below(2000) as u64, dice.below(4)));
    }
    let options = TableWriterOptions {
        env: Arc::new(disk.clone()),
        operator: space.operator(),
        ..TableWriterOptions::default()
    };
    let mut table = TableWriter::create_with(path, &options).unwrap();
    for (key, (value, seq, choice)) in entries {
        let done = match (kind, choice) {
            (Kind::Numbered, 0) => table.delete_at(key, SeqNo(seq)),
            (Kind::Numbered, 1) => table.combine_at(key, value, SeqNo(seq)),
            (Kind::Numbered, _) => table.put_at(key, value, SeqNo(seq)),
            (_, 0) => table.delete(key),
            (Kind::Combines, 1) => table.combine(key, value),
            _ => table.put(key, value),
        };
        done.unwrap();
    }
    table.finish().unwrap();
    let _ = store.ingest(space, &[path], &IngestOptions::default());
    disk.remove_file(path).unwrap();
}

/// Does something of any kind.
fn step(disk: &MemEnv, store: &Store, held: &mut Vec<Snapshot>, dice: &mut Dice) {
    let made = *dice.pick(&SPACES);
    let (_, kind, in_group) = made;
    let space = make(store, made, dice);
    match dice.below(40) {
        0 => store.flush().unwrap(),
        1 => space.flush().unwrap(),
        2 => space.merge().unwrap(),
        3 if !in_group => space.set_merge_policy(*dice.pick::<&str>(&POLICIES)).unwrap(),
        4 if held.len() < 3 => held.push(store.snapshot()),
        5 | 6 if !held.is_empty() => drop(held.swap_remove(dice.below(held.len()))),
        7 if dice.chance(20) => space.clear().unwrap(),
        8 if !matches!(kind, Kind::Numbered) && !in_group => {
            let mut load = space.bulk_load().unwrap();
            for number in 0..dice.below(30) {
                load.put(format!("{number:03}"), 7_u64.to_le_bytes()).unwrap();
            }
            load.finish().unwrap();
        }
        9 | 10 if !in_group && kind != Kind::Expires => ingest(disk, store, &space, kind, dice),
        _ => {
            let mut batch = Batch::new();
            write(&mut batch, &space, kind, dice);
            let other = *dice.pick(&SPACES);
            write(&mut batch, &make(store, other, dice), other.1, dice);
            store.write(batch, any_mode(dice)).unwrap();
        }
    }
}

/// What broke: below operands, a value that had forgotten its sequence number counted as older than
/// a deletion in an older run that had kept its number.
#[test]
fn a_store_with_all_features_is_copied_as_opening_shows_it() {
    with_seeds(60, |seed| {
        let mut dice = Dice::new(seed);
        let mut disk = MemEnv::new();
        for _ in 0..1 + dice.below(3) {
            let builder = plain_at(OLD, &disk);
            let builder = restless(builder, &mut dice).lockstep(dice.chance(70));
            let store = builder.open().unwrap();
            let mut held = Vec::new();
            (0..STEPS).for_each(|_| step(&disk, &store, &mut held, &mut dice));
            match dice.below(3) {
                0 => disk = disk.process_crash_clone(),
                1 => disk = disk.crash_clone(dice.number(), 0.7),
                _ => {}
            }
        }
        let copy = disk.process_crash_clone();
        let expected = maps(&Store::builder(OLD).env(Arc::new(copy)).open().unwrap());
        let options = RepairOptions { env: Arc::new(disk.clone()), ..RepairOptions::default() };
        let report = repair(&options, OLD, NEW).unwrap();
        assert!(report.is_exact(), "{report:#?}");
        let new = Store::builder(NEW).env(Arc::new(disk)).open().unwrap();
        let found = maps(&new);
        assert!(found.keys().eq(expected.keys()));
        for (name, expected) in &expected {
            let differing: Vec<String> = expected
                .keys()
                .chain(found[name].keys())
                .filter(|key| found[name].get(*key) != expected.get(*key))
                .map(|key| key.escape_ascii().to_string())
                .collect();
            assert!(differing.is_empty(), "keyspace {name} differs at {differing:?}");
        }
    });
}
