//! Sums over many classes without walking all of them.
//!
//! With `x = r ln(1 - p)` for `r` requests, a class contributes `1 - e^x` of its keys, and a part
//! of the integral and of the slope. For unpopular keys, with `x` near 0, the contribution is a
//! short series in `x`. The sum over all of them is a series in `r`, with sums of powers as
//! coefficients. For popular keys, with `e^x` below the rounding of `f64`, the contribution does
//! not depend on `r`, or is linear in it. Classes grow by a tenth in popularity, so at most some
//! sixty classes lie between, for any number of keys and any skew.

use crate::class::Term;
use std::ops::Range;

/// Fewer classes than this are always summed one by one: as many lie between the ends.
const TERMS_MIN: usize = 96;

/// Below this `-x`, a series of [`POWERS`] terms has an error below the rounding of `f64`.
const NEAR: f64 = 0.1;

/// Above this `-x`, `1 - e^x` is 1.
const FAR: f64 = 40.0;

/// The number of terms of the series.
const POWERS: usize = 9;

/// Sums over the first classes, least popular first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ends {
    /// For each number of classes the sums of weight times `ln_miss` to the power 1, 2, ..; empty
    /// for few classes.
    powers: Vec<[f64; POWERS + 1]>,
    /// For each number of first classes, the sums over all other classes of weight, and of weight
    /// over `ln_miss`.
    far: Vec<[f64; 2]>,
}

/// The contribution of the classes at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EndSums {
    pub(crate) unique: f64,
    pub(crate) slope: f64,
    pub(crate) integral: f64,
}

impl Ends {
    /// Computes the sums. Classes that are few or not sorted by popularity get no sums; they are
    /// always summed one by one.
    pub(crate) fn of(terms: &[Term]) -> Ends {
        if terms.len() < TERMS_MIN
            || !terms.is_sorted_by(|left, right| left.ln_miss >= right.ln_miss)
        {
            return Ends::default();
        }
        let mut powers = vec![[0.0; POWERS + 1]];
        let mut sums = [0.0; POWERS + 1];
        for term in terms {
            let mut power = term.weight;
            for sum in &mut sums {
                power *= term.ln_miss;
                *sum += power;
            }
            powers.push(sums);
        }
        // Summed from the other end: rounding would lose the few keys there in the sum of all.
        let mut far = vec![[0.0; 2]; terms.len() + 1];
        for (index, term) in terms.iter().enumerate().rev() {
            let [weight, over] = far[index + 1];
            far[index] = [weight + term.weight, over + term.weight / term.ln_miss];
        }
        Ends { powers, far }
    }

    /// Returns the classes that must be summed one by one for the given requests.
    pub(crate) fn between(&self, terms: &[Term], requests: f64) -> Range<usize> {
        if self.powers.is_empty() {
            return 0..terms.len();
        }
        let end = |most: f64| terms.partition_point(|term| -term.ln_miss * requests < most);
        end(NEAR)..end(FAR)
    }

    /// Returns the contribution of all classes except those `between`.
    pub(crate) fn sums(&self, between: &Range<usize>, requests: f64) -> EndSums {
        let Some(near) = self.powers.get(between.start) else { return EndSums::default() };
        let mut sums = EndSums { slope: -near[0], ..EndSums::default() };
        // r to the power k over k!, from k = 1.
        let mut part = requests;
        for (power, (sum, next)) in (1_u8..).zip(near.iter().zip(&near[1..])) {
            sums.unique -= part * sum;
            sums.slope -= part * next;
            part *= requests / f64::from(power + 1);
            sums.integral -= part * sum;
        }
        let [weight, over] = self.far[between.end];
        sums.unique += weight;
        sums.integral += over + requests * weight;
        sums
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Popularity;

    #[test]
    fn sums_are_those_of_walking() {
        for (keys, skew) in [(1_000_000_000, 1.6), (1_000_000_000, 0.99), (3_000_000, 1.2)] {
            let quick = Popularity::zipf(keys, skew).unwrap();
            assert!(!quick.ends.powers.is_empty());
            let mut walked = quick.clone();
            walked.ends = Ends::default();
            let near = |quick: f64, walked: f64, message: &str| {
                // The omitted part of the slope is below the rounding of its function.
                let off = (quick - walked).abs();
                assert!(
                    off <= 1e-12 * walked + 1e-15,
                    "{keys} {skew} {message}: {quick}, not {walked}"
                );
            };
            for exponent in 1..60 {
                let requests = 1.7_f64.powi(exponent);
                near(quick.unique(requests), walked.unique(requests), "unique");
                near(quick.mean_unique(requests), walked.mean_unique(requests), "mean");
                let slopes = [&quick, &walked].map(|it| it.unique_and_slope(requests).1);
                near(slopes[0], slopes[1], "slope");
            }
        }
    }

    #[test]
    fn few_classes_lie_between() {
        let popularity = Popularity::zipf(1_000_000_000, 1.6).unwrap();
        for requests in [1e3, 1e6, 1e9, 1e12] {
            let between = popularity.ends.between(&popularity.terms, requests);
            assert!(between.len() < 70, "{between:?} at {requests}");
        }
    }
}
