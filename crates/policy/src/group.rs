//! Which policies can merge several keyspaces together.

use crate::{MergePolicy, Shape};

/// Fails unless `policy` merges whole runs. The keyspaces of a group share runs. Each run covers
/// the same writes in all of them. A policy that takes windows of keys would break that.
///
/// # Errors
/// The message names the nearest policy that merges whole runs.
pub fn check_group_policy(policy: &dyn MergePolicy) -> Result<(), String> {
    let nearest = match policy.shape() {
        Shape::Leveled { ratio, .. } => format!("tiered(ratio={})", ratio.round().max(2.0)),
        Shape::Stack { runs_max } if policy.needs().windows => {
            format!("minlatency(k={})", runs_max.max(1))
        }
        Shape::Tiered { ratio } if policy.needs().windows => format!("tiered(ratio={ratio})"),
        Shape::Unmerged if policy.needs().windows => "none".to_string(),
        Shape::Stack { .. } | Shape::Tiered { .. } | Shape::Unmerged => return Ok(()),
    };
    let spec = policy.spec();
    Err(format!(
        "the keyspaces of a group merge whole runs: expected a policy of whole runs, such as \
         {nearest}, found {spec}"
    ))
}
