use super::*;
use crate::sync::thread;

/// A log whose syncs wait until the test releases them.
#[derive(Debug, Default)]
struct HeldLog {
    bytes: AtomicU64,
    /// The number of syncs that may end.
    free: Mutex<usize>,
    freed: crate::sync::Condvar,
    /// The syncs so far.
    reaches: Mutex<Vec<SyncReach>>,
    /// Whether the device fails.
    broken: Mutex<bool>,
}

impl HeldLog {
    fn let_go(&self, syncs: usize) {
        *self.free.lock() += syncs;
        self.freed.notify_all();
    }
}

impl LogFile for HeldLog {
    fn append(&self, bytes: &[u8]) -> io::Result<()> {
        self.bytes.fetch_add(bytes.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn sync(&self, reach: SyncReach) -> io::Result<()> {
        self.reaches.lock().push(reach);
        let mut free = self.free.lock();
        while *free == 0 {
            self.freed.wait(&mut free);
        }
        *free -= 1;
        if *self.broken.lock() { Err(io::Error::other("broken")) } else { Ok(()) }
    }

    fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn capacity(&self) -> u64 {
        u64::MAX
    }
}

/// Waits until the state of `turns` satisfies `is_so`.
fn until(turns: &Turns, is_so: impl Fn(&TurnState) -> bool) {
    while !is_so(&turns.state.lock()) {
        thread::yield_now();
    }
}

/// Makes one thread sync, and stops it there while `count` others append and need a sync with
/// `reach`. Then releases all, and returns their results.
fn behind_one(
    turns: &Turns,
    log: &HeldLog,
    count: usize,
    reach: SyncReach,
) -> Vec<io::Result<u64>> {
    let write = |reach| {
        log.append(&[0; 8]).unwrap();
        turns.sync(log, reach)
    };
    thread::scope(|scope| {
        let first = scope.spawn(|| write(SyncReach::Data));
        until(turns, |state| state.under_way.is_some());
        let others: Vec<_> = (0..count).map(|_| scope.spawn(|| write(reach))).collect();
        until(turns, |state| state.waiting == count);
        log.let_go(2);
        [first].into_iter().chain(others).map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn waiting_threads_share_one_sync() {
    let turns = Turns::default();
    let log = HeldLog::default();
    let outcomes = behind_one(&turns, &log, 5, SyncReach::Data);
    let results: Vec<u64> = outcomes.into_iter().map(Result::unwrap).collect();
    assert_eq!(results, [8, 48, 48, 48, 48, 48]);
    assert_eq!(*log.reaches.lock(), [SyncReach::Data; 2]);
    assert_eq!(turns.synced_bytes(), 48);
}

#[test]
fn thread_that_needs_a_full_sync_makes_it_for_all() {
    let turns = Turns::default();
    let log = HeldLog::default();
    behind_one(&turns, &log, 2, SyncReach::All)
        .into_iter()
        .for_each(|result| assert!(result.is_ok()));
    assert_eq!(*log.reaches.lock(), [SyncReach::Data, SyncReach::All]);
    // The next sync is one of data again.
    log.append(&[0; 8]).unwrap();
    log.let_go(2);
    turns.sync(&log, SyncReach::Data).unwrap();
    // This thread needs more than data that is synced already.
    turns.sync(&log, SyncReach::All).unwrap();
    let after = [SyncReach::Data, SyncReach::All];
    assert_eq!(log.reaches.lock()[2..], after);
}

#[test]
fn sync_covers_all_bytes_appended_before_it_began() {
    let turns = Turns::default();
    let log = HeldLog::default();
    log.append(&[0; 16]).unwrap();
    let wait = || turns.sync(&log, SyncReach::Data).unwrap();
    thread::scope(|scope| {
        let first = scope.spawn(wait);
        until(&turns, |state| state.under_way.is_some());
        let second = scope.spawn(wait);
        until(&turns, |state| state.under_way.as_ref().is_some_and(|sync| sync.count == 2));
        log.let_go(1);
        assert_eq!((first.join().unwrap(), second.join().unwrap()), (16, 16));
    });
    assert_eq!(log.reaches.lock().len(), 1);
}

#[test]
fn failure_reaches_all_waiting_and_all_later_threads() {
    let turns = Turns::default();
    let log = HeldLog::default();
    *log.broken.lock() = true;
    let results = behind_one(&turns, &log, 3, SyncReach::Data);
    assert!(results.iter().all(Result::is_err), "{results:?}");
    *log.broken.lock() = false;
    assert!(turns.sync(&log, SyncReach::Data).is_err());
    assert_eq!(log.reaches.lock().len(), 1);
    assert_eq!(turns.synced_bytes(), 0);
}

/// A sync waits for the threads of the last one, but not for ever, and not again soon.
#[test]
fn thread_that_stays_away_delays_one_sync() {
    let turns = Turns::default();
    let log = HeldLog::default();
    turns.state.lock().hasty = 1;
    behind_one(&turns, &log, 3, SyncReach::Data)
        .into_iter()
        .for_each(|result| assert!(result.is_ok()));
    assert_eq!(turns.state.lock().to_come, 3);
    log.let_go(2);
    for hasty in [HASTY_SYNCS - 1, HASTY_SYNCS - 2] {
        log.append(&[0; 8]).unwrap();
        turns.sync(&log, SyncReach::Data).unwrap();
        let state = turns.state.lock();
        assert_eq!((state.hasty, state.to_come), (hasty, 0));
    }
}

#[test]
fn last_expected_thread_leads() {
    let turns = Turns::default();
    let log = HeldLog::default();
    log.let_go(1);
    turns.state.lock().to_come = 1;
    log.append(&[0; 8]).unwrap();
    assert_eq!(turns.sync(&log, SyncReach::Data).unwrap(), 8);
    let state = turns.state.lock();
    assert_eq!((state.hasty, state.to_come), (0, 1));
}

/// Many threads sync, and each checks that all its bytes are synced when its sync returns.
#[test]
fn sync_returns_neither_too_early_nor_never() {
    #[derive(Debug, Default)]
    struct Device {
        bytes: AtomicU64,
        durable: AtomicU64,
    }
    impl LogFile for Device {
        fn append(&self, bytes: &[u8]) -> io::Result<()> {
            self.bytes.fetch_add(bytes.len() as u64, Ordering::AcqRel);
            Ok(())
        }
        fn sync(&self, _: SyncReach) -> io::Result<()> {
            let end = self.bytes.load(Ordering::Acquire);
            thread::yield_now();
            self.durable.fetch_max(end, Ordering::AcqRel);
            Ok(())
        }
        fn bytes(&self) -> u64 {
            self.bytes.load(Ordering::Acquire)
        }
        fn capacity(&self) -> u64 {
            u64::MAX
        }
    }
    let turns = Turns::default();
    let log = Device::default();
    thread::scope(|scope| {
        for thread in 0..8 {
            let turns = &turns;
            let log = &log;
            scope.spawn(move || {
                for step in 0..500 {
                    log.append(&[0; 8]).unwrap();
                    let needs = log.bytes();
                    let reach =
                        if (step + thread) % 50 == 0 { SyncReach::All } else { SyncReach::Data };
                    let end = turns.sync(log, reach).unwrap();
                    assert!(end >= needs && log.durable.load(Ordering::Acquire) >= end);
                }
            });
        }
    });
    assert_eq!(turns.synced_bytes(), 8 * 8 * 500);
}
