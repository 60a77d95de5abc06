//! Reads a file of slots.

use super::index::{Break, Index};
use super::slot::{Cut, SLOT_BYTES, SLOT_HEAD_BYTES, nonce_of};
use crate::cipher::{CipherError, FileCipher};
use crate::env::ReadFile;
use crate::sync::{ArcSwap, Mutex, thread_local};
use std::cell::RefCell;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The memory that a thread keeps for encrypted bytes.
const KEPT_BYTES: usize = 1 << 20;

thread_local! {
    /// Slots as they are read, and decrypted in place.
    static SLOTS: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// An open file of slots.
#[derive(Debug)]
pub(super) struct CipherRead {
    file: Arc<dyn ReadFile>,
    /// `None` for a file without slots.
    cipher: Option<Box<dyn FileCipher>>,
    index: ArcSwap<Index>,
    indexing: Mutex<()>,
}

/// A slot that matches its tag. Its bytes were decrypted in place.
struct Slot {
    start: u64,
    bytes: u64,
}

impl CipherRead {
    pub(super) fn new(file: Arc<dyn ReadFile>, cipher: Option<Box<dyn FileCipher>>) -> CipherRead {
        let index = ArcSwap::from_pointee(Index::default());
        CipherRead { file, cipher, index, indexing: Mutex::new(()) }
    }

    pub(super) fn into_cipher(self) -> Option<Box<dyn FileCipher>> {
        self.cipher
    }

    /// Returns where to cut the file so that it ends at `at`.
    pub(super) fn cut_at(&self, at: u64) -> io::Result<Cut> {
        let index = self.index_now()?;
        if at > index.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(last) = at.checked_sub(1) else { return Ok(Cut { slots: 1, hides: false }) };
        let slot = index.slot_of(last);
        Ok(Cut { slots: slot + 1, hides: self.stored_end(&index, slot)? > at })
    }

    /// Returns the slots that hold bytes in `range` only. Without the last slot, which tells the
    /// length of the file.
    pub(super) fn slots_within(&self, range: &Range<u64>) -> io::Result<Range<u64>> {
        let index = self.index_now()?;
        if range.is_empty() || range.end > index.end {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let first = index.slot_of(range.start);
        let first = first + u64::from(index.start_of(first) < range.start);
        let behind = index.slot_of(range.end - 1);
        let behind = behind + u64::from(index.end_of(behind) == range.end);
        Ok(first..behind.min(index.last).max(first))
    }

    /// Returns the offset behind the bytes of `slot`, also behind what the next one hides.
    fn stored_end(&self, index: &Index, slot: u64) -> io::Result<u64> {
        Ok(match self.look(slot)? {
            Some(found) => found.start + found.bytes,
            None => index.end_of(slot),
        })
    }

    /// Decrypts `bytes`, slot number `slot`. Returns `None` if it does not match its tag.
    fn open(&self, slot: u64, bytes: &mut [u8]) -> io::Result<Option<Slot>> {
        let Some(cipher) = &self.cipher else { return Ok(None) };
        let (head, rest) = bytes.split_at_mut(SLOT_HEAD_BYTES);
        let (associated, tag) = head.split_at(16);
        let place = u64::from_le_bytes(*associated[8..].first_chunk().expect("8 bytes"));
        let (start, count) = (place >> 12, place & 0xFFF);
        let nonce = nonce_of(&associated[..8], slot)?;
        let tag = tag.first_chunk().expect("16 bytes");
        let Some(data) = rest.get_mut(..count as usize) else { return Ok(None) };
        let matches = cipher.open(&nonce, associated, data, tag);
        Ok(matches.then_some(Slot { start, bytes: count }))
    }

    /// Returns the slot with this number, or `None` if it is a hole or damaged.
    fn look(&self, slot: u64) -> io::Result<Option<Slot>> {
        let mut bytes = [0; SLOT_BYTES as usize];
        self.file.read_exact_at(&mut bytes, slot * SLOT_BYTES)?;
        self.open(slot, &mut bytes)
    }

    /// Returns the last slot that is not damaged, with its end. The file may be cut meanwhile.
    fn last_slot(&self) -> io::Result<Option<(Break, u64)>> {
        let mut slot = self.file.bytes()? / SLOT_BYTES;
        while slot > 1 {
            slot -= 1;
            match self.look(slot) {
                Ok(Some(found)) => {
                    let last = Break { slot, start: found.start };
                    return Ok(Some((last, found.start + found.bytes)));
                }
                Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => return Err(error),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Makes an index of the file as it is now.
    fn index_now(&self) -> io::Result<Arc<Index>> {
        let _indexing = self.indexing.lock();
        let index = match self.last_slot()? {
            Some((last, end)) => {
                Index::build(last, end, |slot| Ok(self.look(slot)?.map(|found| found.start)))?
            }
            None => Index::default(),
        };
        let index = Arc::new(index);
        self.index.store(Arc::clone(&index));
        Ok(index)
    }

    /// Fills `buffer` from `offset` on, where `index` says that the bytes are. Returns false if
    /// they are not there.
    fn fill(
        &self,
        index: &Index,
        buffer: &mut [u8],
        offset: u64,
        read_slots: ReadSlots,
    ) -> io::Result<bool> {
        let end = offset + buffer.len() as u64;
        let slots = index.slot_of(offset)..index.slot_of(end - 1) + 1;
        SLOTS.with(|kept| {
            let read = &mut *kept.borrow_mut();
            read.resize(((slots.end - slots.start) * SLOT_BYTES) as usize, 0);
            let filled = read_slots(&*self.file, read, slots.start * SLOT_BYTES);
            let filled =
                filled.and_then(|()| self.decrypt(index, slots.start, read, buffer, offset));
            read.truncate(KEPT_BYTES);
            read.shrink_to(KEPT_BYTES);
            filled
        })
    }

    /// Copies the bytes from `offset` on out of the slots `read`, which begin with number `first`,
    /// into `buffer`.
    fn decrypt(
        &self,
        index: &Index,
        first: u64,
        read: &mut [u8],
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<bool> {
        let end = offset + buffer.len() as u64;
        for (slot, bytes) in (first..).zip(read.chunks_exact_mut(SLOT_BYTES as usize)) {
            let (from, to) = (index.start_of(slot), index.end_of(slot));
            let wanted = from.max(offset)..to.min(end);
            if wanted.is_empty() {
                continue;
            }
            let place = (wanted.start - offset) as usize..(wanted.end - offset) as usize;
            match self.open(slot, bytes)? {
                Some(found) if found.start == from && found.start + found.bytes >= wanted.end => {
                    let at = SLOT_HEAD_BYTES + (wanted.start - from) as usize;
                    let data = &bytes[at..at + place.len()];
                    buffer[place].copy_from_slice(data);
                }
                Some(_) => return Ok(false),
                None if bytes.iter().all(|byte| *byte == 0) => buffer[place].fill(0),
                None => {
                    let message = "the bytes were not written there with the file's key";
                    return Err(CipherError::damage(wanted.start, message));
                }
            }
        }
        Ok(true)
    }
}

/// How slots are read: a method of [`ReadFile`].
type ReadSlots = fn(&dyn ReadFile, &mut [u8], u64) -> io::Result<()>;

impl CipherRead {
    /// Fills `buffer` from `offset` on.
    fn read(&self, buffer: &mut [u8], offset: u64, read_slots: ReadSlots) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let end = offset.checked_add(buffer.len() as u64);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let index = self.index.load();
        if end <= index.end && self.fill(&index, buffer, offset, read_slots)? {
            return Ok(());
        }
        drop(index);
        // The file may have become longer, or was cut and written on.
        let index = self.index_now()?;
        if end > index.end {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        match self.fill(&index, buffer, offset, read_slots)? {
            true => Ok(()),
            false => Err(CipherError::damage(offset, "the slots of the file are out of order")),
        }
    }
}

impl ReadFile for CipherRead {
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read(buffer, offset, |file, buffer, at| file.read_exact_at(buffer, at))
    }

    fn read_once_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read(buffer, offset, |file, buffer, at| file.read_once_at(buffer, at))
    }

    fn bytes(&self) -> io::Result<u64> {
        Ok(self.index_now()?.end)
    }

    /// Announces the slots that a read of `range` will read, and no other.
    fn announce(&self, range: Range<u64>) {
        let index = self.index.load();
        let Some(last) = range.end.min(index.end).checked_sub(1) else { return };
        if range.start <= last {
            let slots = index.slot_of(range.start)..index.slot_of(last) + 1;
            self.file.announce(slots.start * SLOT_BYTES..slots.end * SLOT_BYTES);
        }
    }

    fn release(&self) {
        self.file.release();
    }
}
