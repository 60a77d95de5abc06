//! Batches and file names of any kind: refused, or read as they can be written.

use crate::format::{LoggedBatch, LoggedOp, OpKind, decode_batch, encode_empty_batch};
use crate::names::{numbered, parse};
use lsmith_fuzz::{Choices, change, change_text, fuzz, peak_bytes, put_bytes, put_varint};
use lsmith_tree::{EntryKind, SeqNo};
use std::path::Path;

fn batch(first: u64, ops: &[LoggedOp<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    put_varint(&mut out, first);
    put_varint(&mut out, ops.len() as u64);
    for op in ops {
        out.push(op.kind.to_byte());
        put_varint(&mut out, op.keyspace.into());
        put_bytes(&mut out, op.key);
        if !op.kind.is_tombstone() {
            put_bytes(&mut out, op.value);
        }
    }
    out
}

/// The parts of an entry: kind, sequence number, key and value. A delete with a value stands for
/// the delete of a range.
type EntryParts = (EntryKind, u64, Vec<u8>, Vec<u8>);

fn entries(choices: &mut Choices<'_>) -> Vec<EntryParts> {
    let count = choices.below(12);
    let entry = |_| {
        use EntryKind::{Combine, Delete, Insert, Put, Remove};
        let kinds = [Put, Delete, Insert, Remove, Combine];
        let kind = choices.pick(&kinds);
        let key = 1 + choices.below(6);
        let len = choices.pick(&[0, 1, 5, 130]);
        let value = if kind.is_tombstone() { 0 } else { len };
        let (seq, key) = (1 + choices.below(60) as u64, choices.bytes(key));
        if kind == EntryKind::Delete && choices.chance(30) {
            let end = [&key[..], &[choices.below(3) as u8]].concat();
            return (kind, seq, key, end);
        }
        (kind, seq, key, choices.bytes(value))
    };
    (0..count).map(entry).collect()
}

fn op((kind, keyspace, key, value): &EntryParts) -> LoggedOp<'_> {
    let is_range = *kind == EntryKind::Delete && !value.is_empty();
    let kind = if is_range { OpKind::DeleteRange } else { OpKind::Entry(*kind) };
    LoggedOp { keyspace: *keyspace as u32, kind, key, value }
}

#[test]
fn fuzz_batches() {
    fuzz!(200_000, |choices| {
        let entries = entries(choices);
        let ops: Vec<LoggedOp<'_>> = entries.iter().map(op).collect();
        let first = 1 + (choices.border() >> 3);
        let mut payload = batch(first, &ops);
        let seq_count = ops.len().max(1) as u64;
        assert_eq!(decode_batch(&payload), Ok(LoggedBatch { first: SeqNo(first), seq_count, ops }));
        if choices.below(8) == 0 {
            let seq_count = 1 + choices.border() % (1 << 61);
            payload = encode_empty_batch(SeqNo(first), seq_count);
            let taken = LoggedBatch { first: SeqNo(first), seq_count, ops: Vec::new() };
            assert_eq!(decode_batch(&payload), Ok(taken));
        }
        change(&mut payload, choices, true);
        let (read, peak) = peak_bytes(|| decode_batch(&payload));
        assert!(peak < 4096 + 40 * payload.len(), "{peak} bytes for {}", payload.len());
        if let Ok(read) = read {
            let again = match read.ops.is_empty() {
                true => encode_empty_batch(read.first, read.seq_count),
                false => batch(read.first.0, &read.ops),
            };
            assert_eq!(decode_batch(&again), Ok(read));
        }
    });
}

#[test]
fn fuzz_names() {
    fuzz!(400_000, |choices| {
        let names = ["000012.manifest", "1234567.wal", "000013.wal.new", "99999999999999.table"];
        let parts = ["0", "000", "9", ".", "wal", "table", "spill", "manifest", ".new", "+"];
        let name = change_text(choices.pick(&names), &parts, choices);
        if let Some((kind, file_id)) = parse(&name) {
            assert_eq!(numbered(Path::new(""), kind, file_id), Path::new(&name));
        }
    });
}
