//! Formulas against their sources, and against simple cases that can be worked out by hand.

use crate::cells::setting;
use lsmith_model::formulas::{
    AppendLevel, AppendNodes, IndexShare, IntervalModel, JungleModel, LeveledModel,
    MemoryBufferModel, Sweep, bound, evaluate, formulas, ignored, scheduled, triangular,
    write_cost_bound,
};
use lsmith_model::{Bound, Ignored, KeyOrder, Model, Popularity, Setting, optimum};

fn near(found: f64, expected: f64, tolerance: f64) {
    let off = (found - expected).abs();
    assert!(off <= tolerance * expected.abs(), "{found} instead of {expected}");
}

fn of(spec: &str, setting: &Setting<'_>) -> Model {
    evaluate(&spec.parse().unwrap(), setting).unwrap()
}

/// So many memtables of a thousand entries each, all keys different.
fn unshared(popularity: &Popularity, flushes: f64) -> Setting<'_> {
    Setting {
        popularity,
        memtable: 1000.0,
        item_bytes: 1000.0,
        requests: flushes * 1000.0,
        false_positives: 0.01,
        loaded: 0.0,
        order: KeyOrder::Random,
    }
}

#[test]
fn textbooks() {
    // A last level of 10^4 memtables and a ratio of 10: four levels.
    let popularity = Popularity::uniform(10_000_000).unwrap();
    let setting = unshared(&popularity, 1.0);
    let row = |spec: &str| {
        let model = of(spec, &setting);
        let reads = model.reads(&setting);
        [model.write_cost_system(), reads.runs, reads.point_miss, reads.point_hit, model.space_cost]
    };
    let rows = [
        ("leveling", [40.0, 4.0, 0.04, 1.03, 10.0 / 9.0]),
        ("tiering", [4.0, 40.0, 0.4, 1.39, 100.0 / 9.0]),
        ("lazy_leveling(ratio=10)", [13.0, 28.0, 0.28, 1.27, 10.0 / 9.0]),
        ("jungle", [4.0 + 1.0 / 3.0, 4.0, 0.04, 1.03, 3.0 * 10.0 / 9.0]),
        ("full", [4.0 * 5.5 + 1.0, 4.0, 0.04, 1.03, f64::NAN]),
        ("rr", [4.0 * 10.0 / 0.93 + 1.0, 4.0, 0.04, 1.03, f64::NAN]),
        ("choose_best", [45.0, 4.0, 0.04, 1.03, f64::NAN]),
    ];
    for (spec, expected) in rows {
        for (found, expected) in row(spec).into_iter().zip(expected) {
            if !expected.is_nan() {
                near(found, expected, 1e-12);
            }
        }
    }
}

#[test]
fn jungle_pays_for_its_index() {
    let popularity = Popularity::uniform(10_000_000).unwrap();
    let setting = unshared(&popularity, 1.0);
    // 16-byte keys, 1 kB values, c = 10: an index share of 0.016 to 0.16.
    let index = IndexShare::both(0.16);
    let model = JungleModel { garbage_ratio: 10.0, ratio: 10.0, index };
    let found = model.evaluate(&setting);
    near(found.write_cost_system(), (4.0 + 0.1) * 1.16, 1e-12);
    near(found.space_cost, 10.0 * 10.0 / 9.0 * 1.16, 1e-12);
    let reads = found.reads(&setting);
    let (plain, filtered) =
        (model.lookup_steps(&reads, 65_536.0, false), model.lookup_steps(&reads, 65_536.0, true));
    near(plain, 4.0 * (10.0_f64.log2() + 16.0), 1e-12);
    near(filtered, 1.04 * (10.0_f64.log2() + 16.0), 1e-12);
}

/// Of several thresholds, the threshold of the last level counts.
#[test]
fn thresholds_of_jungle_by_level() {
    let popularity = Popularity::uniform(10_000_000).unwrap();
    let setting = unshared(&popularity, 1.0);
    let levels = of("jungle(c=3, ratio=10)", &setting).stages.len() - 2;
    assert_eq!(levels, 4);
    for (list, one) in [("7/5/2", "2"), ("7/6/5/4/3", "4"), ("9/8", "8")] {
        let [list, one] = [list, one].map(|c| of(&format!("jungle(c={c})"), &setting));
        near(list.write_cost_system(), one.write_cost_system(), 1e-12);
        near(list.space_cost, one.space_cost, 1e-12);
    }
    for wrong in ["3/0.5", "3/", "3/x"] {
        let spec = format!("jungle(c={wrong}, ratio=10)").parse().unwrap();
        let error = evaluate(&spec, &setting).unwrap_err().to_string();
        assert!(error.contains("for each level"), "{error}");
    }
}

