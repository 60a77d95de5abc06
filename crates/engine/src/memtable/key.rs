//! Keys as the memtable holds them.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// Keys up to this many bytes are stored in place: enough for an identifier written out (36 bytes).
/// Longer ones pay a pointer, and the room of an inline key in vain.
const INLINE_BYTES_MAX: usize = 38;

/// A key: short ones in place, so that a search does not chase a pointer per comparison, long
/// ones elsewhere. Ordered as its bytes.
#[derive(Clone)]
pub(super) enum MemKey {
    Inline { length: u8, bytes: [u8; INLINE_BYTES_MAX] },
    Shared(Arc<[u8]>),
}

impl MemKey {
    pub(super) fn new(key: &[u8]) -> MemKey {
        let mut bytes = [0; INLINE_BYTES_MAX];
        match bytes.get_mut(..key.len()) {
            Some(place) => place.copy_from_slice(key),
            None => return MemKey::Shared(key.into()),
        }
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
            let key = MemKey::new(&long[..length]);
            assert_eq!(key.as_bytes(), &long[..length]);
            assert_eq!(key.shared_bytes() > 0, length > INLINE_BYTES_MAX);
            assert!(before.is_none_or(|shorter| shorter < key));
            before = Some(key);
        }
        assert!(MemKey::new(b"b") > MemKey::new(&[b'a'; 50]));
    }

    #[test]
    fn no_room_is_lost_around_an_inline_key() {
        assert_eq!(size_of::<MemKey>(), INLINE_BYTES_MAX + 2);
    }
}
