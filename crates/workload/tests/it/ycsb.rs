use std::collections::BTreeSet;

use lsmith_workload::{Op, OpKind, Workload};

use crate::{build, build_with, key, ops, refused, share};

/// The operations of the run phase.
fn run(workload: &Workload) -> Vec<Op> {
    ops(workload).split_off(workload.load_ops() as usize)
}

fn from_file(text: &str) -> Result<Workload, String> {
    build_with("ycsb(w)", text.as_bytes()).map_err(|error| error.to_string())
}

/// A run phase of the given request distribution over 1000 records, with a tenth inserts.
fn requests(distribution: &str) -> (Vec<Op>, u64) {
    let text = format!(
        "recordcount=1000\noperationcount=50000\nreadproportion=0.9\nupdateproportion=0\n\
         insertproportion=0.1\nrequestdistribution={distribution}\n"
    );
    let workload = from_file(&text).expect("the file is sound");
    (run(&workload), workload.items())
}

#[test]
fn the_load_phase_inserts_every_record() {
    for letter in ["a", "b", "c", "d", "e", "f"] {
        let workload = build(&format!("ycsb({letter}, records=2k, value=50B)"));
        assert_eq!(workload.load_ops(), 2000);
        let load: Vec<Op> = (0..2000).map(|item| Op::put(item, 50)).collect();
        assert_eq!(ops(&workload)[..2000], load);
        assert_eq!(run(&workload).len(), 1000, "operationcount of the built-in workloads");
    }
}

#[test]
fn built_in_workloads_have_their_proportions() {
    use OpKind::{Put, Read, ReadModifyWrite, Scan};
    for (letter, expected) in [
        ("a", [(Read, 0.5), (Put, 0.5)]),
        ("b", [(Read, 0.95), (Put, 0.05)]),
        ("c", [(Read, 1.0), (Put, 0.0)]),
        ("d", [(Read, 0.95), (Put, 0.05)]),
        ("e", [(Scan, 0.95), (Put, 0.05)]),
        ("f", [(Read, 0.5), (ReadModifyWrite, 0.5)]),
    ] {
        let run = run(&build(&format!("ycsb({letter}, ops=50k)")));
        for (kind, expected) in expected {
            let found = share(&run, |op| op.kind == kind);
            // Four standard deviations of a share of 50 k draws are below 0.009.
            assert!((found - expected).abs() < 0.009, "{letter} {kind:?}: {found}");
        }
    }
}

#[test]
fn the_standard_files_are_the_built_in_workloads() {
    let file = "# YCSB core workload A\nworkload=site.ycsb.workloads.CoreWorkload\n\
                recordcount=1000\noperationcount=1000\nreadallfields=true\nreadproportion=0.5\n\
                updateproportion=0.5\nscanproportion=0\ninsertproportion=0\n\
                requestdistribution=zipfian\n";
    assert_eq!(ops(&from_file(file).unwrap()), ops(&build("ycsb(a)")));
}

#[test]
fn operations_carry_whole_records() {
    for op in run(&build("ycsb(f, value=77B)")) {
        match op.kind {
            OpKind::Read => assert_eq!((op.value_bytes, op.items), (0, 0)),
            OpKind::ReadModifyWrite => assert_eq!((op.value_bytes, op.items), (77, 0)),
            other => panic!("{other:?} in workload f"),
        }
    }
    let text = "recordcount=5\noperationcount=0\nfieldcount=3\nfieldlength=7\n";
    assert!(ops(&from_file(text).unwrap()).iter().all(|op| op.value_bytes == 21));
}

#[test]
fn run_inserts_extend_the_records() {
    for distribution in ["uniform", "zipfian", "latest", "sequential", "hotspot"] {
        let (run, items) = requests(distribution);
        let mut next = 1000;
        for op in &run {
            if op.kind == OpKind::Put {
                assert_eq!(op.item, next);
                next += 1;
            } else {
                assert!(op.item < next, "{distribution}: only existing records are read");
            }
        }
        assert_eq!(next, items, "{distribution}");
        assert!((5500..6500).contains(&items), "{distribution}: {items}");
    }
}

