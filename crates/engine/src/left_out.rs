//! Parts of files that opening a store leaves out, and files that do not belong to the store.
//!
//! None of this is damage. Power loss, or the death of the process during an append, tears the end
//! of a log. Batches behind a missing batch must not be seen, so that the store opens on a prefix
//! of the batches. Nothing that a sync has made durable is left out. The list is for people who
//! look into an accident.

use std::fmt;
use std::path::PathBuf;

/// A file, or a part of one, in the store's directory that readers of the store do not see.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The file.
    pub path: PathBuf,
    /// The offset in the file at which the part begins, in bytes.
    pub offset: u64,
    /// The length of the part in bytes. In a log it ends behind the last byte that is not zero.
    pub bytes: u64,
    /// Why the part is left out.
    pub reason: LeftOutReason,
}

/// Why a file, or a part of one, is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// The end of a log or of the manifest is not complete. It had not been synced.
    TornEnd,
    /// Batches in front of the part are missing. Neither they nor the part had been synced.
    BehindGap,
    /// An earlier opening set the file aside.
    SetAside,
    /// The file is named like a file of the store, but the store does not refer to it. The next
    /// opening for writing removes it.
    Unnamed,
    /// The file is not named like a file of a store.
    Stranger,
}

impl LeftOutReason {
    /// Returns the reason as a word: `torn_end`, `behind_gap`, `set_aside`, `unnamed` or
    /// `stranger`.
    pub fn name(self) -> &'static str {
        match self {
            LeftOutReason::TornEnd => "torn_end",
            LeftOutReason::BehindGap => "behind_gap",
            LeftOutReason::SetAside => "set_aside",
            LeftOutReason::Unnamed => "unnamed",
            LeftOutReason::Stranger => "stranger",
        }
    }
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LeftOut { path, offset, bytes, reason } = self;
        let path = path.display();
        match reason {
            LeftOutReason::TornEnd => {
                write!(f, "the end of {path} is torn at offset {offset}: {bytes} bytes left out")
            }
            LeftOutReason::BehindGap => {
                write!(f, "{bytes} bytes of {path} from offset {offset} on follow missing batches")
            }
            LeftOutReason::SetAside => {
                write!(f, "an earlier opening set {path} aside, {bytes} bytes")
            }
            LeftOutReason::Unnamed => {
                write!(f, "the store does not refer to {path}, {bytes} bytes")
            }
            LeftOutReason::Stranger => {
                write!(f, "{path} is not named like a file of a store, {bytes} bytes")
            }
        }
    }
}
