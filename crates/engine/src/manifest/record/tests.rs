//! Records print and parse back; everything else is a fault.

use super::*;

#[test]
fn records_survive_their_text() {
    let tree: Tree = "tree flushes 1\nL0 r1[t2:a..z 1MB 5e]\nnote at=7".parse().unwrap();
    let edit: TreeEdit = "edit flushes 1\ntake r1 ..\nadd r2 at L1 [t3:a..z 1MB]".parse().unwrap();
    let keyspace = KeyspaceRecord {
        id: 3,
        name: "users".into(),
        policy: "tiered(ratio=4)".into(),
        memtable_bytes: 1_234_567,
    };
    let seq = SeqNo(77);
    let marks = ["a..c", "..", "\"\\xff b\"..", "..\"x..y\""]
        .map(|range: &str| Mark { range: range.parse().unwrap(), newest: SeqNo(80) });
    let rows = Record::Member { group: 2, member: 7, name: "rows".into() };
    let spill = Spill { file: 15, newest: SeqNo(70), entries: 3 };
    for record in [
        Record::NextFile(12),
        Record::Keyspace(keyspace.clone()),
        Record::CompressedKeyspace(keyspace.clone(), "none,zstd(level=9)".into()),
        Record::NumberedKeyspace(keyspace.clone(), "none".into()),
        Record::Group(keyspace.clone(), "none".into())
            .filtered(FilterChoice { bits: Some(4), prefix_bytes: None }),
        Record::Keyspace(keyspace.clone())
            .filtered(FilterChoice { bits: None, prefix_bytes: Some(8) })
            .ruled(Some(&"counter".to_string()), None),
        Record::Operator { operator: "counter".into(), made: Box::new(Record::Keyspace(keyspace)) },
        Record::Expiry { expiry: Expiry::after(3600), made: Box::new(rows.clone()) },
        Record::Expiry { expiry: Expiry { after: None }, made: Box::new(rows.clone()) },
        Record::Operator { operator: "a.b-c_1".into(), made: Box::new(rows.clone()) },
        Record::Compression { keyspace: 3, compression: "lz4".into() },
        Record::DeletesRanges { keyspace: 3 },
        Record::Policy { keyspace: 3, policy: "leveled(ratio=4, l0=2)".into() },
        Record::Tree {
            keyspace: 3,
            flushed_seq: seq,
            taken: marks.to_vec(),
            tree: Box::new(tree.clone()),
        },
        Record::Tree { keyspace: 3, flushed_seq: seq, taken: vec![], tree: Box::new(tree) },
        Record::Edit { keyspace: 3, flushed_seq: seq, taken: vec![], edit: edit.clone() },
        Record::Together(vec![
            Record::Edit { keyspace: 3, flushed_seq: seq, taken: vec![], edit: edit.clone() },
            Record::Edit { keyspace: 4, flushed_seq: seq, taken: vec![], edit: edit.clone() },
        ]),
        Record::Edit { keyspace: 3, flushed_seq: seq, taken: marks.to_vec(), edit },
        Record::Spill { keyspace: 3, spill },
        Record::Logs(LogRow { from: 13, first: SeqNo(5124), newest: 16 }),
        Record::Synced(SeqNo(5123)),
        Record::Change(KeyspaceChange::Drop(3)),
        Record::Change(KeyspaceChange::Next(4)),
        Record::Change(KeyspaceChange::Rename { keyspace: 3, name: "old".into() }),
        Record::Change(KeyspaceChange::RenameMember { group: 2, member: 7, name: "x".into() }),
        Record::Linked,
        Record::Backup(0x0123 << 64),
    ] {
        assert_eq!(Record::decode(record.encode().as_bytes()), Ok(record));
    }
}

#[test]
fn records_in_records_without_end_are_faults() {
    for kind in ["operator a ", "expiry none ", "filters 4 none ", "together 9\n"] {
        let text = kind.repeat(1 << 17);
        assert!(matches!(Record::decode(text.as_bytes()), Err(RecordFault::Bad(_))), "{kind}");
    }
}

#[test]
fn other_payloads_are_faults() {
    assert_eq!(Record::decode(b"blob 7"), Err(RecordFault::Unknown("blob".into())));
    for bytes in [
        &b"next_file x"[..],
        b"keyspace 1",
        b"edit 0\nedit",
        b"tree 0 flushed 1\nL0",
        b"policy 1",
        b"together",
        b"together 9\nlinked\n",
        b"together 27\nshort_edit 1 flushed 3\nedit\n",
        b"together 29\nshort_edit 1 flushed 3\nedit\n",
        b"together 18446744073709551615\nshort_edit 1 flushed 3\nedit\n",
        b"deletes_ranges",
        b"compressed_keyspace lz4",
        b"compressed_keyspace lz4 1 a memtable 1MiB",
        b"compression 1",
        b"compression 1 none, lz4",
        b"spill 0 file 7 upto 3",
        b"backup 77",
        b"backup +123456789012345678901234567890a",
        b"logs from 13 first 7",
        b"synced",
        b"edit 0 flushed 1\ntaken a..b\nedit",
        b"edit 0 flushed 1\ntaken 7 a\nedit",
        b"edit 0 flushed 1\ntaken 7 a..b",
        b"drop x",
        b"rename 1",
        b"rename_member 1 256 a",
        b"filters 4 keyspace 1 a memtable 1kB policy none",
        b"filters 4 8 member 2 0 a",
        b"filters 256 8 keyspace 1 a memtable 1kB policy none",
        b"filters 4 8 filters 4 8 keyspace 1 a memtable 1kB policy none",
        b"\xff",
    ] {
        assert!(matches!(Record::decode(bytes), Err(RecordFault::Bad(_))), "{bytes:?}");
    }
}
