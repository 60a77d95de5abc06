//! Inspection of single files.
//!
//! Promised: the content of a file can be read without opening the store. If one of its bytes is
//! changed, or its end is missing, one block or one record is reported as damaged and all others
//! are shown, even if the damage is in the index or the footer of a table.

use crate::dice::{Dice, with_seeds};
use crate::frame::small::open;
use crate::opening::formats::copies;
use lsmith::env::RealEnv;
use lsmith::inspect::{self, Content, Entry, EntryKind, FileType, LogFile, TableFile};
use lsmith::{ErrorKind, Store};
use std::fs;
use std::path::{Path, PathBuf};

/// Returns the files of this type in all fixtures, with their directories. Append tables are shown
/// root by root, and have tests of their own.
fn files(file_type: FileType) -> (Vec<tempfile::TempDir>, Vec<PathBuf>) {
    let mut dirs = copies();
    dirs.remove("trees");
    let dirs: Vec<_> = dirs.into_values().collect();
    let mut paths = Vec::new();
    for dir in &dirs {
        let entries = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
        paths.extend(entries.filter(|path| is_of(path, file_type)));
    }
    paths.sort();
    assert!(!paths.is_empty());
    (dirs, paths)
}

fn is_of(path: &Path, file_type: FileType) -> bool {
    FileType::of(path).is_some_and(|(found, _)| found == file_type)
}

fn table(path: &Path) -> TableFile {
    TableFile::open(&RealEnv::new(), path).unwrap()
}

fn log(path: &Path) -> LogFile {
    LogFile::open(&RealEnv::new(), path).unwrap()
}

/// Returns the content of a table, and the numbers of blocks that are holes and that are damaged.
fn entries(table: &TableFile) -> (Vec<Entry>, usize, usize) {
    let mut entries = Vec::new();
    let mut holes = 0;
    let mut damaged = 0;
    for index in 0..table.block_count() {
        match table.block(index) {
            Ok(Some(block)) => {
                let keys = table.block_keys(index);
                assert!(block.entries.iter().all(|entry| keys.contains(&entry.key)));
                entries.extend(block.entries);
            }
            Ok(None) => holes += 1,
            Err(error) => {
                assert_eq!(error.offset(), Some(table.block_place(index).start), "{error}");
                damaged += 1;
            }
        }
    }
    (entries, holes, damaged)
}

#[test]
fn a_table_tells_all_that_it_holds() {
    let (_dirs, paths) = files(FileType::Table);
    let mut all_holes = 0;
    for path in paths {
        let table = table(&path);
        assert!(table.damage().is_empty());
        let (entries, holes, damaged) = entries(&table);
        let properties = table.properties().unwrap();
        let footer = table.footer().unwrap();
        assert_eq!((damaged, properties.blocks), (0, table.block_count() as u64));
        assert_eq!((footer.version, footer.properties.end + 80), (3, table.bytes()));
        assert_eq!(table.filter().is_some(), !footer.filter.is_empty());
        all_holes += holes;
        if holes > 0 {
            continue;
        }
        assert_eq!(properties.entries, entries.len() as u64);
        let tombstones = entries.iter().filter(|entry| entry.kind.is_tombstone()).count();
        assert_eq!(properties.tombstones, tombstones as u64);
        assert_eq!(properties.first_key, entries[0].key);
        assert_eq!(properties.last_key, entries[entries.len() - 1].key);
        assert!(entries.is_sorted_by(|left, right| left.key <= right.key));
        let last = entries.iter().map(|entry| entry.seq).max();
        assert_eq!(last, Some(properties.seq_max));
    }
    assert!(all_holes > 5, "{all_holes}");
}

