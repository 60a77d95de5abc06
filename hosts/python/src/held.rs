//! What Python objects hold of a store, so that closing the store takes all of it back.

use crate::error::bad_argument;
use pyo3::prelude::*;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// A handle, until the store is closed. Its lock is never held while a thread waits for Python.
pub(crate) struct Held<T>(Mutex<Option<T>>);

impl<T> Held<T> {
    pub(crate) fn new(handle: T) -> Held<T> {
        Held(Mutex::new(Some(handle)))
    }

    fn lock(&self) -> MutexGuard<'_, Option<T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Calls `act` with the handle.
    ///
    /// # Errors
    /// Fails if the store is closed.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        let found = self.lock().as_mut().map(act);
        found.ok_or_else(|| bad_argument("the store is closed"))
    }
}

/// A handle that can be taken back.
trait Closes: Send + Sync {
    fn close(&self);
}

impl<T: Send> Closes for Held<T> {
    fn close(&self) {
        let handle = self.lock().take();
        drop(handle);
    }
}

/// An open store, and the handles that keep it open.
pub(crate) struct Root {
    store: Held<lsmith::Store>,
    handles: Mutex<Vec<Weak<dyn Closes>>>,
}

impl Root {
    pub(crate) fn new(store: lsmith::Store) -> Root {
        Root { store: Held::new(store), handles: Mutex::default() }
    }

    /// Returns the store.
    ///
    /// # Errors
    /// Fails if it is closed.
    pub(crate) fn store(&self) -> PyResult<lsmith::Store> {
        self.store.with(|store| store.clone())
    }

    /// Returns `handle`, held until the store is closed.
    pub(crate) fn hold<T: Send + 'static>(&self, handle: T) -> Arc<Held<T>> {
        let held = Arc::new(Held::new(handle));
        self.watch(&held);
        held
    }

    /// Closes `held` with the store.
    pub(crate) fn watch<T: Send + 'static>(&self, held: &Arc<Held<T>>) {
        let mut handles = self.handles.lock().unwrap_or_else(PoisonError::into_inner);
        // Handles that are gone leave when the list would grow.
        if handles.len() == handles.capacity() {
            handles.retain(|handle| handle.strong_count() > 0);
        }
        let weak: Weak<Held<T>> = Arc::downgrade(held);
        handles.push(weak);
    }

    /// Takes all handles back, and then the store.
    pub(crate) fn close(&self) {
        let handles =
            std::mem::take(&mut *self.handles.lock().unwrap_or_else(PoisonError::into_inner));
        handles.iter().filter_map(Weak::upgrade).for_each(|handle| handle.close());
        self.store.close();
    }
}
