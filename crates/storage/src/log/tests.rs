use super::frame::{FILE_HEADER_BYTES, Placing, RecordHead, file_header, record_bytes, seal};
use super::*;
use crate::cipher::{Cipher, FileCipher, Keys, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use crate::env::{CipherEnv, Env, Fault, FaultEnv, Lasting, MemEnv, OpClass, RealEnv, SyncReach};
use crate::error::{Error, ErrorKind, Result};
use crate::sync::atomic::{AtomicBool, Ordering};
use proptest::prelude::*;
use std::io;
use std::path::Path;
use std::sync::Arc;

const ID: LogId = LogId { kind: LogKind::Wal, file_id: 7 };

fn path() -> &'static Path {
    Path::new("/7.wal")
}

/// Returns a log on a new disk, with its name synced.
fn new_log(capacity: u64) -> (MemEnv, LogWriter) {
    let env = MemEnv::new();
    let log = LogWriter::create(&env, path(), ID, capacity).unwrap();
    env.sync_dir(Path::new("/")).unwrap();
    (env, log)
}

/// Returns a log of `payloads`, synced behind each record for which `sync` is true.
fn log_of(payloads: &[Vec<u8>], sync: impl Fn(usize) -> bool, slack: u64) -> MemEnv {
    let capacity = LogWriter::capacity_for(&MemEnv::new(), payloads.iter().map(Vec::len)) + slack;
    let (env, log) = new_log(capacity);
    for (index, payload) in payloads.iter().enumerate() {
        log.append(&[payload]).unwrap();
        if sync(index) {
            log.sync(SyncReach::Data).unwrap();
        }
    }
    env
}

/// All records with their offsets, and how the log ended.
type Contents = (Vec<(u64, Vec<u8>)>, LogEnd);

fn read_as(env: &dyn Env, id: LogId) -> Result<Contents> {
    let mut reader = LogReader::open(env, path(), id)?;
    let mut records = Vec::new();
    while let Some((offset, payload)) = reader.next_record()? {
        records.push((offset, payload.to_vec()));
    }
    Ok((records, reader.end().unwrap()))
}

fn read(env: &dyn Env) -> Result<Contents> {
    read_as(env, ID)
}

fn payloads_of(contents: &Contents) -> Vec<Vec<u8>> {
    contents.0.iter().map(|(_, payload)| payload.clone()).collect()
}

/// Returns payloads of the given lengths, without a zero byte.
fn payloads(lengths: &[usize]) -> Vec<Vec<u8>> {
    let byte = |index: usize, at: usize| ((index * 31 + at) % 255 + 1) as u8;
    let payload =
        |(index, length): (usize, &usize)| (0..*length).map(|at| byte(index, at)).collect();
    lengths.iter().enumerate().map(payload).collect()
}

/// Returns the start of each record of `payloads`, and the end of the last one.
fn offsets(payloads: &[Vec<u8>]) -> Vec<u64> {
    let mut at = FILE_HEADER_BYTES;
    let mut offsets = vec![at as u64];
    for payload in payloads {
        at += record_bytes(payload.len());
        offsets.push(at as u64);
    }
    offsets
}

fn corruption(result: Result<Contents>) -> u64 {
    let error = result.unwrap_err();
    assert_eq!((error.kind(), error.path()), (ErrorKind::Corruption, Some(path())), "{error}");
    error.offset().unwrap()
}

#[test]
fn records_come_back_in_order_with_their_offsets() {
    let (env, log) = new_log(4096);
    assert_eq!(log.append(&[b"one"]).unwrap().start, 32);
    assert_eq!(log.append(&[]).unwrap().start, 56);
    assert_eq!(log.append(&[b"th", b"", b"ree three"]).unwrap().start, 72);
    assert_eq!(log.bytes(), 104);
    assert_eq!(log.sync(SyncReach::All).unwrap(), 104);
    let (records, end) = read(&env).unwrap();
    let expected = [(32, b"one".to_vec()), (56, Vec::new()), (72, b"three three".to_vec())];
    assert_eq!((records.as_slice(), end), (expected.as_slice(), LogEnd::Clean));
}

