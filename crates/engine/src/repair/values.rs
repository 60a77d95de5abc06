//! The values that tables refer to, as far as they can be read.

use bytes::Bytes;
use lsmith_storage::env::Env;
use lsmith_storage::error::{Error, Result};
use lsmith_storage::names::{FileKind, numbered};
use lsmith_storage::reference::ValueReference;
use lsmith_storage::table::{OpenFiles, ValueFile};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// The value files of a damaged store.
pub(super) struct ValueRemains {
    env: Arc<dyn Env>,
    dir: PathBuf,
    files: Arc<OpenFiles>,
    opened: RefCell<BTreeMap<u64, Rc<ValueFile>>>,
}

impl ValueRemains {
    /// Returns the value files in `dir`, none of them open.
    pub(super) fn new(env: &Arc<dyn Env>, dir: &Path, files: &Arc<OpenFiles>) -> ValueRemains {
        ValueRemains {
            env: Arc::clone(env),
            dir: dir.to_path_buf(),
            files: Arc::clone(files),
            opened: RefCell::default(),
        }
    }

    /// Returns the value that the encoded `reference` leads to.
    ///
    /// # Errors
    /// Fails with the damage, or with `Io`.
    pub(super) fn read(&self, reference: &[u8]) -> Result<Bytes> {
        let Some(reference) = ValueReference::decode(reference) else {
            let message = "expected a reference to a value, found other bytes";
            return Err(Error::corruption(&self.dir, 0, message));
        };
        let file_id = reference.file;
        let known = self.opened.borrow().get(&file_id).cloned();
        let file = match known {
            Some(file) => file,
            None => {
                let path = numbered(&self.dir, FileKind::Values, file_id);
                let file = Rc::new(ValueFile::open(&*self.env, &path, file_id, &self.files)?);
                self.opened.borrow_mut().insert(file_id, Rc::clone(&file));
                file
            }
        };
        file.read(&reference)
    }
}
