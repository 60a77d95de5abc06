//! Writes the filter of a root: one filter in memory. Each batch stores what is new in it.
//!
//! The first part in the file is a filter block with room for half as many keys and prefixes again
//! as there were when it was written. A batch adds a list of hashes, for keys that are new to the
//! table and prefixes that are new to the filter. It adds nothing for keys that it only writes
//! anew. When the lists are many, the next batch writes all their hashes as one list. When keys and
//! prefixes no longer fit, the next batch reads all keys and writes a new filter block. So a key
//! costs eight bytes once, and a filter now and then.

use super::parts::{parse_hashes, read_part};
use super::reader::AppendTable;
use super::values::BatchFile;
use crate::error::Result;
use crate::format::{FILTER_PARTS_MAX, Filter, Span, key_hash, prefix_hash_of};
use crate::table::writer::TableOptions;

/// The least number of keys and prefixes for which a filter has room.
const ROOM_MIN: u64 = 64;

fn put_hashes(hashes: &[u64]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect()
}

/// The hashes of a key, and of its prefix if it has one.
#[derive(Clone, Copy, Debug)]
pub(super) struct KeyHashes {
    key: u64,
    prefix: Option<u64>,
}

/// The hashes of keys, and of their prefixes, for a filter.
#[derive(Debug)]
pub(super) struct NewKeys {
    prefix_bytes: u16,
    keys: Vec<u64>,
    /// No hash twice in a row. Keys are added in their order, so keys with one prefix follow each
    /// other.
    prefixes: Vec<u64>,
}

impl NewKeys {
    /// Returns no keys yet, of a table with these options.
    pub(super) fn new(options: &TableOptions) -> NewKeys {
        let prefix_bytes = if options.bits_per_key() > 0.0 { options.prefix_bytes } else { 0 };
        NewKeys { prefix_bytes, keys: Vec::new(), prefixes: Vec::new() }
    }

    /// Returns the hashes of `key`, without adding it.
    pub(super) fn hashes_of(&self, key: &[u8]) -> KeyHashes {
        KeyHashes { key: key_hash(key), prefix: prefix_hash_of(key, self.prefix_bytes) }
    }

    /// Adds the key with these hashes.
    pub(super) fn add(&mut self, hashes: KeyHashes) {
        self.keys.push(hashes.key);
        self.prefixes.extend(hashes.prefix.filter(|hash| self.prefixes.last() != Some(hash)));
    }
}

/// The filter of the root that a batch ends with.
#[derive(Debug, Default)]
pub(super) struct NextFilter {
    pub(super) room: u64,
    pub(super) parts: Vec<Span>,
    /// The length of the prefixes; 0 for none.
    pub(super) prefix_bytes: u16,
    pub(super) prefixes: u64,
}

/// Appends what the next root's filter needs beyond the filter of `base`, the root before. `keys`
/// is the number of keys of the next root, and `new` has the keys that `base` lacks.
pub(super) fn write(
    file: &mut BatchFile,
    base: Option<&AppendTable>,
    options: &TableOptions,
    keys: u64,
    new: NewKeys,
) -> Result<NextFilter> {
    if options.bits_per_key() <= 0.0 || keys == 0 {
        return Ok(NextFilter::default());
    }
    let Some((base, filter)) = base.and_then(|base| Some((base, base.filter.as_ref()?))) else {
        return write_whole(file, base, options, keys, new);
    };
    let before = &base.root;
    // What the filter holds by chance, it still holds in later roots.
    let is_new = |hash: &u64| !filter.may_hold(*hash);
    let new_prefixes: Vec<u64> = new.prefixes.iter().copied().filter(is_new).collect();
    let prefixes = before.filter_prefixes.saturating_add(new_prefixes.len() as u64);
    let fits = keys.saturating_add(prefixes) <= before.filter_room;
    if !fits || before.prefix_bytes != new.prefix_bytes {
        return write_whole(file, Some(base), options, keys, new);
    }
    let mut parts = before.filter.clone();
    let mut hashes = [new.keys, new_prefixes].concat();
    if !hashes.is_empty() {
        if parts.len() >= FILTER_PARTS_MAX {
            for list in parts.drain(1..) {
                hashes.extend(read_part(&base.file, list, parse_hashes)?);
            }
        }
        parts.push(file.part(put_hashes(&hashes))?);
    }
    let prefix_bytes = new.prefix_bytes;
    Ok(NextFilter { room: before.filter_room, parts, prefix_bytes, prefixes })
}

/// Appends a new filter block for the keys of `base`, and for `all`, which it does not have.
fn write_whole(
    file: &mut BatchFile,
    base: Option<&AppendTable>,
    options: &TableOptions,
    keys: u64,
    mut all: NewKeys,
) -> Result<NextFilter> {
    if let Some(base) = base {
        base.each_key(&mut |key| all.add(all.hashes_of(key)))?;
        // New keys may have prefixes of old ones.
        all.prefixes.sort_unstable();
        all.prefixes.dedup();
    }
    let prefixes = all.prefixes.len() as u64;
    let wanted = keys.saturating_add(prefixes);
    let room = (wanted + wanted / 2).max(ROOM_MIN);
    let mut filter = Filter::with_room(room, options.bits_per_key());
    all.keys.into_iter().chain(all.prefixes).for_each(|hash| filter.insert(hash));
    let parts = vec![file.part(filter.encode())?];
    Ok(NextFilter { room, parts, prefix_bytes: all.prefix_bytes, prefixes })
}