#[test]
fn latest_follows_the_newest_record() {
    let (run, _) = requests("latest");
    let mut newest = 999;
    let mut ages = Vec::new();
    for op in run {
        match op.kind {
            OpKind::Put => newest = op.item,
            _ => ages.push(newest - op.item),
        }
    }
    let youngest = |below| ages.iter().filter(|&&age| age < below).count() as f64 / 45_000.0;
    // Weights of one and of ten among 1000 to 6000 ranks.
    assert!((0.10..0.14).contains(&youngest(1)), "{}", youngest(1));
    assert!((0.28..0.42).contains(&youngest(10)), "{}", youngest(10));
    assert!(ages.iter().any(|&age| age > 3000));
}

#[test]
fn zipfian_scatters_its_hot_records() {
    let run = run(&build("ycsb(c, records=10k, ops=100k)"));
    let mut counts = vec![0u32; 10_000];
    run.iter().for_each(|op| counts[op.item as usize] += 1);
    let mut hottest: Vec<usize> = (0..10_000).collect();
    hottest.sort_by_key(|&item| std::cmp::Reverse(counts[item]));
    // Rank 0 of ten billion has weight 1 / 26.47, rank 1 a half of it.
    let share = |item: usize| f64::from(counts[item]) / 1e5;
    assert!((share(hottest[0]) - 1.0 / 26.47).abs() < 0.003, "{}", share(hottest[0]));
    assert!((share(hottest[1]) - 0.5 / 26.47).abs() < 0.003, "{}", share(hottest[1]));
    // YCSB hashes rank 0 into a space one larger than the records.
    assert_eq!(hottest[0] as u64, 6_284_781_860_667_377_211 % 10_001);
}

#[test]
fn uniform_sequential_and_hotspot_requests() {
    let text = "recordcount=1000\noperationcount=50000\nreadproportion=1\nupdateproportion=0\n";
    let requests = |more: &str| run(&from_file(&format!("{text}{more}")).unwrap());
    let in_front = |run: &[Op]| share(run, |op| op.item < 200);
    assert!((in_front(&requests("")) - 0.2).abs() < 0.01);
    assert!((in_front(&requests("requestdistribution=hotspot")) - 0.8).abs() < 0.01);
    let all_hot = "requestdistribution=hotspot\nhotspotdatafraction=1\nhotspotopnfraction=0";
    assert!((in_front(&requests(all_hot)) - 0.2).abs() < 0.01);
    let none_hot = "requestdistribution=hotspot\nhotspotdatafraction=0\nhotspotopnfraction=1";
    assert!((in_front(&requests(none_hot)) - 0.2).abs() < 0.01);

    let sequential = requests("requestdistribution=sequential");
    assert!(sequential.iter().zip(0..).all(|(op, place)| op.item == place % 1000));
}

#[test]
fn scan_lengths_keep_their_bounds() {
    let text = "recordcount=10\noperationcount=20000\nreadproportion=0\nupdateproportion=0\n\
                scanproportion=1\nminscanlength=3\nmaxscanlength=12\n";
    let lengths = |more: &str| -> Vec<u32> {
        let run = run(&from_file(&format!("{text}{more}")).unwrap());
        run.iter().map(|op| op.items).collect()
    };
    let share = |lengths: &[u32], length| {
        lengths.iter().filter(|&&found| found == length).count() as f64 / 2e4
    };
    for (more, shortest) in [("", 0.1), ("scanlengthdistribution=zipfian", 0.338)] {
        let lengths = lengths(more);
        assert_eq!(lengths.iter().collect::<BTreeSet<_>>().len(), 10);
        assert_eq!((lengths.iter().min(), lengths.iter().max()), (Some(&3), Some(&12)));
        assert!((share(&lengths, 3) - shortest).abs() < 0.015, "{more}");
    }
}

#[test]
fn keys_are_made_as_the_file_says() {
    let text = "recordcount=2000\noperationcount=0\n";
    let keys = |more: &str| from_file(&format!("{text}{more}")).unwrap();
    assert_eq!(key(&keys(""), 0), "user6284781860667377211");
    assert_eq!(key(&keys("zeropadding=21"), 0), "user006284781860667377211");
    assert_eq!(key(&keys("insertorder=ordered"), 12), "user12");
    assert_eq!(key(&keys("insertorder=ordered\nzeropadding=5"), 12), "user00012");
    let ranks = keys("insertorder=ordered").ranks();
    assert!(ranks.rank(12) < ranks.rank(2), "user12 comes before user2");
}

