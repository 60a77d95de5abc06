//! Merge policies (compaction strategies): pure functions from what is known of a tree to a merge
//! plan.
//!
//! A merge (compaction) joins sorted runs into one. Few merges keep write amplification low, and
//! many keep read and space amplification low. A policy is a choice between them.
//!
//! A policy does no I/O, reads no clock, draws no random numbers and keeps nothing to itself: what
//! it must remember it notes in the tree's memo. So the same policy value drives the store, the
//! simulations and the tests, and the same view always gives the same plan.
//!
//! A policy decides only *what is merged when*. Whether that is safe is judged by
//! [`check_plan`](lsmith_tree::check_plan), and what may be dropped is derived from tree and
//! snapshots: a wrong policy costs bytes, never an answer. Only a policy that says so may drop
//! data, as `fifo` does. The price is that a plan must name every run it takes, in order of age.
//!
//! ```
//! use lsmith_policy::Registry;
//! use lsmith_tree::TreeView;
//!
//! let policy = Registry::builtin().build("tiered(ratio=3)")?;
//! let view: TreeView = "tree\nL0 r4[t4:a..z 1MB] r3[t3:a..z 1MB] r2[t2:a..z 1MB]".parse()?;
//! let plan = policy.next_merge(&view).expect("three runs of three");
//! assert_eq!(
//!     plan.to_string(),
//!     "merge r4 r3 r2 over .. into new run at L1 # level 0 has 3 runs of 3"
//! );
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! To add a policy: one file in `policies/`, one line in [`Registry::builtin`]; the law suite
//! ([`laws`]) then runs over it.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

pub mod back_pressure;
mod choice;
mod duty;
mod elsewhere;
mod group;
mod info;
mod knots;
pub mod laws;
mod policies;
mod policy;
mod pressure;
mod read_price;
mod registry;
mod stack;
mod tables;

pub use back_pressure::BackPressure;
pub use choice::PolicyChoice;
pub use duty::{Duty, Turn};
pub use elsewhere::{Elsewhere, translated};
pub use group::check_group_policy;
pub use info::{ParamInfo, PolicyInfo};
pub use knots::untie;
pub use policies::*;
pub use policy::{Explanation, MergePolicy, Needs, Shape, is_memtable_full, written_bytes_max};
pub use pressure::Load;
pub use registry::Registry;
pub use stack::{Eager, Largest, Stack, StackRun};
