//! Thonangi & Yang, "On log-structured merge for solid-state drives", ICDE 2017. All figures are
//! simulated, except `fig7`, which times the real store.
//!
//! Records have keys of 4 bytes. A megabyte of requests is 10^6 bytes of records; each request
//! counts as one record. Costs are data blocks of 4096 bytes written below memory.

pub(super) mod caches;
mod chain;
pub(super) mod density;
pub(super) mod fig10;
pub(super) mod fig2;
pub(super) mod fig5;
pub(super) mod fig6;
pub(super) mod fig7;
pub(super) mod fig8;
pub(super) mod fig9;
mod fit;
mod index;
pub(super) mod levels;
pub(super) mod over_time;
pub(super) mod queries;
mod scale;
mod steady;
mod store;
mod sweep;
