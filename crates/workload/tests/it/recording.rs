//! Recordings of stores, as the workload `trace` reads them.

use crate::{build_with, key, ops};
use lsmith_workload::{Op, Recorded, RecordedCounts, Workload};

const HEADER: &str = "lsmith recording 2\nsample,16\n";
const FRUIT: &str = "keyspace,0,65536,fruit,tiered(ratio=4, size=3)\n";

/// Returns the 64-bit FNV-1a hash of `bytes`.
fn fnv(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Returns `lines` with their check behind them.
pub(crate) fn checked(lines: &str) -> String {
    format!("{lines}check,{},{:016x}\n", lines.len(), fnv(lines.as_bytes()))
}

/// Returns a recording of these parts. The header stands before the checked bytes of the first.
fn recording(parts: &[&str]) -> String {
    let (header, sample) = HEADER.split_at(HEADER.find('\n').expect("it has lines") + 1);
    let mut text = header.to_owned();
    for (index, part) in parts.iter().enumerate() {
        text += &checked(&if index == 0 { format!("{sample}{part}") } else { (*part).to_owned() });
    }
    text
}

fn built(text: &str) -> Workload {
    build_with("trace(t)", text.as_bytes()).expect("a recording")
}

fn refused(spec: &str, text: &str) -> String {
    build_with(spec, text.as_bytes()).expect_err("a refusal").to_string()
}

/// Returns the operations before the damage, and the message.
fn damaged(text: &str) -> (usize, String) {
    let workload = built(text);
    let read: Vec<_> = workload.ops().collect();
    let error = read.last().and_then(|last| last.as_ref().err()).expect("the stream ends with it");
    (read.len() - 1, error.to_string())
}

#[test]
fn a_recording_is_its_base_and_then_its_operations() {
    let first = format!("{FRUIT}1,load,0,apple,3\n2,put,0,pear,5\n3,load,0,fig,4\nbase\n");
    let second = "4,get,0,apple,0\n5,delete,0,fig,0\n6,put_until,0,a\\x2c\\x00,7\n\
                  7,scan,0,b,9\n8,combine,0,fig,8\ncounts,6,100,4000,9000,1,1\n";
    let workload = built(&recording(&[&first, second]));
    let keys: Vec<String> = (0..5).map(|item| key(&workload, item)).collect();
    assert_eq!(keys, ["apple", "pear", "fig", "a,\0", "b"]);
    // The base comes in the order of a hash.
    let all = ops(&workload);
    let mut base = all[..2].to_vec();
    base.sort_by_key(|op| op.item);
    assert_eq!(base, [Op::put(0, 3), Op::put(2, 4)]);
    let after = [
        Op::put(1, 5),
        Op::read(0),
        Op::delete(2),
        Op::put(3, 7),
        Op::scan(4, 9),
        Op::combine(2, 8),
    ];
    assert_eq!(all[2..], after);
    assert_eq!(workload.load_ops(), 2);
    let counts = RecordedCounts {
        entries_written: 6,
        user_bytes: 100,
        flush_bytes: 4000,
        merge_bytes: 9000,
        gets: 1,
        scans: 1,
    };
    let recorded = Recorded {
        keyspace: "fruit".to_owned(),
        one_in: 16,
        memtable_bytes: 65_536,
        policy: "tiered(ratio=4, size=3)".to_owned(),
        has_lives: false,
        has_base: true,
        counts,
    };
    assert_eq!(workload.recorded(), Some(&recorded));
    assert_eq!(recorded.memtable_share_bytes(), 4096);
    // A limit leaves the base whole.
    let text = recording(&[&first, second]);
    let limited = build_with("trace(t, ops=2)", text.as_bytes()).unwrap();
    assert_eq!(ops(&limited), all[..4]);
}

/// The process of a store can die at any time: what has no check behind it was not promised.
#[test]
fn the_end_may_be_missing() {
    let first = format!("{FRUIT}1,put,0,apple,3\n");
    let whole = recording(&[&first, "2,put,0,pear,3\n"]);
    let one = recording(&[&first]);
    for bytes in one.len()..whole.len() {
        assert_eq!(ops(&built(&whole[..bytes])).len(), 1, "{bytes} bytes");
    }
    assert_eq!(ops(&built(&whole)).len(), 2);
}

#[test]
fn damage_is_found_by_its_part() {
    let first = format!("{FRUIT}1,put,0,apple,3\n");
    let whole = recording(&[&first, "2,put,0,pear,3\n", "3,put,0,fig,3\n"]);
    let changed = whole.replace("pear", "bear");
    let (before, message) = damaged(&changed);
    assert_eq!(before, 1);
    assert!(message.contains("t, line 7: expected `check,15,"), "{message}");
    for (line, expected) in [
        ("2,put,0,pear", "line 6: expected 5 fields, found 4"),
        ("2,pot,0,pear,1", "line 6: unknown op `pot`"),
        ("2,put,9,pear,1", "line 6: no line has named keyspace 9 before"),
        ("2,put,0,p\\xg0,1", "line 6: expected `\\x` and two digits in key `p\\xg0`"),
        ("2,put,0,p\\x+1,1", "line 6: expected `\\x` and two digits in key `p\\x+1`"),
        ("x,put,0,p,1", "line 6: time `x` is not a whole number"),
        ("counts,1", "line 6: expected 6 counts, found 1"),
        ("keyspace,1,2", "line 6: expected a keyspace's number, memtable, name and policy"),
    ] {
        let (before, message) = damaged(&recording(&[&first, &format!("{line}\n")]));
        assert_eq!((before, message), (1, format!("t, {expected}")));
    }
    let message = refused("trace(t)", "lsmith recording 3\n");
    assert!(message.contains("expected `lsmith recording 2`, found `lsmith recording 3`"));
    assert!(refused("trace(t)", HEADER).contains("the recording has no operations"));
}

#[test]
fn one_keyspace_is_played() {
    let text = recording(&[&format!(
        "{FRUIT}1,put,0,apple,3\nkeyspace,1,4096,wood,leveled\n2,put,1,oak,9\n3,get,0,apple,0\n"
    )]);
    let message = refused("trace(t)", &text);
    assert!(message.contains("say `keyspace=`, with one of fruit, wood"), "{message}");
    let played = build_with("trace(t, keyspace=wood)", text.as_bytes()).unwrap();
    assert_eq!(ops(&played), [Op::put(0, 9)]);
    assert_eq!(played.recorded().unwrap().policy, "leveled");
    assert!(played.spec().to_string().contains("keyspace=wood"));
    let message = refused("trace(t, keyspace=stone)", &text);
    assert!(message.contains("no operation on keyspace `stone`; the recording has fruit, wood"));
    let message = refused("trace(t, keyspace=a)", "timestamp,op,key,value_size\n1,put,a,1\n");
    assert!(message.contains("keyspace needs a recording"), "{message}");
}

#[test]
fn range_deletes_need_no_keys_of_one_length() {
    let text = recording(&[&format!(
        "{FRUIT}1,put,0,pear,3\n2,put,0,fig,3\n3,delete_range,0,b,0,g\n4,put,0,g,1\n"
    )]);
    let workload = built(&text);
    // In key order the items are b, fig, g, pear.
    let expected = [Op::put(3, 3), Op::put(1, 3), Op::delete_range(0..2), Op::put(2, 1)];
    assert_eq!(ops(&workload), expected);
    assert!(workload.deletes_ranges());
}
