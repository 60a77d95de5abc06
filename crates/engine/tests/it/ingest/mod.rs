//! Tables from outside, and bulk loads.

mod append_tables;
mod bulk_loads;
pub(crate) mod files;
mod kinds;
mod load;
mod mixed;
pub(crate) mod numbered;
mod numbered_random;
mod operands;
mod range_deletes;
mod replace;
mod snapshots;
mod together;
