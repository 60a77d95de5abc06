//! What opening a store leaves out of its files, and files that are not the store's.
//!
//! None of this is damage. Power loss, or the death of the process in the middle of an append,
//! tears the end of a log; what is behind a batch that is missing must not be seen, so that the
//! store opens on a prefix of the batches. Nothing that a sync had returned for is among it, but
//! whoever looks after an accident wants to know.

use std::fmt;
use std::path::PathBuf;

/// A part of the directory that is not part of what the store shows.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LeftOut {
    /// The file.
    pub path: PathBuf,
    /// Where in the file it starts, in bytes.
    pub offset: u64,
    /// Bytes of it: of a log up to the last one that is not zero.
    pub bytes: u64,
    /// Why it is left out.
    pub reason: LeftOutReason,
}

/// Why something is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum LeftOutReason {
    /// The end of a log or of the manifest is not complete: it had not been synced.
    TornEnd,
    /// Batches in front of it are missing: they had not been synced, nor had this.
    BehindGap,
    /// An earlier opening set it aside.
    SetAside,
    /// It is called like a file of the store, and nothing names it: the next opening for writing
    /// removes it.
    Unnamed,
    /// It is not called like a file of a store.
    Stranger,
}

impl LeftOutReason {
    /// The reason as a word: `torn_end`, `behind_gap`, `set_aside`, `unnamed` or `stranger`.
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
                write!(f, "{bytes} bytes of {path} from offset {offset} on lie behind a gap")
            }
            LeftOutReason::SetAside => write!(f, "{path} was set aside, {bytes} bytes"),
            LeftOutReason::Unnamed => write!(f, "nothing names {path}, {bytes} bytes"),
            LeftOutReason::Stranger => write!(f, "{path} is no file of a store, {bytes} bytes"),
        }
    }
}
