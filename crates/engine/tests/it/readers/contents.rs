//! Readers beside a writer, on one disk in memory.
//!
//! Promised: a reader sees a prefix of the batches that has everything acknowledged before it
//! opened or refreshed the store. Its snapshots stay as they are, whatever the writer merges,
//! removes or punches out, also after the writer died and another one took over. Nothing is kept
//! for readers that are gone. No write of the writer does more because of a reader.

use crate::dice::{Dice, with_seeds};
use crate::frame::batches::{
    Batches, GROUP_POLICIES, POLICIES, Progress, any_mode, last, mapped_or_not, now_and_then,
    restless,
};
use crate::frame::small::{DIR, fill, plain, reader, small};
use lsmith::env::{Env, Fault, FaultEnv, Lasting, MemEnv, OpClass};
use lsmith::{
    ErrorKind, Keyspace, KeyspaceOptions, LeftOutReason, PersistMode, RepairOptions, Snapshot,
    Store, repair,
};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::thread;

/// Returns the names of the files in the directory, without leases.
pub(crate) fn files(env: &impl Env) -> Vec<String> {
    env.list(Path::new(DIR)).unwrap()
}

pub(crate) fn leases(env: &impl Env) -> Vec<String> {
    env.list(&Path::new(DIR).join("readers")).unwrap()
}

pub(crate) type Entries = Vec<(Vec<u8>, Vec<u8>)>;

pub(crate) fn all(entries: lsmith::Iter) -> Entries {
    entries.map(|entry| entry.map(|(key, value)| (key.to_vec(), value.to_vec())).unwrap()).collect()
}

/// Returns all entries of all keyspaces in `snapshot`.
fn entries(snapshot: &Snapshot) -> Vec<(String, Entries)> {
    let store = snapshot.store();
    let of = |name: String| {
        let space = store.existing_keyspace(&name).unwrap();
        let entries = all(snapshot.range::<&[u8]>(&space, ..));
        (name, entries)
    };
    store.keyspaces().into_iter().map(of).collect()
}

/// Reads while `acked` grows, until `over`.
fn follow(batches: Batches, env: &MemEnv, acked: &AtomicU64, over: &AtomicBool, dice: &mut Dice) {
    let mut store = reader(&mapped_or_not(env, dice)).open().unwrap();
    let mut kept: Option<(Snapshot, Vec<(String, Entries)>)> = None;
    loop {
        let is_last = over.load(SeqCst);
        let before = acked.load(SeqCst);
        if dice.chance(20) {
            kept = None;
            store = reader(&mapped_or_not(env, dice)).open().unwrap();
        } else {
            store.refresh().unwrap();
        }
        let found = batches.check(&store);
        assert!(found >= before, "batch {before} was acknowledged, found {found}");
        if let Some((snapshot, then)) = &kept {
            assert!(entries(snapshot) == *then, "a snapshot has changed");
        }
        if kept.is_none() || dice.chance(30) {
            let snapshot = store.snapshot();
            let now = entries(&snapshot);
            kept = Some((snapshot, now));
        }
        if dice.chance(20) {
            let damage = store.verify().unwrap();
            assert!(damage.is_empty(), "{damage:?}");
        }
        if is_last {
            return;
        }
    }
}

#[test]
fn readers_follow_a_writer_that_does_everything() {
    with_seeds(12, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let batches = Batches { in_group: dice.chance(20), ..Batches::new(seed) };
        let mut builder = restless(plain(&env), &mut dice);
        if batches.in_group {
            builder = builder.policy(*dice.pick(&GROUP_POLICIES));
        }
        let store = builder.clone().open().unwrap();
        let mut progress = Progress::default();
        batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        let (acked, over) = (AtomicU64::new(1), AtomicBool::new(false));
        thread::scope(|scope| {
            for _ in 0..2 {
                let mut dice = Dice::new(dice.number());
                let (env, acked, over) = (&env, &acked, &over);
                scope.spawn(move || follow(batches, env, acked, over, &mut dice));
            }
            let mut store = Some(store);
            for _ in 0..300 {
                if dice.chance(1) {
                    // The next writer recovers what this one leaves.
                    drop(store.take());
                    store = Some(builder.clone().open().unwrap());
                }
                let store = store.as_ref().unwrap();
                batches.go_on(store, &mut progress, any_mode(&mut dice)).unwrap();
                acked.store(progress.acknowledged, SeqCst);
                if !batches.in_group {
                    now_and_then(store, &mut dice).unwrap();
                }
            }
            over.store(true, SeqCst);
            drop(store);
        });
        assert_eq!(leases(&env), [""; 0], "readers leave nothing");
        let store = builder.clone().open().unwrap();
        assert_eq!(batches.check(&store), 301);
        store.flush().unwrap();
        let left_out = store.left_out().unwrap();
        assert!(left_out.iter().all(|part| part.reason != LeftOutReason::Unnamed), "{left_out:?}");
        drop(store);
        assert_eq!(batches.check(&reader(&env).open().unwrap()), 301);
    });
}

