//! Counting operations, and choosing those that fail.

use super::class::{Effect, Fault, Lasting, OpClass};
use crate::sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};

/// Counts and rules, shared by all files of an environment.
#[derive(Debug, Default)]
pub(super) struct Plan(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    counts: [u64; OpClass::ALL.len()],
    rules: Vec<(Fault, Effect)>,
    first_failed: Option<(OpClass, PathBuf)>,
}

/// A failure that is due.
pub(super) struct Due {
    pub(super) effect: Effect,
    pub(super) error: io::Error,
}

impl Plan {
    pub(super) fn set(&self, fault: Fault, effect: Effect) {
        self.0.lock().rules.push((fault, effect));
    }

    pub(super) fn clear(&self) {
        let mut state = self.0.lock();
        state.rules.clear();
        state.first_failed = None;
    }

    pub(super) fn counts(&self) -> [u64; OpClass::ALL.len()] {
        self.0.lock().counts
    }

    pub(super) fn first_failed(&self) -> Option<(OpClass, PathBuf)> {
        self.0.lock().first_failed.clone()
    }

    /// Counts an operation of `class` on `path`, and says whether it is to fail.
    pub(super) fn due(&self, class: OpClass, path: &Path) -> Option<Due> {
        let mut state = self.0.lock();
        state.counts[class as usize] += 1;
        let mut failure = None;
        state.rules.retain_mut(|(rule, effect)| {
            if rule.class.is_some_and(|concerned| concerned != class) {
                return true;
            }
            if rule.after > 0 {
                rule.after -= 1;
                return true;
            }
            failure.get_or_insert((rule.kind, *effect));
            // What fails later on has no effect any more: the device is gone.
            *effect = Effect::Nothing;
            rule.lasting == Lasting::Forever
        });
        let (kind, effect) = failure?;
        state.first_failed.get_or_insert_with(|| (class, path.to_path_buf()));
        let told = format!("injected fault in {class:?} of {}", path.display());
        Some(Due { effect, error: io::Error::new(kind, told) })
    }

    /// Runs `wholly`, unless a rule says that this operation fails; then as much of it as the rule
    /// says, of which `partly` is a part.
    pub(super) fn run<T>(
        &self,
        class: OpClass,
        path: &Path,
        wholly: impl FnOnce() -> io::Result<T>,
        partly: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<T> {
        let Some(Due { effect, error }) = self.due(class, path) else { return wholly() };
        // How it would have failed by itself is of no interest.
        match effect {
            Effect::Wholly => drop(wholly()),
            Effect::Partly => drop(partly()),
            Effect::Nothing | Effect::Dropped => {}
        }
        Err(error)
    }

    /// Does as [`run`](Plan::run) with what happens as a whole or not at all.
    pub(super) fn run_whole<T>(
        &self,
        class: OpClass,
        path: &Path,
        wholly: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.run(class, path, wholly, || Ok(()))
    }
}