/// The expected checksums were computed from the documentation, by another program.
#[test]
fn log_has_the_documented_bytes() {
    let (env, log) = new_log(64);
    log.append(&[b"abc"]).unwrap();
    let mut bytes = [0; 64];
    env.open(path()).unwrap().read_exact_at(&mut bytes, 0).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let expected = [
        "6c736d69 74686c67 01000000 01000000 07000000 00000000 60154755688b8914",
        "03000000 ad637cd3 6e460166186e892a 61626300 00000000 00000000 00000000",
    ];
    assert_eq!(hex, expected.concat().replace(' ', ""));
}

#[test]
fn full_log_refuses_more_and_ends_cleanly() {
    let (env, log) = new_log(LogWriter::capacity_for(&MemEnv::new(), [100, 8]));
    assert!(log.room(100) && log.room(0));
    log.append(&[&[1; 100]]).unwrap();
    assert!(log.room(8) && !log.room(9));
    assert_eq!(log.append(&[&[2; 9]]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    log.append(&[&[3; 8]]).unwrap();
    assert!(!log.room(0));
    let contents = read(&env).unwrap();
    assert_eq!(payloads_of(&contents), [vec![1; 100], vec![3; 8]]);
    assert_eq!(contents.1, LogEnd::Clean);
}

#[test]
fn real_environment_stores_logs_too() {
    let temp = tempfile::tempdir().unwrap();
    let path = temp.path().join("1.manifest");
    let id = LogId { kind: LogKind::Manifest, file_id: 1 };
    let env = RealEnv::new();
    let log = LogWriter::create(&env, &path, id, 1 << 16).unwrap();
    let append_all = |thread: u8| {
        for index in 0..50_u8 {
            log.append(&[&[thread], &[index; 100]]).unwrap();
            if index % 10 == 0 {
                log.sync(SyncReach::Data).unwrap();
            }
        }
    };
    crate::sync::thread::scope(|scope| {
        (0..4).for_each(|thread| drop(scope.spawn(move || append_all(thread))));
    });
    let mut reader = LogReader::open(&env, &path, id).unwrap();
    let mut next = [0; 4];
    while let Some((_, payload)) = reader.next_record().unwrap() {
        let index = &mut next[usize::from(payload[0])];
        assert_eq!(payload[1..], [*index; 100], "each thread's records are in its order");
        *index += 1;
    }
    assert_eq!((next, reader.end()), ([50; 4], Some(LogEnd::Clean)));
}

#[test]
fn refusals_of_the_system_are_errors_with_the_path() {
    let env = FaultEnv::new(Arc::new(MemEnv::with_capacity(1000)));
    let facts = |error: Error| (error.kind(), error.path() == Some(path()));
    let create = |capacity| LogWriter::create(&env, path(), ID, capacity);
    assert_eq!(facts(create(1001).unwrap_err()), (ErrorKind::Full, true));
    let log = create(1000).unwrap();
    for class in [OpClass::Append, OpClass::LogSync, OpClass::Read] {
        let kind = std::io::ErrorKind::TimedOut;
        env.set(Fault { class: Some(class), after: 0, lasting: Lasting::Forever, kind });
    }
    assert_eq!(facts(log.append(&[b"x"]).unwrap_err()), (ErrorKind::Io, true));
    assert_eq!(facts(log.sync(SyncReach::Data).unwrap_err()), (ErrorKind::Io, true));
    assert_eq!(facts(read(&env).unwrap_err()), (ErrorKind::Io, true));
}

#[test]
fn every_changed_byte_is_found() {
    let all = payloads(&[5, 0, 600, 24, 1100, 17]);
    let starts = offsets(&all);
    let slack = 700;
    for synced in [false, true] {
        let env = log_of(&all, |_| synced, slack);
        let end = *starts.last().unwrap();
        for (offset, mask) in
            (0..end).flat_map(|offset| [(offset, 1), (offset, 0x80), (offset, 0xFF)])
        {
            let damaged = env.process_crash_clone();
            damaged.flip(path(), offset, mask).unwrap();
            let found = corruption(read(&damaged));
            let start = starts.iter().rev().find(|start| **start <= offset);
            match start {
                Some(start) => assert_eq!(found, *start, "byte {offset}, mask {mask}"),
                None => assert!(found <= offset, "byte {offset}, mask {mask}"),
            }
        }
        for offset in end..end + slack {
            let damaged = env.process_crash_clone();
            damaged.flip(path(), offset, 0x10).unwrap();
            if offset < end + 8 {
                assert_eq!(corruption(read(&damaged)), end, "byte {offset}");
            } else {
                let contents = read(&damaged).unwrap();
                assert_eq!(payloads_of(&contents), all, "byte {offset}");
                let torn = LogEnd::Torn { offset: end, bytes_dropped: offset - end + 1 };
                assert_eq!(contents.1, torn);
            }
        }
    }
}

#[test]
fn shortened_log_returns_its_complete_records() {
    let all = payloads(&[5, 0, 600, 24, 17]);
    let starts = offsets(&all);
    let end = *starts.last().unwrap();
    let env = log_of(&all, |_| true, 64);
    for length in 0..end + 64 {
        let cut = env.process_crash_clone();
        cut.truncate(path(), length).unwrap();
        let contents = read(&cut).unwrap();
        let whole = starts.iter().filter(|start| **start <= length).count().saturating_sub(1);
        assert_eq!(payloads_of(&contents), all[..whole], "cut to {length}");
        match contents.1 {
            LogEnd::Clean => assert!(length >= end + 8 || starts.contains(&length)),
            LogEnd::Torn { offset, bytes_dropped } => {
                assert!(!starts.contains(&length) && length < end + 8, "cut to {length}");
                assert_eq!(offset, if length < starts[0] { 0 } else { starts[whole] });
                // Zeros in front of the cut are not counted.
                assert!(bytes_dropped <= length - offset, "cut to {length}: {bytes_dropped}");
            }
        }
    }
}

#[test]
fn files_that_are_not_this_log_are_refused() {
    let env = log_of(&payloads(&[10]), |_| true, 0);
    let other = |kind, file_id| corruption(read_as(&env, LogId { kind, file_id }));
    assert_eq!(other(LogKind::Manifest, 7), 12);
    assert_eq!(other(LogKind::Wal, 8), 16);

    for text in [&b"x"[..], b"a text file", b"another text file of more than the header's length"] {
        let env = MemEnv::new();
        let mut file = env.create(path()).unwrap();
        file.write_all(text).unwrap();
        file.sync().unwrap();
        let error = read(&env).unwrap_err();
        assert_eq!(error.to_string(), "not an lsmith log in /7.wal at offset 0");
    }
}

/// The system reports a failed sync once, and then forgets the bytes that it could not write.
#[test]
fn failed_sync_makes_all_later_syncs_fail() {
    let env = FaultEnv::new(Arc::new(MemEnv::new()));
    let log = LogWriter::create(&env, path(), ID, 1000).unwrap();
    let class = Some(OpClass::LogSync);
    let lasting = Lasting::Once;
    env.set(Fault { class, after: 0, lasting, kind: std::io::ErrorKind::Other });
    for reach in [SyncReach::Data, SyncReach::Data, SyncReach::All] {
        assert_eq!(log.sync(reach).unwrap_err().kind(), ErrorKind::Io);
    }
}

/// A thread needs no sync of its own if another one has covered its bytes.
#[test]
fn synced_bytes_are_not_synced_again() {
    let env = FaultEnv::new(Arc::new(MemEnv::new()));
    let log = LogWriter::create(&env, path(), ID, 1000).unwrap();
    let first = log.sync(SyncReach::Data).unwrap();
    assert_eq!(log.sync(SyncReach::Data).unwrap(), first);
    assert_eq!(env.count(OpClass::LogSync), 1);
    log.sync(SyncReach::All).unwrap();
    log.append(&[b"more"]).unwrap();
    assert!(log.sync(SyncReach::Data).unwrap() > first);
    assert_eq!(env.count(OpClass::LogSync), 3);
}

#[test]
fn newer_version_is_an_error_with_both_versions() {
    let env = MemEnv::new();
    let mut header = frame::file_header(ID);
    header[8] = 3;
    let checksum = xxhash_rust::xxh3::xxh3_64(&header[..24]);
    header[24..].copy_from_slice(&checksum.to_le_bytes());
    let mut file = env.create(path()).unwrap();
    file.write_all(&header).unwrap();
    file.sync().unwrap();
    let error = read(&env).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let message = "log format version 3, this program knows versions 1 and 2 in /7.wal";
    assert_eq!(error.to_string(), message);
}

#[test]
fn log_without_header_is_torn_at_its_start() {
    let torn = LogEnd::Torn { offset: 0, bytes_dropped: 0 };
    for length in [0, 5, 32, 4096] {
        let env = MemEnv::new();
        let mut file = env.create(path()).unwrap();
        file.write_all(&vec![0; length]).unwrap();
        file.sync().unwrap();
        assert_eq!(read(&env).unwrap(), (Vec::new(), torn), "{length} zeros");
    }
}

/// A record of another file, or of another offset, must not pass for one of this file.
#[test]
fn misplaced_records_are_refused() {
    for (file_id, offset) in [(8, 32), (7, 72), (7, 40)] {
        let env = MemEnv::new();
        let log = env.create_log(path(), 4096).unwrap();
        log.append(&frame::file_header(ID)).unwrap();
        let mut record = vec![5; record_bytes(24)];
        seal(&mut record, &Placing { file_id, offset, payload_bytes: 24, marked: false });
        log.append(&record).unwrap();
        assert_eq!(corruption(read(&env)), 32, "record of file {file_id} at {offset}");
    }
}

/// Zeroes the bytes of `range`, as a sector that was not written leaves them.
fn zero(env: &MemEnv, range: std::ops::Range<u64>) {
    let mut bytes = vec![0; (range.end - range.start) as usize];
    env.open(path()).unwrap().read_exact_at(&mut bytes, range.start).unwrap();
    for (offset, byte) in range.zip(bytes) {
        env.flip(path(), offset, byte).unwrap();
    }
}

#[test]
fn lost_sector_is_a_torn_end_if_nothing_behind_it_was_synced() {
    let all = payloads(&[100, 2000, 100, 2000]);
    let starts = offsets(&all);
    for sector in [1, 2, 3] {
        let lost = sector * 512..(sector + 1) * 512;
        let env = log_of(&all, |_| false, 1000);
        zero(&env, lost.clone());
        let contents = read(&env).unwrap();
        assert_eq!(payloads_of(&contents), all[..1]);
        let bytes_dropped = starts[4] - starts[1];
        assert_eq!(contents.1, LogEnd::Torn { offset: starts[1], bytes_dropped });

        // The last record was appended after a sync of the others.
        let env = log_of(&all, |index| index == 2, 1000);
        zero(&env, lost);
        assert_eq!(corruption(read(&env)), starts[1]);
    }
    // The same for the sector in which the records start.
    let env = log_of(&all, |index| index == 2, 1000);
    zero(&env, 0..512);
    assert_eq!(corruption(read(&env)), 0);
    let env = log_of(&all, |_| false, 1000);
    zero(&env, starts[1]..512);
    assert_eq!(payloads_of(&read(&env).unwrap()), all[..1]);
}

#[test]
fn sector_written_during_an_append_is_a_torn_end() {
    let all = payloads(&[100, 2000]);
    let env = log_of(&all, |_| false, 1000);
    // The third sector was written when the copy had reached its byte 200.
    zero(&env, 2 * 512 + 200..3 * 512);
    assert_eq!(payloads_of(&read(&env).unwrap()), all[..1]);
    // Such a write cannot leave zeros that stop before the end of a sector.
    let env = log_of(&all, |_| false, 1000);
    zero(&env, 2 * 512 + 200..3 * 512 - 1);
    assert_eq!(corruption(read(&env)), offsets(&all)[1]);
}

/// A step of a test on a log.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Sync,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let length = prop_oneof![4 => 0..200_usize, 1 => 200..3000_usize];
    let step = prop_oneof![3 => length.prop_map(Step::Append), 1 => Just(Step::Sync)];
    prop::collection::vec(step, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn appended_records_are_read(
        all in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
    ) {
        let env = log_of(&all, |index| index % 3 == 0, 100);
        let contents = read(&env).unwrap();
        prop_assert_eq!(payloads_of(&contents), all);
        prop_assert_eq!(contents.1, LogEnd::Clean);
    }

    /// Payloads of zeros are the hardest, because lost sectors look like them.
    #[test]
    fn power_loss_leaves_a_prefix_with_all_synced_records(
        steps in steps(), zeros in any::<bool>(), seed in any::<u64>(), keep in 0.0..1.0_f64,
    ) {
        let (env, log) = new_log(1 << 18);
        let mut all = Vec::new();
        let mut synced = None;
        for step in &steps {
            match step {
                Step::Append(length) => {
                    let byte = if zeros { 0 } else { all.len() as u8 + 1 };
                    let payload = vec![byte; *length];
                    log.append(&[&payload]).unwrap();
                    all.push(payload);
                }
                Step::Sync => {
                    log.sync(SyncReach::Data).unwrap();
                    synced = Some(all.len());
                }
            }
        }
        for seed in (0..20).map(|step| seed.wrapping_add(step)) {
            let contents = read(&env.crash_clone(seed, keep)).unwrap();
            let count = contents.0.len();
            prop_assert!(count >= synced.unwrap_or(0), "{} of {:?} synced", count, synced);
            prop_assert_eq!(&payloads_of(&contents), &all[..count]);
            if let (Some(_), LogEnd::Torn { offset, .. }) = (synced, contents.1) {
                prop_assert_eq!(offset, offsets(&all)[count]);
            }
        }
        let contents = read(&env.process_crash_clone()).unwrap();
        prop_assert_eq!(payloads_of(&contents), all);
        prop_assert_eq!(contents.1, LogEnd::Clean);
    }
}

/// A search for a record with a sync mark tries all offsets, and reads the whole record that a head
/// announces. If every eight bytes were a head that announces the rest of the file, it would read
/// the square of the file's length: terabytes for eight megabytes.
#[test]
fn overlapping_heads_are_not_all_followed() {
    const HEADS: usize = 1 << 20;
    let mut file = file_header(ID).to_vec();
    file.resize(file.len() + 8, 0);
    let length = file.len() + 8 * HEADS;
    while file.len() < length {
        let start = file.len();
        let coded = 1 << 31 | length.saturating_sub(start + 16) as u32;
        file.extend_from_slice(&coded.to_le_bytes());
        let head = RecordHead::new(ID.file_id, start as u64, coded);
        file.extend_from_slice(&head.tag.to_le_bytes());
    }
    let env = MemEnv::new();
    let mut made = env.create(path()).unwrap();
    made.write_all(&file).unwrap();
    made.sync().unwrap();
    let error = read(&env).unwrap_err();
    assert_eq!((error.kind(), error.offset()), (ErrorKind::Corruption, Some(32)), "{error}");
    let remains = LogRemains::read(&env, path(), ID).unwrap();
    assert_eq!(remains.records().count(), 0);
}

/// Encrypts nothing, and panics if it is told to.
#[derive(Clone, Debug)]
struct Panics(Arc<AtomicBool>);

impl Cipher for Panics {
    fn name(&self) -> &'static str {
        "none"
    }

    fn key_id(&self) -> u64 {
        1
    }

    fn of_file(&self, _: &[u8; SALT_BYTES]) -> io::Result<Box<dyn FileCipher>> {
        Ok(Box::new(self.clone()))
    }
}

impl FileCipher for Panics {
    fn seal(&self, _: &[u8; NONCE_BYTES], _: &[u8], _: &mut [u8]) -> [u8; TAG_BYTES] {
        assert!(!self.0.swap(false, Ordering::Relaxed), "asked to panic");
        [0; TAG_BYTES]
    }

    fn open(&self, _: &[u8; NONCE_BYTES], _: &[u8], _: &mut [u8], _: &[u8; TAG_BYTES]) -> bool {
        true
    }
}

/// Nothing of the record is left in the next one.
#[test]
fn a_cipher_that_panics_costs_one_record() {
    let cipher = Panics(Arc::default());
    let env = CipherEnv::new(Arc::new(MemEnv::new()), Keys::new(cipher.clone()));
    let log = LogWriter::create(&env, path(), ID, 4096).unwrap();
    log.append(&[b"before"]).unwrap();
    cipher.0.store(true, Ordering::Relaxed);
    let append = || log.append(&[b"never"]);
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(append)).unwrap_err();
    log.append(&[b"after"]).unwrap();
    let mut records = LogReader::open(&env, path(), ID).unwrap();
    let mut found = Vec::new();
    while let Some((_, payload)) = records.next_record().unwrap() {
        found.push(payload.to_vec());
    }
    assert_eq!(found, [b"before".to_vec(), b"after".to_vec()]);
}
