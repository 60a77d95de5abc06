//! Comparing, simulating and running.

use crate::command::{fine, json, refused};
use serde_json::Value;

fn number(value: &Value, field: &str) -> f64 {
    value[field].as_f64().unwrap_or_else(|| panic!("no number {field} in {value}"))
}

#[test]
fn policies_are_listed() {
    let listed = json(&["policies"]);
    let policies = listed["policies"].as_array().unwrap();
    let names: Vec<_> = policies.iter().map(|policy| policy["name"].as_str().unwrap()).collect();
    for name in ["none", "bigtable", "binomial", "tiered", "leveled"] {
        assert!(names.contains(&name), "{names:?}");
    }
    for policy in policies {
        assert!(policy["source"].as_str().is_some_and(|source| !source.is_empty()));
        assert!(policy["spec"].is_string() && policy["params"].is_array(), "{policy}");
        let spec = policy["spec"].as_str().unwrap();
        // Policies that count in blocks need keys.
        let keyed = ["--content", "keyed", "--memtable", "64KiB"];
        json(&[&["simulate", "--policy", spec, "--flushes", "3"][..], &keyed].concat());
    }
    let text = fine(&["policies"]);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn unit_simulations_give_the_published_figures() {
    for (policy, eager, system, read) in [
        ("binomial(k=4)", 8.84, 9.56, 3.63),
        ("minlatency(k=6)", 5.92, 6.41, 5.12),
        ("bigtable(k=4)", 12.57, 13.39, 3.75),
        ("exploring(k=4)", 17.88, 18.36, 3.37),
        ("constant(k=6)", 84.17, 84.33, 3.50),
    ] {
        let result = json(&["simulate", "--policy", policy, "--flushes", "1000"]);
        for (field, expected) in
            [("write_cost_eager", eager), ("write_cost_system", system), ("read_cost_mean", read)]
        {
            let found = number(&result, field);
            assert!((found - expected).abs() < 0.005_001, "{policy}: {field} {found}");
        }
        assert_eq!((&result["content"], number(&result, "flushes")), (&"unit".into(), 1000.0));
        for field in ["read_cost_mean_l0_one", "runs_max", "space_cost_peak", "seconds"] {
            number(&result, field);
        }
        let sizes = result["sizes_oldest_first"].as_array().unwrap();
        assert_eq!(sizes.iter().map(|size| size.as_u64().unwrap()).sum::<u64>(), 1000);
    }
    let leveled = json(&["simulate", "--policy", "leveled(ratio=4)", "--flushes", "20"]);
    assert_eq!(leveled["levels"], serde_json::json!([2, 4, 14]));
    assert_eq!(leveled["sizes_oldest_first"], Value::Null);
}

#[test]
fn keyed_simulations_take_a_workload() {
    let args = ["simulate", "--policy", "tiered", "--flushes", "9", "--memtable", "64KiB"];
    let result = json(&[&args[..], &["--content", "keyed"]].concat());
    assert_eq!((&result["content"], number(&result, "flushes")), (&"keyed".into(), 9.0));
    assert_eq!(result["sizes_oldest_first"].as_array().unwrap().len(), 3);

    let update = ["--content", "keyed", "--workload", "update(keys=100k, dist=zipf)"];
    let result = json(&[&args[..], &update].concat());
    assert!(number(&result, "write_cost_system") > 1.0);
    assert!(result["workload"].as_str().unwrap().contains("flushes=9"));
}

#[test]
fn a_workload_that_ends_early_is_noted() {
    let done = crate::command::lsmith(&[
        "simulate",
        "--policy",
        "none",
        "--flushes",
        "9",
        "--content",
        "keyed",
        "--workload",
        "load(keys=5k)",
        "--json",
    ]);
    assert_eq!(
        (done.code, done.err.as_str()),
        (0, "lsmith: the workload ended after 1 of 9 flushes\n")
    );
    assert_eq!(number(&serde_json::from_str(&done.out).unwrap(), "flushes"), 1.0);
}

#[test]
fn a_trace_shows_the_tree_after_each_flush() {
    let text = fine(&["simulate", "--policy", "tiered(ratio=2)", "--flushes", "4", "--trace"]);
    for flush in 1..=4 {
        assert!(text.contains(&format!("# flush {flush}\n# merge r")), "{text}");
    }
    assert!(text.contains("L2 r"), "{text}");
    // Each merge has its reason. Without comments there are four trees.
    let merges = text.lines().filter(|line| line.starts_with("# merge "));
    assert!(merges.clone().count() >= 4 && merges.clone().all(|merge| merge.contains(" # ")));
    assert!(merges.clone().any(|merge| merge.ends_with(" # level 0 has 2 runs of 2")), "{text}");
    assert_eq!(text.lines().filter(|line| line.starts_with("tree ")).count(), 4);
}

#[test]
fn a_trace_in_json_is_a_field() {
    let args = ["simulate", "--policy", "tiered(ratio=2)", "--flushes", "4", "--trace"];
    let traced = json(&args);
    let steps = traced["trace"].as_array().unwrap();
    assert_eq!((steps.len(), &steps[3]["flush"]), (4, &4.into()));
    let text = fine(&args);
    for step in steps {
        assert!(text.contains(step["tree"].as_str().unwrap()), "{step}");
    }
    assert_eq!(traced["flushes"], 4);
    assert!(json(&args[..5]).get("trace").is_none());
}

/// A policy that counts in blocks takes several windows from memory in one flush.
#[test]
fn a_trace_has_as_many_flushes_under_windows() {
    let simulate = ["simulate", "--content", "keyed", "--memtable", "64KiB", "--flushes", "3"];
    let load = ["--workload", "load(keys=9k, value=100B)", "--trace", "--policy"];
    for policy in ["rr", "full", "tiered"] {
        let args = [&simulate[..], &load, &[policy]].concat();
        let text = fine(&args);
        let heads: Vec<&str> = text.lines().filter(|line| line.starts_with("# flush ")).collect();
        assert_eq!(heads, ["# flush 1", "# flush 2", "# flush 3"], "{policy}");
        assert_eq!(text.lines().filter(|line| line.starts_with("tree ")).count(), 3, "{policy}");
        let traced = json(&args);
        let steps = traced["trace"].as_array().unwrap();
        assert_eq!((steps.len(), &steps[2]["flush"]), (3, &3.into()), "{policy}");
        assert_eq!(traced["flushes"], 3, "{policy}");
        let merges: usize = steps.iter().map(|s| s["merges"].as_array().unwrap().len()).sum();
        let printed = text.lines().filter(|line| line.starts_with("# merge ")).count();
        assert_eq!(merges, printed, "{policy}");
        assert!(merges >= if policy == "rr" { 20 } else { 3 }, "{policy}: {merges}");
    }
}

/// Costs over 0 flushed bytes were once printed as `+inf` and `NaN`.
#[test]
fn a_run_without_a_flush_says_what_to_change() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let run = ["run", "--policy", "none", "--workload", "load(keys=2k, value=100B)", "--dir", path];
    let text = fine(&run);
    assert!(text.contains("such as `--memtable 4KiB`"), "{text}");
    assert!(!text.contains("inf ") && !text.contains("NaN"), "{text}");
}

