//! Every stop point of the operations of a store: see [`crate::frame::stops`].

use crate::dice::any_seed;
use crate::frame::batches::Batches;
use crate::frame::contents::names;
use crate::frame::stops::{DIR, End, Life, Script, Told};
use lsmith::env::{FaultEnv, MemEnv, OpClass};
use lsmith::{PersistMode, Store};

fn nothing(_: &Store, _: &mut Life) -> lsmith::Result<()> {
    Ok(())
}

fn always(_: &FaultEnv, _: &MemEnv) -> bool {
    true
}

/// Options with short batches, so that few operations do much.
const BATCHES: Batches =
    Batches { seed: 1, keys: 60, key_bytes: 8, value_bytes: 60, in_group: false, ranges: true };

const PLAIN: Script = Script {
    name: "plain",
    batches: BATCHES,
    options: |builder| builder.memtable_bytes(2000),
    before: nothing,
    end: End::Closed,
    ready: None,
    work: nothing,
    proof: always,
};

/// Writes of every kind, manual and automatic flushes, and closing. The first run also creates the
/// store.
const WRITES: Script = Script {
    name: "writes",
    work: |store, life| {
        life.write(store, 4, PersistMode::Buffer)?;
        life.write(store, 2, PersistMode::SyncData)?;
        life.write(store, 12, PersistMode::Buffer)?;
        store.flush()?;
        life.synced();
        life.write(store, 3, PersistMode::Buffer)?;
        store.persist(PersistMode::SyncAll)?;
        life.synced();
        life.write(store, 2, PersistMode::Buffer)
    },
    proof: |_, disk| names(disk, DIR, ".table").len() > 2,
    ..PLAIN
};

/// Several log files. The oldest are removed.
const LOGS: Script = Script {
    name: "logs",
    batches: Batches { value_bytes: 1500, ..BATCHES },
    options: |builder| builder.memtable_bytes(30_000),
    work: |store, life| {
        life.write(store, 60, PersistMode::Buffer)?;
        life.write(store, 1, PersistMode::SyncData)?;
        life.write(store, 10, PersistMode::Buffer)
    },
    proof: |env, _| env.count(OpClass::CreateLog) > 3 && env.count(OpClass::Remove) > 2,
    ..PLAIN
};

const BULK_LOAD: Script = Script {
    name: "load",
    options: |builder| builder.memtable_bytes(5000),
    before: |store, life| life.write(store, 30, PersistMode::Buffer),
    work: |store, life| {
        life.write(store, 3, PersistMode::Buffer)?;
        store.keyspace("loaded")?.put("00007", "below the load")?;
        store.keyspace("loaded")?.delete("00007")?;
        life.load(store)?;
        life.write(store, 2, PersistMode::SyncData)
    },
    ..PLAIN
};

/// Memory is empty, so no log is needed except for the number of the load.
const LOAD_ALONE: Script = Script {
    name: "load_alone",
    before: |store, life| {
        life.write(store, 10, PersistMode::Buffer)?;
        store.flush()
    },
    work: |store, life| life.load(store),
    ..BULK_LOAD
};

const POLICY: Script = Script {
    name: "policy",
    options: |builder| builder.policy("tiered(ratio=3)").memtable_bytes(1000),
    before: |store, life| life.write(store, 40, PersistMode::Buffer),
    work: |store, life| {
        life.write(store, 2, PersistMode::Buffer)?;
        let left = store.keyspace("left")?;
        left.set_merge_policy("leveled(ratio=2, l0=1, table=1kB)")?;
        left.set_compression("lz4")?;
        life.write(store, 4, PersistMode::Buffer)?;
        left.merge()?;
        left.set_merge_policy("none")
    },
    ..PLAIN
};

const KEYSPACES: Script = Script {
    name: "keyspaces",
    before: |store, life| life.write(store, 5, PersistMode::Buffer),
    work: |store, life| {
        for name in ["one", "two", "three"] {
            store.keyspace(name)?.put("a", "b")?;
        }
        life.write(store, 3, PersistMode::SyncData)?;
        store.keyspace("two")?.flush()
    },
    ..PLAIN
};

/// Two keyspaces that merge together. The first run also makes the group.
const GROUP: Script = Script {
    name: "group",
    batches: Batches { in_group: true, ..BATCHES },
    options: |builder| builder.policy("minlatency(k=2)").memtable_bytes(1500),
    work: |store, life| {
        life.write(store, 30, PersistMode::Buffer)?;
        life.write(store, 2, PersistMode::SyncData)?;
        let right = store.existing_keyspace("right")?;
        right.set_merge_policy("tiered(ratio=2)")?;
        life.write(store, 10, PersistMode::Buffer)?;
        right.merge()
    },
    proof: |_, disk| names(disk, DIR, ".table").len() > 1,
    ..PLAIN
};

/// Opening with much to recover, from several logs.
const RECOVERY: Script = Script {
    name: "recovery",
    batches: Batches { value_bytes: 1500, ..BATCHES },
    options: |builder| builder.memtable_bytes(60_000),
    before: |store, life| {
        life.write(store, 50, PersistMode::Buffer)?;
        life.write(store, 1, PersistMode::SyncData)?;
        life.write(store, 40, PersistMode::Buffer)
    },
    end: End::Killed,
    work: |store, life| life.write(store, 1, PersistMode::SyncData),
    ..PLAIN
};

