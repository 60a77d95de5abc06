//! The bytes of append tables: blocks, the filter's parts, nodes and roots.

use lsmith_model::formulas::AppendNodes;
use lsmith_tree::{BLOCK_BYTES_USUAL, ReplacedNodes, Size, node_bytes};

/// Bytes of the head of an entry in a block, and of a block or a part besides its content.
const HEAD_BYTES: f64 = 3.0;
const PART_BYTES: f64 = 26.0;

/// Bytes of a root with its footer.
const ROOT_BYTES: f64 = 192.0;

/// Bits of the filter per key, and bytes of a key in a list.
const FILTER_BITS: f64 = 10.0;
const LISTED_BYTES: f64 = 8.0;

/// A filter has room for so many times its keys, and for [`ROOM_MIN`] at least.
const ROOM: f64 = 1.5;
const ROOM_MIN: f64 = 64.0;

/// The most parts of a filter.
const PARTS_MAX: u32 = 16;

/// What append tables of a workload take.
#[derive(Clone, Copy, Debug)]
pub(super) struct AppendSizes {
    /// Bytes of blocks per logical byte.
    blocks: f64,
    nodes: AppendNodes,
}

/// An append table as it is in its file.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AppendFile {
    /// Bytes of the file.
    pub(super) bytes: f64,
    /// Logical bytes that its slice shows and that are dead.
    pub(super) logical: f64,
    entries: f64,
    /// Keys for which the filter has room.
    room: f64,
    parts: u32,
    /// Keys in the lists of the filter.
    listed: f64,
}

/// Returns the entries of `logical` logical bytes that fill a block.
fn in_block(logical: f64) -> f64 {
    (BLOCK_BYTES_USUAL as f64 / logical).max(1.0)
}

/// Returns the bytes of filter and index for an entry of a sorted table.
pub(super) fn beside_entry(key_bytes: f64, logical: f64) -> f64 {
    FILTER_BITS / 8.0 + (PART_BYTES + key_bytes) / in_block(logical)
}

impl AppendSizes {
    /// Returns the sizes for keys of `key_bytes` and entries of `logical` logical bytes. A sorted
    /// table takes `sorted` bytes per logical byte.
    pub(super) fn of(
        key_bytes: f64,
        logical: f64,
        sorted: f64,
        is_compressed: bool,
    ) -> AppendSizes {
        let entry = logical - 8.0;
        let whole = entry + HEAD_BYTES + PART_BYTES / in_block(logical);
        // What a sorted table leaves out of a key, its neighbour has.
        let beside = HEAD_BYTES + beside_entry(key_bytes, logical);
        let own = (sorted * logical - (entry - key_bytes) - beside).clamp(1.0, key_bytes.max(1.0));
        AppendSizes {
            blocks: if is_compressed { sorted } else { whole / logical },
            nodes: AppendNodes::of_keys(key_bytes, own, entry, 1e6),
        }
    }

    /// Returns a new table of `size`.
    pub(super) fn new_file(&self, size: Size) -> AppendFile {
        let entries = size.entries as f64;
        let mut file = AppendFile { entries, logical: size.bytes as f64, ..AppendFile::default() };
        file.bytes = file.logical * self.blocks + self.nodes.new_bytes(entries) + ROOT_BYTES;
        file.bytes += file.whole_filter();
        file
    }

    /// Appends a batch of `batch` logical bytes, after which the table has `size` and `dead` dead
    /// bytes. Returns the bytes that it adds to the file.
    pub(super) fn append(&self, file: &mut AppendFile, batch: f64, size: Size, dead: u64) -> f64 {
        let touched = self.touched(file, batch, size, dead);
        let entries = size.entries as f64;
        let new_keys = (entries - file.entries).max(0.0);
        file.entries = entries;
        file.logical = (size.bytes + dead) as f64;
        let filter = file.grow_filter(new_keys);
        let nodes = self.nodes.batch_bytes(entries, touched);
        let bytes = batch * self.blocks + filter + nodes + ROOT_BYTES;
        file.bytes += bytes;
        bytes
    }

    /// Returns the share of the leaves in which the batch has a key. Simulations count leaves of
    /// so many entries; if real ones have more, more of them are met.
    fn touched(&self, file: &AppendFile, batch: f64, size: Size, dead: u64) -> f64 {
        let all = node_bytes(file.entries as u64) as f64;
        let replaced = ((size.bytes + dead) as f64 - file.logical - batch).max(0.0);
        let share = ((replaced - ROOT_BYTES) / (all - ROOT_BYTES).max(1.0)).clamp(0.0, 1.0);
        let larger = self.nodes.leaf_entries() / ReplacedNodes::LEAF_ENTRIES as f64;
        1.0 - (1.0 - share).powf(larger)
    }
}

impl AppendFile {
    /// Writes a filter for all keys, and returns its bytes.
    fn whole_filter(&mut self) -> f64 {
        self.room = (self.entries * ROOM).max(ROOM_MIN);
        self.parts = 1;
        self.listed = 0.0;
        self.room * FILTER_BITS / 8.0 + PART_BYTES
    }

    /// Adds `keys` to the filter, and returns the bytes that it writes.
    fn grow_filter(&mut self, keys: f64) -> f64 {
        if self.entries > self.room {
            return self.whole_filter();
        }
        if keys <= 0.0 {
            return 0.0;
        }
        let mut listed = keys;
        if self.parts >= PARTS_MAX {
            listed += std::mem::take(&mut self.listed);
            self.parts = 1;
        }
        self.parts += 1;
        self.listed += listed;
        listed * LISTED_BYTES + PART_BYTES
    }
}
