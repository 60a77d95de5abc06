use super::*;

const HEADER: [Head<'_>; 6] = [
    ("\npolicy", Importance::Rank(0)),
    ("write\nuser", Importance::Least),
    ("unit\nsim", Importance::Least),
    ("error\n%", Importance::OfTheOneBefore),
    ("space\npeak", Importance::Rank(2)),
    ("cpu\ns", Importance::Rank(1)),
];

fn rows() -> Vec<Vec<String>> {
    let row = |cells: [&str; 6]| cells.map(str::to_owned).to_vec();
    vec![
        row(["leveled(ratio=10)", "14.75", "13.02", "-4.4", "1.84", "6.8"]),
        row(["none", "2.03", "1.00", "-", "1.00", "1.1"]),
    ]
}

#[test]
fn least_important_columns_are_left_out_first() {
    let text = |width| fitting(&HEADER, 1, &rows(), width);
    assert!(!text(80).contains("Left out"), "{}", text(80));
    for (width, shown, out) in [
        (45, "user peak s", "unit sim"),
        (36, "peak s", "write user, unit sim"),
        (30, "s", "space peak, write user, unit sim"),
    ] {
        let text = text(width);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words(text.lines().nth(1).unwrap()), format!("policy {shown}"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(words(&text).ends_with(&format!("Left out for width: {out}. `--wide` shows all.")));
    }
}

#[test]
fn the_first_column_and_one_more_always_stay() {
    let text = fitting(&HEADER, 1, &rows(), 5);
    assert!(text.contains("leveled(ratio=10)") && text.contains("6.8"), "{text}");
}

#[test]
fn rows_of_csv_name_their_columns_and_quote_cells() {
    let text = csv(&HEADER, &rows());
    let lines: Vec<&str> = text.lines().map(|line| &line[1..]).collect();
    assert_eq!(
        lines,
        [
            "policy,write user,unit sim,unit sim error %,space peak,cpu s",
            "leveled(ratio=10),14.75,13.02,-4.4,1.84,6.8",
            "none,2.03,1.00,,1.00,1.1",
        ]
    );
    assert_eq!(quoted("tiered(ratio=4, \"x\")"), "\"tiered(ratio=4, \"\"x\"\")\"");
}
