//! Classes of a Zipf distribution, without a loop over its ranks.

use crate::Class;

/// The greatest skew for which results are accurate.
pub(crate) const SKEW_MAX: f64 = 1.6;

/// How much more popular than the least popular key of its class a key may be, as a fraction.
pub(crate) const CLASS_WIDTH: f64 = 0.1;

/// Ranks below this one are summed one by one; the series for the others then has an error below
/// the rounding of `f64`.
const DIRECT_RANKS: u64 = 24;

/// Returns the classes of `keys` keys, least popular first. No class if there is no key.
pub(crate) fn classes(keys: u64, skew: f64) -> Vec<Class> {
    let mut classes = Vec::new();
    let mut last = keys;
    let mut total = 0.0;
    while last > 0 {
        let first = first_rank(last, skew);
        let sum = power_sum(first, last, skew);
        let count = (last - first + 1) as f64;
        classes.push(Class { keys: count, probability: sum / count });
        total += sum;
        last = first - 1;
    }
    for class in &mut classes {
        class.probability /= total;
    }
    classes
}

/// Returns the most popular rank whose weight is within a class width of the weight of `last`.
fn first_rank(last: u64, skew: f64) -> u64 {
    let belongs = |rank: u64| {
        let weight = |rank: u64| (rank as f64).powf(-skew);
        weight(rank) / weight(last) - 1.0 <= CLASS_WIDTH
    };
    let estimate = last as f64 * (1.0 + CLASS_WIDTH).powf(-1.0 / skew);
    let mut first = (estimate.ceil() as u64).clamp(1, last);
    // Rounding can make the estimate wrong by one rank.
    while !belongs(first) {
        first += 1;
    }
    while first > 1 && belongs(first - 1) {
        first -= 1;
    }
    first
}

/// Returns the sum of `rank^-skew` over the ranks `first..=last`.
fn power_sum(first: u64, last: u64, skew: f64) -> f64 {
    let direct_end = (last + 1).min(DIRECT_RANKS);
    let direct: f64 = (first..direct_end).map(|rank| (rank as f64).powf(-skew)).sum();
    let start = first.max(direct_end);
    direct + if start > last { 0.0 } else { euler_maclaurin(start, last, skew) }
}

/// Returns the same sum by the formula of Euler and Maclaurin: the integral, half the ends, and
/// terms in the odd derivatives at the ends, with Bernoulli numbers 1/6, -1/30, 1/42.
fn euler_maclaurin(first: u64, last: u64, skew: f64) -> f64 {
    let a = first as f64;
    let b = last as f64;
    let value_a = a.powf(-skew);
    let value_b = b.powf(-skew);
    let integral = {
        let exponent = 1.0 - skew;
        // ((b/a)^exponent - 1) / exponent, whose limit at 0 is the logarithm.
        let ln = (b / a).ln();
        let scaled = if exponent == 0.0 { ln } else { (exponent * ln).exp_m1() / exponent };
        a * value_a * scaled
    };
    let odd_terms = |x: f64, value: f64| {
        let first = -skew * value / x;
        let third = first * (skew + 1.0) * (skew + 2.0) / (x * x);
        let fifth = third * (skew + 3.0) * (skew + 4.0) / (x * x);
        first / 12.0 - third / 720.0 + fifth / 30_240.0
    };
    integral + (value_a + value_b) / 2.0 + odd_terms(b, value_b) - odd_terms(a, value_a)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rank by rank, as the compression is defined.
    fn walked(keys: u64, skew: f64) -> Vec<Class> {
        let mut classes: Vec<(f64, f64)> = Vec::new();
        let mut least = 0.0;
        let mut total = 0.0;
        for rank in (1..=keys).rev() {
            let weight = (rank as f64).powf(-skew);
            total += weight;
            match classes.last_mut() {
                Some((count, sum)) if weight / least - 1.0 <= CLASS_WIDTH => {
                    *count += 1.0;
                    *sum += weight;
                }
                _ => {
                    least = weight;
                    classes.push((1.0, weight));
                }
            }
        }
        let class = |(keys, sum): (f64, f64)| Class { keys, probability: sum / keys / total };
        classes.into_iter().map(class).collect()
    }

    #[test]
    fn computed_classes_are_the_walked_ones() {
        for keys in [1, 2, 3, 10, 23, 24, 25, 1000, 33_333, 1_000_000] {
            for skew in [0.01, 0.1, 0.5, 0.8, 0.99, 1.0, 1.2, 1.6] {
                let computed = classes(keys, skew);
                let walked = walked(keys, skew);
                assert_eq!(computed.len(), walked.len(), "{keys} {skew}");
                for (computed, walked) in computed.iter().zip(&walked) {
                    let keys_off = (computed.keys - walked.keys).abs();
                    assert!(keys_off < 0.5, "{keys} {skew}: {computed:?} {walked:?}");
                    let off = computed.probability / walked.probability - 1.0;
                    assert!(off.abs() < 1e-10, "{keys} {skew}: {off}");
                }
            }
        }
    }

    #[test]
    fn a_thousand_million_keys_make_few_classes() {
        let classes = classes(1_000_000_000, 0.99);
        assert_eq!(classes.len(), 196);
        let keys: f64 = classes.iter().map(|class| class.keys).sum();
        assert_eq!(keys, 1e9);
        let total: f64 = classes.iter().map(|class| class.keys * class.probability).sum();
        assert!((total - 1.0).abs() < 1e-12, "{total}");
    }
}
