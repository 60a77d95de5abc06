//! Ciphers of files: the trait, the keys of a store, and the bytes that begin an encrypted file.
//!
//! # Format
//!
//! An encrypted file begins with 32 bytes that its format defines, its *prefix*, and 96 bytes that
//! say how it is encrypted:
//!
//! ```text
//! 0   24  name of the cipher, padded with zeros
//! 24  8   id of the master key
//! 32  32  salt, random
//! 64  16  tag over prefix and bytes 0..64, under the file's key
//! 80  8   xxh3-64 of prefix and bytes 0..80
//! 88  8   zeros
//! ```
//!
//! The key of the file comes from the master key and the salt. The id tells another key from
//! damage, and the tag shows that nobody has made these bytes up.

#[cfg(feature = "encryption")]
mod master;

#[cfg(feature = "encryption")]
pub use master::MasterKey;

use std::error::Error;
use std::fmt::{self, Debug, Display};
use std::io;
use std::sync::Arc;
use xxhash_rust::xxh3::xxh3_64;

/// The length in bytes of what an encrypted file begins with: prefix and head.
pub(crate) const START_BYTES: usize = PREFIX_BYTES + HEAD_BYTES;

/// The length of the part in bytes that the file's own format defines.
pub(crate) const PREFIX_BYTES: usize = 32;

/// The length in bytes of the part that this module defines.
pub(crate) const HEAD_BYTES: usize = 96;

/// The length of a nonce in bytes.
pub const NONCE_BYTES: usize = 12;

/// The length of a tag in bytes.
pub const TAG_BYTES: usize = 16;

/// The length of a salt in bytes.
pub const SALT_BYTES: usize = 32;

/// The longest name of a cipher, in bytes.
pub const CIPHER_NAME_BYTES_MAX: usize = 24;

/// The nonce of the tag of a head. No part of a file has it.
const HEAD_NONCE: [u8; NONCE_BYTES] = [0xFF; NONCE_BYTES];

/// The first bytes of every encrypted file that is no log.
pub(crate) const MAGIC: [u8; 8] = *b"lsmithen";

/// What to do about an encrypted file without a key.
pub(crate) const NEEDS_KEY: &str = "the file is encrypted: give its key (`Builder::keys`, or \
                                    `--key-file` on the command line)";

/// What to do about a file in clear where a key was given.
pub(crate) const IN_CLEAR: &str = "the file is not encrypted, but a key was given: leave the key \
                                   out, or let files in clear be read too (`Keys::and_clear`)";

/// A master key and the algorithm that it is for. From it comes a key for every file.
///
/// `MasterKey` implements it, with the cargo feature `encryption`. Other implementations can ask a
/// device or a service for the key of a file.
pub trait Cipher: Debug + Send + Sync + 'static {
    /// Returns the name of the algorithm with its parameters, which stands in every file: 1 to 24
    /// bytes of ASCII. A file is only decrypted by a cipher of this name.
    fn name(&self) -> &str;

    /// Returns a number that tells this master key from others. It stands in every file in clear,
    /// so nothing of the key may follow from it.
    fn key_id(&self) -> u64;

    /// Returns the cipher of the file with this salt, which is different for each file. The same
    /// salt always gives the same key.
    ///
    /// # Errors
    /// Fails if the key cannot be had, for example from a service.
    fn of_file(&self, salt: &[u8; SALT_BYTES]) -> io::Result<Box<dyn FileCipher>>;
}

/// The cipher of one file: authenticated encryption with associated data.
///
/// The store gives each nonce once for a file.
pub trait FileCipher: Debug + Send + Sync {
    /// Encrypts `data` in place, and returns a tag over `data` and `associated`.
    fn seal(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        data: &mut [u8],
    ) -> [u8; TAG_BYTES];

    /// Decrypts `data` in place. Returns false, and leaves anything in `data`, unless `tag` is what
    /// [`seal`](FileCipher::seal) returned for the same nonce, associated data and key.
    #[must_use]
    fn open(
        &self,
        nonce: &[u8; NONCE_BYTES],
        associated: &[u8],
        data: &mut [u8],
        tag: &[u8; TAG_BYTES],
    ) -> bool;
}

/// The master keys of a store: one that encrypts, and others that only decrypt.
#[derive(Clone, Debug)]
pub struct Keys {
    newest: Arc<dyn Cipher>,
    older: Vec<Arc<dyn Cipher>>,
    reads_clear: bool,
}

impl Keys {
    /// Returns keys that encrypt and decrypt with `cipher`.
    pub fn new(cipher: impl Cipher) -> Keys {
        Keys { newest: Arc::new(cipher), older: Vec::new(), reads_clear: false }
    }

    /// Adds a master key that only decrypts: one that is being replaced. Files that are written
    /// from now on have the newest key.
    #[must_use]
    pub fn and_older(mut self, cipher: impl Cipher) -> Keys {
        self.older.push(Arc::new(cipher));
        self
    }