#[test]
fn a_log_tells_every_write() {
    let dirs = copies();
    let path = dirs["closed"].path().join("000012.wal");
    let log = log(&path);
    let mut next = 481;
    let mut loads = 0;
    let mut kinds = Vec::new();
    assert_eq!((log.file_type(), log.file_id(), log.bytes()), (FileType::Log, 12, 65536));
    let mut end = 32;
    for record in log.records() {
        assert_eq!((record.offset, record.skipped), (end, 0));
        end = record.offset + record.bytes;
        let Content::Batch { first, writes, .. } = record.content.unwrap() else {
            panic!("of a log")
        };
        assert_eq!(first.0, next);
        for (write, number) in writes.iter().zip(next..) {
            assert!(write.keyspace < 4 && write.entry.seq.0 == number);
            kinds.push(write.entry.kind);
        }
        loads += usize::from(writes.is_empty());
        next += writes.len().max(1) as u64;
    }
    assert!(log.damage().is_none() && log.torn().is_none());
    assert_eq!(loads, 1, "one bulk load");
    for kind in [EntryKind::Put, EntryKind::Delete, EntryKind::Insert, EntryKind::Remove] {
        assert!(kinds.contains(&kind), "{kind:?}");
    }
}

#[test]
fn a_torn_end_is_told_and_what_lies_behind_it_shown() {
    let dirs = copies();
    let log = log(&dirs["power_lost"].path().join("000002.wal"));
    let (offset, bytes) = log.torn().unwrap();
    assert!(log.damage().is_none() && bytes > 1000);
    let records: Vec<_> = log.records().collect();
    let kept = records.iter().take_while(|record| record.offset < offset).count();
    assert!(kept > 100 && kept < records.len(), "{kept} of {}", records.len());
    assert!(records[..kept].iter().all(|record| record.skipped == 0));
    assert!(records[kept].skipped > 0);
}

#[test]
fn manifests_and_spills_tell_what_they_say() {
    let (_dirs, paths) = files(FileType::Manifest);
    for path in paths {
        let log = log(&path);
        let mut records = log.records().map(|record| record.content.unwrap());
        let Some(Content::Text(first)) = records.next() else { panic!("text") };
        assert!(first.starts_with("next_file "), "{first}");
        assert!(records.count() > 0 && log.damage().is_none() && log.torn().is_none());
        let current = path.with_file_name("CURRENT");
        assert_eq!(inspect::current(&RealEnv::new(), &current).unwrap(), log.file_id());
    }
    let (_dirs, paths) = files(FileType::Copy);
    for path in paths {
        for record in log(&path).records() {
            let Content::Copy { keyspace, entries } = record.content.unwrap() else { panic!() };
            assert_eq!(keyspace, 0);
            assert!(entries.len() > 10 && entries.iter().all(|entry| entry.seq.0 > 0));
        }
    }
}

#[test]
fn other_files_are_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["LOCK", "CURRENT.new", "letter.txt"] {
        assert_eq!(FileType::of(Path::new(name)), None, "{name}");
        let path = dir.path().join(name);
        std::fs::write(&path, "not a table").unwrap();
        let error = TableFile::open(&RealEnv::new(), &path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    }
    assert_eq!(FileType::of(Path::new("12.table")), None);
    assert_eq!(FileType::of(Path::new("d/000012.wal.lost")), Some((FileType::Log, 12)));
    let error = LogFile::open(&RealEnv::new(), Path::new("000012.table")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidArgument);
    let error = LogFile::open(&RealEnv::new(), &dir.path().join("000012.wal")).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Io);
}

#[test]
fn blocks_are_found_without_index_or_footer() {
    let (_dirs, paths) = files(FileType::Table);
    for path in paths {
        let bytes = fs::read(&path).unwrap();
        let before = table(&path);
        let footer = before.footer().unwrap();
        let (expected, holes, _) = entries(&before);
        for (at, cut) in [
            (footer.index.start + 3, false),
            (bytes.len() as u64 - 70, false),
            (footer.index.start + 3, true),
        ] {
            let mut changed = bytes.clone();
            changed[at as usize] ^= 4;
            changed.truncate(if cut { at as usize } else { bytes.len() });
            fs::write(&path, changed).unwrap();
            let table = table(&path);
            assert_eq!(table.damage().len(), 1, "{:?}", table.damage());
            let (found, _, damaged) = entries(&table);
            assert!(found == expected, "{} of {}", found.len(), expected.len());
            // Where all behind the data is gone there may have been more of it.
            assert!(damaged <= holes + usize::from(cut), "{damaged}");
        }
    }
}

