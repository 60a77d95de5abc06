//! Who syncs a log next, and who waits until it is done for him.
//!
//! Of those who want a log synced one does it for all, with no lock held, while the others sleep.
//! Whoever comes meanwhile and has written more than that sync reaches waits for the next one.
//! A sync costs the same for one write as for sixteen, and those whose writes are synced are
//! likely to be back soon with more. So the next sync begins when as many have come as the last
//! one was for: the last to come leads it, and nobody has to be woken for that. The first of
//! those who wait looks out for them for a while only; where it was in vain, the next syncs wait
//! for nobody. One who writes alone never waits.

#[cfg(test)]
mod tests;

use crate::env::{LogFile, SyncReach};
use crate::panics;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, MutexGuard, crowd};
use std::io;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long the first who waits lets others come before he leads. More than it takes to
/// wake a few threads, little beside a sync of most devices; it doubles while a sync is under way.
const PATIENCE: Duration = Duration::from_micros(100);

/// Syncs that wait for nobody, after one that did so in vain.
const HASTY_SYNCS: u32 = 64;

/// The turns to sync one log.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// Bytes from the start of the log that are known to be synced.
    synced: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    under_way: Option<UnderWay>,
    /// Those who need another sync than that.
    next: Arc<Round>,
    /// How many they are.
    waiting: usize,
    /// Whether one of them needs more than the data.
    all: bool,
    /// How many are still to come before the next sync begins.
    to_come: usize,
    /// How many syncs are still to wait for nobody.
    hasty: u32,
    /// No sync after one that failed can be believed, because the system tells of a failure only
    /// once.
    failed: bool,
}

/// A sync that has begun.
#[derive(Debug)]
struct UnderWay {
    /// Up to where it reaches.
    end: u64,
    /// Those for whom it is enough.
    round: Arc<Round>,
    /// How many they are, with the one who syncs.
    count: usize,
}

impl Turns {
    /// Bytes from the start of the log that are known to be synced.
    pub(super) fn synced(&self) -> u64 {
        self.synced.load(Ordering::Acquire)
    }

    /// Makes what was appended to `file` before the call survive power loss, by a sync of its own
    /// or of another thread, and tells up to where.
    pub(super) fn sync(&self, file: &dyn LogFile, reach: SyncReach) -> io::Result<u64> {
        let needs = file.bytes();
        let data_only = reach == SyncReach::Data;
        let mut state = self.state.lock();
        if state.failed {
            return Err(failed_earlier());
        }
        let synced = self.synced();
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

    /// Waits as one of `round`, and leads it where nobody else does.
    fn wait(
        &self,
        file: &dyn LogFile,
        round: &Arc<Round>,
        mut patience: Option<Duration>,
    ) -> io::Result<u64> {
        loop {
            let told = round.wait(patience);
            match told {
                Told::Synced(end) => return Ok(end),
                Told::Failed => return Err(failed_earlier()),
                Told::Nothing | Told::Look => {}
            }
            let mut state = self.state.lock();
            // The sync under way may have failed since this thread stopped waiting.
            if state.failed {
                return Err(failed_earlier());
            }
            let to_be_led = Arc::ptr_eq(&state.next, round);
            if to_be_led && state.under_way.is_none() {
                if told == Told::Nothing {
                    state.hasty = HASTY_SYNCS;
                }
                return self.lead(file, state);
            }
            // Once its sync is under way nothing is left to look out for.
            patience = patience.filter(|_| to_be_led).map(|patience| 2 * patience);
        }
    }

    /// Syncs for all who wait, the caller among them.
    fn lead(&self, file: &dyn LogFile, mut state: MutexGuard<'_, State>) -> io::Result<u64> {
        let end = file.bytes();
        let round = std::mem::take(&mut state.next);
        let count = std::mem::take(&mut state.waiting);
        state.under_way = Some(UnderWay { end, round: Arc::clone(&round), count });
        state.to_come = 0;
        let reach = if std::mem::take(&mut state.all) { SyncReach::All } else { SyncReach::Data };
        drop(state);
        // All who wait would do so for ever if this thread did not tell them how it went.
        let result = panics::catch(|| file.sync(reach));
        let result = result.unwrap_or_else(|panic| {
            Err(io::Error::other(format!("the environment panicked: {panic}")))
        });
        let mut state = self.state.lock();
        let count = state.under_way.take().map_or(0, |sync| sync.count);
        if result.is_err() {
            state.failed = true;
            state.next.tell(Told::Failed);
            round.tell(Told::Failed);
            return result.map(|()| end);
        }
        self.synced.fetch_max(end, Ordering::Release);
        let mut next = None;
        if state.hasty == 0 {
            state.to_come = count;
        } else {
            state.hasty -= 1;
            next = (state.waiting > 0).then(|| Arc::clone(&state.next));
        }
        drop(state);
        round.tell(Told::Synced(end));
        if let Some(next) = next {
            next.have_one_look();
        }
        Ok(end)
    }
}

/// Those who wait for one sync.
///
/// They are woken in one step.
#[derive(Debug, Default)]
struct Round {
    told: crowd::Mutex<Told>,
    changed: crowd::Condvar,
}

/// What those who wait are told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Told {
    #[default]
    Nothing,
    /// One of them may lead.
    Look,
    /// The log is synced up to there.
    Synced(u64),
    /// It is not, and will not be.
    Failed,
}

impl Round {
    /// Waits until something is told, or, where `patience` is limited, that long.
    fn wait(&self, patience: Option<Duration>) -> Told {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        let mut timed_out = false;
        while *told == Told::Nothing && !timed_out {
            told = match patience {
                None => self.changed.wait(told).unwrap_or_else(PoisonError::into_inner),
                Some(patience) => {
                    let waited = self.changed.wait_timeout(told, patience);
                    let (told, waited) = waited.unwrap_or_else(PoisonError::into_inner);
                    timed_out = waited.timed_out();
                    told
                }
            };
        }
        let news = *told;
        if news == Told::Look {
            *told = Told::Nothing;
        }
        news
    }

    /// Tells all of them.
    fn tell(&self, news: Told) {
        *self.told.lock().unwrap_or_else(PoisonError::into_inner) = news;
        self.changed.notify_all();
    }

    /// Tells one of them to look, unless all have been told more.
    fn have_one_look(&self) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if *told == Told::Nothing {
            *told = Told::Look;
            self.changed.notify_one();
        }
    }
}

fn failed_earlier() -> io::Error {
    io::Error::other("an earlier sync of this file failed")
}
