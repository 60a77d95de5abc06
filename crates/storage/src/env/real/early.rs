//! Reads that a thread has begun before it needs their bytes.
//!
//! A thread has a ring of requests to the system, made with its first read of this kind. A thread
//! of a child process does not touch the ring of its parent.

use crate::sync::Process;
use crate::system::{EarlyPlace, Ring};
use std::cell::RefCell;
use std::fs::File;

/// The ring of this thread.
#[derive(Default)]
struct OfThread {
    /// True once it was made, or could not be made.
    is_asked: bool,
    ring: Option<(Ring, Process)>,
}

thread_local! {
    static RING: RefCell<OfThread> = RefCell::default();
}

impl OfThread {
    fn ring(&mut self) -> Option<&mut Ring> {
        let (ring, process) = self.ring.as_mut()?;
        process.is_here().then_some(ring)
    }
}

impl Drop for OfThread {
    fn drop(&mut self) {
        if self.ring().is_none() {
            std::mem::forget(self.ring.take());
        }
    }
}

/// Begins to read `place` of `file`. Does nothing if that cannot be done now.
pub(super) fn begin(file: &File, place: EarlyPlace) {
    // A thread that ends has no ring any more.
    let _ = RING.try_with(|of_thread| {
        let of_thread = &mut *of_thread.borrow_mut();
        if !std::mem::replace(&mut of_thread.is_asked, true) {
            of_thread.ring = Ring::new().ok().map(|ring| (ring, Process::here()));
        }
        if let Some(ring) = of_thread.ring() {
            ring.begin(file, place);
        }
    });
}

/// Calls `take` with the bytes of `place`, if this thread has begun to read them: all of them, or
/// those up to the end of the file.
pub(super) fn take(place: EarlyPlace, take: impl FnOnce(&[u8])) {
    let _ = RING.try_with(|of_thread| {
        if let Some(ring) = of_thread.borrow_mut().ring() {
            ring.take(place, take);
        }
    });
}