/// What broke (in a test of this test): the next writer removed what the manifest did not name, and
/// punched out what its trees did not show.
#[test]
fn a_reader_reads_on_when_the_writer_dies_and_the_next_one_recovers() {
    with_seeds(20, |seed| {
        let mut dice = Dice::new(seed);
        let disk = MemEnv::new();
        let batches = Batches { keys: 20, ..Batches::new(seed) };
        let policy = POLICIES[seed as usize % POLICIES.len()];
        let mut progress = Progress::default();
        let mut kept = Vec::new();
        for _ in 0..6 {
            let env = FaultEnv::over(disk.clone());
            let store = small(&env).policy(policy).open().unwrap();
            for _ in 0..1 + dice.below(60) {
                batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
            }
            let follower = reader(&disk).open().unwrap();
            assert_eq!(batches.check(&follower), progress.acknowledged);
            for _ in 0..dice.below(100) {
                batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
            }
            kept.push((entries(&follower.snapshot()), follower));
            // Dies: from now on nothing that it does has an effect.
            let after = dice.below(30) as u64;
            let kind = io::ErrorKind::Other;
            env.set(Fault { class: None, after, lasting: Lasting::Forever, kind });
            while batches.go_on(&store, &mut progress, PersistMode::SyncData).is_ok() {}
            drop(store);
            let known = progress.acknowledged;
            for (before, follower) in &kept {
                assert!(entries(&follower.snapshot()) == *before, "{policy}");
            }
            let found = batches.check(&reader(&disk).open().unwrap());
            assert!(found == known || found == known + 1);
            progress = Progress { tried: found, acknowledged: found, synced: found };
            if dice.chance(50) {
                let (_, oldest) = kept.remove(0);
                let snapshot = oldest.snapshot();
                let before = entries(&snapshot);
                oldest.refresh().unwrap();
                assert_eq!(batches.check(&oldest), found);
                assert!(entries(&snapshot) == before, "{policy}");
            }
        }
        drop(kept);
        let store = small(&disk).policy(policy).open().unwrap();
        assert_eq!(batches.check(&store), progress.acknowledged);
        assert_eq!(leases(&disk), [""; 0]);
    });
}

/// Loads, keyspaces and marks in this order, again and again. A reader sees a prefix.
fn load_and_mark(store: &Store, acked: &AtomicU64, dice: &mut Dice) {
    let marks = store.keyspace("marks").unwrap();
    for round in 1..=40_u64 {
        let space = store.keyspace("loaded").unwrap();
        let mut load = space.bulk_load().unwrap();
        for number in 0..30_u64 {
            load.put(number.to_be_bytes(), round.to_be_bytes()).unwrap();
        }
        load.finish().unwrap();
        let new = store.keyspace(&format!("space{round}")).unwrap();
        new.put("round", round.to_be_bytes()).unwrap();
        let cleared = store.keyspace("cleared").unwrap();
        cleared.clear().unwrap();
        cleared.put(round.to_be_bytes(), "").unwrap();
        marks.put("mark", round.to_be_bytes()).unwrap();
        acked.store(round, SeqCst);
        match dice.below(6) {
            0 => store.flush().unwrap(),
            1 => space.set_merge_policy(*dice.pick::<&str>(&POLICIES)).unwrap(),
            _ => {}
        }
    }
}

