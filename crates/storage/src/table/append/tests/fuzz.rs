//! Files whose checksums are right and whose blocks say anything: refused, or read to an end.

use super::*;
use crate::cursor::Cursor;
use crate::expiry::EXPIRY_BYTES;
use crate::format::{Footer, SEAL_BYTES, SealedPlace, Span, seal};
use crate::table::ReadTable;
use lsmith_fuzz::{Choices, change, fuzz, peak_bytes};

/// Returns the bytes of a table of some batches, and the places of its blocks.
fn file(choices: &mut Choices<'_>) -> (Vec<u8>, Vec<Span>) {
    let mut bench = Bench::new(TableOptions { block_bytes: 60, ..TableOptions::default() });
    let key = |n: usize| [vec![b'k'; 1 + n % 4 * 90], n.to_be_bytes().to_vec()].concat();
    let all_expire = choices.chance(30);
    for seq in 1..3 + choices.below(3) as u64 {
        let count = 1 + choices.below(if seq == 1 { 60 } else { 12 });
        let batch: BTreeMap<_, _> = (0..count)
            .map(|_| {
                let key = key(choices.below(300));
                let value = vec![b'v'; choices.pick(&[0, 1, 9, 70])];
                let expires = all_expire && value.len() >= EXPIRY_BYTES;
                let kind = if expires { EntryKind::Expiring } else { EntryKind::Delete };
                let value = if all_expire && !expires { Vec::new() } else { value };
                let entry = entry(key.clone(), seq, value);
                (key, if all_expire { entry.with(kind) } else { entry })
            })
            .collect();
        bench.append(batch.into_values().collect());
    }
    let table = bench.open();
    let mut spans = table.root.filter.clone();
    let mut nodes = vec![(table.root.top.node, table.root.levels)];
    // Deletions alone leave an empty table.
    nodes.retain(|(_, levels)| *levels > 0);
    while let Some((span, levels)) = nodes.pop() {
        spans.push(span);
        if levels > 1 {
            let below = table.children(span).unwrap();
            nodes.extend(below.into_iter().map(|(_, child)| (child.node, levels - 1)));
        }
    }
    let mut bytes = vec![0; bench.root as usize];
    bench.disk.open(path()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    let footer_at = bytes.len() - 80;
    let footer = bytes[footer_at..].try_into().unwrap();
    let Footer { properties, .. } = Footer::decode(footer, footer_at as u64).unwrap();
    spans.push(Span { offset: properties.start, bytes: properties.end - properties.start });
    // The first block has values.
    let place = SealedPlace { table: TABLE, offset: 0 };
    spans.extend(place.find_seal(&bytes).map(|bytes| Span { offset: 0, bytes: bytes as u64 }));
    (bytes, spans)
}

/// Asks a table everything. No answer is expected.
fn ask(table: &Arc<AppendTable>, entries_max: usize) {
    let _ = table.verify(&[KeyRange::ALL]);
    for key in [&b"k"[..], b"kkkk", b"\xff"] {
        let _ = get(table, key, SeqNo::MAX);
    }
    for fill in [CacheFill::Yes, CacheFill::No] {
        let mut cursor = table.cursor(fill);
        let mut steps = 0;
        let mut went = cursor.seek_first();
        while went.is_ok() && cursor.entry().is_some() && steps < entries_max {
            went = cursor.next();
            steps += 1;
        }
        let mut went = cursor.seek_last();
        while went.is_ok() && cursor.entry().is_some() && steps < 2 * entries_max {
            went = cursor.prev();
            steps += 1;
        }
        let _ = (cursor.seek(b"kk\x07"), cursor.seek_before(b"kkk\x09"));
    }
}

#[test]
fn fuzz_append_tables() {
    fuzz!(1500, |choices| {
        let (mut bytes, spans) = file(choices);
        for _ in 0..1 + choices.below(2) {
            let Span { offset, bytes: length } = choices.pick(&spans);
            let (start, end) = (offset as usize, (offset + length) as usize);
            let mut payload = bytes[start..end - SEAL_BYTES].to_vec();
            change(&mut payload, choices, false);
            seal(&mut payload, 0, SealedPlace { table: TABLE, offset });
            bytes[start..end].copy_from_slice(&payload);
        }
        let bench = Bench::new(TableOptions::default());
        let mut file = bench.disk.create(path()).unwrap();
        file.write_all(&bytes).unwrap();
        file.sync().unwrap();
        let (_, peak) = peak_bytes(|| {
            let maps = choices.chance(50);
            let Ok(table) = bench.open_at(bytes.len() as u64, maps) else { return };
            ask(&table, 2000);
            let walk = VecCursor::new(vec![entry(b"kk", 99, b"new")]);
            let rules = BatchRules {
                snapshots: Vec::new(),
                nothing_beneath: |_: &[u8]| true,
                forgets: true,
                operators: None,
                hiding: crate::fold::Hiding::default(),
            };
            let _ = table.append(&bench.options, walk, rules);
        });
        assert!(peak < (4 << 20) + 60 * bytes.len(), "{peak} bytes for {}", bytes.len());
    });
}
