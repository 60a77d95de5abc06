//! Threads that merge, for one store or several.

use lsmith_policy::Duty;
use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::panics;
use lsmith_storage::sync::thread::{self, JoinHandle};
use lsmith_storage::sync::{Condvar, Mutex, Process};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// The most threads that merge: more than any machine has use for, and fewer than exhaust it.
const THREADS_MAX: usize = 1024;

/// Fails if no store can have `count` threads that merge.
pub(crate) fn check_threads(count: usize) -> Result<()> {
    if (1..=THREADS_MAX).contains(&count) {
        return Ok(());
    }
    let message = format!("{count} threads: expected 1 to {THREADS_MAX}");
    Err(Error::new(ErrorKind::InvalidArgument, message))
}

/// A store, as merging threads see it.
pub(crate) trait Worker: Send + Sync {
    /// Does one piece of work. Returns false if there was none. Never panics.
    fn work_once(&self, duty: Duty) -> bool;

    /// Closes the store. The pool calls this after the last thread has left the store.
    fn close(&self);
}

/// The longest sleep of an idle thread. It then checks whether failed plans can be tried again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Threads that merge, for several stores. A store has its own threads unless
/// [`Builder::shared_threads`](crate::Builder::shared_threads) gives it these. A thread works for
/// the stores in turns, so that no store waits for all merges of another.
///
/// A handle is cheap to clone, and every open store holds one. Dropping the last handle ends the
/// threads and waits for them. If one of the threads drops the last handle, they end a little
/// later. A panic of a policy, an observer or an environment does not end a thread.
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

/// The threads of a pool. Dropping this ends them.
struct Owner {
    pool: Arc<Pool>,
    handles: Mutex<Vec<JoinHandle<()>>>,
    /// The process that has the threads.
    process: Process,
}

/// The state that threads and their stores share.
#[derive(Default)]
pub(crate) struct Pool {
    state: Mutex<PoolState>,
    changed: Condvar,
    /// Wakes stores that wait in [`Threads::leave`]. If `changed` did that too, every thread that
    /// finishes its work would wake all others, for ever.
    left: Condvar,
}

#[derive(Default)]
struct PoolState {
    /// The number of events so far that may give work.
    turn: u64,
    closing: bool,
    /// In the order in which the stores joined.
    stores: Vec<Member>,
    /// The id of the next store that joins.
    next: u64,
}

/// A store that has joined the pool.
struct Member {
    /// Ids ascend from 0 in the order in which stores joined.
    id: u64,
    store: Arc<dyn Worker>,
    /// The number of threads that work for the store now.
    threads: usize,
    leaving: bool,
    /// True if no caller waits to close the store. The last thread that works for it closes it.
    abandoned: bool,
}

lsmith_storage::sync::thread_local! {
    static MERGES: Cell<bool> = const { Cell::new(false) };
}

/// Returns true on a thread that merges.
pub(crate) fn is_merging_thread() -> bool {
    MERGES.with(Cell::get)
}

impl Threads {
    /// Starts `count` threads, at least 1 and at most 1024. If there are two or more, one of them
    /// carries out only plans that take a memtable, and short ones if no memtable waits.
    ///
    /// # Errors
    /// Fails with `InvalidArgument` for more threads, and with `Io` if the system cannot start one.
    pub fn new(count: usize) -> Result<Threads> {
        let count = count.max(1);
        check_threads(count)?;
        let process = Process::here();
        let owner = Owner { pool: Arc::default(), handles: Mutex::default(), process };
        // The owner comes first: if a thread cannot be started, dropping it ends the others.
        let threads = Threads { owner: Arc::new(owner) };
        for index in 0..count {
            let duty = Duty::of(index, count);
            let pool = Arc::clone(&threads.owner.pool);
            let thread = thread::Builder::new().name(format!("lsmith-merge-{index}"));
            let handle = thread.spawn(move || pool.work(duty)).map_err(|error| {
                Error::new(
                    ErrorKind::Io,
                    format!("cannot start a thread: {error}: without threads, use `lockstep`"),
                )
            })?;
            threads.owner.handles.lock().push(handle);
        }
        Ok(threads)
    }

    /// Returns the threads.
    ///
    /// # Errors
    /// `InvalidArgument` in a child of the process that has them.
    pub(crate) fn checked(self) -> Result<Threads> {
        if self.owner.process.is_here() {
            return Ok(self);
        }
        let message = "the threads are in the parent of this process: start threads after the fork";
        Err(Error::new(ErrorKind::InvalidArgument, message))
    }

