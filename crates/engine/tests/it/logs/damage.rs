//! Logs of several lives, with damage in one.
//!
//! Promised: what was synced in a life that ended well, or before another life began, is read back
//! in every later life, or opening fails with `Corruption`. It does not matter how many writes a
//! life has made, nor what has become of a log: cut by a byte or at a record, emptied, cut to its
//! header, or removed. A repair that finds nothing to tell has lost nothing.

use crate::dice::{Dice, with_seeds};
use crate::frame::small::{DIR, open, plain};
use lsmith::env::{Effect, Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{
    Builder, DEFAULT_KEYSPACE, ErrorKind, KeyspaceOptions, PersistMode, RepairOptions, Store,
    repair,
};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

const NEW: &str = "/new";

/// Writes by keyspace and key.
type Writes = BTreeSet<(String, u32)>;

fn builder(env: &MemEnv) -> Builder {
    plain(env).log_bytes(4 << 10).lockstep(true)
}

fn logs(env: &MemEnv) -> Vec<PathBuf> {
    let names = env.list(Path::new(DIR)).unwrap().into_iter();
    names.filter(|name| name.ends_with(".wal")).map(|name| Path::new(DIR).join(name)).collect()
}

fn writes_of(store: &Store) -> Writes {
    let spaces = store.keyspaces().into_iter();
    let writes = |name: String| {
        let space = store.existing_keyspace(&name).unwrap();
        let number = |key: &[u8]| u32::from_be_bytes(key.try_into().unwrap());
        let keys = space.iter().map(move |entry| number(&entry.unwrap().0));
        keys.map(|key| (name.clone(), key)).collect::<Vec<_>>()
    };
    spaces.flat_map(writes).collect()
}

/// Asserts that the store on the disk `env` has all of `synced`, or that opening it fails, and the
/// same of its repair. Returns true if opening failed.
fn nothing_is_lost_unseen(env: &MemEnv, synced: &Writes, told: &str) -> bool {
    let lost = |store: &Store| synced.difference(&writes_of(store)).count();
    let copy = env.process_crash_clone();
    let refused = match builder(&copy).open() {
        Ok(store) => {
            let lost = lost(&store);
            assert_eq!(lost, 0, "{told}: opened without {lost} of {} synced writes", synced.len());
            false
        }
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{told}: {error}");
            true
        }
    };
    let copy = env.process_crash_clone();
    let options = RepairOptions { env: Arc::new(copy.clone()), ..RepairOptions::default() };
    let report = repair(&options, DIR, NEW).unwrap();
    let new = Store::builder(NEW).env(Arc::new(copy)).lockstep(true).open().unwrap();
    let lost = lost(&new);
    assert!(lost == 0 || !report.is_exact(), "{told}: repaired without {lost}: {report:#?}");
    refused
}

/// Calls `test` with each kind of damage to the log at `path`, and what to call it.
fn each_damage(env: &MemEnv, path: &Path, mut test: impl FnMut(&MemEnv, &str)) {
    let mut content = vec![0; env.file_bytes(path).unwrap() as usize];
    env.open(path).unwrap().read_exact_at(&mut content, 0).unwrap();
    let bytes = content.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
    let name = path.display();
    for cut in (0..=bytes).filter(|cut| cut % 8 == 0 || bytes - cut < 8) {
        let env = env.process_crash_clone();
        env.truncate(path, cut).unwrap();
        test(&env, &format!("{name} cut to {cut} of {bytes} bytes"));
    }
    let env = env.process_crash_clone();
    env.remove_file(path).unwrap();
    test(&env, &format!("{name} removed"));
}

