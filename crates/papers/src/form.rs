//! The common form of figures, imported by every figure at once.

pub(crate) use crate::figure::ALL;
pub(crate) use crate::numbers::{
    farthest, joined, least, less, mean, most, over, pairs_turned, percent_off, ranked,
};
pub(crate) use crate::sweep::{Spot, Sweep, spots};
pub(crate) use crate::{Effort, Figure, Panel, Task};
pub(crate) use lsmith_lab::Ticker;
pub(crate) use lsmith_lab::plot::Axis;
