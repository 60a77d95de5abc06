//! Specs, traces and property files of any kind: refused, or played.

use crate::build_with;
use crate::recording::checked;
use lsmith_fuzz::{Choices, change, change_text, fuzz, peak_bytes, text_of};
use lsmith_spec::{Spec, parse_count};
use lsmith_workload::Workload;

const HEADER: &str = "timestamp,op,key,value_size\n";

/// Lines of recordings.
const RECORDED: [&str; 16] = [
    "sample,16",
    "keyspace,0,4096,fruit,tiered(ratio=4)",
    "keyspace,1,1,wood,leveled",
    "base",
    "1,load,0,apple,3",
    "2,put,0,pear,268435456",
    "3,put_until,0,a\\x00,7",
    "3,put_until,0,b,7,18446744073709551615",
    "2,load_until,0,apple,3,0",
    "4,get,0,apple,0",
    "5,scan,0,b,4294967295",
    "6,delete_range,0,b,0,g",
    "7,delete_range,0,g,0,b",
    "8,combine,1,oak,1",
    "counts,1,2,3,4,5,6",
    "9,delete,0,,0",
];

const SPECS: [&str; 10] = [
    "load(keys=100, value=10B)",
    "ycsb(a, records=30, ops=50, value=1kB)",
    "ycsb(e, records=30, ops=50)",
    "mix(get=0.5, get_absent=0.5, keys=30, ops=50, dist=latest, scan_length=9)",
    "update(keys=50, ops=70, share=0.7, skew=0.9, seed=3)",
    "churn(keys=50, ops=100, bytes=4kB)",
    "uniform(ops=50)",
    "normal(ops=50, sigma=0.1)",
    "tpc(ops=50, warehouses=2)",
    "trace(t, ops=3, flushes=2)",
];

const PARTS: [&str; 44] = [
    "get=",
    "get_absent=",
    "put=",
    "dist=",
    "keys=",
    "ops=",
    "value=",
    "share=",
    "skew=",
    "records=",
    "deletes=",
    "domain=",
    "sigma=",
    "omega=",
    "warehouses=",
    "districts=",
    "seed=",
    "bytes=",
    "flushes=",
    "=",
    ",",
    "(",
    ")",
    "0",
    "1",
    "2",
    "0.5",
    "1.0",
    "nan",
    "-1",
    "1e3",
    "4294967295",
    "4294967296",
    "1000",
    "65536",
    "1B",
    "64KiB",
    "hashed",
    "ordered",
    "zipf",
    "latest",
    " ",
    "uniform",
    "trace",
];

const TRACES: [&str; 2] = [
    "1,put,a,5\n2,get,a,0\n3,delete,a,0\n4,put,b,268435456\n",
    "0,put,user1,100\r\n18446744073709551615,put,a b;\"c\",6\n9,delete,nobody,7",
];

const LINES: [&str; 16] = [
    "1,put,a,5\n",
    "2,get,b,9\n",
    "0,delete,b,9\r\n",
    ",",
    "\n",
    "\r",
    "put",
    "1,put,,5\n",
    "é",
    "1,put,a,1073741825\n",
    "18446744073709551616",
    "x",
    "\"",
    " ",
    "\u{feff}",
    "1,put,c,+5\n",
];

const PROPERTIES: [&str; 2] = [
    "recordcount=20\noperationcount=50\nreadproportion=0.5\nupdateproportion=0.3\n\
     insertproportion=0.2\nrequestdistribution=zipfian\nfieldcount=3\nfieldlength=10\n",
    "# one\nworkload: site.ycsb.workloads.CoreWorkload\nrecordcount=20\noperationcount = 50\n\
     scanproportion=0.9\ninsertproportion=0.1\nmaxscanlength=50\nminscanlength=2\n\
     scanlengthdistribution=zipfian\nrequestdistribution=latest\ninsertstart=3\ninsertcount=9\n\
     zeropadding=8\ninsertorder=ordered\n",
];

const NAMES: [&str; 40] = [
    "recordcount=",
    "operationcount=",
    "insertstart=",
    "insertcount=",
    "zeropadding=",
    "fieldlength=",
    "fieldcount=",
    "readproportion=",
    "updateproportion=",
    "insertproportion=",
    "scanproportion=",
    "readmodifywriteproportion=",
    "maxscanlength=",
    "minscanlength=",
    "scanlengthdistribution=",
    "requestdistribution=",
    "hotspotdatafraction=",
    "hotspotopnfraction=",
    "insertorder=",
    "uniform",
    "zipfian",
    "latest",
    "sequential",
    "hotspot",
    "hashed",
    "ordered",
    "\n",
    "=",
    ":",
    "#",
    "0",
    "1",
    "0.5",
    "1e-320",
    "nan",
    "inf",
    "20",
    "100",
    "4294967294",
    "4294967295",
];

