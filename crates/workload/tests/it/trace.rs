use lsmith_workload::{Inputs, Op, Workload, WorkloadError};
use std::cell::Cell;
use std::io::{BufRead, BufReader, Read};

use crate::{build_with, key, ops};

const HEADER: &str = "timestamp,op,key,value_size";

fn trace(lines: &str) -> Workload {
    build_with("trace(t.csv)", format!("{HEADER}\n{lines}").as_bytes()).expect("damage comes later")
}

/// The operations before the damage, its line and message.
fn damaged(workload: &Workload) -> (usize, u64, String) {
    let mut ops = workload.ops();
    let mut before = 0;
    loop {
        match ops.next().expect("the stream ends with an error") {
            Ok(_) => before += 1,
            Err(error) => {
                assert_eq!(ops.next(), None, "nothing comes after an error");
                let line = error.line().expect("damage has a line");
                return (before, line, error.to_string());
            }
        }
    }
}

#[test]
fn lines_become_operations_in_order() {
    let workload = trace("1,put,b,5\r\n2,put,a b;\"c\",6\n2,get,b,9\n0,delete,b,9\n7,put,b,0");
    let expected = [Op::put(0, 5), Op::put(1, 6), Op::read(0), Op::delete(0), Op::put(0, 0)];
    assert_eq!(ops(&workload), expected);
    assert_eq!(workload.items(), 2);
    assert_eq!(key(&workload, 1), "a b;\"c\"");
    assert_eq!(workload.ranks().rank(0), 1);
    assert_eq!(workload.load_ops(), 0);
}

#[test]
fn an_empty_trace_has_no_operations() {
    for text in [HEADER.to_owned(), format!("{HEADER}\n"), format!("{HEADER}\r\n")] {
        let workload = build_with("trace(t)", text.as_bytes()).unwrap();
        assert_eq!(ops(&workload), []);
        assert_eq!(workload.items(), 0);
        assert_eq!(workload.ranks(), lsmith_workload::Ranks::Table(Vec::new()));
    }
}

#[test]
fn damage_ends_the_stream_with_its_line() {
    for (bad, message) in [
        ("2,put,c", "expected 4 fields (timestamp,op,key,value_size), found 3"),
        ("2,put,c,d,5", "expected 4 fields (timestamp,op,key,value_size), found 5"),
        ("", "expected 4 fields (timestamp,op,key,value_size), found 1"),
        ("15138", "expected 4 fields (timestamp,op,key,value_size), found 1"),
        ("2,put,c,", "value_size `` is not a whole number up to 268435456"),
        ("2,put,c,-1", "value_size `-1` is not a whole number up to 268435456"),
        ("2,put,c,4294967295", "value_size `4294967295` is not a whole number up to 268435456"),
        ("2,pat,c,5", "unknown op `pat`; expected put, delete, get, combine, scan or delete_range"),
        ("x,put,c,5", "timestamp `x` is not a whole number"),
        ("2,put,,5", "the key is empty"),
    ] {
        let workload = trace(&format!("1,put,a,5\n1,put,b,5\n{bad}\n3,put,d,5\n"));
        assert_eq!(damaged(&workload), (2, 4, format!("t.csv, line 4: {message}")));
        assert_eq!(workload.items(), 2, "what comes after the damage is not read");
    }
}

#[test]
fn a_half_written_end_is_damage() {
    assert_eq!(damaged(&trace("1,put,a,5\n1,put,b")).1, 3);
    let mut text = format!("{HEADER}\n1,put,a,5\n2,put,\u{e4},5").into_bytes();
    text.truncate(text.len() - 3);
    let (before, line, message) = damaged(&build_with("trace(t)", &text).unwrap());
    assert_eq!((before, line), (1, 3));
    assert_eq!(message, "t, line 3: not valid UTF-8");
}

#[test]
fn a_limit_before_the_damage_ends_cleanly() {
    let text = format!("{HEADER}\n1,put,a,5\n1,put,b,5\nbroken\n");
    let limited = |limit: &str| build_with(&format!("trace(t, {limit})"), text.as_bytes()).unwrap();
    assert_eq!(ops(&limited("ops=2")).len(), 2);
    assert_eq!(ops(&limited("ops=0")).len(), 0);
    assert_eq!(ops(&limited("bytes=12B")).len(), 2);
    assert_eq!(damaged(&limited("ops=3")).0, 2);
    assert_eq!(damaged(&limited("bytes=13B")).0, 2);
}

#[test]
fn a_file_that_is_no_trace_is_refused() {
    for (text, found) in [("", ""), ("\n", ""), ("a,b\n1,put,a,5\n", "a,b")] {
        let error = build_with("trace(t)", text.as_bytes()).unwrap_err();
        let message = format!("not a trace: expected the header `{HEADER}`, found `{found}`");
        assert_eq!(error, WorkloadError::Line { file: "t".to_owned(), line: 1, message });
    }
}

#[test]
fn the_small_trace_is_sound() {
    let text = include_bytes!("../../data/small-trace.csv");
    let workload = build_with("trace(small-trace.csv)", text).unwrap();
    let ops = ops(&workload);
    assert_eq!(ops.len(), 2000);
    assert!(ops.iter().any(Op::deletes));
    let distinct: std::collections::BTreeSet<u64> = ops.iter().map(|op| op.item).collect();
    assert_eq!(distinct.len() as u64, workload.items());
}

/// A file without an end, which counts the bytes that are read of it.
struct Endless(Cell<u64>);

