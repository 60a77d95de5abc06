//! Numbered batches. The content of batch number n depends on n alone, so after any accident a test
//! knows which batches are there, whether each is whole, and whether one is missing.

use crate::dice::Dice;
use lsmith::env::MemEnv;
use lsmith::{Batch, Builder, Keyspace, KeyspaceOptions, PersistMode, Store};
use std::collections::BTreeMap;

/// A key that every batch writes, to both keyspaces.
const LAST: &str = "last";

const SPACES: [&str; 2] = ["left", "right"];

/// The content of the two keyspaces.
pub(crate) type Maps = [BTreeMap<Vec<u8>, Vec<u8>>; 2];

/// Policies that together do everything that a merge can do.
pub(crate) const POLICIES: [&str; 10] = [
    "minlatency(k=2)",
    "tiered(ratio=2)",
    "leveled(ratio=2, l0=1, table=2kB)",
    "leveled(ratio=3, l0=2, pick=round_robin, table=1kB)",
    "constant(k=1)",
    "full(ratio=2)",
    "choose_best(ratio=2, rate=0.2)",
    "rr(ratio=3, rate=0.1, reuse=false)",
    "mixed(ratio=2, rate=0.3)",
    "jungle(c=2, ratio=2, table=2kB)",
];

/// Policies that the keyspaces of a group can have.
pub(crate) const GROUP_POLICIES: [&str; 6] = [
    "minlatency(k=2)",
    "binomial(k=3)",
    "tiered(ratio=2)",
    "cola(ratio=2)",
    "universal(trigger=2)",
    "constant(k=1)",
];

/// A sequence of batches.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Batches {
    pub(crate) seed: u64,
    /// The number of keys. Their length makes the manifest long.
    pub(crate) keys: usize,
    pub(crate) key_bytes: usize,
    /// The greatest length of most values. Long values fill the log fast.
    pub(crate) value_bytes: usize,
    /// True if the two keyspaces belong to a group.
    pub(crate) in_group: bool,
    /// True if some batches begin with a range delete.
    pub(crate) ranges: bool,
}

/// The batches that were written, and how far they got.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// The last batch that was tried.
    pub(crate) tried: u64,
    /// The last batch whose write returned without error.
    pub(crate) acknowledged: u64,
    /// The last batch that must survive power loss.
    pub(crate) synced: u64,
}

impl Batches {
    pub(crate) fn new(seed: u64) -> Batches {
        let value_bytes = if seed.is_multiple_of(2) { 60 } else { 1500 };
        let ranges = !seed.is_multiple_of(3);
        Batches { seed, keys: 60, key_bytes: 8, value_bytes, in_group: false, ranges }
    }

