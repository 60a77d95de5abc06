use lsmith_workload::{Op, Workload, WorkloadError};

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
        ("2,put,c,", "value_size `` is not a whole number up to 1073741824"),
        ("2,put,c,-1", "value_size `-1` is not a whole number up to 1073741824"),
        ("2,put,c,4294967295", "value_size `4294967295` is not a whole number up to 1073741824"),
        ("2,pat,c,5", "unknown op `pat`; expected put, delete, get or combine"),
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
    for text in ["", "\n", "a,b\n1,put,a,5\n", "\u{1f}\u{8b}"] {
        let error = build_with("trace(t)", text.as_bytes()).unwrap_err();
        let message = format!("not a trace: expected the header `{HEADER}`");
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
