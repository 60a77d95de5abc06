//! Threads that carry out merges, for one store or several.

use crate::error::{Error, ErrorKind, Result};
use crate::scheduler::Duty;
use crate::shared::Shared;
use parking_lot::{Condvar, Mutex};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long an idle thread sleeps before it looks whether failed plans can be tried again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Threads that merge. A store has its own unless it is [given](crate::Builder::shared_threads)
/// these, which several stores can share: a thread goes from one to the next, so that none waits
/// for all merges of another.
///
/// Cheap to clone. The threads end with the last handle, of which every open store holds one.
///
/// ```
/// # let (left, right) = (tempfile::tempdir()?, tempfile::tempdir()?);
/// use lsmith::{Store, Threads};
///
/// let threads = Threads::new(2)?;
/// let left = Store::builder(left.path()).shared_threads(&threads).open()?;
/// let right = Store::builder(right.path()).shared_threads(&threads).open()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Threads {
    owner: Arc<Owner>,
}

/// Ends the threads when dropped.
struct Owner {
    pool: Arc<Pool>,
    handles: Mutex<Vec<JoinHandle<()>>>,
}

/// What the threads and their stores share.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<State>,
    changed: Condvar,
    /// Where those wait who want to leave. Threads that were told of everybody who stops working
    /// would wake each other for ever.
    left: Condvar,
}

#[derive(Default)]
struct State {
    /// Changes whenever something happened that could give work.
    turn: u64,
    closing: bool,
    stores: Vec<Member>,
}

/// A store, and how many threads are at work for it.
struct Member {
    store: Arc<Shared>,
    threads: usize,
    leaving: bool,
}

thread_local! {
    static MERGES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is one of the threads that merge.
pub(crate) fn is_merging_thread() -> bool {
    MERGES.get()
}

impl Threads {
    /// Starts `count` threads, at least 1. With two or more, one is kept for plans that take a
    /// memtable.
    ///
    /// # Errors
    /// `Io` where the system gives no thread.
    pub fn new(count: usize) -> Result<Threads> {
        let pool = Arc::new(Pool::default());
        // Made first: if a thread cannot be started, dropping it ends the others.
        let threads = Threads { owner: Arc::new(Owner { pool, handles: Mutex::default() }) };
        let count = count.max(1);
        for index in 0..count {
            let duty = if index > 0 && index + 1 == count { Duty::Memory } else { Duty::All };
            let pool = Arc::clone(&threads.owner.pool);
            let thread = thread::Builder::new().name(format!("lsmith-merge-{index}"));
            let handle = thread.spawn(move || pool.work(duty)).map_err(|error| {
                Error::new(ErrorKind::Io, format!("cannot start a thread: {error}"))
            })?;
            threads.owner.handles.lock().push(handle);
        }
        Ok(threads)
    }

    /// How many threads there are.
    pub fn count(&self) -> usize {
        self.owner.handles.lock().len()
    }

    /// Works for `store` until it [leaves](Threads::leave).
    pub(crate) fn join(&self, store: &Arc<Shared>) {
        let Pool { state, .. } = &*self.owner.pool;
        state.lock().stores.push(Member { store: Arc::clone(store), threads: 0, leaving: false });
        store.work.meet_in(&self.owner.pool);
        store.leftovers.open(&self.owner.pool);
        self.owner.pool.notify();
    }

    /// Works no more for `store`, which is closing, and waits until no thread does.
    pub(crate) fn leave(&self, store: &Arc<Shared>) {
        let Pool { state, left, .. } = &*self.owner.pool;
        let mut state = state.lock();
        if let Some(member) = state.member(store) {
            member.leaving = true;
        }
        left.wait_while(&mut state, |state| {
            state.member(store).is_some_and(|member| member.threads > 0)
        });
        state.stores.retain(|member| !Arc::ptr_eq(&member.store, store));
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.pool.state.lock().closing = true;
        self.pool.changed.notify_all();
        for handle in self.handles.get_mut().drain(..) {
            // An observer may have held the last handle: no thread can wait for itself.
            if handle.thread().id() != thread::current().id() && handle.join().is_err() {
                tracing::error!("a merging thread panicked");
            }
        }
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

impl State {
    fn member(&mut self, store: &Arc<Shared>) -> Option<&mut Member> {
        self.stores.iter_mut().find(|member| Arc::ptr_eq(&member.store, store))
    }
}

impl Pool {
    /// Something has changed.
    pub(crate) fn notify(&self) {
        self.state.lock().turn += 1;
        self.changed.notify_all();
    }

    /// Works for all stores in turns, until the pool closes.
    fn work(&self, duty: Duty) {
        MERGES.set(true);
        loop {
            let (turn, stores) = {
                let state = self.state.lock();
                if state.closing {
                    return;
                }
                (state.turn, state.stores.iter().map(|m| Arc::clone(&m.store)).collect::<Vec<_>>())
            };
            let mut worked = false;
            for store in stores {
                worked |= self.work_for(store, duty);
            }
            let mut state = self.state.lock();
            if state.turn == turn && !worked && !state.closing {
                self.changed.wait_for(&mut state, LOOK_AGAIN);
            }
        }
    }

    /// Does something for `store`, unless it has left; whether there was something to do.
    fn work_for(&self, store: Arc<Shared>, duty: Duty) -> bool {
        match self.state.lock().member(&store) {
            Some(member) if !member.leaving => member.threads += 1,
            _ => return false,
        }
        let at_work = AtWork { pool: self, store };
        at_work.store.work_once(duty)
    }
}

/// A thread at work for a store; also one that panics stops being that.
struct AtWork<'a> {
    pool: &'a Pool,
    store: Arc<Shared>,
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        if let Some(member) = self.pool.state.lock().member(&self.store) {
            member.threads -= 1;
            if member.leaving {
                self.pool.left.notify_all();
            }
        }
    }
}
