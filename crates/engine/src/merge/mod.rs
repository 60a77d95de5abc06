//! Merging: what goes on ([`Fold`]), and how a plan is carried out.

mod execute;
mod fold;

pub(crate) use execute::{Done, Job};
pub(crate) use fold::{Fold, FoldCounts};
