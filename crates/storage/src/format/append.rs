//! The parts of append tables that sorted tables do not have: references in nodes, and the
//! properties of a root.
//!
//! A node is a [data block](super::Block) without compression. The values of its entries are
//! references, which consist of varints:
//!
//! ```text
//! leaf:  key, number, kind -> offset | block bytes | start | value bytes
//! inner: key, 0, put       -> offset | node bytes | keys | size
//! size = entries | tombstones | logical bytes
//! ```
//!
//! A reference of a leaf leads to an entry of a data block with values. It is empty if the value is
//! empty. What a node refers to lies in front of it in the file, so that no path comes back.

use super::block::Block;
use super::codec::{Damage, Reader, put_bytes, put_varint, short_varint, varint_of_two};
use super::facts::{put_prefix_bytes, put_size, take_prefix_bytes, take_size};
use super::slot::Slot;
use lsmith_tree::{Key, SeqNo, Size};

/// The most bytes of a node with its seal, unless one key with all its versions takes more, or two
/// keys of an inner node do.
pub const NODE_BYTES: usize = 4096;

/// The most parts of the filter of a root.
pub const FILTER_PARTS_MAX: usize = 16;

/// The most levels of nodes. A table of as many has more leaves than a file has bytes.
const LEVELS_MAX: u64 = 64;

/// The place of a block in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The offset of its first byte.
    pub offset: u64,
    /// Its bytes, seal included.
    pub bytes: u64,
}

impl Span {
    /// Returns the offset behind the last byte.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.bytes)
    }

    fn put(self, out: &mut Vec<u8>) {
        put_varint(out, self.offset);
        put_varint(out, self.bytes);
    }

    /// Takes a span that ends at or before `limit`.
    #[inline]
    fn take(reader: &mut Reader<'_>, limit: u64) -> Result<Span, Damage> {
        let span = Span { offset: reader.varint()?, bytes: reader.varint()? };
        match span.offset.checked_add(span.bytes) {
            Some(end) if end <= limit && span.bytes > 0 => Ok(span),
            _ => Err(reader.damage("a reference leads to bytes behind it")),
        }
    }
}

/// The place of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueRef {
    /// The data block that has the value.
    pub block: Span,
    /// The offset in the payload of the block at which the entry with the value starts.
    pub start: u64,
    /// The bytes of the value.
    pub value_bytes: u64,
}

impl ValueRef {
    /// Appends the reference.
    pub fn put(&self, out: &mut Vec<u8>) {
        if self.value_bytes > 0 {
            self.block.put(out);
            put_varint(out, self.start);
            put_varint(out, self.value_bytes);
        }
    }

    /// Decodes the reference of the entry `slot` of `leaf`, which is at offset `node`.
    #[inline(always)]
    pub fn of(leaf: &Block, slot: &Slot, node: u64) -> Result<ValueRef, Damage> {
        let near = leaf.value_near(slot);
        match near.and_then(|(near, bytes)| ValueRef::read_near(near, bytes, node)) {
            Some(read) => Ok(read),
            None => ValueRef::parse(leaf.value(slot), node),
        }
    }

    /// Decodes the first `bytes` bytes of `near`. Returns `None` if they are no reference, or one
    /// with a long integer behind the offset.
    #[inline(always)]
    fn read_near(near: u128, bytes: usize, node: u64) -> Option<ValueRef> {
        let (offset, offset_bytes) = short_varint(near as u64)?;
        let mut rest = (near >> (8 * offset_bytes)) as u64;
        let mut read = offset_bytes;
        let mut next = || {
            let (value, bytes) = varint_of_two(rest)?;
            rest >>= 8 * bytes;
            read += bytes;
            Some(value)
        };
        let block = Span { offset, bytes: next()? };
        let found = ValueRef { block, start: next()?, value_bytes: next()? };
        // Numbers of eight bytes or less do not overflow when they are added.
        let is_behind = block.offset + block.bytes > node;
        (read == bytes && !is_behind && block.bytes > 0).then_some(found)
    }

    /// Decodes a reference of a node at offset `node`.
    #[inline]
    pub fn parse(bytes: &[u8], node: u64) -> Result<ValueRef, Damage> {
        if bytes.is_empty() {
            return Ok(ValueRef::default());
        }
        let mut reader = Reader::new(bytes, 0);
        let block = Span::take(&mut reader, node)?;
        let found = ValueRef { block, start: reader.varint()?, value_bytes: reader.varint()? };
        reader.finish()?;
        Ok(found)
    }

