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

/// What a read past the system's cache is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EarlyPlace {
    /// A number that no other file has, or had, that this process opened.
    pub(crate) file: u64,
    /// The first byte, at a block of the device.
    pub(crate) offset: u64,
    /// The number of bytes: whole blocks of the device.
    pub(crate) bytes: usize,
}