#[test]
fn a_comparison_has_every_part() {
    let result = json(&[
        "compare",
        "--policies",
        "none; leveled(ratio=4)",
        "--workload",
        "load(keys=3k, value=100B)",
        "--workload",
        "ycsb(b, records=2k, ops=2k, value=100B)",
        "--memtable",
        "64KiB",
    ]);
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    for row in rows {
        let engine = &row["engine"];
        for field in [
            "write_cost_eager",
            "write_cost_system",
            "write_cost_user",
            "read_cost_mean",
            "read_cost_mean_l0_one",
            "runs_max",
            "space_cost_peak",
            "space_cost_mean",
            "ops",
            "seconds",
            "cpu_seconds",
            "flushes",
            "merges",
            "seed",
        ] {
            number(engine, field);
        }
        for field in ["flush", "merge_read", "merge_written", "reused", "moved"] {
            number(&engine["bytes"]["logical"], field);
            number(&engine["bytes"]["physical"], field);
        }
        for field in ["user", "log", "metadata"] {
            number(&engine["bytes"]["physical"], field);
        }
        assert_eq!(engine["settings"]["mode"], "lockstep");
        assert_eq!(number(engine, "write_cost_system"), number(&row["keyed"], "write_cost_system"));
        number(&row["unit"], "write_cost_system");
        number(&row["optimum"], "write_cost_system");
        number(&row["optimum"], "above");
        assert!(number(&row["fluid"], "write_cost_system") >= 1.0);
        assert_eq!(number(&row["errors"]["keyed"], "write_cost_system"), 0.0);
    }
    assert_eq!(rows[0]["policy"], "none");
    assert_eq!(rows[3]["policy"], "leveled(ratio=4, l0=2, pick=min_overlap)");
    assert!(rows[3]["engine"]["read_cost_measured"]["hit"].is_number());
}

