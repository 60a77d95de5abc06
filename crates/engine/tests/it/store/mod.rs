//! The store as a whole: its calls, its options, its figures, random operations on it.

mod basic;
mod batches;
mod bounds;
mod broken_rules;
mod costs;
mod extreme_options;
mod histograms;
mod metrics;
pub(crate) mod model;
mod policy_values;
mod recording;
mod scripts;
mod soak;
mod threads;
