//! The arithmetic of sizes: how many different keys there are among requests, and back.
//!
//! Source: Lim, Andersen, Kaminsky, "Towards Accurate and Fast Evaluation of Multi-Stage
//! Log-Structured Designs", FAST 2016, for `unique`, its inverse, `merge` and the interval of a
//! level; the closed form of the latter is derived at [`Popularity::interval`].

use crate::Popularity;
use crate::popularity::Term;

/// How near to [`Popularity::size_max`], relatively, a size is taken to be all keys.
const FULL: f64 = 1e-12;

/// Relative error at which a search stops.
const TOLERANCE: f64 = 1e-10;

/// Most steps of a search. Each step at least halves the range that is left, and there are 2048
/// powers of two in all of `f64`; searches take 3 to 8.
const STEPS_MAX: usize = 200;

impl Popularity {
    /// Returns the expected size of a run that holds the newest entry of each key among `requests`
    /// requests: the expected number of different keys.
    ///
    /// It is the sum over classes of `c_i (1 - (1 - p_i)^p)`. It rises, its slope falls, it never
    /// exceeds the requests nor [`size_max`](Popularity::size_max), which it tends to. Less than
    /// one request counts as that part of one: the sum itself would count it as more.
    pub fn unique(&self, requests: f64) -> f64 {
        if requests <= 1.0 {
            return requests.max(0.0);
        }
        if requests == f64::INFINITY {
            return self.size_max;
        }
        let between = self.ends.between(&self.terms, requests);
        let ends = self.ends.sums(&between, requests).unique;
        let size = self.terms[between].iter().map(|term| term.unique(requests)).sum::<f64>() + ends;
        // Rounding must not break what holds exactly.
        size.min(requests).min(self.size_max)
    }

    /// After how many requests a run has the expected size `size`: the inverse of
    /// [`unique`](Popularity::unique). Infinity for all keys and more; 0 for sizes below 0.
    pub fn inverse(&self, size: f64) -> f64 {
        if size <= 1.0 {
            return size.max(0.0);
        }
        let missing = self.size_max - size;
        if missing <= self.size_max * FULL {
            return f64::INFINITY;
        }
        // What is missing of all keys falls like a sum of exponentials, so Newton's method is
        // exact on its logarithm for one class, and comes from below for more.
        solve(size, |requests| {
            let (found, slope) = self.unique_and_slope(requests);
            let left = self.size_max - found;
            let step = ((size - found) / missing).ln_1p() * left / slope;
            Probe { error: (size - found) / size.min(missing), step }
        })
    }

    /// Returns the expected size of a merge of runs of the expected sizes `sizes`: all requests
    /// that they stand for, taken together. It is the same in any order and any grouping.
    pub fn merge(&self, sizes: &[f64]) -> f64 {
        self.unique(sizes.iter().map(|&size| self.inverse(size)).sum())
    }

    /// Over how many requests a level of the given size is swept once, if it is compacted piece by
    /// piece, round and round in key order, at a constant rate.
    ///
    /// Infinity for a size of all keys and more; 0 for sizes of 0 and below.
    ///
    /// # Derivation
    /// Let a sweep take `c` requests. The place that lies the share `x` of the key space behind
    /// the sweep was emptied `x c` requests ago, so its density is `unique(x c)` over all keys: the
    /// level is thin where the sweep has just been and dense before it. Its size is the mean over
    /// all places, `(1/c)` times the integral of `unique` from 0 to `c`. That integral is in
    /// closed form, the sum over classes of `c_i (c - ((1 - p_i)^c - 1) / ln(1 - p_i))`, and this
    /// method solves for `c`. A level that is small against the key space has density
    /// proportional to age, hence `c` near twice `inverse(size)`; duplicates make it longer.
    pub fn interval(&self, size: f64) -> f64 {
        if size <= 0.5 {
            return 2.0 * size.max(0.0);
        }
        let missing = self.size_max - size;
        if missing <= self.size_max * FULL {
            return f64::INFINITY;
        }
        solve(2.0 * size, |requests| {
            let (mean, found) = self.mean_and_unique(requests);
            let slope = (found - mean) / requests;
            // What is missing falls like 1/c in the end, so its inverse is nearly a straight line.
            let left = self.size_max - mean;
            let step = (size - mean) * left / (missing * slope);
            Probe { error: (size - mean) / size.min(missing), step }
        })
    }

