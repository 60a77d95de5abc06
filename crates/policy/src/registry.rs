//! Policies by name.

use crate::elsewhere::translated;
use crate::{MergePolicy, PolicyInfo, policies};
use lsmith_spec::{Spec, SpecError};
use std::sync::Arc;

/// The policies that specs can name. A program can register policies of its own, and hand the
/// registry to a store or a command.
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
    /// Returns a registry of all policies of this crate.
    pub fn builtin() -> Registry {
        let mut infos = vec![
            policies::None::INFO,
            policies::Auto::INFO,
            policies::Arce::INFO,
            policies::Fifo::INFO,
            policies::Bigtable::INFO,
            policies::Constant::INFO,
            policies::Exploring::INFO,
            policies::HbaseStripe::INFO,
            policies::MinLatency::INFO,
            policies::Binomial::INFO,
            policies::Tiered::INFO,
            policies::Leveled::INFO,
            policies::Lethe::INFO,
            policies::Vertiorizon::INFO,
            policies::Sweep::INFO,
            policies::Leveled::LEVELDB,
            policies::Leveled::ROCKSDB,
            policies::Cola::INFO,
            policies::Samt::INFO,
            policies::Universal::INFO,
            policies::Fluid::INFO,
            policies::Fluid::LAZY_LEVELING,
            policies::Fluid::AUTUMN,
            policies::Moose::INFO,
            policies::Spooky::INFO,
            policies::Ucs::INFO,
            policies::LuceneTiered::INFO,
            policies::ClickHouse::INFO,
            policies::Ics::INFO,
            policies::Triangular::INFO,
            policies::Jungle::INFO,
        ];
        infos.extend(policies::FixedTake::infos());
        infos.push(policies::Mixed::INFO);
        Registry { infos }
    }

    /// Adds a policy, or replaces the policy of the same name.
    pub fn register(&mut self, info: PolicyInfo) {
        self.infos.retain(|other| other.name != info.name);
        self.infos.push(info);
    }

    /// Returns the policies, in the order in which they were added.
    pub fn infos(&self) -> &[PolicyInfo] {
        &self.infos
    }

    /// Builds the policy that `spec` describes, such as `tiered(ratio=4)`.
    ///
    /// # Errors
    /// Fails if the spec cannot be parsed, names an unknown policy or parameter, or gives a value
    /// out of range. The error for an unknown name suggests the nearest known one, and says of a
    /// name of another system what that is here.
    pub fn build(&self, spec: &str) -> Result<Arc<dyn MergePolicy>, SpecError> {
        let parsed = spec.parse().map_err(|error| translated(spec, error))?;
        self.build_spec(&parsed)
    }

    /// Builds the policy of a parsed spec.
    ///
    /// # Errors
    /// Fails as [`build`](Registry::build) does.
    pub fn build_spec(&self, spec: &Spec) -> Result<Arc<dyn MergePolicy>, SpecError> {
        let Some(info) = self.infos.iter().find(|info| info.name == spec.name) else {
            let names: Vec<_> = self.infos.iter().map(|info| info.name).collect();
            let error = SpecError::unknown("policy", &spec.name, &names);
            return Err(translated(&spec.to_string(), error));
        };
        info.read(spec, info.build).map_err(|error| translated(&spec.to_string(), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row says what the policy does, and one what it costs.
    #[test]
    fn the_page_of_policies_has_each_twice() {
        let page = include_str!("../../../docs/policy-table.md");
        for info in Registry::builtin().infos() {
            let row = format!("| `{}` |", info.name);
            let rows = page.lines().filter(|line| line.starts_with(&row)).count();
            assert_eq!(rows, 2, "docs/policy-table.md has {rows} rows of {}, not 2", info.name);
        }
    }
}
