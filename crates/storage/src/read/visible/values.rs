//! Values in value files, for iterators.
//!
//! An iterator meets references in the order of keys, which is not the order of the values in their
//! files. So no system can guess which value is next. While reads of values wait for a device, the
//! iterator looks ahead: it goes through the next entries, announces the values that they refer to,
//! and comes back. The device then reads all of them at the same time.

use super::{VisibleIter, hides};
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind, Result};
use crate::reference::{EncodedReference, ReadBytes, ReadValue, stored_bytes};
use std::sync::Arc;

/// The most values that are announced together.
const VALUES_MAX: usize = 32;

/// No more values are announced together once they have this many bytes.
const BYTES_MAX: usize = 1 << 20;

/// For each value to announce, at most this many entries are gone through.
const ENTRIES_PER_VALUE: usize = 4;

/// What an iterator knows of values in value files.
#[derive(Default)]
pub(super) struct Values {
    reader: Option<Arc<dyn ReadValue>>,
    /// The number of values that were announced together last. It grows while the iterator goes on
    /// in one direction, because nobody knows how far a range read goes.
    together: usize,
    /// The number of values that are announced and not read yet.
    announced: usize,
}

impl Values {
    /// Returns values that `reader` reads.
    pub(super) fn of(reader: Option<Arc<dyn ReadValue>>) -> Values {
        Values { reader, ..Values::default() }
    }

    /// Forgets what was announced, because the iterator turns or begins anew.
    pub(super) fn turn(&mut self) {
        self.together = 0;
        self.announced = 0;
    }

    /// Returns the number of values that are to be announced now, from the next one on.
    fn due(&mut self) -> usize {
        let waits = self.reader.as_ref().is_some_and(|reader| reader.waits());
        if self.announced > 0 || !waits {
            return 0;
        }
        self.together = (2 * self.together).clamp(1, VALUES_MAX);
        if self.together > 1 { self.together } else { 0 }
    }

    /// Reads the value that `reference` leads to.
    pub(super) fn read(&mut self, reference: &[u8]) -> Result<ReadBytes> {
        let missing = || Error::new(ErrorKind::Corruption, "nobody knows where a value lies");
        let is_announced = self.announced > 0;
        self.announced = self.announced.saturating_sub(1);
        self.reader.as_ref().ok_or_else(missing)?.read_value(reference, is_announced)
    }

    /// Announces the value that `reference` leads to. Returns the bytes to read.
    fn announce(&mut self, reference: &[u8]) -> usize {
        self.announced += 1;
        if let Some(reader) = &self.reader {
            reader.announce(reference);
        }
        stored_bytes(reference)
    }
}

impl<C: Cursor> VisibleIter<C> {
    /// Announces the value of the entry under the cursor and those behind it, if it is time to.
    pub(super) fn look_ahead(&mut self) -> Result<()> {
        let due = self.values.due();
        if due == 0 {
            return Ok(());
        }
        // Whatever is damaged there is met again.
        let _ = self.announce_ahead(due);
        self.leaps.restart();
        self.cursor.seek(&self.left.0.key)
    }

    fn announce_ahead(&mut self, due: usize) -> Result<()> {
        let mut key: Option<Vec<u8>> = None;
        let mut bytes = 0;
        for _ in 0..due * ENTRIES_PER_VALUE {
            let Some(entry) = self.cursor.entry() else { break };
            if !self.left.1.allows_below(entry.key) {
                break;
            }
            let is_seen = entry.seq <= self.snapshot && key.as_deref() != Some(entry.key);
            if is_seen && !hides(&mut self.hidden, &entry, self.snapshot) {
                if entry.kind.is_reference() {
                    bytes += self.values.announce(entry.value);
                }
                key = Some(entry.key.to_vec());
            }
            if self.values.announced == due || bytes >= BYTES_MAX {
                break;
            }
            self.cursor.next()?;
        }
        Ok(())
    }

    /// Announces the value of `reference`, whose key the back has just left, and those before it,
    /// if it is time to.
    pub(super) fn look_back(&mut self) -> Result<()> {
        let due = self.values.due();
        if due == 0 {
            return Ok(());
        }
        let bytes = self.values.announce(self.back_value.bytes());
        let _ = self.announce_back(due, bytes);
        self.leaps.restart();
        self.cursor.seek_before(&self.left.1.key)
    }

    fn announce_back(&mut self, due: usize, mut bytes: usize) -> Result<()> {
        let mut key = Vec::new();
        // The newest version of a key comes last.
        let mut newest: Option<EncodedReference> = None;
        for _ in 0..due * ENTRIES_PER_VALUE {
            let entry = self.cursor.entry().filter(|entry| self.left.0.allows_above(entry.key));
            if entry.is_none_or(|entry| key != entry.key) {
                if let Some(reference) = newest.take() {
                    bytes += self.values.announce(&reference);
                }
                if self.values.announced == due || bytes >= BYTES_MAX {
                    break;
                }
            }
            let Some(entry) = entry else { break };
            if entry.seq <= self.snapshot && !hides(&mut self.hidden, &entry, self.snapshot) {
                let reference = EncodedReference::copy_of(entry.value);
                newest = reference.filter(|_| entry.kind.is_reference());
                key.clear();
                key.extend_from_slice(entry.key);
            }
            self.cursor.prev()?;
        }
        Ok(())
    }
}
