//! Reads a value file through a map of it: values in the page cache need no read call and no copy.

use crate::format::{Damage, SealedPlace, VALUE_HEAD_BYTES, check_head, check_record};
use crate::reference::ValueReference;
use crate::sync::atomic::{AtomicU64, Ordering};
use bytes::Bytes;
use std::ops::Range;

/// At most one record of this length or longer starts in so many bytes of a file. Shorter records
/// are checked at each read, which is quick.
const GRAIN_BYTES: usize = 1024;

/// A mapped value file. The checksum of a value is checked before its first use.
#[derive(Debug)]
pub(super) struct MappedValues {
    bytes: Bytes,
    /// One bit for each grain of the file, set once the checksum of the record that starts there
    /// matched.
    checked: Box<[AtomicU64]>,
}

impl MappedValues {
    /// Creates the map of a file whose contents are `bytes`.
    pub(super) fn new(bytes: Bytes) -> MappedValues {
        let grains = bytes.len().div_ceil(GRAIN_BYTES);
        let checked = (0..grains.div_ceil(64)).map(|_| AtomicU64::new(0)).collect();
        MappedValues { bytes, checked }
    }

    /// Loads the first byte of the record at `place`, and makes the system map its page.
    #[inline]
    pub(super) fn touch(&self, place: &Range<u64>) -> u8 {
        self.bytes.get(place.start as usize).copied().unwrap_or_default()
    }

    /// Returns what is stored of the value of the record at `place` of file `file_id`, to which
    /// `reference` leads. It shares the bytes of the map.
    pub(super) fn stored(
        &self,
        file_id: u64,
        place: Range<u64>,
        reference: &ValueReference,
    ) -> Result<Bytes, Damage> {
        let within = place.start as usize..place.end as usize;
        let record = self.bytes.get(within.clone());
        let record = record.ok_or(Damage::whole("the file ends too early"))?;
        let grain = within.start / GRAIN_BYTES;
        let bit = 1 << (grain % 64);
        let word = self.checked.get(grain / 64).filter(|_| record.len() >= GRAIN_BYTES);
        // The head tells whether it is the record that was checked.
        if word.is_some_and(|word| word.load(Ordering::Relaxed) & bit != 0) {
            check_head(record, reference)?;
        } else {
            let offset = place.start;
            check_record(SealedPlace { table: file_id, offset }, record, reference)?;
            if let Some(word) = word {
                word.fetch_or(bit, Ordering::Relaxed);
            }
        }
        Ok(self.bytes.slice(within.start + VALUE_HEAD_BYTES..within.end))
    }
}
