//! An allocator that counts the bytes that each thread holds.

#![allow(unsafe_code, reason = "an allocator is unsafe; this one leaves all work to the system's")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counted;

#[global_allocator]
static COUNTED: Counted = Counted;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
    /// All bytes that were ever allocated.
    static ALLOCATED: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    // While a thread ends, its counters no longer exist.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        ALLOCATED.with(|all| all.set(all.get() + bytes.max(0) as u64));
        PEAK.with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: all methods forward their arguments to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        count(bytes as i64 - layout.size() as i64);
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(place, layout, bytes) }
    }
}

/// Runs `work` and returns its result, with all bytes that this thread allocated during it, freed
/// ones included: a measure of work.
pub fn allocated_bytes<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = ALLOCATED.get();
    let done = work();
    (done, ALLOCATED.get() - before)
}

/// Runs `work` and returns its result, with the most bytes that this thread held during it beyond
/// the bytes it held before.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HELD.get();
    let outer = PEAK.get();
    PEAK.set(before);
    let done = work();
    let peak = PEAK.get();
    // An outer measurement continues.
    PEAK.set(peak.max(outer));
    (done, (peak - before) as usize)
}
