//! Fuzz tests of spills and lists of codecs. Any input is refused, or equals what is
//! written after it was read.

use crate::compression::Compression;
use crate::memory::{Spilled, spilled_keyspace, take_record};
use lsmith_fuzz::{Choices, change, change_text, fuzz, peak_bytes, put_bytes, put_varint};
use lsmith_tree::{EntryKind, SeqNo};

fn put_pair(out: &mut Vec<u8>, kind: EntryKind, key: &[u8], value: &[u8]) {
    put_bytes(out, key);
    if !kind.is_tombstone() {
        put_bytes(out, value);
    }
}

fn copy(keyspace: u32, entries: &[Spilled]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, keyspace.into());
    put_varint(&mut out, entries.len() as u64);
    for entry in entries {
        out.push(entry.kind as u8);
        put_varint(&mut out, entry.seq.0);
        put_pair(&mut out, entry.kind, &entry.key, &entry.value);
    }
    out
}

/// The parts of an entry: kind, sequence number, key and value.
type EntryParts = (EntryKind, u64, Vec<u8>, Vec<u8>);

fn entries(choices: &mut Choices<'_>) -> Vec<EntryParts> {
    let count = choices.below(12);
    let entry = |_| {
        use EntryKind::{Combine, Delete, Insert, Put, Remove};
        let kind = choices.pick(&[Put, Delete, Insert, Remove, Combine]);
        let key_bytes = 1 + choices.below(6);
        let bytes = choices.pick(&[0, 1, 5, 130]);
        let value_bytes = if kind.is_tombstone() { 0 } else { bytes };
        let seq = 1 + choices.below(60) as u64;
        (kind, seq, choices.bytes(key_bytes), choices.bytes(value_bytes))
    };
    (0..count).map(entry).collect()
}

#[test]
fn fuzz_spills() {
    fuzz!(150_000, |choices| {
        let entry = |(kind, seq, key, value): EntryParts| Spilled {
            seq: SeqNo(seq),
            kind,
            key: key.into(),
            value: value.into(),
        };
        let keyspace = choices.below(300) as u32;
        let last = SeqNo(60);
        let entries: Vec<Spilled> = entries(choices).into_iter().map(entry).collect();
        let mut payload = copy(keyspace, &entries);
        assert_eq!(take_record(&payload, keyspace, last), Ok(entries));
        change(&mut payload, choices, true);
        let (read, peak) = peak_bytes(|| take_record(&payload, keyspace, last));
        assert!(peak < 4096 + 100 * payload.len(), "{peak} bytes for {}", payload.len());
        if let Ok(entries) = read {
            assert_eq!(spilled_keyspace(&payload), Ok(keyspace));
            assert!(entries.iter().all(|entry| (SeqNo(1)..=last).contains(&entry.seq)));
            assert_eq!(take_record(&copy(keyspace, &entries), keyspace, last), Ok(entries));
        }
    });
}

#[test]
fn fuzz_compression() {
    fuzz!(200_000, |choices| {
        let lists = ["none,lz4,zstd(level=9)", "zstd", "lz4, none , zstd( level = 19 )"];
        let parts = ["none", "lz4", "zstd", ",", "(", ")", "level=", "1", "0", "20", " ", "k"];
        let text = change_text(choices.pick(&lists), &parts, choices);
        if let Ok(read) = Compression::parse(&text) {
            assert_eq!(Compression::parse(&read.to_string()).ok(), Some(read), "{text}");
        }
    });
}
