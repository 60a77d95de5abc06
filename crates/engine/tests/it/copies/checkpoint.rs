//! Checkpoints: stores of their own that share files with the store they were made of.
//!
//! Promised: a checkpoint holds every write made before the call, and a prefix of those made during
//! it. It survives power loss. From then on neither store sees what the other does, whatever
//! merges, punches, appends or removes.

use crate::dice::Dice;
use crate::frame::batches::{Batches, POLICIES, Progress};
use crate::frame::small::{DIR, plain, plain_at, small, small_at};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, Loss, MemEnv, OpClass};
use lsmith::{Checkpoint, ErrorKind, PersistMode, Store};
use std::io;
use std::path::Path;

const COPY: &str = "/copies/one";

fn write(store: &Store, batches: &Batches, progress: &mut Progress, count: u64) {
    for _ in 0..count {
        batches.go_on(store, progress, PersistMode::Buffer).unwrap();
    }
}

/// Asserts that `store` has the batches up to `last`, and no damage.
fn check(store: &Store, batches: &Batches, last: u64) {
    assert_eq!(batches.check(store), last);
    let damage = store.verify().unwrap();
    assert!(damage.is_empty(), "{damage:?}");
}

fn remove_all(env: &MemEnv, dir: &str) {
    for name in env.list(Path::new(dir)).unwrap() {
        env.remove_file(&Path::new(dir).join(name)).unwrap();
    }
}

#[test]
fn a_checkpoint_and_its_store_live_their_own_lives() {
    for policy in POLICIES {
        let env = MemEnv::new();
        let batches = Batches { keys: 300, value_bytes: 300, ..Batches::new(2) };
        let values = |builder: lsmith::Builder| builder.large_values(150).value_space(1.1);
        let open = |dir: &str| values(small_at(dir, &env)).policy(policy).open().unwrap();
        let store = open(DIR);
        let mut first = Progress::default();
        write(&store, &batches, &mut first, 150);
        let made = store.checkpoint(COPY).unwrap();
        assert!(made.linked > 0 || policy.starts_with("jungle"), "{policy}: {made:?}");
        let mut second = first;
        write(&store, &batches, &mut first, 150);

        let copy = open(COPY);
        check(&copy, &batches, 150);
        write(&copy, &batches, &mut second, 40);
        copy.flush().unwrap();
        write(&copy, &batches, &mut second, 40);
        check(&store, &batches, 300);
        check(&copy, &batches, 230);
        drop(store);
        remove_all(&env, DIR);
        check(&copy, &batches, 230);
        drop(copy);
        check(&open(COPY), &batches, 230);
    }
}

#[test]
fn a_checkpoint_made_while_a_thread_writes_is_a_prefix() {
    for seed in 0..8 {
        let env = MemEnv::new();
        let batches = Batches { keys: 300, ..Batches::new(seed) };
        let mut dice = Dice::new(seed);
        let policy = *dice.pick(&POLICIES);
        let open = |dir: &str| small_at(dir, &env).lockstep(false).policy(policy).open();
        let store = open(DIR).unwrap();
        let told = std::sync::atomic::AtomicU64::new(0);
        let order = std::sync::atomic::Ordering::SeqCst;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut progress = Progress::default();
                for _ in 0..600 {
                    batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
                    told.store(progress.acknowledged, order);
                }
            });
            for number in 0..4 {
                let before = told.load(order);
                let dir = format!("/copies/{number}");
                store.checkpoint(&dir).unwrap();
                let after = told.load(order) + 1;
                let found = batches.check(&open(&dir).unwrap());
                assert!((before..=after).contains(&found), "{before}, {found}, {after}");
            }
        });
        for number in 0..4 {
            let copy = open(&format!("/copies/{number}")).unwrap();
            batches.check(&copy);
            assert_eq!(copy.verify().unwrap().len(), 0);
        }
        check(&store, &batches, 600);
    }
}

#[test]
fn a_checkpoint_that_was_returned_survives_power_loss() {
    for (seed, loss) in (0..).zip(Loss::ALL) {
        let env = MemEnv::new();
        let batches = Batches::new(seed);
        let store = small(&env).open().unwrap();
        let mut progress = Progress::default();
        write(&store, &batches, &mut progress, 70);
        store.checkpoint(COPY).unwrap();
        write(&store, &batches, &mut progress, 50);
        let after = env.power_loss(seed, loss);
        check(&small_at(COPY, &after).open().unwrap(), &batches, 70);
        assert!(batches.check(&small(&after).open().unwrap()) >= 70);
    }
}

