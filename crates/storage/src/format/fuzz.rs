//! Arbitrary parts of tables with correct checksums are refused, or decode to what can be encoded.

use super::block_builder::BlockBuilder;
use super::codec::unzigzag;
use super::entry_head::{EntryHead, Usual};
use super::seal::seal_tagged;
use super::*;
use crate::cursor::EntryRef;
use bytes::Bytes;
use lsmith_fuzz::{Choices, change, fuzz, peak_bytes};
use lsmith_tree::{EntryKind, Key, KeyRange, ProfilePoint, SeqNo, Size, key_after};

const PLACE: SealedPlace = SealedPlace { table: 3, offset: 77 };

const CODECS: [Codec; 3] = [Codec::None, Codec::Lz4, Codec::Zstd { level: 1 }];

/// Returns some keys with common prefixes, in order.
fn keys(choices: &mut Choices<'_>) -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = (0..1 + choices.below(40))
        .map(|_| {
            let mut key = vec![b'k'; choices.below(12)];
            key.extend((0..1 + choices.below(3)).map(|_| choices.below(5) as u8));
            key
        })
        .collect();
    keys.sort();
    keys.dedup();
    keys
}

/// Returns the stored bytes of a data block.
fn block(codec: Codec, choices: &mut Choices<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut builder = BlockBuilder::default();
    let mut last = Vec::new();
    for key in keys(choices) {
        for version in (0..1 + choices.below(3) as u64).rev() {
            let kind = choices.pick(&[
                EntryKind::Put,
                EntryKind::Delete,
                EntryKind::Insert,
                EntryKind::Combine,
            ]);
            let len = if kind.is_tombstone() { 0 } else { choices.pick(&[0, 3, 3, 3, 70]) };
            let value = vec![b'v'; len];
            let entry = EntryRef { key: &key, seq: SeqNo(version * 7), kind, value: &value };
            builder.add(&mut out, common_prefix_bytes(&last, &key), &entry);
            last.clone_from(&key);
        }
    }
    builder.finish_with(&mut out, PLACE, &mut Compressor::new(codec));
    out
}

/// Calls every method of a block.
fn touch(block: &Block, target: &[u8]) {
    let mut at = 0;
    let mut key = Vec::new();
    let mut entries = 0;
    while at < block.entries_end() {
        let Ok(slot) = block.slot(at) else { break };
        assert!(slot.end() > at && slot.end() <= block.entries_end());
        if block.step(&slot, &mut key).is_err() {
            break;
        }
        assert!(key.ends_with(block.suffix(&slot)) && key.len() <= block.bytes());
        assert_eq!(block.shared_value(&slot), block.value(&slot));
        let mut back = Vec::new();
        let mut trail = Trail::default();
        if block.slot_ending(slot.end(), &mut back, &mut trail).is_ok() {
            while trail.pop(&mut back).is_some() {}
        }
        let _ = block.find(&key, slot.seq);
        at = slot.end();
        entries += 1;
    }
    assert!(entries <= block.bytes());
    for key in [target, &key] {
        if let Ok(Some((slot, _))) = block.lower_bound(key) {
            assert!(slot.shared() <= key.len());
        }
        let _ = block.find(key, SeqNo(7));
    }
    (0..block.restarts() + 2).take(1000).for_each(|index| {
        let _ = block.restart(index);
    });
    let _ = block.clone().with_seq_base(u64::MAX).slot(0);
}

#[test]
fn fuzz_data_blocks() {
    fuzz!(20_000, |choices| {
        let codec = choices.pick(&CODECS);
        let mut sealed = block(codec, choices);
        let right = Block::open(Bytes::from(sealed.clone()), PLACE).expect("just written");
        let tag = sealed[sealed.len() - SEAL_BYTES];
        if choices.chance(50) {
            // Damages the stored bytes. The other branch damages the uncompressed payload.
            sealed.truncate(sealed.len() - SEAL_BYTES);
            change(&mut sealed, choices, true);
        } else {
            sealed = right.into_buffer().map_or_else(Vec::new, Vec::from);
            change(&mut sealed, choices, true);
        }
        let sealed_tag = if choices.chance(80) { tag } else { choices.below(4) as u8 };
        seal_tagged(&mut sealed, 0, PLACE, sealed_tag);
        let target = choices.bytes(3);
        let bytes = sealed.len();
        let (_, peak) = peak_bytes(|| {
            let Ok(block) = Block::open(Bytes::from(sealed), PLACE) else { return };
            let plain = block.bytes();
            let ((), peak) = peak_bytes(|| touch(&block, &target));
            assert!(peak < 8192 + 40 * plain, "{peak} bytes for a block of {plain}");
        });
        let plain_max = bytes as u64 * super::compress::PLAIN_BYTES_PER_BYTE;
        assert!((peak as u64) < (1 << 20) + 3 * plain_max, "{peak} bytes for {bytes}");
    });
}