fn number_of(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

/// Returns the mark that a reader sees, after checks of what came before it.
fn check_marks(store: &Store) -> u64 {
    let snapshot = store.snapshot();
    let spaces = store.keyspaces();
    let get = |name: &str, key: &str| {
        let space = store.existing_keyspace(name).ok()?;
        snapshot.get(&space, key).unwrap().map(|value| number_of(&value))
    };
    let mark = get("marks", "mark").unwrap_or(0);
    let loaded = store.existing_keyspace("loaded").map(|space| {
        let rounds = all(snapshot.range::<&[u8]>(&space, ..));
        rounds.iter().map(|(_, value)| number_of(value)).collect::<Vec<_>>()
    });
    let loaded = loaded.unwrap_or_default();
    let round = loaded.first().copied().unwrap_or(0);
    assert!(loaded.iter().all(|one| *one == round), "a load is torn: {loaded:?}");
    assert!([0, 30].contains(&loaded.len()), "a load is torn: {loaded:?}");
    assert!(round == mark || round == mark + 1, "load {round} beside mark {mark}");
    let cleared = store.existing_keyspace("cleared").map(|space| {
        let rounds = all(snapshot.range::<&[u8]>(&space, ..));
        rounds.iter().map(|(key, _)| number_of(key)).collect::<Vec<_>>()
    });
    let cleared = cleared.unwrap_or_default();
    assert!(cleared.len() <= 1, "a clearing is missing: {cleared:?}");
    let is_next = |round: &u64| *round == mark || *round == mark + 1;
    assert!(cleared.iter().all(is_next), "{cleared:?} beside mark {mark}");
    for earlier in 1..=mark {
        assert_eq!(get(&format!("space{earlier}"), "round"), Some(earlier), "mark {mark}");
    }
    let next = get(&format!("space{}", mark + 1), "round");
    assert!(next.is_none() || round == mark + 1, "{spaces:?}");
    mark
}

#[test]
fn readers_see_loads_and_keyspaces_in_their_order() {
    with_seeds(10, |seed| {
        let mut dice = Dice::new(seed);
        let env = MemEnv::new();
        let builder = restless(plain(&env), &mut dice);
        let store = builder.open().unwrap();
        let (acked, over) = (AtomicU64::new(0), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut dice = Dice::new(seed ^ 1);
                let store = reader(&env).open().unwrap();
                loop {
                    let is_last = over.load(SeqCst);
                    let before = acked.load(SeqCst);
                    store.refresh().unwrap();
                    let mark = check_marks(&store);
                    assert!(mark >= before, "mark {before} was acknowledged, found {mark}");
                    if dice.chance(20) {
                        assert!(check_marks(&reader(&env).open().unwrap()) >= mark);
                    }
                    if is_last {
                        return;
                    }
                }
            });
            load_and_mark(&store, &acked, &mut dice);
            over.store(true, SeqCst);
        });
        drop(store);
        assert_eq!(check_marks(&reader(&env).open().unwrap()), 40);
    });
}

/// A load died between its batch in the log and its tables in the manifest. What was written after
/// that is seen.
#[test]
fn a_load_that_never_came_hides_nothing() {
    let disk = MemEnv::new();
    let env = FaultEnv::over(disk.clone());
    let open = |env: FaultEnv| {
        small(&env).policy("minlatency(k=2)").memtable_bytes(1 << 20).open().unwrap()
    };
    let store = open(env.clone());
    let space = store.keyspace("a").unwrap();
    space.put("before", "1").unwrap();
    let mut load = space.bulk_load().unwrap();
    load.put("loaded", "2").unwrap();
    // The log is synced for the empty batch, then for the manifest.
    let class = Some(OpClass::LogSync);
    let kind = io::ErrorKind::Other;
    env.set(Fault { class, after: 1, lasting: Lasting::Forever, kind });
    let class = Some(OpClass::Append);
    env.set(Fault { class, after: 1, lasting: Lasting::Forever, kind });
    load.finish().unwrap_err();
    drop((store, space));
    env.clear();
    let seen = |store: &Store| {
        let space = store.existing_keyspace("a").unwrap();
        all(space.iter()).into_iter().map(|(key, _)| String::from_utf8(key).unwrap()).collect()
    };
    let keys: Vec<String> = seen(&reader(&disk).open().unwrap());
    assert_eq!(keys, ["before"]);
    let store = open(env);
    store.keyspace("a").unwrap().put("behind", "3").unwrap();
    let keys: Vec<String> = seen(&reader(&disk).open().unwrap());
    assert_eq!(keys, ["before", "behind"]);
}

