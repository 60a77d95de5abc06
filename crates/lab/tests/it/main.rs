//! Experiments as a whole.

mod compare;
mod lockstep;
mod run;
