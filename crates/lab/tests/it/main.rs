//! Experiments as a whole.

#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

mod compare;
mod lockstep;
mod reproduce;
mod reproduce_mao;
mod reproduce_msls;
mod run;
