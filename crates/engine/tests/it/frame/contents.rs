//! What keyspaces and files contain.

use bytes::Bytes;
use lsmith::env::Env;
use lsmith::{DEFAULT_KEYSPACE, Keyspace, Snapshot, Store};
use std::collections::BTreeMap;
use std::path::Path;

/// What a keyspace should contain.
pub(crate) type Map = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn pair(entry: lsmith::Result<(Bytes, Bytes)>) -> (Vec<u8>, Vec<u8>) {
    let (key, value) = entry.unwrap();
    (key.to_vec(), value.to_vec())
}

pub(crate) fn contents(space: &Keyspace) -> Map {
    space.iter().map(pair).collect()
}

/// Puts `value` under `key`, or deletes the key, in `space` and in `map` alike.
pub(crate) fn write(space: &Keyspace, map: &mut Map, key: Vec<u8>, value: Option<Vec<u8>>) {
    match value {
        Some(value) => {
            space.put(&key, &value).unwrap();
            map.insert(key, value);
        }
        None => {
            space.delete(&key).unwrap();
            map.remove(&key);
        }
    }
}

/// Returns what `snapshot` sees in `space`.
pub(crate) fn seen(snapshot: &Snapshot, space: &Keyspace) -> Map {
    snapshot.range::<&[u8]>(space, ..).map(pair).collect()
}

/// Returns the contents of all keyspaces, by name.
pub(crate) fn maps(store: &Store) -> BTreeMap<String, Map> {
    let map = |name: &String| contents(&store.existing_keyspace(name).unwrap());
    store.keyspaces().into_iter().map(|name| (name.clone(), map(&name))).collect()
}

/// Returns the value of `key`, a text.
pub(crate) fn get(space: &Keyspace, key: &str) -> Option<String> {
    space.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap())
}

pub(crate) fn default_keyspace(store: &Store) -> Keyspace {
    store.keyspace(DEFAULT_KEYSPACE).unwrap()
}

/// Returns the names in `dir` that end with `ending`.
pub(crate) fn names(env: &dyn Env, dir: &str, ending: &str) -> Vec<String> {
    let names = env.list(Path::new(dir)).unwrap().into_iter();
    names.filter(|name| name.ends_with(ending)).collect()
}

/// Returns the bytes of the file at `path`.
pub(crate) fn read_file(env: &dyn Env, path: &Path) -> Vec<u8> {
    let file = env.open(path).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Replaces the content of `path` by `bytes`.
pub(crate) fn write_file(env: &dyn Env, path: &Path, bytes: &[u8]) {
    env.remove_file(path).unwrap();
    let mut file = env.create(path).unwrap();
    file.write_all(bytes).unwrap();
    file.sync().unwrap();
}
