//! The policies and parameters that are tried.

use super::ranges;
use lsmith_policy::Registry;
use lsmith_spec::Spec;

/// The bounds on runs that are tried at first.
const RUNS: [u64; 10] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24];

/// The bounds on runs of the fine grid.
const RUNS_FINE: [u64; 15] = [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 14, 16, 20, 24];

/// The ratios of levels of the fine grid.
const RATIOS_FINE: [u64; 14] = [2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32];

/// Ratios of levels that are tried for `jungle` alone, after the fine grid.
const RATIOS_OF_TREES: [u64; 4] = [40, 48, 56, 64];

/// The ratios of levels that are tried at first.
const RATIOS: [u64; 9] = [2, 3, 4, 5, 6, 8, 10, 16, 32];

/// The runs in level 0 that are tried at first.
const LEVEL0: [u64; 3] = [1, 2, 4];

/// The flushes within which `lethe` merges deletes away.
const DELETES_WITHIN: [u64; 3] = [16, 64, 256];

/// How `leveled` picks what goes down.
const PICKS: [&str; 6] =
    ["min_overlap", "round_robin", "whole_level", "narrowest", "best_ratio", "oldest"];

/// The picks that are tried at first. The others are neighbours of these.
const PICKS_FIRST: usize = 3;

/// Parameters that are whole numbers, with their least and greatest useful values.
const NUMBERS: [(&str, u64, u64); 9] = [
    ("k", 2, 64),
    ("runs", 2, 64),
    ("ratio", 2, 64),
    ("l0", 1, 16),
    ("delete_within", 1, 1024),
    ("trigger", 2, 64),
    ("tier", 2, 64),
    ("c", 2, 64),
    ("levels", 1, 16),
];

/// The horizontal parts of `vertiorizon`: the kind of merges, and the levels.
const HORIZONTAL: [(&str, u64); 4] =
    [("tiering", 2), ("tiering", 4), ("leveling", 2), ("leveling", 4)];

/// The runs of level 0 that `hbase_stripe` merges at once. They set the size of its stripes, too.
const STRIPES: [u64; 6] = [1, 2, 3, 4, 8, 16];

/// Policies with one bound on runs.
const STACKS: [&str; 5] = ["minlatency", "binomial", "bigtable", "exploring", "constant"];

/// Policies that count the size of the tree in flushes if they are told to.
const COUNTED: [&str; 2] = ["minlatency", "binomial"];

/// Policies of slots.
const SLOTS: [&str; 2] = ["cola", "samt"];

/// The ratios of slots. With larger ones they cost what they cost with these, or more.
const SLOT_RATIOS: [u64; 6] = [2, 3, 4, 5, 6, 8];

/// The runs at which `universal` merges.
const TRIGGERS: [u64; 6] = [3, 4, 6, 8, 12, 16];

/// The percent of the oldest run from which on `universal` merges windows of keys. With more, its
/// merges of whole runs are as large as all data.
const SPACE_MAX: u64 = 50;

/// Scaling parameters of `ucs`, from few runs to few writes, and lists for levels.
const SCALES: [&str; 10] = ["L10", "L6", "L4", "L3", "N", "T3", "T4", "T8", "T4/L4", "T8/T4/L4"];

/// The sums of a row of `clickhouse` over its largest run. Its sizes in bytes are for merges that
/// take seconds.
const BASES: [f64; 6] = [2.0, 2.5, 3.0, 4.0, 5.0, 8.0];

/// The newer runs, over the oldest of a merge, of `ics`.
const THRESHOLDS: [f64; 7] = [0.4, 0.6, 0.8, 1.0, 1.5, 2.0, 3.0];

/// The bytes of append tables, over live ones, at which `jungle` rewrites them.
const DEAD: [u64; 4] = [2, 3, 5, 10];

/// The bytes of all append tables together, over live ones, that `jungle` keeps to.
const HELD: [f64; 2] = [1.5, 2.0];

/// The scores of `triangular`.
const SCORES: [&str; 2] = ["ratio", "bytes"];

/// The most runs of `auto`, which has about half as many in the mean.
const RUNS_AHEAD: [u64; 9] = [3, 4, 5, 6, 8, 10, 12, 16, 24];

/// The prices of a run of `arce` and `moose`, in written memtables.
const PRICES: [f64; 8] = [0.03, 0.1, 0.3, 0.6, 1.0, 2.0, 5.0, 20.0];

/// Policies that are not tried. `leveled` builds the same trees, with levels that count in tables.
pub(super) const UNTRIED: [&str; 2] = ["leveldb", "rocksdb"];

