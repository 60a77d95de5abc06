//! Threads that carry out merges, for one store or several.

use lsmith_storage::error::{Error, ErrorKind, Result};
use lsmith_storage::panics;
use lsmith_storage::sync::thread::{self, JoinHandle};
use lsmith_storage::sync::{Condvar, Mutex};
use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Which plans a thread takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duty {
    /// Any plan.
    All,
    /// Plans that take a memtable, so that memtables never wait for a long merge.
    Memory,
}

/// A store, as the threads that merge see it.
pub(crate) trait Worker: Send + Sync {
    /// Does some of what there is to do; returns whether there was anything. Never panics.
    fn work_once(&self, duty: Duty) -> bool;

    /// Closes the store: called when no thread works for it any more.
    fn close(&self);
}

/// How long an idle thread sleeps before it looks whether failed plans can be tried again.
pub(crate) const LOOK_AGAIN: Duration = Duration::from_millis(100);

/// Threads that merge. A store has its own unless it is [given](crate::Builder::shared_threads)
/// these, which several stores can share: a thread goes from one to the next, so that none waits
/// for all merges of another.
///
/// Cheap to clone. The threads end with the last handle, of which every open store holds one, and
/// before it is gone; only those of a handle that one of them drops end a little later. None of
/// them ends by a panic of what it was given.
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
    state: Mutex<PoolState>,
    changed: Condvar,
    /// Where those wait who want to leave. Threads that were told of everybody who stops working
    /// would wake each other for ever.
    left: Condvar,
}

#[derive(Default)]
struct PoolState {
    /// Changes whenever something happened that could give work.
    turn: u64,
    closing: bool,
    /// In the order in which they joined.
    stores: Vec<Member>,
    /// The number that the next store gets.
    next: u64,
}

/// A store, and how many threads are at work for it.
struct Member {
    /// In the order in which they joined, from 0.
    number: u64,
    store: Arc<dyn Worker>,
    threads: usize,
    leaving: bool,
    /// Whether nobody waits until it can be closed: the last thread at work for it closes it.
    abandoned: bool,
}

lsmith_storage::sync::thread_local! {
    static MERGES: Cell<bool> = const { Cell::new(false) };
}

/// Whether this is one of the threads that merge.
pub(crate) fn is_merging_thread() -> bool {
    MERGES.with(Cell::get)
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

    /// Works for `store` until it [leaves](Threads::leave). Returns the number by which it does.
    pub(crate) fn join(&self, store: Arc<dyn Worker>) -> u64 {
        let number = self.owner.pool.state.lock().join(store);
        self.owner.pool.notify();
        number
    }

    /// Returns what the threads and their stores share.
    pub(crate) fn pool(&self) -> &Arc<Pool> {
        &self.owner.pool
    }

    /// Stops working for store `number`, whose last handle is being dropped, and waits until no
    /// thread works for it: then the caller alone has it. A merging thread does not wait: it may
    /// work for the store itself, and hold locks that other threads want.
    ///
    /// Returns true if the caller must close the store. Else the last thread that works for it
    /// closes it.
    pub(crate) fn leave(&self, number: u64) -> bool {
        let Pool { state, left, .. } = &*self.owner.pool;
        let mut state = state.lock();
        let Some(member) = state.member(number) else { return true };
        member.leaving = true;
        if member.threads > 0 && is_merging_thread() {
            member.abandoned = true;
            return false;
        }
        left.wait_while(&mut state, |state| {
            state.member(number).is_some_and(|member| member.threads > 0)
        });
        state.stores.retain(|member| member.number != number);
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
        self.pool.state.lock().closing = true;
        self.pool.changed.notify_all();
        // An observer may have held the last handle. No thread can wait for itself, nor for those
        // that want the locks under which it was told something: all end by themselves.
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
        let number = self.next;
        self.next += 1;
        self.stores.push(Member { number, store, threads: 0, leaving: false, abandoned: false });
        number
    }

    fn member(&mut self, number: u64) -> Option<&mut Member> {
        self.stores.iter_mut().find(|member| member.number == number)
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
        MERGES.with(|merges| merges.set(true));
        loop {
            let turn = {
                let state = self.state.lock();
                if state.closing {
                    return;
                }
                state.turn
            };
            let (mut worked, mut next) = (false, 0);
            while let Some((number, store)) = self.begin(next) {
                worked |= store.work_once(duty);
                // Given back before the thread counts as gone: who waits for that has the last
                // handle then, and with it the lock of the directory.
                drop(store);
                self.end(number);
                next = number + 1;
            }
            let mut state = self.state.lock();
            if state.turn == turn && !worked && !state.closing {
                self.changed.wait_for(&mut state, LOOK_AGAIN);
            }
        }
    }

    /// Counts this thread as at work for the first store from number `next` on that stays.
    fn begin(&self, next: u64) -> Option<(u64, Arc<dyn Worker>)> {
        let mut state = self.state.lock();
        let mut stores = state.stores.iter_mut();
        let member = stores.find(|member| member.number >= next && !member.leaving)?;
        member.threads += 1;
        Some((member.number, Arc::clone(&member.store)))
    }

    /// Counts this thread as gone from store `number`, and closes the store where nobody else will.
    fn end(&self, number: u64) {
        let mut state = self.state.lock();
        let at = state.stores.iter().position(|member| member.number == number);
        let at = at.expect("a store stays until no thread is at work for it");
        let member = &mut state.stores[at];
        member.threads -= 1;
        if !member.leaving || member.threads > 0 {
            return;
        }
        if member.abandoned {
            let member = state.stores.remove(at);
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