/// By counting leaves. One level takes memtables in, and its append tables have all entries.
#[test]
fn nodes_that_batches_write() {
    let nodes = AppendNodes { reference_bytes: 10.0, entry_bytes: 100.0 };
    let level = |live, tables| AppendLevel { live, tables };
    // A leaf, which every batch writes, for 100 entries; 20 of them are new.
    let IndexShare { written, held } = nodes.share(20.0, &[level(100.0, 1.0)], 1e12, 4.0);
    let leaf = 100.0 * 10.0 + 26.0;
    near(written, leaf / (20.0 * 100.0), 1e-9);
    near(held, (leaf + 4.0 * 100.0 * leaf / 20.0) / (5.0 * 100.0 * 100.0), 1e-9);
    // Ten append tables of a leaf: a batch of one entry writes one of them, and large ones all.
    let IndexShare { written, .. } = nodes.share(1.0, &[level(1000.0, 10.0)], 1e12, 0.0);
    near(written, leaf / 100.0, 1e-9);
    let IndexShare { written, .. } = nodes.share(200.0, &[level(1000.0, 10.0)], 1e12, 0.0);
    near(written, 10.0 * leaf / (200.0 * 100.0), 1e-6);
    // Rewritten with one dead byte for a live one: as many entries as were appended, packed.
    let IndexShare { written, .. } = nodes.share(20.0, &[level(100.0, 1.0)], 2.0, 0.0);
    near(written, (leaf / 20.0 + leaf / 100.0) / 2.0 / 100.0, 1e-9);
    // The paper's store: 20 M records of 1 kB in runs of 64 MB. Another simulation has 0.29 of 3.53
    // bytes for nodes, with c = 3 and references of 16 bytes. Its upper levels keep the ranges of
    // append tables that went down, so that batches there go by more leaves.
    let nodes = AppendNodes { reference_bytes: 16.0, entry_bytes: 1032.0 };
    let table = 64e6 / 1032.0;
    let levels = AppendNodes::levels(table, &[4.0 * table, 40.0 * table, 20e6]);
    let IndexShare { written, .. } = nodes.share(table, &levels, 3.0, 1.0);
    near(written, 0.29 / (3.53 - 0.29), 0.26);
}

/// What stores wrote and held in a run of `lsmith reproduce jungle-nodes`, and the sizes of their
/// levels then.
#[test]
fn nodes_of_stores_are_predicted() {
    for (value, table, live, tables, [c, dead, written, held]) in [
        (100.0, 862.0, [2586.0, 33_800.0, 150e3], [4.2, 64.0, 173.0], [2.0, 0.448, 0.4158, 0.2185]),
        (
            100.0,
            862.0,
            [2586.0, 33_800.0, 150e3],
            [4.2, 64.0, 173.0],
            [10.0, 3.234, 0.4883, 0.2789],
        ),
        (1000.0, 394.0, [1300.0, 15_480.0, 60e3], [5.0, 67.0, 148.0], [2.0, 0.457, 0.0490, 0.0270]),
        (
            1000.0,
            394.0,
            [1300.0, 15_480.0, 60e3],
            [5.0, 67.0, 148.0],
            [10.0, 3.045, 0.0563, 0.0324],
        ),
        (1e4, 99.8, [330.0, 3970.0, 12e3], [15.0, 103.0, 120.0], [2.0, 0.343, 0.0052, 0.0030]),
        (1e4, 99.8, [330.0, 3970.0, 12e3], [15.0, 103.0, 120.0], [10.0, 2.538, 0.0059, 0.0038]),
    ] {
        let entry: f64 = 8.0 + value;
        let nodes = AppendNodes::of_keys(8.0, 1.5, entry, table * entry * (1.0 + dead));
        let level = |(live, tables): (&f64, f64)| AppendLevel { live: *live, tables };
        let levels: Vec<AppendLevel> = live.iter().zip(tables).map(level).collect();
        let found = nodes.share(table, &levels, c, dead);
        near(found.written, written, 0.1);
        near(found.held, held, 0.1);
    }
}