const AFTER_POWER_LOSS: Script =
    Script { name: "after_power_loss", end: End::PowerLost, ..RECOVERY };

const PUNCHING: Script = Script {
    name: "punching",
    batches: Batches { seed: 3, keys: 1000, value_bytes: 1500, ..BATCHES },
    options: |builder| {
        let builder = builder.policy("choose_best(ratio=3, rate=0.3)").memtable_bytes(32 << 10);
        builder.block_bytes(4096)
    },
    before: |store, life| life.write(store, 200, PersistMode::Buffer),
    work: |store, life| life.write(store, 30, PersistMode::Buffer),
    proof: |env, _| env.count(OpClass::Punch) > 0,
    ..PLAIN
};

/// Memory that stays in memory, and is copied so that logs can go.
const SPILLS: Script = Script {
    name: "spills",
    batches: Batches { keys: 1000, value_bytes: 1500, ..BATCHES },
    options: |builder| {
        let builder = builder.policy("choose_best(ratio=2, rate=0.2)").memtable_bytes(200_000);
        builder.log_bytes_max(100_000)
    },
    before: |store, life| life.write(store, 100, PersistMode::Buffer),
    work: |store, life| life.write(store, 60, PersistMode::Buffer),
    proof: |_, disk| !names(disk, DIR, ".spill").is_empty(),
    ..PLAIN
};

const MIXED_SPILLS: Script = Script {
    name: "mixed_spills",
    options: |builder| {
        let builder = builder.policy("mixed(ratio=2, rate=0.3)").memtable_bytes(200_000);
        builder.log_bytes_max(100_000)
    },
    ..SPILLS
};

/// Tables that go unread: the oldest by their policy, and others under range deletes.
const DROPS: Script = Script {
    name: "drops",
    before: |store, life| {
        store.keyspace("young")?.set_merge_policy("fifo(bytes=4kB)")?;
        store.keyspace("queue")?.set_merge_policy("leveled(ratio=2, l0=1, table=1kB)")?;
        life.write(store, 5, PersistMode::Buffer)
    },
    work: |store, life| {
        let [young, queue] = [store.existing_keyspace("young")?, store.existing_keyspace("queue")?];
        for round in 0..5_u64 {
            for number in 20 * round..20 * (round + 1) {
                young.put(number.to_be_bytes(), [1; 60])?;
                queue.put(number.to_be_bytes(), [1; 60])?;
            }
            queue.delete_range(..(20 * round).to_be_bytes())?;
            store.flush()?;
            life.synced();
            life.write(store, 2, PersistMode::Buffer)?;
        }
        life.write(store, 1, PersistMode::SyncData)
    },
    proof: |env, _| env.count(OpClass::Remove) > 6,
    ..PLAIN
};

/// Values in value files, which are cleaned all the time.
const VALUES: Script = Script {
    name: "values",
    batches: Batches { value_bytes: 300, ..BATCHES },
    options: |builder| {
        let builder = builder.policy("leveled(ratio=2, l0=1, table=2kB)").memtable_bytes(3000);
        builder.large_values(50).value_space(1.05)
    },
    before: |store, life| life.write(store, 40, PersistMode::Buffer),
    work: |store, life| {
        life.write(store, 20, PersistMode::Buffer)?;
        life.write(store, 1, PersistMode::SyncData)?;
        store.keyspace("left")?.merge()?;
        life.write(store, 10, PersistMode::Buffer)
    },
    proof: |env, disk| names(disk, DIR, ".values").len() > 1 && env.count(OpClass::Remove) > 10,
    ..PLAIN
};

/// A manifest that is nearly full is followed by a new one.
const ROLL_OVER: Script = Script {
    name: "roll_over",
    batches: Batches { key_bytes: 2000, ..BATCHES },
    options: |builder| builder.policy("none").memtable_bytes(1 << 20),
    ready: Some(|store, life| {
        life.write(store, 1, PersistMode::Buffer)?;
        while store.stats().manifest_bytes < 250_000 {
            life.write(store, 2, PersistMode::Buffer)?;
            store.flush()?;
        }
        life.synced();
        Ok(())
    }),
    work: |store, life| {
        for _ in 0..6 {
            life.write(store, 2, PersistMode::Buffer)?;
            store.flush()?;
            life.synced();
        }
        Ok(())
    },
    proof: |env, _| env.count(OpClass::Rename) > 1,
    ..PLAIN
};

#[test]
fn a_store_survives_every_stop_and_every_loss() {
    let seed = any_seed();
    let mut told = Told::default();
    for script in [
        WRITES,
        LOGS,
        BULK_LOAD,
        LOAD_ALONE,
        POLICY,
        KEYSPACES,
        GROUP,
        RECOVERY,
        AFTER_POWER_LOSS,
        PUNCHING,
        SPILLS,
        MIXED_SPILLS,
        DROPS,
        VALUES,
        ROLL_OVER,
    ] {
        script.stop_everywhere(seed, &mut told);
    }
    told.end(seed);
}
