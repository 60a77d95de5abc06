//! A policy as a program gives it to a store.

use crate::{MergePolicy, Registry};
use lsmith_spec::{Spec, SpecError};
use std::sync::Arc;

/// A merge policy, as text that a [`Registry`] builds or as a value.
///
/// Text such as `"tiered(ratio=4)"`, a [`Spec`], a policy and an `Arc<dyn MergePolicy>` convert
/// into it. Two choices are equal if their specs have the same text.
#[derive(Clone, Debug)]
pub enum PolicyChoice {
    /// The text of a spec.
    Spec(String),
    /// The policy itself. It needs no registry.
    Value(Arc<dyn MergePolicy>),
}

impl PolicyChoice {
    /// Returns the policy. `registry` builds it from text.
    ///
    /// # Errors
    /// Fails as [`Registry::build`] does.
    pub fn build(&self, registry: &Registry) -> Result<Arc<dyn MergePolicy>, SpecError> {
        match self {
            PolicyChoice::Spec(spec) => registry.build(spec),
            PolicyChoice::Value(policy) => Ok(Arc::clone(policy)),
        }
    }

    /// Returns the text of the spec.
    pub fn spec(&self) -> String {
        match self {
            PolicyChoice::Spec(spec) => spec.clone(),
            PolicyChoice::Value(policy) => policy.spec().to_string(),
        }
    }
}

impl PartialEq for PolicyChoice {
    fn eq(&self, other: &PolicyChoice) -> bool {
        self.spec() == other.spec()
    }
}

impl Eq for PolicyChoice {}

impl From<&str> for PolicyChoice {
    fn from(spec: &str) -> PolicyChoice {
        PolicyChoice::Spec(spec.to_string())
    }
}

impl From<&String> for PolicyChoice {
    fn from(spec: &String) -> PolicyChoice {
        PolicyChoice::Spec(spec.clone())
    }
}

impl From<String> for PolicyChoice {
    fn from(spec: String) -> PolicyChoice {
        PolicyChoice::Spec(spec)
    }
}

impl From<Spec> for PolicyChoice {
    fn from(spec: Spec) -> PolicyChoice {
        PolicyChoice::Spec(spec.to_string())
    }
}

impl From<Arc<dyn MergePolicy>> for PolicyChoice {
    fn from(policy: Arc<dyn MergePolicy>) -> PolicyChoice {
        PolicyChoice::Value(policy)
    }
}

impl<P: MergePolicy + 'static> From<P> for PolicyChoice {
    fn from(policy: P) -> PolicyChoice {
        PolicyChoice::Value(Arc::new(policy))
    }
}
