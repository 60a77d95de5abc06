//! Writes a file of slots.

use super::slot::{Cut, FULL_BYTES, SLOT_BYTES, SLOT_HEAD_BYTES, nonce_of};
use crate::cipher::FileCipher;
use crate::env::WriteFile;
use crate::env::common::unless_failed;
use std::io;

/// The number of slots that are passed on at once.
const OUT_SLOTS: usize = 16;

/// A file that is written, slot by slot.
#[derive(Debug)]
pub(super) struct CipherWrite {
    file: Box<dyn WriteFile>,
    cipher: Box<dyn FileCipher>,
    session: u64,
    /// The index of the next slot, and the offset of its first byte.
    slot: u64,
    start: u64,
    /// The bytes of the next slot.
    waiting: Vec<u8>,
    /// Slots that are not passed on yet.
    out: Vec<u8>,
    failed: bool,
}

impl CipherWrite {
    /// Begins the new and empty `file` with `head`, its first slot.
    pub(super) fn begin(
        mut file: Box<dyn WriteFile>,
        head: Vec<u8>,
        cipher: Box<dyn FileCipher>,
        session: u64,
    ) -> io::Result<CipherWrite> {
        file.write_all(&head)?;
        Ok(CipherWrite::new(file, cipher, session, 1, 0))
    }

    /// Writes on behind `cut`, with the byte at `at` as the next one.
    pub(super) fn continued(
        file: Box<dyn WriteFile>,
        cipher: Box<dyn FileCipher>,
        session: u64,
        cut: Cut,
        at: u64,
    ) -> io::Result<CipherWrite> {
        let mut written = CipherWrite::new(file, cipher, session, cut.slots, at);
        if cut.hides {
            written.end_slot()?;
            written.flush()?;
        }
        Ok(written)
    }

    fn new(
        file: Box<dyn WriteFile>,
        cipher: Box<dyn FileCipher>,
        session: u64,
        slot: u64,
        start: u64,
    ) -> CipherWrite {
        let (waiting, out) = (Vec::new(), Vec::new());
        CipherWrite { file, cipher, session, slot, start, waiting, out, failed: false }
    }

    /// Encrypts the next slot with what waits for it.
    fn end_slot(&mut self) -> io::Result<()> {
        let at = self.out.len();
        let session = self.session.to_le_bytes();
        let place = self.start << 12 | self.waiting.len() as u64;
        let nonce = nonce_of(&session, self.slot)?;
        self.out.extend_from_slice(&session);
        self.out.extend_from_slice(&place.to_le_bytes());
        self.out.extend_from_slice(&[0; 16]);
        self.out.extend_from_slice(&self.waiting);
        let (head, data) = self.out[at..].split_at_mut(SLOT_HEAD_BYTES);
        let tag = self.cipher.seal(&nonce, &head[..16], data);
        head[16..].copy_from_slice(&tag);
        self.out.resize(at + SLOT_BYTES as usize, 0);
        self.slot += 1;
        self.start += self.waiting.len() as u64;
        self.waiting.clear();
        if self.out.len() >= OUT_SLOTS * SLOT_BYTES as usize {
            self.pass_on()?;
        }
        Ok(())
    }

    fn pass_on(&mut self) -> io::Result<()> {
        self.file.write_all(&self.out)?;
        self.out.clear();
        Ok(())
    }

    fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let room = FULL_BYTES as usize - self.waiting.len();
            let (now, later) = bytes.split_at(bytes.len().min(room));
            self.waiting.extend_from_slice(now);
            bytes = later;
            if self.waiting.len() as u64 == FULL_BYTES {
                self.end_slot()?;
            }
        }
        Ok(())
    }

    /// Passes everything on. What follows goes into a slot of its own.
    fn end_all(&mut self) -> io::Result<()> {
        if !self.waiting.is_empty() {
            self.end_slot()?;
        }
        self.pass_on()
    }

    /// Runs `step`, or fails if an earlier step failed: a slot must not be written twice.
    fn unless_failed(&mut self, step: impl FnOnce(&mut Self) -> io::Result<()>) -> io::Result<()> {
        unless_failed(self, |file| &mut file.failed, step)
    }
}

impl WriteFile for CipherWrite {
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.unless_failed(|file| file.write(bytes))
    }

    fn set_uncached(&mut self) {
        self.file.set_uncached();
    }

    fn flush(&mut self) -> io::Result<()> {
        self.unless_failed(|file| {
            file.end_all()?;
            file.file.flush()
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.unless_failed(|file| {
            file.end_all()?;
            file.file.sync()
        })
    }
}
