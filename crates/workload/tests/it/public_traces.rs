//! Traces in the formats of others, whole and damaged.

use crate::{build_with, key, ops};
use lsmith_workload::{Op, OpKind, Workload, WorkloadError};

/// Written by RocksDB 7.8: see `data/README.md`.
const ROCKSDB: &[u8] = include_bytes!("../../data/rocksdb-query.trace");

/// The same with range deletes.
const ROCKSDB_RANGES: &[u8] = include_bytes!("../../data/rocksdb-ranges.trace");

const TWITTER: &str = "\
0,nz:u:eeW511W3dcH3de3d15ec,22,304,11,set,86400
1,nz:u:eeW511W3dcH3de3d15ec,22,304,7,get,0
1,nz:u:a,6,12,7,incr,60
2,nz:u:eeW511W3dcH3de3d15ec,22,0,7,delete,0
";

const CACHELIB: &str = "\
key,op,size,op_count,key_size
1668757755,SET,82,1,40
1668757755,GET,0,2,40
1665497896,DELETE,0,1,78
";

const MSR: &str = "\
128166372003061629,hm,1,Read,383496192,32768,413
128166372016382155,hm,1,Write,310550528,4096,701
";

const LIBCACHESIM: &str = "\
# time,object,size,next_access_vtime
0,9,4096,2
1,200,512,-1
2,9,4096,-1
";

const CLOUD_PHYSICS: &str = "\
version,time,op,size,lbn
1,33898,2a,512,42932745
1,33899,28,6144,31954535
";

const ROCKSDB_TEXT: &str = "\
6B657930 1 0 20 1577836800000000
0x6B657930 0 0 0 1577836800000001
6B657931 6 0 0 1577836800000002
6B657932 5 0 4 1577836800000003
6B657930 3 0 0 1577836800000004
6B657939 1 2 4 1577836800000005
";

const YCSB: &str = "\
/usr/bin/java -cp core.jar site.ycsb.Client -db site.ycsb.BasicDB -P workloads/workloade -t
***************** properties *****************
\"recordcount\"=\"2\"
**********************************************
INSERT usertable user6284781860667377211 [ field0=8( $=!+ field1=%9;4x ]
READ usertable user6284781860667377211 [ <all fields>]
READ usertable user1 [ field1 ]
SCAN usertable user1 7 [ <all fields>]
UPDATE usertable user1 [ field1=abcdef ]
DELETE usertable user1
[OVERALL], RunTime(ms), 31
[READ], Operations, 2
";

/// In the layout of Tectonic: a load, a mixed phase, and a section with other keys.
const TECTONIC: &str = r#"{
  "$schema": "../workload_schema.json",
  "character_set": "alphanumeric",
  "sections": [
    { "groups": [
      { "inserts": { "amount": 40, "key": { "uniform": { "len": 8 } },
                     "val": { "uniform": { "len": { "uniform": { "min": 10, "max": 20 } } } } } },
      { "updates": { "amount": 30, "val": "new", "selection": { "zipf": { "n": 40, "s": 1.2 } } },
        "merges": { "op_count": 5, "val": { "weighted": [ { "weight": 0.5, "value": "+1" },
                                                          { "weight": 0.5, "value": "-1" } ] } },
        "point_queries": { "op_count": 20, "selection": { "beta": { "alpha": 2.0, "beta": 5 } } },
        "empty_point_queries": { "amount": 10, "key": { "uniform": { "len": 8 } } },
        "point_deletes": { "amount": 6 },
        "empty_point_deletes": { "amount": 3, "key": { "uniform": { "len": 8 } } },
        "range_deletes": { "amount": 2, "selectivity": 0.1 },
        "range_queries": { "amount": 8, "selectivity": 0.5 } }
    ] },
    { "groups": [
      { "sorted": { "k": 0, "l": 1 },
        "inserts": { "amount": 1e1, "val": "0123456789",
          "key": { "segmented": { "separator": ":", "segments": ["obj", { "uniform":
                   { "len": 4, "character_set": "numeric" } }] } } } }
    ] }
  ]
}
"#;

/// Three requests: 9, 200 and 9 again.
fn oracle_general() -> Vec<u8> {
    let request = |time: u32, object: u64, size: u32, next: i64| {
        [&time.to_le_bytes()[..], &object.to_le_bytes(), &size.to_le_bytes(), &next.to_le_bytes()]
            .concat()
    };
    [request(0, 9, 4096, 2), request(1, 200, 512, -1), request(2, 9, 4096, i64::MAX)].concat()
}