#[test]
fn a_changed_byte_of_a_table_costs_one_block() {
    let (_dirs, paths) = files(FileType::Table);
    with_seeds(2, |seed| {
        let mut dice = Dice::new(seed);
        for path in &paths {
            let bytes = fs::read(path).unwrap();
            let before = table(path);
            let (expected, holes, _) = entries(&before);
            let at = dice.below(bytes.len());
            if bytes[at] == 0 && holes > 0 {
                continue;
            }
            let mut changed = bytes.clone();
            changed[at] ^= 1 << dice.below(8);
            fs::write(path, changed).unwrap();
            let after = table(path);
            let (found, _, damaged) = entries(&after);
            let is_data = (at as u64) < before.footer().unwrap().filter.start;
            assert_eq!((damaged, after.damage().len()), (is_data.into(), (!is_data).into()));
            let lost = (0..after.block_count()).find(|index| after.block(*index).is_err());
            let keys = lost.map(|index| after.block_keys(index));
            let left = |entry: &&Entry| keys.as_ref().is_none_or(|keys| !keys.contains(&entry.key));
            assert!(found.iter().filter(left).eq(expected.iter().filter(left)));
            fs::write(path, bytes).unwrap();
        }
    });
}

#[test]
fn a_changed_byte_of_a_log_costs_one_record() {
    let all = [FileType::Log, FileType::Manifest, FileType::Copy].map(files);
    with_seeds(5, |seed| {
        let mut dice = Dice::new(seed);
        for path in all.iter().flat_map(|(_, paths)| paths) {
            let bytes = fs::read(path).unwrap();
            let before = log(path);
            let expected: Vec<_> = before.records().map(|record| record.offset).collect();
            let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
            let at = dice.below(used);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << dice.below(8);
            fs::write(path, changed).unwrap();
            let after = log(path);
            let found: Vec<_> = after.records().map(|record| record.offset).collect();
            let lost: Vec<_> =
                expected.iter().filter(|offset| !found.contains(offset)).copied().collect();
            assert!(found.iter().all(|offset| expected.contains(offset)));
            assert!(lost.len() <= 1, "{lost:?}");
            let is_told = after.damage().is_some() || after.torn().is_some();
            assert!(is_told || lost.is_empty(), "{} at {at}", path.display());
            fs::write(path, bytes).unwrap();
        }
    });
}

/// A reader without the lock sees the manifest grow, and files vanish.
#[test]
fn trees_are_read_beside_the_writer() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::builder(dir.path()).memtable_bytes(4 << 10).policy("tiered(ratio=2)");
    let (store, keyspace) = open(store);
    let env = RealEnv::new();
    let mut flushes = 0;
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for number in 0..20_000_u64 {
                keyspace.put(number.to_be_bytes(), [7; 100]).unwrap();
            }
            // So that manifests are replaced too.
            store.settle().unwrap();
        });
        while !writer.is_finished() {
            let found = inspect::trees(&env, dir.path()).unwrap();
            assert_eq!((found[0].name.as_str(), found.len()), ("default", 1));
            assert!(lsmith_tree::check_tree(&found[0].tree).is_ok());
            let now = found[0].tree.flushes();
            assert!(now >= flushes, "{now} flushes after {flushes}");
            flushes = now;
        }
    });
    let found = inspect::trees(&env, dir.path()).unwrap().remove(0);
    let ids = |tree: &lsmith_tree::Tree| tree.disk_runs().map(|run| run.id()).collect::<Vec<_>>();
    assert_eq!(ids(&found.tree), ids(&keyspace.tree()));
    assert!(found.tree.flushes() > 400, "{}", found.tree.flushes());
    assert_eq!((found.policy.as_str(), found.memtable_bytes), ("tiered(ratio=2)", 4 << 10));
    let missing = inspect::trees(&env, &dir.path().join("other")).unwrap_err();
    assert!(missing.to_string().contains("there is no store"), "{missing}");
}
