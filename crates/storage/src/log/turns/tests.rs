use super::*;
use crate::sync::thread;

/// A log of which every sync waits until it is let go.
#[derive(Debug, Default)]
struct HeldLog {
    bytes: AtomicU64,
    /// Syncs that may end.
    free: Mutex<usize>,
    freed: crate::sync::Condvar,
    /// What has been synced.
    reaches: Mutex<Vec<SyncReach>>,
    /// Whether the device is broken.
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

/// Goes on when the state of `turns` is as it should be.
fn until(turns: &Turns, is_so: impl Fn(&State) -> bool) {
    while !is_so(&turns.state.lock()) {
        thread::yield_now();
    }
}

/// Lets one thread sync, and holds it there, while `count` others append and want it too, with
/// `reach`; then lets all go, and tells what they were told.
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
fn those_who_wait_share_one_sync() {
    let (turns, log) = (Turns::default(), HeldLog::default());
    let told = behind_one(&turns, &log, 5, SyncReach::Data);
    let told: Vec<u64> = told.into_iter().map(Result::unwrap).collect();
    assert_eq!(told, [8, 48, 48, 48, 48, 48]);
    assert_eq!(*log.reaches.lock(), [SyncReach::Data; 2]);
    assert_eq!(turns.synced(), 48);
}

#[test]
fn one_who_needs_everything_synced_has_it_synced_for_all() {
    let (turns, log) = (Turns::default(), HeldLog::default());
    behind_one(&turns, &log, 2, SyncReach::All).into_iter().for_each(|told| assert!(told.is_ok()));
    assert_eq!(*log.reaches.lock(), [SyncReach::Data, SyncReach::All]);
    // Nothing of it is left for the next one.
    log.append(&[0; 8]).unwrap();
    log.let_go(2);
    turns.sync(&log, SyncReach::Data).unwrap();
    // Data that is synced already is not enough for him.
    turns.sync(&log, SyncReach::All).unwrap();
    let after = [SyncReach::Data, SyncReach::All];
    assert_eq!(log.reaches.lock()[2..], after);
}

#[test]
fn a_sync_is_enough_for_what_was_appended_before_it_began() {
    let (turns, log) = (Turns::default(), HeldLog::default());
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
fn a_failure_is_told_to_all_who_wait_and_to_all_who_come() {
    let (turns, log) = (Turns::default(), HeldLog::default());
    *log.broken.lock() = true;
    let told = behind_one(&turns, &log, 3, SyncReach::Data);
    assert!(told.iter().all(Result::is_err), "{told:?}");
    *log.broken.lock() = false;
    assert!(turns.sync(&log, SyncReach::Data).is_err());
    assert_eq!(log.reaches.lock().len(), 1);
    assert_eq!(turns.synced(), 0);
}

/// Those who were synced together are waited for, but not without end, and not again soon.
#[test]
fn who_does_not_come_back_holds_up_one_sync() {
    let (turns, log) = (Turns::default(), HeldLog::default());
    turns.state.lock().hasty = 1;
    behind_one(&turns, &log, 3, SyncReach::Data).into_iter().for_each(|told| assert!(told.is_ok()));
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
fn the_last_who_is_waited_for_leads() {
    let (turns, log) = (Turns::default(), HeldLog::default());
    log.let_go(1);
    turns.state.lock().to_come = 1;
    log.append(&[0; 8]).unwrap();
    assert_eq!(turns.sync(&log, SyncReach::Data).unwrap(), 8);
    let state = turns.state.lock();
    assert_eq!((state.hasty, state.to_come), (0, 1));
}

/// Many threads, each of which finds all it wrote synced when it is told so.
#[test]
fn nobody_is_told_too_early_or_never() {
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
    let (turns, log) = (Turns::default(), Device::default());
    thread::scope(|scope| {
        for number in 0..8 {
            let (turns, log) = (&turns, &log);
            scope.spawn(move || {
                for step in 0..500 {
                    log.append(&[0; 8]).unwrap();
                    let needs = log.bytes();
                    let reach =
                        if (step + number) % 50 == 0 { SyncReach::All } else { SyncReach::Data };
                    let end = turns.sync(log, reach).unwrap();
                    assert!(end >= needs && log.durable.load(Ordering::Acquire) >= end);
                }
            });
        }
    });
    assert_eq!(turns.synced(), 8 * 8 * 500);
}
