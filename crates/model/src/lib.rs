//! Formulas for the costs of merge policies (compaction strategies), without running them: write,
//! read and space amplification.
//!
//! * [`Popularity`]: how often each key is requested, and the arithmetic of sizes that follows:
//!   [`unique`](Popularity::unique), [`inverse`](Popularity::inverse),
//!   [`merge`](Popularity::merge), [`interval`](Popularity::interval).
//! * [`formulas`]: the costs of policies, by name or by struct; each a [`Model`] of a [`Setting`].
//! * [`optimal_sizes`]: the level sizes of least cost.
//! * [`optimum`]: the least offline cost with bounded runs.
//!
//! This crate is pure arithmetic in `f64`: no files, clocks, threads, randomness or hash maps.
//! Costs are per request unless stated otherwise. Sizes are numbers of entries of mean size.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod class;
mod cost;
mod ends;
mod error;
pub mod formulas;
pub mod optimum;
mod popularity;
mod unique;
mod zipf;

pub use class::Class;
pub use cost::{Bound, Flushes, Ignored, KeyOrder, Level, Model, ReadCosts, Setting, Stage};
pub use error::ModelError;
pub use formulas::sizes::{LEVELS_MAX, optimal as optimal_sizes};
pub use popularity::{EntryShape, Popularity};
