use super::*;
use crate::error::{Error, ErrorKind};
use crate::format::{FOOTER_BYTES, FORMAT_VERSION, Footer};
use crate::table::ReadTable;

/// A table with all special cases: versions over several blocks, tombstones, a huge value.
fn entries() -> Vec<Entry> {
    let mut entries: Vec<Entry> = (0..12)
        .map(|n| Entry::put(format!("apple{n:02}"), 100 + n, format!("value {n}")))
        .collect();
    entries.extend((1..9).rev().map(|seq| Entry::put("banana", seq, [seq as u8; 40])));
    entries.push(Entry { key: b"cherry".to_vec(), seq: 7, kind: EntryKind::Delete, value: vec![] });
    entries.push(Entry::put("date", 9, [1; 300]));
    entries
}

fn small() -> TableOptions {
    TableOptions { grain: crate::table::ProfileGrain::Blocks, ..options(120) }
}

/// Checks that the error is damage of the table's file, at an offset within it.
#[track_caller]
fn check_corruption(error: &Error, file_bytes: u64) -> u64 {
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert_eq!(error.path(), Some(path()));
    let offset = error.offset().expect("damage has an offset");
    assert!(offset <= file_bytes, "{error}");
    offset
}

#[track_caller]
fn check_answer<T: PartialEq + std::fmt::Debug>(answer: Result<T>, right: &T, file_bytes: u64) {
    match answer {
        Ok(answer) => assert_eq!(&answer, right),
        Err(error) => drop(check_corruption(&error, file_bytes)),
    }
}

/// Checks that every read of a damaged table is correct or returns damage.
fn check_reads(table: &Arc<Table>, entries: &[Entry], file_bytes: u64) {
    for entry in entries {
        let found = FoundEntry {
            seq: SeqNo(entry.seq),
            kind: entry.kind,
            value: entry.value.clone().into(),
        };
        let mut reads = ReadCount::default();
        check_answer(table.get(&entry.key, found.seq, &mut reads), &Some(found), file_bytes);
        let beside = [&entry.key[..], b"!"].concat();
        check_answer(table.get(&beside, SeqNo::MAX, &mut reads), &None, file_bytes);
    }
    let back: Vec<Entry> = entries.iter().rev().cloned().collect();
    for fill in [CacheFill::Yes, CacheFill::No] {
        check_answer(scan(table, fill), &entries.to_vec(), file_bytes);
        check_answer(scan_back(table, fill), &back, file_bytes);
    }
}

/// Returns the starts of the parts of a table file: each block, filter, index, properties, footer,
/// and the end of the file.
fn starts(table: &Table, file_bytes: u64) -> Vec<u64> {
    let footer = table.file.parts().unwrap().footer;
    let blocks = (0..table.fences.count()).map(|index| table.fences.place(index).start);
    blocks
        .chain([footer.filter.start, footer.index.start, footer.properties.start])
        .chain([footer.properties.end, file_bytes])
        .collect()
}

#[test]
fn flipped_byte_is_reported_at_its_offset_and_never_causes_a_wrong_answer() {
    let entries = entries();
    let (disk, facts) = write(&entries, &small());
    let file_bytes = facts.file_bytes;
    let cache = Arc::new(BlockCache::new(0));
    let whole = open(&disk, &cache).unwrap();
    let starts = starts(&whole, file_bytes);
    assert!(starts.len() > 10);
    for at in 0..file_bytes {
        let mask = 1 << (at % 8) | u8::from(at % 3 == 0);
        disk.flip(path(), at, mask).unwrap();
        let part = starts.partition_point(|start| *start <= at) - 1;
        let error = whole.verify(&[KeyRange::ALL]).expect_err("a flipped byte");
        let reported = check_corruption(&error, file_bytes);
        assert_eq!(starts[part], reported, "flipped {at}: {error}");
        match open(&disk, &cache) {
            Ok(table) => check_reads(&table, &entries, file_bytes),
            Err(error) => assert_eq!(check_corruption(&error, file_bytes), reported),
        }
        // The damage came after the opening, so the parts in memory are intact.
        check_reads(&whole, &entries, file_bytes);
        disk.flip(path(), at, mask).unwrap();
    }
    whole.verify(&[KeyRange::ALL]).unwrap();
    check_reads(&whole, &entries, 0);
}

#[test]
fn a_file_cut_short_anywhere_is_damaged() {
    let entries = entries();
    for bytes in 0..write(&entries, &small()).1.file_bytes {
        let (disk, facts) = write(&entries, &small());
        let cache = Arc::new(BlockCache::new(0));
        let table = open(&disk, &cache).unwrap();
        disk.truncate(path(), bytes).unwrap();
        check_corruption(&table.verify(&[KeyRange::ALL]).expect_err("cut short"), facts.file_bytes);
        check_corruption(&open(&disk, &cache).expect_err("cut short"), facts.file_bytes);
        check_reads(&table, &entries, facts.file_bytes);
    }
}

#[test]
fn bytes_behind_a_table_are_damage() {
    let disk = changed(&write(&entries(), &small()).0, |bytes| bytes.push(0));
    check_corruption(&open(&disk, &Arc::new(BlockCache::new(0))).unwrap_err(), u64::MAX);
}

#[test]
fn blocks_that_changed_places_are_damage() {
    let same: Vec<Entry> = (0..9u64).map(|n| Entry::put(n.to_be_bytes(), 5, [3; 20])).collect();
    let (disk, _) = write(&same, &options(1));
    let cache = Arc::new(BlockCache::new(0));
    let table = open(&disk, &cache).unwrap();
    let first = table.fences.place(2);
    let second = table.fences.place(3);
    let disk = changed(&disk, |bytes| {
        let (left, right) = bytes.split_at_mut(second.start as usize);
        let second_bytes = (second.end - second.start) as usize;
        left[first.start as usize..].swap_with_slice(&mut right[..second_bytes]);
    });
    let table = open(&disk, &cache).unwrap();
    assert_eq!(
        check_corruption(&table.verify(&[KeyRange::ALL]).unwrap_err(), u64::MAX),
        first.start
    );
    check_reads(&table, &same, u64::MAX);
}

#[test]
fn error_names_both_tables_if_one_replaced_another() {
    let (disk, _) = write(&entries(), &small());
    let env: Arc<dyn Env> = disk;
    let error = Table::open(&env, path(), 43, Arc::new(BlockCache::new(0))).unwrap_err();
    check_corruption(&error, u64::MAX);
    assert!(error.to_string().contains("holds table 42, not table 43"), "{error}");
}

#[test]
fn another_format_is_unsupported_and_both_versions_are_named() {
    for version in [FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
        let (disk, _) = write(&entries(), &small());
        let disk = changed(&disk, |bytes| {
            let start = bytes.len() - FOOTER_BYTES;
            let old = bytes[start..].first_chunk().expect("a footer");
            let footer = Footer::decode(old, start as u64).unwrap();
            bytes.truncate(start);
            bytes.extend_from_slice(&footer.encode_as(version));
        });
        let error = open(&disk, &Arc::new(BlockCache::new(0))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        let message =
            format!("format version {version}, this program reads version {FORMAT_VERSION}");
        assert!(error.to_string().contains(&message), "{error}");
    }
}

#[test]
fn a_missing_table_is_an_io_error() {
    let error = open(&Arc::new(MemEnv::new()), &Arc::new(BlockCache::new(0))).unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Io, Some(path())));
}
