//! The policies and parameters that are tried.

use lsmith_policy::Registry;
use lsmith_spec::Spec;

/// The bounds on runs that are tried at first.
const RUNS: [u64; 10] = [2, 3, 4, 5, 6, 8, 10, 12, 16, 24];

/// The ratios of levels that are tried at first.
const RATIOS: [u64; 9] = [2, 3, 4, 5, 6, 8, 10, 16, 32];

/// The runs in level 0 that are tried at first.
const LEVEL0: [u64; 3] = [1, 2, 4];

/// How `leveled` picks what goes down.
const PICKS: [&str; 6] =
    ["min_overlap", "round_robin", "narrowest", "best_ratio", "oldest", "whole_level"];

/// Parameters that are whole numbers, with their least and greatest useful values.
const NUMBERS: [(&str, u64, u64); 3] = [("k", 2, 64), ("ratio", 2, 64), ("l0", 1, 16)];

/// Policies with one bound on runs.
const STACKS: [&str; 5] = ["minlatency", "binomial", "bigtable", "exploring", "constant"];

/// Policies that count the size of the tree in flushes if they are told to.
const COUNTED: [&str; 2] = ["minlatency", "binomial"];

/// Policies that merge parts of levels.
const PARTIAL: [&str; 5] = ["full", "rr", "choose_best", "test_mixed", "mixed"];

/// Returns every policy of the registry, each with a grid of its parameters.
pub(super) fn grid() -> Vec<Spec> {
    let mut all = vec![Spec::bare("none")];
    for runs in RUNS {
        let bounded = |name: &str| Spec::bare(name).with("k", runs);
        all.extend(STACKS.iter().map(|name| bounded(name)));
        all.extend(COUNTED.iter().map(|name| bounded(name).with("count", "size")));
        // `sweep` holds at least three runs.
        all.extend((runs >= 3).then(|| bounded("sweep")));
    }
    for ratio in RATIOS {
        all.push(Spec::bare("tiered").with("ratio", ratio));
        all.extend(PARTIAL.iter().map(|name| Spec::bare(*name).with("ratio", ratio)));
        for pick in PICKS {
            let leveled = Spec::bare("leveled").with("ratio", ratio);
            all.extend(LEVEL0.map(|l0| leveled.clone().with("l0", l0).with("pick", pick)));
        }
    }
    let is_known = |spec: &Spec| Registry::builtin().build_spec(spec).is_ok();
    all.retain(is_known);
    all
}

/// Returns `spec` with each of its numbers one step lower and one step higher. A step is an eighth
/// of the number, at least 1.
pub(super) fn neighbours(spec: &Spec) -> Vec<Spec> {
    let mut all = Vec::new();
    for (name, least, most) in NUMBERS {
        let Some(value) = spec.param(name).and_then(|value| value.parse::<u64>().ok()) else {
            continue;
        };
        let step = (value / 8).max(1);
        for other in [value.saturating_sub(step), value + step] {
            if other != value && (least..=most).contains(&other) {
                all.push(replaced(spec, name, other));
            }
        }
    }
    all.retain(|spec| Registry::builtin().build_spec(spec).is_ok());
    all
}

fn replaced(spec: &Spec, name: &str, value: u64) -> Spec {
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

    /// A policy that is added to the registry must be added to the grid.
    #[test]
    fn every_policy_of_the_registry_is_tried() {
        let all = grid();
        for info in Registry::builtin().infos() {
            assert!(all.iter().any(|spec| spec.name == info.name), "{}", info.name);
        }
        let picks = all.iter().filter_map(|spec| spec.param("pick"));
        assert!(PICKS.iter().all(|pick| picks.clone().any(|tried| tried == *pick)));
    }

    #[test]
    fn neighbours_are_one_step_away() {
        let of = |spec: &str| -> Vec<String> {
            neighbours(&spec.parse().unwrap()).iter().map(ToString::to_string).collect()
        };
        assert_eq!(of("tiered(ratio=2)"), ["tiered(ratio=3)"]);
        assert_eq!(of("minlatency(k=16)"), ["minlatency(k=14)", "minlatency(k=18)"]);
        assert_eq!(
            of("leveled(ratio=4, l0=1, pick=oldest)"),
            [
                "leveled(ratio=3, l0=1, pick=oldest)",
                "leveled(ratio=5, l0=1, pick=oldest)",
                "leveled(ratio=4, l0=2, pick=oldest)",
            ]
        );
        assert!(of("none").is_empty());
    }
}