/// Policies that merge parts of levels.
const PARTIAL: [&str; 5] = ["full", "rr", "choose_best", "test_mixed", "mixed"];

/// Returns every policy of the registry, each with a coarse grid of its parameters.
pub(super) fn coarse(registry: &Registry) -> Vec<Spec> {
    let mut all = grid(registry, &RUNS, &RATIOS, &PICKS[..PICKS_FIRST]);
    all.extend(trees_of_ratios(registry, RATIOS_FINE.iter().chain(&RATIOS_OF_TREES)));
    all
}

/// Returns every policy of the registry, each with a fine grid of its parameters.
pub(super) fn fine(registry: &Registry) -> Vec<Spec> {
    let mut all = grid(registry, &RUNS_FINE, &RATIOS_FINE, &PICKS);
    all.extend(trees_of_ratios(registry, &RATIOS_OF_TREES));
    all
}

/// Returns `jungle` with each of `ratios`. What it costs is not smooth in the ratio: it costs less
/// where the ratio is just large enough that a level less is needed.
fn trees_of_ratios<'a>(
    registry: &Registry,
    ratios: impl IntoIterator<Item = &'a u64>,
) -> Vec<Spec> {
    let of = |ratio: &u64| Spec::bare("jungle").with("c", DEAD[0]).with("ratio", ratio);
    let all = ratios.into_iter().map(of);
    all.filter(|spec| registry.build_spec(spec).is_ok()).collect()
}

fn grid(registry: &Registry, runs: &[u64], ratios: &[u64], picks: &[&str]) -> Vec<Spec> {
    // The most that writing can cost, and the least that reading can.
    let mut all = vec![Spec::bare("none"), Spec::bare("constant").with("k", 1)];
    for &runs in runs {
        let bounded = |name: &str| Spec::bare(name).with("k", runs);
        all.extend(STACKS.iter().map(|name| bounded(name)));
        all.extend(COUNTED.iter().map(|name| bounded(name).with("count", "size")));
        // `sweep` holds at least three runs.
        all.extend((runs >= 3).then(|| bounded("sweep")));
    }
    for &ratio in ratios {
        all.push(Spec::bare("tiered").with("ratio", ratio));
        all.push(Spec::bare("lazy_leveling").with("ratio", ratio));
        all.push(Spec::bare("autumn").with("ratio", ratio));
        all.push(Spec::bare("spooky").with("ratio", ratio));
        all.extend(HORIZONTAL.map(|(merge, levels)| {
            Spec::bare("vertiorizon")
                .with("levels", levels)
                .with("merge", merge)
                .with("ratio", ratio)
        }));
        // Leveling, tiering, and a way between. `cola` and `tiered` have the ratio of 2.
        let fluid = |inner: u64, last: u64| {
            Spec::bare("fluid").with("ratio", ratio).with("inner", inner).with("last", last)
        };
        if ratio > 3 {
            all.extend([fluid(1, 1), fluid(ratio / 2, 1), fluid(ratio - 1, ratio - 1)]);
        }
        all.extend(PARTIAL.iter().map(|name| Spec::bare(*name).with("ratio", ratio)));
        all.extend(DEAD.map(|c| Spec::bare("jungle").with("c", c).with("ratio", ratio)));
        all.extend(
            HELD.map(|space| Spec::bare("jungle").with("space", space).with("ratio", ratio)),
        );
        let lethe = Spec::bare("lethe").with("ratio", ratio);
        all.extend(DELETES_WITHIN.map(|flushes| lethe.clone().with("delete_within", flushes)));
        for pick in picks {
            let leveled = Spec::bare("leveled").with("ratio", ratio);
            all.extend(LEVEL0.map(|l0| leveled.clone().with("l0", l0).with("pick", pick)));
        }
    }
    let slots =
        |name: &&'static str| SLOT_RATIOS.map(|ratio| Spec::bare(*name).with("ratio", ratio));
    all.extend(SLOTS.iter().flat_map(slots));
    all.extend(STRIPES.map(|l0| Spec::bare("hbase_stripe").with("l0", l0)));
    all.extend(SCORES.map(|score| Spec::bare("triangular").with("score", score)));
    all.extend(RUNS_AHEAD.map(|runs| Spec::bare("auto").with("runs", runs)));
    all.extend(PRICES.map(|price| Spec::bare("arce").with("runs", 24).with("price", price)));
    all.extend(PRICES.map(|price| Spec::bare("moose").with("price", price)));
    all.extend(TRIGGERS.map(|trigger| Spec::bare("universal").with("trigger", trigger)));
    all.extend(TRIGGERS.map(|trigger| {
        let spec = Spec::bare("universal").with("trigger", trigger).with("space_max", SPACE_MAX);
        spec.with("incremental", true)
    }));
    all.extend(SCALES.map(|w| Spec::bare("ucs").with("w", w)));
    all.extend(TRIGGERS.map(|tier| Spec::bare("lucene_tiered").with("tier", tier)));
    all.extend(BASES.map(|base| Spec::bare("clickhouse").with("base", base).with("fixed", "0B")));
    all.extend(THRESHOLDS.map(|threshold| Spec::bare("ics").with("threshold", threshold)));
    // A policy of the user's own, over the ranges that it takes.
    for info in registry.infos().iter().filter(|info| !UNTRIED.contains(&info.name)) {
        if all.iter().all(|spec| spec.name != info.name) {
            all.extend(ranges::tried(registry, &Spec::bare(info.name)));
        }
    }
    // Data that a policy drops costs nothing, and is no longer there.
    all.retain(|spec| registry.build_spec(spec).is_ok_and(|policy| !policy.needs().drops));
    all
}

