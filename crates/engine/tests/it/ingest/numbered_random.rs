//! Random tables with sequence numbers of their own, ingested between random writes.
//!
//! Promised: what [numbered](crate::ingest::numbered) says, of every history.

use crate::dice::Dice;
use crate::frame::contents::{Map, contents, seen};
use crate::ingest::files::{key, tables};
use crate::ingest::mixed::under_every_policy;
use crate::ingest::numbered::{Numbered, appending, keeping, write_table};
use crate::store::model::policies;
use lsmith::env::{Env, MemEnv};
use lsmith::{IngestOptions, Keyspace, KeyspaceOptions, PersistMode, Snapshot, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// All changes of each key that ever were, by number. `None` deletes the key. What begins with `+`
/// is an operand, in keyspaces with an operator.
type History = BTreeMap<Vec<u8>, BTreeMap<u64, Option<Vec<u8>>>>;
fn newest(history: &History) -> Map {
    let of = |(key, changes): (&Vec<u8>, &BTreeMap<u64, Option<Vec<u8>>>)| {
        let mut value: Option<Vec<u8>> = None;
        for change in changes.values() {
            match change {
                Some(operand) if operand.starts_with(b"+") => {
                    value.get_or_insert_default().extend_from_slice(operand);
                }
                change => value.clone_from(change),
            }
        }
        Some((key.clone(), value?))
    };
    history.iter().filter_map(of).collect()
}
#[test]
fn random_arrivals_agree_with_the_history() {
    under_every_policy(mix);
}

/// Returns tables whose key ranges are disjoint, with numbers below, around or above `now`.
/// If there is an operator, some are operands. Some were there before.
fn arriving(
    dice: &mut Dice,
    now: u64,
    history: &History,
    (value, combines): (&str, bool),
) -> Vec<Numbered> {
    let numbers = [(1, now.max(1)), (now / 2 + 1, now + 50), (now + 1, now + 200)];
    let mut all = Vec::new();
    let mut from = dice.below(100);
    for _ in 0..=dice.below(3) {
        let upto = from + 1 + dice.below(150);
        let (least, most) = *dice.pick(&numbers);
        let mut entries = Numbered::new();
        for number in (from..upto).step_by(1 + dice.below(9)) {
            let seq = least + dice.below((most - least + 1) as usize) as u64;
            let change = change(dice, value, combines);
            let known = history.get(&key(number));
            if let Some(known) = known.filter(|_| dice.chance(10)) {
                let known = known.iter().nth(dice.below(known.len()));
                let (seq, change) = known.expect("a key of the history has changes");
                entries.insert(key(number), (*seq, change.clone()));
            } else if known.is_none_or(|known| !known.contains_key(&seq)) {
                entries.insert(key(number), (seq, change));
            }
        }
        if !entries.is_empty() {
            all.push(entries);
        }
        from = upto + dice.below(100);
    }
    all
}

/// Returns a change: an operand if there is an operator, a put or a deletion.
fn change(dice: &mut Dice, value: &str, combines: bool) -> Option<Vec<u8>> {
    match dice.below(10) {
        0 | 1 => None,
        2..=5 if combines => Some(format!("+{value}").into_bytes()),
        _ => Some(value.as_bytes().to_vec()),
    }
}

/// Ingests `tables`, all at once. They may only be refused for deletions that were dropped or
/// operands that were combined, also because one of these comes again.
fn arrive(
    env: &MemEnv,
    space: &Keyspace,
    history: &mut History,
    tables: Vec<Numbered>,
    link: bool,
) {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let write = |entries: &Numbered| {
        let number = WRITTEN.fetch_add(1, Ordering::Relaxed);
        write_table(env, &format!("/table-{number}"), entries)
    };
    let files: Vec<PathBuf> = tables.iter().map(write).rev().collect();
    match space.store().ingest(space, &files, &IngestOptions::default().link(link)) {
        Ok(_) => {
            for (key, (seq, change)) in tables.into_iter().flatten() {
                history.entry(key).or_default().insert(seq, change);
            }
        }
        Err(error) => {
            let again = space.operator().is_some().then_some("has another entry with number");
            let says = [Some("could come back"), again];
            let is_known = |says: &str| error.to_string().contains(says);
            assert!(says.into_iter().flatten().any(is_known), "{error}");
        }
    }
    files.iter().for_each(|file| env.remove_file(file).unwrap());
}

/// Writes a random change of a key, which gets the next number.
fn write(
    dice: &mut Dice,
    space: &Keyspace,
    history: &mut History,
    (value, combines): (&str, bool),
) {
    let key = key(dice.below(400));
    let change = change(dice, value, combines);
    match &change {
        Some(operand) if operand.starts_with(b"+") => space.combine(&key, operand).unwrap(),
        Some(value) => space.put(&key, value).unwrap(),
        None => space.delete(&key).unwrap(),
    }
    let seq = space.store().snapshot().seq().0;
    history.entry(key).or_default().insert(seq, change);
}

fn mix(dice: &mut Dice, policy: &str, lockstep: bool) {
    let mut env = MemEnv::new();
    let mut store = appending(&env, policy).lockstep(lockstep).open().unwrap();
    let mut history = History::new();
    let mut held: Vec<(Snapshot, Map)> = Vec::new();
    let combines = dice.chance(50);
    let space_of = |store: &Store| {
        let operator = combines.then(|| "append".to_string());
        store.keyspace_with("default", &KeyspaceOptions { operator, ..keeping() }).unwrap()
    };
    for step in 0..80 {
        let space = space_of(&store);
        let value = step.to_string();
        match dice.below(20) {
            0..=4 => {
                let now = store.snapshot().seq().0;
                let tables = arriving(dice, now, &history, (&value, combines));
                arrive(&env, &space, &mut history, tables, dice.chance(50));
            }
            5 => space.merge().unwrap(),
            6 => space.flush().unwrap(),
            7 => space.set_merge_policy(dice.pick::<String>(&policies())).unwrap(),
            8 => {
                held.clear();
                store.persist(PersistMode::SyncAll).unwrap();
                drop((space, store));
                if dice.chance(50) {
                    env = env.crash_clone(step, 0.3);
                }
                store = appending(&env, policy).lockstep(lockstep).open().unwrap();
            }
            9..=11 => held.push((store.snapshot(), newest(&history))),
            12 if !held.is_empty() => drop(held.swap_remove(dice.below(held.len()))),
            _ => {
                for _ in 0..dice.below(20) {
                    write(dice, &space, &mut history, (&value, combines));
                }
            }
        }
        let probe = key(dice.below(500));
        let space = space_of(&store);
        let found = space.get(&probe).unwrap();
        let now = newest(&history);
        assert_eq!(found.as_deref(), now.get(&probe).map(Vec::as_slice), "{policy} step {step}");
        if let Some((snapshot, map)) = held.first() {
            let found = snapshot.get(&space, &probe).unwrap();
            assert_eq!(found.as_deref(), map.get(&probe).map(Vec::as_slice), "{policy}");
        }
    }
    let space = space_of(&store);
    let expected = newest(&history);
    assert!(contents(&space) == expected, "{policy}");
    for (snapshot, map) in held {
        assert!(seen(&snapshot, &space) == map, "{policy}");
    }
    store.settle().unwrap();
    assert!(contents(&space) == expected, "{policy}");
    assert!(store.verify().unwrap().is_empty());
    assert_eq!(store.stats().plans_refused, 0);
    let tree = space.tree();
    let slices = tree.disk_runs().flat_map(|run| run.slices().iter());
    let named: BTreeSet<u64> = slices.map(|slice| slice.table().id.0).collect();
    assert_eq!(tables(&env), named.len(), "{policy}: files of no table stayed");
}
