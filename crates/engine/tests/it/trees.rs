//! Keyspaces whose tables are append tables.

use lsmith::env::MemEnv;
use lsmith::{DEFAULT_KEYSPACE, Event, Observer, Store};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
struct Plans(Mutex<Vec<String>>);

impl Observer for Plans {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        if let Event::Committed { plan, edit, tree, .. } = event {
            self.0.lock().unwrap().push(format!("{plan}\n{edit}\n{tree}"));
        }
    }
}

#[test]
fn debug_trees() {
    for seed in 0..50u64 {
        let plans = Arc::new(Plans::default());
        let observer: Arc<dyn Observer> = Arc::<Plans>::clone(&plans);
        let env = MemEnv::new();
        let open = |n: u64| Store::builder("/store")
            .env(Arc::new(if n % 2 == 0 { env.clone() } else { env.clone().unmapped() }))
            .block_bytes([40, 80, 200][n as usize % 3])
            .cache_bytes([0, 2000, 1 << 20][n as usize % 3])
            .filter_bits([0, 4, 10][(n / 3) as usize % 3])
            .policy("jungle(c=1.5, ratio=2, table=400B)")
            .memtable_bytes(200)
            .lockstep(true)
            .observer(observer.clone())
            .open()
            .unwrap();
        let mut store = open(0);
        let mut last = 0;
        let mut space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
        let mut map = BTreeMap::new();
        let mode = seed % 4;
        let mut held = Vec::new();
        let mut inserted = std::collections::BTreeSet::new();
        let mut dice = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        for step in 0..2000u64 {
            dice ^= dice << 13;
            dice ^= dice >> 7;
            dice ^= dice << 17;
            let key = format!("{:03}", dice % 150).into_bytes();
            if mode & 1 == 1 && (dice >> 30) % 10 == 0 {
                held.push(store.snapshot());
                if held.len() > 3 {
                    held.remove((dice >> 40) as usize % 4);
                }
            }
            if seed >= 10 && dice >> 33 & 63 == 0 {
                space.merge().unwrap();
            }
            if seed >= 20 && dice >> 43 & 63 == 0 {
                held.clear();
                drop(space);
                drop(store);
                last = dice >> 50;
                store = open(last);
                space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
            }
            let was = inserted.remove(&key);
            if (dice >> 20) % 5 == 0 && map.contains_key(&key) {
                if was {
                    space.remove(&key).unwrap();
                } else {
                    space.delete(&key).unwrap();
                }
                map.remove(&key);
            } else if mode & 2 == 2 && !map.contains_key(&key) {
                let value = format!("{step:010}").into_bytes();
                space.insert(&key, &value).unwrap();
                inserted.insert(key.clone());
                map.insert(key, value);
            } else {
                let value = format!("{step:010}").into_bytes();
                space.put(&key, &value).unwrap();
                map.insert(key, value);
            }
            let found: BTreeMap<Vec<u8>, Vec<u8>> =
                space.iter().map(|e| e.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).collect();
            let wrong = map.keys().chain(found.keys()).find(|k| map.get(*k) != found.get(*k));
            if let Some(key) = wrong {
                let got = space.get(key).unwrap();
                {
                    let all = plans.0.lock().unwrap();
                    for p in all.iter().skip(all.len().saturating_sub(3)) {
                        eprintln!("----\n{p}");
                    }
                }
                drop(space);
                drop(store);
                store = open(last);
                space = store.keyspace(DEFAULT_KEYSPACE).unwrap();
                eprintln!("after reopening {:?} verify {:?}", space.get(key).unwrap(), store.verify());
                let miss: Vec<_> = map.keys().filter(|k| !found.contains_key(*k)).map(|k| String::from_utf8_lossy(k).into_owned()).collect();
                let have: Vec<_> = found.keys().map(|k| String::from_utf8_lossy(k).into_owned()).collect();
                eprintln!("missing {miss:?} have {have:?} n {last}");
                panic!(
                    "mode {mode} seed {seed} step {step} key {:?} iter {:?} get {:?} expected {:?}",
                    String::from_utf8_lossy(key),
                    found.get(key),
                    got,
                    map.get(key)
                );
            }
        }
    }
}