/// What broke: a log that opening began said that nothing of the log before it was known to be
/// synced, although opening had just replaced that log by a synced copy. If each life had made one
/// synced write, so that no record had a sync mark, damage to an older log was taken for power
/// loss: the store opened, empty.
#[test]
fn one_synced_write_in_each_life_is_found_or_missed() {
    let plans = [[1, 1, 1], [1, 0, 1], [1, 1, 0], [2, 1, 1], [1, 0, 0], [0, 0, 1]];
    for (writes, killed) in plans.iter().flat_map(|plan| [(plan, false), (plan, true)]) {
        let mut env = MemEnv::new();
        let mut synced = Writes::new();
        for (life, count) in writes.iter().enumerate() {
            let (_store, space) = open(builder(&env));
            for write in 0..*count {
                let key = 10 * life as u32 + write;
                space.put_with(key.to_be_bytes(), "value", PersistMode::SyncAll).unwrap();
                // Nothing is behind the last write of a killed process that could tell.
                if !killed || life + 1 < writes.len() {
                    synced.insert((DEFAULT_KEYSPACE.to_string(), key));
                }
            }
            if killed {
                env = env.process_crash_clone();
            }
        }
        assert!(!nothing_is_lost_unseen(&env, &synced, "without damage"));
        let mut refused = 0;
        for log in logs(&env) {
            each_damage(&env, &log, |env, told| {
                let told = format!("lives with {writes:?} writes, killed {killed}: {told}");
                refused += u32::from(nothing_is_lost_unseen(env, &synced, &told));
            });
        }
        assert!(refused > 0 || synced.is_empty(), "{writes:?}, killed {killed}");
    }
}

/// What broke: nothing told that a log was missing which had begun after the manifest last named
/// the newest one, although synced writes were in it.
#[test]
fn a_newest_log_with_synced_writes_is_missed_although_nothing_was_closed() {
    for logs_begun in 1..4 {
        let env = MemEnv::new();
        let (store, space) = open(builder(&env).log_bytes(64 << 10).memtable_bytes(4 << 20));
        let mut synced = Writes::new();
        for key in 0..64 * logs_begun + 20_u32 {
            let mode = if key % 3 == 0 { PersistMode::SyncData } else { PersistMode::Buffer };
            space.put_with(key.to_be_bytes(), [7; 1000], mode).unwrap();
            synced.insert((DEFAULT_KEYSPACE.to_string(), key));
        }
        store.persist(PersistMode::SyncData).unwrap();
        let env = env.process_crash_clone();
        assert!(!nothing_is_lost_unseen(&env, &synced, "without damage"));
        let all = logs(&env);
        assert!(all.len() as u32 > logs_begun, "{all:?}");
        env.remove_file(all.last().unwrap()).unwrap();
        let told = format!("the last of {} logs removed", all.len());
        assert!(nothing_is_lost_unseen(&env, &synced, &told), "{told}");
        logs(&env).iter().for_each(|log| env.remove_file(log).unwrap());
        assert!(nothing_is_lost_unseen(&env, &synced, "all logs removed"));
    }
}

/// Makes a store by a few lives with any end. Returns its disk, and what was synced before the last
/// life began, or in it if it ended well.
fn any_lives(dice: &mut Dice) -> (MemEnv, Writes) {
    let mut env = MemEnv::new();
    let mut synced = Writes::new();
    let spaces = 1 + dice.below(3);
    let changes = *dice.pick(&[0, 0, 10 << 10]);
    let in_group = dice.chance(30);
    let mut next_key = 0_u32;
    for life in 0..2 + dice.below(4) {
        let builder = builder(&env).changes_bytes(changes).memtable_bytes(64 << 10);
        let store = builder.log_bytes_max(*dice.pick(&[4 << 10, 1 << 20])).open().unwrap();
        let found = writes_of(&store);
        assert!(synced.is_subset(&found), "life {life}: synced writes are gone");
        // What an opening has shown stays.
        synced.clone_from(&found);
        let mut made = found;
        let mut in_life = synced.clone();
        for _ in 0..*dice.pick(&[0, 1, 1, 2, 5]) {
            let name = format!("space-{}", dice.below(spaces));
            let group = in_group.then(|| "group".to_string());
            let options = KeyspaceOptions { group, ..KeyspaceOptions::default() };
            let space = store.keyspace_with(&name, &options).unwrap();
            let key = next_key;
            next_key += 1;
            let bytes = *dice.pick(&[1, 8, 100, 3000]);
            let value = dice.bytes(bytes);
            space.put(key.to_be_bytes(), value).unwrap();
            made.insert((name, key));
            match dice.below(6) {
                0 => space.flush().unwrap(),
                1 => {}
                _ => {
                    store.persist(PersistMode::SyncData).unwrap();
                    in_life.clone_from(&made);
                }
            }
        }
        let crashed = match dice.below(4) {
            0 => env.process_crash_clone(),
            1 => env.crash_clone(dice.number(), *dice.pick(&[0.0, 0.5, 0.9])),
            _ => {
                drop(store);
                synced.clone_from(&made);
                continue;
            }
        };
        // The store closes on a disk that is not looked at again.
        drop(store);
        env = crashed;
        if life < 2 || dice.chance(70) {
            let store = self::builder(&env).open().unwrap();
            let found = writes_of(&store);
            assert!(in_life.is_subset(&found), "life {life}: synced writes are gone");
            synced = found;
        }
    }
    (env, synced)
}