#[test]
fn fuzz_seals() {
    fuzz!(300_000, |choices| {
        let payload_bytes = choices.below(60);
        let mut bytes = choices.bytes(payload_bytes);
        let whole = choices.chance(50);
        if whole {
            seal(&mut bytes, 0, PLACE);
            assert_eq!(unseal(&bytes, PLACE), Ok(&bytes[..payload_bytes]));
        }
        let sealed = bytes.clone();
        change(&mut bytes, choices, true);
        let passes = unseal(&bytes, PLACE).is_ok();
        assert_eq!(passes, whole && bytes == sealed, "{bytes:?}");
        let found = PLACE.find_seal(&bytes);
        assert!(found.is_none_or(|end| end <= bytes.len()));
        let _ = codec_name(&bytes);
        let _ = Block::lent(&Bytes::from(bytes), 0..choices.below(80));
    });
}

#[test]
fn fuzz_heads_and_numbers() {
    fuzz!(400_000, |choices| {
        let mut entries = choices.bytes(24);
        if choices.chance(50) {
            entries.clear();
            (0..3).for_each(|_| put_varint(&mut entries, choices.border()));
            entries.resize(entries.len() + 16, 0);
        }
        let usual = Usual::like(choices.below(40), choices.border());
        // As at the end of a block, where the fast path has no room.
        for end in [entries.len(), choices.below(entries.len() + 1)] {
            let read = EntryHead::read(&entries[..end], 0, usual);
            let Ok((head, at)) = read else { continue };
            assert!(at <= end);
            assert_eq!(EntryHead::read(&entries[..at], 0, usual), Ok((head, at)), "{entries:?}");
            assert_eq!(EntryHead::read(&entries, 0, usual), Ok((head, at)), "{entries:?}");
            let _ = unzigzag(head.delta);
        }
        let mut reader = Reader::new(&entries, 0);
        while let Ok(value) = reader.varint() {
            let at = reader.at();
            let mut short = Vec::new();
            put_varint(&mut short, value);
            assert_eq!(Reader::new(&short, 0).varint(), Ok(value));
            assert!(Reader::new(&entries[..at], at - 1).varint().is_ok());
        }
        let mut reader = Reader::new(&entries, choices.below(40));
        let _ = (reader.bytes(), reader.u32(), reader.size(), reader.u64(), reader.finish());
    });
}

fn footer(data_bytes: u64, features: u32) -> Footer {
    let filter = data_bytes..data_bytes + 74;
    let index = filter.end..filter.end + 300;
    let properties = index.end..index.end + 200;
    Footer { table: 3, filter, index, properties, features }
}

#[test]
fn fuzz_footers() {
    fuzz!(400_000, |choices| {
        let right = footer(choices.border() >> 1, choices.below(4) as u32);
        let offset = right.properties.end;
        let mut bytes = right.encode();
        assert_eq!(decode(&bytes, offset), Ok(right));
        change(&mut bytes, choices, false);
        if choices.chance(90) {
            let sum = SealedPlace { table: 0, offset }.checksum(&bytes[..64]);
            bytes[64..72].copy_from_slice(&sum.to_le_bytes());
            bytes[72..].copy_from_slice(b"lsmtable");
        }
        if let Ok(read) = decode(&bytes, offset) {
            assert_eq!(read.encode(), bytes);
            let _ = read.plain_bytes_max();
        }
    });
}

fn decode(bytes: &[u8], offset: u64) -> Result<Footer, FooterFault> {
    Footer::decode(bytes.try_into().expect("as long as a footer"), offset)
}

