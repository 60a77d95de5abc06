//! Where no read begins early: each begins when its bytes are needed.

use super::EarlyPlace;
use std::fs::File;

/// Does nothing.
pub(crate) fn begin_early(_file: &File, _place: EarlyPlace) {}

/// Has nothing to take.
pub(crate) fn take_early(_place: EarlyPlace, _take: impl FnOnce(&[u8])) {}
