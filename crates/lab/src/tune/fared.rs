//! How policies fared that somebody asked for.

use super::candidate::Candidate;
use super::choice::Choice;
use super::grid::UNTRIED;
use super::limits::Limits;
use super::search::Search;
use lsmith_policy::{MergePolicy, Registry};
use lsmith_spec::Spec;
use serde::Serialize;

/// How a policy fared that was asked for by name, or that a program has registered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Fared {
    /// The policy as it was asked for. Parameters that its spec leaves out were varied.
    pub asked: String,
    /// The number of choices of its parameters that were simulated.
    pub choices: usize,
    /// The best of them. `None` if each writes or reads too much to be simulated.
    pub best: Option<Choice>,
    /// True if this is within the limits.
    pub is_within: bool,
    /// Its score over the score of the best choice of all, minus 1.
    pub above: Option<f64>,
}

/// Checks that parameters of `policy` can be tried.
///
/// # Errors
/// Fails with the reason if they cannot.
pub fn check_tried(policy: &dyn MergePolicy) -> Result<(), String> {
    let spec = policy.spec();
    if UNTRIED.contains(&spec.name.as_str()) {
        return Err(format!(
            "`tune` simulates smaller memtables, and the levels of {} are bytes: try `leveled`, \
             which counts in tables",
            spec.name
        ));
    }
    match policy.needs().drops {
        true => Err(format!("{} drops data, which then costs nothing: `tune` skips it", spec.name)),
        false => Ok(()),
    }
}

/// Returns the policies that `limits` ask for, and all that a program has registered beside the
/// policies of lsmith.
pub(super) fn asked(limits: &Limits, registry: &Registry) -> Vec<Spec> {
    let builtin = Registry::builtin();
    let is_new = |name: &str| builtin.infos().iter().all(|info| info.name != name);
    let infos = registry.infos().iter().filter(|info| is_new(info.name));
    let registered = infos.map(|info| Spec::bare(info.name)).filter(|spec| {
        let built = registry.build_spec(spec);
        built.is_ok_and(|policy| check_tried(&*policy).is_ok()) && !limits.policies.contains(spec)
    });
    limits.policies.iter().cloned().chain(registered).collect()
}

/// Says how each policy that was asked for fared against `best`. `choice` makes a choice of a
/// candidate.
pub(super) fn all(
    search: &Search<'_>,
    best: &Candidate,
    choice: impl Fn(&Candidate) -> Option<Choice>,
) -> Vec<Fared> {
    let is_best = |index: &usize| search.candidates[*index].spec == best.spec;
    let best_score = (0..search.candidates.len()).find(is_best).map(|index| search.score(index));
    let fared = |asked: &Spec| {
        let own = search.best_of(asked);
        let own_score = own.map(|index| search.score(index));
        Fared {
            asked: asked.to_string(),
            choices: search.of(asked).count(),
            best: own.and_then(|index| choice(&search.candidates[index])),
            is_within: own.is_some_and(|index| search.is_within(index)),
            above: own_score.zip(best_score).map(|(own, best)| own / best - 1.0),
        }
    };
    search.asked.iter().map(fared).collect()
}
