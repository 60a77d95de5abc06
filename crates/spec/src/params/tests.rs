use super::*;

const KNOWN: [&str; 6] = ["k", "lambda", "table", "pick", "reuse", "file"];

fn with<T>(text: &str, read: impl Fn(Params) -> Result<T, SpecError>) -> Result<T, String> {
    let spec: Spec = text.parse().unwrap();
    Params::new(&spec, &KNOWN, 1).and_then(read).map_err(|error| error.to_string())
}

fn refused(message: &str) -> Result<u64, String> {
    Err(message.to_owned())
}

#[test]
fn defaults_stand_in_for_what_is_not_given() {
    assert_eq!(with("p", |p| p.count("k", 5, 1..=64)), Ok(5));
    assert_eq!(with("p", |p| p.count_if_given("k", 1..=64)), Ok(None));
    assert_eq!(with("p", |p| p.bytes("table", 4096, 1..)), Ok(4096));
    assert_eq!(with("p", |p| p.bytes_if_given("table", 1..)), Ok(None));
    assert_eq!(with("p", |p| p.real("lambda", 1.2, 1.0..)), Ok(1.2));
    assert_eq!(with("p", |p| p.choice("pick", "a", &["a", "b"])), Ok("a"));
    assert_eq!(with("p", |p| p.flag("reuse", true)), Ok(true));
    assert_eq!(with("p", |p| Ok(p.text("file").is_none() && !p.has("file"))), Ok(true));
}

#[test]
fn given_values_are_read() {
    let text = "p(x.csv, k=2k, lambda=1.5, table=4MiB, pick=b, reuse=false, file=a/b)";
    assert_eq!(with(text, |p| p.count("k", 5, 1..=2000)), Ok(2000));
    assert_eq!(with(text, |p| p.bytes("table", 0, ..)), Ok(4 << 20));
    assert_eq!(with(text, |p| p.real_if_given("lambda", 1.0..=1.5)), Ok(Some(1.5)));
    assert_eq!(with(text, |p| p.choice("pick", "a", &["a", "b"])), Ok("b"));
    assert_eq!(with(text, |p| p.flag("reuse", true)), Ok(false));
    assert_eq!(with(text, |p| Ok(p.text("file") == Some("a/b") && p.has("file"))), Ok(true));
    assert_eq!(with(text, |p| p.positional(0, "a file").map(str::to_owned)), Ok("x.csv".into()));
}

#[test]
fn ranges_are_named_in_the_units_of_the_value() {
    let k = |range: (Bound<u64>, Bound<u64>)| with("p(k=0)", |p| p.count("k", 5, range));
    let below = |words: &str| refused(&format!("k = 0 is out of range: expected {words}"));
    assert_eq!(k((Bound::Included(1), Bound::Included(64))), below("1 to 64"));
    assert_eq!(
        k((Bound::Included(1), Bound::Excluded(2000))),
        below("at least 1 and less than 2k")
    );
    assert_eq!(k((Bound::Excluded(0), Bound::Unbounded)), below("more than 0"));
    assert_eq!(
        with("p(table=1kB)", |p| p.bytes("table", 1, 4096..=1 << 30)),
        refused("table = 1kB is out of range: expected 4KiB to 1GiB")
    );
    assert_eq!(
        with("p(lambda=0.5)", |p| p.real("lambda", 1.2, 1.0..)).unwrap_err(),
        "lambda = 0.5 is out of range: expected at least 1"
    );
}

#[test]
fn values_of_the_wrong_kind_are_refused() {
    assert_eq!(
        with("p(k=few)", |p| p.count("k", 5, ..)),
        refused("k = few is not a whole number such as 5, 100k or 2M")
    );
    for text in ["p(lambda=NaN)", "p(lambda=inf)", "p(lambda=x)"] {
        let message = with(text, |p| p.real("lambda", 1.2, ..)).unwrap_err();
        assert!(message.ends_with("is not a number such as 0.5 or 10"), "{message}");
    }
    assert_eq!(
        with("p(pick=oldst)", |p| p.choice("pick", "a", &["oldest", "whole"])).unwrap_err(),
        "unknown value `oldst` of `pick`; did you mean `oldest`?"
    );
    assert_eq!(
        with("p(reuse=perhaps)", |p| p.flag("reuse", true)).unwrap_err(),
        "unknown value `perhaps` of `reuse`; expected one of: true, false"
    );
}

#[test]
fn arguments_nobody_asked_for_are_refused() {
    assert_eq!(
        with("p(pik=a)", |_| Ok(0)),
        refused("unknown parameter `pik` of `p`; did you mean `pick`?")
    );
    assert_eq!(
        with("p(a, b)", |_| Ok(0)),
        refused("`p` takes 1 unnamed argument(s), found `b` as well")
    );
    assert_eq!(
        with("p", |p| p.positional(0, "a file name").map(|_| 0)),
        refused("`p` needs a file name")
    );

    let spec: Spec = "none(3)".parse().unwrap();
    let error = Params::new(&spec, &[], 0).unwrap_err();
    assert_eq!(error.to_string(), "`none` takes only parameters of the form name=value, found `3`");
    let spec: Spec = "none(k=3)".parse().unwrap();
    let error = Params::new(&spec, &[], 0).unwrap_err();
    assert_eq!(error.to_string(), "unknown parameter `k` of `none`: there are none");
}
