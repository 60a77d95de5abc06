use super::block_builder::BlockBuilder;
use super::footer::FooterFault;
use super::*;
use crate::cursor::EntryRef;
use bytes::Bytes;
use lsmith_tree::{EntryKind, Key, KeyRange, ProfilePoint, SeqNo, Size, key_after};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

const PLACE: SealedPlace = SealedPlace { table: 3, offset: 77 };

/// Keys with their versions, newest first. Few different bytes, so that keys share prefixes.
type Entries = Vec<(Vec<u8>, u64)>;

fn entries() -> impl Strategy<Value = Entries> {
    let versions = vec(1..60u64, 1..4);
    btree_map(vec(0..4u8, 1..6), versions, 1..60).prop_map(|keys| {
        let mut entries = Vec::new();
        for (key, mut seqs) in keys {
            seqs.sort_unstable_by(|a, b| b.cmp(a));
            seqs.dedup();
            entries.extend(seqs.into_iter().map(|seq| (key.clone(), seq)));
        }
        entries
    })
}

/// Returns the payload of a block of these entries; the value of each is its sequence number as
/// text.
fn payload(entries: &Entries) -> Vec<u8> {
    let mut out = Vec::new();
    let mut builder = BlockBuilder::default();
    let mut last = &Vec::new();
    for (key, seq) in entries {
        let value = seq.to_string();
        let entry =
            EntryRef { key, seq: SeqNo(*seq), kind: EntryKind::Insert, value: value.as_bytes() };
        builder.add(&mut out, common_prefix_bytes(last, key), &entry);
        last = key;
    }
    builder.finish(&mut out, PLACE);
    unseal(&out, PLACE).expect("just sealed").to_vec()
}

/// Calls every method of a block that may be damaged.
fn touch(block: &Block, key: &[u8]) {
    let mut at = 0;
    let mut walked = Vec::new();
    while at < block.entries_end() {
        let Ok(slot) = block.slot(at) else { break };
        assert!(slot.end() > at && slot.end() <= block.entries_end());
        let _ = block.step(&slot, &mut walked);
        let _ = block.shared_value(&slot);
        let _ = block.slot_ending(slot.end(), &mut Vec::new(), &mut Trail::default());
        at = slot.end();
    }
    if let Ok(Some((slot, _))) = block.lower_bound(key) {
        assert!(slot.shared() <= key.len());
    }
    let _ = block.find(key, SeqNo(7));
    let _ = block.slot_ending(block.entries_end(), &mut walked, &mut Trail::default());
}