#[test]
fn triangles() {
    let popularity = Popularity::uniform(10_000_000).unwrap();
    let setting = unshared(&popularity, 1.0);
    near(of("triangular(levels=11)", &setting).write_cost_system(), 6.5, 1e-12);
    // By counting: the mean of 2 to the power of the ones at the end of a number.
    for levels in 1..=12_u32 {
        let sum: u64 = (0..1_u64 << levels).map(|i| 1 << i.trailing_ones()).sum();
        let mean = sum as f64 / f64::from(1 << levels);
        near(triangular(&setting, levels).write_cost_system(), mean, 1e-12);
    }
}

#[test]
fn whole_runs_that_share_no_key() {
    // Costs and mean runs of unit simulations.
    let popularity = Popularity::uniform(1_000_000_000_000_000).unwrap();
    let cases = [
        ("tiered(ratio=4)", 1000.0, 4.72, 7.40),
        ("tiered(ratio=4)", 5000.0, 6.61, 8.85),
        ("tiered(ratio=4)", 20_000.0, 7.61, 10.35),
        ("tiered(ratio=8)", 20_000.0, 4.82, 15.86),
        ("tiered(ratio=16)", 20_000.0, 3.82, 24.27),
        ("tiered(ratio=32)", 20_000.0, 2.97, 40.07),
        ("constant(k=6)", 1000.0, 84.33, 3.50),
        ("constant(k=6)", 5000.0, 418.0, 3.50),
        ("constant(k=6)", 20_000.0, 1668.0, 3.50),
        ("none", 1000.0, 1.0, 500.5),
    ];
    for (spec, flushes, write_cost, runs) in cases {
        let setting = unshared(&popularity, flushes);
        let model = of(spec, &setting);
        println!(
            "{spec} {flushes}: {:.3} {:.3}",
            model.write_cost_system(),
            model.reads(&setting).runs
        );
        assert!((model.write_cost_system() - write_cost).abs() <= 0.0051, "{spec} {flushes}");
        assert!((model.reads(&setting).runs - runs).abs() <= 0.0051, "{spec} {flushes}");
    }
}

#[test]
fn the_bound_of_binomial_and_minlatency_holds() {
    // Eager costs of unit simulations, k and n: MinLatency, Binomial.
    let cases = [
        (4, 1000.0, 8.01, 8.84),
        (4, 20_000.0, 19.12, 19.11),
        (6, 1000.0, 5.92, 5.57),
        (6, 20_000.0, 11.00, 10.93),
        (10, 1000.0, 3.64, 5.37),
        (10, 20_000.0, 7.26, 7.45),
    ];
    for (runs, flushes, minlatency, binomial) in cases {
        let bound = write_cost_bound(flushes, runs);
        println!("k {runs} n {flushes}: {bound:.2}, {minlatency} {binomial}");
        assert!(bound >= minlatency, "{bound} below {minlatency}");
        // Binomial merges early: before n reaches 4^k it may cost more.
        if flushes > 4.0_f64.powi(runs as i32) {
            assert!(bound >= binomial, "{bound} below {binomial}");
        }
        assert!(bound <= 1.4 * minlatency, "{bound} far above {minlatency}");
    }
    // A full tree: no flush is written more often than it is deep.
    near(write_cost_bound(1000.0, 10), 4.0, 1e-12);
    near(write_cost_bound(1.0, 3), 1.0, 1e-12);
    // Above the least possible.
    let popularity = Popularity::uniform(24_000_000).unwrap();
    let setting = unshared(&popularity, 24_000.0);
    let cost = |spec: &str| of(spec, &setting).write_cost_system();
    assert!(cost("optimum(k=6)") < cost("minlatency(k=6)"));
    assert_eq!(cost("minlatency(k=6)"), cost("binomial(k=6)"));
}

#[test]
fn one_level_is_rewritten_each_time() {
    // Level 0 straight into a last level of all keys: that is written for each 4 memtables.
    let popularity = Popularity::uniform(1_000_000).unwrap();
    let setting = setting(&popularity);
    let model = LeveledModel {
        memtable: 4000.0,
        level0_merged: 4.0,
        level0_kept: 1.5,
        sizes: Vec::new(),
        sweep: Sweep::RoundRobin,
        false_overlap: 1.0,
    };
    let costs: Vec<f64> =
        model.evaluate(&setting).stages.iter().map(|stage| stage.writes).collect();
    assert_eq!(costs.len(), 3);
    near(costs[2], 1_000_000.0 / 16_000.0, 1e-12);
}

