//! The least that merging can cost: the exact offline optimum for a bounded number of runs.
//!
//! Each run covers consecutive flushes. After each flush runs may be merged with their neighbours,
//! and at most `runs_max` runs may remain. The cost is the bytes that merges write. If flushes
//! share no key, a merge writes as much as it reads. The best schedule for `n` flushes of size one
//! merges all flushes up to some flush `t` into the run that stays the oldest from then on:
//!
//! ```text
//! f_k(n) = min over t of f_k(t - 1) + (t if t > 1) + f_{k-1}(n - t)
//! ```
//!
//! Read this as a search tree: `t` is the root, the flushes before `t` are on its left, and those
//! after `t` on its right. A flush is written once by its own merge, and once more for every step
//! to the left on its path. The number of runs after it is one more than its steps to the right. So
//! the best tree has the fewest steps to the left while no flush has more than `k - 1` steps to the
//! right. There are `C(a + k, k - 1)` places with `a` steps to the left. Counting them gives
//! `f_k(n)` without a recursion. A flush with nothing on its left is not merged at all. So the last
//! group of places, which is not filled completely, is filled where places follow each other to the
//! right.
//!
//! [`least`] and [`schedule`] take flushes of equal size, [`least_of_sizes`] any sizes, and
//! [`Hull`] bounds the mean number of runs instead of the greatest. [`least_weighted`] bounds
//! neither: it weighs writes and reads. [`Priced`] does both for flushes of any sizes, and knows a
//! largest merge. [`anytime`] does not know when writing ends. With [`Unions`] keys may repeat:
//! then merges write less than they read, and only the sizes of outputs change in the recursion.
//! With [`KeyRanges`] merges take parts of runs.
//!
//! Source: the recursion follows Mathieu et al., "Bigtable merge compaction" (2014); counting
//! places in binomial trees goes back to Bentley & Saxe, "Decomposable searching problems" (1980).

mod anytime;
mod binomial;
mod hull;
mod priced;
mod ranges;
mod sizes;
mod unions;
mod unit;
mod weighted;

pub use anytime::anytime;
pub use hull::{Hull, HullPoint};
pub use priced::{Priced, PricedSchedule};
pub use ranges::{KeyRanges, LeastOfRanges};
pub use sizes::{LeastOfSizes, least_of_sizes, least_of_unions};
pub use unions::{FLUSHES_MAX, Unions, UnionsBuilder};
pub use unit::{Schedule, least, schedule, write_cost_least};
pub use weighted::{LeastWeighted, least_weighted};

#[cfg(test)]
mod tests;
