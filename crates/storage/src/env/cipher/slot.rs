//! The measures and the nonces of slots.

use crate::cipher::NONCE_BYTES;
use crate::env::PAGE_BYTES;
use std::io;

/// The length of a slot in bytes: a page, so that holes consist of whole slots.
pub(super) const SLOT_BYTES: u64 = PAGE_BYTES;

/// The bytes of a slot in front of what it holds.
pub(super) const SLOT_HEAD_BYTES: usize = 32;

/// The bytes that a full slot holds.
pub(in crate::env) const FULL_BYTES: u64 = SLOT_BYTES - SLOT_HEAD_BYTES as u64;

/// Where a file is to be cut.
pub(super) struct Cut {
    /// The number of slots that stay, the first one of the file included.
    pub(super) slots: u64,
    /// True if a slot must follow that hides the end of the last one.
    pub(super) hides: bool,
}

/// Returns the nonce of a slot.
pub(super) fn nonce_of(session: &[u8], slot: u64) -> io::Result<[u8; NONCE_BYTES]> {
    let mut nonce = [0; NONCE_BYTES];
    nonce[..8].copy_from_slice(session);
    let slot = u32::try_from(slot).ok().filter(|slot| *slot < u32::MAX);
    let slot = slot.ok_or(io::ErrorKind::FileTooLarge)?;
    nonce[8..].copy_from_slice(&slot.to_le_bytes());
    Ok(nonce)
}
