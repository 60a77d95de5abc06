//! A store that dies at every step of dropping, clearing and renaming.
//!
//! Promised: each of these calls, once it has returned, survives power loss, with everything before
//! it. A call that was interrupted has happened or has not. No file of a dropped keyspace stays.

use crate::dice::quick;
use crate::frame::small::small;
use lsmith::env::{Effect, Env, Fault, FaultEnv, Lasting, Loss, MemEnv};
use lsmith::{KeyspaceOptions, PersistMode, Store};
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

type Content = BTreeMap<String, BTreeSet<String>>;

#[derive(Clone, Copy, Debug)]
enum Step {
    Put(&'static str, u32),
    Drop(&'static str),
    Clear(&'static str),
    Rename(&'static str, &'static str),
    Flush,
}

use Step::{Clear, Drop, Flush, Put, Rename};

/// `a` and `b` are keyspaces of their own, `m` and `n` belong to the group `g`.
const STEPS: [Step; 24] = [
    Put("a", 40),
    Put("b", 40),
    Put("m", 20),
    Put("n", 20),
    Clear("a"),
    Put("a", 3),
    Rename("b", "c"),
    Put("c", 10),
    Clear("m"),
    Flush,
    Drop("a"),
    Put("a", 2),
    Rename("m", "b"),
    Put("b", 3),
    Clear("n"),
    Clear("c"),
    Put("c", 2),
    Drop("g"),
    Put("m", 30),
    Drop("c"),
    Drop("a"),
    Put("n", 1),
    Drop("g"),
    Put("a", 1),
];

fn group_of(name: &str) -> Option<String> {
    ["m", "n"].contains(&name).then(|| "g".to_string())
}

/// Returns what `content` becomes. The number of the step is in its keys.
fn applied(mut content: Content, number: usize, step: Step) -> Content {
    match step {
        Put(name, count) => {
            let keys = content.entry(name.to_string()).or_default();
            keys.extend((0..count).map(|key| format!("{number:03} {key:03}")));
        }
        // The keyspaces of the group, whatever they are called then.
        Drop("g") => ["m", "n", "b"].iter().for_each(|name| drop(content.remove(*name))),
        Drop(name) => drop(content.remove(name)),
        Clear(name) => content.get_mut(name).unwrap().clear(),
        Rename(from, to) => {
            let keys = content.remove(from).unwrap();
            content.insert(to.to_string(), keys);
        }
        Flush => {}
    }
    content
}

/// Does `step`, so that it survives power loss.
fn carry_out(store: &Store, number: usize, step: Step) -> lsmith::Result<()> {
    match step {
        Put(name, count) => {
            let space = match store.existing_keyspace(name) {
                Ok(found) => found,
                Err(_) => {
                    let group = group_of(name);
                    store.keyspace_with(name, &KeyspaceOptions { group, ..Default::default() })?
                }
            };
            for key in 0..count {
                space.put(format!("{number:03} {key:03}"), [b'v'; 40])?;
            }
            store.persist(PersistMode::SyncData)
        }
        Drop(name) => store.drop_keyspace(name),
        Clear(name) => store.existing_keyspace(name)?.clear(),
        Rename(from, to) => store.rename_keyspace(from, to),
        Flush => store.flush(),
    }
}

fn content_of(store: &Store) -> Content {
    let keys = |name: &String| {
        let space = store.existing_keyspace(name).unwrap();
        space.iter().map(|entry| String::from_utf8(entry.unwrap().0.to_vec()).unwrap()).collect()
    };
    store.keyspaces().into_iter().map(|name| (name.clone(), keys(&name))).collect()
}

/// Returns true if `found` lies between `before` and `after`, which a put may have done in part.
fn is_between(found: &Content, before: &Content, after: &Content, step: Option<&Step>) -> bool {
    let is_put = matches!(step, Some(Put(..)));
    found == before
        || found == after
        || is_put
            && before.iter().all(|(name, keys)| found[name].is_superset(keys))
            && found.iter().all(|(name, keys)| keys.is_subset(&after[name]))
}

/// Runs the steps with a fault at operation `stop` of the disk. Returns what the disk then has, and
/// the number of steps done.
fn run(stop: u64, effect: Effect) -> (MemEnv, usize, u64) {
    let disk = MemEnv::new();
    let env = FaultEnv::over(disk.clone());
    let kind = ErrorKind::Other;
    env.set_with(Fault { class: None, after: stop, lasting: Lasting::Forever, kind }, effect);
    let mut done = 0;
    if let Ok(store) = small(&env).memtable_bytes(1000).policy("minlatency(k=3)").open() {
        for (number, step) in STEPS.iter().enumerate() {
            if carry_out(&store, number, *step).is_err() {
                break;
            }
            done = number + 1;
        }
        // The process dies, or the machine does: the store is not closed.
        std::mem::forget(store);
    }
    (disk, done, env.count_all())
}

fn check(disk: &MemEnv, done: usize, contents: &[Content], what: &str) {
    let store = small(disk)
        .memtable_bytes(1000)
        .policy("minlatency(k=3)")
        .open()
        .unwrap_or_else(|error| panic!("{what}: {error}"));
    let found = content_of(&store);
    let after = &contents[(done + 1).min(STEPS.len())];
    let between = is_between(&found, &contents[done], after, STEPS.get(done));
    assert!(between, "{what}: after {done} steps found {found:?}");
    let damage = store.verify().unwrap();
    assert!(damage.is_empty(), "{what}: {damage:?}");
    store.settle().unwrap();
    let tables: u64 = store
        .keyspaces()
        .iter()
        .map(|name| store.existing_keyspace(name).unwrap().stats().tables)
        .sum();
    let names = disk.list(Path::new("/store")).unwrap();
    let files = names.iter().filter(|name| name.ends_with(".table")).count();
    assert_eq!(files as u64, tables, "{what}: files of tables, and tables");
    // It goes on.
    let last = store.keyspace("last").unwrap();
    last.put("k", "v").unwrap();
    store.persist(PersistMode::SyncData).unwrap();
    let store = small(&disk.power_loss(7, Loss::Everything))
        .memtable_bytes(1000)
        .policy("minlatency(k=3)")
        .open()
        .unwrap();
    assert!(store.existing_keyspace("last").unwrap().contains("k").unwrap(), "{what}");
    store.drop_keyspace("last").unwrap();
    assert_eq!(content_of(&store), found, "{what}");
}

#[test]
fn store_that_dies_at_any_step_of_a_change_of_keyspaces_has_it_or_has_it_not() {
    let mut contents = vec![Content::new()];
    for (number, step) in STEPS.iter().enumerate() {
        contents.push(applied(contents[number].clone(), number, *step));
    }
    let (disk, done, operations) = run(u64::MAX, Effect::Nothing);
    assert_eq!(done, STEPS.len());
    check(&disk.process_crash_clone(), done, &contents, "no stop");
    assert!(operations > 150, "{operations}");
    for stop in (0..operations).step_by(if quick() { 5 } else { 1 }) {
        for effect in [Effect::Nothing, Effect::Wholly] {
            let (disk, done, _) = run(stop, effect);
            let what = format!("stop {stop}, {effect:?}");
            check(&disk.process_crash_clone(), done, &contents, &what);
            for loss in [Loss::Everything, Loss::Torn { logs: false }] {
                check(&disk.power_loss(stop, loss), done, &contents, &format!("{what} {loss:?}"));
            }
        }
    }
}