/// A machine on which a write takes two microseconds, and an entry of a merge one.
const MACHINE: &str = "machine(cores=2, write=2000, flush_entry=1000, merge_entry=1000)";

#[test]
fn free_runs_are_predicted_in_time() {
    let args = ["--memtable", "64KiB", "--machine", MACHINE];
    let compare = ["compare", "--policies", "tiered; leveled", "--free"];
    let workload = ["--workload", "churn(keys=2k, ops=20k, value=100B)"];
    let result = json(&[&compare[..], &workload, &args].concat());
    for row in result["rows"].as_array().unwrap() {
        let simulated = &row["free"]["simulated"];
        assert_eq!(number(simulated, "ops"), 20_000.0);
        // Twenty thousand writes of two microseconds.
        assert!(number(simulated, "seconds") >= 0.04);
        assert!(number(simulated, "merge_cpu_seconds") > 0.01);
        number(&simulated["costs"], "write_cost_system");
    }
    let text = fine(&[&compare[..], &workload, &args].concat());
    assert!(text.contains("simulated: the same free run in time"), "{text}");
    let simulate = ["simulate", "--policy", "tiered", "--flushes", "20", "--content", "keyed"];
    let text = fine(&[&simulate[..], &workload, &args, &["--threads", "1"]].concat());
    assert!(text.contains("writers held back, % of the time"), "{text}");
    let time = &json(&[&simulate[..], &workload, &args].concat())["time"];
    assert!(number(time, "ops_per_second") <= 500_000.0, "{time}");
}

/// Lines of machines that were measured before there were times of puts are still read.
#[test]
fn percentiles_of_puts_are_predicted_if_the_machine_has_them() {
    let churn = ["--workload", "churn(keys=2k, ops=20k, value=100B)", "--memtable", "64KiB"];
    let compare = ["compare", "--policies", "tiered", "--free"];
    let simulate = ["simulate", "--policy", "tiered", "--flushes", "20", "--content", "keyed"];
    let with = MACHINE.replace(')', ", put_p50=400, put_p99=3000, put_p999=8000)");
    let put = |machine: &str| {
        let args = [&churn[..], &["--machine", machine]].concat();
        let compared = &json(&[&compare[..], &args].concat())["rows"][0]["free"]["simulated"];
        let simulated = &json(&[&simulate[..], &args].concat())["time"]["put_nanos"];
        assert_eq!(compared["put_nanos"].is_null(), simulated.is_null());
        let texts = [&compare[..], &simulate[..]].map(|args_of| fine(&[args_of, &args].concat()));
        (compared["put_nanos"].clone(), texts)
    };
    let (nanos, [compared, simulated]) = put(&with);
    let [p50, p99, p999] = ["p50", "p99", "p999"].map(|field| number(&nanos, field));
    assert!((390.0..430.0).contains(&p50) && p99 >= 2900.0 && p999 >= 7900.0, "{nanos}");
    assert!(compared.contains("lated") && simulated.contains("a put, p99.9, us"), "{simulated}");
    let (nanos, [compared, simulated]) = put(MACHINE);
    assert!(nanos.is_null(), "{nanos}");
    assert!(!compared.contains("lated\n") && !simulated.contains("a put"), "{compared}");
}

