//! Figures of papers, measured at a small scale.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "figures run the store on files"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

mod ahead;
mod figures;
mod frame;
mod lsmtk;
mod mao;
mod msls;
mod named;
mod own;
