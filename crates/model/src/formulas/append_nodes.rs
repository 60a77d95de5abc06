//! The nodes of copy-on-write B+-trees that take batches in.

use super::IndexShare;

/// Most bytes of a node in the store, without the head and what the longest entry could take.
const NODE_ROOM: f64 = 4096.0 - HEAD_BYTES - 25.0;

/// Bytes of a node besides its entries: lengths, the number of restart points, and the seal.
const HEAD_BYTES: f64 = 26.0;

/// Bytes of an inner node for each child: head, place, keys and size, with a byte or two of a key.
const CHILD_BYTES: f64 = 15.7;

/// How full leaves are that have been split and filled again.
const FILL: f64 = 0.72;

/// Entries from one full key in a node to the next, and bytes of the place of a full key.
const RESTART_ENTRIES: f64 = 16.0;
const RESTART_BYTES: f64 = 4.0;

/// Append tables per table of live entries, of the first level and of the levels between it and the
/// last. In stores of append tables of 400 to 900 entries it was 1.2 to 1.6, and 1.6 to 1.7.
const FIRST_TABLES: f64 = 1.3;
const UPPER_TABLES: f64 = 1.6;

/// Bytes of a block of values.
const BLOCK_BYTES: f64 = 4096.0;

/// Nodes of append tables.
///
/// An append table goes down and is appended to those below its range. That writes anew each leaf
/// in which it has a key, at least one at each end of the range, and the nodes above. `n` entries
/// in `m` leaves get `b` new ones, so `m (1 - (1 - 1/m)^b)` leaves are written.
///
/// In the last level a range always has all its entries. In a level above, ranges begin empty, take
/// batches in until their turn comes, and go down. If the level holds the share `x` of all keys,
/// updates are for any key, and a range goes down when there were `a` updates per key since it was
/// empty, then `x = 1 - (1 - exp(-a)) / a`. The range has the share `1 - exp(-a)` of its keys then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AppendNodes {
    /// Bytes of an entry of a leaf: a reference, with its key.
    pub reference_bytes: f64,
    /// Bytes of an entry, key and value.
    pub entry_bytes: f64,
}

/// A level of append tables.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AppendLevel {
    /// Live entries.
    pub live: f64,
    /// The number of append tables.
    pub tables: f64,
}

/// What a batch does, and to what.
#[derive(Clone, Copy, Debug)]
struct Batch {
    /// Its entries.
    entries: f64,
    /// Entries of its range when it was appended.
    range: f64,
    /// The append tables of the range.
    tables: f64,
    /// Leaves, and append tables, that it shares with its neighbours.
    edges: f64,
}

/// What levels have together.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    nodes_written: f64,
    written: f64,
    nodes_held: f64,
    held: f64,
}

impl AppendNodes {
    /// Returns the nodes of the store for keys of `key_bytes` in files of `file_bytes`. A key
    /// shares all but `own_bytes` with the key in front.
    pub fn of_keys(
        key_bytes: f64,
        own_bytes: f64,
        entry_bytes: f64,
        file_bytes: f64,
    ) -> AppendNodes {
        let value_bytes = entry_bytes - key_bytes;
        let stored = (entry_bytes + 3.0).max(1.0);
        let in_block = (BLOCK_BYTES / stored).floor().max(1.0);
        // An entry starts at the front of its block, in one byte, or in two bytes further back.
        let start = (1.0 + 2.0 * (in_block - 1.0)) / in_block;
        let reference = varint_bytes(file_bytes / 2.0)
            + varint_bytes(in_block * stored)
            + start
            + varint_bytes(value_bytes);
        // A byte, and two more for one in four: its reference is longer or shorter than the first.
        let head = 1.5;
        let restart = (key_bytes - own_bytes + RESTART_BYTES) / RESTART_ENTRIES;
        AppendNodes { reference_bytes: head + own_bytes + restart + reference, entry_bytes }
    }

    /// Returns the levels that append tables of at most `table` entries make of `live` entries, the
    /// first level first. Above the last level append tables begin small and go down when they have
    /// a table or more, so that there are more of them.
    pub fn levels(table: f64, live: &[f64]) -> Vec<AppendLevel> {
        let last = live.len().saturating_sub(1);
        let tables = |at: usize, live: f64| match at {
            _ if at == last => live / table,
            0 => FIRST_TABLES * live / table,
            _ => UPPER_TABLES * live / table,
        };
        let level = |(at, live): (usize, &f64)| {
            let tables = tables(at, *live).max(1.0);
            AppendLevel { live: *live, tables }
        };
        live.iter().enumerate().map(level).collect()
    }