    /// Returns the mean of [`unique`](Popularity::unique) over 0 to `requests`: the size of a level
    /// that is swept once in so many requests. The inverse of [`interval`](Popularity::interval).
    pub fn mean_unique(&self, requests: f64) -> f64 {
        if requests <= 1.0 {
            return requests.max(0.0) / 2.0;
        }
        if requests == f64::INFINITY {
            return self.size_max;
        }
        (self.integral_of_sum(requests) + self.first_request) / requests
    }

    /// Returns the probability that a request is for a key that none of the `requests` before it
    /// asked for; entries weighted by their size.
    pub fn fresh(&self, requests: f64) -> f64 {
        let term = |term: &Term| {
            -term.weight * term.ln_miss.exp_m1() * (requests.max(0.0) * term.ln_miss).exp()
        };
        self.terms.iter().map(term).sum()
    }

    /// Returns the integral from 0 to `requests` of the sum over classes.
    pub(crate) fn integral_of_sum(&self, requests: f64) -> f64 {
        let between = self.ends.between(&self.terms, requests);
        let ends = self.ends.sums(&between, requests).integral;
        self.terms[between].iter().map(|term| term.integral(requests)).sum::<f64>() + ends
    }

    /// [`mean_unique`](Popularity::mean_unique) and [`unique`](Popularity::unique) in one pass;
    /// from one request on.
    fn mean_and_unique(&self, requests: f64) -> (f64, f64) {
        let between = self.ends.between(&self.terms, requests);
        let ends = self.ends.sums(&between, requests);
        let mut integral = self.first_request + ends.integral;
        let mut size = ends.unique;
        for term in &self.terms[between] {
            let exponent = requests * term.ln_miss;
            let missing = exponent.exp_m1();
            size -= term.weight * missing;
            integral -= term.weight * less_x(missing, exponent) / term.ln_miss;
        }
        (integral / requests, size)
    }

    /// [`unique`](Popularity::unique) and its derivative; from one request on.
    pub(crate) fn unique_and_slope(&self, requests: f64) -> (f64, f64) {
        let between = self.ends.between(&self.terms, requests);
        let ends = self.ends.sums(&between, requests);
        let mut size = ends.unique;
        let mut slope = ends.slope;
        for term in &self.terms[between] {
            let missing = (requests * term.ln_miss).exp_m1();
            size -= term.weight * missing;
            slope -= term.weight * term.ln_miss * (missing + 1.0);
        }
        (size, slope)
    }
}

impl Term {
    fn unique(&self, requests: f64) -> f64 {
        -self.weight * (requests * self.ln_miss).exp_m1()
    }

    fn integral(&self, requests: f64) -> f64 {
        let exponent = requests * self.ln_miss;
        -self.weight * less_x(exponent.exp_m1(), exponent) / self.ln_miss
    }
}

/// `e^x - 1 - x` without loss of digits near 0, where `exp_m1` is `e^x - 1`.
fn less_x(exp_m1: f64, x: f64) -> f64 {
    if x.abs() > 0.1 {
        return exp_m1 - x;
    }
    // The series from its smallest term; the first one left out is x^10 / 10!.
    let mut sum = 0.0;
    for divisor in (3..=9).rev() {
        sum = (1.0 + sum) * x / f64::from(divisor);
    }
    (1.0 + sum) * x * x / 2.0
}

/// The result of one step of a search.
struct Probe {
    /// The relative error, positive to the left of the solution.
    error: f64,
    /// The next step, by Newton's method.
    step: f64,
}

/// Returns the point where a rising function takes its value: Newton's steps, kept inside what is
/// known to hold the solution. `start` is not right of the solution.
fn solve(start: f64, probe: impl Fn(f64) -> Probe) -> f64 {
    let mut low = start;
    let mut high = f64::INFINITY;
    let mut at = start;
    for _ in 0..STEPS_MAX {
        let Probe { error, step } = probe(at);
        if error.abs() <= TOLERANCE {
            break;
        }
        if error > 0.0 {
            low = at
        } else {
            high = at
        }
        let next = at + step;
        let inside = low < next && next < high;
        let middle = if high.is_finite() { low + (high - low) / 2.0 } else { low * 2.0 };
        let last = at;
        at = if inside { next } else { middle };
        if (at - last).abs() <= TOLERANCE * at {
            break;
        }
    }
    at
}
