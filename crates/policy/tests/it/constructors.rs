//! Constructors of policies make what specs make, and refuse what specs refuse.

use lsmith_policy::{
    Arce, Auto, Bigtable, Binomial, ClickHouse, Cola, Constant, Exploring, Fifo, FixedTake, Fluid,
    HbaseStripe, Ics, Jungle, Lethe, Leveled, LuceneTiered, MergePolicy, MinLatency, Mixed, Moose,
    None, Pick, Registry, Samt, Score, Spooky, Sweep, Tiered, Triangular, Ucs, Universal,
    Vertiorizon,
};
use lsmith_spec::SpecError;
use std::sync::Arc;

type Made = Result<Arc<dyn MergePolicy>, SpecError>;

fn made<P: MergePolicy + 'static>(policy: Result<P, SpecError>) -> Made {
    policy.map(|policy| Arc::new(policy) as Arc<dyn MergePolicy>)
}

/// Every constructor, with an argument in its range: the spec, and what it makes.
fn all() -> Vec<(&'static str, Made)> {
    vec![
        ("none", made(Ok(None))),
        ("fifo", made(Fifo::new(Option::None))),
        ("fifo(bytes=1GiB)", made(Fifo::new(Some(1 << 30)))),
        ("auto(runs=7)", made(Auto::new(7))),
        ("arce(runs=7)", made(Arce::new(7))),
        ("bigtable(k=7)", made(Bigtable::new(7))),
        ("constant(k=7)", made(Constant::new(7))),
        ("exploring(k=7)", made(Exploring::new(7))),
        ("hbase_stripe(l0=7)", made(HbaseStripe::new(7))),
        ("minlatency(k=7)", made(MinLatency::new(7))),
        ("binomial(k=7)", made(Binomial::new(7))),
        ("tiered(ratio=7)", made(Tiered::new(7))),
        ("leveled(ratio=7.5, pick=oldest)", made(Leveled::new(7.5, Pick::Oldest))),
        ("lethe(delete_within=7)", made(Lethe::new(7))),
        ("sweep(k=7)", made(Sweep::new(7))),
        ("cola(ratio=7)", made(Cola::new(7))),
        ("samt(ratio=7)", made(Samt::new(7))),
        ("universal(trigger=7)", made(Universal::new(7))),
        ("fluid(ratio=7, inner=3, last=2)", made(Fluid::new(7, 3, 2))),
        ("lazy_leveling(ratio=7)", made(Fluid::lazy_leveling(7))),
        ("autumn(ratio=7, c=0.7)", made(Fluid::autumn(7, 0.7))),
        ("moose(price=0.7)", made(Moose::new(0.7))),
        ("vertiorizon(levels=7)", made(Vertiorizon::new(7))),
        ("spooky(ratio=7)", made(Spooky::new(7))),
        ("ucs(w=T7/L3)", made(Ucs::new("T7/L3"))),
        ("lucene_tiered(tier=7)", made(LuceneTiered::new(7))),
        ("clickhouse(base=7)", made(ClickHouse::new(7.0))),
        ("ics(threshold=0.7)", made(Ics::new(0.7))),
        ("triangular(score=ratio)", made(Ok(Triangular::new(Score::Ratio)))),
        ("triangular(score=bytes)", made(Ok(Triangular::new(Score::Bytes)))),
        ("jungle(c=2.5)", made(Jungle::new(2.5))),
        ("full(ratio=7.5)", made(FixedTake::full(7.5))),
        ("rr(ratio=7.5)", made(FixedTake::round_robin(7.5))),
        ("choose_best(ratio=7.5)", made(FixedTake::choose_best(7.5))),
        ("test_mixed(ratio=7.5)", made(FixedTake::test_mixed(7.5))),
        ("mixed(ratio=7.5)", made(Mixed::new(7.5))),
    ]
}

#[test]
fn they_make_what_specs_make() {
    for (spec, policy) in all() {
        let of_spec = Registry::builtin().build(spec).unwrap();
        assert_eq!(policy.unwrap().spec(), of_spec.spec());
    }
}

/// `leveldb` and `rocksdb` are other settings of `Leveled`.
#[test]
fn every_policy_has_one() {
    let made: Vec<String> =
        all().into_iter().map(|(_, policy)| policy.unwrap().spec().name).collect();
    let registry = Registry::builtin();
    let missing: Vec<&str> = registry.infos().iter().map(|info| info.name).collect();
    let missing: Vec<_> =
        missing.into_iter().filter(|name| !made.iter().any(|made| made == name)).collect();
    assert_eq!(missing, ["leveldb", "rocksdb"]);
}

#[test]
fn they_refuse_what_specs_refuse() {
    let refused = [
        ("fifo(bytes=0)", made(Fifo::new(Some(0)))),
        ("arce(runs=65)", made(Arce::new(65))),
        ("constant(k=65)", made(Constant::new(65))),
        ("tiered(ratio=1)", made(Tiered::new(1))),
        ("sweep(k=2)", made(Sweep::new(2))),
        ("leveled(ratio=1)", made(Leveled::new(1.0, Pick::Oldest))),
        ("leveled(ratio=NaN)", made(Leveled::new(f64::NAN, Pick::Oldest))),
        ("jungle(c=0.5)", made(Jungle::new(0.5))),
        ("fluid(ratio=4, inner=4, last=1)", made(Fluid::new(4, 4, 1))),
        ("lazy_leveling(ratio=1)", made(Fluid::lazy_leveling(1))),
        ("lethe(delete_within=0)", made(Lethe::new(0))),
        ("autumn(ratio=7, c=2)", made(Fluid::autumn(7, 2.0))),
        ("moose(price=0)", made(Moose::new(0.0))),
        ("hbase_stripe(l0=0)", made(HbaseStripe::new(0))),
        ("vertiorizon(levels=0)", made(Vertiorizon::new(0))),
        ("spooky(ratio=1)", made(Spooky::new(1))),
        ("ucs(w=X)", made(Ucs::new("X"))),
        ("clickhouse(base=1)", made(ClickHouse::new(1.0))),
        ("ics(threshold=NaN)", made(Ics::new(f64::NAN))),
        ("rr(ratio=inf)", made(FixedTake::round_robin(f64::INFINITY))),
    ];
    for (spec, policy) in refused {
        let of_spec = Registry::builtin().build(spec).unwrap_err();
        assert_eq!(policy.unwrap_err().to_string(), of_spec.to_string());
    }
}

#[test]
fn prices_of_reads_are_said_in_one_way() {
    let registry = Registry::builtin();
    let spec = |text: &str| registry.build(text).unwrap().spec().to_string();
    assert_eq!(spec("auto(reads=as_leveled)"), "auto(runs=24, reads=as_leveled)");
    assert_eq!(spec("ucs(w=adaptive, scan=430B, get=1kB)"), "ucs(w=adaptive, get=1kB)");
    for (text, told) in [
        ("auto(reads=as_leveled, price=2)", "leave price, get and scan out"),
        ("auto(reads=as_leveled, scan=1kB)", "leave price, get and scan out"),
        ("auto(reads=cheap)", "as_leveled"),
        ("auto(price=2, get=1kB)", "they need price=reads"),
        ("arce(scan=1kB)", "they need price=reads"),
        ("ucs(w=T4, get=1kB)", "they need w=adaptive"),
    ] {
        let error = registry.build(text).unwrap_err().to_string();
        assert!(error.contains(told), "{text}: {error}");
    }
}
