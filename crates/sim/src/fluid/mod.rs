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
//! Keys are taken to be spread evenly and independently of their popularity, as hashed keys are.
//! What chance does to sizes is left out, but for blocks that merges keep: which of them meet
//! nothing is drawn. (The hash of `load(order=hashed)` does not scatter keys that follow each other
//! as chance would: merges of blocks of few entries keep up to a fifth more of
//! them than is expected here; all other costs are not touched by it.)

mod blocks;
mod content;
mod draw;
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