#[test]
fn a_random_choice_costs_more_than_turns() {
    let popularity = Popularity::zipf(10_000_000, 0.5).unwrap();
    let setting = setting(&popularity);
    for spec in ["memory_buffer(pick=random)", "rocksdb"] {
        let in_turn = if spec == "rocksdb" { "leveldb" } else { "memory_buffer" };
        assert!(of(spec, &setting).write_cost_user() > of(in_turn, &setting).write_cost_user());
    }
}

#[test]
fn a_swept_buffer_takes_what_an_interval_says() {
    let popularity = Popularity::uniform(10_000_000).unwrap();
    let setting = setting(&popularity);
    let model = MemoryBufferModel {
        buffer: 4000.0,
        sizes: vec![40_000.0],
        sweep: Sweep::RoundRobin,
        false_overlap: 0.0,
    };
    let found = model.evaluate(&setting);
    let interval = popularity.interval(4000.0);
    let inverse = popularity.inverse(40_000.0);
    near(found.stages[1].writes, popularity.unique(interval + inverse) / interval, 1e-12);
    let below = interval + popularity.interval(40_000.0);
    near(found.stages[2].writes, 10_000_000.0 / below, 1e-12);
    assert_eq!(found.flushes.merged, 1.0);
}

#[test]
fn intervals_by_steps() {
    // Where intervals divide each other the mean between them is the mean over steps.
    let popularity = Popularity::zipf(1_000_000, 0.99).unwrap();
    let setting = setting(&popularity);
    let first = 20_000.0;
    let steps = 8;
    let intervals = vec![first, first * f64::from(steps)];
    let evaluate = |many_at_once| {
        let intervals = intervals.clone();
        IntervalModel { memtable: 5000.0, intervals, many_at_once }.evaluate(&setting)
    };
    let unique = |step: i32| popularity.unique(f64::from(step) * first);
    let apart: f64 = (1..=steps).map(unique).sum::<f64>() / (f64::from(steps) * first);
    near(evaluate(false).stages[2].writes, apart, 0.005);
    // With many at once the last of the steps goes on.
    let at_once: f64 = (1..steps).map(unique).sum::<f64>() / (f64::from(steps) * first);
    near(evaluate(true).stages[2].writes, at_once, 0.005);
    near(evaluate(true).stages[3].writes, 1e6 / (first * f64::from(steps)), 1e-12);
}

#[test]
fn every_formula_is_sound_everywhere() {
    for (keys, skew) in [(1, 0.0), (100, 0.0), (10_000, 1.6), (3_000_000, 0.99), (10_000_000, 0.3)]
    {
        let popularity = Popularity::zipf(keys, skew).unwrap();
        for memtable in [500.0, 1e5] {
            let setting = Setting { memtable, ..setting(&popularity) };
            for info in formulas() {
                let model = of(info.name, &setting);
                let place = format!("{} {keys} {skew} {memtable}", info.name);
                let reads = model.reads(&setting);
                for (what, figure) in [
                    ("write", model.write_cost_user() - 1.0),
                    ("system", model.write_cost_system()),
                    ("reads", model.merge_read_cost()),
                    ("runs", reads.runs),
                    ("miss", reads.point_miss),
                    ("hit", reads.point_hit - 1.0),
                    ("space", model.space_cost),
                ] {
                    assert!(figure.is_finite() && figure >= 0.0, "{place}: {what} {figure}");
                }
                assert!(reads.point_hit <= reads.runs.max(1.0) + 1e-9, "{place}: {reads:?}");
                let stages = model.stages.iter().map(|stage| stage.writes);
                assert!(stages.clone().all(|cost| cost >= 0.0), "{place}: {:?}", model.stages);
            }
        }
    }
}

#[test]
fn filters_and_hits() {
    let popularity = Popularity::zipf(10_000_000, 0.99).unwrap();
    let with = |false_positives| {
        let setting = Setting { false_positives, ..setting(&popularity) };
        of("leveldb", &setting).reads(&setting)
    };
    let bare = with(1.0);
    let filtered = with(0.01);
    assert_eq!(bare.point_miss, bare.runs);
    near(filtered.point_miss, 0.01 * bare.runs, 1e-12);
    // Popular keys are found early.
    assert!(bare.point_hit < bare.runs && bare.point_hit > 1.5, "{bare:?}");
    near(filtered.point_hit - 1.0, 0.01 * (bare.point_hit - 1.0), 1e-9);
}

