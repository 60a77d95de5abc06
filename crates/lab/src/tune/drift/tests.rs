use super::*;

const COSTS: [f64; 4] = [4.0, 1.0, 0.1, 9.0];

fn mix() -> Mix {
    Mix { writes: 0.5, hits: 0.4, misses: 0.05, scans: 0.05 }
}

#[test]
fn no_distance_changes_nothing() {
    let worst = mix().worst(&COSTS, 0.0);
    assert!(worst.distance_from(&mix()) < 1e-9, "{worst:?}");
}

/// No mix on a fine grid within the distance costs more.
#[test]
fn the_worst_mix_is_the_worst() {
    for distance in [0.05, 0.3, 1.0] {
        let worst = mix().worst(&COSTS, distance);
        assert!((worst.distance_from(&mix()) - distance).abs() < 1e-6, "{worst:?}");
        let steps = 40;
        let mut most: f64 = 0.0;
        for writes in 0..=steps {
            for hits in 0..=steps - writes {
                for misses in 0..=steps - writes - hits {
                    let scans = steps - writes - hits - misses;
                    let share = |count: i32| f64::from(count) / f64::from(steps);
                    let other = Mix::of_shares([writes, hits, misses, scans].map(share));
                    if other.distance_from(&mix()) <= distance {
                        most = most.max(other.cost(&COSTS));
                    }
                }
            }
        }
        let found = worst.cost(&COSTS);
        assert!(found >= most && found < 1.15 * most, "{distance}: {found}, on a grid {most}");
    }
}

#[test]
fn beyond_everything_only_the_dearest_is_left() {
    let worst = mix().worst(&COSTS, 10.0);
    assert!(worst.scans > 0.999, "{worst:?}");
}

#[test]
fn what_is_never_expected_has_a_share() {
    let mix = Mix::of_counts([100.0, 0.0, 0.0, 0.0]);
    assert!((mix.shares().iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!((mix.scans - 0.01 / 1.03).abs() < 1e-12, "{mix:?}");
}

#[test]
fn popularities_are_as_far_as_asked_for() {
    let popularity = Popularity::zipf(100_000, 0.99).unwrap();
    for direction in [-1.0, 1.0] {
        let power = power_at(&popularity, 0.3, direction).unwrap();
        assert!((power - 1.0) * direction > 0.0, "{power}");
        assert!((divergence(&popularity, power) - 0.3).abs() < 1e-6);
        let raised = raised(&popularity, power).unwrap();
        let fewer = raised.unique(10_000.0) < popularity.unique(10_000.0);
        assert_eq!(fewer, direction > 0.0);
    }
    // So far away that all keys are alike, and more.
    assert!(power_at(&popularity, 100.0, -1.0).unwrap() < 1e-6);
    assert_eq!(power_at(&Popularity::uniform(1000).unwrap(), 0.3, 1.0), None);
}
