use super::*;
use clap::Parser;

fn row(store: &str, phase: &str, cpu: f64, device: Option<f64>) -> Row {
    Row {
        store: store.into(),
        phase: phase.into(),
        threads: 1,
        ops: 1000,
        ops_per_s: 1e6 / cpu,
        cpu_us_per_op: cpu,
        device_bytes_per_user_byte: device,
        written_bytes_per_op: 300.0,
        read_bytes_per_op: 0.0,
        p50_ns: 1000,
        p99_ns: 2000,
        p999_ns: 8000,
        max_ns: 25_000_000,
        disk_bytes: 116_000,
        rss_bytes: 1 << 20,
        space_over_live: None,
    }
}

fn report(runs: Vec<Row>) -> Report {
    let args = Args::parse_from(["x", "--stores", "lsmith"]);
    let mut report = Report::new(&args, &args.contenders().unwrap());
    report.stores = vec!["lsmith".into(), "rocksdb".into()];
    report.runs = runs;
    report
}

/// Three turns: the machine was slow in the second, for both stores alike.
fn three_turns() -> Report {
    report(vec![
        row("lsmith", "fill_random", 2.0, Some(2.0)),
        row("rocksdb", "fill_random", 4.0, Some(5.0)),
        row("rocksdb", "fill_random", 12.0, Some(5.0)),
        row("lsmith", "fill_random", 6.6, Some(2.0)),
        row("lsmith", "fill_random", 2.2, Some(2.0)),
        row("rocksdb", "fill_random", 4.0, Some(5.0)),
    ])
}

#[test]
fn ratios_are_taken_turn_by_turn() {
    let ratios = three_turns().ratios();
    assert_eq!(ratios.len(), 1);
    assert!((ratios[0].cpu_us_per_op.unwrap() - 0.55).abs() < 1e-9, "{ratios:?}");
    assert_eq!(ratios[0].device_bytes_per_user_byte, Some(0.4));
}

#[test]
fn rows_are_medians() {
    let rows = three_turns().rows();
    let cpu: Vec<f64> = rows.iter().map(|row| row.cpu_us_per_op).collect();
    assert_eq!(cpu, [2.2, 4.0]);
    assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
    assert_eq!(median(Vec::new()), None);
}

#[test]
fn json_has_rows_with_the_promised_fields() {
    let mut out = Vec::new();
    three_turns().write_json(&mut out).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
    let rows = json["rows"].as_array().unwrap();
    assert_eq!((rows.len(), json["runs"].as_array().unwrap().len()), (2, 6));
    for field in [
        "store",
        "phase",
        "ops_per_s",
        "cpu_us_per_op",
        "device_bytes_per_user_byte",
        "written_bytes_per_op",
        "read_bytes_per_op",
        "p50_ns",
        "p99_ns",
        "p999_ns",
        "max_ns",
        "disk_bytes",
        "rss_bytes",
    ] {
        assert!(!rows[0][field].is_null(), "{field}");
    }
}

#[test]
fn targets_say_what_holds_and_what_misses() {
    let told = targets::judge(&three_turns().rows());
    let line = |word: &str| told.lines().find(|line| line.contains(word)).unwrap().to_string();
    assert!(line("fill_random cpu_us").contains("misses by 10 %"), "{told}");
    assert!(line("fill_random cpu_us").ends_with("0.55 of 0.45 of RocksDB's  misses by 22 %"));
    assert!(line("fill_random device_bytes").contains("holds"), "{told}");
    assert!(line("fill_random device_bytes").ends_with("0.40 of 0.49 of RocksDB's  holds"));
    assert!(line("fill_random p99.9").contains("holds"), "{told}");
    assert!(line("fill_random longest").contains("misses by 25 %"), "{told}");
    assert!(!told.contains("overwrite"), "{told}");
}

#[test]
fn tables_have_a_line_for_each_row() {
    let report = three_turns();
    let told = tables::rows(&report.rows());
    assert_eq!(told.lines().filter(|line| line.contains("fill_random")).count(), 2, "{told}");
    let told = tables::ratios(&report.ratios());
    assert!(told.contains("0.55"), "{told}");
}