#[test]
fn fuzz_filters() {
    fuzz!(200_000, |choices| {
        let mut builder = FilterBuilder::new(choices.below(20) as u8 + 1);
        (0..choices.below(200)).for_each(|_| builder.add(choices.number()));
        let mut payload = builder.finish();
        if choices.chance(80) {
            change(&mut payload, choices, true);
        } else {
            let length = choices.below(200);
            payload = choices.bytes(length);
        }
        let (read, peak) = peak_bytes(|| Filter::parse(&payload));
        assert!(peak < 256 + 2 * payload.len(), "{peak} bytes for {}", payload.len());
        let Ok(filter) = read else { return };
        assert_eq!(filter.memory_bytes() + 1, payload.len());
        assert_eq!(Some(&filter.probes()), payload.last());
        for hash in [0, u64::MAX, choices.number()] {
            let _ = (filter.touch(hash), filter.may_hold(hash));
        }
    });
}

/// Returns the payload of an index, and the bytes of its data blocks.
fn index(choices: &mut Choices<'_>) -> (Vec<u8>, u64) {
    let mut builder = FencesBuilder::default();
    let mut data_bytes = 0;
    for (index, key) in keys(choices).iter().enumerate() {
        let block_bytes = 1 + choices.below(5000);
        let key = if index == 0 { &[] } else { &key[..] };
        builder.add(Fence { key, continued: choices.chance(10), block_bytes });
        data_bytes += block_bytes as u64;
    }
    (builder.finish(), data_bytes)
}

fn rewritten(fences: &Fences) -> Vec<u8> {
    let mut builder = FencesBuilder::default();
    for index in 0..fences.count() {
        let place = fences.place(index);
        let block_bytes = (place.end - place.start) as usize;
        let key = fences.key(index);
        let continued = fences.is_continued(index);
        builder.add(Fence { key, continued, block_bytes });
    }
    builder.finish()
}

#[test]
fn fuzz_fences() {
    fuzz!(60_000, |choices| {
        let (mut payload, data_bytes) = index(choices);
        let right = Fences::parse(&payload, data_bytes, data_bytes + 1000).expect("just made");
        assert_eq!(rewritten(&right), payload);
        change(&mut payload, choices, true);
        let data_bytes = if choices.chance(80) { data_bytes } else { choices.border() };
        let plain_bytes = choices.pick(&[data_bytes, data_bytes / 2, 10_000]).min(100_000);
        let (read, peak) = peak_bytes(|| Fences::parse(&payload, data_bytes, plain_bytes));
        let most = 4096 + 3 * plain_bytes as usize + 100 * payload.len();
        assert!(peak < most, "{peak} bytes for {}", payload.len());
        let Ok(fences) = read else { return };
        assert_eq!(fences.place(fences.count() - 1).end, data_bytes);
        let parsed = rewritten(&fences);
        let again = Fences::parse(&parsed, data_bytes, plain_bytes).expect("it was right");
        assert_eq!(format!("{again:?}"), format!("{fences:?}"));
        for key in [&[][..], b"k", b"kkkkkkk\x02", b"\xff"] {
            assert!(fences.block_for(key) < fences.count());
            assert!(fences.blocks_below(key) <= fences.count());
            let _ = fences.may_continue_key(fences.count(), key);
        }
        for value in [0, choices.below(50), usize::MAX] {
            let _ = (fences.blocks_within(value as u64), fences.continued_before(value));
        }
    });
}

fn facts(choices: &mut Choices<'_>) -> TableFacts {
    let keys = keys(choices);
    let grain = choices.pick(&[ProfileGrain::Steps, ProfileGrain::Blocks]);
    let mut below = Size::default();
    let mut add = |entries: usize| {
        below += Size { bytes: 10 * entries as u64, entries: entries as u64, tombstones: 0 };
        below
    };
    let mut profile = Vec::new();
    for pair in keys.windows(2) {
        let after = (grain == ProfileGrain::Blocks).then(|| key_after(&pair[0]));
        let key = Key::from(pair[1].clone());
        let below = add(1 + choices.below(300));
        profile.push(ProfilePoint { key, below, after });
    }
    let seq_min = SeqNo(choices.border() >> 2);
    TableFacts {
        table: 3,
        file_bytes: 0,
        data_bytes: 4096,
        data_blocks: 1 + keys.len() as u64,
        size: add(3),
        first_key: Key::from(keys[0].clone()),
        last_key: Key::from(keys[keys.len() - 1].clone()),
        seq_min,
        seq_max: SeqNo(seq_min.0 + choices.below(100) as u64),
        grain,
        profile,
        expires: if choices.chance(50) { 1 + (choices.border() >> 1) } else { 0 },
        prefix_bytes: choices.pick(&[0, 1, 8, u16::MAX]),
        has_expiring: choices.chance(50),
        operator: choices.chance(30).then(|| "counter".to_string()),
        range_deletes: (0..choices.below(3))
            .map(|_| (KeyRange::ALL, SeqNo(choices.border() >> 2)))
            .collect(),
        value_files: (1..1 + choices.below(3) as u64)
            .map(|file| ValueUse { file: file * 1000, values: 1 + file, bytes: 20 * file })
            .collect(),
    }
}

