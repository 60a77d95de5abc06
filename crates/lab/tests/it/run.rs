//! Runs on the real store.

use lsmith::Store;
use lsmith_lab::{EngineReport, FileInputs, Mode, NoProgress, Options, run};
use lsmith_workload::{Inputs, Workload, WorkloadError};
use std::io::{Read, Write};
use std::path::Path;

fn workload(spec: &str) -> Workload {
    Workload::from_spec(&spec.parse().unwrap(), &FileInputs).unwrap()
}

fn options(mode: Mode) -> Options {
    Options { memtable_bytes: 64 << 10, mode, ..Options::default() }
}

fn run_in(dir: &Path, policy: &str, spec: &str, mode: Mode) -> EngineReport {
    run(policy, &workload(spec), dir, &options(mode), &NoProgress).unwrap()
}

fn fresh(policy: &str, spec: &str, mode: Mode) -> EngineReport {
    run_in(tempfile::tempdir().unwrap().path(), policy, spec, mode)
}

#[test]
fn parts_add_up() {
    let report =
        fresh("bigtable(k=3)", "load(keys=2k, value=500B, order=sequential)", Mode::Lockstep);
    let logical = report.bytes.logical;
    let physical = report.bytes.physical;
    assert_eq!((report.ops, physical.user), (2000, 2000 * 524));
    // 532 logical bytes each: 124 entries fill a memtable.
    assert_eq!(report.costs.flushes, 2000 / 124);
    assert_eq!(logical.flush, report.costs.flushes * 124 * 532);
    let written = logical.flush_written + logical.merge_memory + logical.merge_written;
    assert_eq!(report.costs.write_cost_system, written as f64 / logical.flush as f64);
    assert!(report.costs.write_cost_eager <= report.costs.write_cost_system);
    assert_eq!(report.costs.runs_max, 3);
    let all = physical.log + physical.flush + physical.merge_written + physical.metadata;
    assert_eq!(report.write_cost_user, Some(all as f64 / physical.user as f64));
    assert!(physical.log > physical.user && physical.metadata > 0);
    // Keys come in order, so merges keep all tables.
    assert!(physical.merge_read == 0 && logical.reused > 0);
    assert_eq!((report.read_cost_measured.hit, report.read_cost_measured.miss), (None, None));
    assert_eq!(report.phases.len(), 1);
}

#[test]
fn both_phases_of_ycsb_are_played() {
    let report = fresh("tiered", "ycsb(f, records=500, ops=800, value=100B)", Mode::Lockstep);
    let phases: Vec<_> = report.phases.iter().map(|phase| (phase.name, phase.ops)).collect();
    assert_eq!(phases, [("load", 500), ("run", 800)]);
    // Half of the operations read, the other half read before they write.
    assert_eq!((report.lookups.gets, report.lookups.found), (800, 800));
    assert!(report.read_cost_measured.hit.is_some());
    let scans = fresh("tiered", "ycsb(e, records=500, ops=100, value=100B)", Mode::Lockstep);
    assert_eq!((scans.ops, scans.lookups.gets), (600, 0));
}

#[test]
fn space_counts_obsolete_entries() {
    let report = fresh("none", "churn(keys=100, ops=20k, deletes=0, value=200B)", Mode::Lockstep);
    let space = report.costs.space_cost_peak.unwrap();
    // Nothing is ever dropped, and at most 100 entries are live.
    assert!(space > 0.9 * report.costs.flushes as f64 / 2.0, "{space}: {report:?}");
    let merged =
        fresh("constant(k=1)", "churn(keys=100, ops=20k, deletes=0, value=200B)", Mode::Lockstep);
    let space = merged.costs.space_cost_peak.unwrap();
    assert!(space < 3.2, "{space}");
}

#[test]
fn a_limit_on_flushes_ends_the_run() {
    for mode in [Mode::Lockstep, Mode::Free] {
        let report = fresh("binomial(k=3)", "load(keys=100k, flushes=7)", mode);
        assert_eq!((report.costs.flushes, report.mode), (7, mode.name()));
        assert!(report.costs.write_cost_system >= 1.0);
        assert!(report.costs.read_cost_mean >= 1.0);
    }
}