#[test]
fn part_of_the_records_can_be_loaded() {
    let text = "recordcount=100\noperationcount=500\ninsertstart=40\ninsertcount=20\n";
    let workload = from_file(text).unwrap();
    assert_eq!(workload.load_ops(), 20);
    assert!(ops(&workload).iter().all(|op| (40..60).contains(&op.item)));
    assert_eq!(workload.items(), 100);
    let rest = from_file("recordcount=100\noperationcount=0\ninsertstart=40").unwrap();
    assert_eq!(rest.load_ops(), 60);
}

#[test]
fn counts_of_the_spec_override_the_file() {
    let workload = build_with("ycsb(w, records=7, ops=3)", b"").unwrap();
    assert_eq!((workload.load_ops(), run(&workload).len()), (7, 3));
    assert_eq!(ops(&build("ycsb(d, records=1, ops=5k)")).len(), 5001);
}

#[test]
fn what_is_wrong_in_a_file_is_named() {
    let counts = "recordcount=10\noperationcount=10\n";
    let error = |text: &str| from_file(&format!("{counts}{text}")).unwrap_err();
    assert_eq!(from_file("").unwrap_err(), "w: needs recordcount, or records=");
    assert_eq!(from_file("recordcount=1").unwrap_err(), "w: needs operationcount, or ops=");
    assert_eq!(
        error("what"),
        "w, line 3: unknown property `what`; remove it if it is for a database"
    );
    assert_eq!(error("readproportion=most"), "w, line 3: readproportion = most is not a number");
    assert_eq!(
        error("requestdistribution=zipfain"),
        "w, line 3: requestdistribution = zipfain is not supported; expected one of: uniform, \
         zipfian, latest, sequential, hotspot, exponential; did you mean `zipfian`?"
    );
    assert!(error("workload=x.TimeSeriesWorkload").contains("is not supported"));
    assert!(error("fieldlengthdistribution=x").contains("expected one of: constant, uniform"));
    assert_eq!(
        error("readproporton=0.5"),
        "w, line 3: unknown property `readproporton`; did you mean `readproportion`?"
    );
    assert!(error("exponential.fract=1").contains("did you mean `exponential.frac`?"));
    assert!(error("zipfianconstant=1.2").contains("out of range: expected 0.01 to 0.999"));
    assert!(error("minfieldlength=101").contains("expected 0 to 100"));
    assert!(error("insertorder=random").contains("expected one of: hashed, ordered"));
    assert_eq!(error("readproportion=0\nupdateproportion=0"), "w: all operation proportions are 0");
    assert_eq!(
        error("insertstart=10"),
        "w: records 10..10 by insertstart and insertcount are not within the 10 records"
    );
    assert!(error("insertcount=11").contains("0..11"));
    assert!(error("minscanlength=5\nmaxscanlength=4").contains("expected 1 to 4"));
    assert!(error("fieldlength=100000000").contains("longer than"));
    assert!(refused("ycsb(d, records=4294967295, ops=1000)").ends_with("are more than 4294967295"));
}

/// `deleteproportion` was once ignored, as any unknown name.
#[test]
fn deletes_have_their_proportion() {
    let text = "recordcount=1000\noperationcount=50000\nreadproportion=0.5\nupdateproportion=0\n\
                deleteproportion=0.5\n";
    let run = run(&from_file(text).unwrap());
    assert!((share(&run, |op| op.kind == OpKind::Delete) - 0.5).abs() < 0.009);
    assert!(run.iter().all(|op| op.item < 1000 && op.value_bytes == 0));
}

#[test]
fn skew_is_that_of_the_file() {
    let text = "recordcount=1000\noperationcount=50000\nreadproportion=1\nupdateproportion=0\n";
    let hottest = |more: &str| {
        let run = run(&from_file(&format!("{text}{more}")).unwrap());
        let mut counts = vec![0u32; 1000];
        run.iter().for_each(|op| counts[op.item as usize] += 1);
        f64::from(counts.into_iter().max().unwrap()) / 5e4
    };
    let usual = hottest("requestdistribution=zipfian");
    assert!((usual - 1.0 / 26.47).abs() < 0.004, "{usual}");
    // Of ten billion ranks, rank 0 has nearly no weight if the skew is small.
    let flat = hottest("requestdistribution=zipfian\nzipfianconstant=0.5");
    assert!(flat < 0.003, "{flat}");
    let latest = hottest("requestdistribution=latest\nzipfianconstant=0.5");
    assert!((0.01..0.03).contains(&latest), "{latest}");
}

