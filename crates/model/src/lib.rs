//! Formulas: what a merge policy costs, without carrying it out.
//!
//! * [`Popularity`]: how often each key is asked for, and the arithmetic of sizes that follows from
//!   it: [`unique`](Popularity::unique), [`inverse`](Popularity::inverse),
//!   [`merge`](Popularity::merge), [`interval`](Popularity::interval).
//! * [`formulas`]: what policies cost, by name or by struct; each a [`Model`] of a [`Setting`].
//! * [`optimal_sizes`]: the level sizes that cost least.
//! * [`optimum`]: the least that bounded runs can cost, offline.
//!
//! Pure arithmetic in `f64`: no files, no clocks, no threads, no randomness, no hash maps. Costs
//! are per request unless said otherwise; sizes are numbers of entries of mean size.

mod cost;
mod ends;
mod error;
pub mod formulas;
pub mod optimum;
mod popularity;
mod sizes;
mod unique;
mod zipf;

pub use cost::{Flushes, Level, Model, ReadCosts, Setting, Stage};
pub use error::ModelError;
pub use popularity::{Class, EntryShape, Popularity};
pub use sizes::optimal as optimal_sizes;