#[test]
fn a_machine_can_be_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("machine");
    let name = file.to_str().unwrap();
    std::fs::write(&file, format!("{MACHINE}\n")).unwrap();
    let simulate = ["simulate", "--policy", "tiered", "--flushes", "5", "--memtable", "64KiB"];
    let keyed = ["--content", "keyed", "--machine"];
    let found = json(&[&simulate[..], &keyed, &[name]].concat());
    let machine = found["time"]["machine"].as_str().unwrap();
    assert!(machine.starts_with("machine(cores=2, write=2000, write_byte=0, "), "{machine}");
    for (machine, needle) in [
        ("nowhere", "cannot read the machine in nowhere"),
        ("machine(speed=9)", "unknown parameter `speed`"),
        ("computer(cores=2)", "unknown machine `computer`"),
    ] {
        let error = refused(2, &[&simulate[..], &keyed, &[machine]].concat());
        assert!(error.contains(needle), "{error}");
    }
    let unit = refused(2, &[&simulate[..], &["--machine", name]].concat());
    assert!(unit.contains("time depends on keys"), "{unit}");
    let alone = refused(2, &["compare", "--policies", "tiered", "--machine", name]);
    assert!(alone.contains("expected `--free` with it"), "{alone}");
}

#[test]
fn a_comparison_ends_in_aligned_tables() {
    let text = fine(&[
        "compare",
        "--policies",
        "none;binomial(k=2)",
        "--workload",
        "load(keys=3k, value=100B)",
        "--memtable",
        "64KiB",
        "--parts",
        "--explain-columns",
    ]);
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("load(keys=3k, value=100B, "), "{text}");
    let rows: Vec<_> = lines
        .iter()
        .filter(|line| line.starts_with("none ") || line.starts_with("binomial"))
        .collect();
    assert_eq!(rows.len(), 4, "{text}");
    assert_eq!(rows[0].chars().count(), rows[1].chars().count(), "{text}");
    assert_eq!(rows[2].chars().count(), rows[3].chars().count(), "{text}");
    assert!(text.contains("Store and simulations ran in lockstep"), "{text}");
}

#[test]
fn a_run_keeps_its_store_and_can_go_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store");
    let path = path.to_str().unwrap();
    let run = |policy, extra: &[&str]| {
        let args = ["run", "--policy", policy, "--workload", "ycsb(a, records=2k, ops=2k)"];
        json(&[&args[..], &["--dir", path, "--memtable", "256KiB"], extra].concat())
    };
    let first = run("tiered(ratio=2)", &[]);
    assert_eq!((number(&first, "ops"), &first["mode"]), (4000.0, &"lockstep".into()));
    assert_eq!(first["phases"][0]["name"], "load");
    number(&first, "space_cost_peak");
    let second = run("leveled(ratio=3)", &["--free"]);
    assert_eq!((&second["mode"], &second["space_cost_peak"]), (&"free".into(), &Value::Null));
    assert_eq!(fine(&["db", path, "scan"]).lines().count(), 2000);
    let text = fine(&["run", "--policy", "none", "--workload", "load(keys=1k)", "--dir", path]);
    assert!(text.contains("write_cost_user"), "{text}");
}

#[test]
fn run_prints_histograms_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("store").to_str().unwrap().to_owned();
    let workload = ["--policy", "none", "--workload", "load(keys=1k)", "--dir", &path];
    let report = json(&[&["run"], &workload[..], &["--histograms"]].concat());
    assert_eq!(report["histograms"]["write_nanos"]["count"], 1000);
    assert!(report["histograms"]["write_nanos"]["p99"].as_u64().unwrap() > 0);
    let text = fine(&[&["run"], &workload[..], &["--histograms"]].concat());
    assert!(text.contains("write_nanos") && text.contains("p999"), "{text}");
    assert!(json(&[&["run"], &workload[..]].concat()).get("histograms").is_none());
}