#[test]
fn readers_and_writers_are_told_apart() {
    let env = MemEnv::new();
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    fill(&store.keyspace("a").unwrap(), 0..400, [1; 50]);
    store.flush().unwrap();
    let [one, two] = [0, 1].map(|_| reader(&env).open().unwrap());
    assert_eq!(small(&env).policy("constant(k=1)").open().unwrap_err().kind(), ErrorKind::Locked);
    let options = RepairOptions { env: Arc::new(env.clone()), ..RepairOptions::default() };
    let told = repair(&options, Path::new(DIR), Path::new("/new")).unwrap_err();
    assert_eq!(told.kind(), ErrorKind::Locked);
    let made = one.keyspace("b").unwrap_err();
    assert_eq!(made.kind(), ErrorKind::ReadOnly);
    assert_eq!(store.refresh().unwrap(), two.refresh().unwrap());
    drop(store);
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    fill(&store.keyspace("a").unwrap(), 0..400, [2; 50]);
    store.flush().unwrap();
    assert_eq!(one.existing_keyspace("a").unwrap().iter().count(), 400);
    assert_eq!(one.refresh().unwrap(), store.refresh().unwrap());
    drop(store);
    // Repairs change nothing, so a reader may go on.
    assert!(repair(&options, Path::new(DIR), Path::new("/new")).unwrap().findings.is_empty());
}

/// A device without room holds no reader up, and readers hold no writer up.
#[test]
fn a_full_device_stops_no_reader() {
    let env = MemEnv::with_capacity(400_000);
    let batches = Batches { keys: 400, value_bytes: 1500, ..Batches::new(2) };
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    let mut progress = Progress::default();
    let follower = reader(&env).open().unwrap();
    let mut refused = 0;
    while refused < 20 {
        match batches.go_on(&store, &mut progress, PersistMode::Buffer) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Full);
                refused += 1;
                store.retry();
            }
        }
        if progress.acknowledged % 16 == 0 {
            follower.refresh().unwrap();
            assert_eq!(last(&follower), progress.acknowledged);
        }
    }
    follower.refresh().unwrap();
    assert_eq!(batches.check(&follower), progress.acknowledged);
    drop((store, follower));
    // A lease takes no room.
    assert_eq!(batches.check(&reader(&env).open().unwrap()), progress.acknowledged);
}

/// As long as the writer only appends to its logs, a refresh reads the manifest and what is new.
#[test]
fn a_refresh_reads_on_in_the_logs() {
    let disk = MemEnv::new();
    // The first range delete of a keyspace is noted in the manifest.
    let batches = Batches { ranges: false, ..Batches::new(1) };
    let store = small(&disk).policy("constant(k=1)").memtable_bytes(1 << 20).open().unwrap();
    let mut progress = Progress::default();
    batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
    let env = FaultEnv::over(disk.clone());
    let follower = reader(&env).open().unwrap();
    let logs = || files(&disk).into_iter().filter(|name| name.ends_with("wal")).count();
    let mut kept = Vec::new();
    for round in 0..40 {
        for _ in 0..5 {
            batches.go_on(&store, &mut progress, PersistMode::Buffer).unwrap();
        }
        let before = env.count(OpClass::Open);
        assert_eq!(follower.refresh().unwrap(), store.refresh().unwrap());
        // `CURRENT` and the manifest, before and after, and the logs behind the one it had.
        let opened = env.count(OpClass::Open) - before;
        assert!(opened <= 4 + 2 * 3, "{opened} files opened in round {round}");
        assert_eq!(batches.check(&follower), progress.acknowledged);
        if round % 8 == 0 {
            let snapshot = follower.snapshot();
            kept.push((entries(&snapshot), snapshot));
        }
        assert!(kept.iter().all(|(before, snapshot)| entries(snapshot) == *before));
    }
    assert!(logs() > 3, "logs began meanwhile");
}

