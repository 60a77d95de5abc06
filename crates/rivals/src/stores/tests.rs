//! Every store that was built in does what the harness takes for granted.

use super::{Configs, KINDS, Lacks, Settings, Store, find};
use crate::data::{Key, Order};

fn key(number: u64) -> Key {
    Order::Ascending.key(number)
}

fn get(store: &dyn Store, number: u64) -> Option<Vec<u8>> {
    let mut seen = None;
    let found = store.get(&key(number), &mut |value| seen = Some(value.to_vec())).unwrap();
    assert_eq!(found, seen.is_some());
    seen
}

fn scan(store: &dyn Store, from: Option<u64>, limit: usize) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut seen = Vec::new();
    let from = from.map(key);
    let mut visit = |key: &[u8], value: &[u8]| {
        seen.push((key.to_vec(), value.to_vec()));
        seen.len() < limit
    };
    store.scan(from.as_ref(), &mut visit).unwrap();
    seen
}

fn check(label: &str) {
    let dir = tempfile::tempdir().unwrap();
    let opened = find(label).unwrap().open(dir.path(), Settings::default()).unwrap();
    let store = opened.as_ref();
    for number in 0..50 {
        let synced = store.put(&key(number), b"first", number % 10 == 0);
        if synced.is_err_and(|error| error.is::<Lacks>()) {
            store.put(&key(number), b"first", false).unwrap();
        }
    }
    store.write(&[(key(7), Some(b"second")), (key(8), None)]).unwrap();
    store.delete(&key(9)).unwrap();
    assert_eq!(get(store, 7).as_deref(), Some(&b"second"[..]));
    assert_eq!((get(store, 8), get(store, 9), get(store, 50)), (None, None, None));

    let mut bytes = 0;
    let found = store.multi_get(&[key(6), key(7), key(8)], &mut |value| bytes += value.len());
    assert_eq!((found.unwrap(), bytes), (2, 11));

    let keys = |entries: Vec<(Vec<u8>, Vec<u8>)>| -> Vec<Vec<u8>> {
        entries.into_iter().map(|(key, _)| key).collect()
    };
    let expected: Vec<Vec<u8>> = [7, 10, 11].map(|number| key(number).to_vec()).to_vec();
    assert_eq!(keys(scan(store, Some(7), 3)), expected);
    let all = scan(store, None, usize::MAX);
    assert_eq!(all.len(), 48);
    let mut reverse = Vec::new();
    let mut visit = |key: &[u8], value: &[u8]| {
        reverse.push((key.to_vec(), value.to_vec()));
        true
    };
    match store.scan_reverse(&mut visit) {
        Err(error) if error.is::<Lacks>() => assert_eq!(reverse.len(), 0),
        walked => {
            walked.unwrap();
            reverse.reverse();
            assert_eq!(reverse, all);
        }
    }
    store.flush().unwrap();
    store.settle().unwrap();
    assert_eq!(get(store, 0).as_deref(), Some(&b"first"[..]));
}

#[test]
fn every_store_keeps_what_it_is_given() {
    for kind in KINDS {
        check(kind.name);
        match kind.configs {
            Configs::Policy => {
                for config in ["auto(runs=5, price=1)", "values", "direct+tiered(ratio=4)"] {
                    check(&format!("{}:{config}", kind.name));
                }
            }
            Configs::Named(configs) => {
                configs.iter().for_each(|(config, _)| check(&format!("{}:{config}", kind.name)));
            }
        }
    }
}