    /// Returns the bytes of the value that the reference `bytes` leads to, without checking it.
    pub fn value_bytes(bytes: &[u8]) -> u64 {
        ValueRef::parse(bytes, u64::MAX).map_or(0, |found| found.value_bytes)
    }
}

/// How much a part of a table holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSum {
    /// Different keys.
    pub keys: u64,
    /// Entries.
    pub size: Size,
}

impl NodeSum {
    /// Adds `other`.
    pub fn add(&mut self, other: NodeSum) {
        self.keys = self.keys.saturating_add(other.keys);
        self.size = self.size.saturating_add(other.size);
    }
}

/// A child of an inner node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChildRef {
    /// The place of the child.
    pub node: Span,
    /// What lies below it.
    pub sum: NodeSum,
}

impl ChildRef {
    /// Appends the reference.
    pub fn put(&self, out: &mut Vec<u8>) {
        self.node.put(out);
        put_varint(out, self.sum.keys);
        put_size(out, Size::default(), self.sum.size);
    }

    /// Decodes a reference of a node at offset `node`.
    pub fn parse(bytes: &[u8], node: u64) -> Result<ChildRef, Damage> {
        let mut reader = Reader::new(bytes, 0);
        let place = Span::take(&mut reader, node)?;
        let keys = reader.varint()?;
        let size = take_size(&mut reader, Size::default())?;
        reader.finish()?;
        Ok(ChildRef { node: place, sum: NodeSum { keys, size } })
    }
}

/// A root: everything that is known of an append table at the end of one batch.
///
/// ```text
/// batches | appended bytes | levels | least sequence number | greatest - least
/// | filter room | parts | part ... | top | prefixes | expiry
/// part = offset | bytes
/// top = offset | node bytes | keys | size | first key | last key
/// prefixes = prefix bytes | prefixes in the filter
/// expiry = 0 | latest time
/// ```
///
/// All integers are varints, and keys have their lengths in front. There is no `top` if there are
/// no levels. The first part of the filter is a filter block, the others are lists of hashes. There
/// are no `prefixes` if the filter holds none. There is no `expiry` if an entry stays. The 0 tells
/// it from `prefixes`. Features of the footer say it too: [one](super::FEATURE_PREFIXES) for
/// `prefixes`, and [one](super::FEATURE_EXPIRES) for `expiry`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppendRoot {
    /// Batches appended so far.
    pub batches: u64,
    /// Logical bytes of all entries that batches have written, and of the nodes that they have
    /// replaced.
    pub appended_bytes: u64,
    /// Levels of nodes; 0 for an empty table.
    pub levels: u64,
    /// At most the smallest sequence number of all entries.
    pub seq_min: SeqNo,
    /// At least the greatest sequence number of all entries.
    pub seq_max: SeqNo,
    /// The number of keys and prefixes for which the first part of the filter has room.
    pub filter_room: u64,
    /// The parts of the filter; none if there is no filter.
    pub filter: Vec<Span>,
    /// The uppermost node, with what lies below it.
    pub top: ChildRef,
    /// The first key.
    pub first_key: Key,
    /// The last key, included in the table.
    pub last_key: Key,
    /// The filter also holds the first so many bytes of each key that has so many; 0 if it holds no
    /// prefixes, or there is no filter.
    pub prefix_bytes: u16,
    /// The number of prefixes that were added to the filter. Prefixes that it held by chance
    /// already are not counted.
    pub filter_prefixes: u64,
    /// A time at which all entries of the table have expired, deletions aside; 0 if some stay. The
    /// table may have had an entry with this time, or one that stays, before a batch replaced it.
    pub expires: u64,
}

impl AppendRoot {
    /// Returns true if all entries of the table are deletions, or expire.
    pub fn expires_wholly(&self) -> bool {
        let size = self.top.sum.size;
        self.expires > 0 || size.entries == size.tombstones
    }

