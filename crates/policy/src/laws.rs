//! The laws of merge policies, as a suite that any policy can be put through, also one written
//! outside this workspace:
//!
//! ```
//! use lsmith_policy::{Registry, laws};
//!
//! let policy = Registry::builtin().build("tiered(ratio=3)")?;
//! laws::check(policy.as_ref())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! The suite makes up trees, lets the policy plan on them and carries the plans out with sizes
//! that add up ([`outcome()`]), with sizes that are off by a tenth, and with data that vanish. All
//! of it follows from fixed seeds: a policy that passes once passes always. It takes well under a
//! second for a policy that looks at runs only.

mod free;
mod law;
mod odd;
mod outcome;
mod random;
mod shrink;
mod store;
mod suite;

pub use law::{Law, LawError};
pub use outcome::outcome;

use crate::MergePolicy;

/// Checks `policy` against every law.
///
/// # Errors
/// Fails with the first law that the policy breaks, and the view on which it does. A view that
/// breaks the law by itself is made as small as it can be.
pub fn check(policy: &dyn MergePolicy) -> Result<(), LawError> {
    check_all(policy).map_err(|error| shrink::shrunk(policy, error))
}

fn check_all(policy: &dyn MergePolicy) -> Result<(), LawError> {
    suite::words(policy)?;
    suite::any_tree(policy)?;
    suite::odd_trees(policy)?;
    suite::growth(policy)?;
    suite::side_by_side(policy)?;
    suite::blocked(policy)?;
    suite::switches(policy)?;
    free::free(policy)
}
