//! The answers of every system.

/// What tells a file from all others as long as it is open: its device and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileId(pub(crate) u64, pub(crate) u64);

/// Who has as many files open as it may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(not(unix), allow(dead_code, reason = "not every system tells them apart"))]
pub(crate) enum Shortage {
    /// This process.
    Process,
    /// All processes together.
    All,
}
