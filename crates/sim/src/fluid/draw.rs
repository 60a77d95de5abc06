//! Random draws around expected values, for blocks that are simulated one by one.

use lsmith_workload::Rng;

/// The seed of all random draws, so that a simulation always gives the same result.
pub(super) const SEED: u64 = 1;

/// Counts with at least this mean are drawn from a normal distribution.
const LARGE: f64 = 30.0;

/// Draws the number of rare events, given its `mean`.
pub(super) fn count(draws: &mut Rng, mean: f64) -> u64 {
    if mean > LARGE {
        return (mean + mean.sqrt() * normal(draws)).round().max(0.0) as u64;
    }
    // The number of draws whose product stays above the limit (Knuth).
    let limit = (-mean).exp();
    let mut product = 1.0 - draws.unit();
    let mut count = 0;
    while product > limit {
        product *= 1.0 - draws.unit();
        count += 1;
    }
    count
}

/// Draws how many of `count` events happen, each with the given probability.
pub(super) fn part_of(draws: &mut Rng, count: u64, probability: f64) -> u64 {
    if count as f64 > LARGE {
        let mean = count as f64 * probability;
        let spread = (mean * (1.0 - probability)).sqrt();
        return ((mean + spread * normal(draws)).round().max(0.0) as u64).min(count);
    }
    (0..count).filter(|_| draws.unit() < probability).count() as u64
}

/// Draws the sum of `count` gaps between random places, each 1 on average. The approximation is the
/// cube of a normal draw (Wilson & Hilferty, 1931).
pub(super) fn gaps(draws: &mut Rng, count: u64) -> f64 {
    let count = count.max(1) as f64;
    let root = 1.0 - 1.0 / (9.0 * count) + normal(draws) / (3.0 * count.sqrt());
    count * root.max(0.0).powi(3)
}

/// Draws the fraction of the sum of `count` gaps that all gaps except the last have.
pub(super) fn part_before_last(draws: &mut Rng, count: u64) -> f64 {
    match count {
        0 | 1 => 0.0,
        _ => (1.0 - draws.unit()).powf(1.0 / (count - 1) as f64),
    }
}

/// Draws a normal value with mean 0 and variance 1, by the method of Box and Muller.
pub(super) fn normal(draws: &mut Rng) -> f64 {
    let radius = (-2.0 * (1.0 - draws.unit()).ln()).sqrt();
    radius * (std::f64::consts::TAU * draws.unit()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean_and_variance(draw: impl FnMut() -> f64) -> (f64, f64) {
        let values: Vec<f64> = std::iter::repeat_with(draw).take(100_000).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares = values.iter().map(|value| (value - mean).powi(2));
        (mean, squares.sum::<f64>() / values.len() as f64)
    }

    #[test]
    fn counts_have_their_mean_as_variance() {
        let mut draws = Rng::new(1, 0);
        for expected in [0.0, 0.1, 3.0, 50.0] {
            let (mean, variance) = mean_and_variance(|| count(&mut draws, expected) as f64);
            assert!((mean - expected).abs() < 0.01 * expected + 0.005, "{mean}, not {expected}");
            assert!((variance - expected).abs() < 0.03 * expected + 0.005, "{variance}");
        }
    }

    #[test]
    fn gaps_add_up() {
        let mut draws = Rng::new(1, 0);
        for expected in [2, 4, 40] {
            let (mean, variance) = mean_and_variance(|| gaps(&mut draws, expected));
            let expected = expected as f64;
            assert!((mean - expected).abs() < 0.02 * expected, "{mean}, not {expected}");
            assert!((variance - expected).abs() < 0.05 * expected, "{variance}");
        }
    }

    #[test]
    fn the_last_gap_is_as_long_as_the_others() {
        let mut draws = Rng::new(1, 0);
        let (mean, _) = mean_and_variance(|| part_before_last(&mut draws, 5));
        assert!((mean - 0.8).abs() < 0.003, "{mean}");
        assert_eq!(part_before_last(&mut draws, 1), 0.0);
    }
}