#[test]
fn a_schedule_costs_what_the_optimum_says() {
    let popularity = Popularity::unshared(5_000_000).unwrap();
    let setting = unshared(&popularity, 5000.0);
    for runs_max in [3, 4, 6, 10] {
        let model = scheduled(&setting, optimum::schedule(5000, runs_max));
        near(model.write_cost_system(), optimum::write_cost_least(5000, runs_max), 1e-9);
        near(model.space_cost, 1.0, 1e-9);
        assert!(model.reads(&setting).runs <= runs_max as f64);
    }
    // Shared keys make merges smaller, and take space.
    let shared = Popularity::uniform(500_000).unwrap();
    let shared = unshared(&shared, 5000.0);
    let model = scheduled(&shared, optimum::schedule(5000, 4));
    assert!(model.write_cost_system() < optimum::write_cost_least(5000, 4));
    assert!(model.space_cost > 1.0 && model.space_cost < 4.0, "{}", model.space_cost);
}

#[test]
fn space_of_runs_that_share_keys() {
    // Nothing is shared: all there is is live. Fifty requests per key: runs hold the same keys.
    let popularity = Popularity::unshared(2_000_000).unwrap();
    let alone = unshared(&popularity, 2000.0);
    let popularity = Popularity::uniform(40_000).unwrap();
    let shared = unshared(&popularity, 2000.0);
    for spec in ["none", "constant(k=6)", "tiered(ratio=4)"] {
        near(of(spec, &alone).space_cost, 1.0, 1e-6);
        assert!(of(spec, &shared).space_cost > 1.05, "{spec}");
    }
    // Merged into one run of 40,000 keys each six flushes of a thousand.
    let found = of("constant(k=6)", &shared).space_cost;
    assert!(found < 1.0 + 5.0 / 40.0, "{found}");
}

/// `none` walked over all runs, `universal` carried out all flushes: hours.
#[test]
fn no_size_takes_long_or_overflows() {
    let huge = Popularity::uniform(u64::MAX).unwrap();
    for (memtable, requests) in [(1e-19, 1e3), (1e-3, u64::MAX as f64), (1e19, u64::MAX as f64)] {
        let setting = Setting { memtable, requests, ..unshared(&huge, 1.0) };
        for info in formulas() {
            match evaluate(&info.name.parse().unwrap(), &setting) {
                Ok(model) => {
                    let reads = model.reads(&setting);
                    let figures = [model.write_cost_user(), reads.runs, reads.point_hit];
                    let is_sound = figures.iter().all(|figure| *figure >= 0.99);
                    assert!(is_sound && model.space_cost.is_finite(), "{}: {figures:?}", info.name);
                }
                Err(error) => {
                    let error = error.to_string();
                    assert!(error.contains("at most 4000000"), "{}: {error}", info.name);
                    assert_eq!(info.name, "universal");
                }
            }
        }
    }
}

/// The share of runs that a lookup considers, run by run and taken together.
#[test]
fn many_runs_are_taken_together() {
    let popularity = Popularity::zipf(1_000_000, 0.99).unwrap();
    let setting = Setting { memtable: 100.0, ..unshared(&popularity, 20_000.0) };
    let setting = Setting { requests: 2e6, ..setting };
    let model = of("none", &setting);
    let reads = model.reads(&setting);
    let runs = reads.runs.floor() as u64;
    let requests = popularity.inverse(model.levels[0].size / model.levels[0].runs);
    let one_by_one: f64 = (0..runs).map(|run| popularity.fresh(run as f64 * requests)).sum();
    near(reads.point_hit, 1.0 + 0.01 * (one_by_one - 1.0), 1e-3);
}

/// Not all keys are requested in as many requests as there are keys: what is live is less, and the
/// space was divided by all keys.
#[test]
fn a_grown_tree_holds_at_least_what_is_live() {
    for keys in [1000, 10_000, 100_000, 1_000_000, 30_000_000] {
        for skew in [0.0, 0.99] {
            let popularity = Popularity::zipf(keys, skew).unwrap();
            for memtable in [0.5, 300.0, 4194.304] {
                let setting = Setting { memtable, ..setting(&popularity) };
                for spec in [
                    "leveled",
                    "leveled(ratio=4, l0=1, pick=round_robin)",
                    "leveled(pick=whole_level)",
                    "none",
                    "constant",
                    "tiered",
                ] {
                    let space = of(spec, &setting).space_cost;
                    let place = format!("{spec} {keys} {skew} {memtable}");
                    assert!(space > 0.999 && space.is_finite(), "{place}: {space}");
                }
            }
        }
    }
}

