//! Decides which thread syncs a log next, while the others wait.
//!
//! One of the threads that need a sync does it for all, without a lock, while the others sleep. A
//! thread that comes meanwhile and has written beyond the end of that sync waits for the next one.
//!
//! A sync costs the same for one write as for sixteen, and threads whose writes were synced are
//! likely to come back soon with more. So the next sync begins when as many threads have come as
//! the last sync had. The last of them leads it, so that no thread must be woken for that. The
//! first waiting thread waits for the others only for a limited time. If not all came, the next
//! syncs wait for nobody. A single writing thread never waits.

#[cfg(test)]
mod tests;

use crate::env::{LogFile, SyncReach};
use crate::panics;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// The time that the first waiting thread gives to the others before it leads. It is longer than
/// waking a few threads takes, and short compared with a sync of most devices. It doubles while a
/// sync is under way, up to [`PATIENCE_MAX`].
const PATIENCE: Duration = Duration::from_micros(100);
const PATIENCE_MAX: Duration = Duration::from_millis(50);

/// The number of syncs that do not wait for other threads, after one that waited in vain.
const HASTY_SYNCS: u32 = 64;

/// The turns to sync one log.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// The number of bytes from the start of the log that are known to be synced.
    synced: AtomicU64,
    state: Mutex<TurnState>,
}

#[derive(Debug, Default)]
struct TurnState {
    under_way: Option<UnderWay>,
    /// The threads that need the next sync.
    next: Arc<Round>,
    /// The number of these threads.
    waiting: usize,
    /// Whether one of them needs more than the data synced.
    all: bool,
    /// The number of threads that are still expected before the next sync begins.
    to_come: usize,
    /// The number of coming syncs that do not wait for other threads.
    hasty: u32,
    /// Set by the first failed sync. No later sync can be trusted, because the system reports a
    /// failure only once.
    failed: bool,
}

/// A sync that has begun.
#[derive(Debug)]
struct UnderWay {
    /// The offset up to which it syncs.
    end: u64,
    /// The threads that wait for this sync.
    round: Arc<Round>,
    /// The number of these threads, with the one that syncs.
    count: usize,
}

impl Turns {
    /// Returns the number of bytes from the start of the log that are known to be synced.
    pub(super) fn synced_bytes(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Makes all bytes appended to `file` before the call survive power loss, by a sync of this
    /// thread or of another one. Returns the offset up to which the log is synced.
    pub(super) fn sync(&self, file: &dyn LogFile, reach: SyncReach) -> io::Result<u64> {
        let needs = file.bytes();
        let data_only = reach == SyncReach::Data;
        let mut state = self.state.lock();
        if state.failed {
            return Err(failed_earlier());
        }
        let synced = self.synced_bytes();
        if data_only && needs <= synced {
            return Ok(synced);
        }
        if let Some(sync) = state.under_way.as_mut().filter(|sync| data_only && needs <= sync.end) {
            sync.count += 1;
            let round = Arc::clone(&sync.round);
            drop(state);
            return self.wait(file, &round, None);
        }
        state.all |= !data_only;
        state.waiting += 1;
        state.to_come = state.to_come.saturating_sub(1);
        if state.under_way.is_none() && state.to_come == 0 {
            return self.lead(file, state);
        }
        let patience = (state.waiting == 1).then_some(PATIENCE);
        let round = Arc::clone(&state.next);
        drop(state);
        self.wait(file, &round, patience)
    }

    /// Waits as a thread of `round`, and leads its sync if no other thread does.
    fn wait(
        &self,
        file: &dyn LogFile,
        round: &Arc<Round>,
        mut patience: Option<Duration>,
    ) -> io::Result<u64> {
        loop {
            let signal = round.wait(patience);
            match signal {
                Signal::Synced(end) => return Ok(end),
                Signal::Failed => return Err(failed_earlier()),
                Signal::Nothing | Signal::MayLead => {}
            }
            let mut state = self.state.lock();
            // The sync under way may have failed since this thread stopped waiting.
            if state.failed {
                return Err(failed_earlier());
            }
            let to_be_led = Arc::ptr_eq(&state.next, round);
            if to_be_led && state.under_way.is_none() {
                if signal == Signal::Nothing {
                    state.hasty = HASTY_SYNCS;
                }
                return self.lead(file, state);
            }
            // Once the sync of this round is under way, the thread waits for its end only.
            patience = patience.filter(|_| to_be_led).map(|last| PATIENCE_MAX.min(2 * last));
        }
    }

    /// Syncs for all waiting threads, including the caller.
    fn lead(&self, file: &dyn LogFile, mut state: MutexGuard<'_, TurnState>) -> io::Result<u64> {
        let end = file.bytes();
        let round = std::mem::take(&mut state.next);
        let count = std::mem::take(&mut state.waiting);
        state.under_way = Some(UnderWay { end, round: Arc::clone(&round), count });
        state.to_come = 0;
        let reach = if std::mem::take(&mut state.all) { SyncReach::All } else { SyncReach::Data };
        drop(state);
        // A panic must not skip the signals below, because the waiting threads would wait for ever.
        let caught = panics::catch(|| file.sync(reach));
        let result = caught.unwrap_or_else(|panic| {
            Err(io::Error::other(format!("the environment panicked: {panic}")))
        });
        let mut state = self.state.lock();
        let synced_count = state.under_way.take().map_or(0, |sync| sync.count);
        if result.is_err() {
            state.failed = true;
            state.next.send(Signal::Failed);
            round.send(Signal::Failed);
            return result.map(|()| end);
        }
        self.synced.fetch_max(end, Ordering::Release);
        let mut next = None;
        if state.hasty == 0 {
            state.to_come = synced_count;
        } else {
            state.hasty -= 1;
            next = (state.waiting > 0).then(|| Arc::clone(&state.next));
        }
        drop(state);
        round.send(Signal::Synced(end));
        if let Some(next) = next {
            next.let_one_lead();
        }
        Ok(end)
    }
}

/// The threads that wait for one sync. A signal wakes all of them in one step.
#[derive(Debug, Default)]
struct Round {
    signal: Mutex<Signal>,
    changed: Condvar,
}

/// The message to the threads of a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Signal {
    #[default]
    Nothing,
    /// One of the threads may lead.
    MayLead,
    /// The log is synced up to this offset.
    Synced(u64),
    /// The sync failed, or an earlier one did.
    Failed,
}

impl Round {
    /// Waits for a signal, or until `patience` is over, if it is limited.
    fn wait(&self, patience: Option<Duration>) -> Signal {
        let mut signal = self.signal.lock();
        let mut timed_out = false;
        while *signal == Signal::Nothing && !timed_out {
            match patience {
                None => self.changed.wait(&mut signal),
                Some(patience) => timed_out = self.changed.wait_for(&mut signal, patience),
            }
        }
        let news = *signal;
        if news == Signal::MayLead {
            *signal = Signal::Nothing;
        }
        news
    }

    /// Sends `signal` to all threads of the round.
    fn send(&self, signal: Signal) {
        *self.signal.lock() = signal;
        self.changed.notify_all();
    }

    /// Lets one thread of the round lead, unless all have a final signal.
    fn let_one_lead(&self) {
        let mut signal = self.signal.lock();
        if *signal == Signal::Nothing {
            *signal = Signal::MayLead;
            self.changed.notify_one();
        }
    }
}

fn failed_earlier() -> io::Error {
    io::Error::other("an earlier sync of this file failed")
}
