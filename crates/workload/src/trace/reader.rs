//! From records to operations and keys.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::op::{TraceOp, TraceOpKind};
use super::record::{Record, Stamp};
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
    /// For each operation, when it was, if lives are wanted.
    stamps: Option<Vec<Stamp>>,
}

/// What a reader has read.
pub(super) struct Operations {
    /// Loads first.
    pub(super) ops: Vec<TraceOp>,
    pub(super) keys: NamedKeys,
    /// As in [`Lives::Each`](crate::Lives::Each), if lives were wanted.
    pub(super) lives: Option<Arc<[u32]>>,
}

impl Reader {
    /// Returns a reader of at most `limit` operations, which notes their lives if they are wanted.
    pub(super) fn new(limit: Option<u64>, wants_lives: bool) -> Self {
        Self {
            ops: Vec::new(),
            ops_max: limit.map_or(usize::MAX, |ops| usize::try_from(ops).unwrap_or(usize::MAX)),
            keys: NamedKeys::default(),
            items: BTreeMap::new(),
            has_ranges: false,
            loads: 0,
            stamps: wants_lives.then(Vec::new),
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
        let Record { kind, key, size, end, times, fills, stamp } = record;
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
        let times = match kind {
            TraceOpKind::Load => 1,
            _ => times.min(self.ops_max - (self.ops.len() - self.loads)),
        };
        if let Some(stamps) = &mut self.stamps {
            let stamp = if kind.writes() { stamp.ok_or(NO_LIVES)? } else { Stamp::default() };
            stamps.extend(std::iter::repeat_n(stamp, times));
        }
        self.loads += usize::from(kind == TraceOpKind::Load);
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

    /// Returns what was read. With range deletes, items are in the order of their keys.
    pub(super) fn finish(mut self) -> Operations {
        if self.loads > 0 {
            // In no order of keys, as keys come that were written one by one. Then the trees that
            // loads grow have the shapes of trees in use.
            let keys = &self.keys;
            let mut order: Vec<usize> = (0..self.ops.len()).collect();
            order.sort_by_cached_key(|at| match self.ops[*at] {
                TraceOp { kind: TraceOpKind::Load, item, .. } => {
                    (0, hash(keys.name(item as usize)))
                }
                _ => (1, 0),
            });
            self.ops = order.iter().map(|at| self.ops[*at]).collect();
            if let Some(stamps) = &mut self.stamps {
                *stamps = order.iter().map(|at| stamps[*at]).collect();
            }
        }
        let lives = self.stamps.map(|stamps| lives(&self.ops, &stamps));
        if !self.has_ranges {
            return Operations { ops: self.ops, keys: self.keys, lives };
        }
        let (keys, ranks) = self.keys.sorted();
        for op in &mut self.ops {
            op.item = ranks[op.item as usize];
            if op.kind == TraceOpKind::DeleteRange {
                op.size = ranks[op.size as usize] - op.item;
            }
        }
        Operations { ops: self.ops, keys, lives }
    }
}

/// Returns for each write the number of writes after which its entry expires; 0 if it stays.
///
/// An entry has expired at the first write that comes when its life is over, or later. If none
/// comes, it still has a time, behind all writes.
fn lives(ops: &[TraceOp], stamps: &[Stamp]) -> Arc<[u32]> {
    let writes = ops.iter().zip(stamps).filter(|(op, _)| op.kind.writes());
    let writes: Vec<(TraceOpKind, Stamp)> = writes.map(|(op, stamp)| (op.kind, *stamp)).collect();
    // The base was there when the first operation came, and times do not go back.
    let times = writes.iter().scan(0, |latest: &mut u64, (kind, stamp)| {
        let time = if *kind == TraceOpKind::Load { 0 } else { stamp.time };
        *latest = time.max(*latest);
        Some(*latest)
    });
    let times: Vec<u64> = times.collect();
    let life = |(at, (kind, stamp)): (usize, &(TraceOpKind, Stamp))| {
        if stamp.life == 0 || matches!(kind, TraceOpKind::Delete | TraceOpKind::DeleteRange) {
            return 0;
        }
        let end = stamp.time.saturating_add(stamp.life);
        match times.partition_point(|time| *time < end) {
            first if first == times.len() => u32::MAX,
            first => u32::try_from(first.saturating_sub(at)).unwrap_or(u32::MAX).max(1),
        }
    };
    writes.iter().enumerate().map(life).collect()
}

/// Why the lives of a trace cannot be played.
const NO_LIVES: &str = "no time to live: expire=recorded plays traces of twitter, traces of \
                        cachelib with op_time and ttl, and recordings";

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
