//! Merging: what goes on ([`Fold`](lsmith_storage::fold::Fold)), and how a plan is carried out.
//!
//! A plan without [`Reuse`](lsmith_tree::Reuse) writes all that it takes anew, in parts where it is
//! large (`split`), which are committed one by one where they can be (`by_part`). One with
//! it keeps blocks that meet nothing, and joins small ones (`preserve`): two sides are walked block
//! by block (`side`, `part`).

mod by_part;
mod execute;
mod filters;
mod input;
mod output;
mod part;
mod preserve;
mod rewrite;
mod side;
mod split;

pub(crate) use by_part::PlanPart;
pub(crate) use execute::{Done, Job, named};
use input::{InputCursor, entry_size};
pub(crate) use split::Split;
