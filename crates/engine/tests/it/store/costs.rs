//! What must not grow with the history of a store.
//!
//! Promised: a read, a write and an opening cost the same, whatever happened before: renames, range
//! deletes, snapshots, openings, keyspaces that were dropped or cleared. The tests count bytes
//! that are allocated, operations of the system and bytes of files. They do not look at clocks.

use crate::frame::small::{DIR, fill, plain};
use crate::frame::watchdog::ends;
use lsmith::env::{Env, FaultEnv, MemEnv};
use lsmith::{Builder, Isolation, Keyspace, PersistMode, Store};
use lsmith_fuzz::allocated_bytes;
use std::path::Path;

fn builder(env: &(impl Env + Clone)) -> Builder {
    plain(env).lockstep(true).log_bytes(64 << 10).memtable_bytes(64 << 10)
}

/// Returns the bytes that `work` allocates.
fn cost(work: impl FnOnce()) -> u64 {
    allocated_bytes(work).1
}

/// What one of each costs, in bytes that are allocated.
fn costs(store: &Store, space: &Keyspace, key: &[u8]) -> [(&'static str, u64); 5] {
    let mut entries = space.range(key..);
    [
        ("a get", cost(|| drop(space.get(key).unwrap()))),
        ("a seek", cost(|| drop(space.range(key..).next()))),
        ("a seek back", cost(|| drop(space.range(..key).next_back()))),
        ("a step", cost(|| drop(entries.next()))),
        (
            "a commit",
            cost(|| {
                let mut transaction = store.transaction(Isolation::Serializable);
                transaction.get(space, key).unwrap();
                transaction.range(space, key..).next();
                transaction.put(space, b"written", b"").unwrap();
                transaction.commit(PersistMode::Buffer).unwrap();
            }),
        ),
    ]
}

/// What broke: each range read joined the range deletes of the memtable and of the tree.
#[test]
fn reads_cost_the_same_however_many_ranges_were_deleted() {
    const MANY: u32 = 1000;
    let costs_beside = |deletes: u32| {
        let builder = builder(&MemEnv::new()).policy("none").memtable_bytes(16 << 20);
        let store = builder.open().unwrap();
        let space = store.keyspace("space").unwrap();
        (0..10 * MANY).for_each(|key| space.put(key.to_be_bytes(), [1; 10]).unwrap());
        for half in 0..2 {
            // Of the run, which stays, so that the range deletes stay in force.
            space.flush().unwrap();
            for number in 0..deletes {
                let key = 10 * number + 5 * half;
                space.delete_range(key.to_be_bytes()..(key + 3).to_be_bytes()).unwrap();
            }
        }
        // The first half is in the tree, the second in the memtable.
        assert!(space.tree().range_deletes().len() >= deletes as usize);
        costs(&store, &space, &55_u32.to_be_bytes())
    };
    let (few, many) = (costs_beside(30), costs_beside(MANY));
    for ((what, few), (_, many)) in few.into_iter().zip(many) {
        assert!(many <= few + few / 4 + 2000, "{what}: {few} bytes, then {many}");
    }
}

/// What broke: each rename made every later batch slower, and closing overflowed the stack.
#[test]
fn renames_cost_nothing_later() {
    ends(|| {
        let env = FaultEnv::over(MemEnv::new());
        let store = builder(&env).open().unwrap();
        let space = store.keyspace("space0").unwrap();
        let write = || cost(|| space.put("key", "value").unwrap());
        write();
        let before = write();
        let rename = |number: u32| {
            store.rename_keyspace(&format!("space{number}"), &format!("space{}", number + 1))
        };
        (0..30_000).for_each(|number| rename(number).unwrap());
        assert_eq!(space.name(), "space30000");
        assert!(write() <= before + 200, "a put allocates no more");
        let operations = env.count_all();
        space.put("key", "value").unwrap();
        assert_eq!(env.count_all() - operations, 1, "the append to the log");
        drop((space, store));
        builder(&env).open().unwrap().existing_keyspace("space30000").unwrap();
    });
}

/// Returns the number of files in the directory, and their bytes.
fn files(env: &dyn Env) -> (usize, u64) {
    let names = env.list(Path::new(DIR)).unwrap();
    let bytes = names.iter().filter_map(|name| env.file_bytes(&Path::new(DIR).join(name)).ok());
    (names.len(), bytes.sum())
}

/// Something that is over once it is done.
type Deed = fn(&FaultEnv, Store, u32) -> Store;

/// Does `deed` a few times and then many times more. What a store holds, and what an opening does,
/// must not grow.
fn stays_the_same(name: &str, deed: Deed) {
    let env = FaultEnv::over(MemEnv::new());
    let mut store = builder(&env).open().unwrap();
    let space = store.keyspace("stays").unwrap();
    fill(&space, 0..100, [1; 100]);
    drop(space);
    let mut found = Vec::new();
    for numbers in [0..20, 20..400] {
        store = numbers.fold(store, |store, number| deed(&env, store, number));
        store.flush().unwrap();
        let space = store.keyspace("stays").unwrap();
        let reads = costs(&store, &space, &7_u32.to_be_bytes());
        let memory = store.memory().total();
        drop((space, store));
        let before = env.count_all();
        store = builder(&env).open().unwrap();
        let operations = env.count_all() - before;
        store.settle().unwrap();
        found.push((reads, memory, operations, files(&env)));
    }
    let [few, many] = &found[..] else { unreachable!("two numbers of times") };
    let told = format!("{name}: {few:?}, then {many:?}");
    for ((_, few), (_, many)) in few.0.iter().zip(&many.0) {
        assert!(*many <= few + few / 4 + 2000, "{told}");
    }
    assert!(many.1 <= few.1 + few.1 / 2 + 10_000, "memory of {told}");
    assert!(many.2 <= few.2 + few.2 / 2 + 10, "operations of {told}");
    assert!(many.3.0 <= few.3.0 + 2, "files of {told}");
    assert!(many.3.1 <= few.3.1 + few.3.1 / 2 + 100_000, "bytes of {told}");
}

#[test]
fn what_is_over_costs_nothing_later() {
    let deeds: [(&str, Deed); 7] = [
        ("openings", |env, store, _| {
            store.keyspace("stays").unwrap().put("key", "value").unwrap();
            drop(store);
            builder(env).open().unwrap()
        }),
        ("keyspaces that were dropped", |_, store, number| {
            let name = format!("space{number}");
            store.keyspace(&name).unwrap().put("key", "value").unwrap();
            store.drop_keyspace(&name).unwrap();
            store
        }),
        ("clearings", |_, store, _| {
            let space = store.keyspace("cleared").unwrap();
            space.put("key", "value").unwrap();
            space.clear().unwrap();
            store
        }),
        ("renames", |_, store, number| {
            store.keyspace("space0").unwrap();
            let other = format!("other{number}");
            store.rename_keyspace("space0", &other).unwrap();
            store.rename_keyspace(&other, "space0").unwrap();
            store
        }),
        ("snapshots", |_, store, number| {
            let snapshot = store.snapshot();
            store.keyspace("stays").unwrap().put("key", number.to_be_bytes()).unwrap();
            drop(snapshot);
            store
        }),
        ("range deletes", |_, store, number| {
            let space = store.keyspace("stays").unwrap();
            let key = |number: u32| format!("range {number:08}");
            space.put(key(number), "value").unwrap();
            space.delete_range(key(number)..key(number + 1)).unwrap();
            if number % 10 == 9 {
                space.merge().unwrap();
            }
            store
        }),
        ("changes of the policy", |_, store, number| {
            let space = store.keyspace("stays").unwrap();
            let policy = ["tiered(ratio=4)", "leveled(ratio=4)"][number as usize % 2];
            space.set_merge_policy(policy).unwrap();
            store
        }),
    ];
    for (name, deed) in deeds {
        ends(move || stays_the_same(name, deed));
    }
}
