//! Counts operations, and chooses which ones fail.

use super::class::{Effect, Fault, Lasting, OpClass};
use crate::sync::Mutex;
use std::io;
use std::path::{Path, PathBuf};

/// Counts and rules, shared by all files of an environment.
#[derive(Debug, Default)]
pub(super) struct FaultRules(Mutex<RuleState>);

#[derive(Debug, Default)]
struct RuleState {
    counts: [u64; OpClass::ALL.len()],
    rules: Vec<(Fault, Effect)>,
    first_failed: Option<(OpClass, PathBuf)>,
}

/// A failure that a rule demands now.
pub(super) struct Due {
    pub(super) effect: Effect,
    pub(super) error: io::Error,
}

impl FaultRules {
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

    /// Counts an operation of `class` on `path`, and returns its failure if a rule makes it fail.
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
            // Later failures have no effect: the device is gone.
            *effect = Effect::Nothing;
            rule.lasting == Lasting::Forever
        });
        let (kind, effect) = failure?;
        state.first_failed.get_or_insert_with(|| (class, path.to_path_buf()));
        let message = format!("injected fault in {class:?} of {}", path.display());
        Some(Due { effect, error: io::Error::new(kind, message) })
    }

    /// Runs `wholly`, unless a rule makes the operation fail. Then it runs as much as the effect of
    /// the rule says: nothing, `partly` or `wholly`.
    pub(super) fn run<T>(
        &self,
        class: OpClass,
        path: &Path,
        wholly: impl FnOnce() -> io::Result<T>,
        partly: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<T> {
        let Some(Due { effect, error }) = self.due(class, path) else { return wholly() };
        // The operation returns the injected error, even if it failed by itself.
        match effect {
            Effect::Wholly => drop(wholly()),
            Effect::Partly => drop(partly()),
            Effect::Nothing | Effect::Dropped => {}
        }
        Err(error)
    }

    /// Like [`run`](FaultRules::run), for operations without parts.
    pub(super) fn run_whole<T>(
        &self,
        class: OpClass,
        path: &Path,
        wholly: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        self.run(class, path, wholly, || Ok(()))
    }
}