    /// Also reads files that are not encrypted: a store that was written without a key, or tables
    /// to ingest. Then nobody notices if a file is replaced by one in clear.
    #[must_use]
    pub fn and_clear(mut self) -> Keys {
        self.reads_clear = true;
        self
    }

    /// Returns true if files in clear are read too.
    pub fn reads_clear(&self) -> bool {
        self.reads_clear
    }

    /// Returns the id of the key that encrypts.
    pub fn newest_id(&self) -> u64 {
        self.newest.key_id()
    }

    /// Begins a file with `prefix` and the random `salt`: returns its head and its cipher.
    pub(crate) fn begin(
        &self,
        prefix: &[u8; PREFIX_BYTES],
        salt: [u8; SALT_BYTES],
    ) -> io::Result<([u8; HEAD_BYTES], Box<dyn FileCipher>)> {
        let cipher = self.newest.of_file(&salt)?;
        let name = self.newest.name().as_bytes();
        if name.is_empty() || name.len() > CIPHER_NAME_BYTES_MAX || name.contains(&0) {
            return Err(io::Error::other("a cipher needs a name of 1 to 24 bytes"));
        }
        let mut head = [0; HEAD_BYTES];
        head[..name.len()].copy_from_slice(name);
        head[24..32].copy_from_slice(&self.newest.key_id().to_le_bytes());
        head[32..64].copy_from_slice(&salt);
        let tag = cipher.seal(&HEAD_NONCE, &covered(prefix, &head[..64]), &mut []);
        head[64..80].copy_from_slice(&tag);
        let checksum = xxh3_64(&covered(prefix, &head[..80]));
        head[80..88].copy_from_slice(&checksum.to_le_bytes());
        Ok((head, cipher))
    }

    /// Returns the cipher of a file that begins with `prefix` and `head`, and whether it has the
    /// newest key.
    pub(crate) fn open(
        &self,
        prefix: &[u8; PREFIX_BYTES],
        head: &[u8; HEAD_BYTES],
    ) -> io::Result<(Box<dyn FileCipher>, bool)> {
        let damaged = |message: &str| CipherError::damage(0, message);
        let (said, rest) = head[80..].split_at(8);
        let checksum = xxh3_64(&covered(prefix, &head[..80])).to_le_bytes();
        if said != checksum || rest != [0; 8] {
            return Err(damaged("the start of the encrypted file does not match its checksum"));
        }
        let name = String::from_utf8_lossy(&head[..24]);
        let name = name.trim_end_matches('\0');
        let id = u64::from_le_bytes(array(&head[24..32]));
        let mut all = std::iter::once(&self.newest).chain(&self.older);
        let Some(known) = all.find(|known| known.key_id() == id && known.name() == name) else {
            return Err(CipherError::key(self.wrong_key(name, id)));
        };
        let cipher = known.of_file(&array(&head[32..64]))?;
        let tag = array(&head[64..80]);
        if !cipher.open(&HEAD_NONCE, &covered(prefix, &head[..64]), &mut [], &tag) {
            return Err(damaged("the start of the encrypted file was not written with its key"));
        }
        Ok((cipher, Arc::ptr_eq(known, &self.newest)))
    }

    fn wrong_key(&self, name: &str, id: u64) -> String {
        let given = std::iter::once(&self.newest).chain(&self.older);
        let given: Vec<String> =
            given.map(|known| format!("{} {:016x}", known.name(), known.key_id())).collect();
        format!(
            "the file is encrypted with key {name} {id:016x}, which is none of the given: {}; \
             give that key (as an older one if it was replaced)",
            given.join(", ")
        )
    }
}

/// Returns true if `bytes` begin an encrypted file that is no log.
pub fn is_encrypted(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// Returns the bytes that a tag or a checksum covers.
fn covered(prefix: &[u8; PREFIX_BYTES], head: &[u8]) -> Vec<u8> {
    [&prefix[..], head].concat()
}

fn array<const N: usize>(bytes: &[u8]) -> [u8; N] {
    *bytes.first_chunk().expect("callers cut as many bytes")
}

/// Why an encrypted file cannot be read. It is the source of an [`io::Error`].
#[derive(Debug)]
pub(crate) struct CipherError {
    /// The place of damage; `None` if a key is missing or wrong.
    pub(crate) offset: Option<u64>,
    pub(crate) message: String,
}

impl CipherError {
    /// Returns the error for bytes at `offset` that were not written there with the key.
    pub(crate) fn damage(offset: u64, message: impl Into<String>) -> io::Error {
        let error = CipherError { offset: Some(offset), message: message.into() };
        io::Error::new(io::ErrorKind::InvalidData, error)
    }

    /// Returns the error for a file that needs another key.
    pub(crate) fn key(message: impl Into<String>) -> io::Error {
        let error = CipherError { offset: None, message: message.into() };
        io::Error::new(io::ErrorKind::InvalidInput, error)
    }

    /// Returns what `error` says of a cipher, if it does.
    pub(crate) fn of(error: &io::Error) -> Option<&CipherError> {
        error.get_ref()?.downcast_ref()
    }
}

impl Display for CipherError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for CipherError {}
