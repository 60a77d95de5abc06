//! Reads what a RocksDB, a LevelDB or a Pebble leaves in its directory, and says what its
//! compactions cost, and what other settings would have cost. Of Cassandra it reads the log of
//! compactions.
//!
//! [`Case::read`] takes the files as bytes: LOG, MANIFEST, OPTIONS. [`Diagnosis::of`] counts what
//! they say. [`Replay::of`] plays the flushes again. No file is opened here.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod case;
mod cassandra;
mod diagnosis;
mod error;
mod leveldb;
mod log;
mod manifest;
mod options;
mod pebble;
mod policy;
mod replay;
mod rocks;

pub use case::{Case, Family, Named, Store};
pub use diagnosis::{Diagnosis, FamilyCosts, LevelNow, Written};
pub use error::DoctorError;
pub use log::{Job, Log, Output, Stalled};
pub use manifest::{Edit, File, Manifest};
pub use options::{Options, Settings};
pub use policy::{Translated, translate};
pub use replay::{Move, Replay, Row, Watch};
