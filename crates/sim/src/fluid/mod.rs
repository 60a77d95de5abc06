//! Fluid simulation: expected sizes instead of entries.
//!
//! A run holds, of every place in the key space, the newest versions of all keys that were written
//! in one stretch of time: a flush takes a stretch of its own, and a merge of neighbours in age
//! joins theirs. So all that has to be known of a place is where that stretch begins and ends. How
//! many different keys it comes to, the stream of writes says ([`FluidWorkload`]); for keys of any
//! popularity that is the `Unique` of Lim et al., and joining stretches is their `Merge`, which is
//! also `1 - (1 - a)(1 - b)` for the densities of each class of keys. Where merges sweep a level,
//! places that have just been swept begin later than others: that a level is not uniform follows
//! by itself, as it does for the store.
//!
//! How many keys a stretch comes to is known by formula, for `load` and `churn`, or counted from
//! the operations themselves (`measured`), drawn once: then it is exact, for the whole key space or
//! for each of a thousand parts of it where keys that are written together lie together, and only
//! within a part keys are taken to be spread evenly and independently of their popularity.
//!
//! What chance does to sizes is left out, but for blocks that merges keep: which of them meet
//! nothing is drawn.
//!
//! # Where it is off
//! `docs/model.md` has figures.
//! * *Which of two runs is larger* can be a matter of chance, and decide on a merge (`bigtable`,
//!   `exploring`).
//! * *Picks by least overlap* gain from what sizes are by chance, which expectations don't have.
//! * *Hashes of numbers in a row*, the keys of `load(order=hashed)`, are not scattered as by
//!   chance: merges of blocks of few entries meet up to a third fewer blocks, or a few percent
//!   more. Whole tables and runs don't notice; policies that keep blocks cost up to an eighth less
//!   than expected.
//! * *Clusters*, as those of `normal`, are seen as wide as a part of the key space; windows that
//!   are picked by what lies below them are up to a quarter off in write cost.
//! * *Appends in many places*, as those of `tpc`: which blocks meet nothing is not known at all,
//!   and policies that keep blocks are refused.

mod blocks;
mod content;
mod draw;
mod measured;
mod meeting;
mod merger;
mod place;
mod run;
mod segment;
mod table;
mod workload;

pub use content::FluidContent;
pub use run::simulate_fluid;
pub use workload::FluidWorkload;
