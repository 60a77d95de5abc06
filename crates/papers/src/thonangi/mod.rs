//! Thonangi & Yang, "On log-structured merge for solid-state drives", ICDE 2017. All figures are
//! simulated, except `fig7`, which times the real store.
//!
//! Records have keys of 4 bytes. A megabyte of requests is 10^6 bytes of records; each request
//! counts as one record. Costs are data blocks of 4096 bytes written below memory.

mod caches;
mod chain;
mod density;
mod fig10;
mod fig2;
mod fig5;
mod fig6;
mod fig7;
mod fig8;
mod fig9;
mod fit;
mod index;
mod levels;
mod over_time;
mod queries;
mod scale;
mod steady;
mod store;
mod sweep;

pub(super) use caches::measure as caches;
pub(super) use density::measure as fig1;
pub(super) use fig2::measure as fig2;
pub(super) use fig5::measure as fig5;
pub(super) use fig6::{measure_normal as fig6b, measure_tpc as fig6c, measure_uniform as fig6a};
pub(super) use fig7::measure as fig7;
pub(super) use fig8::measure as fig8;
pub(super) use fig9::{measure_normal as payloads_normal, measure_uniform as fig9};
pub(super) use fig10::{measure_normal as fig10, measure_uniform as growth_uniform};
pub(super) use levels::measure as levels;
pub(super) use over_time::{measure_three as fig4, measure_two as fig3};
pub(super) use queries::measure as queries;
