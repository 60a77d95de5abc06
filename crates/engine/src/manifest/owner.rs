//! The manifest of an open store, as all threads share it.

use super::{Account, ManifestFile, Record};
use crate::context::{Context, read_only};
use lsmith_storage::error::Result;
use lsmith_storage::sync::{Mutex, MutexGuard};
use std::sync::Arc;

/// The manifest of an open store.
#[derive(Debug)]
pub(crate) struct Manifest {
    context: Arc<Context>,
    /// `None` in a store that was opened for reading only.
    file: Mutex<Option<ManifestFile>>,
}

impl Manifest {
    /// Returns a manifest that cannot be written to before it is [begun](Manifest::begin).
    pub(crate) fn new(context: &Arc<Context>) -> Manifest {
        Manifest { context: Arc::clone(context), file: Mutex::new(None) }
    }

    /// Begins a new file that says `account`, and puts it in force.
    ///
    /// # Errors
    /// `Full` or `Io`.
    pub(crate) fn begin(&self, account: Account) -> Result<()> {
        let Context { options, counts, next_file, .. } = &*self.context;
        let file = ManifestFile::create(&options.env, &options.dir, counts, next_file, account)?;
        *self.file.lock() = Some(file);
        Ok(())
    }

    /// Writes `record`, durably. Returns what `then` makes of all that the manifest says now.
    ///
    /// # Errors
    /// `ReadOnly`; those of a write. If nobody knows what was written the store is poisoned.
    pub(crate) fn write<T>(&self, record: Record, then: impl FnOnce(&Account) -> T) -> Result<T> {
        let mut file = self.file.lock();
        let file = file.as_mut().ok_or_else(read_only)?;
        let step = self.context.one_step();
        let written = file.write(record);
        step.over();
        if file.failed() {
            self.context.poison();
        }
        written.map(|()| then(file.account()))
    }

    /// Keeps the file as it is until the guard is dropped: nobody writes meanwhile.
    pub(crate) fn hold_still(&self) -> MutexGuard<'_, impl Sized> {
        self.file.lock()
    }
}
