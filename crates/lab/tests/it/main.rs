//! Experiments as a whole.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "experiments run the store on files"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

mod caches;
mod compare;
mod explain;
mod hosts;
mod jobs;
mod lockstep;
mod physical;
mod policy_costs;
mod recorded;
mod run;
mod scans;
