//! The files of stores, which may be encrypted.

use crate::failure::bad_argument;
use lsmith::env::{Env, RealEnv};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The environment of the command.
static FILES: OnceLock<Arc<dyn Env>> = OnceLock::new();

/// Returns the environment that reads and writes the files of stores.
pub(crate) fn env() -> Arc<dyn Env> {
    Arc::clone(FILES.get_or_init(|| Arc::new(RealEnv::new())))
}

/// Has files encrypted with the key in `newest`, and decrypted with this key or one in `older`.
#[cfg(feature = "encryption")]
pub(crate) fn encrypt(newest: &Path, older: &[PathBuf]) -> anyhow::Result<()> {
    use lsmith::cipher::{Keys, MasterKey};
    use lsmith::env::CipherEnv;
    use std::io::ErrorKind;
    let key = |path: &Path| {
        MasterKey::read_key_file(path).map_err(|error| match error.kind() {
            ErrorKind::InvalidData => bad_argument(error.to_string()),
            _ => error.into(),
        })
    };
    let mut keys = Keys::new(key(newest)?);
    for path in older {
        keys = keys.and_older(key(path)?);
    }
    FILES.get_or_init(|| Arc::new(CipherEnv::new(Arc::new(RealEnv::new()), keys)));
    Ok(())
}

/// Fails: this build has no ciphers.
#[cfg(not(feature = "encryption"))]
pub(crate) fn encrypt(newest: &Path, _older: &[PathBuf]) -> anyhow::Result<()> {
    use anyhow::Context as _;
    let message = "this program was built without the feature `encryption`";
    Err(bad_argument(message)).with_context(|| format!("cannot use {}", newest.display()))
}