    /// Encodes the payload of the properties block.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for field in [self.batches, self.appended_bytes, self.levels, self.seq_min.0] {
            put_varint(&mut out, field);
        }
        put_varint(&mut out, self.seq_max.0.saturating_sub(self.seq_min.0));
        put_varint(&mut out, self.filter_room);
        put_varint(&mut out, self.filter.len() as u64);
        self.filter.iter().for_each(|part| part.put(&mut out));
        if self.levels > 0 {
            self.top.put(&mut out);
            put_bytes(&mut out, &self.first_key);
            put_bytes(&mut out, &self.last_key);
        }
        put_prefix_bytes(&mut out, self.prefix_bytes);
        if self.prefix_bytes > 0 {
            put_varint(&mut out, self.filter_prefixes);
        }
        if self.expires > 0 {
            put_varint(&mut out, 0);
            put_varint(&mut out, self.expires);
        }
        out
    }

    /// Decodes the payload of a properties block that starts at `offset` of the file.
    pub fn parse(payload: &[u8], offset: u64) -> Result<AppendRoot, Damage> {
        let mut reader = Reader::new(payload, 0);
        let mut root = AppendRoot {
            batches: reader.varint()?,
            appended_bytes: reader.varint()?,
            levels: reader.varint()?,
            seq_min: SeqNo(reader.varint()?),
            ..AppendRoot::default()
        };
        let Some(seq_max) = root.seq_min.0.checked_add(reader.varint()?) else {
            return Err(reader.damage("a sequence number is out of range"));
        };
        root.seq_max = SeqNo(seq_max);
        root.filter_room = reader.varint()?;
        let parts = reader.size()?;
        if parts > FILTER_PARTS_MAX {
            return Err(reader.damage("a filter has too many parts"));
        }
        for _ in 0..parts {
            root.filter.push(Span::take(&mut reader, offset)?);
        }
        if root.levels > LEVELS_MAX {
            return Err(reader.damage("a table has too many levels"));
        }
        if root.levels > 0 {
            let node = Span::take(&mut reader, offset)?;
            let keys = reader.varint()?;
            let size = take_size(&mut reader, Size::default())?;
            root.top = ChildRef { node, sum: NodeSum { keys, size } };
            root.first_key = Key::copy_from_slice(reader.bytes()?);
            root.last_key = Key::copy_from_slice(reader.bytes()?);
        }
        root.take_optional(&mut reader)?;
        reader.finish()?;
        let NodeSum { keys, size } = root.top.sum;
        if root.first_key > root.last_key
            || size.entries < keys
            || size.tombstones > size.entries
            || (root.levels > 0) != (keys > 0)
            || size.bytes > root.appended_bytes
            || (root.expires > 0 && root.levels == 0)
        {
            return Err(Damage::whole("the properties of a root contradict each other"));
        }
        Ok(root)
    }

    /// Decodes the parts that not all roots have. The footer says which there are, but it may be
    /// lost when a damaged file is searched for roots.
    fn take_optional(&mut self, reader: &mut Reader<'_>) -> Result<(), Damage> {
        let mut first = reader.next_byte();
        if first.is_some_and(|byte| byte > 0) {
            self.prefix_bytes = take_prefix_bytes(reader)?;
            self.filter_prefixes = reader.varint()?;
            first = reader.next_byte();
        }
        if first == Some(0) {
            reader.varint()?;
            self.expires = reader.varint()?;
            if self.expires == 0 {
                return Err(reader.damage("expected the time at which the table expires"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::EntryRef;
    use crate::format::BlockBuilder;
    use bytes::Bytes;
    use lsmith_tree::EntryKind;
    use proptest::prelude::*;

    /// Returns a leaf with one entry, whose value is `reference`, and the entry.
    fn leaf_with(reference: &[u8]) -> (Block, Slot) {
        let entry = EntryRef { key: b"key", seq: SeqNo(7), kind: EntryKind::Put, value: reference };
        let (mut builder, mut payload) = (BlockBuilder::default(), Vec::new());
        builder.add(&mut payload, 0, &entry);
        builder.finish_payload(&mut payload);
        let leaf = Block::from_payload(Bytes::from(payload)).unwrap();
        let slot = leaf.slot(0).unwrap();
        (leaf, slot)
    }

    /// Generates numbers of all lengths.
    fn value() -> impl Strategy<Value = u64> {
        (any::<u64>(), 0..64u32).prop_map(|(value, shift)| value >> shift)
    }

    proptest! {
        /// Decoding from words finds what decoding byte by byte finds.
        #[test]
        fn references_in_leaves_are_those_of_their_bytes(
            (offset, bytes, start, value_bytes) in (value(), value(), value(), value()),
            room in value(),
            cut in 0..40usize,
            changed in proptest::option::of((0..40usize, any::<u8>())),
        ) {
            let block = Span { offset, bytes };
            let mut reference = Vec::new();
            ValueRef { block, start, value_bytes }.put(&mut reference);
            if let Some((at, byte)) = changed
                && let Some(place) = reference.get_mut(at)
            {
                *place = byte;
            }
            reference.truncate(reference.len().saturating_sub(cut / 20 * (cut % 20)));
            let (leaf, slot) = leaf_with(&reference);
            for node in [room, block.end(), block.end().saturating_sub(1), u64::MAX] {
                let found = ValueRef::of(&leaf, &slot, node);
                prop_assert_eq!(found, ValueRef::parse(&reference, node));
            }
        }
    }
}
