//! Damaged files, cut files, and files with anything behind the named root.

use super::*;
use crate::error::{Error, ErrorKind};
use crate::format::{FOOTER_BYTES, FORMAT_VERSION};
use crate::table::{ReadTable, Table};

/// A small table of three batches with all special cases.
fn bench(codec: Codec) -> Bench {
    let options = TableOptions { block_bytes: 150, codec, ..TableOptions::default() };
    let mut bench = Bench::new(options);
    let snapshots = [SeqNo(15), SeqNo(8)];
    let key = |n: u64| format!("apple {n:03}");
    bench.append_with((0..30).map(|n| entry(key(n), 5, vec![n as u8; 9])).collect(), &[], false);
    let second = (0..30).step_by(4).map(|n| entry(key(n), 10, vec![1; 40]));
    bench.append_with(second.collect(), &snapshots, false);
    let mut third: Vec<_> = (0..30).step_by(7).map(|n| deletion(key(n), 20)).collect();
    third.push(entry(b"banana", 21, vec![7; 300]));
    third.push(entry(b"cherry", 22, b""));
    bench.append_with(third, &snapshots, false);
    bench
}

#[track_caller]
fn check_corruption(error: &Error, file_bytes: u64) {
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert_eq!(error.path(), Some(path()));
    let offset = error.offset().expect("damage has an offset");
    assert!(offset <= file_bytes, "{error}");
}

/// Checks that each answer of the root is right or damage. Returns true if all were right.
fn check_reads(bench: &Bench, root: u64, model: &[Owned]) -> bool {
    let mut all_right = true;
    for maps in [false, true] {
        let mut check = |answer: Option<Error>| {
            if let Some(error) = answer {
                check_corruption(&error, bench.root);
                all_right = false;
            }
        };
        let table = match bench.open_at(root, maps) {
            Ok(table) => table,
            Err(error) => {
                check(Some(error));
                continue;
            }
        };
        let back: Vec<Owned> = model.iter().rev().cloned().collect();
        for fill in [CacheFill::Yes, CacheFill::No] {
            let scanned = scan(&table, fill).map(|found| assert_eq!(found, model));
            check(scanned.err());
            let scanned = scan_back(&table, fill).map(|found| assert_eq!(found, back));
            check(scanned.err());
        }
        for entry in model {
            let found = get(&table, &entry.key, entry.seq);
            check(found.map(|found| assert_eq!(found.as_ref(), Some(entry))).err());
            let beside = [&entry.key[..], b"!"].concat();
            let found = get(&table, &beside, SeqNo::MAX);
            check(found.map(|found| assert_eq!(found, None)).err());
        }
        check(table.verify(&[KeyRange::ALL]).err());
    }
    all_right
}

#[test]
fn flipped_byte_is_reported_or_does_not_matter() {
    for codec in [Codec::None, Codec::Lz4] {
        let mut bench = bench(codec);
        bench.cache = Arc::new(BlockCache::new(0));
        assert!(check_reads(&bench, bench.root, &bench.model));
        let mut harmless = 0;
        for at in 0..bench.root {
            let mask = 1 << (at % 8) | u8::from(at % 3 == 0);
            bench.disk.flip(path(), at, mask).unwrap();
            harmless += u64::from(check_reads(&bench, bench.root, &bench.model));
            bench.disk.flip(path(), at, mask).unwrap();
        }
        // Old nodes, old roots, and blocks whose values were all replaced.
        assert!(harmless > bench.root / 10 && harmless < bench.root * 6 / 10, "{harmless}");
    }
}

#[test]
fn file_cut_anywhere_is_damage_of_the_named_root() {
    let bench = bench(Codec::None);
    for bytes in 0..bench.root {
        let bench = Bench { disk: bench.disk.process_crash_clone(), ..bench.clone() };
        bench.disk.truncate(path(), bytes).unwrap();
        for maps in [false, true] {
            check_corruption(&bench.open_at(bench.root, maps).unwrap_err(), bench.root);
        }
    }
}

#[test]
fn any_length_but_that_of_a_root_names_none() {
    let mut bench = bench(Codec::None);
    let roots = [bench.root];
    let more = bench.append(vec![entry(b"zebra", 50, b"z")]);
    for end in 0..=more.root {
        let opened = bench.open_at(end, false);
        match opened {
            Ok(table) => assert!(roots.contains(&end) || end == more.root || table.batches() < 3),
            Err(error) => check_corruption(&error, more.root),
        }
    }
}

#[test]
fn what_lies_behind_the_named_root_is_ignored_and_overwritten() {
    let mut bench = bench(Codec::None);
    let mut other = bench.clone();
    other.disk = bench.disk.process_crash_clone();
    // A batch that no manifest ever names.
    bench.append((0..200).map(|n| entry(format!("b{n:03}"), 60, [9; 50])).collect());
    let unnamed = bench.root;
    bench.root = other.root;
    bench.model = other.model.clone();
    bench.appended_bytes = other.appended_bytes;
    bench.check();
    let before = bench.open();
    let batch = vec![entry(b"aardvark", 61, b"new"), entry(b"cherry", 62, b"red")];
    bench.append(batch.clone());
    bench.check();
    assert!(bench.root < unnamed);
    assert_eq!(bench.disk.file_bytes(path()).unwrap(), bench.root);
    // A reader of the old root goes on.
    check_table(&before, &other.model);
    // The file is as if the other batch had never been there.
    other.append(batch);
    let bytes = |bench: &Bench| {
        let mut bytes = vec![0; bench.root as usize];
        bench.disk.open(path()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
        bytes
    };
    assert_eq!(bytes(&bench), bytes(&other));
}

#[test]
fn root_is_durable_when_the_append_returns() {
    let mut bench = bench(Codec::None);
    bench.disk.sync_dir(Path::new("/")).unwrap();
    for seed in 0..20 {
        bench.append(vec![entry(format!("new {seed}"), 100 + seed, vec![3; 5000])]);
        let before = bench.clone();
        // An append that power loss interrupts leaves the named root as it is.
        bench.append(vec![entry(format!("lost {seed}"), 100 + seed, vec![4; 9000])]);
        bench.root = before.root;
        bench.model = before.model;
        bench.appended_bytes = before.appended_bytes;
        drop(bench.disk.append(path(), bench.root).unwrap());
        let lost = Bench { disk: bench.disk.crash_clone(seed, 0.5), ..bench.clone() };
        lost.check();
    }
}

#[test]
fn the_two_kinds_of_tables_are_told_apart() {
    let bench = bench(Codec::None);
    let env: Arc<dyn Env> = Arc::new(bench.disk.clone());
    let sorted = Table::open(&env, path(), TABLE, Arc::clone(&bench.cache)).unwrap_err();
    assert_eq!(sorted.kind(), ErrorKind::Unsupported, "{sorted}");
    let other = AppendTable::open(&env, path(), 7, bench.root, Arc::clone(&bench.cache));
    assert_eq!(other.unwrap_err().kind(), ErrorKind::Corruption);
    let at = bench.root - FOOTER_BYTES as u64;
    bench.disk.flip(path(), at, FORMAT_VERSION as u8 ^ 77).unwrap();
    check_corruption(&bench.open_at(bench.root, false).unwrap_err(), bench.root);
}
