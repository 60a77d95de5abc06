use proptest::prelude::*;

use super::*;

fn parse(text: &str) -> Spec {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn message(text: &str) -> String {
    Spec::parse_list(text).expect_err(text).to_string()
}

#[test]
fn a_bare_name_has_no_arguments() {
    assert_eq!(parse("none"), Spec::bare("none"));
    assert_eq!(parse("  none ( ) "), Spec::bare("none"));
    assert_eq!(parse("none()").to_string(), "none");
}

#[test]
fn spaces_are_free() {
    let spec = parse(" leveled (\tratio = 10 ,pick=oldest )");
    assert_eq!(spec, Spec::bare("leveled").with("ratio", 10).with("pick", "oldest"));
    assert_eq!(spec.to_string(), "leveled(ratio=10, pick=oldest)");
}

#[test]
fn values_may_be_paths_and_specs() {
    let spec = parse("trace(../shared/a b.csv.gz, ops=100k, by=rr(a=1, b=(2;3)))");
    assert_eq!(spec.positional, ["../shared/a b.csv.gz"]);
    assert_eq!(spec.param("by"), Some("rr(a=1, b=(2;3))"));
    assert_eq!(spec.param("bytes"), None);
    assert_eq!(parse("ycsb(./k=v)").positional, ["./k=v"]);
    assert_eq!(parse("x(a=b=c)").param("a"), Some("b=c"));
}

#[test]
fn lists_split_outside_parentheses_only() {
    let specs = Spec::parse_list("tiered(ratio=4); none ;; x(a;b=c;d);").unwrap();
    let printed: Vec<_> = specs.iter().map(Spec::to_string).collect();
    assert_eq!(printed, ["tiered(ratio=4)", "none", "x(a;b=c;d)"]);
}

#[test]
fn errors_say_where_and_what() {
    assert_eq!(message(""), "at byte 0: found end of text, expected a name");
    assert_eq!(message(" ; "), "at byte 3: found end of text, expected a name");
    assert_eq!(message("a; 5b"), "at byte 3: found `5`, expected a name");
    assert_eq!(message("a b"), "at byte 2: found `b`, expected `(` or the end of the spec");
    assert_eq!(message("a(b"), "at byte 3: found end of text, expected `)`");
    assert_eq!(message("a(b=(c)"), "at byte 7: found end of text, expected `)`");
    assert_eq!(message("a(b))"), "at byte 4: found `)`, expected `;` or end of text");
    assert_eq!(message("a(k= ,b)"), "at byte 5: found `,`, expected a value");
    assert_eq!(message("a(b,)"), "at byte 4: found `)`, expected a value");
    assert_eq!(message("a(k=1, k=2)"), "at byte 7: parameter `k` is given twice");
    assert_eq!(message("ä"), "at byte 0: found `ä`, expected a name");
    let error = "a; b".parse::<Spec>().unwrap_err();
    assert_eq!(error.to_string(), "at byte 1: found `;`, expected `(` or the end of the spec");
}

fn value() -> impl Strategy<Value = String> {
    let plain = "[A-Za-z0-9_./;äö*-]{1,12}";
    prop_oneof![
        4 => plain.prop_map(|text| text),
        1 => (plain, plain, plain).prop_map(|(a, b, c)| format!("{a}({b}, ({c}))")),
    ]
}

fn spec() -> impl Strategy<Value = Spec> {
    let name = || "[A-Za-z][A-Za-z0-9_-]{0,8}";
    let positional = prop::collection::vec(value(), 0..3);
    let params = prop::collection::btree_map(name(), value(), 0..4);
    (name(), positional, params).prop_map(|(name, positional, params)| Spec {
        name,
        positional,
        params: params.into_iter().collect(),
    })
}

proptest! {
    #[test]
    fn print_then_parse_is_the_same(spec in spec()) {
        prop_assert_eq!(spec.to_string().parse(), Ok(spec));
    }

    #[test]
    fn lists_round_trip(specs in prop::collection::vec(spec(), 1..4)) {
        let text: Vec<_> = specs.iter().map(Spec::to_string).collect();
        prop_assert_eq!(Spec::parse_list(&text.join("; ")), Ok(specs));
    }

    #[test]
    fn garbage_never_panics(text in "[a-b(),;= ä]{0,24}", other: String) {
        for text in [text, other] {
            if let Ok(specs) = Spec::parse_list(&text) {
                for spec in specs {
                    prop_assert_eq!(spec.to_string().parse(), Ok(spec));
                }
            }
        }
    }
}