#[test]
fn a_comparison_has_free_runs_on_request() {
    let args = ["compare", "--policies", "leveled(ratio=3)", "--memtable", "64KiB"];
    let args = [&args[..], &["--workload", "load(keys=3k, value=100B)", "--free"]].concat();
    let args = [&args[..], &["--repeat", "2", "--threads", "3"]].concat();
    let row = &json(&args)["rows"][0];
    assert_eq!(
        (&row["engine"]["mode"], &row["free"]["engine"]["mode"]),
        (&"lockstep".into(), &"free".into())
    );
    number(&row["free"]["engine"]["debt"], "seconds");
    number(&row["free"]["errors"], "read_cost_mean");
    assert_eq!(
        (number(&row["spread"], "runs"), number(&row["free"]["engine"]["settings"], "threads")),
        (2.0, 3.0)
    );
    let text = fine(&[&args[..], &["--explain-columns"]].concat());
    for part in
        ["lockstep (L)", "Merges were owed for", "of repeated runs", "In free runs, writers"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn flushes_have_given_sizes() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sizes.txt");
    std::fs::write(&file, "# a night and a day\n1MiB\n2MiB\n512KiB\n").unwrap();
    let sizes = format!("file({})", file.display());
    let args = ["simulate", "--policy", "none", "--flushes", "5", "--memtable", "2MiB"];
    let args = [&args[..], &["--flush-sizes", &sizes]].concat();
    let found = json(&args);
    assert_eq!(found["sizes_oldest_first"], serde_json::json!([0.5, 1, 0.25, 0.5, 1]));
    assert_eq!(found["flush_sizes"].as_str(), Some(&*sizes));
    assert_eq!(found["flushes"].as_u64(), Some(5));
    let keyed = json(&[&args[..], &["--content", "keyed"]].concat());
    let bytes: Vec<u64> = keyed["sizes_oldest_first"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bytes| bytes.as_u64().unwrap())
        .collect();
    for (bytes, size) in bytes.iter().zip([1 << 20, 2 << 20, 1 << 19, 1 << 20, 2 << 20]) {
        // A memtable is sealed with the entry that fills it.
        assert!((size..size + 1100).contains(bytes), "{bytes} {size}");
    }

    let lognormal = ["--flush-sizes", "lognormal(mean=0.5, sigma=0.3)"];
    let compare = ["compare", "--policies", "minlatency(k=3)", "--memtable", "64KiB"];
    let compare = [&compare[..], &["--workload", "load(keys=4k, value=100B)"], &lognormal].concat();
    let row = &json(&compare)["rows"][0];
    assert_eq!(row["errors"]["keyed"]["write_cost_system"], 0.0);
    assert_eq!(row["engine"]["settings"]["flush_sizes"], "lognormal(mean=0.5, sigma=0.3, seed=1)");
    assert_eq!(row["optimum"]["is_exact"], true);
    assert!(fine(&compare).contains("64KiB, sealed at lognormal(mean=0.5"));
}

#[test]
fn tables_are_compressed_on_request() {
    let args = ["compare", "--policies", "tiered", "--memtable", "64KiB"];
    let args = [&args[..], &["--workload", "load(keys=2k, compressible=0.5)"]].concat();
    let plain = &json(&args)["rows"][0]["engine"];
    let packed = &json(&[&args[..], &["--compression", "lz4"]].concat())["rows"][0]["engine"];
    assert_eq!(plain["settings"]["compression"], "none");
    assert_eq!(packed["settings"]["compression"], "lz4");
    assert_eq!(plain["write_cost_system"], packed["write_cost_system"]);
    let flush = |engine: &Value| number(&engine["bytes"]["physical"], "flush");
    let ratio = flush(packed) / flush(plain);
    assert!((0.5..0.6).contains(&ratio), "{ratio}");
}

/// A store that maps files does not know what it reads. With `--cache` it does, and the simulation
/// foretells it.
#[test]
fn readers_have_a_cache_of_a_given_size() {
    let workload = "ycsb(b, records=5k, ops=5k, value=100B)";
    let of = |extra: &[&str]| {
        let args = ["compare", "--policies", "tiered", "--memtable", "64KiB"];
        let row = &json(&[&args[..], &["--workload", workload], extra].concat())["rows"][0];
        (row["engine"].clone(), row["keyed"].clone(), row["errors"]["keyed"].clone())
    };
    let (engine, keyed, errors) = of(&[]);
    for unknown in [&engine, &keyed, &errors] {
        assert_eq!(unknown["read_cost_uncached"], Value::Null);
    }
    let (engine, keyed, errors) = of(&["--cache", "0B"]);
    assert_eq!(engine["settings"]["cache_bytes"], 0);
    let looked = engine["lookups"]["blocks_found"].as_f64().unwrap()
        + engine["lookups"]["blocks_absent"].as_f64().unwrap();
    let all = number(&engine, "read_cost_uncached");
    assert!((all - looked / engine["lookups"]["gets"].as_f64().unwrap()).abs() < 1e-9);
    // Filters of the store err now and then.
    assert!((0.0..0.1).contains(&(all - number(&keyed, "read_cost_uncached"))), "{all}");
    assert!(number(&errors, "read_cost_uncached").abs() < 0.1);
    let (engine, keyed, _) = of(&["--cache", "256KiB"]);
    for report in [&engine, &keyed] {
        let missed = number(report, "read_cost_uncached");
        assert!(0.2 * all < missed && missed < 0.9 * all, "{missed} of {all}");
        assert_eq!(report["scan_cost_uncached"], Value::Null);
    }
    let args = ["simulate", "--policy", "tiered", "--flushes", "9", "--cache", "1MiB"];
    let refusal = refused(2, &args);
    assert!(refusal.contains("a cache has blocks: expected `--content keyed`"), "{refusal}");
    let parts = [&args[..5], &["--key-ranges", "4"]].concat();
    let refusal = refused(2, &parts);
    assert!(refusal.contains("key ranges have keys: expected `--content keyed`"), "{refusal}");
    let many = ["simulate", "--policy", "tiered", "--flushes", "301", "--key-ranges", "4"];
    let refusal = refused(2, &many);
    assert!(refusal.contains("known for up to 300 flushes, found 301"), "{refusal}");
    let many = fine(&["simulate", "--policy", "none", "--flushes", "100"]);
    assert!(many.contains(" 1 1 1 and 84 more"), "{many}");
    let args = ["simulate", "--policy", "tiered", "--flushes", "9", "--memtable", "64KiB"];
    let keyed = ["--content", "keyed", "--workload", workload, "--cache", "16MB"];
    assert!(json(&[&args[..], &keyed].concat())["read_cost_uncached"].is_null(), "only a load");
}

/// A group on the store costs what its simulation says, to the last digit.
#[test]
fn groups_are_run_and_compared_like_single_keyspaces() {
    let memtable = ["--memtable", "64KiB", "--group", "1,0.2"];
    let workload = ["--workload", "churn(keys=3k, ops=20k, value=100B, deletes=0.2)"];
    let options = [&memtable[..], &workload].concat();
    let compare = [&["compare", "--policies", "minlatency(k=3); tiered(ratio=3)"], &options[..]];
    let compare = compare.concat();
    let rows = json(&compare);
    for row in rows["rows"].as_array().unwrap() {
        let errors = row["errors"]["keyed"].as_object().unwrap();
        // The bytes of files are not simulated entry by entry.
        let (files, logical): (Vec<_>, Vec<_>) =
            errors.iter().filter(|(_, error)| !error.is_null()).partition(|(name, _)| {
                ["write_cost_user", "space_cost_physical_mean"].contains(&name.as_str())
            });
        assert!(files.iter().all(|(_, error)| error.as_f64().unwrap().abs() < 0.02), "{files:?}");
        assert!(
            logical.iter().all(|(_, error)| **error == 0.0) && logical.len() >= 6,
            "{logical:?}"
        );
        assert!(row["engine"]["merges"].as_u64().unwrap() > 3, "{row}");
        for unknown in ["fluid", "model"] {
            assert!(row[unknown].is_null(), "{row}");
        }
        assert_eq!(row["engine"]["settings"]["group"], "1,0.2");
    }
    let text = fine(&compare);
    assert!(text.contains(" in a group of 1,0.2: "), "{text}");

    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().to_str().unwrap();
    let run = [&["run", "--policy", "minlatency(k=3)", "--dir", dir], &options[..]].concat();
    let report = json(&run);
    let engine = &rows["rows"][0]["engine"];
    for figure in ["merges", "write_cost_system", "read_cost_mean", "space_cost_mean"] {
        assert_eq!(number(&report, figure), number(engine, figure), "{figure}");
    }
    let stored = json(&["db", dir, "keyspaces"]).to_string();
    assert!(stored.contains("keyspace-1") && stored.contains("\"keyspaces\""), "{stored}");
    // It goes on where it was.
    assert!(fine(&run).contains("shares of the group"));
}

/// `classic` has policies that take windows of keys, which groups cannot have.
#[test]
fn words_for_many_policies_mean_those_that_fit_a_group() {
    let options = ["--memtable", "64KiB", "--group", "1,0.5"];
    let workload = ["--workload", "load(keys=2k, value=100B)"];
    let rows = json(&[&["compare"], &options[..], &workload].concat());
    let names = rows["rows"].as_array().unwrap().iter().map(|row| row["policy"].to_string());
    let names: Vec<String> = names.collect();
    assert!(names.len() > 8, "{names:?}");
    assert!(!names.iter().any(|name| name.contains("leveled(")), "{names:?}");
}
