//! From records to operations and keys.

use std::collections::BTreeMap;

use super::op::{TraceOp, TraceOpKind};
use super::record::Record;
use crate::keys::NamedKeys;
use crate::parts::{KEY_BYTES_MAX, KEYS_MAX};

/// Operations and keys of the records read so far.
pub(super) struct Reader {
    ops: Vec<TraceOp>,
    ops_max: usize,
    keys: NamedKeys,
    /// The items by a hash of their keys. An item whose hash is taken has the next free id.
    items: BTreeMap<u64, u32>,
    has_ranges: bool,
    /// The operations among them that load.
    loads: usize,
}

impl Reader {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            ops: Vec::new(),
            ops_max: limit.map_or(usize::MAX, |ops| usize::try_from(ops).unwrap_or(usize::MAX)),
            keys: NamedKeys::default(),
            items: BTreeMap::new(),
            has_ranges: false,
            loads: 0,
        }
    }

    /// Returns true if the limit on operations is reached.
    pub(super) fn is_full(&self) -> bool {
        self.ops.len() - self.loads >= self.ops_max
    }

    /// Returns true if nothing is played so far.
    pub(super) fn is_empty(&self) -> bool {
        self.ops.is_empty()
    }

    /// Adds what `record` says, as far as the limit on operations allows; loads do not count. Fails
    /// with a message for a key or a range that no store takes.
    pub(super) fn take(&mut self, record: Record<'_>) -> Result<(), String> {
        if self.is_full() && record.kind != TraceOpKind::Load {
            return Ok(());
        }
        let Record { kind, key, size, end, times, fills } = record;
        check_key(&key)?;
        if let Some(end) = end {
            check_key(end)?;
            if *end <= *key {
                let [key, end] = [&key, end].map(String::from_utf8_lossy);
                return Err(format!("the range ends at `{end}`, which is not behind `{key}`"));
            }
            self.has_ranges = true;
        }
        let known = self.keys.len();
        let item = self.item(&key)?;
        let is_first = self.keys.len() > known;
        let (kind, size) = match fills {
            true if is_first => (TraceOpKind::Update, size),
            true => (kind, 0),
            false => (kind, size),
        };
        // Until the last record, the item of the end stands for the number of items.
        let size = match end {
            Some(end) => self.item(end)?,
            None => size,
        };
        let times = usize::try_from(times).unwrap_or(usize::MAX);
        if kind == TraceOpKind::Load {
            self.loads += 1;
            self.ops.push(TraceOp { kind, item, size });
            return Ok(());
        }
        let times = times.min(self.ops_max - (self.ops.len() - self.loads));
        self.ops.extend(std::iter::repeat_n(TraceOp { kind, item, size }, times));
        Ok(())
    }

    /// Returns the item of `key`, a new one if the key is.
    fn item(&mut self, key: &[u8]) -> Result<u32, String> {
        let mut hash = hash(key);
        while let Some(&item) = self.items.get(&hash) {
            if self.keys.name(item as usize) == key {
                return Ok(item);
            }
            hash = hash.wrapping_add(1);
        }
        let next = u32::try_from(self.keys.len()).ok().filter(|&item| u64::from(item) < KEYS_MAX);
        let item = next.ok_or_else(|| format!("more than {KEYS_MAX} different keys"))?;
        self.keys.push(key);
        self.items.insert(hash, item);
        Ok(item)
    }

    /// Returns the operations, loads first, and the keys of their items. With range deletes, items
    /// are in the order of their keys.
    pub(super) fn finish(mut self) -> (Vec<TraceOp>, NamedKeys) {
        if self.loads > 0 {
            // In no order of keys, as keys come that were written one by one. Then the trees that
            // loads grow have the shapes of trees in use.
            let keys = &self.keys;
            self.ops.sort_by_cached_key(|op| match op.kind {
                TraceOpKind::Load => (0, hash(keys.name(op.item as usize))),
                _ => (1, 0),
            });
        }
        if !self.has_ranges {
            return (self.ops, self.keys);
        }
        let (keys, ranks) = self.keys.sorted();
        for op in &mut self.ops {
            op.item = ranks[op.item as usize];
            if op.kind == TraceOpKind::DeleteRange {
                op.size = ranks[op.size as usize] - op.item;
            }
        }
        (self.ops, keys)
    }
}

fn check_key(key: &[u8]) -> Result<(), String> {
    match key.len() as u64 {
        0 => Err("the key is empty".to_owned()),
        1..=KEY_BYTES_MAX => Ok(()),
        bytes => Err(format!("a key of {bytes} bytes is longer than {KEY_BYTES_MAX}")),
    }
}

/// Returns the 64-bit FNV-1a hash of `bytes`.
pub(super) fn hash(bytes: &[u8]) -> u64 {
    hash_on(0xcbf2_9ce4_8422_2325, bytes)
}

/// Returns the hash of what has `hash` and `bytes` behind it.
pub(super) fn hash_on(hash: u64, bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(hash, step)
}
