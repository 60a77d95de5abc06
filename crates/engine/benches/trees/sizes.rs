//! What append tables take on storage, by the lengths of keys and by how values are compressed.

use crate::reads::thread_cpu;
use crate::stores::{BATCHES, TREE};
use lsmith::{Builder, DEFAULT_KEYSPACE, Keyspace, PersistMode, Result, Store};
use std::path::Path;

/// Lookups that are measured.
const LOOKUPS: u64 = 100_000;

/// The number of rounds. The fastest one counts.
const ROUNDS: u32 = 3;

/// What keys are like.
#[derive(Clone, Copy, Debug)]
enum Keys {
    /// 16 bytes.
    Short,
    /// Keys of 64 bytes. All share their first 48 bytes.
    LongPrefix,
    /// Keys of 64 bytes. No two have the same first 16 bytes.
    LongOwn,
}

impl Keys {
    const ALL: [Keys; 3] = [Keys::Short, Keys::LongPrefix, Keys::LongOwn];

    fn name(self) -> &'static str {
        match self {
            Keys::Short => "16 B",
            Keys::LongPrefix => "64 B, 48 of them shared",
            Keys::LongOwn => "64 B, none shared",
        }
    }

    fn key(self, number: u64) -> Vec<u8> {
        let own = crate::keys::key(number);
        match self {
            Keys::Short => own.to_vec(),
            Keys::LongPrefix => [&[b'p'; 48][..], &own].concat(),
            Keys::LongOwn => [&own[..], &[b's'; 48]].concat(),
        }
    }
}

/// How values are compressed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Values {
    Plain,
    /// All that a batch writes of a leaf together, in blocks of 4 KiB.
    ByLeaf,
    /// Each for itself: a block has one value.
    Alone,
}

impl Values {
    const ALL: [Values; 3] = [Values::Plain, Values::ByLeaf, Values::Alone];

    fn name(self) -> &'static str {
        match self {
            Values::Plain => "not",
            Values::ByLeaf => "by leaf",
            Values::Alone => "alone",
        }
    }

    fn builder(self, dir: &Path, cache_bytes: u64) -> Builder {
        let store = Store::builder(dir).lockstep(true).memtable_bytes(1 << 30).log_bytes(1 << 30);
        let store = store.policy(TREE).cache_bytes(cache_bytes);
        let store = store.compression(if self == Values::Plain { "none" } else { "lz4" });
        if self == Values::Alone { store.block_bytes(1) } else { store }
    }
}

/// Returns a value of words. No two are equal, and many have the same words.
fn value(number: u64, bytes: usize) -> Vec<u8> {
    let mut state = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut value = Vec::with_capacity(bytes + 16);
    while value.len() < bytes {
        state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let word = (state >> 56).wrapping_mul(0x0123_4567_89ab_cdef);
        value.extend((0..7).map(|at| b'a' + ((word >> (at * 8)) & 15) as u8));
        value.push(b' ');
    }
    value.truncate(bytes);
    value
}

/// Prints what trees of `bytes` bytes of entries take and cost, in ten batches. Sizes are in bytes
/// per entry.
///
/// # Errors
/// Fails if the store fails.
pub(crate) fn print(bytes: u64) -> Result<()> {
    println!("| keys | values | compressed | file | nodes | of one root | lookup, ns | scan, ns |");
    println!("|---|---|---|---|---|---|---|---|");
    for value_bytes in [100, 1000] {
        for keys in Keys::ALL {
            for values in Values::ALL {
                // How values are compressed does not hang on the keys.
                if values == Values::Plain || matches!(keys, Keys::Short) {
                    print_one(bytes, keys, values, value_bytes)?;
                }
            }
        }
    }
    Ok(())
}

fn print_one(bytes: u64, keys: Keys, values: Values, value_bytes: usize) -> Result<()> {
    let entry_bytes = (keys.key(0).len() + value_bytes + 8) as u64;
    let entries = bytes / entry_bytes;
    let dir = tempfile::tempdir().expect("there is room");
    // Most blocks are not in the cache.
    let builder = || values.builder(dir.path(), bytes / 16);
    let store = builder().open()?;
    let keyspace = store.keyspace(DEFAULT_KEYSPACE)?;
    let mut of_one_root = 0.0;
    for batch in 0..BATCHES {
        for number in (batch..entries).step_by(BATCHES as usize) {
            keyspace.put(keys.key(number), value(number, value_bytes))?;
        }
        keyspace.flush()?;
        if batch == 0 {
            of_one_root = store.stats().node_bytes as f64 / entries.div_ceil(BATCHES) as f64;
        }
    }
    store.persist(PersistMode::SyncAll)?;
    let nodes = store.stats().node_bytes as f64 / entries as f64;
    drop((keyspace, store));
    let store = builder().read_only(true).open()?;
    let keyspace = store.existing_keyspace(DEFAULT_KEYSPACE)?;
    let (mut get, mut scan) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        get = get.min(get_nanos(&keyspace, keys, entries)?);
        scan = scan.min(scan_nanos(&keyspace, entries)?);
    }
    let file = table_bytes(dir.path()) as f64 / entries as f64;
    let (keys, values) = (keys.name(), values.name());
    let sizes = format!("{file:.1} | {nodes:.1} | {of_one_root:.1}");
    println!("| {keys} | {value_bytes} B | {values} | {sizes} | {get:.0} | {scan:.0} |");
    Ok(())
}

/// Returns the CPU time of a lookup of any key.
fn get_nanos(keyspace: &Keyspace, keys: Keys, entries: u64) -> Result<f64> {
    let start = thread_cpu();
    for lookup in 0..LOOKUPS {
        let number = lookup.wrapping_mul(0x9e37_79b9_7f4a_7c15) % entries;
        let value = keyspace.get(keys.key(number))?.expect("all keys are there");
        std::hint::black_box(&value);
    }
    Ok((thread_cpu() - start).as_nanos() as f64 / LOOKUPS as f64)
}

/// Returns the CPU time per entry of a scan over all entries.
fn scan_nanos(keyspace: &Keyspace, entries: u64) -> Result<f64> {
    let start = thread_cpu();
    let mut all = keyspace.iter();
    let mut copy = Vec::new();
    while let Some(entry) = all.next_ref() {
        copy.clear();
        copy.extend_from_slice(entry?.1);
        std::hint::black_box(&copy);
    }
    Ok((thread_cpu() - start).as_nanos() as f64 / entries as f64)
}

/// Returns the bytes of all table files.
fn table_bytes(dir: &Path) -> u64 {
    let files = std::fs::read_dir(dir).expect("the folder is there").map_while(std::io::Result::ok);
    let tables = files.filter(|file| file.path().extension().is_some_and(|end| end == "table"));
    tables.map(|file| file.metadata().expect("the file is there").len()).sum()
}