struct EndlessRead<'a>(&'a Endless);

impl Read for EndlessRead<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        const LINE: &[u8] = b"\n1700000000,put,key,1000";
        let read = self.0.0.get();
        for (byte, at) in buffer.iter_mut().zip(read..) {
            let at = at as usize;
            *byte = match at.checked_sub(HEADER.len()) {
                None => HEADER.as_bytes()[at],
                Some(at) => LINE[at % LINE.len()],
            };
        }
        self.0.0.set(read + buffer.len() as u64);
        Ok(buffer.len())
    }
}

impl Inputs for Endless {
    fn open<'a>(&'a self, _file: &str) -> Result<Box<dyn BufRead + 'a>, String> {
        Ok(Box::new(BufReader::new(EndlessRead(self))))
    }
}

/// The whole file was once read into memory, whatever the limit.
#[test]
fn a_limited_trace_reads_no_more_than_it_plays() {
    let endless = Endless(Cell::new(0));
    let workload = Workload::from_spec(&"trace(t, ops=1000)".parse().unwrap(), &endless).unwrap();
    assert_eq!(ops(&workload).len(), 1000);
    assert!(endless.0.get() < 40_000, "{} bytes were read", endless.0.get());
}

#[test]
fn a_line_without_an_end_is_damage() {
    let text = format!("{HEADER}\n1,put,a,5\n{}", "9".repeat(400_000));
    let found = damaged(&build_with("trace(t)", text.as_bytes()).unwrap());
    assert_eq!(found, (1, 3, "t, line 3: the line is longer than 262144 bytes".to_owned()));
}

#[test]
fn scans_have_their_number_of_entries() {
    let workload = trace("1,put,a,5\n2,scan,b,10\n3,scan,a,30\n4,get,c,0\n");
    assert_eq!(ops(&workload)[1..], [Op::scan(1, 10), Op::scan(0, 30), Op::read(2)]);
    assert_eq!(workload.scan_items(), Some(20.0));
    assert!((workload.scan_share() - 2.0 / 3.0).abs() < 1e-9);
    assert!(
        damaged(&trace("1,scan,a,0\n"))
            .2
            .ends_with("a scan reads at least 1 entry, found value_size 0")
    );
}

#[test]
fn range_deletes_need_keys_in_order() {
    let with_end =
        |lines: &str| build_with("trace(t)", format!("{HEADER},end\n{lines}").as_bytes()).unwrap();
    let workload = with_end("1,put,d,5,\n2,put,b,6,\n3,delete_range,a,0,d\n4,get,b,0,\n");
    // In key order the items are a, b and d.
    assert_eq!(ops(&workload), [Op::put(2, 5), Op::put(1, 6), Op::delete_range(0..2), Op::read(1)]);
    assert!(workload.deletes_ranges());
    assert_eq!(
        ["a", "b", "d"],
        [0, 1, 2].map(|item| key(&workload, item)).each_ref().map(String::as_str)
    );
    for (lines, message) in [
        ("1,delete_range,b,0,a", "the range ends at `a`, which is not behind `b`"),
        ("1,delete_range,b,0,", "the key is empty"),
        ("1,put,b,0,c", "only delete_range has an end, found `c`"),
    ] {
        assert!(damaged(&with_end(lines)).2.ends_with(message), "{lines}");
    }
    let message = damaged(&trace("1,delete_range,a,0")).2;
    assert!(message.ends_with("delete_range needs the header timestamp,op,key,value_size,end"));
}

#[test]
fn traces_of_others_are_played() {
    let twitter =
        "0,q:1,3,213,4,set,3600\n0,q:1,3,213,4,get,0\n1,q:2,3,8,9,incr,60\n1,q:1,3,0,4,delete,0\n";
    let workload = build_with("trace(t)", twitter.as_bytes()).unwrap();
    let expected = [Op::put(0, 213), Op::read(0), Op::read_modify_write(1, 8), Op::delete(0)];
    assert_eq!(ops(&workload), expected);
    assert_eq!(key(&workload, 0), "q:1");

    let msr = "128166372003061629,hm,1,Read,383496192,32768,413\n\
               128166372016382155,hm,1,Write,310550528,4096,701\n";
    let workload = build_with("trace(t)", msr.as_bytes()).unwrap();
    assert_eq!(ops(&workload), [Op::read(0), Op::put(1, 4096)]);

    let cachelib =
        "key,op,size,op_count,key_size\n1668757755,SET,82,1,40\n1668757755,GET,82,3,40\n";
    let workload = build_with("trace(t, ops=3)", cachelib.as_bytes()).unwrap();
    assert_eq!(ops(&workload), [Op::put(0, 82), Op::read(0), Op::read(0)]);
    let wrong = format!("{cachelib}2,SPIN,1,1,1\n");
    assert!(
        damaged(&build_with("trace(t)", wrong.as_bytes()).unwrap()).2.contains("unknown op `SPIN`")
    );
    let wrong = format!("{cachelib}2,GET,1,99999999,1\n");
    assert!(damaged(&build_with("trace(t)", wrong.as_bytes()).unwrap()).2.contains("op_count"));
}

#[test]
fn keys_longer_than_a_store_takes_are_damage() {
    let long = |bytes| trace(&format!("1,put,{},5\n", "k".repeat(bytes)));
    assert_eq!(ops(&long(65_534)).len(), 1);
    assert!(damaged(&long(65_535)).2.ends_with("a key of 65535 bytes is longer than 65534"));
}
