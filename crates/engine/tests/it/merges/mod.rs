//! Merges: when, on which threads, and how they hold writers back.

mod back_pressure;
mod cached;
mod commit;
mod debt;
mod holes;
mod kept;
mod parts;
mod side_by_side;
mod threads;
mod told;
