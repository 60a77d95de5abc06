//! Arbitrary logs: every record that is read was written there, or has a correct checksum.

use super::frame::{Placing, RECORD_HEADER_BYTES, file_header, record_bytes, seal};
use super::*;
use crate::env::{Env, MemEnv};
use crate::error::{ErrorKind, Result};
use lsmith_fuzz::{Choices, change, fuzz, peak_bytes, put_varint};
use std::path::Path;

const ID: LogId = LogId { kind: LogKind::Wal, file_id: 7 };

/// Records with their offsets.
type Records = Vec<(u64, Vec<u8>)>;

/// Returns the file of a log, and its records.
fn log(choices: &mut Choices<'_>) -> (Vec<u8>, Records) {
    let mut file = file_header(ID).to_vec();
    let mut records = Vec::new();
    for _ in 0..choices.below(8) {
        let length = choices.pick(&[0, 1, 7, 8, 40, 300, 900]);
        let payload = if choices.chance(20) { vec![0; length] } else { choices.bytes(length) };
        records.push((file.len() as u64, payload.clone()));
        append(&mut file, &payload, choices.chance(20));
    }
    file.resize(file.len() + choices.pick(&[0, 8, 64, 1024]), 0);
    (file, records)
}

fn append(file: &mut Vec<u8>, payload: &[u8], marked: bool) {
    let start = file.len();
    file.resize(start + RECORD_HEADER_BYTES, 0);
    file.extend_from_slice(payload);
    file.resize(start + record_bytes(payload.len()), 0);
    let offset = start as u64;
    let placing = Placing { file_id: ID.file_id, offset, payload_bytes: payload.len(), marked };
    seal(&mut file[start..], &placing);
}

fn read_in_order(env: &MemEnv, path: &Path) -> Result<(Records, LogEnd)> {
    let mut reader = LogReader::open(env, path, ID)?;
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some((offset, payload))) => records.push((offset, payload.to_vec())),
            Ok(None) => break,
            Err(error) => {
                let again = reader.next_record().map(drop).expect_err("it stays so");
                assert_eq!(again.to_string(), error.to_string());
                return Err(error);
            }
        }
    }
    assert!(reader.read_bytes() <= reader.bytes().max(32));
    Ok((records, reader.end().expect("it has ended")))
}

/// Reads the file in both ways: in order, and as remains.
fn read(file: &[u8]) -> (Option<Records>, Records) {
    let env = MemEnv::new();
    let path = Path::new("/7.wal");
    let created = env.create(path);
    let made = created.and_then(|mut made| made.write_all(file).and_then(|()| made.sync()));
    made.expect("memory is there");
    let ((in_order, remains), peak) = peak_bytes(|| {
        let in_order = read_in_order(&env, path);
        let remains = LogRemains::read(&env, path, ID).map(|log| {
            let records = log.records();
            records.map(|record| (record.offset, record.payload.to_vec())).collect::<Vec<_>>()
        });
        (in_order, remains)
    });
    assert!(peak < 8192 + 10 * file.len(), "{peak} bytes for {}", file.len());
    if let Err(error) = &in_order {
        let fine = match error.kind() {
            ErrorKind::Corruption => error.path() == Some(path) && error.offset().is_some(),
            kind => kind == ErrorKind::Unsupported,
        };
        assert!(fine, "{error}");
    }
    if let Ok((_, LogEnd::Torn { offset, bytes_dropped })) = in_order {
        assert!(offset + bytes_dropped <= file.len() as u64);
    }
    (in_order.ok().map(|(records, _)| records), remains.unwrap_or_default())
}

#[test]
fn fuzz_damaged_logs() {
    fuzz!(50_000, |choices| {
        let (mut file, written) = log(choices);
        assert_eq!(read(&file).0.as_ref(), Some(&written), "it is whole");
        match choices.below(4) {
            0 => file.truncate(choices.below(file.len() + 1)),
            1 => {
                let start = choices.below(file.len());
                let end = (start + choices.below(700)).min(file.len());
                file[start..end].fill(0);
            }
            2 => {
                let from = choices.below(file.len());
                let to = choices.below(file.len());
                let length = choices.below(400).min(file.len() - from.max(to));
                file.copy_within(from..from + length, to);
            }
            _ => change(&mut file, choices, true),
        }
        let (in_order, remains) = read(&file);
        if let Some(records) = in_order {
            assert!(written.starts_with(&records), "a record that was not written");
            assert!(remains.starts_with(&records));
        }
        assert!(remains.iter().all(|record| written.contains(record)));
    });
}

#[test]
fn fuzz_resealed_logs() {
    fuzz!(60_000, |choices| {
        let (mut file, _) = log(choices);
        let at = 32 + 8 * choices.below(file.len() / 8);
        file.resize(file.len().max(at), 0);
        let rest = file.split_off(at);
        // A record whose header announces more or fewer bytes than there are.
        let length = choices.below(40);
        let payload = choices.bytes(length);
        append(&mut file, &payload, choices.chance(50));
        if choices.chance(50) {
            let said = choices.border() as usize & ((1 << 31) - 1);
            let mut head = vec![0; 16 + said.next_multiple_of(8).min(1 << 16)];
            if record_bytes(said) == head.len() {
                let file_id = ID.file_id;
                let offset = at as u64;
                seal(&mut head, &Placing { file_id, offset, payload_bytes: said, marked: true });
                file.truncate(at);
                file.extend_from_slice(&head[..choices.below(head.len() + 1)]);
            }
        }
        if choices.chance(70) {
            file.extend_from_slice(rest.get(file.len() - at..).unwrap_or_default());
        }
        let (in_order, remains) = read(&file);
        assert!(in_order.is_none_or(|records| remains.starts_with(&records)));
    });
}

#[test]
fn fuzz_log_starts() {
    fuzz!(600_000, |choices| {
        let mut payload = vec![0];
        (0..3).for_each(|_| put_varint(&mut payload, choices.border()));
        if choices.chance(60) {
            change(&mut payload, choices, true);
        }
        if let Ok(Some(start)) = LogStart::decode(&payload) {
            let again = start.encode();
            assert!(again.len() <= LOG_START_BYTES_MAX);
            assert_eq!(LogStart::decode(&again), Ok(Some(start)));
        }
    });
}
