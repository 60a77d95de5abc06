//! Simulations of merge policies (compaction strategies): the same policies, plans and trees as in
//! the store, without a disk.
//!
//! [`Drive`] holds a tree, a policy and a [`Content`] in lockstep. It adds a sealed memtable to the
//! tree. Then it asks the policy for plans until there are none; it checks, executes and applies
//! each plan. At last it flushes the rest of memory. The content answers the one question in which
//! interpreters differ: what is the outcome of a merge?
//!
//! * [`UnitContent`] holds only sizes: data never overlap. A million flushes take seconds.
//! * [`KeyedContent`] holds every entry, so that updates, deletes and locality count as in the
//!   store.
//! * [`FluidContent`] holds expected sizes: the averages of keyed simulations, in time that does
//!   not grow with the number of keys.
//!
//! [`simulate_unit`] and [`simulate_keyed`] run whole simulations and return [`Figures`]. An
//! observer sees every plan, edit and rest; [`FigureCounter`] computes the figures from them, also
//! for a store.
//!
//! ```
//! use lsmith_policy::Registry;
//! use lsmith_sim::{UNIT_BYTES, simulate_unit};
//!
//! let policy = Registry::builtin().build("bigtable(k=4)")?;
//! let sizes = std::iter::repeat_n(UNIT_BYTES, 16);
//! let result = simulate_unit(&policy, sizes, UNIT_BYTES, &mut |_| {})?;
//! assert_eq!(result.run_bytes_oldest_first(), [12 * UNIT_BYTES, 4 * UNIT_BYTES]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate uses no files, clocks or threads. Equal input gives equal plans.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod blocks;
mod cache;
mod drive;
mod error;
mod figures;
mod fluid;
mod keyed;
mod simulate;
mod simulation;
mod timed;
mod unit;

pub use blocks::{BlockContent, BlockEntry, BlockFigures, BlockSim, BlockSizes};
pub use cache::BlocksUncached;
pub use drive::{Content, Drive, Event, Observer};
pub use error::SimError;
pub use figures::{FigureCounter, Figures, Parts, SCAN_ITEMS, ScanCost};
pub use fluid::{FLUID_PLACES, FluidContent, FluidWorkload, simulate_fluid};
pub use keyed::{Expired, FullMemtables, KeyedContent, KeyedEntry, KeyedSim, rank_key};
pub use simulate::{
    KeyedWorkload, keyed_unions, simulate_keyed, simulate_unit, watch_keyed, written_entry,
    written_kind,
};
pub use simulation::{KeyspaceBytes, Simulation};
pub use timed::{
    Course, FreeOptions, FreeSimulation, Machine, Moment, PutPercentiles, PutTimes, Rate,
    simulate_free,
};
pub use unit::{UNIT_BYTES, UnitContent};