    /// Returns what nodes add to append tables in `levels`, the first level first, that take
    /// memtables of `memtable` entries in. Each append table of the last level is rewritten when
    /// its file has `garbage_ratio` times its live bytes. It holds `dead` dead bytes per live one.
    pub fn share(
        &self,
        memtable: f64,
        levels: &[AppendLevel],
        garbage_ratio: f64,
        dead: f64,
    ) -> IndexShare {
        let Some((last, upper)) = levels.split_last() else { return IndexShare::default() };
        let keys = last.live.max(1.0);
        let mut sums = Sums::default();
        // What comes from above: updates per key of a range, its entries, and the number of ranges.
        let (mut updates, mut entries, mut ranges) = (memtable / keys, memtable, 1.0);
        let mut taken = 1.0;
        for level in upper {
            let batch =
                Batch { entries, range: 0.0, tables: level.tables / ranges, edges: edges(ranges) };
            let in_turn = updates_of_share(level.live / keys);
            let batches = (in_turn / updates).round().max(1.0);
            self.grow(&mut sums, batch, keys / ranges, updates, batches, [taken, ranges]);
            (updates, ranges) = (in_turn, level.tables);
            entries = keys * -(-in_turn).exp_m1() / ranges;
            taken = 1.0 - (level.live / keys).min(1.0);
        }
        let batch = Batch {
            entries,
            range: keys / ranges,
            tables: last.tables / ranges,
            edges: edges(ranges),
        };
        let appended = self.written(batch) / entries;
        let packed = self.packed(keys / last.tables.max(1.0));
        let rewritten = taken / (garbage_ratio - 1.0).max(1e-9);
        sums.nodes_written += taken * appended + rewritten * packed;
        sums.written += taken + rewritten;
        sums.nodes_held += keys * (packed + dead * appended);
        sums.held += keys * (1.0 + dead);
        IndexShare {
            written: sums.nodes_written / sums.written / self.entry_bytes,
            held: sums.nodes_held / sums.held / self.entry_bytes,
        }
    }

    /// Adds a level of `ranges`, each of `keys` keys, that begin empty and take `batches` in, one
    /// per `updates` updates per key. It takes `taken` entries per request.
    fn grow(
        &self,
        sums: &mut Sums,
        batch: Batch,
        keys: f64,
        updates: f64,
        batches: f64,
        [taken, ranges]: [f64; 2],
    ) {
        let (mut nodes, mut held) = (0.0, [0.0; 2]);
        for batch_index in 1..=batches as u32 {
            let batch_index = f64::from(batch_index);
            let range = keys * -(-batch_index * updates).exp_m1();
            nodes += self.written(Batch { range, ..batch });
            held[0] += nodes;
            held[1] += batch_index * batch.entries;
        }
        sums.nodes_written += taken * nodes / (batches * batch.entries);
        sums.written += taken;
        sums.nodes_held += ranges * held[0] / batches;
        sums.held += ranges * held[1] / batches;
    }

    /// Returns the entries of a leaf that has been split and filled again.
    #[must_use]
    pub fn leaf_entries(&self) -> f64 {
        NODE_ROOM * FILL / self.reference_bytes
    }

    /// Returns the bytes of nodes that a batch writes to a tree that has `entries` entries after
    /// it, if it has keys in the share `touched` of the leaves.
    #[must_use]
    pub fn batch_bytes(&self, entries: f64, touched: f64) -> f64 {
        let bytes = entries * self.reference_bytes;
        let leaves = if bytes > NODE_ROOM { entries / self.leaf_entries() } else { 1.0 };
        let above = if leaves > 1.0 { HEAD_BYTES + leaves * CHILD_BYTES } else { 0.0 };
        (touched * leaves).max(1.0) * (bytes / leaves + HEAD_BYTES) + above
    }

    /// Returns the bytes of nodes of a new tree of `entries`.
    #[must_use]
    pub fn new_bytes(&self, entries: f64) -> f64 {
        entries * self.packed(entries)
    }

    /// Returns the bytes of nodes that a batch writes.
    fn written(&self, batch: Batch) -> f64 {
        let Batch { entries, range, tables, edges } = batch;
        let in_table = range / tables * self.reference_bytes;
        let leaves = if in_table > NODE_ROOM { in_table / (NODE_ROOM * FILL) } else { 1.0 };
        let leaf_bytes = in_table / leaves + HEAD_BYTES;
        let all = (leaves * tables + edges).max(1.0);
        let touched = all * (1.0 - (1.0 - 1.0 / all).powf(entries));
        let above = if leaves > 1.0 { HEAD_BYTES + leaves * CHILD_BYTES } else { 0.0 };
        touched * leaf_bytes + (tables + edges).min(entries) * above
    }

    /// Returns the bytes of nodes per entry of a new append table of `entries`.
    fn packed(&self, entries: f64) -> f64 {
        let leaves = (entries * self.reference_bytes / NODE_ROOM).ceil().max(1.0);
        let above = if leaves > 1.0 { HEAD_BYTES + leaves * CHILD_BYTES } else { 0.0 };
        self.reference_bytes + (leaves * HEAD_BYTES + above) / entries.max(1.0)
    }
}

/// Returns the leaves, and append tables, that a batch of one of `ranges` shares with its
/// neighbours.
fn edges(ranges: f64) -> f64 {
    if ranges > 1.0 { 1.0 } else { 0.0 }
}

/// Returns the updates per key in the turn of a level that has `share` of all keys in the mean.
fn updates_of_share(share: f64) -> f64 {
    let share = share.clamp(1e-9, 0.99);
    let (mut least, mut most) = (0.0, 1000.0);
    for _ in 0..60 {
        let middle = f64::midpoint(least, most);
        let mean = 1.0 + (-middle).exp_m1() / middle;
        if mean < share { least = middle } else { most = middle }
    }
    f64::midpoint(least, most)
}

/// Returns the bytes of `value` as it is stored: seven bits in each.
fn varint_bytes(value: f64) -> f64 {
    (value.max(1.0001).log2() / 7.0).ceil().max(1.0)
}
