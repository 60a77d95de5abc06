//! Writes the filter of a root: one filter in memory, of which batches store what is new.
//!
//! The first part in the file is a filter block with room for half as many keys again as there were
//! when it was written. A batch adds a list of the hashes of keys that are new to the tree, and
//! nothing for keys that it only writes anew. When the lists are many, the next batch writes all
//! their hashes as one list. When the keys no longer fit, the next batch writes a new filter block,
//! for which it reads all keys. So a key costs eight bytes once, and a filter now and then.

use super::parts::{parse_hashes, read_part};
use super::reader::AppendTable;
use super::values::BatchFile;
use crate::error::Result;
use crate::format::{FILTER_PARTS_MAX, Filter, Span, key_hash};
use crate::table::writer::TableOptions;

/// The least number of keys for which a filter has room.
const ROOM_MIN: u64 = 64;

fn put_hashes(hashes: &[u64]) -> Vec<u8> {
    hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect()
}

/// The filter of the root that a batch ends with.
#[derive(Debug, Default)]
pub(super) struct NextFilter {
    pub(super) room: u64,
    pub(super) parts: Vec<Span>,
}

/// Appends what the filter of the next root needs besides that of `base`, the root before. `keys`
/// is the number of keys of the next root, and `hashes` are those of keys that `base` does not
/// have.
pub(super) fn write(
    file: &mut BatchFile,
    base: Option<&AppendTable>,
    options: &TableOptions,
    keys: u64,
    mut hashes: Vec<u64>,
) -> Result<NextFilter> {
    let bits = options.filter_bits.unwrap_or(options.filter_bits_per_key.into());
    if bits <= 0.0 || keys == 0 {
        return Ok(NextFilter::default());
    }
    let before = base.map(|base| &base.root).filter(|root| !root.filter.is_empty());
    let Some(before) = before.filter(|root| keys <= root.filter_room) else {
        if let Some(base) = base {
            base.each_key(&mut |key| hashes.push(key_hash(key)))?;
        }
        let room = (keys + keys / 2).max(ROOM_MIN);
        let mut filter = Filter::with_room(room, bits);
        hashes.into_iter().for_each(|hash| filter.insert(hash));
        return Ok(NextFilter { room, parts: vec![file.part(filter.encode())?] });
    };
    let mut parts = before.filter.clone();
    if !hashes.is_empty() {
        if let Some(base) = base.filter(|_| parts.len() >= FILTER_PARTS_MAX) {
            for list in parts.drain(1..) {
                hashes.extend(read_part(&base.file, list, parse_hashes)?);
            }
        }
        parts.push(file.part(put_hashes(&hashes))?);
    }
    Ok(NextFilter { room: before.filter_room, parts })
}
