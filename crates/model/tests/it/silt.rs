//! SILT's formula against published numbers and simple cases.

use lsmith_model::formulas::{SiltModel, evaluate};
use lsmith_model::{KeyOrder, Model, Popularity, Setting};

/// A hundred million keys in four partitions, with hash stores of 2^17 places.
const KEYS: u64 = 100_000_000;
const PLACES: f64 = 4.0 * 131_072.0;

/// The fraction of lookups that a tag of 15 bits lets through: eight places are looked at.
const FALSE_POSITIVES: f64 = 8.0 / 32_768.0;

fn setting(popularity: &Popularity) -> Setting<'_> {
    Setting {
        popularity,
        memtable: 0.93 * PLACES,
        item_bytes: 1024.0,
        requests: popularity.keys(),
        false_positives: FALSE_POSITIVES,
        loaded: 0.0,
        order: KeyOrder::Random,
    }
}

fn of(spec: &str, setting: &Setting<'_>) -> Model {
    evaluate(&spec.parse().unwrap(), setting).unwrap()
}

fn near(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} instead of {expected}");
}

#[test]
fn costs_are_those_of_the_paper_on_silt() {
    let popularity = Popularity::uniform(KEYS).unwrap();
    let setting = setting(&popularity);
    let model = of("silt", &setting);
    // Section 5 of the SOSP paper: 5.4 writes, and 1.008 reads of keys in the sorted store. They
    // are looked for in the log store and in 31 hash stores on average.
    near(model.write_cost_user(), 5.4, 0.05);
    near(1.0 + FALSE_POSITIVES * (1.0 + model.levels[0].runs), 1.008, 0.0005);
    let costs: Vec<f64> = model.stages.iter().map(|stage| stage.writes).collect();
    let per_log = 100e6 * -(1.0 - 0.93 * PLACES / 100e6).ln();
    let expected = [1.0, PLACES / per_log, 100e6 / (62.0 * per_log)];
    for (found, expected) in costs.iter().zip(expected) {
        near(*found, expected, 1e-4);
    }
    near(model.space_cost, 1.0 + 30.5 * PLACES / 100e6, 1e-6);
}

#[test]
fn partitions_do_not_matter() {
    let [all, part] = [KEYS, KEYS / 4].map(|keys| Popularity::uniform(keys).unwrap());
    let cost = |popularity: &Popularity, share: f64| {
        let setting = Setting { memtable: share * 0.93 * PLACES, ..setting(popularity) };
        of("silt", &setting).write_cost_user()
    };
    near(cost(&all, 1.0), cost(&part, 0.25), 1e-4);
}

#[test]
fn skew_fills_hash_stores_later() {
    let [uniform, zipf] = [0.0, 0.99].map(|skew| Popularity::zipf(KEYS, skew).unwrap());
    let [uniform, zipf] = [&uniform, &zipf].map(|popularity| of("silt", &setting(popularity)));
    for (even, skewed) in uniform.stages.iter().zip(&zipf.stages).skip(1) {
        assert!(skewed.writes < 0.7 * even.writes, "{even:?} {skewed:?}");
    }
}

#[test]
fn a_larger_hash_store_by_hand() {
    // A billion keys hardly repeat: 4 log stores of 1000 entries a row, a larger store of at most
    // 0.00002 of all keys takes 5 rows, and the last goes on.
    let popularity = Popularity::uniform(1_000_000_000).unwrap();
    let setting = Setting { memtable: 1000.0, ..setting(&popularity) };
    let model =
        SiltModel { log: 1000.0, occupancy: 0.5, hash_stores: 4, grown: Some(0.000_020_001) };
    let found = model.evaluate(&setting);
    let writes: Vec<f64> = found.stages.iter().map(|stage| stage.writes).collect();
    let reads: Vec<f64> = found.stages.iter().map(|stage| stage.reads).collect();
    let larger = [1.0, 2.0, 3.0, 4.0].map(|rows| 2.0 * rows / 5.0);
    for (found, expected) in writes.iter().zip([1.0, 2.0, larger.iter().sum(), 50_000.0]) {
        near(*found, expected, 1e-3 * expected);
    }
    let first: f64 = larger[..3].iter().sum();
    let expected = [0.0, 1.0, 2.0 * 0.8 + first, 2.0 * 0.2 + larger[3] + 50_000.0];
    for (found, expected) in reads.iter().zip(expected) {
        near(*found, expected, 1e-3 * expected);
    }
    // Hash stores: none to three. The larger one: none after each fifth row, else 4000 to 16,000.
    near(found.levels[0].runs, 1.5, 1e-12);
    near(found.levels[1].runs, 0.8, 1e-12);
    near(found.levels[1].size, 8000.0, 1.0);
}

/// A larger hash store saves most of what the sorted store costs, with as few stores to look into.
#[test]
fn a_larger_hash_store_saves_writes() {
    let popularity = Popularity::uniform(KEYS).unwrap();
    let setting = setting(&popularity);
    let cost = |spec: &str| of(spec, &setting).write_cost_user();
    assert!(cost("silt(hash_stores=4, grown=0.1)") < 0.45 * cost("silt(hash_stores=4)"));
    // Too small for two rows, it is never written.
    let never = of("silt(hash_stores=4, grown=0.0)", &setting);
    near(never.write_cost_user(), cost("silt(hash_stores=4)"), 1e-12);
    near(never.stages[2].writes, 0.0, 0.0);
}

#[test]
fn a_log_store_of_all_keys_never_fills() {
    let popularity = Popularity::uniform(1000).unwrap();
    for spec in ["silt", "silt(grown=0.5)"] {
        let setting = Setting { memtable: 2000.0, ..setting(&popularity) };
        let model = of(spec, &setting);
        near(model.write_cost_user(), 1.0, 0.0);
        near(model.write_cost_system(), 0.0, 0.0);
        near(model.reads(&setting).runs, 1.0, 0.0);
        near(model.space_cost, 1.0, 0.0);
    }
}

/// Rows without number are summed in steps.
#[test]
fn many_rows_take_no_time() {
    let popularity = Popularity::uniform(1_000_000_000_000).unwrap();
    let setting = Setting { memtable: 1.0, ..setting(&popularity) };
    let model = of("silt(hash_stores=1, grown=0.5)", &setting);
    assert!(model.write_cost_user().is_finite() && model.reads(&setting).runs > 1.0);
}
