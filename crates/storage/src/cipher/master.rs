//! Master keys in memory.

use super::{Cipher, FileCipher, NONCE_BYTES, SALT_BYTES, TAG_BYTES};
use ring::aead::{AES_256_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf::{HKDF_SHA256, KeyType, Salt};
use std::fmt;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;
use zeroize::{Zeroize, Zeroizing};

/// The length of a master key in bytes.
const KEY_BYTES: usize = 32;

/// The bytes of a key file that are read: more than a key has.
const CONTENT_MAX: u64 = 100;

/// A master key of 32 bytes. Its bytes are overwritten when it is dropped, and never printed.
///
/// The key of a file is HKDF-SHA256 of the master key, the salt of the file and the name of the
/// algorithm.
///
/// ```
/// # let dir = tempfile::tempdir()?;
/// use lsmith_storage::cipher::{Keys, MasterKey};
///
/// let secret = [7; 32]; // 32 bytes that nobody can guess
/// let keys = Keys::new(MasterKey::aes_256_gcm(secret));
/// assert!(!format!("{keys:?}").contains("7, 7"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct MasterKey {
    bytes: Zeroizing<[u8; KEY_BYTES]>,
    algorithm: &'static Algorithm,
    id: u64,
}

impl MasterKey {
    /// Returns a key for AES-256-GCM: the faster choice on processors that have instructions for
    /// AES, as most have.
    pub fn aes_256_gcm(bytes: [u8; KEY_BYTES]) -> MasterKey {
        MasterKey::new(bytes, &AES_256_GCM)
    }

    /// Returns a key for ChaCha20-Poly1305: the faster choice on processors without instructions
    /// for AES.
    pub fn chacha20_poly1305(bytes: [u8; KEY_BYTES]) -> MasterKey {
        MasterKey::new(bytes, &CHACHA20_POLY1305)
    }

    /// Returns the key for AES-256-GCM that a key file holds: 32 bytes as they are, or as 64
    /// hexadecimal digits with or without a line end.
    ///
    /// # Errors
    /// Fails with `InvalidData` if `content` is neither.
    pub fn from_key_file(content: &[u8]) -> io::Result<MasterKey> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        if let Ok(bytes) = <&[u8; KEY_BYTES]>::try_from(content) {
            key.copy_from_slice(bytes);
            return Ok(MasterKey::aes_256_gcm(*key));
        }
        let digits = content.trim_ascii();
        let value = |digit: u8| char::from(digit).to_digit(16).map(|value| value as u8);
        let is_key = digits.len() == 2 * KEY_BYTES && digits.iter().all(u8::is_ascii_hexdigit);
        if !is_key {
            let found = content.len();
            let message = format!(
                "expected a key of 32 bytes, or of 64 hexadecimal digits, found {found} bytes"
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        for (byte, pair) in key.iter_mut().zip(digits.chunks_exact(2)) {
            *byte =
                pair.iter().filter_map(|digit| value(*digit)).fold(0, |high, low| high << 4 | low);
        }
        Ok(MasterKey::aes_256_gcm(*key))
    }

    /// Reads the [key file](MasterKey::from_key_file) at `path`.
    ///
    /// # Errors
    /// Fails with `InvalidData` if the file holds no key, and with another kind if it cannot be
    /// read. The message names the file.
    pub fn read_key_file(path: &Path) -> io::Result<MasterKey> {
        // A longer file is no key, and a device may have no end.
        let mut content = Zeroizing::new(Vec::with_capacity(CONTENT_MAX as usize));
        File::open(path)
            .and_then(|file| file.take(CONTENT_MAX).read_to_end(&mut content))
            .and_then(|_| MasterKey::from_key_file(&content))
            .map_err(|error| {
                let message = format!("cannot take a key from {}: {error}", path.display());
                io::Error::new(error.kind(), message)
            })
    }

    fn new(mut bytes: [u8; KEY_BYTES], algorithm: &'static Algorithm) -> MasterKey {
        let mut key = MasterKey { bytes: Zeroizing::new(bytes), algorithm, id: 0 };
        bytes.zeroize();
        let mut id = [0; 8];
        key.derive(&[0; SALT_BYTES], b"id of the key", &mut id);
        key.id = u64::from_le_bytes(id);
        key
    }

    /// Fills `out` with what follows from the key, `salt` and `use_of`.
    fn derive(&self, salt: &[u8], use_of: &[u8], out: &mut [u8]) {
        let secret = Salt::new(HKDF_SHA256, salt).extract(&self.bytes[..]);
        let info = [b"lsmith 1 ", self.name().as_bytes(), b" ", use_of];
        let filled = secret.expand(&info, Bytes(out.len())).and_then(|okm| okm.fill(out));
        filled.expect("HKDF-SHA256 gives up to 8160 bytes");
    }
}

/// A number of bytes that is asked of HKDF.
struct Bytes(usize);

impl KeyType for Bytes {
    fn len(&self) -> usize {
        self.0
    }
}

impl Cipher for MasterKey {
    fn name(&self) -> &str {
        if self.algorithm == &AES_256_GCM { "aes-256-gcm" } else { "chacha20-poly1305" }
    }

    fn key_id(&self) -> u64 {
        self.id
    }

    fn of_file(&self, salt: &[u8; SALT_BYTES]) -> io::Result<Box<dyn FileCipher>> {
        let mut key = Zeroizing::new([0; KEY_BYTES]);
        self.derive(salt, b"file", &mut key[..]);
        let key = UnboundKey::new(self.algorithm, &key[..]).expect("both need keys of 32 bytes");
        Ok(Box::new(Sealing(LessSafeKey::new(key))))
    }
}

impl fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MasterKey({} {:016x})", self.name(), self.id)
    }
}

/// The key of a file, ready for use.
struct Sealing(LessSafeKey);

impl FileCipher for Sealing {
    fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        data: &mut [u8],
    ) -> [u8; TAG_BYTES] {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let tag = self.0.seal_in_place_separate_tag(nonce, Aad::from(associated), data);
        let tag = tag.expect("no part of a file is 64 GiB long");
        *tag.as_ref().first_chunk().expect("tags of both have 16 bytes")
    }

    fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> bool {
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let (aad, tag) = (Aad::from(associated), (*tag).into());
        self.0.open_in_place_separate_tag(nonce, aad, tag, data, 0..).is_ok()
    }
}

impl fmt::Debug for Sealing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the key of a file")
    }
}
