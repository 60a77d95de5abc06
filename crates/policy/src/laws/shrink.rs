//! Makes the view on which a policy breaks a law smaller, so that a person can see why.
//!
//! Pieces of the text of the view are left out, as long as the policy breaks the same law on what
//! is left: whole lines, then runs, slices, profiles and single words. A law that is about a course
//! of merges, not about one view, keeps its view.

use super::law::{Law, LawError};
use super::random::Random;
use super::store::{Sizes, Store};
use super::suite;
use crate::MergePolicy;
use lsmith_tree::{TreeView, check_plan, check_tree};
use std::ops::Range;

/// The most views that are tried. Random trees have up to some hundred pieces.
const TRIES_MAX: usize = 3000;

/// Returns `error` with a view from which no piece can be left out.
pub(super) fn shrunk(policy: &dyn MergePolicy, error: LawError) -> LawError {
    let mut least = error;
    let mut tries = 0;
    loop {
        let before = least.view.len();
        let mut at = 0;
        while let Some(piece) = pieces(&least.view).get(at).cloned() {
            tries += 1;
            if tries > TRIES_MAX {
                return least;
            }
            let mut text = least.view.clone();
            text.replace_range(piece, "");
            match broken_on(policy, &text, least.law) {
                Some(smaller) if smaller.view.len() < least.view.len() => least = smaller,
                _ => at += 1,
            }
        }
        if least.view.len() == before {
            return least;
        }
    }
}

/// Returns how `policy` breaks `law` on the view with this text. Returns `None` if it does not, or
/// if the text is no legal view.
fn broken_on(policy: &dyn MergePolicy, text: &str, law: Law) -> Option<LawError> {
    let view: TreeView = text.parse().ok()?;
    if check_tree(&view.tree).is_err() || !are_reservations_legal(&view) {
        return None;
    }
    let random = &mut Random::new(0);
    let mut store = Store::new(view, policy, Sizes::EXACT, random);
    let judged = match law {
        Law::Legal | Law::Pure | Law::Total => store.ask().map(|_| ()),
        Law::Words => store.ask().and_then(|_| suite::words_on(&store)),
        Law::Pressure => suite::words_on(&store).and_then(|()| store.stays_at_rest()),
        Law::Rest => store.settle(),
        Law::Progress | Law::Reservations | Law::Free => Ok(()),
    };
    judged.err().filter(|error| error.law == law)
}

/// Returns true if each reserved plan was legal beside those before it.
fn are_reservations_legal(view: &TreeView) -> bool {
    let mut before = TreeView { reservations: Vec::new(), ..view.clone() };
    view.reservations.iter().all(|reservation| {
        let is_legal = check_plan(&before, &reservation.plan).is_ok();
        before.reservations.push(reservation.clone());
        is_legal
    })
}

/// Returns the pieces of `text`, large ones first.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let mut lines = Vec::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        lines.push(start..start + line.len());
        start += line.len();
    }
    // A run is a word with brackets around its slices, which commas separate. A profile is in
    // braces.
    let [mut runs, mut slices, mut profiles] = [const { Vec::new() }; 3];
    let (mut word, mut slice, mut brace) = (0, 0, None);
    let mut run = None;
    for (at, c) in text.char_indices() {
        match c {
            ' ' | '\n' if run.is_none() => word = at,
            '[' if run.is_none() => (run, slice) = (Some(word), at + 1),
            '{' => brace = Some(at),
            '}' => profiles.extend(brace.take().map(|from: usize| from.saturating_sub(1)..at + 1)),
            // The piece has the comma behind it, and the last one the comma before it.
            ',' if run.is_some() && brace.is_none() => {
                slices.push(slice..(at + 2).min(text.len()));
                slice = at + 2;
            }
            ']' => {
                runs.extend(run.take().map(|from| from..at + 1));
                slices.push(slice.saturating_sub(2)..at);
            }
            _ => {}
        }
    }
    [lines, runs, slices, profiles, words(text)].concat()
}

/// Returns the words that say how many memtables were flushed, of what table a slice is a part, and
/// what sequence numbers it has.
fn words(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let starts: Vec<usize> = text.match_indices(' ').map(|(at, _)| at).collect();
    let end_of = |start: usize| {
        let rest = &text[start + 1..];
        start + 1 + rest.find([' ', '\n', ',', ']']).unwrap_or(rest.len())
    };
    for start in starts {
        let end = end_of(start);
        match &text[start + 1..end] {
            "flushes" | "flushed" | "of" if end < text.len() => found.push(start..end_of(end)),
            word if word.starts_with('s') && word.contains("..") => found.push(start..end),
            _ => {}
        }
    }
    found
}
