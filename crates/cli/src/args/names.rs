//! Arguments that begin with a name, so that shells complete it.

use crate::specs;
use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use lsmith_papers::FIGURES;
use lsmith_workload::Workload;
use std::ffi::OsStr;

/// Takes any text, and tells shells the names that it can begin with. A wrong name is found later,
/// with the whole spec.
#[derive(Clone, Copy)]
pub(super) struct Names(fn() -> Vec<&'static str>);

/// Names of policies.
pub(super) const POLICIES: Names =
    Names(|| specs::registry().infos().iter().map(|info| info.name).collect());

/// Names of workloads.
pub(super) const WORKLOADS: Names =
    Names(|| Workload::INFOS.iter().map(|info| info.name).collect());

/// What simulated tables contain.
pub(super) const CONTENTS: Names = Names(|| vec!["unit", "keyed", "fluid"]);

/// Names of figures of papers.
pub(super) const PAPER_FIGURES: Names = Names(|| FIGURES.iter().map(|info| info.name).collect());

impl TypedValueParser for Names {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}
