//! Pages and drawings.

use crate::command::{fine, json, refused};
use serde_json::Value;
use std::path::Path;

/// Returns the content of a page.
fn content(path: &Path) -> Value {
    let html = std::fs::read_to_string(path).unwrap();
    assert!(html.starts_with("<!DOCTYPE html>") && html.ends_with("</html>\n"));
    let (_, rest) = html.split_once("id=\"content\">").unwrap();
    serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap()
}

fn assert_is_drawing(path: &Path, names: &[&str]) {
    let drawing = std::fs::read_to_string(path).unwrap();
    assert!(drawing.starts_with("<svg ") && drawing.trim_end().ends_with("</svg>"));
    for name in names {
        assert!(drawing.contains(name), "no {name} in {}", path.display());
    }
}

#[test]
fn a_comparison_is_a_page_and_a_drawing() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let drawing = dir.path().join("costs.svg");
    let trace = dir.path().join("<b>&amp;trace.csv");
    let ops: String = (0..2000).map(|n| format!("{n},put,key{n:05},100\n")).collect();
    std::fs::write(&trace, format!("timestamp,op,key,value_size\n{ops}")).unwrap();
    let trace = format!("trace({})", trace.display());
    let policies = "tiered(ratio=3); leveled(ratio=3)";
    let compared = json(&[
        "compare",
        "--policies",
        policies,
        "--workload=load(keys=2k, value=100B)",
        "--workload",
        &trace,
        "--memtable=16KiB",
        "--html",
        page.to_str().unwrap(),
        "--svg",
        drawing.to_str().unwrap(),
    ]);
    let content = content(&page);
    let groups = content["groups"].as_array().unwrap();
    assert_eq!(groups.len(), 2);
    for (index, row) in compared["rows"].as_array().unwrap().iter().enumerate() {
        let group = &groups[index / 2];
        assert_eq!(group["name"], row["workload"]);
        let costs = &group["costs"][index % 2];
        assert_eq!(costs["name"], row["policy"]);
        assert_eq!(costs["by_source"][0]["write"], row["engine"]["write_cost_system"]);
        assert_eq!(costs["by_source"][1]["read"], row["keyed"]["read_cost_mean"]);
        let tree = &group["trees"][index % 2];
        let written: u64 = tree["levels"]
            .as_array()
            .unwrap()
            .iter()
            .map(|level| level["written"].as_u64().unwrap())
            .sum();
        let logical = &row["engine"]["bytes"]["logical"];
        let parts = ["flush_written", "merge_written"].map(|part| logical[part].as_u64().unwrap());
        assert_eq!(written, parts[0] + parts[1], "{tree}");
    }
    assert!(groups[1]["name"].as_str().unwrap().contains("<b>&amp;"), "{}", groups[1]["name"]);
    assert_is_drawing(&drawing, &["tiered(ratio=3)", "leveled(ratio=3", "exact optimum"]);
}

/// The page has the percentiles of puts beside each other, as the JSON has them.
#[test]
fn page_of_free_runs_has_the_times_of_puts() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let compare = ["compare", "--policies", "tiered; leveled", "--free", "--memtable=16KiB"];
    let more = ["--workload=load(keys=2k, value=100B)", "--html", page.to_str().unwrap()];
    let compared = json(&[&compare[..], &more].concat());
    let content = content(&page);
    for (index, row) in compared["rows"].as_array().unwrap().iter().enumerate() {
        let put = &content["groups"][0]["costs"][index]["put"];
        let free = &row["free"]["engine"];
        for field in ["p50", "p99", "p999", "max"] {
            assert_eq!(put[field], free["histograms"]["write_nanos"][field], "{field}");
        }
        assert_eq!(put["ops_per_second"], free["ops_per_second"]);
        assert_eq!(put["held_back_seconds"], free["held_back_seconds"]);
        assert!(put["p50"].as_u64() <= put["p999"].as_u64() && put["max"].as_u64() > Some(0));
    }
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("How long puts took, and the longest pause"));
    let text = fine(&[&compare[..], &more].concat());
    assert!(text.contains("pause ms") && text.contains("p99.9"), "{text}");
}