#[test]
fn existing_store_is_continued() {
    let dir = tempfile::tempdir().unwrap();
    let first = run_in(dir.path(), "none", "load(keys=2k)", Mode::Lockstep);
    assert!(first.costs.space_cost_peak.is_some());
    let second = run_in(dir.path(), "constant(k=2)", "load(keys=1k, seed=2)", Mode::Lockstep);
    assert_eq!((second.costs.space_cost_peak, second.costs.space_cost_mean), (None, None));
    assert_eq!(second.settings.policy, "constant(k=2)");
    let store = Store::builder(dir.path()).open().unwrap();
    let keyspace = store.existing_keyspace("default").unwrap();
    assert_eq!(keyspace.merge_policy(), "constant(k=2)");
    assert_eq!(keyspace.iter().count(), 2000);
}

#[test]
fn operations_before_a_damaged_line_stay() {
    let files = tempfile::tempdir().unwrap();
    let trace = files.path().join("cut.csv");
    std::fs::write(&trace, "timestamp,op,key,value_size\n1,put,a,10\n2,put,b,20\n3,pu").unwrap();
    let dir = files.path().join("store");
    let workload = workload(&format!("trace({})", trace.display()));
    let error = run("tiered", &workload, &dir, &options(Mode::Lockstep), &NoProgress).unwrap_err();
    let line = error.downcast_ref().and_then(WorkloadError::line);
    assert_eq!(line, Some(4), "{error:#}");
    let store = Store::builder(&dir).read_only(true).open().unwrap();
    let keyspace = store.existing_keyspace("default").unwrap();
    let lengths: Vec<_> = keyspace.iter().map(|entry| entry.unwrap().1.len()).collect();
    assert_eq!(lengths, [10, 20]);
}

#[test]
fn a_directory_with_other_files_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("letter.txt"), "dear").unwrap();
    let workload = workload("load(keys=10)");
    let error = run("tiered", &workload, dir.path(), &Options::default(), &NoProgress).unwrap_err();
    assert!(error.to_string().contains("letter.txt"), "{error:#}");
}

#[test]
fn files_are_read_compressed_or_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    std::fs::write(path("a.csv"), "plain").unwrap();
    let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gz.write_all(b"packed").unwrap();
    let packed = gz.finish().unwrap();
    std::fs::write(path("b.csv.gz"), &packed).unwrap();
    std::fs::write(path("c.csv.gz"), &packed[..packed.len() / 2]).unwrap();
    std::fs::write(path("d.csv"), &packed).unwrap();
    let read = |name: &str| {
        let mut bytes = Vec::new();
        let mut input = FileInputs.open(&path(name))?;
        input.read_to_end(&mut bytes).map(|_| bytes).map_err(|error| error.to_string())
    };
    assert_eq!(read("a.csv").unwrap(), b"plain");
    assert_eq!(read("b.csv.gz").unwrap(), b"packed");
    assert_eq!(read("d.csv").unwrap(), b"packed", "the first bytes say it");
    let damaged = read("c.csv.gz").unwrap_err();
    assert!(damaged.contains("damaged"), "{damaged}");
    #[cfg(feature = "zstd")]
    {
        std::fs::write(path("e.zst"), zstd::bulk::compress(b"packed", 3).unwrap()).unwrap();
        assert_eq!(read("e.zst").unwrap(), b"packed");
    }
    let missing = read("b.csv").unwrap_err();
    assert!(missing.starts_with("no such file; did you mean"), "{missing}");
    assert!(missing.contains("b.csv.gz"), "{missing}");
    let missing = read("aa.csv").unwrap_err();
    assert!(missing.contains("/a.csv"), "{missing}");
    assert_eq!(read("quite/other").unwrap_err(), "no such file, nor its directory");
}

/// What the store refuses, no simulation plays.
#[test]
fn limits_of_workloads_are_those_of_the_store() {
    assert_eq!(lsmith_workload::VALUE_BYTES_MAX, lsmith::VALUE_BYTES_MAX as u64);
    // One less: a keyspace of a group has shorter keys.
    let longest = lsmith::KEY_BYTES_MAX - 1;
    let spec = |bytes| format!("load(keys=1, key_bytes={bytes}B)").parse().unwrap();
    assert!(Workload::from_spec(&spec(longest), &FileInputs).is_ok());
    assert!(Workload::from_spec(&spec(longest + 1), &FileInputs).is_err());
}
