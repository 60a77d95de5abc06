//! From lines to operations and keys.

use std::collections::BTreeMap;

use super::layout::{Layout, Line};
use super::op::{TraceOp, TraceOpKind};
use crate::keys::NamedKeys;
use crate::parts::{KEY_BYTES_MAX, KEYS_MAX};

/// Operations and keys of the lines read so far.
pub(super) struct Reader {
    ops: Vec<TraceOp>,
    ops_max: usize,
    keys: NamedKeys,
    /// The items by a hash of their keys. An item whose hash is taken has the next free id.
    items: BTreeMap<u64, u32>,
    has_ranges: bool,
    /// True if all keys have one length.
    is_one_length: bool,
}

impl Reader {
    pub(super) fn new(limit: Option<u64>) -> Self {
        Self {
            ops: Vec::new(),
            ops_max: limit.map_or(usize::MAX, |ops| usize::try_from(ops).unwrap_or(usize::MAX)),
            keys: NamedKeys::default(),
            items: BTreeMap::new(),
            has_ranges: false,
            is_one_length: true,
        }
    }

    /// Returns true if the limit on operations is reached.
    pub(super) fn is_full(&self) -> bool {
        self.ops.len() >= self.ops_max
    }

    /// Parses one line. Fails with a message for the malformed field.
    pub(super) fn line(&mut self, layout: &Layout, line: &[u8]) -> Result<(), String> {
        let line = std::str::from_utf8(line).map_err(|_| "not valid UTF-8".to_owned())?;
        let Line { kind, key, size, end, times } = layout.line(line)?;
        check_key(&key)?;
        if let Some(end) = end {
            check_key(end)?;
            if *end <= *key {
                return Err(format!("the range ends at `{end}`, which is not behind `{key}`"));
            }
            self.has_ranges = true;
        }
        let item = self.item(&key)?;
        // Until the last line, the item of the end stands for the number of items.
        let size = match end {
            Some(end) => self.item(end)?,
            None => size,
        };
        // As in any workload with range deletes.
        if self.has_ranges && !self.is_one_length {
            return Err("with delete_range, expected all keys of one length".to_owned());
        }
        let times = usize::try_from(times).unwrap_or(usize::MAX);
        let times = times.min(self.ops_max - self.ops.len());
        self.ops.extend(std::iter::repeat_n(TraceOp { kind, item, size }, times));
        Ok(())
    }

    /// Returns the item of `key`, a new one if the key is.
    fn item(&mut self, key: &str) -> Result<u32, String> {
        let mut hash = hash(key.as_bytes());
        while let Some(&item) = self.items.get(&hash) {
            if self.keys.name(item as usize) == key.as_bytes() {
                return Ok(item);
            }
            hash = hash.wrapping_add(1);
        }
        let next = u32::try_from(self.keys.len()).ok().filter(|&item| u64::from(item) < KEYS_MAX);
        let item = next.ok_or_else(|| format!("more than {KEYS_MAX} different keys"))?;
        self.is_one_length &= item == 0 || self.keys.name(0).len() == key.len();
        self.keys.push(key.as_bytes());
        self.items.insert(hash, item);
        Ok(item)
    }

    /// Returns the operations, and the keys of their items. With range deletes, items are in the
    /// order of their keys.
    pub(super) fn finish(mut self) -> (Vec<TraceOp>, NamedKeys) {
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

fn check_key(key: &str) -> Result<(), String> {
    match key.len() as u64 {
        0 => Err("the key is empty".to_owned()),
        1..=KEY_BYTES_MAX => Ok(()),
        bytes => Err(format!("a key of {bytes} bytes is longer than {KEY_BYTES_MAX}")),
    }
}

/// Returns the 64-bit FNV-1a hash of `bytes`.
fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}
