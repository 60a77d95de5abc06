//! Locks without poisoning, over the locks of `std` or of `shuttle`.
//!
//! All that a lock is lies in the lock. There is no table of waiting threads beside it, which a
//! child of `fork` would inherit as it was at that moment, held perhaps by a thread that is not
//! there. So the locks that a child makes always work.

#[cfg(shuttle)]
use shuttle::sync as under;
use std::ops::{Deref, DerefMut};
#[cfg(not(shuttle))]
use std::sync as under;
use std::sync::{PoisonError, TryLockError};

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
