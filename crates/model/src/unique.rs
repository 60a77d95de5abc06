//! The arithmetic of sizes: the number of different keys among requests, and its inverse.
//!
//! Source: Lim, Andersen, Kaminsky, "Towards Accurate and Fast Evaluation of Multi-Stage
//! Log-Structured Designs", FAST 2016, for `unique`, its inverse, `merge` and the interval of a
//! level; the closed form of the latter is derived at [`Popularity::interval`].

use crate::Popularity;
use crate::class::Term;

/// The relative distance from [`Popularity::size_max`] within which a size counts as all keys.
const FULL: f64 = 1e-12;

/// The relative error at which a search stops.
const TOLERANCE: f64 = 1e-10;

/// The most steps of a search. Each step at least halves the remaining range, and `f64` has 2048
/// powers of two. Searches take 3 to 8 steps.
const STEPS_MAX: usize = 200;

impl Popularity {
    /// Returns the expected size of a run that holds the newest entry of each key among `requests`
    /// requests: the expected number of different keys.
    ///
    /// It is the sum over classes of `c_i (1 - (1 - p_i)^p)`. It rises with falling slope, tends to
    /// [`size_max`](Popularity::size_max), and never exceeds this limit or the requests. A part of
    /// a request counts linearly; the sum itself would count it as more.
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
        // Rounding must not break these bounds.
        size.min(requests).min(self.size_max)
    }

    /// Returns the expected size of a run of `requests` requests that are some of those over which
    /// the popularity was counted. [`unique`](Popularity::unique) if it is known, not counted.
    ///
    /// # Derivation
    /// Let a key be counted `k` times among `n` requests. Any `r` of these requests miss it with
    /// the probability `(1 - r/n)^k`, so all `n` miss no key. Independent requests of probability
    /// `k/n` would miss it with `(1 - k/n)^r`: `n` of them miss more than a third of the keys that
    /// were counted once. With `x = -n ln(1 - r/n)`, the former is `exp(-x k/n)`, and so is
    /// `(1 - k/n)^x` for keys that are a small part of all requests. So `r` of the counted requests
    /// have as many keys as `x` independent ones. Of keys that are a large part, neither misses
    /// one.
    pub fn unique_counted(&self, requests: f64) -> f64 {
        if self.counted.is_infinite() {
            return self.unique(requests);
        }
        let share = (requests / self.counted).min(1.0);
        self.unique(-self.counted * (-share).ln_1p()).min(requests.max(0.0))
    }

    /// Returns the requests after which a run has the expected size `size`: the inverse of
    /// [`unique`](Popularity::unique). Infinity for all keys and more; 0 for sizes below 0.
    pub fn inverse(&self, size: f64) -> f64 {
        if size <= 1.0 {
            return size.max(0.0);
        }
        let missing = self.size_max - size;
        if missing <= self.size_max * FULL {
            return f64::INFINITY;
        }
        // The number of missing keys falls like a sum of exponentials. On its logarithm Newton's
        // method is exact for one class, and converges from below for more classes.
        solve(size, |requests| {
            let (found, slope) = self.unique_and_slope(requests);
            let left = self.size_max - found;
            let step = ((size - found) / missing).ln_1p() * left / slope;
            Probe { error: (size - found) / size.min(missing), step }
        })
    }

    /// Returns the expected size of a merge of runs of the expected sizes `sizes`: the size for the
    /// sum of their requests. Order and grouping do not matter.
    pub fn merge(&self, sizes: &[f64]) -> f64 {
        self.unique(sizes.iter().map(|&size| self.inverse(size)).sum())
    }

    /// Returns the requests of one sweep over a level of the given size, if the level is merged
    /// down piece by piece in key order, again and again, at a constant rate.
    ///
    /// Infinity for a size of all keys and more; 0 for sizes of 0 and below.
    ///
    /// # Derivation
    /// Let a sweep take `c` requests. The place at the share `x` of the key space behind the sweep
    /// was emptied `x c` requests ago, so its density is `unique(x c)` over all keys. The level is
    /// thin just behind the sweep and dense ahead of it. Its size is the mean over
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
            // The missing part falls like 1/c for large c, so its inverse is nearly linear.
            let left = self.size_max - mean;
            let step = (size - mean) * left / (missing * slope);
            Probe { error: (size - mean) / size.min(missing), step }
        })
    }

    /// Returns the mean of [`unique`](Popularity::unique) over 0 to `requests`: the size of a level
    /// with one sweep per `requests`. The inverse of [`interval`](Popularity::interval).
    pub fn mean_unique(&self, requests: f64) -> f64 {
        if requests <= 1.0 {
            return requests.max(0.0) / 2.0;
        }
        if requests == f64::INFINITY {
            return self.size_max;
        }
        (self.integral_of_sum(requests) + self.first_request) / requests
    }

    /// Returns the probability that none of the `requests` before a request is for the same key,
    /// with entries weighted by size.
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

    /// Returns [`mean_unique`](Popularity::mean_unique) and [`unique`](Popularity::unique) in one
    /// pass, for at least one request.
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

    /// Returns [`unique`](Popularity::unique) and its derivative, for at least one request.
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

/// Returns `e^x - 1 - x` without loss of digits near 0. `exp_m1` is `e^x - 1`.
fn less_x(exp_m1: f64, x: f64) -> f64 {
    if x.abs() > 0.1 {
        return exp_m1 - x;
    }
    // The series, smallest term first. The first omitted term is x^10 / 10!.
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

/// Returns the point at which a rising function has its target value, by Newton's steps within the
/// range that contains the solution. `start` must not be right of the solution.
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
