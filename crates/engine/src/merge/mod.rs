//! Carrying out merge plans.

mod fold;

pub(crate) use fold::{Fold, FoldCounts};
