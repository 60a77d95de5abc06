//! Merging: what goes on ([`Fold`](lsmith_storage::fold::Fold)), and how a plan is carried out.
//!
//! A plan without [`Reuse`](lsmith_tree::Reuse) writes all that it takes anew, in parts where it is
//! large (`split`), which are committed one by one where they can be (`by_part`). One with
//! it keeps blocks that meet nothing, and joins small ones (`preserve`): two sides are walked block
//! by block (`side`, `part`).

mod by_part;
mod filters;
mod input;
mod merger;
mod output;
mod part;
mod plan_output;
mod preserve;
mod reserved;
mod rewrite;
mod side;
mod split;

pub(crate) use by_part::PlanPart;
use input::{InputCursor, entry_size};
pub(crate) use merger::{Merger, named};
pub(crate) use plan_output::PlanOutput;
pub(crate) use reserved::ReservedPlan;
