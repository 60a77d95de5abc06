//! What is done to a store: the phases, and one file for each kind of work.

mod hot;
mod ladder;
mod letter;
mod part;
mod phase;
mod read;
mod scan;
mod sync;
mod work;
mod write;
mod ycsb;

pub(crate) use part::Dataset;
pub(crate) use phase::{Chain, DEFAULT, Phase, chains, names_all, parse_all};
pub(crate) use work::{Worked, fill, run};
