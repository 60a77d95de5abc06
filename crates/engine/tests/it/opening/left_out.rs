//! Parts of files that opening leaves out.
//!
//! Promised: parts that a store does not use although they are not damaged are reported, with file,
//! offset and length: torn ends of logs and of the manifest, logs behind a gap, files that were set
//! aside, files that nothing names, and foreign files. A store that was closed properly has none.

use crate::frame::small::open;
use crate::opening::formats::copies;
use lsmith::env::RealEnv;
use lsmith::inspect::LogFile;
use lsmith::{LeftOut, LeftOutReason, Store};
use std::fs;
use std::path::Path;

fn left_out(dir: &Path) -> Vec<(String, u64, u64, LeftOutReason)> {
    let store = Store::builder(dir).read_only(true).open().unwrap();
    assert!(store.verify().unwrap().is_empty());
    let told = |left: LeftOut| {
        let name = left.path.file_name().unwrap().to_str().unwrap().to_string();
        (name, left.offset, left.bytes, left.reason)
    };
    store.left_out().unwrap().into_iter().map(told).collect()
}

#[test]
fn nothing_is_left_out_of_a_whole_store() {
    let dirs = copies();
    for name in ["closed", "killed", "reused"] {
        assert_eq!(left_out(dirs[name].path()), [], "{name}");
    }
}

#[test]
fn a_torn_end_is_left_out() {
    let dirs = copies();
    let told = left_out(dirs["power_lost"].path());
    assert_eq!(told, [("000002.wal".into(), 22192, 7504, LeftOutReason::TornEnd)]);
}

#[test]
fn a_torn_end_of_the_manifest_is_left_out() {
    let dirs = copies();
    let path = dirs["killed"].path().join("000001.manifest");
    let mut bytes = fs::read(&path).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    // As a record whose head was not stored.
    let at = used.next_multiple_of(8) + 16;
    bytes[at] = 1;
    fs::write(&path, bytes).unwrap();
    let told = left_out(dirs["killed"].path());
    let offset = at as u64 - 16;
    assert_eq!(told, [("000001.manifest".into(), offset, 17, LeftOutReason::TornEnd)]);
}

#[test]
fn a_log_behind_a_gap_is_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let (store, space) = open(Store::builder(dir.path()).log_bytes(64 << 10));
    for number in 0..100 {
        space.put([number], [7; 1000]).unwrap();
    }
    // As a process that is killed leaves them: closing would note that all is synced.
    let dead = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(dir.path()).unwrap().map(Result::unwrap) {
        if entry.file_type().unwrap().is_file() {
            fs::copy(entry.path(), dead.path().join(entry.file_name())).unwrap();
        }
    }
    drop((space, store));
    let dir = dead;
    let names = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().path());
    let mut logs: Vec<_> = names.filter(|path| path.extension() == Some("wal".as_ref())).collect();
    logs.sort();
    let log = |path: &Path| LogFile::open(&RealEnv::new(), path).unwrap();
    let count = logs.iter().filter(|path| log(path).records().last().is_some()).count();
    assert_eq!(count, 2, "two logs have records");
    // As if the end of the first log had never got to the device.
    let record = log(&logs[0]).records().nth(20).unwrap();
    let mut bytes = fs::read(&logs[0]).unwrap();
    bytes[record.offset as usize..].fill(0);
    fs::write(&logs[0], bytes).unwrap();
    let name = logs[1].file_name().unwrap().to_str().unwrap().to_string();
    let told = left_out(dir.path());
    let tear = told.iter().find(|left| left.3 == LeftOutReason::TornEnd);
    assert!(tear.is_none(), "zeros are no torn end");
    assert_eq!(told, [(name, 0, 64 << 10, LeftOutReason::BehindGap)]);
}

#[test]
fn other_files_are_told() {
    let dirs = copies();
    let dir = dirs["closed"].path();
    for name in ["000001.spill", "000077.table", "000003.wal.lost", "000012.wal.4096.lost", "x"] {
        fs::write(dir.join(name), "bytes").unwrap();
    }
    let mut told = left_out(dir);
    told.sort();
    let whole = |name: &str, reason| (name.to_string(), 0, 5, reason);
    let expected = [
        whole("000001.spill", LeftOutReason::Unnamed),
        whole("000003.wal.lost", LeftOutReason::SetAside),
        whole("000012.wal.4096.lost", LeftOutReason::SetAside),
        whole("000077.table", LeftOutReason::Unnamed),
        whole("x", LeftOutReason::Stranger),
    ];
    assert_eq!(told, expected);
    // Who writes removes what nothing names.
    drop(Store::builder(dir).open().unwrap());
    assert!(!dir.join("000077.table").exists() && !dir.join("000001.spill").exists());
}
