//! Threads, locks and clocks for tests in which `shuttle` decides every step. `shuttle` runs all
//! threads of a test as one.
//!
//! Time advances only when a thread reads the clock or waits. A timed wait shorter than
//! [`SAFETY_NET`] ends at once, after other threads may have taken steps. Longer timed waits exist
//! for events that nobody announces, such as room on a device. They last until a thread wakes them,
//! so that a forgotten wake-up shows as a deadlock.

#![allow(missing_docs, reason = "as in the real ones, which are documented where they come from")]

mod swap;

pub use shuttle::sync::atomic;
pub use shuttle::thread;
pub use shuttle::thread_local;
pub use std::sync::OnceLock;
pub use swap::{ArcSwap, BlockMap, Guard};

use shuttle::rand::{Rng, thread_rng};
use shuttle::sync as under;
use std::cell::Cell;
use std::ops::{Deref, DerefMut};
use std::sync::PoisonError;
use std::time::Duration;

/// Timed waits of this length and longer do not end by themselves.
const SAFETY_NET: Duration = Duration::from_millis(100);

/// The time that passes when a thread reads the clock.
const TICK: Duration = Duration::from_micros(1);

// All threads of a test are one thread of the system.
std::thread_local! {
    static NOW: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

fn advance(time: Duration) -> Duration {
    NOW.with(|now| {
        now.set(now.get() + time);
        now.get()
    })
}

/// The number of steps that other threads may take while a slow device works.
const STEPS_OF_DEVICE: usize = 30;

/// A device is slow once in this many times.
const SLOW_ONCE_IN: u32 = 8;

/// Marks a long wait for a device, in which other threads go on.
pub fn device_works() {
    if thread_rng().gen_ratio(1, SLOW_ONCE_IN) {
        (0..STEPS_OF_DEVICE).for_each(|_| thread::yield_now());
    }
}

/// Measures the time since its creation.
#[derive(Clone, Copy, Debug)]
pub struct Clock(Duration);

impl Clock {
    /// Creates a clock that starts now.
    pub fn start() -> Clock {
        Clock(advance(TICK))
    }

    /// Returns the time since the start. It never goes back.
    pub fn elapsed(&self) -> Duration {
        advance(TICK) - self.0
    }
}

/// A lock without poisoning.
#[derive(Debug, Default)]
pub struct Mutex<T>(under::Mutex<T>);

/// Holds the lock until it is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` only while the thread waits, or runs code without the lock.
    held: Option<under::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    pub fn new(value: T) -> Mutex<T> {
        Mutex(under::Mutex::new(value))
    }

    fn lock_inner(&self) -> under::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, held: Some(self.lock_inner()) }
    }

    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        use std::sync::TryLockError::{Poisoned, WouldBlock};
        let held = match self.0.try_lock() {
            Ok(held) => held,
            Err(Poisoned(error)) => error.into_inner(),
            Err(WouldBlock) => return None,
        };
        Some(MutexGuard { mutex: self, held: Some(held) })
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> MutexGuard<'_, T> {
    /// Runs `act` without the lock.
    pub fn unlocked<R>(guard: &mut Self, act: impl FnOnce() -> R) -> R {
        /// Takes the lock again, also after a panic.
        struct Again<'a, 'b, T>(&'a mut MutexGuard<'b, T>);
        impl<T> Drop for Again<'_, '_, T> {
            fn drop(&mut self) {
                self.0.held = Some(self.0.mutex.lock_inner());
            }
        }
        guard.held = None;
        let _again = Again(guard);
        act()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.held.as_ref().expect("no access while the lock is released")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("no access while the lock is released")
    }
}

/// A condition variable.
#[derive(Debug, Default)]
pub struct Condvar(under::Condvar);

impl Condvar {
    pub fn new() -> Condvar {
        Condvar::default()
    }

    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("a waiting thread holds the lock");
        guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    pub fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, time: Duration) {
        if time >= SAFETY_NET {
            return self.wait(guard);
        }
        advance(time);
        MutexGuard::unlocked(guard, thread::yield_now);
    }

    pub fn wait_while<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut lacks: impl FnMut(&mut T) -> bool,
    ) {
        while lacks(guard) {
            self.wait(guard);
        }
    }

    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// A lock for one writer or many readers, without poisoning.
#[derive(Debug, Default)]
pub struct RwLock<T>(under::RwLock<T>);

pub type RwLockReadGuard<'a, T> = under::RwLockReadGuard<'a, T>;

impl<T> RwLock<T> {
    pub fn new(value: T) -> RwLock<T> {
        RwLock(under::RwLock::new(value))
    }

    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn write(&self) -> under::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Locks with the interface of `std`.
pub mod crowd {
    use super::MutexGuard;
    use std::sync::LockResult;
    use std::time::Duration;

    /// A lock.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(super::Mutex<T>);

    impl<T> Mutex<T> {
        #[expect(clippy::unnecessary_wraps, reason = "as in std")]
        pub fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
            Ok(self.0.lock())
        }
    }

    /// A condition variable.
    #[derive(Debug, Default)]
    pub struct Condvar(super::Condvar);

    /// Tells whether a wait timed out; here it always did.
    pub struct TimedOut;

    impl TimedOut {
        #[expect(clippy::unused_self, reason = "as in std")]
        pub fn timed_out(&self) -> bool {
            true
        }
    }

    #[expect(clippy::unnecessary_wraps, reason = "as in std")]
    impl Condvar {
        pub fn wait<'a, T>(&self, mut guard: MutexGuard<'a, T>) -> LockResult<MutexGuard<'a, T>> {
            self.0.wait(&mut guard);
            Ok(guard)
        }

        /// A wait of this kind never serves as a safety net, so it ends by itself.
        pub fn wait_timeout<'a, T>(
            &self,
            mut guard: MutexGuard<'a, T>,
            time: Duration,
        ) -> LockResult<(MutexGuard<'a, T>, TimedOut)> {
            let time = time.min(super::SAFETY_NET / 2);
            self.0.wait_for(&mut guard, time);
            Ok((guard, TimedOut))
        }

        pub fn notify_all(&self) {
            self.0.notify_all();
        }

        pub fn notify_one(&self) {
            self.0.notify_one();
        }
    }
}
