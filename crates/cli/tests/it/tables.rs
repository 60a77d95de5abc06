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

#[test]
fn csv_has_every_column_and_nothing_else() {
    let csv = run(&[&COMPARE[..], &["--csv", "--parts"]].concat(), &[("COLUMNS", "80")]).0;
    let tables: Vec<&str> = csv.split("\n\n").collect();
    assert_eq!(tables.len(), 2, "{csv}");
    let lines: Vec<&str> = tables[0].lines().collect();
    assert!(lines[0].starts_with("policy,write eager,write system,unit sim,unit sim error %"));
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