/// Plays the start of `workload`. Its spelling, with the same file, must give an equal workload.
fn play(workload: &Workload, file: &[u8]) {
    let items = workload.items();
    for op in workload.ops().take(100).map_while(Result::ok) {
        assert!(op.item < items, "{} of {items} items", op.item);
        let mut key = Vec::new();
        workload.key(op.item, &mut key);
        assert_eq!(key.len(), workload.key_bytes(op.item));
    }
    let spelled = workload.spec().to_string();
    let again = build_with(&spelled, file).expect("canonical spellings are valid");
    assert_eq!(again.spec(), workload.spec());
    let one = workload.ops().take(20);
    let two = again.ops().take(20);
    assert!(one.eq(two), "{spelled} is another stream");
}

fn file(whole: &[&str], parts: &[&str], choices: &mut Choices<'_>) -> Vec<u8> {
    let mut bytes = if choices.chance(60) {
        change_text(choices.pick(whole), parts, choices).into_bytes()
    } else {
        text_of(parts, 30, choices).into_bytes()
    };
    if choices.chance(20) {
        change(&mut bytes, choices, true);
    }
    bytes
}

#[test]
fn fuzz_workload_specs() {
    fuzz!(10_000, |choices| {
        let text = change_text(choices.pick(&SPECS), &PARTS, choices);
        let Ok(spec) = text.parse::<Spec>() else { return };
        // The operations are counted ahead, so billions of them would take seconds.
        let ops = spec.param("ops").and_then(|ops| parse_count(ops).ok()).unwrap_or(0);
        let counts_ahead = ["ycsb", "mix"].contains(&spec.name.as_str());
        if counts_ahead && ops > 10_000 {
            return;
        }
        let file = format!("{HEADER}{}", TRACES[0]);
        let inputs = crate::File(file.as_bytes());
        if let Ok(workload) = Workload::from_spec(&spec, &inputs) {
            play(&workload, file.as_bytes());
        }
    });
}

#[test]
fn fuzz_traces() {
    fuzz!(80_000, |choices| {
        let mut text = if choices.chance(95) { HEADER.as_bytes().to_vec() } else { Vec::new() };
        text.extend(file(&TRACES, &LINES, choices));
        let (built, peak) = peak_bytes(|| build_with("trace(t)", &text));
        assert!(peak < (1 << 14) + 200 * text.len(), "{peak} bytes for {text:?}");
        if let Ok(workload) = built {
            play(&workload, &text);
            assert!(workload.ops().count() <= text.len());
        }
    });
}

#[test]
fn fuzz_recordings() {
    fuzz!(40_000, |choices| {
        let mut text = "lsmith recording 2\n".to_owned();
        for _ in 0..choices.below(4) {
            let mut part = String::new();
            for _ in 0..choices.below(8) {
                part.push_str(choices.pick(&RECORDED));
                part.push('\n');
            }
            if choices.chance(40) {
                part = change_text(&part, &RECORDED, choices);
            }
            part = checked(&part);
            if choices.chance(20) {
                part = change_text(&part, &RECORDED, choices);
            }
            text += &part;
        }
        let text = text.into_bytes();
        let spec = if choices.chance(50) { "trace(t)" } else { "trace(t, expire=recorded)" };
        let (built, peak) = peak_bytes(|| build_with(spec, &text));
        assert!(peak < (1 << 14) + 200 * text.len(), "{peak} bytes for {text:?}");
        if let Ok(workload) = built {
            play(&workload, &text);
            assert!(workload.ops().count() <= text.len());
        }
    });
}

#[test]
fn fuzz_property_files() {
    fuzz!(40_000, |choices| {
        let text = file(&PROPERTIES, &NAMES, choices);
        let spec = choices.pick(&["ycsb(w, ops=30)", "ycsb(w, records=9, ops=30)"]);
        let (built, peak) = peak_bytes(|| build_with(spec, &text));
        assert!(peak < (1 << 14) + 200 * text.len(), "{peak} bytes for {text:?}");
        if let Ok(workload) = built {
            play(&workload, &text);
        }
    });
}
