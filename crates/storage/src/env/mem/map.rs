//! Maps of files on the disk in memory.

use crate::sync::atomic::Ordering;
use crate::sync::unscheduled::AtomicU8;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use std::ops::Range;

/// What is seen in a map where a hole was punched. The system shows zeros there, but zeros can go
/// unnoticed, and nobody may look.
const GARBAGE: u8 = 0xDB;

/// The bytes of a file as they were when it was mapped, but for holes punched since.
#[derive(Debug)]
struct Map(Box<[AtomicU8]>);

impl AsRef<[u8]> for Map {
    #[allow(unsafe_code)]
    fn as_ref(&self) -> &[u8] {
        // SAFETY: An `AtomicU8` is a byte, and all of them are initialized and live as long as
        // `self`. They are stored to only where a hole is punched, and as with the files of the
        // system, who punches it has made sure that nobody looks there any more. One who looks
        // nevertheless reads what was or what is: to have that noticed is what maps are here for.
        unsafe { std::slice::from_raw_parts(self.0.as_ptr().cast::<u8>(), self.0.len()) }
    }
}

/// Lends `map` out for as long as somebody needs it.
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
    /// Maps `bytes`, the contents of the file, of which the last are `zeros` zeros.
    pub(super) fn add(&mut self, bytes: &[u8], zeros: usize) -> Bytes {
        let zeros = std::iter::repeat_n(&0, zeros);
        let map =
            Arc::new(Map(bytes.iter().chain(zeros).map(|byte| AtomicU8::new(*byte)).collect()));
        self.0.retain(|map| map.strong_count() > 0);
        self.0.push(Arc::downgrade(&map));
        Bytes::from_owner(Lent(map))
    }

    /// Takes the bytes in `range` away from who looks at them.
    pub(super) fn punch(&self, range: &Range<u64>) {
        for map in self.0.iter().filter_map(Weak::upgrade) {
            let end = (range.end as usize).min(map.0.len());
            let punched = map.0.get(range.start as usize..end).unwrap_or_default();
            punched.iter().for_each(|byte| byte.store(GARBAGE, Ordering::Relaxed));
        }
    }
}