#[test]
fn a_reader_follows_what_becomes_of_keyspaces() {
    let env = MemEnv::new();
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    let group = KeyspaceOptions { group: Some("both".into()), ..KeyspaceOptions::default() };
    for name in ["one", "two", "three"] {
        store.keyspace(name).unwrap().put("key", name).unwrap();
    }
    store.keyspace_with("left", &group).unwrap().put("key", "left").unwrap();
    let follower = reader(&env).open().unwrap();
    let [one, two, three, left] =
        ["one", "two", "three", "left"].map(|name| follower.existing_keyspace(name).unwrap());
    let before = follower.snapshot();
    store.rename_keyspace("one", "first").unwrap();
    store.drop_keyspace("two").unwrap();
    store.keyspace("two").unwrap().put("key", "another").unwrap();
    store.keyspace("three").unwrap().clear().unwrap();
    store.rename_keyspace("left", "port").unwrap();
    store.rename_keyspace("both", "ship").unwrap();
    let group = KeyspaceOptions { group: Some("ship".into()), ..KeyspaceOptions::default() };
    store.keyspace_with("right", &group).unwrap().put("key", "right").unwrap();
    store.flush().unwrap();
    let get = |space: &Keyspace| {
        let found = space.get("key").unwrap();
        found.map(|value| String::from_utf8(value.to_vec()).unwrap()).unwrap_or_default()
    };
    assert_eq!([&one, &two, &three, &left].map(get), ["one", "two", "three", "left"]);
    let mut iter = two.iter();
    follower.refresh().unwrap();
    assert_eq!((one.name(), left.name(), left.group()), ("first", "port", Some("ship")));
    assert_eq!([&one, &three, &left].map(get), ["one", "", "left"]);
    assert_eq!(two.get("key").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(iter.by_ref().map(Result::unwrap).count(), 1, "an iterator reads to its end");
    assert_eq!(follower.keyspaces(), store.keyspaces());
    let find = |name: &str| follower.existing_keyspace(name).unwrap();
    assert_eq!([find("two"), find("right")].each_ref().map(get), ["another", "right"]);
    assert_eq!(before.get(&one, "key").unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!(before.get(&three, "key").unwrap().as_deref(), Some(&b"three"[..]));
    for new in ["two", "right"] {
        assert_eq!(before.get(&find(new), "key").unwrap(), None, "{new} is younger");
    }
}

/// What broke: as long as a snapshot of the newest moment lived, a refresh did nothing.
#[test]
fn a_snapshot_of_the_newest_moment_holds_no_refresh_up() {
    let env = MemEnv::new();
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    for name in ["one", "two", "three"] {
        store.keyspace(name).unwrap().put("key", name).unwrap();
    }
    let follower = reader(&env).open().unwrap();
    let [one, three] = ["one", "three"].map(|name| follower.existing_keyspace(name).unwrap());
    let snapshot = follower.snapshot();
    let mut iter = three.iter();
    // None of these is a write.
    store.keyspace("new").unwrap();
    store.rename_keyspace("one", "first").unwrap();
    store.drop_keyspace("two").unwrap();
    store.flush().unwrap();
    for round in 0..3 {
        follower.refresh().unwrap();
        assert_eq!(follower.keyspaces(), store.keyspaces(), "round {round}");
        assert_eq!(one.name(), "first");
        assert!(follower.existing_keyspace("two").is_err());
        store.keyspace(&format!("another{round}")).unwrap();
    }
    // Merges may drop what the snapshot sees, and the reader goes on with files of its own.
    store.existing_keyspace("first").unwrap().put("key", "changed").unwrap();
    for space in ["first", "three"] {
        store.existing_keyspace(space).unwrap().merge().unwrap();
    }
    follower.refresh().unwrap();
    assert_eq!(one.get("key").unwrap().as_deref(), Some(&b"changed"[..]));
    assert_eq!(snapshot.get(&one, "key").unwrap().as_deref(), Some(&b"one"[..]));
    assert_eq!(iter.next().unwrap().unwrap().1, "three");
}

/// One snapshot of a reader keeps one version and its lease, however often the reader is refreshed.
#[test]
fn many_refreshes_under_one_snapshot_keep_one_lease() {
    let env = MemEnv::new();
    let store = small(&env).policy("constant(k=1)").open().unwrap();
    let space = store.keyspace("a").unwrap();
    fill(&space, 0..400, [0; 50]);
    space.flush().unwrap();
    let follower = reader(&env).open().unwrap();
    let read = follower.existing_keyspace("a").unwrap();
    let snapshot = follower.snapshot();
    let before = entries(&snapshot);
    for round in 1..40 {
        fill(&space, 0..400, [round; 50]);
        space.flush().unwrap();
        space.merge().unwrap();
        follower.refresh().unwrap();
        assert_eq!(read.get(0_u32.to_be_bytes()).unwrap().as_deref(), Some(&[round; 50][..]));
        assert!(leases(&env).len() <= 2, "{:?}", leases(&env));
    }
    assert!(entries(&snapshot) == before);
    drop(snapshot);
    assert_eq!(leases(&env).len(), 1);
}
