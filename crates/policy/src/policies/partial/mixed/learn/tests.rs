//! Searches on costs that are known, and notes as text.

use super::search::{GRID, ThresholdSearch, Trial};
use super::step::Step;
use super::strays;
use std::cmp::Ordering;

/// Returns what a search finds where settings cost as `cost` says, and how many it tries.
fn found(search: ThresholdSearch, cost: impl Fn(u64) -> u64) -> (u64, usize) {
    let mut trial = search.first_trial();
    loop {
        assert!(trial.known.iter().all(|(setting, _)| *setting != trial.setting), "twice");
        trial.known.push((trial.setting, cost(trial.setting)));
        match search.next(&trial.known) {
            Some(setting) => trial.setting = setting,
            None => return (trial.best(), trial.known.len()),
        }
    }
}

#[test]
fn both_searches_find_the_bottom_of_any_parabola() {
    for bottom in 0..=GRID {
        let cost = |setting: u64| 1000 + 7 * setting.abs_diff(bottom).pow(2);
        let (linear, tried) = found(ThresholdSearch::Linear, cost);
        assert_eq!((linear, tried as u64), (bottom, (bottom + 2).min(GRID + 1)));
        let (golden, tried) = found(ThresholdSearch::Golden, cost);
        assert_eq!(golden, bottom);
        assert!(tried <= 7, "{tried} settings tried for {bottom}");
    }
}

#[test]
fn among_equals_the_smaller_setting_is_best() {
    assert_eq!(found(ThresholdSearch::Linear, |_| 5).0, 0);
    assert_eq!(found(ThresholdSearch::Golden, |_| 5).0, 0);
}

#[test]
fn steps_are_read_as_they_were_printed() {
    let trial = Trial { setting: 3, known: vec![(0, 900), (1, 800), (2, 850)] };
    let steps = [
        Step::Watch,
        Step::Tau { level: 2, trial },
        Step::Full,
        Step::Settle { cost: 12, volume: 34 },
        Step::Part { cost: 12, volume: 34 },
        Step::Done,
    ];
    for step in steps {
        assert_eq!(Step::read(&step.to_string()), Some(step));
    }
    for text in ["", "tau", "tau 2", "tau 2 3 4", "part 1", "settle 1", "done 1", "full x"] {
        assert_eq!(Step::read(text), None, "{text}");
    }
}

#[test]
fn a_quarter_more_or_less_is_another_workload() {
    let sides = [124, 125, 126, 75, 74].map(|cost| strays(cost, 100));
    use Ordering::{Equal, Greater, Less};
    assert_eq!(sides, [Equal, Equal, Greater, Equal, Less]);
}
