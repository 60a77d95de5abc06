//! Who a store is.

use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, ErrorKind, Result};
use std::fmt;
use std::str::FromStr;

/// The identity of a store: 128 random bits that are drawn when the store is made.
///
/// A checkpoint, a restored backup and a repaired store are stores of their own, and have
/// identities of their own. A directory that other programs have copied (`cp -r`) has the identity
/// of its original: nothing tells the two apart, until one of them goes on.
///
/// It is written as 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreId(pub u128);

impl fmt::Display for StoreId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl FromStr for StoreId {
    type Err = Error;

    /// # Errors
    /// `InvalidArgument` if the text is not 32 hexadecimal digits.
    fn from_str(text: &str) -> Result<StoreId> {
        let is_id = text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u128::from_str_radix(text, 16).ok().filter(|_| is_id);
        bits.map(StoreId).ok_or_else(|| {
            let message = format!("expected an identity of 32 hexadecimal digits, found `{text}`");
            Error::new(ErrorKind::InvalidArgument, message)
        })
    }
}

/// The identity of a store, and the store that it was copied from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) id: StoreId,
    /// The original, if this store is a checkpoint, a backup or a repaired copy.
    pub(crate) origin: Option<StoreId>,
}

impl Identity {
    /// Returns the identity of a new store, which was made of the store `origin` if there is one.
    pub(crate) fn new(env: &dyn Env, origin: Option<StoreId>) -> Identity {
        Identity { id: StoreId(env.random()), origin }
    }
}
