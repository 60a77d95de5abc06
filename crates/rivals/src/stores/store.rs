//! What each store must be able to do, and how it is opened.

use crate::data::Key;
use anyhow::Result;
use std::path::Path;

/// What all stores are opened with, as far as they can.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Bytes of all write buffers together: where a store has two, each has half of them.
    pub(crate) buffer_bytes: usize,
    /// Bytes of the block cache.
    pub(crate) cache_bytes: usize,
    /// Bytes of the block cache of a store that reads past the system's cache.
    pub(crate) own_cache_bytes: usize,
    /// Bytes of memory that the process has, if they are few.
    pub(crate) memory: Option<u64>,
    /// Bits of the Bloom filter per key.
    pub(crate) filter_bits: u8,
    /// Bytes of a value, at most.
    #[cfg_attr(not(feature = "bftree"), expect(dead_code, reason = "only Bf-Tree has a limit"))]
    pub(crate) value_bytes: usize,
    /// What follows the store's name on the command line: lsmith's merge policy, or the
    /// configurations of another store, joined by `+`.
    pub(crate) config: Option<String>,
    /// RocksDB's levels, if not its defaults.
    #[cfg_attr(not(feature = "rocksdb"), expect(dead_code, reason = "only RocksDB has a choice"))]
    pub(crate) levels: Option<Levels>,
}

/// Levels as LevelDB has them, for stores that have a choice.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(feature = "rocksdb"), expect(dead_code, reason = "only RocksDB has a choice"))]
pub(crate) struct Levels {
    /// Files of level 0 that are merged into level 1; writers are stopped at as many.
    pub(crate) level0_files: u32,
    /// Bytes of level 1.
    pub(crate) level1_bytes: u64,
    /// The size of a level over the one above.
    pub(crate) ratio: u32,
    /// Bytes of a table.
    pub(crate) table_bytes: u64,
    /// The table of a full level that goes down: the next in key order, or else the largest.
    pub(crate) in_turn: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            buffer_bytes: 64 << 20,
            cache_bytes: 64 << 20,
            own_cache_bytes: 64 << 20,
            memory: None,
            filter_bits: 10,
            value_bytes: 100,
            config: None,
            levels: None,
        }
    }
}

/// One write of a batch: a value, or `None` to delete.
pub(crate) type Write<'a> = (Key, Option<&'a [u8]>);

/// What looks at a value.
pub(crate) type Look<'a> = &'a mut dyn FnMut(&[u8]);

/// What looks at an entry and says whether to go on.
pub(crate) type Visit<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> bool;

/// What a store does not have, as the error of an operation. The phase is left out.
#[derive(Debug)]
pub(crate) struct Lacks(pub(super) &'static str);

impl std::fmt::Display for Lacks {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the store has no {}", self.0)
    }
}

impl std::error::Error for Lacks {}

/// An open store. Several threads may use it at once. Unless asked to sync, a write survives the
/// death of the process at most.
pub(crate) trait Store: Send + Sync {
    /// Gives `key` this `value`.
    fn put(&self, key: &Key, value: &[u8], sync: bool) -> Result<()>;

    /// Removes `key`.
    fn delete(&self, key: &Key) -> Result<()>;

    /// Carries out `writes` as one.
    fn write(&self, writes: &[Write<'_>]) -> Result<()>;

    /// Shows the value of `key`; false where it is absent.
    fn get(&self, key: &Key, look: Look<'_>) -> Result<bool>;

    /// Shows the values of those `keys` that are present, and counts them.
    fn multi_get(&self, keys: &[Key], look: Look<'_>) -> Result<usize> {
        let mut found = 0;
        for key in keys {
            found += usize::from(self.get(key, look)?);
        }
        Ok(found)
    }

    /// Visits the entries from `from` on, or all, in key order, until told to stop.
    fn scan(&self, from: Option<&Key>, visit: Visit<'_>) -> Result<()>;

    /// Visits all entries in reverse order, until told to stop.
    fn scan_reverse(&self, visit: Visit<'_>) -> Result<()>;

    /// Waits until work in the background has come to rest; false where the store cannot say.
    fn settle(&self) -> Result<bool>;

    /// Empties the write buffers, so that reads find every store alike.
    fn flush(&self) -> Result<()> {
        Ok(())
    }

    /// What the store says of itself under `name`, if it knows that.
    fn property(&self, _name: &str) -> Result<Option<String>> {
        Ok(None)
    }

    /// Writes that single puts must be gathered into for filling, where a store needs that.
    fn gathers(&self) -> usize {
        1
    }
}

impl Settings {
    /// Returns the settings for a process that has `memory` bytes, if they are few, and a store of
    /// `keys` keys: what buffers, filters and a quarter for the rest leave is the block cache of a
    /// store that reads past the system's cache.
    pub(crate) fn within(self, memory: Option<u64>, keys: u64) -> Settings {
        let Some(bytes) = memory else { return self };
        let filters = keys * u64::from(self.filter_bits) / 8;
        let taken = self.buffer_bytes as u64 + filters + bytes / 4;
        Settings { own_cache_bytes: bytes.saturating_sub(taken) as usize, memory, ..self }
    }

    /// Returns true if the configuration called `name` is asked for.
    #[cfg_attr(
        not(any(feature = "rocksdb", feature = "fjall", feature = "lmdb", feature = "mdbx")),
        expect(dead_code, reason = "lsmith alone has a policy instead")
    )]
    pub(super) fn has(&self, name: &str) -> bool {
        self.config.iter().flat_map(|config| config.split('+')).any(|asked| asked == name)
    }
}

/// What can follow the name of a store on the command line, behind a colon.
#[derive(Clone, Copy)]
pub(crate) enum Configs {
    /// A merge policy.
    Policy,
    /// Names, each with what it sets. Several are joined by `+`.
    #[cfg_attr(
        not(any(
            feature = "rocksdb",
            feature = "fjall",
            feature = "leveldb",
            feature = "lmdb",
            feature = "redb",
            feature = "bftree",
            feature = "mdbx"
        )),
        expect(dead_code, reason = "lsmith alone has a policy instead")
    )]
    Named(&'static [(&'static str, &'static str)]),
}

/// A store that can be opened.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The name on the command line.
    pub(crate) name: &'static str,
    /// What was linked, with its version.
    pub(crate) version: &'static str,
    /// How it differs from the common settings because it must.
    pub(crate) differences: &'static [&'static str],
    /// How it can be configured.
    pub(crate) configs: Configs,
    /// Opens a new store in a folder.
    pub(crate) open: fn(&Path, &Settings) -> Result<Box<dyn Store>>,
}

/// A store, and how it is to be configured.
#[derive(Clone)]
pub(crate) struct Contender {
    /// The store.
    pub(crate) kind: Kind,
    /// What follows its name on the command line.
    pub(crate) config: Option<String>,
}

impl Contender {
    /// Returns the name of the store with its configuration.
    pub(crate) fn label(&self) -> String {
        match &self.config {
            Some(config) => format!("{}:{config}", self.kind.name),
            None => self.kind.name.to_string(),
        }
    }

    /// Opens a new store in `dir`.
    pub(crate) fn open(&self, dir: &Path, settings: Settings) -> Result<Box<dyn Store>> {
        (self.kind.open)(dir, &Settings { config: self.config.clone(), ..settings })
    }
}

impl std::fmt::Debug for Contender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.label())
    }
}