/// Every format, with a file that no other one takes for its own.
fn all() -> [(&'static str, Vec<u8>); 11] {
    [
        ("lsmith", b"timestamp,op,key,value_size\n1,put,a,5\n2,get,a,0\n3,scan,b,9\n".to_vec()),
        ("twitter", TWITTER.into()),
        ("cachelib", CACHELIB.into()),
        ("msr", MSR.into()),
        ("libcachesim", LIBCACHESIM.into()),
        ("libcachesim", CLOUD_PHYSICS.into()),
        ("oracle_general", oracle_general()),
        ("rocksdb", ROCKSDB.into()),
        ("rocksdb_text", ROCKSDB_TEXT.into()),
        ("ycsb", YCSB.into()),
        ("tectonic", TECTONIC.into()),
    ]
}

fn played(spec: &str, file: &[u8]) -> (Workload, Vec<Op>) {
    let workload = build_with(spec, file).unwrap_or_else(|error| panic!("{spec}: {error}"));
    let ops = ops(&workload);
    (workload, ops)
}

/// The error with which the stream ends, or which keeps it from its start.
fn damage(spec: &str, file: &[u8]) -> String {
    match build_with(spec, file) {
        Err(error) => error.to_string(),
        Ok(workload) => {
            let error = workload.ops().find_map(Result::err);
            error.unwrap_or_else(|| panic!("{spec} is whole")).to_string()
        }
    }
}

#[test]
fn formats_are_known_without_their_names() {
    for (format, file) in all() {
        let name = if format == "oracle_general" { "c52.oracleGeneral.zst" } else { "t" };
        let (_, found) = played(&format!("trace({name})"), &file);
        let (named, told) = played(&format!("trace(t, format={format})"), &file);
        assert_eq!(found, told, "{format}");
        assert!(named.spec().to_string().contains(&format!("format={format}")), "{format}");
    }
}

#[test]
fn an_unknown_format_names_those_there_are() {
    let message = build_with("trace(t, format=twiter)", b"").unwrap_err().to_string();
    assert!(message.contains("did you mean `twitter`"), "{message}");
    let message = build_with("trace(t, format=zzz)", b"").unwrap_err().to_string();
    for (format, _) in all() {
        assert!(message.contains(format), "{message}");
    }
}

#[test]
fn a_file_of_another_format_says_what_was_expected() {
    let expected = "t, line 1: expected a header with the fields key, op and size, found `0,a,1`";
    assert_eq!(damage("trace(t, format=cachelib)", b"0,a,1\n"), expected);
    let message = damage("trace(t, format=twitter)", MSR.as_bytes());
    assert_eq!(message, "t, line 1: unknown op `32768`");
    let message = damage("trace(t, format=rocksdb)", &oracle_general());
    assert!(message.starts_with("t, entry at byte 0: expected"), "{message}");
    let message = damage("trace(t, format=ycsb)", b"[OVERALL], RunTime(ms), 31\n");
    assert!(message.starts_with("t: no operation of YCSB"), "{message}");
    let message = damage("trace(t, family=1)", TWITTER.as_bytes());
    assert!(message.contains("need a trace of RocksDB"), "{message}");
}

#[test]
fn queries_of_rocksdb_are_played() {
    let (workload, found) = played("trace(t, scan_length=30)", ROCKSDB);
    let item = |name: &str| {
        (0..workload.items()).find(|item| key(&workload, *item) == name).expect("the key occurs")
    };
    let named = |number: u64| item(&format!("key{number:05}"));
    let mut expected: Vec<Op> = (0..8).map(|i| Op::put(named(i * 7 % 8), 20 + i as u32)).collect();
    expected.extend([
        Op::read(named(3)),
        Op::read(named(77)),
        Op::delete(named(1)),
        Op::delete(named(2)),
        Op::combine(named(4), 4),
        Op::scan(named(3), 30),
        Op::scan(named(5), 30),
        Op::scan(named(0), 30),
        Op::read(named(0)),
        Op::read(named(5)),
        Op::put(named(9), 4),
    ]);
    assert_eq!(found, expected);

    let (other, found) = played("trace(t, family=1)", ROCKSDB);
    assert_eq!(found, [Op::put(0, 5), Op::delete(1), Op::read(0)]);
    assert_eq!(key(&other, 0), "key00009");

    let message = damage("trace(t, family=3)", ROCKSDB);
    assert_eq!(message, "t: no operation on column family 3; the trace has 0, 1: say `family=`");
}

#[test]
fn range_deletes_of_rocksdb_are_played() {
    let (workload, found) = played("trace(t)", ROCKSDB_RANGES);
    let range = found.last().expect("the range is last");
    assert_eq!(range.kind, OpKind::DeleteRange);
    assert_eq!(
        [range.item, range.end()].map(|item| key(&workload, item)),
        ["key00005", "key00007"]
    );
    let (_, other) = played("trace(t, family=1)", ROCKSDB_RANGES);
    assert_eq!(other.last().map(|op| op.kind), Some(OpKind::DeleteRange));
}

#[test]
fn printed_queries_of_rocksdb_are_played() {
    let (workload, found) = played("trace(t)", ROCKSDB_TEXT.as_bytes());
    let expected = [Op::put(0, 20), Op::read(0), Op::scan(1, 1), Op::combine(2, 4), Op::delete(0)];
    assert_eq!(found, expected);
    assert_eq!(key(&workload, 2), "key2");
    assert_eq!(played("trace(t, family=2)", ROCKSDB_TEXT.as_bytes()).1, [Op::put(0, 4)]);
    for (line, message) in [
        ("6B6 1 0 20 1", "expected a key in pairs of hexadecimal digits, found `6B6`"),
        ("6B65 9 0 20 1", "expected a kind of operation from 0 to 8, found `9`"),
        ("6B65 4 0 20 1", "a range delete has no end here: take the binary trace"),
        ("6B65 1 0 20", "expected 5 fields"),
    ] {
        let text = format!("{ROCKSDB_TEXT}{line}\n");
        let found = damage("trace(t)", text.as_bytes());
        assert!(found.starts_with("t, line 7: ") && found.contains(message), "{found}");
    }
}

#[test]
fn old_queries_of_rocksdb_have_no_maps() {
    let entry = |kind: u8, payload: &[u8]| {
        let bytes = u32::try_from(payload.len()).unwrap().to_le_bytes();
        [&7_u64.to_le_bytes()[..], &[kind], &bytes, payload].concat()
    };
    let header = b"feedcafedeadbeef\tTrace Version: 0.1\tRocksDB Version: 6.8\tFormat: all\n";
    let batch = b"\0\0\0\0\0\0\0\0\x01\0\0\0\x01\x01k\x03val";
    let trace =
        [entry(1, header), entry(3, batch), entry(4, b"\0\0\0\0\x01k"), entry(5, b"\0\0\0\0\0")];
    let (workload, found) = played("trace(t)", &trace.concat());
    assert_eq!(found, [Op::put(0, 3), Op::read(0), Op::scan(1, 1)]);
    assert_eq!(key(&workload, 1), "\0", "a seek to the start");
}

#[test]
fn the_first_request_of_an_object_writes_it() {
    let expected = [Op::read_modify_write(0, 4096), Op::read_modify_write(1, 512), Op::read(0)];
    let (binary, found) = played("trace(t, format=oracle_general)", &oracle_general());
    assert_eq!(found, expected);
    let (text, found) = played("trace(t)", LIBCACHESIM.as_bytes());
    assert_eq!(found, expected);
    let bytes = |workload: &Workload| {
        let mut key = Vec::new();
        workload.key(1, &mut key);
        key
    };
    assert_eq!([bytes(&binary), bytes(&text)], [200_u64.to_be_bytes(); 2]);
    let (_, found) = played("trace(t)", CLOUD_PHYSICS.as_bytes());
    assert_eq!(found, [Op::put(0, 512), Op::read(1)], "here the commands say what is written");
    let (_, found) = played("trace(t, format=libcachesim)", b"0,a,10\n1,a,10\n");
    assert_eq!(found, [Op::read_modify_write(0, 10), Op::read(0)]);
}

#[test]
fn what_ycsb_prints_is_played() {
    let (workload, found) = played("trace(t)", YCSB.as_bytes());
    let value = "8( $=!+".len() + "%9;4x".len();
    let expected = [
        Op::put(0, value as u32),
        Op::read(0),
        Op::read(1),
        Op::scan(1, 7),
        Op::put(1, 6),
        Op::delete(1),
    ];
    assert_eq!(found, expected);
    assert_eq!(key(&workload, 0), "user6284781860667377211");
    for (line, message) in [
        ("INSERT usertable user1 [ field0=ab", "expected fields in brackets"),
        ("SCAN usertable user1 [ <all fields>]", "expected the entries to read, from 1, found `[`"),
        ("READ usertable", "expected a key, found none"),
        ("DELETE usertable user1 now", "found `now`"),
    ] {
        let text = format!("{YCSB}{line}\n");
        let found = damage("trace(t)", text.as_bytes());
        assert!(found.starts_with("t, line 13: ") && found.contains(message), "{found}");
    }
}

#[test]
fn phases_of_tectonic_are_played_one_after_the_other() {
    let (workload, found) = played("trace(t)", TECTONIC.as_bytes());
    let count = |ops: &[Op], kind| ops.iter().filter(|op| op.kind == kind).count();
    assert_eq!(found.len(), 40 + 84 + 10);
    let (load, rest) = found.split_at(40);
    let (mixed, last) = rest.split_at(84);
    assert_eq!(count(load, OpKind::Put), 40);
    assert!(load.iter().all(|op| (10..20).contains(&op.value_bytes)));
    for (kind, expected) in [
        (OpKind::Put, 30),
        (OpKind::ReadModifyWrite, 5),
        (OpKind::Read, 30),
        (OpKind::Delete, 9),
        (OpKind::DeleteRange, 2),
        (OpKind::Scan, 8),
    ] {
        assert_eq!(count(mixed, kind), expected, "{kind:?}");
    }
    assert!(!mixed[..30].iter().all(|op| op.kind == mixed[0].kind), "a group is mixed");
    let names: Vec<String> = last.iter().map(|op| key(&workload, op.item)).collect();
    assert!(names.is_sorted() && names[0].starts_with("obj:"), "{names:?}");
    assert_eq!(played("trace(t, seed=1)", TECTONIC.as_bytes()).1, found);
    assert_ne!(played("trace(t, seed=2)", TECTONIC.as_bytes()).1, found);
    assert_eq!(played("trace(t, ops=30)", TECTONIC.as_bytes()).1.len(), 30);
}

#[test]
fn what_is_wrong_in_a_spec_of_tectonic_is_named() {
    let group = |group: &str| format!("{{\"sections\": [{{\"groups\": [{group}]}}]}}");
    for (text, message) in [
        ("{\n\"sections\": [,]}".to_owned(), "t, line 2: expected a value, found `,`"),
        ("{}".to_owned(), "t: expected the list `sections`, found nothing"),
        (group("{\"insert\": {}}"), "t: section 0, group 0: unknown kind `insert`"),
        (group("{\"inserts\": {}}"), "inserts: expected `amount` or `op_count`, found neither"),
        (group("{\"updates\": {\"amount\": 1, \"val\": \"a\"}}"), "updates: no key is left"),
        (
            group("{\"inserts\": {\"amount\": {\"zip\": 1}}}"),
            "inserts: unknown distribution `zip`; expected uniform",
        ),
    ] {
        let found = damage("trace(t)", text.as_bytes());
        assert!(found.contains(message), "{found}");
    }
}

#[test]
fn a_cut_binary_trace_says_where() {
    let requests = oracle_general();
    let message = damage("trace(t, format=oracle_general)", &requests[..60]);
    assert_eq!(message, "t, entry at byte 48: expected 4 bytes of size, found 0");
    let error = build_with("trace(t)", &ROCKSDB[..300]).unwrap().ops().find_map(Result::err);
    assert!(matches!(error, Some(WorkloadError::Entry { offset: 234, .. })), "{error:?}");
    let whole = played("trace(t)", ROCKSDB).1.len();
    let unended = &ROCKSDB[..ROCKSDB.len() - 13];
    assert_eq!(played("trace(t)", unended).1.len(), whole, "a trace that nobody has ended");
}

#[test]
fn a_batch_has_all_its_records() {
    // The first batch lies behind the header (103 bytes), the head of its entry (13), the map (8),
    // the length (1) and the sequence number (8).
    let count = 103 + 13 + 8 + 1 + 8;
    let mut trace = ROCKSDB.to_vec();
    assert_eq!(trace[count..count + 4], 1_u32.to_le_bytes());
    trace[count] = 2;
    let message = damage("trace(t)", &trace);
    assert_eq!(message, "t, entry at byte 103: expected 2 records in the batch, found 1");
}

/// Reads a file that may be damaged. What comes of it must be sound.
fn read(spec: &str, file: &[u8]) {
    let Ok(workload) = build_with(spec, file) else { return };
    let items = workload.items();
    for op in workload.ops().map_while(Result::ok) {
        assert!(op.item < items && (op.kind != OpKind::DeleteRange || op.end() < items));
    }
    assert!(workload.ops().filter(Result::is_err).count() <= 1);
}

#[test]
fn no_cut_and_no_flipped_bit_panics() {
    let mut files = all().to_vec();
    files.push(("rocksdb", ROCKSDB_RANGES.to_vec()));
    for (format, whole) in files {
        for spec in ["trace(t)".to_owned(), format!("trace(t, format={format})")] {
            for end in 0..whole.len() {
                read(&spec, &whole[..end]);
            }
            for bit in 0..8 * whole.len() {
                let mut flipped = whole.clone();
                flipped[bit / 8] ^= 1 << (bit % 8);
                read(&spec, &flipped);
            }
        }
    }
}

/// A damaged length must not make room for what is not there.
#[test]
fn a_damaged_length_takes_no_memory() {
    for bit in 0..8 * ROCKSDB.len() {
        let mut flipped = ROCKSDB.to_vec();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (_, peak) = lsmith_fuzz::peak_bytes(|| build_with("trace(t)", &flipped).is_ok());
        assert!(peak < 1 << 18, "{peak} bytes with bit {bit}");
    }
}