/// Levels above the last were added to all data, also where no key is written twice.
#[test]
fn no_bound_holds_more_than_was_written() {
    let popularity = Popularity::unshared(1_000_000).unwrap();
    let setting = unshared(&popularity, 1000.0);
    for spec in ["full", "rr", "choose_best(ratio=6)"] {
        near(of(spec, &setting).space_cost, 1.0, 1e-12);
    }
}

#[test]
fn bounds_are_marked() {
    let popularity = Popularity::unshared(1_000_000).unwrap();
    let random = unshared(&popularity, 100.0);
    let large = Setting { memtable: 0.4, ..random };
    let bound = |spec: &str| bound(&spec.parse().unwrap(), &random).unwrap();
    for spec in ["minlatency", "binomial(k=3)", "leveling", "full", "rr", "choose_best"] {
        assert_eq!(bound(spec), Some(Bound::Upper), "{spec}");
    }
    for spec in ["optimum", "leveled(pick=oldest)"] {
        assert_eq!(bound(spec), Some(Bound::Lower), "{spec}");
    }
    for spec in ["leveldb", "leveled", "tiered", "cola", "jungle"] {
        assert_eq!(bound(spec), None, "{spec}");
    }
    let leveled = "leveled".parse().unwrap();
    assert_eq!(lsmith_model::formulas::bound(&leveled, &large), Ok(Some(Bound::Upper)));
    let ascending = Setting { order: KeyOrder::Ascending, ..random };
    let ignored = |spec: &str, setting: &Setting<'_>| ignored(&spec.parse().unwrap(), setting);
    assert_eq!(ignored("leveldb", &random), Ok(vec![]));
    assert_eq!(ignored("leveldb", &ascending), Ok(vec![Ignored::KeyOrder]));
    assert_eq!(ignored("leveled", &ascending), Ok(vec![]));
    assert_eq!(ignored("minlatency", &random), Ok(vec![Ignored::Popularity]));
    near(of("leveled", &ascending).write_cost_system(), 1.0, 1e-12);
}

/// The flush of every memtable was counted twice where it is the first slot of level 0.
#[test]
fn a_memtable_of_cola_is_flushed_or_merged() {
    let popularity = Popularity::uniform(10_000_000).unwrap();
    let model = of("cola(ratio=3)", &setting(&popularity));
    let flushed = model.flushes.size;
    let outputs = model.write_cost_user() - 1.0;
    // Two of three flushes are merged with what level 0 holds.
    near(model.write_cost_system(), (outputs + flushed * 2.0 / 3.0) / flushed, 1e-12);
}

#[test]
fn optimal_sizes_keep_to_the_levels_allowed() {
    let popularity = Popularity::zipf(10_000_000, 0.99).unwrap();
    let setting = setting(&popularity);
    let with = |rest: &str| of(&format!("leveldb(sizes=optimal{rest})"), &setting);
    let fixed = of("leveldb", &setting);
    // Level 0 and the last level are not among the sizes.
    let levels = |model: &Model| model.levels.len() - 2;
    let same = with(", levels=geometric");
    assert_eq!(levels(&same), levels(&fixed));
    let few = with(", levels=1");
    let limited = with(", read_cost_max=5");
    assert_eq!((levels(&few), levels(&limited)), (1, 2));
    let costs = [&with(""), &same, &limited, &few].map(Model::write_cost_user);
    assert!(costs.is_sorted(), "{costs:?}");
    assert!(costs[1] < 0.95 * fixed.write_cost_user(), "{costs:?}");
    assert!(limited.reads(&setting).runs <= 5.0);
    let refused = |spec: &str| evaluate(&spec.parse().unwrap(), &setting).unwrap_err().to_string();
    let message = refused("leveldb(sizes=optimal, levels=4, read_cost_max=5)");
    assert!(message.contains("6.5"), "{message}");
    assert!(refused("leveldb(levels=3)").contains("sizes = optimal"));
}
