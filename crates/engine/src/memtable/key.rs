//! Keys as the memtable holds them.

use bytes::Bytes;
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

/// Keys up to this many bytes are stored where the tree compares them; with its two bytes of
/// bookkeeping an inline key is as large as a shared one.
const INLINE_BYTES_MAX: usize = 38;

/// A key: short ones in place, so that a search does not chase a pointer per comparison, long
/// ones by handle. Ordered as its bytes.
#[derive(Clone)]
pub(super) enum MemKey {
    Inline { length: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Shared(Bytes),
}

impl MemKey {
    pub(super) fn new(key: Bytes) -> MemKey {
        if key.len() > INLINE_BYTES_MAX {
            return MemKey::Shared(key);
        }
        let mut bytes = [0; INLINE_BYTES_MAX];
        bytes[..key.len()].copy_from_slice(&key);
        MemKey::Inline { length: key.len() as u8, bytes }
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        match self {
            MemKey::Inline { length, bytes } => &bytes[..usize::from(*length)],
            MemKey::Shared(key) => key,
        }
    }

    /// Bytes held outside of the value itself.
    pub(super) fn shared_bytes(&self) -> usize {
        match self {
            MemKey::Inline { .. } => 0,
            MemKey::Shared(key) => key.len(),
        }
    }
}

impl Borrow<[u8]> for MemKey {
    fn borrow(&self) -> &[u8] {
        self.as_bytes()
    }
}

impl PartialEq for MemKey {
    fn eq(&self, other: &MemKey) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for MemKey {}

impl PartialOrd for MemKey {
    fn partial_cmp(&self, other: &MemKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for MemKey {
    fn cmp(&self, other: &MemKey) -> Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}

impl fmt::Debug for MemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.as_bytes().escape_ascii())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_every_length_are_kept_and_ordered_as_bytes() {
        let long = [7u8; 100];
        let mut before: Option<MemKey> = None;
        for length in 0..long.len() {
            let key = MemKey::new(Bytes::copy_from_slice(&long[..length]));
            assert_eq!(key.as_bytes(), &long[..length]);
            assert_eq!(key.shared_bytes() > 0, length > INLINE_BYTES_MAX);
            assert!(before.is_none_or(|shorter| shorter < key));
            before = Some(key);
        }
        assert!(MemKey::new(Bytes::from_static(b"b")) > MemKey::new(Bytes::from(vec![b'a'; 50])));
    }

    #[test]
    fn an_inline_key_is_no_larger_than_a_shared_one() {
        assert_eq!(size_of::<MemKey>(), size_of::<Bytes>() + size_of::<usize>());
    }
}
