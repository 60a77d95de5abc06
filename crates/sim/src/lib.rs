//! Simulations.
mod drive;
mod error;
mod figures;
mod simulate;
mod unit;

pub use drive::{Content, Drive, Event, Observer};
pub use error::SimError;
pub use figures::{FigureCounter, Figures, Parts};
pub use simulate::{Simulation, simulate_unit};
pub use unit::{UNIT_BYTES, UnitContent};
