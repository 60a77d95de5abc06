//! What readers leave behind.
//!
//! A reader that holds an old version of a tree for a little longer than anyone else ends it: frees
//! memtables, unmaps and removes the files of merged tables, punches holes into others. For large
//! ones that takes tens of milliseconds, which are no reader's business. So it leaves the version
//! to the threads that merge, where there are some.

use crate::threads::{self, Pool};
use lsmith_storage::sync::Mutex;
use std::fmt;
use std::sync::Arc;

/// Versions that wait for their end.
#[derive(Default)]
pub(crate) struct Leftovers {
    state: Mutex<State>,
    /// Held by who ends them, so that who waits for that can.
    ending: Mutex<()>,
}

#[derive(Default)]
struct State {
    /// The threads that merge; none before they work for the store, or once they have left it.
    pool: Option<Arc<Pool>>,
    things: Vec<Box<dyn Send>>,
}

impl fmt::Debug for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leftovers").finish_non_exhaustive()
    }
}

impl Leftovers {
    /// From now on the threads of `pool` end what others leave.
    pub(crate) fn open(&self, pool: &Arc<Pool>) {
        self.state.lock().pool = Some(Arc::clone(pool));
    }

    /// Ends all there is. From now on everybody ends what he lets go.
    pub(crate) fn close(&self) {
        self.state.lock().pool = None;
        self.end_all();
    }

    /// Ends `thing`, or leaves it to those who merge.
    pub(crate) fn leave(&self, thing: impl Send + 'static) {
        if threads::is_merging_thread() {
            return;
        }
        let mut state = self.state.lock();
        let Some(pool) = state.pool.clone() else { return };
        state.things.push(Box::new(thing));
        drop(state);
        pool.notify();
    }

    /// Ends what was left, unless another thread is at it.
    pub(crate) fn end_some(&self) {
        if let Some(_ending) = self.ending.try_lock() {
            self.end();
        }
    }

    /// Ends what was left; none of it is there any more on return.
    pub(crate) fn end_all(&self) {
        let _ending = self.ending.lock();
        self.end();
    }

    fn end(&self) {
        let things = std::mem::take(&mut self.state.lock().things);
        drop(things);
    }
}
