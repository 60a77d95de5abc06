//! RocksDB through its C interface.

use super::store::{Configs, Kind, Levels, Look, Settings, Store, Visit, Write};
use crate::data::Key;
use anyhow::Result;
use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamilyDescriptor, CompactionPri, DB, DBCompactionStyle,
    DBCompressionType, DBRawIterator, DataBlockIndexType, Options, WaitForCompactOptions,
    WriteBatch, WriteOptions,
};
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "rocksdb",
    version: "RocksDB 11.8.1 (crate rocksdb 0.25)",
    differences: &[],
    configs: Configs::Named(&[
        ("mapped", "maps its files and has no block cache; hash index in data blocks"),
        ("cached", "a block cache of 8 GiB"),
        ("direct", "direct I/O, for reads and for flushes and compactions"),
        ("point", "optimize_for_point_lookup, with a hash index and a filter of memtables"),
        ("universal", "universal compaction"),
        ("blobs", "values of 1 KiB and more in blob files, with their garbage collection"),
    ]),
    open: |dir, settings| Ok(Box::new(RocksDb { db: open(dir, settings)? })),
};

/// A block cache that holds all data of a comparison.
const CACHE_OF_ALL: usize = 8 << 30;

/// The column family that holds everything.
const FAMILY: &str = "default";

struct RocksDb {
    db: DB,
}

fn open(dir: &Path, settings: &Settings) -> Result<DB> {
    let mut blocks = BlockBasedOptions::default();
    let cache_bytes = match (settings.has("cached"), settings.has("direct")) {
        (true, _) => CACHE_OF_ALL,
        (false, true) => settings.own_cache_bytes,
        (false, false) => settings.cache_bytes,
    };
    blocks.set_block_cache(&Cache::new_lru_cache(cache_bytes));
    blocks.set_bloom_filter(f64::from(settings.filter_bits), false);
    let mut options = Options::default();
    if settings.has("point") {
        options.optimize_for_point_lookup((cache_bytes >> 20) as u64);
    }
    if settings.has("mapped") {
        blocks.disable_cache();
        options.set_allow_mmap_reads(true);
    }
    if settings.has("mapped") || settings.has("point") {
        blocks.set_data_block_index_type(DataBlockIndexType::BinaryAndHash);
        blocks.set_data_block_hash_ratio(0.75);
    }
    if settings.has("direct") {
        options.set_use_direct_reads(true);
        options.set_use_direct_io_for_flush_and_compaction(true);
    }
    if settings.has("universal") {
        options.set_compaction_style(DBCompactionStyle::Universal);
    }
    if settings.has("blobs") {
        options.set_enable_blob_files(true);
        options.set_min_blob_size(1024);
        options.set_enable_blob_gc(true);
    }
    options.create_if_missing(true);
    options.set_block_based_table_factory(&blocks);
    options.set_compression_type(DBCompressionType::None);
    options.set_write_buffer_size(settings.buffer_bytes / 2);
    options.set_max_write_buffer_number(2);
    if let Some(levels) = &settings.levels {
        set_levels(&mut options, levels);
    }
    // Opened by its name, so that `multi_get` can name it too.
    let family = ColumnFamilyDescriptor::new(FAMILY, options.clone());
    Ok(DB::open_cf_descriptors(&options, dir, [family])?)
}

/// Sets everything that LevelDB's design says, and counts bytes.
fn set_levels(options: &mut Options, levels: &Levels) {
    let files = levels.level0_files as i32;
    options.set_level_zero_file_num_compaction_trigger(files);
    options.set_level_zero_slowdown_writes_trigger(files);
    options.set_level_zero_stop_writes_trigger(files);
    options.set_level_compaction_dynamic_level_bytes(false);
    options.set_max_bytes_for_level_base(levels.level1_bytes);
    options.set_max_bytes_for_level_multiplier(f64::from(levels.ratio));
    options.set_target_file_size_base(levels.table_bytes);
    options.set_compaction_pri(match levels.in_turn {
        true => CompactionPri::RoundRobin,
        false => CompactionPri::ByCompensatedSize,
    });
    options.enable_statistics();
}

/// Visits entries from where `iterator` stands.
fn walk<'a>(
    iterator: &mut DBRawIterator<'a>,
    step: fn(&mut DBRawIterator<'a>),
    visit: Visit<'_>,
) -> Result<()> {
    while let Some((key, value)) = iterator.item() {
        if !visit(key, value) {
            break;
        }
        step(iterator);
    }
    Ok(iterator.status()?)
}

impl Store for RocksDb {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        if !sync {
            return Ok(self.db.put(key, value)?);
        }
        let mut options = WriteOptions::default();
        options.set_sync(true);
        Ok(self.db.put_opt(key, value, &options)?)
    }

    fn delete(&self, key: &Key) -> Result<()> {
        Ok(self.db.delete(key)?)
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        let mut batch = WriteBatch::default();
        for (key, value) in writes {
            match value {
                Some(value) => batch.put(key, value),
                None => batch.delete(key),
            }
        }
        Ok(self.db.write(batch)?)
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        let value = self.db.get_pinned(key)?;
        if let Some(value) = &value {
            look(value);
        }
        Ok(value.is_some())
    }

    fn multi_get(&self, keys: &[Key], look: Look<'_>) -> Result<usize> {
        let family = self.db.cf_handle(FAMILY).expect("it was opened by its name");
        let mut found = 0;
        for value in self.db.batched_multi_get_cf(&family, keys, false) {
            if let Some(value) = value? {
                look(&value);
                found += 1;
            }
        }
        Ok(found)
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        let mut iterator = self.db.raw_iterator();
        match from {
            Some(from) => iterator.seek(from),
            None => iterator.seek_to_first(),
        }
        walk(&mut iterator, DBRawIterator::next, visit)
    }

    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()> {
        let mut iterator = self.db.raw_iterator();
        iterator.seek_to_last();
        walk(&mut iterator, DBRawIterator::prev, visit)
    }

    fn settle(&self) -> Result<bool> {
        self.db.wait_for_compact(&WaitForCompactOptions::default())?;
        Ok(true)
    }

    fn flush(&self) -> Result<()> {
        Ok(self.db.flush()?)
    }

    fn property(&self, name: &str) -> Result<Option<String>> {
        Ok(self.db.property_value(name)?)
    }
}
