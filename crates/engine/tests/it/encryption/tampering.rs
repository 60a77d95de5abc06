//! Files that somebody without the key has changed.

use super::{COUNT, check, filled, key, keys, small, value};
use lsmith::ErrorKind;
use lsmith::env::{Env, MemEnv};
use std::path::{Path, PathBuf};

/// The length of a slot in bytes.
const SLOT: usize = 4096;

fn read(env: &MemEnv, path: &Path) -> Vec<u8> {
    let file = env.open(path).unwrap();
    let mut bytes = vec![0; file.bytes().unwrap() as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

fn write(env: &MemEnv, path: &Path, bytes: &[u8]) {
    env.remove_file(path).unwrap();
    let mut file = env.create(path).unwrap();
    file.write_all(bytes).unwrap();
    file.sync().unwrap();
}

fn named(env: &MemEnv, end: &str) -> Vec<PathBuf> {
    let names = env.list(Path::new("/store")).unwrap();
    names
        .into_iter()
        .filter(|name| name.ends_with(end))
        .map(|name| Path::new("/store").join(name))
        .collect()
}

/// Opens the store and reads everything. Returns true if some damage was reported; whatever is
/// returned as an entry is what was written.
fn is_found(env: &MemEnv) -> bool {
    let store = match small(env, keys()).open() {
        Err(error) => {
            let known = [ErrorKind::Corruption, ErrorKind::Unsupported];
            assert!(known.contains(&error.kind()), "{error}");
            return true;
        }
        Ok(store) => store,
    };
    let mut found = !store.verify().unwrap().is_empty() || !store.left_out().unwrap().is_empty();
    let Ok(space) = store.existing_keyspace("space") else { return true };
    for index in 0..COUNT {
        match space.get(key(index)) {
            Ok(Some(read)) => assert_eq!(&read[..], value(index, 0).as_bytes()),
            Ok(None) => found = true,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
                found = true;
            }
        }
    }
    found
}

#[test]
fn a_flipped_bit_is_found_wherever_it_is() {
    let env = MemEnv::new();
    drop(filled(&env, keys()));
    let mut used = 0;
    for end in ["table", "wal", "manifest", "CURRENT"] {
        for path in named(&env, end) {
            let bytes = read(&env, &path);
            let last = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
            for at in (0..=last).step_by(last / 40 + 1).chain([0, 9, 20, 40, 100, last]) {
                // Padding of slots is not looked at, and the start has a copy.
                let in_slot = at % SLOT;
                let is_padding = bytes[at] == 0;
                let has_copy = end != "wal" && at < SLOT && bytes.starts_with(b"lsmithen");
                if is_padding
                    || has_copy
                    || in_slot < 128 && at < SLOT && bytes.starts_with(b"lsmithen")
                {
                    continue;
                }
                let bad = env.process_crash_clone();
                bad.flip(&path, at as u64, 0x10).unwrap();
                assert!(is_found(&bad), "{} at {at}", path.display());
                used += 1;
            }
        }
    }
    assert!(used > 150, "{used}");
}

#[test]
fn a_damaged_start_is_read_from_its_copy() {
    let env = MemEnv::new();
    drop(filled(&env, keys()));
    for path in named(&env, "table") {
        for at in [0, 3, 12, 30, 60, 100, 110] {
            let bad = env.process_crash_clone();
            bad.flip(&path, at, 0x10).unwrap();
            check(&small(&bad, keys()).open().unwrap(), 0);
            bad.flip(&path, 2048 + at, 0x10).unwrap();
            assert!(is_found(&bad), "{at}");
        }
    }
}

#[test]
fn swapped_slots_are_found() {
    let env = MemEnv::new();
    drop(filled(&env, keys()));
    let tables = named(&env, "table");
    assert!(tables.len() > 1);
    let [one, other] = [&tables[0], &tables[1]].map(|path| read(&env, path));
    // Within a file.
    let bad = env.process_crash_clone();
    let mut swapped = one.clone();
    let (front, back) = swapped.split_at_mut(2 * SLOT);
    front[SLOT..].swap_with_slice(&mut back[..SLOT]);
    write(&bad, &tables[0], &swapped);
    assert!(is_found(&bad));
    // Between files.
    let bad = env.process_crash_clone();
    let mut mixed = one.clone();
    mixed[SLOT..2 * SLOT].copy_from_slice(&other[SLOT..2 * SLOT]);
    write(&bad, &tables[0], &mixed);
    assert!(is_found(&bad));
    // Whole files.
    let bad = env.process_crash_clone();
    write(&bad, &tables[0], &other);
    assert!(is_found(&bad));
    // A file in clear.
    let bad = env.process_crash_clone();
    write(&bad, &tables[0], b"lsmith in clear");
    assert!(is_found(&bad));
}

/// The checksums of a log are no secret, so whoever changes a record can make them fit. The tags
/// are.
#[test]
fn a_record_with_a_good_checksum_and_a_wrong_tag_is_found() {
    use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};
    let env = MemEnv::new();
    let store = filled(&env, keys());
    let copy = env.process_crash_clone();
    drop(store);
    let path = named(&copy, "wal").pop().unwrap();
    let mut bytes = read(&copy, &path);
    let start = 224;
    let file_id = u64::from_le_bytes(bytes[16..24].try_into().unwrap());
    let coded = u32::from_le_bytes(bytes[start..start + 4].try_into().unwrap());
    let length = ((coded & 0x7FFF_FFFF) as usize).next_multiple_of(8);
    bytes[start + 16] ^= 1;
    let place = [&file_id.to_le_bytes()[..], &(start as u64).to_le_bytes(), &coded.to_le_bytes()];
    let seed = xxh3_64(&place.concat());
    let checksum = xxh3_64_with_seed(&bytes[start + 16..start + 16 + length], seed);
    bytes[start + 8..start + 16].copy_from_slice(&checksum.to_le_bytes());
    write(&copy, &path, &bytes);
    let error = small(&copy, keys()).open().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert!(error.to_string().contains("not written with the key of its log"), "{error}");
}