proptest! {
    #[test]
    fn block_returns_its_entries(entries in entries()) {
        let block = Block::parse(payload(&entries).into()).expect("whole");
        let mut at = 0;
        let mut key = Vec::new();
        let mut walked: Vec<(usize, Vec<u8>)> = Vec::new();
        for (expected, seq) in &entries {
            let slot = block.slot(at).expect("whole");
            block.step(&slot, &mut key).expect("whole");
            prop_assert_eq!(&key, expected);
            prop_assert_eq!(slot.seq, SeqNo(*seq));
            prop_assert_eq!(slot.kind, EntryKind::Insert);
            let value = seq.to_string();
            prop_assert_eq!(block.value(&slot), value.as_bytes());
            let mut back = Vec::new();
            let mut trail = Trail::default();
            let same = block.slot_ending(slot.end(), &mut back, &mut trail).expect("whole");
            prop_assert_eq!((same.start(), &back), (at, &key));
            for (start, key) in walked.iter().rev() {
                let Some(before) = trail.pop(&mut back) else { break };
                prop_assert_eq!((before.start(), &back), (*start, key));
            }
            prop_assert!(trail.pop(&mut back).is_none());
            walked.push((at, key.clone()));
            at = slot.end();
        }
        prop_assert_eq!(at, block.entries_end());
    }

    #[test]
    fn block_search_agrees_with_a_list(
        entries in entries(), key in vec(0..4u8, 1..6), snapshot in 0..60u64,
    ) {
        let block = Block::parse(payload(&entries).into()).expect("whole");
        let bound = entries.iter().find(|(k, _)| *k >= key);
        let found = block.lower_bound(&key).expect("whole");
        prop_assert_eq!(
            found.as_ref().map(|(slot, equal)| (slot.seq.0, *equal)),
            bound.map(|(k, seq)| (*seq, *k == key))
        );
        if let Some((slot, _)) = found {
            let whole = [&key[..slot.shared()], block.suffix(&slot)].concat();
            prop_assert_eq!(Some(&whole), bound.map(|(k, _)| k));
        }
        let visible = entries.iter().find(|(k, seq)| *k == key && *seq <= snapshot);
        let above = entries.iter().any(|(k, _)| *k > key);
        match block.find(&key, SeqNo(snapshot)).expect("whole") {
            BlockAnswer::Found(slot) => {
                prop_assert_eq!(Some(slot.seq.0), visible.map(|(_, seq)| *seq));
            }
            BlockAnswer::Absent => prop_assert!(visible.is_none() && above),
            BlockAnswer::Beyond => prop_assert!(visible.is_none() && !above),
        }
    }

    #[test]
    fn damaged_block_never_panics(
        entries in entries(),
        changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        key in vec(0..4u8, 1..6),
    ) {
        let mut payload = payload(&entries);
        for (index, byte) in changes {
            let at = index.index(payload.len());
            payload[at] = byte;
        }
        if let Ok(block) = Block::parse(payload.into()) {
            touch(&block, &key);
        }
    }

    #[test]
    fn decoders_never_panic_on_random_bytes(bytes in vec(any::<u8>(), 0..200)) {
        if let Ok(block) = Block::parse(Bytes::from(bytes.clone())) {
            touch(&block, &bytes);
        }
        prop_assert!(Block::open(Bytes::from(bytes.clone()), PLACE).is_err());
        if let Ok(fences) = Fences::parse(&bytes, 300, 300) {
            prop_assert!(fences.block_for(&bytes) < fences.count());
        }
        if let Ok(filter) = Filter::parse(&bytes) {
            filter.may_hold(key_hash(&bytes));
        }
        let _ = TableFacts::parse(&bytes, &footer());
        if let Some(last) = bytes.first_chunk() {
            prop_assert!(Footer::decode(last, 0).is_err());
        }
    }

    #[test]
    fn decoders_never_panic_on_small_random_bytes(bytes in vec(0..6u8, 0..80)) {
        if let Ok(block) = Block::parse(Bytes::from(bytes.clone())) {
            touch(&block, &bytes);
        }
        let sum = bytes.iter().map(|byte| u64::from(*byte)).sum();
        for data_bytes in 0..=sum {
            if let Ok(fences) = Fences::parse(&bytes, data_bytes, data_bytes) {
                prop_assert!(fences.block_for(&bytes) < fences.count());
                prop_assert_eq!(fences.place(fences.count() - 1).end, data_bytes);
            }
        }
        let _ = TableFacts::parse(&bytes, &footer());
    }

    #[test]
    fn fences_lead_to_the_right_block(
        blocks in vec(vec(0..4u8, 1..4), 2..40), key in vec(0..4u8, 0..4),
    ) {
        // One key per block. A block with the key of the previous block is continued.
        let mut keys = blocks;
        keys.sort();
        let mut builder = FencesBuilder::default();
        for (index, own) in keys.iter().enumerate() {
            let before = index.checked_sub(1).map(|before| &keys[before]);
            let continued = before == Some(own);
            let bytes = match before {
                None => 0,
                Some(_) if continued => own.len(),
                Some(before) => common_prefix_bytes(before, own) + 1,
            };
            builder.add(Fence { key: &own[..bytes], continued, block_bytes: 100 });
        }
        let data_bytes = keys.len() as u64 * 100;
        let fences = Fences::parse(&builder.finish(), data_bytes, data_bytes).expect("whole");
        prop_assert_eq!(fences.count(), keys.len());
        prop_assert_eq!(fences.place(1), 100..200);
        let found = fences.block_for(&key);
        // Either the first entry at or above the key is in this block, or the next block starts
        // with it.
        let bound = keys.partition_point(|own| *own < key);
        prop_assert!(found == bound || found + 1 == bound, "{} {}", found, bound);
        if fences.may_continue_key(found + 1, &key) {
            prop_assert_eq!(&keys[found + 1], &key);
        }
    }
}

fn footer() -> Footer {
    Footer { table: 9, filter: 1000..1100, index: 1100..1200, properties: 1200..1300, features: 0 }
}

#[test]
fn footer_survives_encoding_and_any_change_is_found() {
    let bytes: [u8; FOOTER_BYTES] = footer().encode().try_into().expect("of fixed size");
    assert_eq!(Footer::decode(&bytes, 1300), Ok(footer()));
    assert!(matches!(Footer::decode(&bytes, 1301), Err(FooterFault::Damage(_))));
    for at in 0..FOOTER_BYTES {
        for bit in 0..8 {
            let mut damaged = bytes;
            damaged[at] ^= 1 << bit;
            assert!(matches!(Footer::decode(&damaged, 1300), Err(FooterFault::Damage(_))), "{at}");
        }
    }
}