#[test]
fn fuzz_properties() {
    fuzz!(60_000, |choices| {
        let facts = facts(choices);
        let prefixed = if facts.prefix_bytes > 0 { FEATURE_PREFIXES } else { 0 };
        let expires = if facts.expires > 0 { FEATURE_EXPIRES } else { 0 };
        let expiring = if facts.has_expiring { FEATURE_EXPIRING } else { 0 };
        let operands = if facts.operator.is_some() { FEATURE_OPERANDS } else { 0 };
        let hides = if facts.range_deletes.is_empty() { 0 } else { FEATURE_RANGE_DELETES };
        let refers = if facts.value_files.is_empty() { 0 } else { FEATURE_VALUES };
        let kinds = expires | expiring | operands | hides | refers;
        let footer = footer(4096, choices.below(2) as u32 | prefixed | kinds);
        let mut payload = facts.encode();
        assert!(TableFacts::parse(&payload, &footer).is_ok(), "just made");
        change(&mut payload, choices, true);
        let (read, peak) = peak_bytes(|| TableFacts::parse(&payload, &footer));
        // Keys of points share bytes, so the bound for keys of entries holds for them.
        let most = 4096 + 200 * payload.len() + 32 * 4096;
        assert!(peak < most, "{peak} bytes for {}", payload.len());
        let Ok(mut facts) = read else { return };
        let again = facts.encode();
        assert_eq!(TableFacts::parse(&again, &footer).as_ref(), Ok(&facts));
        let table = facts.take_tree_table();
        assert!(table.range.start <= facts.last_key && facts.profile.is_empty());
    });
}

#[test]
fn fuzz_roots_and_references() {
    fuzz!(100_000, |choices| {
        let keys = keys(choices);
        let size = Size { bytes: 1 << 20, entries: 5000, tombstones: choices.below(5000) as u64 };
        let sum = NodeSum { keys: 1 + choices.below(5000) as u64, size };
        let mut span = |below: usize| Span { offset: choices.below(below) as u64, bytes: 99 };
        let root = AppendRoot {
            batches: 7,
            appended_bytes: 1 << 21,
            levels: 3,
            seq_min: SeqNo(4),
            seq_max: SeqNo(99),
            filter_room: 6000,
            filter: vec![span(1 << 20), span(1 << 20)],
            top: ChildRef { node: span(1 << 20), sum },
            first_key: Key::from(keys[0].clone()),
            last_key: Key::from(keys[keys.len() - 1].clone()),
            prefix_bytes: 0,
            filter_prefixes: 0,
            expires: choices.pick(&[0, 1, 127, 128, u64::MAX]),
        };
        let prefix_bytes = choices.pick(&[0, 1, 8, u16::MAX]);
        let root = match prefix_bytes {
            0 => root,
            _ => AppendRoot { prefix_bytes, filter_prefixes: 70, ..root },
        };
        let mut payload = root.encode();
        let end = 1 << 21;
        assert_eq!(AppendRoot::parse(&payload, end), Ok(root));
        change(&mut payload, choices, true);
        let (read, peak) = peak_bytes(|| AppendRoot::parse(&payload, end));
        assert!(peak < 4096 + 4 * payload.len(), "{peak} bytes for {}", payload.len());
        if let Ok(read) = read {
            assert!(read.top.node.end() <= end && read.filter.iter().all(|part| part.end() <= end));
            assert_eq!(AppendRoot::parse(&read.encode(), end), Ok(read));
        }
        let bytes = choices.bytes(12);
        if let Ok(value) = ValueRef::parse(&bytes, end) {
            let mut again = Vec::new();
            value.put(&mut again);
            let read = ValueRef::parse(&again, end);
            assert!(value.value_bytes == 0 || read == Ok(value), "{bytes:?}");
        }
        if let Ok(child) = ChildRef::parse(&bytes, end) {
            let mut again = Vec::new();
            child.put(&mut again);
            assert_eq!(ChildRef::parse(&again, end), Ok(child));
        }
    });
}
