//! Predicts the bytes of files. Policies and simulations count logical bytes; files have filters,
//! fences, nodes and the heads of entries besides, and common prefixes of keys once.
//!
//! * [`FileSizes`]: what files of a workload take, measured by the store's own writers.
//! * [`PhysicalMeter`]: counts the files of a simulation, event by event, as
//!   [`PhysicalCosts`](crate::PhysicalCosts).

mod append;
mod metadata;
mod meter;
mod parts;
mod sizes;

pub use meter::PhysicalMeter;
pub use sizes::FileSizes;
