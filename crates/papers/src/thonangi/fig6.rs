//! Figure 6: seven policies over the size of the data.

pub(crate) mod normal;
mod plan;
pub(crate) mod tpc;
pub(crate) mod uniform;
