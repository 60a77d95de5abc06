//! Times to live in traces, as numbers of writes.

use crate::recording::checked;
use crate::{build_with, ops};
use lsmith_workload::{LiveBytes, Lives};

/// Returns the number of writes after which each write of `file` expires; 0 if it stays.
fn lives(spec: &str, file: &str) -> Vec<u32> {
    let workload = build_with(spec, file.as_bytes()).expect(spec);
    match workload.lives() {
        Lives::Each(lives) => lives.to_vec(),
        other => panic!("{spec}: {other:?}"),
    }
}

const TWITTER: &str = "\
0,a,1,10,1,set,3
0,b,1,10,1,set,0
1,a,1,0,1,get,0
1,a,1,0,1,delete,9
2,c,1,10,1,set,1
3,d,1,10,1,set,86400
3,d,1,10,1,incr,2
5,b,1,10,1,set,1
";

#[test]
fn an_entry_has_expired_at_the_first_write_behind_its_life() {
    // The first entry ends at 3 seconds: with write 5, the first one then. Write 4 ends at 3 too.
    let end = u32::MAX;
    assert_eq!(lives("trace(t, expire=recorded)", TWITTER), [4, 0, 0, 1, end, 1, end]);
    let workload = build_with("trace(t, expire=recorded)", TWITTER.as_bytes()).unwrap();
    let expiring: Vec<bool> = ops(&workload).iter().map(|op| op.life > 0).collect();
    assert_eq!(expiring, [true, false, false, false, true, true, true, true]);
    assert!(workload.spec().to_string().contains("expire=recorded"));
    // The bytes of a key of one byte, of a value of 10, 8 and 8 for a time.
    let mut live = LiveBytes::of(&workload);
    let sums: Vec<u64> = ops(&workload)
        .iter()
        .map(|op| {
            live.observe(op, 1);
            live.bytes()
        })
        .collect();
    assert_eq!(sums, [27, 46, 46, 19, 46, 46, 46, 27]);
}

#[test]
fn times_do_not_go_back() {
    let file = "5,a,1,10,1,set,2\n4,b,1,10,1,set,2\n6,c,1,10,1,set,2\n7,d,1,10,1,set,2\n";
    assert_eq!(lives("trace(t, expire=recorded)", file), [3, 1, u32::MAX, u32::MAX]);
}

#[test]
fn columns_of_cachelib_say_how_long_values_live() {
    let file = "op_time,key,key_size,op,op_count,size,ttl\n\
                0,a,1,SET,2,10,5\n0,b,1,GET,1,10,0\n5,c,1,SET,1,10,0\n6,d,1,DELETE,1,0,0\n";
    assert_eq!(lives("trace(t, expire=recorded)", file), [2, 1, 0, 0]);
}

#[test]
fn a_recording_says_what_is_left_of_lives() {
    let header = "lsmith recording 2\n";
    let part = "sample,1\nkeyspace,0,65536,fruit,none\n4,load_until,0,fig,4,3\n\
                1,put,0,apple,3\n5,put_until,0,pear,5,4\nbase\n7,put,0,plum,1\n\
                9,delete_range,0,a,0,b\n";
    let file = format!("{header}{}", checked(part));
    // The base ends at 7, which is when the fourth write comes; so do the pears, at 9.
    assert_eq!(lives("trace(t, expire=recorded)", &file), [3, 0, 2, 0, 0]);
    // By a clock without ticks nobody knows how long they are.
    let header = "lsmith recording 1\n";
    let part = part.replace(",5,4\n", ",5\n").replace("load_until,0,fig,4,3", "load,0,fig,4");
    let file = format!("{header}{}", checked(&part));
    let workload = build_with("trace(t)", file.as_bytes()).unwrap();
    assert_eq!((ops(&workload).len(), workload.lives()), (5, &Lives::Stay));
    let workload = build_with("trace(t, expire=recorded)", file.as_bytes()).unwrap();
    let error = workload.ops().find_map(Result::err).unwrap().to_string();
    assert!(error.contains("no time to live: expire=recorded plays"), "{error}");
}

#[test]
fn lives_that_nobody_recorded_are_refused() {
    let refused = |spec: &str, file: &str| match build_with(spec, file.as_bytes()) {
        Err(error) => error.to_string(),
        Ok(workload) => workload.ops().find_map(Result::err).expect("an error").to_string(),
    };
    let own = "timestamp,op,key,value_size\n1,put,a,5\n";
    for (spec, file, expected) in [
        ("load(keys=5, expire=recorded)", "", "expire=recorded needs a trace"),
        ("trace(t, expire=recorded)", own, "no time to live: expire=recorded plays traces of"),
        ("trace(t, expire=never)", TWITTER, "expire"),
    ] {
        let message = refused(spec, file);
        assert!(message.contains(expected), "{message}");
    }
    let workload = build_with("trace(t, expire=recorded)", TWITTER.as_bytes()).unwrap();
    let message = workload.in_group(&[1.0, 0.5]).unwrap_err().to_string();
    assert!(message.contains("the writes of one keyspace"), "{message}");
}
