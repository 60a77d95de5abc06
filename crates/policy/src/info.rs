//! What people and specs know of a policy.

use crate::MergePolicy;
use lsmith_spec::{Params, Spec, SpecError};
use std::sync::Arc;

/// A parameter of a policy, described for people.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// The name in the spec.
    pub name: &'static str,
    /// The default, as written in a spec.
    pub default: &'static str,
    /// What it means.
    pub meaning: &'static str,
}

/// A policy that can be built from a spec.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInfo {
    /// The name in the spec.
    pub name: &'static str,
    /// Where the policy comes from.
    pub source: &'static str,
    /// What it does, in one sentence.
    pub summary: &'static str,
    /// Its parameters.
    pub params: &'static [ParamInfo],
    /// Builds the policy from arguments whose names occur in `params`.
    pub build: fn(&Params<'_>) -> Result<Arc<dyn MergePolicy>, SpecError>,
}

impl PolicyInfo {
    /// Reads a policy of this kind from `spec`, by `read`.
    pub(crate) fn read<P>(
        &self,
        spec: &Spec,
        read: impl Fn(&Params<'_>) -> Result<P, SpecError>,
    ) -> Result<P, SpecError> {
        let names: Vec<_> = self.params.iter().map(|param| param.name).collect();
        read(&Params::new(spec, &names, 0)?)
    }
}
