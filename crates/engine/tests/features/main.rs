//! Features in pairs and threes, under one random model.
//!
//! Promised: whichever two or three features of the store a program uses, in whatever order, every
//! read returns what the documentation says. `oracle.rs` says it: a list of what was written to
//! each key, with its number, and no line of the store. The seed chooses the features, the
//! policies, the sizes and the steps.
//!
//! `LSMITH_FULL=1` takes ten times as many seeds, `LSMITH_SEED` one.
//! `LSMITH_FEATURES=Feed,Names` turns these features on instead of the seed's choice.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "the store is tested with threads"
)]
#![allow(clippy::unwrap_used, reason = "what panics in a test has failed it")]

#[allow(dead_code, reason = "each test program needs a part")]
#[path = "../it/frame/scripted.rs"]
mod scripted;

mod arrivals;
mod beside;
mod lives;
mod meeting;
mod operator;
mod oracle;
mod reads;
mod recorded;
mod run;
mod transactions;

use lsmith_fuzz::dice::{Dice, with_new_seeds, with_seeds};

/// What a run may use besides puts, deletes, reads, flushes and merges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Feature {
    Ranges,
    Operator,
    Expiry,
    Filter,
    Transactions,
    Arrivals,
    Checkpoints,
    Feed,
    Group,
    Names,
    Snapshots,
    Reader,
    Policies,
    Power,
    Reopen,
    Repair,
    Record,
    SpaceLimit,
}

use Feature::*;

const FEATURES: [Feature; 18] = [
    Ranges,
    Operator,
    Expiry,
    Filter,
    Transactions,
    Arrivals,
    Checkpoints,
    Feed,
    Group,
    Names,
    Snapshots,
    Reader,
    Policies,
    Power,
    Reopen,
    Repair,
    Record,
    SpaceLimit,
];

/// What the documentation excludes: a filter is asked of values before their last operands, so a
/// read has no single answer.
const APART: [[Feature; 2]; 3] = [[Operator, Expiry], [Operator, Filter], [Group, Arrivals]];

fn are_apart(one: Feature, other: Feature) -> bool {
    APART.contains(&[one, other]) || APART.contains(&[other, one])
}

/// Returns the features of a run: the requested ones, or else two or three. As many seeds in a row
/// as there are pairs play each pair once.
fn features(seed: u64, dice: &mut Dice) -> Vec<Feature> {
    if let Ok(asked) = std::env::var("LSMITH_FEATURES") {
        let is_asked =
            |feature: &Feature| asked.split(',').any(|name| name == format!("{feature:?}"));
        return FEATURES.into_iter().filter(is_asked).collect();
    }
    let pairs = FEATURES.iter().enumerate().flat_map(|(at, one)| {
        let others = FEATURES[..at].iter().filter(|other| !are_apart(*one, **other));
        others.map(|other| vec![*one, *other])
    });
    let pairs: Vec<Vec<Feature>> = pairs.collect();
    let mut chosen = pairs[(seed % pairs.len() as u64) as usize].clone();
    let third = *dice.pick(&FEATURES);
    if chosen.iter().all(|other| *other != third && !are_apart(third, *other)) && dice.chance(50) {
        chosen.push(third);
    }
    chosen
}

fn play(seed: u64) {
    let mut dice = Dice::new(seed);
    let features = features(seed, &mut dice);
    if std::env::var_os("LSMITH_SEED").is_some() {
        eprintln!("features: {features:?}");
    }
    run::Run::new(dice, features).go();
}

#[test]
fn features_together_agree_with_lists_of_what_was_written() {
    with_seeds(300, play);
}

#[test]
fn features_together_agree_with_new_seeds() {
    with_new_seeds(20, play);
}
