//! Policies by name.

use crate::{MergePolicy, policies};
use lsmith_spec::{Params, Spec, SpecError};
use std::sync::Arc;

/// One parameter of a policy, for people to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamInfo {
    /// The name in the spec.
    pub name: &'static str,
    /// The default, as it would be written.
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
    /// Builds it from arguments whose names have been checked against `params`.
    pub build: fn(&Params<'_>) -> Result<Arc<dyn MergePolicy>, SpecError>,
}

/// The policies that specs can name. A store or a command is given one, so a program can add
/// policies of its own.
#[derive(Clone, Debug)]
pub struct Registry {
    infos: Vec<PolicyInfo>,
}

impl Default for Registry {
    fn default() -> Registry {
        Registry::builtin()
    }
}

impl Registry {
    /// Every policy of this crate.
    pub fn builtin() -> Registry {
        let mut infos = vec![
            policies::None::INFO,
            policies::Bigtable::INFO,
            policies::Constant::INFO,
            policies::Exploring::INFO,
            policies::MinLatency::INFO,
            policies::Binomial::INFO,
            policies::Tiered::INFO,
            policies::Leveled::INFO,
            policies::Sweep::INFO,
        ];
        infos.extend(policies::FixedTake::infos());
        infos.push(policies::Mixed::INFO);
        Registry { infos }
    }

    /// Adds a policy, or replaces the one of the same name.
    pub fn register(&mut self, info: PolicyInfo) {
        self.infos.retain(|other| other.name != info.name);
        self.infos.push(info);
    }

    /// All policies, in the order in which they were added.
    pub fn infos(&self) -> &[PolicyInfo] {
        &self.infos
    }

    /// Builds the policy that `spec` spells, such as `tiered(ratio=4)`.
    ///
    /// # Errors
    /// The spec cannot be read, names a policy or parameter that is not known (the error names the
    /// nearest one that is), or gives a value out of range.
    pub fn build(&self, spec: &str) -> Result<Arc<dyn MergePolicy>, SpecError> {
        self.build_spec(&spec.parse()?)
    }

    /// Builds the policy of a spec that has been read.
    ///
    /// # Errors
    /// As [`build`](Registry::build).
    pub fn build_spec(&self, spec: &Spec) -> Result<Arc<dyn MergePolicy>, SpecError> {
        let Some(info) = self.infos.iter().find(|info| info.name == spec.name) else {
            let names: Vec<_> = self.infos.iter().map(|info| info.name).collect();
            return Err(SpecError::unknown("policy", &spec.name, &names));
        };
        let names: Vec<_> = info.params.iter().map(|param| param.name).collect();
        (info.build)(&Params::new(spec, &names, 0)?)
    }
}
