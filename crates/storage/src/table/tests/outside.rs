//! Tables that were written outside of a store, and are read under any id.

use super::*;
use crate::table::{OUTSIDE, OpenFiles, ReadTable, TableRemains};

const NUMBER: u64 = 7;

/// Writes a table of many blocks with id `table`. Returns its disk and path.
fn written(table: u64) -> (Arc<dyn Env>, &'static Path) {
    let env: Arc<dyn Env> = Arc::new(MemEnv::new());
    let path = Path::new("/made");
    let mut writer = TableWriter::create(&env, path, table, &TableOptions::default()).unwrap();
    for index in 0..1000_u32 {
        let entry = Entry::put(index.to_be_bytes(), 5 + u64::from(index), vec![7; 50]);
        writer.add(entry.as_ref()).unwrap();
    }
    writer.finish().unwrap();
    (env, path)
}

fn opened(env: &Arc<dyn Env>, path: &Path) -> Result<Arc<Table>> {
    Table::open(env, path, NUMBER, Arc::new(BlockCache::new(1 << 20)))
}

#[test]
fn a_table_from_outside_is_read_under_any_number() {
    let (env, path) = written(OUTSIDE);
    let table = opened(&env, path).unwrap();
    assert_eq!(table.facts().table, NUMBER);
    assert_eq!(table.tree_table().id.0, NUMBER);
    table.verify(&[KeyRange::ALL]).unwrap();
    let found = table.get(&77_u32.to_be_bytes(), SeqNo::MAX, &mut ReadCount::default()).unwrap();
    assert_eq!(found.map(|entry| entry.seq), Some(SeqNo(82)));
    let mut cursor = table.cursor(CacheFill::No);
    cursor.seek_first().unwrap();
    let mut entries = 0;
    while cursor.entry().is_some() {
        entries += 1;
        cursor.next().unwrap();
    }
    assert_eq!(entries, 1000);
}

#[test]
fn a_table_of_a_store_is_read_under_its_own_number_only() {
    let (env, path) = written(NUMBER + 1);
    let error = opened(&env, path).unwrap_err().to_string();
    assert!(error.contains("holds table 8, not table 7"), "{error}");
}

#[test]
fn blocks_from_outside_are_found_without_a_footer() {
    let (env, path) = written(OUTSIDE);
    let bytes = env.file_bytes(path).unwrap();
    let mut cut = vec![0; bytes as usize - 1];
    env.open(path).unwrap().read_exact_at(&mut cut, 0).unwrap();
    let damaged = Path::new("/damaged");
    let mut file = env.create(damaged).unwrap();
    file.write_all(&cut).unwrap();
    file.sync().unwrap();

    let whole = TableRemains::open(&*env, path, NUMBER, &OpenFiles::few()).unwrap();
    assert!(whole.damage.is_empty(), "{:?}", whole.damage);
    let remains = TableRemains::open(&*env, damaged, NUMBER, &OpenFiles::few()).unwrap();
    assert!(remains.footer.is_none());
    let blocks = |remains: &TableRemains| {
        remains.pieces().iter().filter(|piece| remains.block(piece).is_ok()).count()
    };
    assert!(blocks(&whole) > 10);
    assert_eq!(blocks(&remains), blocks(&whole));
}