/// The page has how fast a free run was over time, predicted beside measured.
#[test]
fn page_of_free_runs_has_their_course() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let compare = ["compare", "--policies", "tiered", "--free", "--memtable=64KiB"];
    let machine = "machine(cores=2, write=2000, flush_entry=1000, merge_entry=1000)";
    let more = ["--workload=load(keys=20k, value=100B)", "--machine", machine];
    json(&[&compare[..], &more, &["--html", page.to_str().unwrap()]].concat());
    let course = &content(&page)["groups"][0]["costs"][0]["course"];
    let [measured, simulated] = ["measured", "simulated"].map(|of| course[of].as_array().unwrap());
    // The same operations in both, up to the last.
    let ops = |moments: &[Value]| -> Vec<u64> {
        moments.iter().map(|moment| moment["ops"].as_u64().unwrap()).collect()
    };
    assert_eq!(ops(measured), ops(simulated));
    assert!(measured.len() > 40 && ops(measured).ends_with(&[20_000]));
    for moments in [measured, simulated] {
        for field in ["seconds", "held_back_seconds"] {
            let at = |moment: &Value| moment[field].as_f64().unwrap();
            assert!(moments.windows(2).all(|pair| at(&pair[0]) <= at(&pair[1])), "{field}");
        }
    }
    // Twenty thousand writes of two microseconds.
    assert!(simulated.last().unwrap()["seconds"].as_f64().unwrap() >= 0.04);
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(html.contains("The course of the free runs"));
}

#[test]
fn a_simulation_is_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let arguments = ["simulate", "--policy=binomial(k=3)", "--flushes=30", "--html"];
    fine(&[&arguments[..], &[page.to_str().unwrap()]].concat());
    let content = content(&page);
    let tree = &content["groups"][0]["trees"][0];
    assert_eq!(tree["name"], "binomial(k=3)");
    // At least a memtable and its flush or merge, for each flush.
    assert!(tree["step_count"].as_u64().unwrap() >= 60, "{tree}");
    let command = content["facts"][0][1].as_str().unwrap();
    assert!(command.starts_with("lsmith simulate '--policy=binomial(k=3)' --flushes=30"));
}

#[test]
fn tuning_is_a_page_and_a_drawing() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let drawing = dir.path().join("costs.svg");
    let workload = "--workload=churn(keys=10k, ops=100k, value=100B)";
    let files = ["--html", page.to_str().unwrap(), "--svg", drawing.to_str().unwrap()];
    let tuned = json(&[&["tune", workload, "--memtable=64KiB"][..], &files].concat());
    let content = content(&page);
    let costs = content["groups"][0]["costs"].as_array().unwrap();
    for choice in tuned["frontier"].as_array().unwrap() {
        assert!(costs.iter().any(|costs| costs["name"] == choice["policy"]), "{choice}");
    }
    let best: Vec<&Value> = costs.iter().filter(|costs| costs["is_best"] == true).collect();
    assert_eq!(best.len(), 1);
    assert_eq!(best[0]["name"], tuned["best"]["policy"]);
    let winner = format!("best: {}", best[0]["name"].as_str().unwrap().split('(').next().unwrap());
    let name = costs[0]["name"].as_str().unwrap();
    assert_is_drawing(&drawing, &[name, "read_cost_mean", &winner]);
}

#[test]
fn a_store_is_a_page() {
    let dir = tempfile::tempdir().unwrap();
    let store = dir.path().join("store");
    let page = dir.path().join("page.html");
    let store = store.to_str().unwrap();
    let file = page.to_str().unwrap();
    let name = "two.of-them";
    fine(&["db", store, "--keyspace", name, "put", "key", "value"]);
    fine(&["db", store, "put", "key", "value"]);
    fine(&["db", store, "--keyspace", name, "compact"]);
    let told = json(&["db", store, "report", "--html", file]);
    assert_eq!((&told["keyspaces"], &told["html"]), (&Value::from(2), &Value::from(file)));
    let content = content(&page);
    let groups = content["groups"].as_array().unwrap();
    let group = groups.iter().find(|group| group["name"] == name).unwrap();
    assert_eq!(group["trees"][0]["step_count"], 1);
    assert!(group["table"]["rows"][0].as_array().unwrap().contains(&Value::from(name)));
    let absent = dir.path().join("absent");
    refused(1, &["db", absent.to_str().unwrap(), "report", "--html", file]);
    refused(1, &["db", store, "report", "--html", dir.path().join("no/page").to_str().unwrap()]);
}
