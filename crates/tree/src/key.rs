//! Keys: short ones by value, long ones shared.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// The longest key that is held by value.
const SHORT_MAX: usize = HEAD - 1;
const HEAD: usize = 16;

/// A user's key: at least one byte, ordered byte by byte. As a bound of a [range](crate::KeyRange)
/// it can be empty.
///
/// Trees hold many keys, and clone and compare them all the time. So keys of up to 15 bytes are
/// held by value, and longer keys are shared between clones.
#[derive(Clone, Default)]
pub struct Key {
    /// The first bytes, padded with zeros. The last byte is the length of a short key, and a larger
    /// integer for a long key. So heads are ordered as keys are, except that long keys can have
    /// equal heads.
    head: [u8; HEAD],
    /// All bytes of a long key.
    long: Option<Arc<Vec<u8>>>,
}

impl Key {
    /// Returns the empty key, below every other.
    pub const fn new() -> Key {
        Key { head: [0; HEAD], long: None }
    }

    /// Returns a key of these bytes.
    #[inline]
    pub fn copy_from_slice(bytes: &[u8]) -> Key {
        match bytes.len() {
            len @ ..=SHORT_MAX => Key { head: head(bytes, len), long: None },
            _ => Key::long(bytes.to_vec()),
        }
    }

    /// Returns the eight bytes of `number` as a key, the highest byte first, so that keys are
    /// ordered as numbers are.
    #[inline]
    pub const fn of_number(number: u64) -> Key {
        Key { head: ((number as u128) << 64 | 8).to_be_bytes(), long: None }
    }

    /// Returns the least key above [`of_number(number)`](Key::of_number): its eight bytes and a
    /// zero.
    #[inline]
    pub const fn after_number(number: u64) -> Key {
        Key { head: ((number as u128) << 64 | 9).to_be_bytes(), long: None }
    }

    fn long(bytes: Vec<u8>) -> Key {
        Key { head: head(&bytes[..SHORT_MAX], HEAD), long: Some(Arc::new(bytes)) }
    }

    /// Returns the first eight bytes as a number, padded with zeros. These numbers are ordered as
    /// the keys are, except for ties. Reads only the memory of the key itself.
    #[inline]
    pub fn prefix(&self) -> u64 {
        u64::from_be_bytes(self.head.first_chunk().copied().unwrap_or_default())
    }

    /// Returns true if this is the empty key.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.head[SHORT_MAX] == 0
    }
}

/// Returns the head of a key of `len` bytes that starts with `bytes`.
#[inline]
fn head(bytes: &[u8], len: usize) -> [u8; HEAD] {
    let mut head = [0; HEAD];
    head[..bytes.len()].copy_from_slice(bytes);
    head[SHORT_MAX] = len as u8;
    head
}

/// Returns the least key above `key`: the key with a zero byte appended.
pub fn key_after(key: &[u8]) -> Key {
    match key.len() {
        len @ ..SHORT_MAX => Key { head: head(key, len + 1), long: None },
        _ => Key::long(key.iter().copied().chain([0]).collect()),
    }
}

impl Deref for Key {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match &self.long {
            None => &self.head[..usize::from(self.head[SHORT_MAX])],
            Some(bytes) => bytes,
        }
    }
}

impl Ord for Key {
    #[inline]
    fn cmp(&self, other: &Key) -> Ordering {
        let head = u128::from_be_bytes(self.head);
        let other_head = u128::from_be_bytes(other.head);
        head.cmp(&other_head).then_with(|| match (&self.long, &other.long) {
            (Some(bytes), Some(other_bytes)) => bytes.cmp(other_bytes),
            _ => Ordering::Equal,
        })
    }
}

impl PartialOrd for Key {
    #[inline]
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    #[inline]
    fn eq(&self, other: &Key) -> bool {
        self.head == other.head && self.long == other.long
    }
}

impl Eq for Key {}

impl Hash for Key {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self[..].hash(state);
    }
}

impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        self
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.escape_ascii())
    }
}

impl From<&[u8]> for Key {
    fn from(bytes: &[u8]) -> Key {
        Key::copy_from_slice(bytes)
    }
}

impl<const N: usize> From<&[u8; N]> for Key {
    fn from(bytes: &[u8; N]) -> Key {
        Key::copy_from_slice(bytes)
    }
}

impl From<Vec<u8>> for Key {
    fn from(bytes: Vec<u8>) -> Key {
        if bytes.len() > SHORT_MAX { Key::long(bytes) } else { Key::copy_from_slice(&bytes) }
    }
}

impl From<&str> for Key {
    fn from(text: &str) -> Key {
        Key::copy_from_slice(text.as_bytes())
    }
}

impl From<String> for Key {
    fn from(text: String) -> Key {
        Key::from(text.into_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_any_length_compare_as_their_bytes_do() {
        let mut texts: Vec<Vec<u8>> = Vec::new();
        for len in 0..30 {
            for fill in [0, 1, 255] {
                texts.push(vec![fill; len]);
                // Another last byte, and another first.
                let mut other = vec![fill; len];
                *other.last_mut().unwrap_or(&mut 0) = 7;
                texts.push(other.clone());
                other.reverse();
                texts.push(other);
            }
        }
        for left in &texts {
            let key = Key::from(left.clone());
            assert_eq!(&*key, left);
            for right in &texts {
                assert_eq!(key.cmp(&Key::from(right.clone())), left.cmp(right));
            }
        }
    }

    #[test]
    fn nothing_lies_between_a_key_and_the_one_after() {
        for len in 0..30 {
            let key = vec![9; len];
            let after: Vec<u8> = key.iter().copied().chain([0]).collect();
            assert_eq!(&*key_after(&key), after);
        }
    }
}
