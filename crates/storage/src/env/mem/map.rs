//! Maps of files on the disk in memory.

use crate::sync::atomic::Ordering;
use crate::sync::unscheduled::AtomicU8;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use std::ops::Range;

/// The bytes of a map where a hole was punched. The system shows zeros there. This environment
/// shows garbage, because a read of zeros can go unnoticed, and no reader may look there.
const GARBAGE: u8 = 0xDB;

/// Returns the place of byte `at` of a file among the bytes that are kept of it. A byte that no
/// memory can hold lies behind all of them.
pub(super) fn index(at: u64) -> usize {
    usize::try_from(at).unwrap_or(usize::MAX)
}

/// The bytes of a file when it was mapped, except for holes punched since.
#[derive(Debug)]
struct Map(Box<[AtomicU8]>);

impl AsRef<[u8]> for Map {
    #[allow(unsafe_code, reason = "a view of atomic bytes as bytes")]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: An `AtomicU8` is a byte, and all of them are initialized and live as long as
        // `self`. They are stored to only where a hole is punched. As with real files, the caller
        // that punches has made sure that nobody reads there any more. A reader that does so
        // nevertheless gets the old byte or garbage, and this type exists so that tests notice
        // that.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), self.0.len()) }
    }
}

/// Keeps `map` alive as long as a caller uses it.
#[derive(Debug)]
struct Lent(Arc<Map>);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        (*self.0).as_ref()
    }
}

/// The maps of one file that are in use. A copy of the disk has none.
#[derive(Debug, Default)]
pub(super) struct Maps(Vec<Weak<Map>>);

impl Clone for Maps {
    fn clone(&self) -> Maps {
        Maps::default()
    }
}

impl Maps {
    /// Maps `bytes`, followed by `zeros` zeros; together they are the contents of the file.
    pub(super) fn add(&mut self, bytes: &[u8], zeros: usize) -> Bytes {
        let zeros = std::iter::repeat_n(&0, zeros);
        let map =
            Arc::new(Map(bytes.iter().chain(zeros).map(|byte| AtomicU8::new(*byte)).collect()));
        self.0.retain(|map| map.strong_count() > 0);
        self.0.push(Arc::downgrade(&map));
        Bytes::from_owner(Lent(map))
    }

    /// Fills the bytes in `range` with garbage in all maps.
    pub(super) fn punch(&self, range: &Range<u64>) {
        for map in self.0.iter().filter_map(Weak::upgrade) {
            let end = index(range.end).min(map.0.len());
            let punched = map.0.get(index(range.start)..end).unwrap_or_default();
            punched.iter().for_each(|byte| byte.store(GARBAGE, Ordering::Relaxed));
        }
    }
}
