//! Fluid simulation: expected sizes instead of entries.
//!
//! At every place of the key space a run holds the newest versions of all keys that were written in
//! one interval of time. A flush has an interval of its own, and a merge of runs that are adjacent
//! in age joins theirs. So a place is described by the start and the end of its interval. The
//! workload ([`FluidWorkload`]) gives the number of different keys in an interval. For independent
//! keys of any popularity this number is the `Unique` of Lim et al., and joining intervals is their
//! `Merge`, which is also `1 - (1 - a)(1 - b)` for the densities of each class of keys. Where
//! merges sweep a level, the intervals of just swept places start later than others. A level is
//! therefore not uniform, as in the store.
//!
//! The number of keys in an interval comes from a formula, for `load` and `churn`, or from one pass
//! over the operations (`measured`). Such counts are exact for the whole key space, or for each of
//! a thousand parts of it if keys that are written together lie together. Only within a part keys
//! are assumed to be spread evenly and independently of their popularity.
//!
//! What is appended to an append table joins the intervals of its places in the same way. The size
//! of the append table before and after tells how many of its entries became dead.
//!
//! Sizes have no random variation. Only the blocks that overlap nothing, which merges can keep, are
//! drawn at random.
//!
//! # Errors of the model
//! `docs/model.md` has figures. `FluidWorkload::uncertainty` says how far an answer may be off.
//! * *The larger of two runs* can depend on chance, and can decide on a merge (`bigtable`,
//!   `exploring`).
//! * *Picks by least overlap* profit from random variation of sizes, which expectations lack.
//! * *Hashes of consecutive numbers*, the keys of `load(order=hashed)`, are not scattered at
//!   random: merges of blocks of few entries overlap up to a third fewer blocks, or a few percent
//!   more. Whole tables and runs are not affected; policies that keep blocks cost up to an eighth
//!   less than expected.
//! * *Clusters*, as in `normal`, are resolved to the width of a part of the key space. For windows
//!   that are picked by the overlap below them the write cost is up to a quarter off.
//! * *Appends in many places*, as in `tpc`: the blocks that overlap nothing are unknown, so
//!   policies that keep blocks are refused.

mod amount;
mod append;
mod blocks;
mod content;
mod draw;
mod full_blocks;
mod joining;
mod measured;
mod meeting;
mod merger;
mod place;
mod run;
mod segment;
mod table;
mod uncertainty;
mod workload;

pub use content::FluidContent;
pub use place::PLACES as FLUID_PLACES;
pub use run::simulate_fluid;
pub use workload::FluidWorkload;