/// A store frees dead blocks of its tables, which a checkpoint may still show. When the checkpoint
/// is gone, the next opening frees them.
#[test]
fn shared_files_get_no_holes_until_the_checkpoint_is_gone() {
    let env = MemEnv::new();
    let open = || {
        let builder = plain(&env).lockstep(true);
        builder.policy("choose_best(ratio=3, rate=0.2)").memtable_bytes(64 << 10).open().unwrap()
    };
    let key = |number: u64| format!("{:08}", number.wrapping_mul(2_654_435_761) % 8_000);
    let write = |store: &Store, value: u8| {
        let space = store.keyspace("default").unwrap();
        (0..6_000).for_each(|number| space.put(key(number), [value; 100]).unwrap());
    };
    let store = open();
    write(&store, 1);
    store.checkpoint(COPY).unwrap();
    let space = store.keyspace("default").unwrap();
    let punched = space.stats().punched_bytes;
    write(&store, 2);
    let copy = plain_at(COPY, &env).lockstep(true).open().unwrap();
    let copied = copy.keyspace("default").unwrap();
    (0..6_000)
        .for_each(|number| assert_eq!(copied.get(key(number)).unwrap().unwrap()[..], [1; 100]));
    assert_eq!(copy.verify().unwrap().len(), 0);
    drop((copied, copy));
    remove_all(&env, COPY);
    let dead = space.stats().dead_bytes;
    drop((space, store));
    let stats = open().keyspace("default").unwrap().stats();
    assert!(stats.dead_bytes < dead, "{dead} before, {} afterwards", stats.dead_bytes);
    assert!(stats.punched_bytes > punched);
}

#[test]
fn where_files_cannot_have_two_names_all_is_copied() {
    let disk = MemEnv::new();
    let env = FaultEnv::over(disk.clone());
    for kind in [io::ErrorKind::CrossesDevices, io::ErrorKind::Unsupported] {
        env.clear();
        let (class, lasting) = (Some(OpClass::Link), Lasting::Forever);
        env.set(Fault { class, after: 0, lasting, kind });
        let store = small(&env).open().unwrap();
        let batches = Batches::new(4);
        let last = batches.check(&store);
        let mut progress = Progress { tried: last, acknowledged: last, synced: last };
        write(&store, &batches, &mut progress, 60);
        let dir = format!("/copies/{kind:?}");
        let Checkpoint { linked, copied_bytes, .. } = store.checkpoint(&dir).unwrap();
        assert!(linked == 0 && copied_bytes > 10_000, "{copied_bytes} bytes");
        write(&store, &batches, &mut progress, 60);
        check(&small_at(&dir, &disk).open().unwrap(), &batches, last + 60);
    }
}

#[test]
fn a_checkpoint_goes_to_a_directory_of_its_own() {
    let env = MemEnv::new();
    let store = small(&env).open().unwrap();
    store.keyspace("default").unwrap().put("key", "value").unwrap();
    env.create_dir_all(Path::new("/other")).unwrap();
    env.create(Path::new("/other/letter.txt")).unwrap();
    let kind = |dir: &str| store.checkpoint(dir).unwrap_err().kind();
    assert_eq!(kind("/other"), ErrorKind::InvalidArgument);
    assert_eq!(env.list(Path::new("/other")).unwrap(), ["LOCK", "letter.txt"]);
    assert_eq!(kind(DIR), ErrorKind::InvalidArgument);
    store.checkpoint(COPY).unwrap();
    assert_eq!(kind(COPY), ErrorKind::InvalidArgument);
    let copy = small_at(COPY, &env).open().unwrap();
    assert_eq!(kind(COPY), ErrorKind::Locked);
    assert!(copy.keyspace("default").unwrap().contains("key").unwrap());
    drop(store);
    let reader = small(&env).read_only(true).open().unwrap();
    assert_eq!(reader.checkpoint("/copies/two").unwrap_err().kind(), ErrorKind::ReadOnly);
}

#[test]
fn a_checkpoint_of_a_checkpoint_outlives_both() {
    let env = MemEnv::new();
    let batches = Batches { keys: 300, ..Batches::new(1) };
    let mut progress = Progress::default();
    let dir = |number: u64| format!("/copies/{number}");
    small_at(dir(0), &env).open().unwrap();
    for number in 0..6 {
        let store = small_at(dir(number), &env).open().unwrap();
        check(&store, &batches, number * 40);
        write(&store, &batches, &mut progress, 40);
        store.checkpoint(dir(number + 1)).unwrap();
        drop(store);
        if number >= 2 {
            remove_all(&env, &dir(number - 2));
        }
    }
    for number in 4..=6 {
        let store = small_at(dir(number), &env).open().unwrap();
        check(&store, &batches, (number + 1).min(6) * 40);
    }
}