    /// Returns the number of threads.
    pub fn count(&self) -> usize {
        self.owner.handles.lock().len()
    }

    /// Works for `store` until it [leaves](Threads::leave). Returns the id to leave with.
    pub(crate) fn join(&self, store: Arc<dyn Worker>) -> u64 {
        let id = self.owner.pool.state.lock().join(store);
        self.owner.pool.notify();
        id
    }

    /// Returns the pool that the threads and their stores share.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.owner.pool
    }

    /// Stops working for store `id`, whose last handle is being dropped. Waits until no thread
    /// works for the store, so that the caller alone uses it. A merging thread does not wait: it
    /// may work for the store itself, and hold locks that other threads want.
    ///
    /// Returns true if the caller must close the store. Otherwise the last thread that works for
    /// the store closes it.
    pub(crate) fn leave(&self, id: u64) -> bool {
        let Pool { state, left, .. } = &*self.owner.pool;
        let mut state = state.lock();
        let Some(member) = state.member(id) else { return true };
        member.leaving = true;
        if member.threads > 0 && is_merging_thread() {
            member.abandoned = true;
            return false;
        }
        left.wait_while(&mut state, |state| {
            state.member(id).is_some_and(|member| member.threads > 0)
        });
        state.stores.retain(|member| member.id != id);
        true
    }
}

impl fmt::Debug for Threads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Threads").field("count", &self.count()).finish_non_exhaustive()
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        if !self.process.is_here() {
            // None of the threads is here, and one may have had the locks.
            std::mem::forget(std::mem::take(self.handles.get_mut()));
            return;
        }
        self.pool.state.lock().closing = true;
        self.pool.changed.notify_all();
        // An observer on this thread may have dropped the last handle. A thread cannot wait for
        // itself, nor for threads that want the locks held around the observer: all end alone.
        if is_merging_thread() {
            return;
        }
        for handle in self.handles.get_mut().drain(..) {
            if handle.join().is_err() {
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

impl PoolState {
    fn join(&mut self, store: Arc<dyn Worker>) -> u64 {
        let id = self.next;
        self.next += 1;
        self.stores.push(Member { id, store, threads: 0, leaving: false, abandoned: false });
        id
    }

    fn member(&mut self, id: u64) -> Option<&mut Member> {
        self.stores.iter_mut().find(|member| member.id == id)
    }
}

impl Pool {
    /// Wakes idle threads, because there may be work.
    pub(crate) fn notify(&self) {
        self.state.lock().turn += 1;
        self.changed.notify_all();
    }

    /// Works for all stores in turns until the pool closes.
    fn work(&self, duty: Duty) {
        MERGES.with(|merges| merges.set(true));
        loop {
            let turn = {
                let state = self.state.lock();
                if state.closing {
                    return;
                }
                state.turn
            };
            let mut worked = false;
            let mut next = 0;
            while let Some((id, store)) = self.enter_next(next) {
                worked |= store.work_once(duty);
                // Dropped before the thread counts as gone. The caller that waits for that then
                // holds the last reference, and with it the lock of the directory.
                drop(store);
                self.exit(id);
                next = id + 1;
            }
            let mut state = self.state.lock();
            if state.turn == turn && !worked && !state.closing {
                self.changed.wait_for(&mut state, LOOK_AGAIN);
            }
        }
    }

    /// Counts this thread as working for the first store with id `next` or higher that is not
    /// leaving. Returns that store and its id.
    fn enter_next(&self, next: u64) -> Option<(u64, Arc<dyn Worker>)> {
        let mut state = self.state.lock();
        let mut stores = state.stores.iter_mut();
        let member = stores.find(|member| member.id >= next && !member.leaving)?;
        member.threads += 1;
        Some((member.id, Arc::clone(&member.store)))
    }

    /// Counts this thread as gone from store `id`. Closes the store if this was the last
    /// thread and no caller waits to close it.
    fn exit(&self, id: u64) {
        let mut state = self.state.lock();
        let found = state.stores.iter().position(|member| member.id == id);
        let index = found.expect("a store stays until no thread works for it");
        let member = &mut state.stores[index];
        member.threads -= 1;
        if !member.leaving || member.threads > 0 {
            return;
        }
        if member.abandoned {
            let member = state.stores.remove(index);
            drop(state);
            panics::logged("closing a store", || {
                member.store.close();
                drop(member);
            });
        } else {
            self.left.notify_all();
        }
    }
}
