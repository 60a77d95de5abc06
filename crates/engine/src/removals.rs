//! Files that wait to be removed while the store is being copied.
//!
//! A copy of the store is made of the files that it has at one moment. Logs and copies of memory
//! that the store no longer needs meanwhile are removed after the copy is made. (Tables stay as
//! long as a version holds them.) If the process dies, the next opening removes them: nothing names
//! them.

use lsmith_storage::directory;
use lsmith_storage::env::Env;
use lsmith_storage::panics;
use lsmith_storage::sync::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Removes files of an open store, at once or later.
#[derive(Debug, Default)]
pub(crate) struct Removals {
    state: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    /// The number of live holds.
    holds: usize,
    /// The files that wait, and what each is.
    files: Vec<(PathBuf, &'static str)>,
}

/// Keeps files from being removed as long as it lives.
#[derive(Debug)]
pub(crate) struct Hold {
    of: Arc<Removals>,
    env: Arc<dyn Env>,
}

impl Removals {
    /// Keeps the files that are removed from now on until the hold is dropped.
    pub(crate) fn hold(self: &Arc<Self>, env: &Arc<dyn Env>) -> Hold {
        self.state.lock().holds += 1;
        Hold { of: Arc::clone(self), env: Arc::clone(env) }
    }

    /// Removes the file at `path`, as [`directory::remove`] does, as soon as no hold is left.
    pub(crate) fn remove(&self, env: &dyn Env, path: &Path, what: &'static str) {
        let mut state = self.state.lock();
        if state.holds > 0 {
            state.files.push((path.to_path_buf(), what));
            return;
        }
        drop(state);
        directory::remove(env, path, what);
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut state = self.of.state.lock();
        state.holds -= 1;
        let files = if state.holds == 0 { std::mem::take(&mut state.files) } else { Vec::new() };
        drop(state);
        for (path, what) in files {
            panics::logged("the environment", || directory::remove(&*self.env, &path, what));
        }
    }
}