#[test]
fn footer_of_another_version_is_not_damage() {
    for version in [FORMAT_VERSION - 1, FORMAT_VERSION + 1] {
        let bytes = footer().encode_as(version).try_into().expect("of fixed size");
        assert_eq!(Footer::decode(&bytes, 1300), Err(FooterFault::Other(version)));
    }
    let bytes = footer().encode_as(0).try_into().expect("of fixed size");
    assert!(matches!(Footer::decode(&bytes, 1300), Err(FooterFault::Damage(_))));
}

#[test]
fn footer_with_parts_that_do_not_fill_the_file_is_damage() {
    for footer in [
        Footer { filter: 1000..1099, ..footer() },
        Footer { index: 1100..1201, ..footer() },
        Footer { filter: Section { start: 1101, end: 1100 }, ..footer() },
    ] {
        let bytes = footer.encode().try_into().expect("of fixed size");
        assert!(matches!(Footer::decode(&bytes, 1300), Err(FooterFault::Damage(_))), "{footer:?}");
    }
}

fn facts(grain: ProfileGrain, profile: Vec<ProfilePoint>) -> TableFacts {
    TableFacts {
        expires: 0,
        table: 9,
        file_bytes: 1300 + FOOTER_BYTES as u64,
        data_bytes: 1000,
        data_blocks: 12,
        size: Size { bytes: 300_000, entries: 3000, tombstones: 300 },
        first_key: Key::from("apple"),
        last_key: Key::from("pear"),
        seq_min: SeqNo(5),
        seq_max: SeqNo::MAX,
        grain,
        profile,
        prefix_bytes: 0,
        has_expiring: false,
        operator: None,
        range_deletes: Vec::new(),
        value_files: Vec::new(),
    }
}

fn point(key: &'static str, bytes: u64, last: Option<&str>) -> ProfilePoint {
    ProfilePoint {
        key: Key::from(key),
        below: Size { bytes, entries: bytes / 100, tombstones: bytes / 1000 },
        after: last.map(|last| key_after(last.as_bytes())),
    }
}

#[test]
fn facts_survive_encoding() {
    for facts in [
        facts(ProfileGrain::Steps, vec![point("fig", 70_000, None), point("figs", 140_000, None)]),
        facts(
            ProfileGrain::Blocks,
            vec![point("fig", 4000, Some("date")), point("figs", 8000, Some("fig"))],
        ),
        facts(ProfileGrain::Blocks, Vec::new()),
        TableFacts { prefix_bytes: 300, ..facts(ProfileGrain::Steps, Vec::new()) },
        TableFacts {
            operator: Some("counter".into()),
            has_expiring: true,
            ..facts(ProfileGrain::Steps, Vec::new())
        },
        TableFacts {
            range_deletes: vec![
                (KeyRange { start: Key::new(), end: Some(Key::from(&b"b"[..])) }, SeqNo(0)),
                (KeyRange::ALL, SeqNo(7)),
            ],
            ..facts(ProfileGrain::Steps, Vec::new())
        },
        TableFacts {
            value_files: vec![
                ValueUse { file: 4, values: 1, bytes: 12 },
                ValueUse { file: 1 << 40, values: 300, bytes: 1 << 50 },
            ],
            ..facts(ProfileGrain::Steps, Vec::new())
        },
    ] {
        let bytes = facts.encode();
        let prefixes = if facts.prefix_bytes > 0 { FEATURE_PREFIXES } else { 0 };
        let operands = if facts.operator.is_some() { FEATURE_OPERANDS } else { 0 };
        let expiring = if facts.has_expiring { FEATURE_EXPIRING } else { 0 };
        let hides = if facts.range_deletes.is_empty() { 0 } else { FEATURE_RANGE_DELETES };
        let refers = if facts.value_files.is_empty() { 0 } else { FEATURE_VALUES };
        let features = prefixes | operands | expiring | hides | refers;
        let with_features = |features| Footer { features, ..footer() };
        assert_eq!(TableFacts::parse(&bytes, &with_features(features)), Ok(facts));
        for end in 0..bytes.len() {
            let parsed = TableFacts::parse(&bytes[..end], &with_features(features));
            assert!(parsed.is_err(), "{end}");
        }
        for other in [FEATURE_PREFIXES, FEATURE_OPERANDS, FEATURE_RANGE_DELETES, FEATURE_VALUES] {
            let other = with_features(features ^ other);
            assert!(TableFacts::parse(&bytes, &other).is_err(), "the footer says otherwise");
        }
    }
}