#[test]
fn damage_to_a_log_after_any_lives_is_found_or_costs_nothing() {
    let refused = std::cell::Cell::new(0);
    with_seeds(40, |seed| {
        let mut dice = Dice::new(seed);
        let (env, synced) = any_lives(&mut dice);
        nothing_is_lost_unseen(&env, &synced, "without damage");
        for log in logs(&env) {
            let bytes = env.file_bytes(&log).unwrap();
            for damage in 0..8 {
                let env = env.process_crash_clone();
                let told = match damage {
                    0 => {
                        env.remove_file(&log).unwrap();
                        "removed".to_string()
                    }
                    _ => {
                        let any = dice.below(bytes as usize + 1) as u64;
                        let to = [0, 32, bytes.saturating_sub(1), any, any & !7, any % 300, 72]
                            [damage - 1];
                        env.truncate(&log, to).unwrap();
                        format!("cut to {to} of {bytes} bytes")
                    }
                };
                let told = format!("{} {told}", log.display());
                let found = nothing_is_lost_unseen(&env, &synced, &told);
                refused.set(refused.get() + u32::from(found));
            }
        }
        // All logs at once.
        let logs = logs(&env);
        logs.iter().for_each(|log| env.remove_file(log).unwrap());
        nothing_is_lost_unseen(&env, &synced, "all logs removed");
    });
    assert!(refused.get() > 20, "{} were refused", refused.get());
}

/// What broke: a process that was killed while it wrote header or start record of a log left a part
/// of them. The next life took the log for one that power loss had torn, and set all of it aside,
/// at its full length, for ever.
#[test]
fn a_process_that_dies_while_it_begins_a_log_leaves_nothing_aside() {
    for after in 0.. {
        let disk = MemEnv::new();
        let env = FaultEnv::over(disk.clone());
        let kind = std::io::ErrorKind::Other;
        let class = Some(OpClass::Append);
        env.set_with(Fault { class, after, lasting: Lasting::Forever, kind }, Effect::Partly);
        let write = || {
            let builder = plain(&env).log_bytes(64 << 10);
            let store = builder.memtable_bytes(4 << 20).lockstep(true).open()?;
            let space = store.keyspace(DEFAULT_KEYSPACE)?;
            (0..100_u32).try_for_each(|number| space.put(number.to_be_bytes(), [7; 1000]))
        };
        let done = write();
        let dead = disk.process_crash_clone();
        for life in 0..2 {
            drop(builder(&dead).open().unwrap());
            let names = dead.list(Path::new(DIR)).unwrap();
            let whole = names.iter().filter(|name| name.ends_with(".wal.lost")).count();
            assert_eq!(whole, 0, "append {after}, life {life}: {names:?}");
        }
        if done.is_ok() {
            assert!(after > 100, "{after}");
            return;
        }
    }
}

/// What broke: a log without a batch that opening did not need could not go at once, because a
/// reader in another process kept it. Then the process was killed. The next life took the log for
/// one that had been left out, and set it aside at its full length, for ever.
#[test]
fn an_empty_log_that_a_reader_kept_is_not_set_aside() {
    let first = MemEnv::new();
    let store = builder(&first).open().unwrap();
    store.keyspace(DEFAULT_KEYSPACE).unwrap().put("key", "value").unwrap();
    // A life without a write, which leaves a log with a start only.
    let second = first.process_crash_clone();
    let idle = builder(&second).open().unwrap();
    let third = second.process_crash_clone();
    let reader = builder(&third).read_only(true).open().unwrap();
    let writer = builder(&third).open().unwrap();
    let last = third.process_crash_clone();
    assert!(logs(&last).len() > 2, "the reader keeps the empty log: {:?}", logs(&last));
    drop((store, idle, reader, writer));
    let store = builder(&last).open().unwrap();
    let names = last.list(Path::new(DIR)).unwrap();
    assert!(!names.iter().any(|name| name.ends_with(".lost")), "{names:?}");
    assert_eq!(logs(&last).len(), 2, "{names:?}");
    assert!(store.existing_keyspace(DEFAULT_KEYSPACE).unwrap().contains("key").unwrap());
}
