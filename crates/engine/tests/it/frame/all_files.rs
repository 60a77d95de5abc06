//! A store with files of all kinds: several keyspaces, plain and compressed tables, bulk loads,
//! tables with kept blocks, several logs, a spill.

use super::small::{DIR, plain};
use crate::frame::batches::{Batches, POLICIES, Progress};
use crate::frame::contents::{Map, maps, read_file};
use lsmith::env::{Env, MemEnv};
use lsmith::{Builder, PersistMode, Store};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

/// A store with files of all kinds, as it was written.
pub(crate) struct Base {
    pub(crate) seed: u64,
    pub(crate) env: MemEnv,
    pub(crate) policy: &'static str,
    pub(crate) codec: &'static str,
    pub(crate) values_from: Option<u64>,
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
    pub(crate) maps: BTreeMap<String, Map>,
    /// A short name of the content of all keyspaces after each write.
    pub(crate) states: Vec<u64>,
}

impl Base {
    pub(crate) fn new(seed: u64) -> Base {
        Base::written(seed, &mut |_| ())
    }

    /// The same, with its states.
    pub(crate) fn with_states(seed: u64) -> Base {
        let mut states = vec![state(&BTreeMap::new())];
        let base = Base::written(seed, &mut |store| states.push(state(&maps(store))));
        Base { states, ..base }
    }

    fn written(seed: u64, note: &mut dyn FnMut(&Store)) -> Base {
        let mut base = Base {
            seed,
            env: MemEnv::new(),
            policy: POLICIES[seed as usize % POLICIES.len()],
            codec: ["none", "lz4", "zstd"][(seed / 2) as usize % 3],
            values_from: seed.is_multiple_of(3).then_some(20),
            files: Vec::new(),
            maps: BTreeMap::new(),
            states: Vec::new(),
        };
        let store = base.builder(&base.env).open().unwrap();
        let batches = Batches { keys: 40, value_bytes: 60, ..Batches::new(seed) };
        let mut progress = Progress::default();
        for number in 0..90 {
            let mode = if number % 20 == 19 { PersistMode::SyncData } else { PersistMode::Buffer };
            batches.go_on(&store, &mut progress, mode).unwrap();
            note(&store);
        }
        fill_third(&store, batches, progress, note);
        base.maps = maps(&store);
        drop(store);
        for name in base.env.list(Path::new(DIR)).unwrap() {
            let path = Path::new(DIR).join(name);
            base.files.push((path.clone(), read_file(&base.env, &path)));
        }
        base
    }

    pub(crate) fn builder(&self, env: &MemEnv) -> Builder {
        let builder = plain(env).lockstep(true);
        builder
            .policy(self.policy)
            .compression(self.codec)
            .memtable_bytes(2000)
            .block_bytes(300)
            .cache_bytes(20_000)
            .log_bytes(8 << 10)
            .log_bytes_max(16 << 10)
            .large_values(self.values_from)
            .value_space(1.2)
    }
}

/// Fills a keyspace with bulk loads, inserts, removes, and similar keys.
fn fill_third(
    store: &Store,
    batches: Batches,
    mut progress: Progress,
    note: &mut dyn FnMut(&Store),
) {
    let space = store.keyspace("third").unwrap();
    let key = |number: u32| format!("{}{number:05}", "alike".repeat(12));
    for start in [0, 1000] {
        let mut load = space.bulk_load().unwrap();
        (start..start + 40).for_each(|number| load.put(key(number), "loaded").unwrap());
        load.finish().unwrap();
        note(store);
    }
    for number in 500..560 {
        space.put_new_unchecked(key(number), "inserted").unwrap();
        note(store);
        batches.go_on(store, &mut progress, PersistMode::Buffer).unwrap();
        note(store);
        if number % 3 == 0 {
            space.delete_single_unchecked(key(number)).unwrap();
            note(store);
        }
    }
}

/// Returns a short name for the content `maps`.
pub(crate) fn state(maps: &BTreeMap<String, Map>) -> u64 {
    let held: Vec<_> = maps.iter().filter(|(_, map)| !map.is_empty()).collect();
    let mut hasher = DefaultHasher::new();
    held.hash(&mut hasher);
    hasher.finish()
}