/// Returns `spec` with each of its numbers one and two steps lower and higher, and with every other
/// pick. A step is an eighth of the number, at least 1. Costs are not smooth: two steps can be
/// better where one is worse.
pub(super) fn neighbours(registry: &Registry, spec: &Spec) -> Vec<Spec> {
    let mut all = Vec::new();
    for (name, least, most) in NUMBERS {
        let Some(value) = spec.param(name).and_then(|value| value.parse::<u64>().ok()) else {
            continue;
        };
        let step = (value / 8).max(1);
        let lower = [2 * step, step].map(|less| value.saturating_sub(less));
        for other in lower.into_iter().chain([value + step, value + 2 * step]) {
            if (least..=most).contains(&other) {
                all.push(replaced(spec, name, other));
            }
        }
    }
    if let Some(pick) = spec.param("pick") {
        let others = PICKS.iter().filter(|other| **other != pick);
        all.extend(others.map(|other| replaced(spec, "pick", other)));
    }
    all.retain(|spec| registry.build_spec(spec).is_ok());
    all
}

fn replaced(spec: &Spec, name: &str, value: impl ToString) -> Spec {
    let mut spec = spec.clone();
    for (known, old) in &mut spec.params {
        if known == name {
            *old = value.to_string();
        }
    }
    spec
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parameter grid is better than the defaults alone.
    #[test]
    fn every_policy_of_the_registry_is_tried_with_many_parameters() {
        let registry = Registry::builtin();
        let all = coarse(&registry);
        for info in registry.infos().iter().filter(|info| !info.params.is_empty()) {
            if UNTRIED.contains(&info.name) || info.name == "fifo" {
                assert!(all.iter().all(|spec| spec.name != info.name));
                continue;
            }
            let count = all.iter().filter(|spec| spec.name == info.name).count();
            // All other parameters of `triangular` are limits.
            let least = if info.name == "triangular" { SCORES.len() } else { 6 };
            assert!(count >= least, "{}: {count}", info.name);
        }
    }

    #[test]
    fn neighbours_are_one_step_away() {
        let of = |spec: &str| -> Vec<String> {
            neighbours(&Registry::builtin(), &spec.parse().unwrap())
                .iter()
                .map(ToString::to_string)
                .collect()
        };
        assert_eq!(of("tiered(ratio=2)"), ["tiered(ratio=3)", "tiered(ratio=4)"]);
        assert_eq!(of("minlatency(k=16)"), [12, 14, 18, 20].map(|k| format!("minlatency(k={k})")));
        assert_eq!(
            of("leveled(ratio=4, l0=1, pick=oldest)"),
            [
                "leveled(ratio=2, l0=1, pick=oldest)",
                "leveled(ratio=3, l0=1, pick=oldest)",
                "leveled(ratio=5, l0=1, pick=oldest)",
                "leveled(ratio=6, l0=1, pick=oldest)",
                "leveled(ratio=4, l0=2, pick=oldest)",
                "leveled(ratio=4, l0=3, pick=oldest)",
                "leveled(ratio=4, l0=1, pick=min_overlap)",
                "leveled(ratio=4, l0=1, pick=round_robin)",
                "leveled(ratio=4, l0=1, pick=whole_level)",
                "leveled(ratio=4, l0=1, pick=narrowest)",
                "leveled(ratio=4, l0=1, pick=best_ratio)",
            ]
        );
        assert!(of("none").is_empty());
    }
}
