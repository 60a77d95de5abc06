//! The laws, and what is told of a policy that breaks one.

use std::fmt;

/// A law of merge policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// A plan passes [`check_plan`](lsmith_tree::check_plan), including reservations.
    Legal,
    /// The same view gives the same plan, whatever was asked before. So does the view after a round
    /// trip through text.
    Pure,
    /// Any legal tree gets an answer without panic.
    Total,
    /// Without further writes, plans end.
    Rest,
    /// The tree is within the bound of the policy's own [`shape`](crate::MergePolicy::shape) once
    /// its bytes and one ratio of new data have been merged, and stays there.
    Progress,
    /// A plan that was reserved is still legal when it commits.
    Reservations,
    /// Spec, explanation and sealing are consistent, and every plan has a reason.
    Words,
    /// The pressure is a number from 0 to 1, and no less if more memtables wait. It is 0 at rest.
    /// At 1 there is a plan.
    Pressure,
    /// While memtables arrive faster than merges end, the tree keeps near what it is in lockstep:
    /// at most 1.3 times as many runs and 1.2 times as many bytes, and what lies in memory, is
    /// flushed and is merged at that moment. That must hold in the mean and at the worst moment,
    /// with one, two and four merging threads, however long merges take.
    ///
    /// The law asks the policy for its plans and its pressure, in virtual time. It makes of the
    /// pressure what a store makes of it ([`back_pressure`](crate::back_pressure)).
    Free,
}

/// A law that a policy breaks, with the view on which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LawError {
    pub(super) law: Law,
    pub(super) policy: String,
    pub(super) what: String,
    pub(super) view: String,
}

impl LawError {
    /// Returns the law.
    pub fn law(&self) -> Law {
        self.law
    }

    /// Returns the view on which the policy breaks the law, as text.
    pub fn view(&self) -> &str {
        &self.view
    }
}

impl fmt::Display for LawError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LawError { law, policy, what, view } = self;
        write!(f, "{policy} breaks the law `{law:?}`: {what}\n{view}")
    }
}

impl std::error::Error for LawError {}
