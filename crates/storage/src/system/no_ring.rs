//! Where there is no ring of requests: each read begins when its bytes are needed.

use super::types::EarlyPlace;
use std::fs::File;
use std::io;

/// No ring.
pub(crate) struct Ring(());

impl Ring {
    /// Fails.
    pub(crate) fn new() -> io::Result<Ring> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Does nothing.
    pub(crate) fn begin(&mut self, _file: &File, _place: EarlyPlace) {
        let () = self.0;
    }

    /// Has nothing to take.
    pub(crate) fn take(&mut self, _place: EarlyPlace, _take: impl FnOnce(&[u8])) {}
}
