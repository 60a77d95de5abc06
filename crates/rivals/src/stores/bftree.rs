//! Bf-Tree: a B+ tree whose leaves have small pages of hot records in memory.

use super::store::{Configs, Kind, Lacks, Look, Settings, Store, Visit, Write};
use crate::data::{KEY_BYTES, Key};
use anyhow::{Result, anyhow, bail};
use bf_tree::{BfTree, Config, LeafInsertResult, LeafReadResult, ScanReturnField, StorageBackend};
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "bftree",
    version: "Bf-Tree 0.5",
    differences: &[
        "Bf-Tree has no write buffer and no filters: its buffer gets the bytes of buffer and cache",
        "Bf-Tree runs without its log, since each write to a log waits for a flush a millisecond \
         later: writes do not survive the process",
        "Bf-Tree has no batches and no reverse scans; leaves grow with the values, up to 32 KiB",
    ],
    configs: Configs::Named(&[]),
    open: |dir, settings| Ok(Box::new(Bftree::open(dir, settings)?)),
};

/// Leaf pages, smallest first.
const LEAF_BYTES: [usize; 4] = [4 << 10, 8 << 10, 16 << 10, 32 << 10];

/// Bytes that a leaf keeps for itself, and for each record, at most.
const LEAF_OVERHEAD: usize = 256;

/// The key below all keys: there are no empty ones.
const LEAST_KEY: [u8; 1] = [0];

struct Bftree {
    tree: BfTree,
    /// The greatest number of bytes of a key and its value.
    record_bytes: usize,
}

impl Bftree {
    fn open(dir: &Path, settings: &Settings) -> Result<Bftree> {
        let record_bytes = KEY_BYTES + settings.value_bytes;
        // Two records must fit into a leaf.
        let fits = |leaf: &usize| 2 * record_bytes + LEAF_OVERHEAD <= *leaf;
        let Some(leaf_bytes) = LEAF_BYTES.into_iter().find(fits) else {
            bail!("Bf-Tree has leaves of 32 KiB at most: {record_bytes} bytes are too many");
        };
        // A power of two; what is left over may be used by the system's cache.
        let bytes = 1 << (settings.buffer_bytes + settings.own_cache_bytes).ilog2();
        let mut config = Config::new(dir.join("tree"), bytes);
        config.storage_backend(StorageBackend::Std);
        config.leaf_page_size(leaf_bytes);
        config.cb_min_record_size(KEY_BYTES);
        config.cb_max_record_size(record_bytes.max(LEAF_BYTES[0] / 2 - LEAF_OVERHEAD));
        let record_bytes = config.get_cb_max_record_size();
        let tree = BfTree::with_config(config, None).map_err(|e| anyhow!("{e:?}"))?;
        Ok(Bftree { tree, record_bytes })
    }

    /// A place for any value, or for a key and a value.
    fn buffer(&self) -> Vec<u8> {
        vec![0; self.record_bytes]
    }

    fn insert(&self, key: &Key, value: &[u8]) -> Result<()> {
        match self.tree.insert(key, value) {
            LeafInsertResult::Success => Ok(()),
            LeafInsertResult::InvalidKV(why) => bail!("Bf-Tree refused a write: {why}"),
        }
    }

    fn read(&self, key: &Key, buffer: &mut [u8], look: Look<'_>) -> Result<bool> {
        match self.tree.read(key, buffer) {
            LeafReadResult::Found(bytes) => {
                look(&buffer[..bytes as usize]);
                Ok(true)
            }
            LeafReadResult::NotFound | LeafReadResult::Deleted => Ok(false),
            LeafReadResult::InvalidKey => bail!("Bf-Tree refused a key"),
        }
    }
}

impl Store for Bftree {
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()> {
        match sync {
            true => Err(Lacks("synced writes without its log").into()),
            false => self.insert(key, value),
        }
    }

    fn delete(&self, key: &Key) -> Result<()> {
        self.tree.delete(key);
        Ok(())
    }

    fn write(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().try_for_each(|(key, value)| match value {
            Some(value) => self.insert(key, value),
            None => self.delete(key),
        })
    }

    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool> {
        // As a caller does that knows how large its values are.
        let mut small = [0; 2 << 10];
        match self.record_bytes <= small.len() {
            true => self.read(key, &mut small, look),
            false => self.read(key, &mut self.buffer(), look),
        }
    }

    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()> {
        let from: &[u8] = from.map_or(&LEAST_KEY, |from| from);
        let mut entries = self
            .tree
            .scan_with_count(from, usize::MAX, ScanReturnField::KeyAndValue)
            .map_err(|e| anyhow!("{e:?}"))?;
        let mut buffer = self.buffer();
        while let Some((key_bytes, value_bytes)) = entries.next(&mut buffer) {
            let (key, rest) = buffer.split_at(key_bytes);
            if !visit(key, &rest[..value_bytes]) {
                break;
            }
        }
        Ok(())
    }

    fn scan_reverse(&self, _visit: Visit<'_>) -> Result<()> {
        Err(Lacks("reverse scans").into())
    }

    fn settle(&self) -> Result<bool> {
        Ok(true)
    }
}