    /// Returns the keyspace, the start and the end of the range that batch `number` deletes before
    /// its other writes, if it deletes one.
    pub(crate) fn range(&self, number: u64) -> Option<(usize, Vec<u8>, Vec<u8>)> {
        let mut dice =
            Dice::new(self.seed.wrapping_add(number.wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        if !self.ranges || !dice.chance(15) {
            return None;
        }
        let [one, other] = [dice.below(self.keys), dice.below(self.keys)];
        let key = |key: usize| format!("{key:0width$}", width = self.key_bytes).into_bytes();
        Some((dice.below(2), key(one.min(other)), key(one.max(other) + 1)))
    }

    /// Returns the writes of batch `number`: the keyspace, the key, and the value or `None` for a
    /// delete.
    pub(crate) fn ops(&self, number: u64) -> Vec<(usize, Vec<u8>, Option<Vec<u8>>)> {
        let mut dice = Dice::new(self.seed ^ number.wrapping_mul(0x5851_f42d_4c95_7f2d));
        let mut ops = vec![];
        for _ in 0..1 + dice.below(6) {
            let key = format!("{:0width$}", dice.below(self.keys), width = self.key_bytes);
            let length = if dice.chance(3) { 2000 } else { dice.below(self.value_bytes) };
            // No zeros: so no damage of a record can look like a torn end.
            let mut value: Vec<u8> = dice.bytes(length).iter().map(|byte| byte | 1).collect();
            // A third of the values can be compressed.
            if length.is_multiple_of(3) {
                value.fill(length as u8 | 1);
            }
            let value = (!dice.chance(20)).then_some(value);
            ops.push((dice.below(2), key.into_bytes(), value));
        }
        for space in 0..2 {
            ops.insert(dice.below(ops.len() + 1), (space, LAST.into(), Some(text(number))));
        }
        ops
    }

    /// Returns batch `number` for `store`.
    pub(crate) fn batch(&self, store: &Store, number: u64) -> lsmith::Result<Batch> {
        // The memtable of one keeps logs long after the memtable of the other is flushed.
        let slow = KeyspaceOptions { memtable_bytes: Some(100_000), ..KeyspaceOptions::default() };
        let group = KeyspaceOptions { group: Some("both".into()), ..KeyspaceOptions::default() };
        let options = match self.in_group {
            true => [group.clone(), group],
            false => [KeyspaceOptions::default(), slow],
        };
        let [left, right] = [0, 1].map(|at| store.keyspace_with(SPACES[at], &options[at]));
        let spaces = [left?, right?];
        let mut batch = Batch::new();
        if let Some((space, start, end)) = self.range(number) {
            batch.delete_range(&spaces[space], start..end);
        }
        for (space, key, value) in self.ops(number) {
            match value {
                Some(value) => batch.put(&spaces[space], key, value),
                None => batch.delete(&spaces[space], key),
            }
        }
        Ok(batch)
    }

    /// Writes the next batch, and notes how far it got.
    pub(crate) fn go_on(
        &self,
        store: &Store,
        progress: &mut Progress,
        mode: PersistMode,
    ) -> lsmith::Result<()> {
        let number = progress.acknowledged + 1;
        // Made first: what fails here has not tried the write.
        let batch = self.batch(store, number)?;
        progress.tried = number;
        store.write(batch, mode)?;
        progress.acknowledged = number;
        if mode != PersistMode::Buffer {
            progress.synced = number;
        }
        Ok(())
    }

    /// Returns the content of the keyspaces after batch `number`.
    pub(crate) fn after(&self, number: u64) -> Maps {
        let mut maps = Maps::default();
        for number in 1..=number {
            if let Some((space, start, end)) = self.range(number) {
                maps[space].retain(|key, _| *key < start || *key >= end);
            }
            for (space, key, value) in self.ops(number) {
                match value {
                    Some(value) => maps[space].insert(key, value),
                    None => maps[space].remove(&key),
                };
            }
        }
        maps
    }

    /// Returns the number of the last batch in `store`. Asserts, by every way of reading, that all
    /// batches up to it are there and nothing else.
    pub(crate) fn check(&self, store: &Store) -> u64 {
        let last = last(store);
        let expected = self.after(last);
        for (name, map) in SPACES.iter().zip(&expected) {
            let Some(space) = existing(store, name) else {
                assert!(map.is_empty(), "keyspace {name} is missing with batch {last}");
                continue;
            };
            let pair = |entry: lsmith::Result<(bytes::Bytes, bytes::Bytes)>| {
                let (key, value) = entry.unwrap();
                (key.to_vec(), value.to_vec())
            };
            let forward: BTreeMap<_, _> = space.iter().map(pair).collect();
            assert!(forward == *map, "keyspace {name} is not as after batch {last}");
            assert!(space.iter().rev().map(pair).eq(map.clone().into_iter().rev()));
            for (key, value) in map {
                assert_eq!(space.get(key).unwrap().as_deref(), Some(&value[..]));
            }
        }
        last
    }
}

/// Returns the number of the last batch in `store`; 0 if there is none.
pub(crate) fn last(store: &Store) -> u64 {
    let [left, right] = SPACES.map(|name| {
        let found = existing(store, name).and_then(|space| space.get(LAST).unwrap());
        found.map_or(0, |text| std::str::from_utf8(&text).unwrap().parse::<u64>().unwrap())
    });
    assert_eq!(left, right, "batch {} is torn", left.max(right));
    left
}

fn existing(store: &Store, name: &str) -> Option<Keyspace> {
    store.existing_keyspace(name).ok()
}

fn text(number: u64) -> Vec<u8> {
    number.to_string().into_bytes()
}

/// Returns options under which everything happens often, chosen by `dice`.
pub(crate) fn restless(builder: Builder, dice: &mut Dice) -> Builder {
    let from_bytes: Option<u64> = *dice.pick(&[None, None, Some(1), Some(30), Some(700)]);
    builder
        .large_values(from_bytes)
        .value_space(*dice.pick(&[1.05, 1.3, 2.0]))
        .compression(*dice.pick(&["none", "lz4", "none,zstd"]))
        .policy(*dice.pick(&POLICIES))
        .memtable_bytes([500, 2000, 8000, 200_000][dice.below(4)])
        .block_bytes(100)
        .cache_bytes(10_000)
        .log_bytes(64 << 10)
        .threads(1 + dice.below(2))
}

/// Returns `disk`, with or without mapped files.
pub(crate) fn mapped_or_not(disk: &MemEnv, dice: &mut Dice) -> MemEnv {
    let disk = disk.clone();
    if dice.chance(50) { disk } else { disk.unmapped() }
}

/// Returns any persist mode, most often the cheapest.
pub(crate) fn any_mode(dice: &mut Dice) -> PersistMode {
    match dice.below(10) {
        0 => PersistMode::SyncAll,
        1 | 2 => PersistMode::SyncData,
        _ => PersistMode::Buffer,
    }
}

/// Sometimes does something besides writes.
pub(crate) fn now_and_then(store: &Store, dice: &mut Dice) -> lsmith::Result<()> {
    match dice.below(150) {
        0 => store.flush(),
        1 => store.keyspace(SPACES[dice.below(2)])?.flush(),
        2 => store.keyspace(SPACES[dice.below(2)])?.merge(),
        3 => store.keyspace(SPACES[dice.below(2)])?.set_merge_policy(*dice.pick::<&str>(&POLICIES)),
        _ => Ok(()),
    }
}
