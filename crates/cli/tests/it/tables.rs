//! Tables that fit, CSV, and colours.

use std::process::Command;

const COMPARE: [&str; 7] = [
    "compare",
    "--policies",
    "none;leveled(ratio=4)",
    "--workload",
    "load(keys=3k, value=100B)",
    "--memtable",
    "64KiB",
];

fn run(args: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lsmith"));
    command.args(args).env_remove("COLUMNS").env_remove("NO_COLOR").env_remove("CLICOLOR_FORCE");
    let output = command.envs(variables.iter().copied()).output().unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn width_max(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn tables_fit_the_columns_that_there_are() {
    let all = run(&COMPARE, &[]).0;
    assert!(width_max(&all) > 150 && !all.contains("Left out"), "{all}");
    for columns in ["80", "100", "120"] {
        let text = run(&COMPARE, &[("COLUMNS", columns)]).0;
        let table: Vec<&str> =
            text.lines().take_while(|line| !line.starts_with("write ")).collect();
        assert!(width_max(&table.join("\n")) <= columns.parse().unwrap(), "{text}");
        assert!(text.contains("Left out for width: ") && text.contains("system"), "{text}");
        let wide = run(&[&COMPARE[..], &["--wide"]].concat(), &[("COLUMNS", columns)]).0;
        assert_eq!(width_max(&wide), width_max(&all), "{wide}");
    }
    let list = run(&["workloads"], &[("COLUMNS", "70")]).0;
    let rows = list.split("\ncount: ").next().unwrap();
    assert!(width_max(rows) <= 70, "{list}");
}

/// The table was followed by 16 lines on its columns, so that the verdict alone filled a terminal.
#[test]
fn comparison_of_five_policies_fits_one_screen() {
    let compare = [&COMPARE[..2], &["tiered;leveled;minlatency;bigtable;universal"], &COMPARE[3..]];
    let compare = compare.concat();
    let text = run(&compare, &[("COLUMNS", "80")]).0;
    assert!(text.lines().count() <= 24 && width_max(&text) <= 80, "{text}");
    for part in
        ["best", "write", "read", "space", "system", "mean", "Verdict: ", "Least read mean: "]
    {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(text.trim_end().lines().next_back().unwrap().ends_with('.'), "{text}");
    let (table, verdict) = text.split_once("Left out for width").unwrap();
    for figure in ["write system: ", "read mean: "] {
        let (_, least) = verdict.split_once(figure).unwrap();
        let least: Vec<&str> = least.split_whitespace().collect();
        let is_cost = |word: &&&str| word.contains('.') && word.parse::<f64>().is_ok();
        let value = least.iter().find(is_cost).unwrap();
        assert!(table.contains(value), "{figure}{value} is in the table: {text}");
    }
    let explained = run(&[&compare[..], &["--explain-columns"]].concat(), &[("COLUMNS", "80")]).0;
    assert!(
        explained.contains("write eager: bytes of runs") && !text.contains("write eager: bytes")
    );
}

/// Table, CSV, JSON, page and drawing once had other figures for the same word.
#[test]
fn figure_is_the_same_in_table_json_and_page() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let drawing = dir.path().join("costs.svg");
    let files = ["--html", page.to_str().unwrap(), "--svg", drawing.to_str().unwrap()];
    let object = run(&[&COMPARE[..], &files, &["--json"]].concat(), &[]).0;
    let object: serde_json::Value = serde_json::from_str(&object).unwrap();
    let csv = run(&[&COMPARE[..], &["--csv"]].concat(), &[]).0;
    let text = run(&COMPARE, &[]).0;
    let html = std::fs::read_to_string(page).unwrap();
    let (_, content) = html.split_once("id=\"content\">").unwrap();
    let content: serde_json::Value =
        serde_json::from_str(content.split("</script>").next().unwrap()).unwrap();
    let group = &content["groups"][0];
    let columns = group["table"]["columns"].as_array().unwrap();
    let mut lines = csv.lines();
    let heads: Vec<&str> = lines.next().unwrap().split(',').collect();
    for (index, row) in object["rows"].as_array().unwrap().iter().enumerate() {
        // The spec of the second policy has commas.
        let cells: Vec<&str> =
            lines.next().unwrap().rsplit("\",").next().unwrap().split(',').collect();
        let engine = &row["engine"];
        for (head, field, in_page) in [
            ("write system", "write_cost_system", Some("write")),
            ("read mean", "read_cost_mean", Some("read")),
            ("space mean", "space_cost_mean", Some("space")),
            ("space peak", "space_cost_peak", None),
            ("write user", "write_cost_user", None),
        ] {
            let value = engine[field].as_f64().unwrap();
            let from_end = heads.len() - heads.iter().position(|name| *name == head).unwrap();
            let cell: f64 = cells[cells.len() - from_end].parse().unwrap();
            assert!((cell - value).abs() < 1e-9, "{head}: {cell} in the table, {value} in JSON");
            assert!(text.contains(&format!("{value:.2}")), "{head}: {value} in {text}");
            if let Some(name) = in_page {
                assert_eq!(group["costs"][index]["by_source"][0][name], engine[field], "{head}");
            }
            let column = format!("engine.{field}");
            let at = columns.iter().position(|known| known["name"] == column.as_str()).unwrap();
            assert_eq!(group["table"]["rows"][index][at], engine[field], "{column}");
        }
    }
    let drawing = std::fs::read_to_string(drawing).unwrap();
    for axis in ["write_cost_system", "read_cost_mean", "space_cost_mean"] {
        assert!(drawing.contains(axis), "{axis}");
    }
}

#[test]
fn csv_has_every_column_and_nothing_else() {
    let csv = run(&[&COMPARE[..], &["--csv", "--parts"]].concat(), &[("COLUMNS", "80")]).0;
    let tables: Vec<&str> = csv.split("\n\n").collect();
    assert_eq!(tables.len(), 2, "{csv}");
    let lines: Vec<&str> = tables[0].lines().collect();
    assert!(lines[0].starts_with("policy,best,write eager,write system,unit sim,unit sim error %"));
    assert_eq!(lines.len(), 3, "{csv}");
    assert!(lines[1].starts_with("none,"), "{csv}");
    assert!(lines[2].starts_with("\"leveled(ratio=4, l0=2, pick=min_overlap)\","), "{csv}");
    assert_eq!(lines[1].matches(',').count(), lines[0].matches(',').count());
    assert!(tables[1].contains("bytes user,"), "{csv}");
}

#[test]
fn colours_are_for_terminals() {
    assert!(!run(&COMPARE, &[]).0.contains('\u{1b}'));
    assert!(run(&COMPARE, &[("CLICOLOR_FORCE", "1")]).0.contains("\u{1b}[1m"));
    let forbidden = [("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")];
    assert!(!run(&COMPARE, &forbidden).0.contains('\u{1b}'));
    let wrong = ["compare", "--policies", "teired"];
    assert!(run(&wrong, &[("CLICOLOR_FORCE", "1")]).1.starts_with("\u{1b}[31m"));
    assert!(run(&wrong, &forbidden).1.starts_with("lsmith: "));
}