#[test]
fn exponential_requests_follow_the_newest_record() {
    let text = "recordcount=1000\noperationcount=50000\nreadproportion=1\nupdateproportion=0\n\
                requestdistribution=exponential\nexponential.percentile=90\nexponential.frac=0.1\n";
    let run = run(&from_file(text).unwrap());
    let young = share(&run, |op| op.item >= 900);
    assert!((young - 0.9).abs() < 0.01, "{young}");
    assert!(run.iter().any(|op| op.item < 800));
}

#[test]
fn lengths_of_fields_are_drawn() {
    let text = "recordcount=20000\noperationcount=0\nfieldcount=1\n";
    let lengths = |more: &str| -> Vec<u32> {
        let workload = from_file(&format!("{text}{more}")).unwrap();
        assert!(!workload.spec().to_string().contains("value="), "{}", workload.spec());
        ops(&workload).iter().map(|op| op.value_bytes).collect()
    };
    let share = |lengths: &[u32], length| {
        lengths.iter().filter(|&&found| found == length).count() as f64 / 2e4
    };
    let found = lengths("fieldlengthdistribution=uniform\nfieldlength=10\n");
    assert_eq!((found.iter().min(), found.iter().max()), (Some(&1), Some(&10)));
    assert!((share(&found, 10) - 0.1).abs() < 0.01);
    let found = lengths("fieldlengthdistribution=zipfian\nfieldlength=12\nminfieldlength=3\n");
    assert_eq!((found.iter().min(), found.iter().max()), (Some(&3), Some(&12)));
    assert!((share(&found, 3) - 0.338).abs() < 0.015);
    let workload = from_file("recordcount=9\noperationcount=0\nfieldlengthdistribution=uniform\n");
    let bytes: Vec<u32> = ops(&workload.unwrap()).iter().map(|op| op.value_bytes).collect();
    assert!(bytes.iter().all(|bytes| (10..=1000).contains(bytes)), "ten fields: {bytes:?}");
    let fixed = build_with("ycsb(w, records=9, ops=0, value=7B)", text.as_bytes()).unwrap();
    assert!(ops(&fixed).iter().all(|op| op.value_bytes == 7));
}

/// Two files: the properties, and the histogram.
struct Pair(&'static str, &'static str);

impl lsmith_workload::Inputs for Pair {
    fn open<'a>(&'a self, file: &str) -> Result<Box<dyn std::io::BufRead + 'a>, String> {
        Ok(Box::new(if file == "h" { self.1 } else { self.0 }.as_bytes()))
    }
}

#[test]
fn lengths_follow_a_histogram() {
    let text = "recordcount=20000\noperationcount=0\nfieldcount=1\n\
                fieldlengthdistribution=histogram\nfieldlengthhistogram=h\n";
    let with = |histogram| Workload::from_spec(&"ycsb(w)".parse().unwrap(), &Pair(text, histogram));
    let found = ops(&with("BlockSize\t100\n0\t3\n4\t1\n").unwrap());
    assert!((share(&found, |op| op.value_bytes == 100) - 0.75).abs() < 0.015);
    assert!((share(&found, |op| op.value_bytes == 500) - 0.25).abs() < 0.015);
    let error = |histogram| with(histogram).unwrap_err().to_string();
    assert!(error("").ends_with("expected a histogram with a count above 0"));
    assert!(error("BlockSize\t0\n0\t3\n").ends_with("expected a histogram with a count above 0"));
    assert!(error("BlockSize\t1\n0 x\n").starts_with("h, line 2: expected `BlockSize`"));
    assert!(error("1\t1\n").starts_with("h, line 1: expected `BlockSize`"));
    assert!(error("BlockSize\t99999999\n99\t1\n").contains("is longer than"));
}