#[test]
fn tables_from_outside_have_no_value_files() {
    for (features, is_known) in
        [(FEATURE_VALUES, true), (FEATURE_OUTSIDE, true), (FEATURE_VALUES | FEATURE_OUTSIDE, false)]
    {
        let bytes = Footer { features, ..footer() }.encode().try_into().expect("of fixed size");
        let expected = Err(FooterFault::Features(FEATURE_VALUES));
        let read = Footer::decode(&bytes, 1300);
        assert!(if is_known { read.is_ok() } else { read == expected }, "{features:#x}");
    }
}

#[test]
fn value_files_out_of_order_are_damage() {
    let used = |file| ValueUse { file, values: 1, bytes: 20 };
    for value_files in [
        vec![used(0)],
        vec![used(7), used(7)],
        vec![ValueUse { values: 0, ..used(7) }],
        vec![ValueUse { bytes: u64::MAX, ..used(7) }],
        vec![used(u64::MAX)],
    ] {
        let bytes = TableFacts { value_files, ..facts(ProfileGrain::Steps, Vec::new()) }.encode();
        let footer = Footer { features: FEATURE_VALUES, ..footer() };
        assert!(TableFacts::parse(&bytes, &footer).is_err());
    }
}

#[test]
fn profile_that_no_tree_can_use_is_damage() {
    for profile in [
        vec![point("figs", 4000, Some("date")), point("fig", 8000, Some("figs"))],
        vec![point("apple", 4000, Some("apple"))],
        vec![point("quince", 4000, Some("fig"))],
        vec![point("fig", 4000, Some("fig"))],
        vec![point("fig", 4000, Some("date")), point("figs", 8000, Some("date"))],
        vec![point("fig", 300_001, Some("date"))],
    ] {
        let bytes = facts(ProfileGrain::Blocks, profile.clone()).encode();
        assert!(TableFacts::parse(&bytes, &footer()).is_err(), "{profile:?}");
    }
}

/// A shared sequence base must not lose sequence numbers at either end of their range.
#[test]
fn the_extremes_of_sequence_numbers_survive() {
    let entries = vec![(b"a".to_vec(), u64::MAX), (b"a".to_vec(), 0), (b"b".to_vec(), 1 << 63)];
    let block = Block::parse(payload(&entries).into()).expect("whole");
    let mut at = 0;
    let mut seqs = Vec::new();
    while at < block.entries_end() {
        let slot = block.slot(at).expect("whole");
        seqs.push(slot.seq.0);
        at = slot.end();
    }
    assert_eq!(seqs, [u64::MAX, 0, 1 << 63]);
}

/// Prefixes and the time of a root are optional. Decoding finds out without the footer which of
/// them a root has.
#[test]
fn optional_parts_of_roots_are_told_apart() {
    let size = Size { bytes: 30, entries: 2, tombstones: 1 };
    let top = ChildRef { node: Span { offset: 7, bytes: 99 }, sum: NodeSum { keys: 2, size } };
    let plain = AppendRoot { appended_bytes: 30, levels: 1, top, ..AppendRoot::default() };
    for (prefix_bytes, filter_prefixes) in [(0, 0), (4, 0), (4, 9)] {
        for expires in [0, 1, 300, u64::MAX] {
            let root = AppendRoot { prefix_bytes, filter_prefixes, expires, ..plain.clone() };
            let payload = root.encode();
            assert_eq!(AppendRoot::parse(&payload, 1000), Ok(root.clone()));
            let more = [&payload[..], &[0]].concat();
            assert!(AppendRoot::parse(&more, 1000).is_err(), "{root:?}");
            if expires > 0 {
                let cut = &payload[..payload.len() - 1];
                assert!(AppendRoot::parse(cut, 1000).is_err(), "{root:?}");
            }
        }
    }
    let zero = [&plain.encode()[..], &[0, 0]].concat();
    assert!(AppendRoot::parse(&zero, 1000).is_err(), "no time is 0");
    let empty = AppendRoot { expires: 5, ..AppendRoot::default() };
    assert!(AppendRoot::parse(&empty.encode(), 1000).is_err(), "an empty table does not expire");
}
