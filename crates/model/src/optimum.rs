//! The least that merging can cost: the exact offline optimum for a bounded number of runs.
//!
//! Each run covers consecutive flushes. After each flush runs may be merged with their neighbours,
//! and at most `runs_max` runs may remain. The cost is the bytes that merges write. Flushes do not
//! overlap, so a merge writes as much as it reads. The best schedule for `n` flushes of size one
//! merges all flushes up to some flush `t` into the run that stays the oldest from then on:
//!
//! ```text
//! f_k(n) = min over t of f_k(t - 1) + (t if t > 1) + f_{k-1}(n - t)
//! ```
//!
//! Read as a search tree with `t` at its root, the flushes before it on its left and those after
//! it on its right, a flush is written once by its own merge and once more for every step to the
//! left on its path, and runs after it are one more than steps to the right. So the best tree is
//! the one whose flushes have the fewest steps to the left while none has more than
//! `k - 1` to the right: there are `C(a + k, k - 1)` places with `a` steps to the left, and
//! counting them gives `f_k(n)` without a recursion. A flush without anything on its left is not
//! merged at all, so the last places, which are not all taken, go where they follow each other to
//! the right.
//!
//! [`least`] and [`schedule`] take flushes of equal size, [`least_of_sizes`] any sizes, and
//! [`Hull`] bounds the mean number of runs instead of the greatest.
//!
//! Source: the recursion follows Mathieu et al., "Bigtable merge compaction" (2014); counting
//! places in binomial trees goes back to Bentley & Saxe, "Decomposable searching problems" (1980).

mod hull;
mod sizes;
mod unit;

pub use hull::{Hull, HullPoint};
pub use sizes::{LeastOfSizes, least_of_sizes};
pub use unit::{Schedule, least, schedule, write_cost_least};

/// Returns the binomial coefficient `upper` over `lower`, or `u128::MAX` if it is too large.
fn binomial(upper: u64, lower: u64) -> u128 {
    let lower = lower.min(upper - lower);
    let mut product: u128 = 1;
    for step in 1..=lower {
        // Each intermediate product is divisible, so the division is exact.
        let Some(next) = product.checked_mul(u128::from(upper - lower + step)) else {
            return u128::MAX;
        };
        product = next / u128::from(step);
    }
    product
}

#[cfg(test)]
mod tests;
