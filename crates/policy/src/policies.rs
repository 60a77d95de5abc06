//! The policies, one file each.

mod arce;
mod auto;
mod bigtable;
mod binomial;
mod clickhouse;
mod cola;
mod constant;
mod exploring;
mod fifo;
mod fluid;
mod hbase_stripe;
mod ics;
mod jungle;
mod leveled;
mod lucene_tiered;
mod minlatency;
mod moose;
mod none;
mod partial;
mod samt;
mod spooky;
mod sweep;
mod tiered;
mod triangular;
mod ucs;
mod universal;

pub use arce::Arce;
pub use auto::Auto;
pub use bigtable::Bigtable;
pub use binomial::Binomial;
pub use clickhouse::ClickHouse;
pub use cola::Cola;
pub use constant::Constant;
pub use exploring::Exploring;
pub use fifo::Fifo;
pub use fluid::Fluid;
pub use hbase_stripe::HbaseStripe;
pub use ics::Ics;
pub use jungle::Jungle;
pub use leveled::{Lethe, Leveled, Pick, Vertiorizon};
pub use lucene_tiered::LuceneTiered;
pub use minlatency::MinLatency;
pub use moose::Moose;
pub use none::None;
pub use partial::{FixedTake, Mixed};
pub use samt::Samt;
pub use spooky::Spooky;
pub use sweep::Sweep;
pub use tiered::Tiered;
pub use triangular::{Score, Triangular};
pub use ucs::Ucs;
pub use universal::Universal;

use crate::ParamInfo;

/// The parameter `k`, for policies that bound the number of runs.
const K: ParamInfo =
    ParamInfo { name: "k", default: "5", meaning: "most runs on storage at rest, 1 to 64" };

/// The range of `k`. With k = 1 every flush is merged with everything.
const K_RANGE: std::ops::RangeInclusive<u64> = 1..=64;
