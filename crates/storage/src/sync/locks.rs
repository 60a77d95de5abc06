//! Locks without poisoning, over the locks of `std` or of `shuttle`.
//!
//! All that a lock is lies in the lock. There is no table of waiting threads beside it, which a
//! child of `fork` would inherit as it was at that moment, held perhaps by a thread that is not
//! there. So the locks that a child makes always work.

#[cfg(shuttle)]
use shuttle::sync as under;
#[cfg(shuttle)]
use shuttle::thread;
use std::ops::{Deref, DerefMut};
#[cfg(not(shuttle))]
use std::sync as under;
use std::sync::{PoisonError, TryLockError};
#[cfg(not(shuttle))]
use std::thread;

/// Looks at a lock before a thread sleeps, and how many of them come before it offers its
/// processor to others.
const LOOKS_AWAKE: u32 = 100;
const LOOKS_ALONE: u32 = 20;

/// Pauses of the processor before the first look. They double a few times.
const PAUSES_MIN: u32 = 4;
const PAUSES_STEPS: u32 = 3;

/// Waits for `pauses` pauses of the processor.
fn pause(pauses: u32) {
    // The scheduler of tests has no processor that could go on meanwhile.
    (0..pauses).filter(|_| cfg!(not(shuttle))).for_each(|_| std::hint::spin_loop());
}

/// A lock for one thread at a time.
#[derive(Debug, Default)]
pub struct Mutex<T>(under::Mutex<T>);

/// Holds a [`Mutex`] until it is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// `None` only while the thread waits, or runs code without the lock.
    pub(super) held: Option<under::MutexGuard<'a, T>>,
}

impl<T> Mutex<T> {
    /// Creates a lock that nobody holds.
    pub fn new(value: T) -> Mutex<T> {
        Mutex(under::Mutex::new(value))
    }

    #[inline]
    fn lock_under(&self) -> under::MutexGuard<'_, T> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody holds the lock, and takes it.
    #[inline]
    pub fn lock(&self) -> MutexGuard<'_, T> {
        MutexGuard { mutex: self, held: Some(self.lock_under()) }
    }

    /// Takes the lock, which threads hold for about a microsecond at a time. A thread that must
    /// wait looks again and again before it sleeps: to be woken takes longer than it waits, and
    /// costs the thread that wakes it as much.
    #[inline]
    pub fn lock_soon(&self) -> MutexGuard<'_, T> {
        self.try_lock().unwrap_or_else(|| self.wait_awake())
    }

    #[cold]
    fn wait_awake(&self) -> MutexGuard<'_, T> {
        for look in 0..LOOKS_AWAKE {
            // Each look takes the cache line of the lock from the thread that holds it.
            pause(PAUSES_MIN << look.min(PAUSES_STEPS));
            if let Some(guard) = self.try_lock() {
                return guard;
            }
            if look >= LOOKS_ALONE {
                // The holder may wait for this processor.
                thread::yield_now();
            }
        }
        self.lock()
    }

    /// Takes the lock if nobody holds it.
    #[inline]
    pub fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
        let held = match self.0.try_lock() {
            Ok(held) => held,
            Err(TryLockError::Poisoned(error)) => error.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        Some(MutexGuard { mutex: self, held: Some(held) })
    }

    /// Returns the value, which no other thread can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> MutexGuard<'_, T> {
    /// Runs `act` without the lock, and takes it again, also after a panic.
    pub fn unlocked<R>(guard: &mut Self, act: impl FnOnce() -> R) -> R {
        struct Again<'a, 'b, T>(&'a mut MutexGuard<'b, T>);
        impl<T> Drop for Again<'_, '_, T> {
            fn drop(&mut self) {
                self.0.held = Some(self.0.mutex.lock_under());
            }
        }
        guard.held = None;
        let _again = Again(guard);
        act()
    }
}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        self.held.as_ref().expect("no access while the lock is released")
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut T {
        self.held.as_mut().expect("no access while the lock is released")
    }
}

/// A condition variable. A notice to all wakes all in one step.
#[derive(Debug, Default)]
pub struct Condvar(pub(super) under::Condvar);

impl Condvar {
    /// Creates one for which nobody waits.
    pub fn new() -> Condvar {
        Condvar::default()
    }

    /// Releases the lock, waits for a notice, and takes the lock again.
    pub fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
        let held = guard.held.take().expect("a waiting thread holds the lock");
        guard.held = Some(self.0.wait(held).unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits until the value does not lack anything.
    pub fn wait_while<T>(
        &self,
        guard: &mut MutexGuard<'_, T>,
        mut lacks: impl FnMut(&mut T) -> bool,
    ) {
        while lacks(guard) {
            self.wait(guard);
        }
    }

    /// Wakes all threads that wait.
    #[inline]
    pub fn notify_all(&self) {
        self.0.notify_all();
    }

    /// Wakes one thread that waits.
    #[inline]
    pub fn notify_one(&self) {
        self.0.notify_one();
    }
}

/// A lock for one writer or many readers.
#[derive(Debug, Default)]
pub struct RwLock<T>(under::RwLock<T>);

/// Holds a [`RwLock`] for reading until it is dropped.
pub type RwLockReadGuard<'a, T> = under::RwLockReadGuard<'a, T>;

impl<T> RwLock<T> {
    /// Creates a lock that nobody holds.
    pub fn new(value: T) -> RwLock<T> {
        RwLock(under::RwLock::new(value))
    }

    /// Waits until no writer holds the lock, and takes it for reading.
    #[inline]
    pub fn read(&self) -> RwLockReadGuard<'_, T> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until nobody holds the lock, and takes it for writing.
    #[inline]
    pub fn write(&self) -> under::RwLockWriteGuard<'_, T> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the value, which no other thread can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.0.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn one_thread_at_a_time_however_the_lock_is_taken() {
        let counts = Mutex::new(Cell::new(0_u64));
        let count = |rounds: u64, soon: bool| {
            for _ in 0..rounds {
                let held = if soon { counts.lock_soon() } else { counts.lock() };
                let before = held.get();
                std::hint::spin_loop();
                held.set(before + 1);
            }
        };
        thread::scope(|scope| {
            for soon in [true, true, true, false] {
                scope.spawn(move || count(20_000, soon));
            }
        });
        assert_eq!(counts.lock().get(), 80_000);
        let held = counts.lock();
        // It sleeps in the end, and is woken.
        thread::scope(|scope| {
            scope.spawn(|| count(1, true));
            thread::sleep(std::time::Duration::from_millis(50));
            assert_eq!(held.get(), 80_000);
            drop(held);
        });
        assert_eq!(counts.lock().get(), 80_001);
    }
}
