//! Figure 6: seven policies over the size of the data.

mod normal;
mod plan;
mod tpc;
mod uniform;

pub(crate) use normal::measure as measure_normal;
pub(crate) use tpc::measure as measure_tpc;
pub(crate) use uniform::measure as measure_uniform;
