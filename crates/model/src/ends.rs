//! Sums over many classes without walking all of them.
//!
//! With `x = r ln(1 - p)` for `r` requests, a class contributes `1 - e^x` of its keys, and its part
//! in the integral and the slope. Of keys so unpopular that `x` is near 0 that is a short series in
//! `x`, so what all of them contribute is a series in `r` with sums of powers for coefficients. Of
//! keys so popular that `e^x` is below the rounding of `f64`, it is a sum that does not depend on
//! `r`, or a line. Classes grow by a tenth in popularity, so no more than some sixty lie between,
//! however many keys there are and however skewed they are requested.

use crate::popularity::Term;
use std::ops::Range;

/// Fewer classes than this are walked: as many lie between the ends.
const TERMS_MIN: usize = 96;

/// Below this `-x` a series of [`POWERS`] terms has an error below the rounding of `f64`.
const NEAR: f64 = 0.1;

/// Above this `-x`, `1 - e^x` is 1.
const FAR: f64 = 40.0;

/// Terms of the series.
const POWERS: usize = 9;

/// Sums over the first classes of a row, least popular first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ends {
    /// For each number of classes the sums of weight times `ln_miss` to the power 1, 2, ..; empty
    /// for short rows.
    powers: Vec<[f64; POWERS + 1]>,
    /// For each number of classes the sums over all others of weight, and of weight over `ln_miss`.
    far: Vec<[f64; 2]>,
}

/// What the classes at both ends contribute.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct EndSums {
    pub(crate) unique: f64,
    pub(crate) slope: f64,
    pub(crate) integral: f64,
}

impl Ends {
    /// Of a row that is sorted by popularity; others, and short ones, are walked.
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
        // From the other end: the few keys at it would be lost in the sum of all.
        let mut far = vec![[0.0; 2]; terms.len() + 1];
        for (index, term) in terms.iter().enumerate().rev() {
            let [weight, over] = far[index + 1];
            far[index] = [weight + term.weight, over + term.weight / term.ln_miss];
        }
        Ends { powers, far }
    }

    /// Returns the classes that must be walked for so many requests.
    pub(crate) fn between(&self, terms: &[Term], requests: f64) -> Range<usize> {
        if self.powers.is_empty() {
            return 0..terms.len();
        }
        let end = |most: f64| terms.partition_point(|term| -term.ln_miss * requests < most);
        end(NEAR)..end(FAR)
    }

    /// Returns what all classes contribute but those `between`.
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
                // What is dropped of a slope is below the rounding of what it is the slope of.
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
